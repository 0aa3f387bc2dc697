"""A run as the commands make it: its progress, and its verdicts when it has ended."""

from __future__ import annotations

import datetime
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from clustergate import store
from clustergate.cli.progress import Progress
from clustergate.gate.contract import MODE
from clustergate.gate.decision import Evidence
from clustergate.history import listing
from clustergate.model import Say
from clustergate.report import console, terminal
from clustergate.report.summary import status_of
from clustergate.session.readiness import say_in_the_way
from clustergate.session.request import Request
from clustergate.session.run import run_session
from clustergate.sites import configs as sites
from clustergate.verdicts import judging

SOFTWARE = "software.json"
"""In the folder of a run of maintenance: what golden builds said."""


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
                software = request.mode.name == MODE
                say_in_the_way(say, request.site, request.stacks, software=software)
            run = run_session(request, run_id, started, say, resumes=resumes)
            of_software, notes = _against_golden(request, run_id, say)
    except KeyboardInterrupt:
        if (store.run_folder(run_id) / listing.ASKED).is_file():
            on = again or f"check --resume {run_id}"
            print(f"resume with: {_own_name()} {on}", file=sys.stderr)
        raise
    wraps = sys.stdout.isatty()
    print(terminal.render(run, width=console.width(), wraps=wraps), end="")
    status = status_of(run)
    for line in [
        *(f"{one.part}: {one.verdict.value}: {one.sentence}" for one in of_software),
        *notes,
    ]:
        print(line)
    with_software = judging.exit_status([one.verdict for one in of_software], "gate")
    if with_software and status != 1:
        print(f"clustergate check: exit status {with_software}: see software above")
        return with_software
    return status


def _against_golden(
    request: Request, run_id: str, say: Say
) -> tuple[Sequence[Evidence], Sequence[str]]:
    """Return what golden builds say of the software, where all of maintenance is run."""
    if request.mode.name != MODE or request.checks:
        return (), ()
    # SciPy takes longer to import than all other commands need.
    from clustergate.session.software import against_golden

    site = sites.load(request.site)
    stacks = [stack.name for stack in site.stacks_named(request.stacks)]
    found, notes = against_golden(request.site, run_id, site, stacks, None, request.options, say)
    store.write_json(store.run_folder(run_id) / SOFTWARE, [one.plain() for one in found])
    return found, notes


def _own_name() -> str:
    """Return how to call this program here: `make check` runs it without it on PATH."""
    own = Path(sys.executable).parent / "clustergate"
    on_path = shutil.which("clustergate")
    return "clustergate" if on_path and Path(on_path) == own else os.path.relpath(own)
