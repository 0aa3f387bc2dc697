"""``clustergate evaluation``: run what five papers ran, and set your figures beside theirs."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from clustergate.cli.selection import add_repeatable, add_site
from clustergate.core.files.whole import write_whole
from clustergate.core.paths import checkout
from clustergate.core.quantities import parse_duration
from clustergate.report import console
from clustergate.run.request import WAIT_S
from evaluations.facts import PAPERS, load_paper, load_papers

_TABLE = re.compile(r"(?<=<!-- published -->\n).*?(?=<!-- /published -->)", re.DOTALL)


OF_PAPER = f"one of {', '.join(PAPERS)}, or the YAML file of a study of your own"
DESCRIPTION = (
    "Five published evaluations: what they printed, what they ran, and how your figures look "
    "beside theirs."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parts = parser.add_subparsers(required=True)
    one = parts.add_parser("list", help="the papers, or all that is kept of one")
    one.add_argument("paper", nargs="?", metavar="PAPER", help=OF_PAPER)
    one.set_defaults(run=run_list)
    one = parts.add_parser(
        "run",
        help="run what a paper's conclusions need on this machine, and write a package",
        description="Run what a paper ran, with its parameters, scaled to this machine: HPL and "
        "HPCC of a quarter of a minute (paper 003: three smaller HPL before), NPB of class A, "
        "LAMMPS with 32000 atoms, ten rounds that launch each case once. It says first what it "
        "takes, and what cannot be decided here; then it launches again what is inconclusive, and "
        "ends in a package to cite. What stands behind -- are further options for ReFrame.",
    )
    one.add_argument("paper", metavar="PAPER", help=OF_PAPER)
    add_site(one)
    one.add_argument(
        "--full",
        action="store_true",
        help="as large as the paper's own runs",
    )
    add_repeatable(one, "--stack", "only this stack (repeatable)")
    _add_roles(one, "STACK")
    one.add_argument("--plan", action="store_true", help="only say what would be run")
    one.add_argument("--resume", action="store_true", help="go on with the last run of the paper")
    one.add_argument(
        "--budget",
        type=parse_duration,
        default=1800.0,
        metavar="DURATION",
        help="until when what is inconclusive is launched again (default: 30m)",
    )
    one.add_argument(
        "--wait",
        type=parse_duration,
        default=WAIT_S,
        metavar="DURATION",
        help="how long each part waits for an idle node (default: 30s)",
    )
    one.set_defaults(run=run_run, judges=True, reframe_options=[])
    one = parts.add_parser(
        "report",
        help="a paper's tables, figures and conclusions with the measured values",
        description="Set a run beside a paper: printed and measured values, the paper's figures "
        "drawn with the measured ones, and each conclusion decided.",
    )
    one.add_argument("paper", metavar="PAPER", help=OF_PAPER)
    one.add_argument(
        "runs",
        nargs="*",
        default=["last"],
        metavar="RUN",
        help="last, previous, or a run[:stack]; what several runs have of a stack counts together",
    )
    _add_roles(one, "RUN:STACK")
    one.add_argument("--json", action="store_true", help="print a JSON object; write the page")
    one.add_argument("--output", type=Path, metavar="FILE", help="where to write the page")
    one.set_defaults(run=run_report)
    one = parts.add_parser(
        "refresh", help="write references, hostfiles and the table of systems from the facts"
    )
    one.set_defaults(run=run_refresh)


def _add_roles(parser: argparse.ArgumentParser, value: str) -> None:
    parser.add_argument(
        "--as",
        dest="roles",
        action="append",
        default=[],
        metavar=f"SYSTEM={value}",
        help="let a stack stand for one of the paper's systems (repeatable)",
    )


def run_run(arguments: argparse.Namespace) -> int:
    """Run what a paper's conclusions need; see :func:`evaluations.running.run`."""
    from evaluations import running

    return running.run(arguments)


def run_report(arguments: argparse.Namespace) -> int:
    """Set a paper beside runs; see :func:`evaluations.running.report`."""
    from evaluations import running

    return running.report(arguments)


def run_list(arguments: argparse.Namespace) -> int:
    """Print the papers, or all that is kept of one."""
    from evaluations import text as published_text

    if arguments.paper is None:
        print(published_text.papers(load_papers(), width=console.width()), end="")
    else:
        paper = load_paper(arguments.paper)
        print(published_text.paper(paper, width=console.width()), end="")
        if paper.is_study:
            from evaluations import settings

            print("".join(f"{one}\n" for one in settings.misspelt_benchmarks(paper)), end="")
    return 0


def run_refresh(arguments: argparse.Namespace) -> int:
    """Write what follows from the facts, and name each file that changed."""
    for path, text in _files().items():
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        if text:
            write_whole(path, text)
        elif path.is_file():
            path.unlink()
        else:
            continue
        print(path.relative_to(checkout()))
    return 0


def _files() -> dict[Path, str]:
    from evaluations import scope, systems

    found = {}
    for name in systems.systems():
        found[checkout() / "references" / f"{name}.yaml"] = systems.references_of(name)
        found[checkout() / "hostfiles" / f"{name}.txt"] = systems.hostfile_of(name)
    page = checkout() / "docs" / "published-systems.md"
    found[page] = _TABLE.sub(lambda _: scope.systems_table(), page.read_text(encoding="utf-8"))
    return found
