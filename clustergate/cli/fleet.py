"""``clustergate fleet``: nodes beside each other, and which of them are unlike the rest."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from clustergate.cli.passing_on import option
from clustergate.cli.selection import named_folder
from clustergate.cli.streams import print_coloured
from clustergate.core import store
from clustergate.core.files.whole import read_json
from clustergate.core.model import ClustergateError
from clustergate.core.reasons import Words
from clustergate.core.words import FILE_UNREADABLE
from clustergate.judge.history.node_states import HERE, NODES, folded, read_states
from clustergate.judge.history.stored_runs import in_order
from clustergate.machine.fingerprint import MACHINE_NO_RECORD, Fingerprint, from_record
from clustergate.machine.fleet import Deviation, Kind, deviations, kinds_of
from clustergate.report import console
from clustergate.studies.screen.plan import is_screening, read_screened

DESCRIPTION = """\
Compare the nodes of a run with most of their kind, and with a golden node if one is named: kernel,
microcode, BIOS, memory, links, mounts, clocks, mitigations, limits, drivers. Every job keeps what
its nodes said; `clustergate screen` has all of a partition. Nodes of one processor and product with
as much memory are of a kind. Exit status 0: all alike; 1: some are not; 2: nothing to compare, or
some did not say what they are like."""


JUDGES = True


def add_options(parser: argparse.ArgumentParser) -> None:
    option(parser, "named RUN", "default: the newest", nargs="?", default="")
    option(
        parser,
        "--golden NODE",
        "the node that is right: one of the run, or a file that `machine --json` wrote",
        default="",
    )
    option(parser, "--all", "every difference and every kind, and all names")
    option(parser, "--json", "print JSON")


NO_STATES = Words(
    "fleet.no-states",
    "the run {run} recorded no nodes in {folder}",
    remedy="`clustergate screen` records the state of all nodes of a partition",
)


def run(arguments: argparse.Namespace) -> int:
    """Print the kinds of nodes and the odd ones; 1 if there are any."""
    # NumPy takes longer to import than all else here.
    from clustergate.report import fleet as report

    run_id = named_folder(arguments.named).name if arguments.named else _newest()
    every = read_states(store.run_folder(run_id))
    states = {node: state for node, state in every.items() if node != HERE}
    if not states:
        raise ClustergateError(NO_STATES(run=run_id, folder=store.runs_folder()))
    golden = _golden(arguments.golden, states) if arguments.golden else None
    kinds = kinds_of(states)
    odd = deviations(kinds, states, golden)
    alone = [kind.nodes[0] for kind in kinds if len(kind.nodes) == 1 and golden is None]
    silent = _silent(run_id, states)
    status = 1 if odd else 2 if silent or len(alone) == len(states) else 0
    if arguments.json:
        print(json.dumps({"run": run_id, **_plain(kinds, odd), "silent": silent}, indent=1))
        return status
    on_terminal = sys.stdout.isatty()
    print_coloured(
        report.render(
            run_id,
            report.Fleet(kinds, odd, silent, alone),
            status,
            whole=arguments.all,
            width=console.width(),
            wraps=on_terminal,
            colour=on_terminal,
            invocation=arguments.invocation,
        )
    )
    return status


def _silent(run_id: str, states: Collection[str]) -> list[str]:
    """Return the nodes that were measured in a run and of which nothing is known."""
    measured = {host for record in store.read_cases(run_id) for host in record.hosts}
    for folder in filter(is_screening, store.run_folder(run_id).glob("**/screening")):
        plan, log = read_screened(folder)
        measured |= {*(log.names or plan.nodes)} if plan.what == "node" else set()
    # Either may know a node by a longer name.
    known = {name.partition(".")[0] for name in states}
    return sorted(name for name in measured if name.partition(".")[0] not in known)


NO_RUN = Words(
    "fleet.no-run",
    "no run in {folder} recorded the state of its nodes",
    remedy="`clustergate screen` records the state of all nodes of a partition",
)


def _newest() -> str:
    runs = in_order(NODES)
    if not runs:
        raise ClustergateError(NO_RUN(folder=store.runs_folder()))
    return runs[-1][1].name


NO_GOLDEN = Words(
    "fleet.no-golden",
    "{name} is neither a node of the run nor a file",
    remedy="its nodes are {nodes}; `clustergate machine --json` prints what a file must hold",
)


def _golden(named: str, states: Mapping[str, Fingerprint]) -> Fingerprint:
    if named in states:
        return states[named]
    path = Path(named)
    try:
        return from_record(read_json(path), named)
    except FileNotFoundError:
        raise ClustergateError(NO_GOLDEN(name=named, nodes=folded(states))) from None
    except OSError as error:
        raise ClustergateError(FILE_UNREADABLE(path=path, why=error)) from None
    except ValueError:
        raise ClustergateError(MACHINE_NO_RECORD(path=path)) from None


def _plain(kinds: Sequence[Kind], odd: Sequence[Deviation]) -> dict[str, object]:
    number_of = {id(kind): number for number, kind in enumerate(kinds)}
    return {
        "kinds": [{"title": kind.title, "nodes": kind.nodes} for kind in kinds],
        "odd": [
            {
                **dataclasses.asdict(one.change),
                "kind": number_of[id(one.kind)],
                "nodes": one.nodes,
                "share": one.share,
            }
            for one in odd
        ],
    }
