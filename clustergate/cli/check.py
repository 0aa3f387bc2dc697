"""``clustergate check``: set up, run a mode, judge, and print a table of verdicts."""

from __future__ import annotations

import argparse
import datetime
import os

from clustergate.cli.answers import add_json, answering
from clustergate.cli.passing_on import option
from clustergate.cli.running import run_and_tell
from clustergate.cli.selection import (
    add_confirmation,
    add_repeatable,
    add_run_options,
    add_trial,
    choose_site,
    named_folder,
    reframe_job_options,
)
from clustergate.core import store
from clustergate.core.model import ClustergateError
from clustergate.core.quantities import parse_duration
from clustergate.core.words import RESUME_OPTIONS
from clustergate.judge.history.stored_runs import started_of
from clustergate.run import resuming
from clustergate.run.reframe import PROCESS_COUNTS
from clustergate.run.request import WAIT_S, Request, read_request
from clustergate.sites import exclusions, modes

DESCRIPTION = (
    "Measure this machine under every MPI stack of its site config and judge "
    "each figure. Exit status 0: no fault found; 1: something is slower than its reference; "
    "2: something did not run, was not proven, or exceeds a physical limit."
)


JUDGES = True


def add_options(parser: argparse.ArgumentParser) -> None:
    effort = parser.add_mutually_exclusive_group()
    option(effort, "--mode", "quick, smoke, maintenance or acceptance", default="smoke")
    option(effort, "--quick", "the mode quick: one size of each kind, under a minute")
    add_repeatable(parser, "--stack", "only this stack (repeatable)")
    add_repeatable(
        parser, "--check", "only this check, even if the mode does not run it (repeatable)"
    )
    option(
        parser,
        "--resume RUN",
        'resume an interrupted run ("last", or its id) with its own options: completed cases '
        "are kept, the rest is run",
    )
    option(
        parser,
        "--wait TIME",
        "wait so long, at most, for other processes to leave this node alone (default: "
        "%(default)s; 0s: not at all)",
        default=f"{WAIT_S:g}s",
    )
    option(
        parser,
        "--strict",
        "exit status 2 also where a case was so disturbed that none of its figures can be judged",
    )
    add_confirmation(parser)
    add_trial(parser)
    add_json(parser)
    add_run_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run a mode on this machine and return the exit status of the verdict table."""
    now = datetime.datetime.now().astimezone()
    resumed = arguments.resume and named_folder(arguments.resume).name
    run_id = resumed or store.new_run_id(now)
    try:
        with answering(run_id, in_json=arguments.json):
            return _measured(arguments, run_id, now)
    finally:
        if arguments.copy_to is not None:
            store.copy_run(run_id, arguments.copy_to)


def _measured(arguments: argparse.Namespace, run_id: str, now: datetime.datetime) -> int:
    if not arguments.resume:
        return run_and_tell(_request(arguments), run_id, now, arguments.invocation)
    if arguments.stack or arguments.check or arguments.site or arguments.reframe_options:
        raise ClustergateError(RESUME_OPTIONS())
    request = read_request(run_id)
    resuming.require_unfinished(run_id)
    arguments.invocation = arguments.invocation.of(request.called)
    started = started_of(store.run_folder(run_id)).astimezone()
    print(request.site_told or f"site {request.site.stem} ({request.site})", flush=True)
    return run_and_tell(request, run_id, started, arguments.invocation, resumes=True)


def _request(arguments: argparse.Namespace) -> Request:
    named = modes.QUICK if arguments.quick else arguments.mode
    call = arguments.invocation.call
    arguments.invocation = arguments.invocation.of(
        ("--mode", named) if group[0] == "--quick" else group for group in call
    )
    mode, checks = modes.mode_named(named), modes.checks_named(arguments.check)
    site = choose_site(arguments.site)
    return Request(
        mode,
        site.path,
        tuple(arguments.stack),
        checks,
        (*reframe_job_options(arguments, site.path), *arguments.reframe_options),
        os.environ.get(PROCESS_COUNTS, ""),
        str(site),
        site.fallback,
        parse_duration(arguments.wait),
        arguments.strict,
        os.environ.get(exclusions.WITHOUT_NODES, ""),
        arguments.invocation.call,
        not arguments.no_confirm,
        parse_duration(arguments.confirm_wait),
        stops_busy=True,
        trial=arguments.trial,
    )
