"""``clustergate show``: a stored run as it was summed up when it ended."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from clustergate.cli.selection import named_folder
from clustergate.files.whole import read_json
from clustergate.history import listing
from clustergate.model import BadRequest
from clustergate.report.console import print_lines

DESCRIPTION = (
    "Print the summary of a stored run, as it was when the run ended, and where its pages are."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.add_argument("name", metavar="RUN", help='its id, a session, "last" or "previous"')
    parser.add_argument("--json", action="store_true", help="its verdicts with their reasons")


def run(arguments: argparse.Namespace) -> int:
    """Print what is stored of a run; raises :class:`BadRequest` where it never ended."""
    folder = named_folder(arguments.name)
    gate, summary = folder / listing.GATE, folder / listing.SUMMARY
    decided = _content(gate)
    # The summary of its benchmarks is there before a gate has its answer, and is none.
    if gate.is_file() and not decided.get("word"):
        raise listing.lacking(folder, "answer")
    page = listing.page_of(folder)
    if arguments.json:
        shown = {**_content(folder / listing.VERDICTS), **({"gate": decided} if decided else {})}
        if not shown:
            raise listing.lacking(folder, "verdicts")
        print(json.dumps(shown, indent=1))
        return 0
    if summary.is_file():
        print_lines(summary.read_text(encoding="utf-8", errors="replace").splitlines())
    elif page is None:
        raise listing.lacking(folder, "summary")
    print(*filter(None, [page, folder]), sep="\n")
    return 0


def _content(path: Path) -> dict[str, Any]:
    try:
        return {**read_json(path)} if path.is_file() else {}
    except (ValueError, TypeError) as error:
        raise BadRequest("run.damaged-case", path=path, why=error) from None
