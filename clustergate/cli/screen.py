"""``clustergate screen``: which node, which link, which switch is slow."""

from __future__ import annotations

import argparse
import datetime
from collections.abc import Callable
from pathlib import Path

from clustergate import store
from clustergate.benchmarks.sizing import parse_duration
from clustergate.cli.selection import taken
from clustergate.cli.streams import progress
from clustergate.model import ClustergateError
from clustergate.screening import folder, planning
from clustergate.screening.findings import (
    FEWEST,
    Screening,
    hostfile_lines,
    scontrol_lines,
    ticket,
)
from clustergate.screening.measures import MEASURES
from clustergate.screening.plan import PLAN, Log
from clustergate.session.execute import measure
from clustergate.session.reframe import RunError, call_for, with_stacks
from clustergate.sites import configs as sites
from clustergate.sites import modes
from clustergate.stacks.set_up import provide_all
from clustergate.wording.notation import number, printable

DESCRIPTION = """\
Measure every node alone, then pairs of nodes in rounds of disjoint pairs, in one job, and say which
node, link or switch is slow, on what evidence and how surely. A node that is dead and a pair that
fails are findings. Exit status 0: nobody is to blame; 1: somebody is; 2: it cannot be said. On a
single node without a hostfile it measures that node, and pairs of its cores. docs/screening.md
tells how it decides and what it can find in which time."""

TICKET, SCONTROL, HOSTFILE, PAGE = "ticket.txt", "scontrol.sh", "hostfile.txt", "screening.html"


class ScreenError(ClustergateError):
    """A screening was asked for that cannot be."""


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "screen",
        help="which node, which link, which switch is slow",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--site", metavar="NAME", help="site config (default: the one that fits)")
    parser.add_argument("--stack", metavar="NAME", help="measure with this stack (default: first)")
    parser.add_argument(
        "--partition", default="", metavar="NAME", help="its nodes (default: first of the system)"
    )
    parser.add_argument("--nodes", default="", metavar="LIST", help="only these, as n[001-064]")
    parser.add_argument(
        "--rounds", type=int, default=0, metavar="N", help="of pairs (default: all there are)"
    )
    parser.add_argument(
        "--budget", default="20m", metavar="TIME", help="for all of it (default: 20m)"
    )
    parser.add_argument(
        "--hpl", default="60s", metavar="TIME", help="for HPL on each node (default: 60s; 0: none)"
    )
    parser.add_argument("--resume", metavar="RUN", help="go on with a screening that was stopped")
    parser.set_defaults(run=run, judges=True)


def run(arguments: argparse.Namespace) -> int:
    """Screen, print what was found, leave it in every form that is needed next."""
    site = taken(arguments.site).path
    configured = sites.load(site)
    asked = planning.Asked(
        arguments.nodes,
        arguments.rounds,
        parse_duration(arguments.budget),
        0.0 if arguments.hpl in ("0", "0s") else parse_duration(arguments.hpl),
        arguments.partition,
    )
    if arguments.rounds < 0:
        raise ScreenError(f"--rounds must be a number from 0, not {arguments.rounds}")
    run_id = arguments.resume or store.new_run_id(datetime.datetime.now().astimezone())
    where = folder.screening_folder(run_id)
    if arguments.resume and not (where / PLAN).is_file():
        raise ScreenError(f"there is no screening {arguments.resume} in {store.runs_folder()}")
    found = screen(site, run_id, asked, arguments.stack, progress())
    system = configured["systems"][0]["name"]
    print("\n".join(told(*found, where)))
    write_forms(*found, system, where)
    return exit_status(*found)


def screen(
    site: Path,
    run_id: str,
    asked: planning.Asked,
    stack: str | None,
    say: Callable[[str], None],
) -> tuple[Log, Screening]:
    """Screen by ReFrame and return what was found.

    Raises :class:`~clustergate.session.reframe.RunError` when the screening left nothing.
    """
    configured = sites.load(site)
    orders = sites.orders_named(configured, [stack] if stack else [])[:1]
    names = [partition["name"] for partition in configured["systems"][0]["partitions"]]
    if asked.partition and asked.partition not in names:
        raise ScreenError(f"there is no partition {asked.partition!r}; known: {', '.join(names)}")
    # Before anything is built for it.
    planning.chosen(asked.nodes, sites.hostfile_of(configured["systems"][0]["name"]))
    provide_all(orders, say=say)
    where = folder.screening_folder(run_id)
    store.make_folder(where.parent)
    options = [
        *modes.SCREEN_OPTIONS,
        *with_stacks([orders[0].stack]),
        f"--setvar=screen_stack={orders[0].stack}",
        f"--setvar=screen_partition={asked.partition}",
        f"--setvar=screen_nodes={asked.nodes}",
        f"--setvar=screen_rounds={asked.rounds}",
        f"--setvar=screen_seconds={asked.seconds}",
        f"--setvar=screen_hpl_seconds={asked.hpl_seconds}",
    ]
    call = call_for(run_id, site, options, report="screening-reframe.json")
    outcomes = measure(call, say)
    if not (where / PLAN).is_file():
        reasons = [outcome.reason for outcome in outcomes if outcome.reason]
        raise RunError(
            f"nothing was screened: {(reasons or ['ReFrame ran no case'])[0]}; its output is in "
            f"{call.log}"
        )
    _, log, found = folder.read_screening(where)
    if not log.results and not log.whole:
        reasons = [outcome.reason for outcome in outcomes if outcome.reason]
        raise RunError(f"the screening measured nothing: {(reasons or ['no reason is told'])[0]}")
    return log, found


def told(log: Log, found: Screening, where: Path) -> list[str]:
    """Return what is printed of a screening."""
    status = exit_status(log, found)
    count = len({frozenset(r.nodes) for r in log.results if len(r.nodes) == 2})
    lines = [
        "",
        f"{word_for(status, found)}: {len(found.names)} {found.what}s alone, {count} pairs, "
        f"{len(log.results) + len(log.whole)} launches",
        *(f"  {finding.sentence}" for finding in found.findings),
        *(f"    to do: {advice}" for advice in dict.fromkeys(f.advice for f in found.findings)),
        *(f"  in doubt: {doubt}" for doubt in found.doubts),
        *whole_notes(log),
        *found.notes,
        *log.notes,
    ]
    if not log.ended:
        lines.append(
            f"the screening did not come to its end; go on with: clustergate screen --resume "
            f"{where.parent.name}"
        )
    if found.keeps_out and found.what == "node":
        today = datetime.date.today()
        lines += ["to take them out of Slurm:", *scontrol_lines(found, today)]
        lines += ["to exclude them in the hostfile:", *hostfile_lines(found, today)]
    lines.append(f"heat map, ticket and other forms: {where}")
    lines.append(f"clustergate screen: exit status {status}: {_MEANINGS[status]}")
    return lines


_VERDICTS = {0: "NOBODY TO BLAME", 1: "FOUND", 2: "CANNOT TELL"}


def word_for(status: int, found: Screening) -> str:
    """Return the screening in a word or two."""
    if status == 0 and len(found.names) < FEWEST:
        return "NOTHING TO COMPARE"
    return _VERDICTS[status]


_MEANINGS = {
    0: "nobody is to blame",
    1: "somebody is to blame",
    2: "not everything was measured, or something is in doubt",
}


def whole_notes(log: Log) -> list[str]:
    """Return what the node reached whose cores were screened."""
    lines = []
    for result in log.whole:
        figures = [
            f"{MEASURES[key].title} {number(value)} {MEASURES[key].unit}"
            for key, value in result.values.items()
        ]
        lines.append(f"{result.nodes[0]} by itself: {', '.join(figures) or result.failed}")
    return lines


def exit_status(log: Log, found: Screening) -> int:
    """Return 1 when somebody is to blame, 2 when that cannot be said, else 0."""
    if found.findings:
        return 1
    failed = any(result.failed for result in log.whole)
    unmeasured = any(located.unmeasured for located in found.located.values())
    return 2 if found.doubts or failed or unmeasured or not log.ended else 0


def write_forms(log: Log, found: Screening, system: str, where: Path) -> None:
    """Write the ticket and, of nodes, what Slurm and the hostfile want, and the page."""
    from clustergate.report.screening import Page, render_screening

    when = folder.started(where)
    status = exit_status(log, found)
    texts = {TICKET: ticket(found, system, when)}
    if found.what == "node":
        texts[SCONTROL] = _text(scontrol_lines(found, when.date()))
        texts[HOSTFILE] = _text(hostfile_lines(found, when.date()))
    page = Page(
        system=system,
        started=when.isoformat(timespec="seconds"),
        word=word_for(status, found),
        sentence=f"clustergate screen: exit status {status}: {_MEANINGS[status]}.",
        status=status,
        forms=[(_FORMS[name], text) for name, text in texts.items() if text and found.findings],
        notes=[*whole_notes(log), *log.notes],
    )
    texts[PAGE] = render_screening(page, found, log.results)
    for name, text in texts.items():
        store.write_text(where / name, printable(text))


_FORMS = {TICKET: "For a ticket", SCONTROL: "For Slurm", HOSTFILE: "For the hostfile"}


def _text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
