"""``clustergate open``: the page of a stored run in a browser."""

from __future__ import annotations

import argparse
import contextlib
import os
import webbrowser
from pathlib import Path

from clustergate.cli.passing_on import option
from clustergate.cli.selection import named_folder, require_run
from clustergate.core import store
from clustergate.core.commands import Invocation
from clustergate.core.model import BadRequest
from clustergate.core.paths import site_file, state_dir
from clustergate.judge.history.listing import lacking, listed_runs, page_of

DESCRIPTION = (
    "Open the page of a run in a browser; without a display, print where it is. "
    "It is one file that can be copied and mailed; what explains its messages lies beside it."
)


_RUNS_IN_TRENDS = 60


def add_options(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    option(which, "name RUN", 'default: "last"; or its id', nargs="?", default="last")
    option(which, "--all", "the index of all runs: verdicts, trends, who pinned and accepted what")


def run(arguments: argparse.Namespace) -> int:
    """Open the page, and say where it is; raises :class:`BadRequest` where there is none."""
    if arguments.all:
        page = _index(arguments.invocation)
    else:
        folder = named_folder(arguments.name)
        of_run = page_of(folder)
        if of_run is None:
            raise lacking(folder, "page")
        page = of_run
    print(page)
    # Without a display a browser would take over the terminal.
    if any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")):
        webbrowser.open(page.as_uri())
    return 0


def _index(invocation: Invocation) -> Path:
    """Write the index of all runs anew and return where it is."""
    # SciPy takes longer to import than all other commands need.
    from clustergate.judge.history import series
    from clustergate.judge.history.stored_runs import stored_runs
    from clustergate.judge.history.trends import trends
    from clustergate.judge.references.lookup import load_references_once
    from clustergate.report import index
    from clustergate.report.publishing import write_explanations
    from clustergate.stacks.golden import builds

    require_run()
    home, runs = store.runs_folder(), listed_runs()
    pages = [_page(home, one.run) for one in runs]
    systems = sorted({one.system for one in runs if one.system})
    golden = [builds.read(state_dir(), stack) for stack in builds.pinned_stacks(state_dir())]
    known = {one: load_references_once(site_file("references", f"{one}.yaml")) for one in systems}
    accepted = [
        *index.pinned(golden),
        *(each for one in systems for each in index.accepted(one, known[one].accepted)),
    ]
    every = trends(series.collect([*stored_runs(newest=_RUNS_IN_TRENDS)]))
    listed = list(map(index.Listed, runs, pages))
    write_explanations(home)
    store.write_text(home / index.FILE, index.render(listed, every, accepted, home, invocation))
    return home / index.FILE


def _page(home: Path, run: str) -> str:
    # A gate without an answer has no page that could be taken for one.
    with contextlib.suppress(BadRequest):
        page = page_of(home / run)
        return str(page.relative_to(home)) if page else ""
    return ""
