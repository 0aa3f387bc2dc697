"""``clustergate open``: the page of a stored run in a browser."""

from __future__ import annotations

import argparse
import os
import webbrowser

from clustergate.cli.passing_on import option
from clustergate.cli.selection import named_folder
from clustergate.judge.history.listing import lacking, page_of

DESCRIPTION = (
    "Open the page of a run in a browser; without a display, print where it is. "
    "It is one file that can be copied and mailed."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    option(parser, "name RUN", 'default: "last"; or its id', nargs="?", default="last")


def run(arguments: argparse.Namespace) -> int:
    """Open the page, and say where it is; raises :class:`BadRequest` where there is none."""
    folder = named_folder(arguments.name)
    page = page_of(folder)
    if page is None:
        raise lacking(folder, "page")
    print(page)
    # Without a display a browser would take over the terminal.
    if any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")):
        webbrowser.open(page.as_uri())
    return 0
