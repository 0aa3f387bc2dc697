"""``clustergate show``: a stored run as it was summed up when it ended."""

from __future__ import annotations

import argparse
import json

from clustergate.cli.answers import answer_of
from clustergate.cli.passing_on import option
from clustergate.cli.selection import named_folder
from clustergate.judge.history import listing
from clustergate.report.console import print_lines

DESCRIPTION = (
    "Print the summary of a stored run, as it was when the run ended, and where its pages are."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    option(parser, "name RUN", 'its id or number (r8), a session, "last" or "previous"')
    option(parser, "--json", "its verdicts with their reasons")


def run(arguments: argparse.Namespace) -> int:
    """Print what is stored of a run; raises :class:`BadRequest` where it never ended."""
    folder = named_folder(arguments.name)
    if arguments.json:
        print(json.dumps(answer_of(folder), indent=1))
        return 0
    summary, page = folder / listing.SUMMARY, listing.page_of(folder)
    if summary.is_file():
        print_lines(summary.read_text(encoding="utf-8", errors="replace").splitlines())
    elif page is None:
        raise listing.lacking(folder, "summary")
    print(*filter(None, [page, folder]), sep="\n")
    return 0
