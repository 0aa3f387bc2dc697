"""``clustergate changed-checks``: which checks to run on a change."""

from __future__ import annotations

import argparse
import contextlib
import sys

from clustergate.benchmarks.registry import every_check
from clustergate.cli.selection import taken
from clustergate.paths import suite_folder
from clustergate.session import changed_checks
from clustergate.sites import configs as sites
from clustergate.sites import modes

DESCRIPTION = """\
Read the names of changed files from standard input and print the checks to run, one per line, for
`clustergate check --check`; the reasons go to standard error. No output means that no check depends
on the change:

  git diff --name-only main... | clustergate changed-checks"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.add_argument("--site", metavar="NAME", help="site config (default: the one that fits)")
    parser.add_argument("--mode", default="smoke", help="smoke, maintenance or acceptance")


def run(arguments: argparse.Namespace) -> int:
    """Print the checks; 0 also when there are none."""
    mode = modes.mode_named(arguments.mode)
    system = taken(arguments.site, sys.stderr).path.stem
    systems = [path.stem for path in sites.site_files()]
    changed = [line for line in sys.stdin.read().splitlines() if line]
    concerns = changed_checks.concerns(changed, checks_of_files(), mode.checks, system, systems)
    for one in concerns:
        checks = ", ".join(one.checks) or "no check"
        print(f"{one.path}: {checks}: {one.reason}", file=sys.stderr)
    for check in changed_checks.selected(concerns):
        print(check)
    return 0


def checks_of_files() -> dict[str, list[str]]:
    """Return the checks of each check file of the suite that ``clustergate check`` can run."""
    checks: dict[str, list[str]] = {}
    for path in sorted(suite_folder(changed_checks.CHECK_FOLDER).glob("*.py")):
        # A file that does not parse has no known checks, so it concerns all: they will report it.
        with contextlib.suppress(SyntaxError):
            here = changed_checks.checks_in(path.read_text(encoding="utf-8"), str(path))
            checks[path.name] = [name for name in here if name in every_check()]
    return checks
