"""Which of the stored runs and cases a command is about: its options, and what they name."""

from __future__ import annotations

import argparse
import datetime
import fnmatch
import json
from collections.abc import Iterator

from clustergate import store
from clustergate.cli import machine
from clustergate.history.series import PastRun, Wanted
from clustergate.history.stored_runs import point_in_time, stored_runs
from clustergate.machine.changes import Difference, differences
from clustergate.machine.fingerprint import Fingerprint, from_record
from clustergate.model import CaseRecord, ClustergateError


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that name some of the stored cases."""
    parser.add_argument("--check", default="*", metavar="PATTERN", help="only these checks")
    parser.add_argument("--stack", default="*", metavar="PATTERN", help="only these stacks")
    parser.add_argument(
        "--since", metavar="WHEN", help="only runs since then: 2026-11-03, a run, 12h or 7d ago"
    )


def named_cases(arguments: argparse.Namespace) -> Wanted:
    """Return which cases the options of :func:`add_options` name."""

    def wanted(record: CaseRecord) -> bool:
        return fnmatch.fnmatchcase(record.check, arguments.check) and fnmatch.fnmatchcase(
            record.stack, arguments.stack
        )

    return wanted


def named_runs(arguments: argparse.Namespace) -> Iterator[PastRun]:
    """Yield the stored runs that ``--since`` names, all of them without it."""
    now = datetime.datetime.now().astimezone()
    return stored_runs(point_in_time(arguments.since, now) if arguments.since else None)


def changed_between(before: str, after: str) -> list[Difference]:
    """Return what changed on the node between two runs, nothing where one did not record it."""
    old, new = _fingerprint(before), _fingerprint(after)
    return differences(old, new) if old and new else []


def _fingerprint(run_id: str) -> Fingerprint | None:
    path = store.run_folder(run_id) / machine.RECORD
    try:
        return from_record(json.loads(path.read_text(encoding="utf-8")), str(path))
    except (OSError, ValueError, ClustergateError):
        return None
