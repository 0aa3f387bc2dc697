"""A run as the commands make it: its progress, and its verdicts when it has ended."""

from __future__ import annotations

import datetime
import os
import shutil
import sys
from pathlib import Path

from clustergate import store
from clustergate.cli.progress import Progress
from clustergate.history import listing
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
) -> int:
    """Run, print the verdict table and return its exit status.

    ``again`` is the command that goes on with what was interrupted, `check --resume` if empty.
    """
    try:
        with Progress() as say:
            if not resumes:
                software = is_against_golden(request)
                say_in_the_way(say, request.site, request.stacks, software=software)
            run = run_session(request, run_id, started, say, resumes=resumes)
    except KeyboardInterrupt:
        if (store.run_folder(run_id) / listing.ASKED).is_file():
            on = again or f"check --resume {run_id}"
            print(f"resume with: {_own_name()} {on}", file=sys.stderr)
        raise
    wraps = sys.stdout.isatty()
    print(terminal.render(run, width=console.width(), wraps=wraps), end="")
    return status_of(run)


def _own_name() -> str:
    """Return how to call this program here: `make check` runs it without it on PATH."""
    own = Path(sys.executable).parent / "clustergate"
    on_path = shutil.which("clustergate")
    return "clustergate" if on_path and Path(on_path) == own else os.path.relpath(own)
