"""``clustergate show``: a stored run as it was summed up when it ended."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from clustergate.cli.passing_on import option
from clustergate.cli.selection import named_folder
from clustergate.files.whole import read_json
from clustergate.history import listing
from clustergate.model import BadRequest
from clustergate.report.console import print_lines
from clustergate.screening.plan import is_screening

DESCRIPTION = (
    "Print the summary of a stored run, as it was when the run ended, and where its pages are."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    option(parser, "name RUN", 'its id, a session, "last" or "previous"')
    option(parser, "--json", "its verdicts with their reasons")


def run(arguments: argparse.Namespace) -> int:
    """Print what is stored of a run; raises :class:`BadRequest` where it never ended."""
    folder = named_folder(arguments.name)
    decided, summary = _content(folder / listing.GATE), folder / listing.SUMMARY
    page = listing.page_of(folder)
    if arguments.json:
        shown = {**_content(folder / listing.VERDICTS), **({"gate": decided} if decided else {})}
        shown = shown or _content(folder / listing.AB) or _screened(folder / "screening")
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


def _screened(folder: Path) -> dict[str, Any]:
    """Return what a screening that came to its end says for and against its nodes."""
    if not is_screening(folder):
        return {}
    # NumPy takes longer to import than all other commands need.
    from clustergate.gate.decision import of_screening
    from clustergate.screening.folder import read_screening

    _, log, screening = read_screening(folder)
    evidence = of_screening(screening, ended=log.ended) if log.ended else []
    return {"evidence": [one.plain() for one in evidence]} if evidence else {}


def _content(path: Path) -> dict[str, Any]:
    try:
        return {**read_json(path)} if path.is_file() else {}
    except (ValueError, TypeError) as error:
        raise BadRequest("run.damaged-case", path=path, why=error) from None
