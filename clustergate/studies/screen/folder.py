"""Where the screenings of a run lie: one folder for each, on a file system that the nodes share."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from clustergate.benchmarks.hpl import dat_file
from clustergate.core import store
from clustergate.core.figures import SAME_MATRIX
from clustergate.core.model import A_DAY_S, ClustergateError
from clustergate.core.notation import listed
from clustergate.judge.history.node_states import HERE, read_states
from clustergate.launch.plan import PLAN, read_plan, write_plan
from clustergate.launch.reading import last_words
from clustergate.machine.fleet import deviations_by_node
from clustergate.studies.screen.findings import FEWEST, Screening, analyse
from clustergate.studies.screen.measures import MEASURES
from clustergate.studies.screen.plan import Log, Plan, read_screened

FOLDER = "screening"
_NAMED = 8
# Two switches with two nodes each: of fewer, none is told from its nodes.
_BLOCKS = 4


def screening_folder(run_id: str) -> Path:
    """Return the folder of the screening of a run."""
    return store.run_folder(run_id) / FOLDER


def start_or_resume(folder: Path, plan: Plan) -> Plan:
    """Write the plan of a screening, or return the one that is to be taken up again."""
    if (folder / PLAN).is_file():
        return read_plan(folder / PLAN, Plan)
    store.make_folder(folder)
    write_plan(folder, plan)
    return plan


def read_screening(folder: Path) -> tuple[Plan, Log, Screening]:
    """Return a screening as far as it came.

    Raises :class:`~clustergate.launch.plan.PlanError` when a file of it is damaged.
    """
    plan, log = read_screened(folder)
    names = log.names or tuple(plan.nodes)
    doubts = []
    if log.span_s > A_DAY_S:
        doubts.append(
            f"it was resumed, and its launches span {log.span_s / A_DAY_S:.0f} days, in which "
            "nodes may have changed; screen again"
        )
    if plan.pair is not None and len(names) > 1 and not any(len(r.nodes) == 2 for r in log.results):
        doubts.append(f"no pair of {plan.what}s was measured; give the screening more time")
    absent_nodes = max(plan.foreseen - len(log.names), 0) if log.names else 0
    if absent_nodes:
        absent = [name for name in plan.nodes if name not in log.names]
        named = f" (not {listed(absent, _NAMED)})" if absent else ""
        doubts.append(
            f"the job was given only {len(log.names)} of {plan.foreseen} nodes{named}; "
            "`scontrol show node` says why; exclude them in the hostfile to accept it"
        )
    unplaced = plan.unplaced(names)
    if unplaced and plan.no_topology and len(names) >= _BLOCKS:
        doubts.append(plan.no_topology)
    elif unplaced and plan.no_topology:
        log = replace(log, notes=(*log.notes, plan.no_topology))
    elif unplaced:
        note = (
            f"the switch of {len(unplaced)} of {len(names)} nodes is not known "
            f"({listed(unplaced, _NAMED)}); tell it by switch= in the hostfile, or a fault of that "
            "switch is not found"
        )
        log = replace(log, notes=(*log.notes, note))
    screening = analyse(names, log.results, plan.switch_of(names), plan.what)
    unlike = _unlike_the_rest(folder.parent, names) if plan.what == "node" else {}
    if plan.quick:
        # One launch is too little to blame anybody by ranks, and enough to see that it failed.
        failed = [f"{', '.join(who)} failed: {why}" for who, why in screening.failures.items()]
        screening = replace(screening, quick=True, astray=tuple(failed))
    screening = replace(screening, unlike=unlike, absent=absent_nodes)
    return plan, log, replace(screening, more_doubts=tuple(doubts))


def _unlike_the_rest(run: Path, names: Sequence[str]) -> dict[str, list[str]]:
    """Return what the nodes of a screening are unlike the rest in, by the names that it uses.

    Nothing before the job has ended: what its nodes said is kept with the run then.
    """
    states = {node: state for node, state in read_states(run).items() if node != HERE}
    # Either may know a node by a longer name.
    short = {node.partition(".")[0]: what for node, what in deviations_by_node(states).items()}
    return {n: short[key] for n in names if (key := n.partition(".")[0]) in short}


def comparable_screening(screening: Screening, plan: Plan, now: Plan) -> Screening:
    """Return a screening of a plan without what is now asked otherwise.

    HPL of a smaller matrix is slower by itself.
    """
    then, order = _matrix_order(plan), _matrix_order(now)
    if abs(then - order) <= SAME_MATRIX * order or not order:
        return screening
    located = {k: one for k, one in screening.located.items() if MEASURES[k].kind != "hpl"}
    return replace(screening, located=located)


def _matrix_order(plan: Plan) -> int:
    """Return the order of the matrix that is solved on each node, 0 of none."""
    for one in plan.contenders:
        # What another version wrote nobody may understand.
        with contextlib.suppress(ValueError, KeyError, ClustergateError):
            return dat_file.parse(one.inputs["HPL.dat"]).input.n_values[0]
    return 0


def fault_sentences(folder: Path, exit_status: int | None, errors: Path) -> list[str]:
    """Return the faults and doubts of a screening, nothing when it found that all are sound.

    ``errors`` is what its job wrote to standard error.
    """
    if exit_status:
        said = last_words([errors])
        return [f"the screening job ended with exit status {exit_status}{said}"]
    _, log, screening = read_screening(folder)
    lines = [finding.sentence for finding in screening.findings]
    lines += [*screening.doubts, *screening.missing]
    if len(screening.names) < FEWEST:
        lines.append(f"it takes {FEWEST} {screening.what}s to judge each other")
    return lines if log.ended else [*lines, "the screening did not finish"]


def plan_time(folder: Path) -> datetime.datetime:
    """Return when the plan was written, in this machine's zone."""
    return datetime.datetime.fromtimestamp((folder / PLAN).stat().st_mtime).astimezone()
