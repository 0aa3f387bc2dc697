"""``clustergate published``: run what five papers ran, and see one's own figures beside theirs."""

from __future__ import annotations

import argparse
import datetime
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from clustergate import store
from clustergate.cli.running import run_and_tell
from clustergate.cli.selection import named_run, taken
from clustergate.files.whole import write_whole
from clustergate.model import ClustergateError
from clustergate.paths import checkout
from clustergate.report import console
from clustergate.session.reframe import PROCESS_COUNTS, with_settings
from clustergate.session.request import Request
from clustergate.sites import configs as sites
from clustergate.sites import modes
from evaluations.facts import PAPERS, load_paper, load_papers
from evaluations.plan import parts_of

if TYPE_CHECKING:
    from evaluations.evidence import Subject

_TABLE = re.compile(r"(?<=<!-- published -->\n).*?(?=<!-- /published -->)", re.DOTALL)


DESCRIPTION = (
    "Five published evaluations: what they printed, what they ran, and how your figures look "
    "beside theirs."
)


class PublishedError(ClustergateError):
    """What was asked of the published evaluations cannot be."""

    exit_status = 1


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parts = parser.add_subparsers(metavar="PART", required=True)
    one = parts.add_parser("list", help="the papers, or all that is kept of one")
    one.add_argument("paper", nargs="?", metavar="PAPER", help=f"one of {', '.join(PAPERS)}")
    one.set_defaults(run=run_list)
    one = parts.add_parser(
        "run",
        help="run what a paper ran on this machine",
        description="Run what a paper ran, with its parameters, scaled to this machine: HPL of a "
        "minute (paper 003: three smaller ones before), HPCC of half of it, NPB of class A, LAMMPS "
        "with 32000 atoms, one launch of each case. What cannot be run is named. What stands "
        "behind -- are further options for ReFrame.",
    )
    one.add_argument("paper", choices=PAPERS, metavar="PAPER", help=f"one of {', '.join(PAPERS)}")
    one.add_argument("--site", metavar="NAME", help="site config (default: the one that fits)")
    one.add_argument(
        "--full",
        action="store_true",
        help="as large as the paper's own runs, HPCC with all process counts",
    )
    one.add_argument(
        "--stack", action="append", default=[], metavar="NAME", help="only this stack (repeatable)"
    )
    one.set_defaults(run=run_run, judges=True, reframe_options=[])
    one = parts.add_parser(
        "report",
        help="a paper's tables, figures and conclusions with the measured values",
        description="Set a run beside a paper: printed and measured values, the paper's figures "
        "drawn with the measured ones, and each conclusion decided.",
    )
    one.add_argument("paper", choices=PAPERS, metavar="PAPER", help=f"one of {', '.join(PAPERS)}")
    one.add_argument(
        "runs",
        nargs="*",
        default=["last"],
        metavar="RUN",
        help="last, previous, or a run[:stack]; what several runs have of a stack counts together",
    )
    one.add_argument(
        "--as",
        dest="roles",
        action="append",
        default=[],
        metavar="SYSTEM=RUN:STACK",
        help="let a stack of a run stand for one of the paper's systems (repeatable)",
    )
    one.add_argument("--output", type=Path, metavar="FILE", help="where to write the page")
    one.set_defaults(run=run_report)
    one = parts.add_parser(
        "refresh", help="write references, hostfiles and the table of systems from the facts"
    )
    one.set_defaults(run=run_refresh)


def run_list(arguments: argparse.Namespace) -> int:
    """Print the papers, or all that is kept of one."""
    from evaluations import text as published_text

    if arguments.paper is None:
        print(published_text.papers(load_papers(), width=console.width()), end="")
    else:
        paper = load_paper(arguments.paper)
        print(published_text.paper(paper, width=console.width()), end="")
    return 0


def run_run(arguments: argparse.Namespace) -> int:
    """Run the mode of a paper; say what of it cannot be run."""
    from evaluations import scope

    if not scope.available(arguments.paper):
        raise PublishedError("; ".join(scope.missing(arguments.paper)))
    site = taken(arguments.site)
    shape = sites.load(site.path).partitions[0].shape
    statuses, runs = [], []
    for part in parts_of(arguments.paper, shape, full=arguments.full):
        now = datetime.datetime.now().astimezone()
        runs.append(store.new_run_id(now))
        request = Request(
            modes.mode_named(f"published-{arguments.paper}"),
            site.path,
            tuple(arguments.stack),
            part.checks,
            (*with_settings(part.settings), *arguments.reframe_options),
            os.environ.get(PROCESS_COUNTS, ""),
            str(site),
            site.fallback,
        )
        statuses.append(run_and_tell(request, runs[-1], now))
    for sentence in scope.missing(arguments.paper):
        print(sentence)
    print(f"now: clustergate published report {arguments.paper} {' '.join(runs)}")
    # As of one run: the worst counts, with 1 above 2.
    return 1 if 1 in statuses else max(statuses)


def run_report(arguments: argparse.Namespace) -> int:
    """Print a paper beside runs, and write the page with its figures."""
    from evaluations import derivation, predicates, scope, sheet
    from evaluations import text as published_text
    from evaluations.evidence import merged
    from evaluations.page import render_page

    paper = load_paper(arguments.paper)
    roles = {name: _one_subject(run) for name, run in map(_role, arguments.roles)}
    if unknown := [name for name in roles if name not in paper.systems]:
        known = ", ".join(paper.systems)
        raise PublishedError(f"paper {paper.id} has no system {unknown[0]!r}; it has {known}")
    subjects = merged(subject for run in arguments.runs for subject in _subjects(run))
    subjects += [subject for subject in roles.values() if subject not in subjects]
    here = predicates.cast(paper, subjects, roles)
    found = published_text.Findings(
        paper,
        subjects,
        sheet.beside(paper, here, _links(subjects)),
        sheet.conclusions(paper, here),
        sheet.drawings(paper, subjects),
        derivation.derived_rows(subjects, _links(subjects), here.roles),
        [*sheet.doubts(subjects), *scope.missing(paper.id)],
    )
    path = _write_page(render_page(found), arguments.output, paper.id, arguments.runs)
    print(published_text.report(found, width=console.width()), end="")
    print(f"figures: {path}")
    return 0


def _links(subjects: Sequence[Subject]) -> dict[str, float]:
    """Return what a node of each subject's system sends at most, where its site config says it."""
    found = {}
    for name in {subject.system for subject in subjects}:
        try:
            first, *_ = sites.load(sites.find(name)).partitions
        except ClustergateError:
            # A run may be of a system whose site config is no longer here.
            continue
        if first.link_mb_s:
            found[name] = float(first.link_mb_s)
    return found


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


def _write_page(page: str, output: Path | None, paper: str, runs: Sequence[str]) -> Path:
    """Write the page where it was asked for, else beside the first run, and return where."""
    if output is None:
        path = _page_path(paper, runs)
        store.write_text(path, page)
        return path
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        write_whole(output, page)
    except OSError as error:
        raise PublishedError(
            f"{output} cannot be written: {error.strerror}; name another file with --output"
        ) from None
    return output


def _page_path(paper: str, runs: Sequence[str]) -> Path:
    return store.run_folder(_run_id(runs[0])) / f"published-{paper}.html"


def _role(text: str) -> tuple[str, str]:
    system, _, run = text.partition("=")
    if not (system and run):
        raise PublishedError(f"{text!r} is not SYSTEM=RUN:STACK, such as nec-sx8=last:mpich")
    return system, run


def _one_subject(run: str) -> Subject:
    found = _subjects(run)
    if len(found) != 1:
        stacks = ", ".join(subject.stack for subject in found)
        raise PublishedError(f"{run} has the stacks {stacks}; name one, such as {run}:mpich")
    return found[0]


def _subjects(run: str) -> list[Subject]:
    from evaluations.evidence import subjects_of

    stack = run.partition(":")[2]
    run_id = _run_id(run)
    found = subjects_of(run_id, store.read_cases(run_id), stack)
    if not found:
        raise PublishedError(
            f"{run} holds no case that proved itself; name another run, or run again"
        )
    return found


def _run_id(run: str) -> str:
    return named_run(run.partition(":")[0])
