"""``clustergate open``: the page of a stored run in a browser."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import os
import webbrowser
from pathlib import Path

from clustergate.cli.passing_on import option
from clustergate.cli.selection import named_folder, require_run
from clustergate.core import store
from clustergate.core.commands import Invocation
from clustergate.core.model import BadRequest
from clustergate.core.paths import site_file, state_dir
from clustergate.core.reasons import Words
from clustergate.judge.history.listing import lacking, listed_runs, page_of
from clustergate.judge.history.merging import incoming, merge_run
from clustergate.judge.history.packages import open_package

DESCRIPTION = (
    "Open the page of a run in a browser; without a display, print where it is. "
    "It is one file that can be copied and mailed; what explains its messages lies beside it."
)


_RUNS_IN_TRENDS = 60


def add_options(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    named = 'default: "last"; its id; or a file of `clustergate pack`'
    option(which, "name RUN", named, nargs="?", default="last")
    option(which, "--all", "all systems and runs: verdicts, trends, who pinned and accepted what")
    option(parser, "--output FOLDER", "of such a file: write its page and data there", type=Path)


OPEN_WHERE = Words(
    "open.where",
    "{path} is opened into a folder, and none is named",
    remedy="`clustergate open {path} --output FOLDER` writes its page and data there",
)
OPEN_OUTPUT = Words(
    "open.output", "--output is for files of `clustergate pack`", remedy="leave it out"
)


def run(arguments: argparse.Namespace) -> int:
    """Open the page, and say where it is; raises :class:`BadRequest` where there is none."""
    is_file = not arguments.all and Path(arguments.name).is_file()
    if arguments.output and not is_file:
        raise BadRequest(OPEN_OUTPUT())
    if is_file:
        page = _unpacked(Path(arguments.name), arguments.output)
    elif arguments.all:
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


def _unpacked(path: Path, folder: Path | None) -> Path:
    """Write a package's data into a folder, with a page that is made of them, and return that."""
    # Jinja takes longer to import than all other commands need.
    from clustergate.report import package

    if folder is None:
        raise BadRequest(OPEN_WHERE(path=str(path)))
    one = incoming(open_package(path), str(path), package.pages)
    now, scratch = datetime.datetime.now().astimezone(), folder / ".incoming"
    merge_run(one, folder, scratch, store.user_name(), now)
    with contextlib.suppress(OSError):
        scratch.rmdir()
    return (folder / one.run / package.FILE).absolute()


def _index(invocation: Invocation) -> Path:
    """Write the index of all runs anew and return where it is."""
    # SciPy takes longer to import than all other commands need.
    from clustergate.judge.history import by_system, series
    from clustergate.judge.history.stored_runs import MERGED, noted, stored_runs
    from clustergate.judge.history.trends import trends
    from clustergate.judge.references.lookup import load_references_once
    from clustergate.report import index
    from clustergate.report.publishing import write_explanations
    from clustergate.stacks.golden import builds

    home, runs = store.runs_folder(), listed_runs()
    if not runs:
        require_run()
    pages = [_page(home, one.run) for one in runs]
    named = sorted({one.system for one in runs if one.system})
    golden = [builds.read(state_dir(), stack) for stack in builds.pinned_stacks(state_dir())]
    merged = [noted(home / one.run / MERGED) for one in runs]
    known = {one: load_references_once(site_file("references", f"{one}.yaml")) for one in named}
    accepted = [
        *index.merged(filter(None, merged)),
        *index.pinned(golden),
        *(each for one in named for each in index.accepted(one, known[one].accepted)),
    ]
    every = trends(series.collect([*stored_runs(newest=_RUNS_IN_TRENDS)]))
    listed, systems = list(map(index.Listed, runs, pages)), by_system.overview(runs)
    write_explanations(home)
    store.write_text(
        home / index.FILE, index.render(listed, every, accepted, home, systems, invocation)
    )
    return home / index.FILE


def _page(home: Path, run: str) -> str:
    # A gate without an answer has no page that could be taken for one.
    with contextlib.suppress(BadRequest):
        page = page_of(home / run)
        return str(page.relative_to(home)) if page else ""
    return ""
