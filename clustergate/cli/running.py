"""A run as the commands make it: its progress, and its verdicts when it has ended."""

from __future__ import annotations

import datetime
import sys

from clustergate import store
from clustergate.cli.progress import Progress, saying_if_interrupted
from clustergate.history import stored_runs
from clustergate.report import console, terminal
from clustergate.report.summary import status_of
from clustergate.session.readiness import say_in_the_way
from clustergate.session.request import Request
from clustergate.session.run import is_against_golden, run_session


def run_and_tell(
    request: Request,
    run_id: str,
    started: datetime.datetime,
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
    with saying_if_interrupted(asked, resumed), Progress() as say:
        if not resumes:
            software = is_against_golden(request)
            say_in_the_way(say, request.site, request.stacks, software=software)
        run = run_session(request, run_id, started, say, resumes=resumes)
    status = status_of(run)
    if brief and not status:
        print(terminal.render_briefly(run), end="")
    else:
        wraps = sys.stdout.isatty()
        print(terminal.render(run, width=console.width(), wraps=wraps), end="")
    return status
