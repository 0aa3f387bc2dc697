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
    names = [listing.VERDICTS] if arguments.json else [listing.SUMMARY, listing.GATE]
    shown = [folder / name for name in names if (folder / name).is_file()]
    page = None if arguments.json else listing.page_of(folder)
    if not shown and page is None:
        raise BadRequest("run.no-summary", run=folder.name, folder=str(folder))
    if arguments.json:
        gate = folder / listing.GATE
        decided = {"gate": _content(gate)} if gate.is_file() else {}
        print(json.dumps({**_content(shown[0]), **decided}, indent=1))
    else:
        texts = (path.read_text(encoding="utf-8", errors="replace") for path in shown)
        print_lines(line for text in texts for line in text.splitlines())
        print(*filter(None, [page, folder]), sep="\n")
    return 0


def _content(path: Path) -> dict[str, Any]:
    try:
        return {**read_json(path)}
    except (ValueError, TypeError) as error:
        raise BadRequest("run.damaged-case", path=path, why=error) from None
