"""``clustergate doctor``: what will work here and what will not, in seconds."""

from __future__ import annotations

import argparse
import json

from clustergate.cli.passing_on import option
from clustergate.cli.selection import add_site
from clustergate.report.console import print_lines
from clustergate.run.readiness import FAIL, look
from clustergate.sites.modes import mode_named

DESCRIPTION = (
    "Check what will work here and what will not, one line each with its remedy, and show what a "
    "run would do and when it would end. Nothing is measured, downloaded or installed. Exit status "
    "0: ready; 2: something fails."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    add_site(parser)
    option(parser, "--mode", "plan this one (default: %(default)s)", default="smoke")
    option(parser, "--json", "print a JSON array")


def run(arguments: argparse.Namespace) -> int:
    """Look, print a line for each finding, and return 2 where one of them is a failure."""
    findings = look(arguments.site, mode_named(arguments.mode))
    if arguments.json:
        answer = arguments.invocation.in_json([one.plain() for one in findings])
        print(json.dumps(answer, indent=1))
    else:
        column = max(len(one.what) for one in findings)
        lines = [f"{one.status:<4}  {one.what:<{column}}  {one.says}" for one in findings]
        print_lines(lines, arguments.invocation)
    return 2 if any(one.status == FAIL for one in findings) else 0
