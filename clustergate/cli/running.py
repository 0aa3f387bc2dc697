"""A run as the commands make it: told while it goes on, and its verdicts when it has ended."""

from __future__ import annotations

import datetime
import os
import shutil
import sys
from pathlib import Path

from clustergate import store
from clustergate.cli.streams import progress
from clustergate.report import terminal
from clustergate.session import resuming
from clustergate.session.request import Request
from clustergate.session.run import run_session
from clustergate.verdicts import assembly, judging


def run_and_tell(
    request: Request, run_id: str, started: datetime.datetime, *, resumes: bool = False
) -> int:
    """Run, print what was found and return the exit status of the verdict table."""
    try:
        run = run_session(request, run_id, started, progress(), resumes=resumes)
    except KeyboardInterrupt:
        if (store.run_folder(run_id) / resuming.ASKED).is_file():
            print(f"go on with: {_own_name()} check --resume {run_id}", file=sys.stderr)
        raise
    print(terminal.render(run, width=terminal.width()), end="")
    return judging.exit_status(assembly.verdicts(run.cases))


def _own_name() -> str:
    """Return how this program is called here: `make check` does so without it on PATH."""
    own = Path(sys.executable).parent / "clustergate"
    found = shutil.which("clustergate")
    return "clustergate" if found and Path(found) == own else os.path.relpath(own)
