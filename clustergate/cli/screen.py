"""``clustergate screen``: which node, which link, which switch is slow."""

from __future__ import annotations

import argparse
import datetime

from clustergate import store
from clustergate.cli.selection import taken
from clustergate.cli.streams import progress
from clustergate.screening import folder, planning, wording
from clustergate.screening.plan import is_screening
from clustergate.session.screening import ScreenError, screen
from clustergate.sites import configs as sites
from clustergate.wording.quantities import parse_duration

DESCRIPTION = """\
Measure every node alone, then pairs of nodes in rounds of disjoint pairs, in one job, and say which
node, link or switch is slow, on what evidence and how surely. A node that is dead and a pair that
fails are findings. Exit status 0: no faults found; 1: faults found; 2: inconclusive. On a single
node without a hostfile it measures that node, and pairs of its cores. docs/screening.md
tells how it decides and what it can find in which time."""


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
    # NumPy and what draws take longer to import than all other commands need.
    from clustergate.report.screening import write_forms

    site = taken(arguments.site).path
    system = sites.load(site).name
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
    if arguments.resume and not is_screening(where):
        raise ScreenError(f"there is no screening {arguments.resume} in {store.runs_folder()}")
    found = screen(site, run_id, asked, arguments.stack, progress())
    print("\n".join(wording.summary(*found, where)))
    write_forms(*found, system, where)
    return wording.exit_status(*found)
