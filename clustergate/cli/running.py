"""A run as the commands make it: its progress, and its verdicts when it has ended."""

from __future__ import annotations

import contextlib
import datetime
import sys

from clustergate.cli.answers import telling
from clustergate.cli.progress import Progress, saying_if_interrupted
from clustergate.cli.streams import print_coloured
from clustergate.core import store
from clustergate.core.commands import Invocation
from clustergate.core.model import ClustergateError, Evidence, Run, Verdict
from clustergate.judge.history import stored_runs
from clustergate.judge.history.listing import JUNIT
from clustergate.report import console, terminal
from clustergate.report.publishing import UnpublishedError, publish
from clustergate.report.summary import status_of
from clustergate.run.readiness import say_in_the_way
from clustergate.run.request import Request
from clustergate.run.run import is_against_golden, run_session


def run_and_tell(
    request: Request,
    run_id: str,
    started: datetime.datetime,
    invocation: Invocation,
    *,
    resumes: bool = False,
    again: str = "",
    brief: bool = False,
) -> int:
    """Run, print the verdict table and return its exit status.

    ``again`` is the command that goes on with what was interrupted, `check --resume` if empty.
    A ``brief`` run of exit status 0 is told in a line.
    """
    asked = store.run_folder(run_id) / stored_runs.ASKED
    resumed = f"`clustergate {again or f'check --resume {run_id}'}` goes on with it"
    with saying_if_interrupted(asked, resumed, invocation), Progress(invocation) as say:
        if not resumes:
            software = is_against_golden(request)
            say_in_the_way(say, request.site, request.stacks, software=software)
        try:
            run = publish(run_session(request, run_id, started, say, resumes=resumes), invocation)
        except UnpublishedError as error:
            # Its table is all that is left of hours.
            tell(error.run, invocation)
            raise
        except ClustergateError as error:
            tell_ci(request, run_id, started, error, invocation)
            raise
    status = status_of(run)
    with telling(run_id):
        tell(run, invocation, brief=brief and not status)
    return status


def tell(run: Run, invocation: Invocation, *, brief: bool = False) -> None:
    """Print the first screen of a run, or that it went well in a line."""
    if brief:
        print(terminal.render_briefly(run, invocation), end="", flush=True)
        return
    wraps = sys.stdout.isatty()
    width = console.width()
    text = terminal.render(
        run, width=width, wraps=wraps, colour=wraps, log=not wraps, invocation=invocation
    )
    # A reader that leaves a pipe takes no verdict with it.
    if wraps:
        print_coloured(text)
    else:
        print(text, end="", flush=True)


def tell_ci(
    request: Request,
    run_id: str,
    started: datetime.datetime,
    error: ClustergateError,
    invocation: Invocation,
) -> None:
    """Say what ended a run that has begun where CI systems look for what failed."""
    from clustergate.report.junit import render_junit

    if not store.run_folder(run_id).is_dir():
        return
    why = (Evidence("run", Verdict.INVALID, (error.reason,)),)
    began = started.isoformat(timespec="seconds")
    ended = (datetime.datetime.now().astimezone() - started).total_seconds()
    run = Run(run_id, request.site.stem, request.mode.name, began, ended, (), evidence=why)
    # A disk that is full keeps it, too, and the command says why it ended.
    with contextlib.suppress(store.StoreError):
        store.write_text(store.run_folder(run_id) / JUNIT, render_junit(run, invocation))
