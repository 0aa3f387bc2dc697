"""``clustergate gate``: after maintenance, may the machine go back to its users?"""

from __future__ import annotations

import argparse
import datetime
import functools
import sys

from clustergate.cli.answers import add_json, answering, telling
from clustergate.cli.passing_on import option
from clustergate.cli.progress import Progress, saying_if_interrupted
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
from clustergate.core.reasons import Words
from clustergate.core.texts import Step
from clustergate.judge.history.listing import GATE
from clustergate.run.gate import workflow
from clustergate.run.gate.evidence import Publisher
from clustergate.sites import choice
from clustergate.sites import configs as sites
from clustergate.sites.description import Site

DESCRIPTION = """\
Screen the system's nodes and links, run the maintenance mode on the good ones, compare with the
references and with the last such run, and answer on one page. Exit status 0: open; 1: stay closed,
because something is slower than before or than its reference; 2: no verdict. The gate opens only
when every check was judged with every stack in every partition. Under a budget the checks that find
most run first; what is left out counts as not judged. docs/operators.md says what to do next."""

JUDGES = True
_ANEW = "a gate is not resumed: `clustergate gate` measures anew"


def add_options(parser: argparse.ArgumentParser) -> None:
    option(parser, "--budget TIME", "such as 20m (default: enough for everything)")
    add_repeatable(parser, "--stack", "only this stack (repeatable): finds faults, but never opens")
    option(
        parser,
        "--before RUN",
        "compare with this run (default: the last one that did not keep the gate closed)",
    )
    add_confirmation(parser)
    add_trial(parser)
    add_json(parser)
    add_run_options(parser)
    # Whoever interrupted one looks for it.
    option(parser, "--resume RUN", argparse.SUPPRESS, nargs="?", const="last")


NOT_RESUMED = Words(
    "gate.not-resumed",
    "a gate is not resumed",
    cause="what it found would be of another moment",
    remedy="`clustergate gate` measures anew",
)


def run(arguments: argparse.Namespace) -> int:
    """Screen, measure, compare, decide; print the answer and leave its page."""
    started = datetime.datetime.now().astimezone()
    if arguments.resume:
        raise ClustergateError(NOT_RESUMED())
    run_id = store.new_run_id(started)
    try:
        with answering(run_id, in_json=arguments.json):
            return _gate(arguments, started, run_id)
    finally:
        if arguments.copy_to is not None:
            store.copy_run(run_id, arguments.copy_to)


def _gate(arguments: argparse.Namespace, started: datetime.datetime, run_id: str) -> int:
    # SciPy and Jinja take longer to import than all other commands need.
    from clustergate.report import console
    from clustergate.report.publishing import publish, publish_gate
    from clustergate.report.screening import write_forms

    chosen = choose_site(arguments.site)
    site = sites.load(chosen.path)
    with workflow.alone(site.name):
        # To read what was measured before takes a minute on a large system, and so does the answer.
        with Progress(arguments.invocation) as say:
            say(Step("reading earlier runs"))
            gate = workflow.prepare(_request(arguments, chosen, site), run_id, started)
            arguments.invocation = say.invocation = gate.invocation
            publisher = Publisher(
                functools.partial(publish, invocation=gate.invocation),
                functools.partial(write_forms, invocation=gate.invocation),
            )
            begun = store.run_folder(run_id) / GATE
            with saying_if_interrupted(begun, _ANEW, gate.invocation):
                gate, measured = workflow.measure(gate, publisher, say)
                say(Step("deciding"))
                answer = workflow.decide(gate, measured)
                lines = publish_gate(answer)
        with telling(run_id):
            console.print_lines(lines, answer.invocation)
            sys.stdout.flush()
    return answer.decision.status


def _request(
    arguments: argparse.Namespace, chosen: choice.Choice, site: Site
) -> workflow.GateRequest:
    scheduler_options = reframe_job_options(arguments, chosen.path)
    return workflow.GateRequest(
        site,
        chosen,
        arguments.invocation,
        arguments.stack,
        arguments.budget,
        named_folder(arguments.before).name if arguments.before else None,
        arguments.reframe_options,
        scheduler_options,
        not arguments.no_confirm,
        parse_duration(arguments.confirm_wait),
        arguments.trial,
    )
