"""What a run says to a script: the JSON of ``show``, and of the commands that make a run."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from clustergate.cli.passing_on import option
from clustergate.core import store
from clustergate.core.files.stored import encode
from clustergate.core.files.whole import read_json
from clustergate.core.model import BadRequest, Verdict
from clustergate.core.store import RUN_DAMAGED_CASE
from clustergate.judge.history import listing
from clustergate.studies.screen.plan import is_screening


def answer_of(folder: Path) -> dict[str, Any]:
    """Return the verdicts of a run with their reasons; raises BadRequest where it never ended."""
    decided = _content(folder / listing.GATE)
    listing.require_answer(folder)
    shown = _content(folder / listing.VERDICTS)
    if decided:
        # What its benchmarks ended with is not the answer.
        shown |= {"gate": decided, "exit_status": decided.get("status")}
    shown = shown or _content(folder / listing.AB) or _screened(folder / "screening")
    if not shown:
        raise listing.lacking(folder, "verdicts")
    return shown


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add the option that :func:`answering` takes."""
    option(parser, "--json", "print what `show RUN --json` prints; the rest goes to standard error")


@contextlib.contextmanager
def answering(run_id: str, *, in_json: bool) -> Iterator[None]:
    """Let a script read the verdicts of a run, once it has ended, and a person all the rest.

    With JSON, what is printed meanwhile goes to standard error.
    """
    if not in_json:
        yield
        return
    with contextlib.redirect_stdout(sys.stderr):
        yield
    with telling(run_id):
        print(json.dumps(answer_of(store.run_folder(run_id)), indent=1), flush=True)


@contextlib.contextmanager
def telling(run_id: str) -> Iterator[None]:
    """Take back the answer of a run that cannot be told: status and files say the same."""
    try:
        yield
    except OSError:
        listing.take_back(store.run_folder(run_id))
        raise


def _screened(folder: Path) -> dict[str, Any]:
    """Return what a screening that came to its end says for and against its nodes."""
    begun, ended = folder.parent / listing.MADE, folder.parent / listing.ENDED
    if not is_screening(folder) or (begun.exists() and not ended.exists()):
        return {}
    # NumPy takes longer to import than all other commands need.
    from clustergate.run.gate.decision import screening_evidence
    from clustergate.studies.screen import wording
    from clustergate.studies.screen.folder import read_screening

    _, log, screening = read_screening(folder)
    if not log.ended:
        return {}
    status, evidence = (
        wording.exit_status(log, screening),
        screening_evidence(screening, ended=True),
    )
    if status:
        # Of too few nodes: a gate has its benchmarks beside that, and a screening nothing.
        unable = Verdict.INCONCLUSIVE
        evidence = [
            replace(e, verdict=unable) if e.verdict is Verdict.PASS else e for e in evidence
        ]
    return {"evidence": encode(evidence), "exit_status": status}


def _content(path: Path) -> dict[str, Any]:
    try:
        return {**read_json(path)} if path.is_file() else {}
    except (ValueError, TypeError) as error:
        raise BadRequest(RUN_DAMAGED_CASE(path=path, why=error)) from None
