"""A run as the commands make it: its progress, and its verdicts when it has ended."""

from __future__ import annotations

import datetime
import os
import shutil
import sys
from pathlib import Path

from clustergate import store
from clustergate.cli.streams import progress
from clustergate.history import listing
from clustergate.report import terminal
from clustergate.session.request import Request
from clustergate.session.run import run_session


def run_and_tell(
    request: Request, run_id: str, started: datetime.datetime, *, resumes: bool = False
) -> int:
    """Run, print the verdict table and return its exit status."""
    try:
        run = run_session(request, run_id, started, progress(), resumes=resumes)
    except KeyboardInterrupt:
        if (store.run_folder(run_id) / listing.ASKED).is_file():
            print(f"resume with: {_own_name()} check --resume {run_id}", file=sys.stderr)
        raise
    wraps = sys.stdout.isatty()
    print(terminal.render(run, width=terminal.width(), wraps=wraps), end="")
    return terminal.status_of(run)


def _own_name() -> str:
    """Return how to call this program here: `make check` runs it without it on PATH."""
    own = Path(sys.executable).parent / "clustergate"
    on_path = shutil.which("clustergate")
    return "clustergate" if on_path and Path(on_path) == own else os.path.relpath(own)
