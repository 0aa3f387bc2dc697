"""``clustergate screen``: find slow nodes, links and switches."""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import functools
import sys

from clustergate.cli.answers import add_json, answering, telling
from clustergate.cli.passing_on import option
from clustergate.cli.progress import Progress, saying_if_interrupted
from clustergate.cli.selection import (
    abbreviated,
    add_job_options,
    add_site,
    choose_site,
    recent,
    reframe_job_options,
)
from clustergate.cli.streams import print_coloured
from clustergate.core import store
from clustergate.core.commands import Invocation
from clustergate.core.environment import export
from clustergate.core.model import ClustergateError
from clustergate.core.quantities import parse_duration
from clustergate.core.reasons import Words
from clustergate.core.texts import clock, duration
from clustergate.core.words import OPTION_NEGATIVE, RESUME_OPTIONS
from clustergate.judge.history.listing import SUMMARY
from clustergate.judge.history.stored_runs import RECENT
from clustergate.launch.plan import PLAN
from clustergate.run.readiness import say_in_the_way
from clustergate.run.screening import (
    ScreenCall,
    call_to_resume,
    keep_verdict,
    not_screened,
    partition_of,
    screen,
)
from clustergate.sites import configs as sites
from clustergate.sites import exclusions
from clustergate.sites.schedulers import note_words
from clustergate.sites.schedulers.job_options import words_in
from clustergate.studies.screen import folder, planning, wording
from clustergate.studies.screen.plan import is_screening

DESCRIPTION = """\
Measure every node alone, then pairs of nodes in rounds of disjoint pairs, in one job, and report
which node, link or switch is slow, with the evidence and the confidence. A dead node and a failing
pair are findings. Exit status 0: no faults found; 1: faults found; 2: inconclusive. On a single
node without a hostfile it measures each of its cores, and pairs of them. docs/screening.md explains
how it decides and what it can find in how much time."""


JUDGES = True
# Beside the launch on each node, one more on those that look slow.
_QUICK_S = 120.0


def add_options(parser: argparse.ArgumentParser) -> None:
    add_site(parser)
    option(parser, "--stack NAME", "measure with this stack (default: first)")
    option(parser, "--partition NAME", "default: first of the system", default="")
    option(
        parser,
        "--rounds N",
        "of pairs (default: every pair once; more: again)",
        type=int,
        default=0,
    )
    option(parser, "--budget TIME", "for the whole screening (default: 20m)", default="20m")
    option(parser, "--hpl TIME", "for HPL on each node (default: 60s; 0: none)", default="60s")
    option(
        parser,
        "--quick",
        "is every node back? Compare the state of each with its kind and its last good run, and "
        "launch once on each, without pairs",
    )
    option(
        parser, "--resume RUN", 'resume an interrupted one with its own options ("last", or its id)'
    )
    add_json(parser)
    add_job_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Screen, print the findings and write the reports."""
    resumed = arguments.resume
    if resumed in RECENT:
        resumed = recent(resumed, folder.FOLDER).name
    elif resumed:
        resumed = abbreviated(resumed)
    run_id = resumed or store.new_run_id(datetime.datetime.now().astimezone())
    with answering(run_id, in_json=arguments.json):
        return _screened(arguments, run_id)


NO_SCREENING = Words(
    "run.no-screening",
    "no screening {run} in {folder}",
    remedy="`clustergate list runs` lists them",
)


def _screened(arguments: argparse.Namespace, run_id: str) -> int:
    # NumPy takes longer to import than all other commands need.
    from clustergate.report import console
    from clustergate.report.screening import render_first, write_forms

    where = folder.screening_folder(run_id)
    if arguments.resume and not is_screening(where):
        raise ClustergateError(NO_SCREENING(run=run_id, folder=store.runs_folder()))
    call = _resumed(run_id, arguments) if arguments.resume else None
    if call is None:
        call = _called(arguments)
    described = sites.load(call.site)
    again = f"`clustergate screen --resume {run_id}` goes on with it"
    invocation: Invocation = arguments.invocation
    with saying_if_interrupted(where / PLAN, again, invocation), Progress(invocation) as say:
        say_in_the_way(say, call.site, [*filter(None, [call.stack])])
        within, _ = planning.within_limits(call.asked, partition_of(call.asked, described))
        now, seconds = datetime.datetime.now(), within.seconds
        say(f"done by {clock(now, seconds)} ({duration(seconds)})")
        of_call = call.asked, call.stack, say, call.options, invocation.call
        result = screen(call.site, run_id, *of_call)
    scheduler = partition_of(call.asked, described).scheduler
    others = not_screened(call.asked, described)
    of_result = (*result, where, described.name, scheduler, others)
    shown = functools.partial(render_first, *of_result, invocation=invocation)
    write_forms(*result, described.name, where, invocation)
    store.write_text(where.parent / SUMMARY, shown(width=console.WIDTH_STORED))
    # The verdict comes last: who reads it finds all that carries it.
    keep_verdict(run_id, described.name, *result)
    with telling(run_id):
        on_terminal = sys.stdout.isatty()
        print_coloured(shown(width=console.width(), wraps=on_terminal, colour=on_terminal))
    return wording.exit_status(*result)


def _called(arguments: argparse.Namespace) -> ScreenCall:
    site = choose_site(arguments.site).path
    asked = planning.ScreenRequest(
        arguments.nodes,
        arguments.rounds,
        parse_duration(arguments.budget),
        0.0 if arguments.quick else parse_duration(arguments.hpl),
        arguments.partition,
        quick=arguments.quick,
    )
    if arguments.quick and asked.seconds > _QUICK_S:
        asked = dataclasses.replace(asked, seconds=_QUICK_S)
    if arguments.rounds < 0:
        raise ClustergateError(OPTION_NEGATIVE(option="--rounds", value=arguments.rounds))
    return ScreenCall(site, asked, arguments.stack, tuple(reframe_job_options(arguments, site)))


def _resumed(run_id: str, arguments: argparse.Namespace) -> ScreenCall | None:
    """Return what a screening began with, and go on as if called so.

    Raises :class:`ClustergateError` for options that it did not have.
    """
    call = call_to_resume(run_id)
    if call is not None:
        before = [[*group] for group in call.called]
        of_now = [x for x in arguments.invocation.call[1:] if x[0] not in _OF_NOW]
        if any([*group] not in before for group in of_now):
            raise ClustergateError(RESUME_OPTIONS())
        arguments.invocation = arguments.invocation.of(call.called)
        note_words(words_in(call.options))
        if call.without_nodes:
            export(exclusions.WITHOUT_NODES, call.without_nodes)
        print(f"site {call.site.stem} ({call.site})", flush=True)
    return call


_OF_NOW = ("--resume", "--json")
