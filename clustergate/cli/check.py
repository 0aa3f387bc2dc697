"""``clustergate check``: set up, run a mode, judge, and say it in ten seconds of reading."""

from __future__ import annotations

import argparse
import datetime
import os
from pathlib import Path

from clustergate import store
from clustergate.cli.running import run_and_tell
from clustergate.cli.selection import taken
from clustergate.history.stored_runs import started_of
from clustergate.session import resuming
from clustergate.session.reframe import PROCESS_COUNTS
from clustergate.session.request import Request, asked_for
from clustergate.sites import modes


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "check",
        help="measure this machine and judge it",
        description="Measure this machine under every MPI stack of its site config and judge "
        "each figure. Exit status 0: nothing wrong was found; 1: something is slower than its "
        "reference; 2: something did not run, did not prove itself, or is impossible.",
    )
    parser.add_argument("--mode", default="smoke", help="smoke, maintenance or acceptance")
    parser.add_argument("--site", metavar="NAME", help="site config (default: the one that fits)")
    parser.add_argument(
        "--stack", action="append", default=[], metavar="NAME", help="only this stack (repeatable)"
    )
    parser.add_argument(
        "--check",
        action="append",
        default=[],
        metavar="NAME",
        help="only this check, whether the mode runs it or not (repeatable)",
    )
    parser.add_argument(
        "--copy-to", type=Path, metavar="FOLDER", help="copy the run's folder into this one, too"
    )
    parser.add_argument(
        "--resume",
        metavar="RUN",
        help="go on with a run that was stopped, as it was asked for: what came to its end is "
        "kept, the rest is run",
    )
    parser.add_argument(
        "reframe_options",
        nargs="*",
        default=[],
        metavar="-- OPTION",
        help="further options for ReFrame",
    )
    parser.set_defaults(run=run, judges=True)


def run(arguments: argparse.Namespace) -> int:
    """Run a mode on this machine and return the exit status of the verdict table."""
    now = datetime.datetime.now().astimezone()
    run_id = arguments.resume or store.new_run_id(now)
    try:
        if not arguments.resume:
            return run_and_tell(_request(arguments), run_id, now)
        if arguments.stack or arguments.check or arguments.site or arguments.reframe_options:
            raise resuming.ResumeError(
                "--resume goes on with a run as it was asked for; name nothing but the run"
            )
        request = asked_for(run_id)
        resuming.require_unfinished(run_id)
        started = started_of(store.run_folder(run_id)).astimezone()
        print(request.site_told or f"site {request.site.stem} ({request.site})", flush=True)
        return run_and_tell(request, run_id, started, resumes=True)
    finally:
        if arguments.copy_to is not None:
            store.copy_run(run_id, arguments.copy_to)


def _request(arguments: argparse.Namespace) -> Request:
    mode, checks = modes.mode_named(arguments.mode), modes.checks_named(arguments.check)
    site = taken(arguments.site)
    return Request(
        mode,
        site.path,
        tuple(arguments.stack),
        checks,
        tuple(arguments.reframe_options),
        os.environ.get(PROCESS_COUNTS, ""),
        str(site),
        site.fallback,
    )
