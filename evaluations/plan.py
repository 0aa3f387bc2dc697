"""What is launched so that a paper's tables, figures and conclusions can be had. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple

from clustergate.benchmarks.descriptor import Sweep
from clustergate.benchmarks.registry import benchmark_of, every_check, every_metric
from clustergate.core.model import Better
from clustergate.sites import modes
from clustergate.sites.shape import Shape
from evaluations.evidence import Measured, Subject
from evaluations.facts import Paper
from evaluations.inference import Outcome
from evaluations.modes import AROUND_A_PACKET, BLOCK_SIZES
from evaluations.predicates import cast, decide
from evaluations.sampling import FEWEST

# What a run that is scaled to the machine at hand spends: seconds for each solve of HPL and of
# HPCC, the class of NPB, LAMMPS's own size where the paper's takes minutes, and the launches of
# each case that most comparisons of a paper's sizes take to be decided.
SCALED: Mapping[str, object] = {
    "HplCheck.seconds": 15,
    "HpccCheck.seconds": 15,
    "NpbCheck.problem_class": "A",
    "LammpsCheck.replicated": 1,
    "launches": 10,
}
# Of the problems of a figure over the size of the problem, which grows as the cubic root: each is
# solved with many tilings.
HPL_SECONDS = (0.1, 0.3, 1)


@dataclass(frozen=True)
class Part:
    """Checks that run with settings of their own: all of the paper's where none is named.

    ``mode`` is another one than the paper's. What fails in a part that ``gates`` leaves out the
    parts behind it. A round launches each case once, in an order that is drawn by lot.
    """

    checks: tuple[str, ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict)
    mode: str = ""
    gates: bool = False
    is_round: bool = False


def parts_of(paper: Paper, shape: Shape, *, full: bool) -> list[Part]:
    """Return the parts of a run; that of the paper's whole mode is the last.

    A mode runs HPCC on all cores and HPL with one problem alone; paper 000 drew HPCC over the
    number of processes, and paper 003 HPL over the size of the problem. Paper 004 has its trials
    with flushed caches and without. A study of one's own says all of it.
    """
    if paper.run is not None:
        return [
            Part(
                tuple(one["checks"]),
                one.get("settings", {}),
                "" if one is paper.run else one.get("mode", ""),
                gates=one.get("gates", False),
            )
            for one in [*paper.run.get("parts", ()), paper.run]
        ]
    checks = {*paper.checks.values()}
    theirs = {k: v for k, v in SCALED.items() if "." not in k or k.partition(".")[0] in checks}
    scaled = {} if full else theirs
    parts = []
    if "HPCC" in paper.checks:
        whole = shape.cores_per_node * shape.nodes
        for ranks in shape.rank_counts():
            if ranks != whole:
                parts.append(Part(("HpccCheck",), {**scaled, "HpccCheck.ranks": ranks}))
    if modes.mode_named(paper.mode).is_on_one_node("HplCheck"):
        for seconds in HPL_SECONDS:
            parts.append(Part(("HplCheck",), {**scaled, "HplCheck.seconds": seconds}))
        scaled = {**scaled, "HplCheck.seconds": 3} if scaled else scaled
    if "MpiTrialsCheck" in paper.checks.values():
        # Figures 1 and 2 show them; no conclusion asks for them.
        unflushed = {"MpiTrialsCheck.flush_bytes": 0, "launches": FEWEST}
        # Of a case the trials of its first launch are drawn.
        spikes = {"MpiTrialsCheck.tests": "bcast", "MpiTrialsCheck.trials": 100, "launches": 1}
        parts += [Part(("MpiTrialsCheck",), aside) for aside in (unflushed, spikes)]
    if paper.id == "001":
        launches = {"launches": SCALED["launches"]}
        parts.append(Part(("HplCheck",), {**scaled, "launches": 1}, gates=True))
        # What most conclusions ask for comes first.
        parts.append(Part(("ImbMpi1Check",), scaled))
        parts.append(Part(("HplCheck",), launches, "published-001-tilings"))
        return [*parts, Part(("HplCheck",), scaled)] if scaled else parts
    return [*parts, Part((), scaled)]


def stacks_of(paper: Paper, known: Sequence[str], roles: Mapping[str, str]) -> tuple[str, ...]:
    """Return the stacks to run: those that play a system, where there are several.

    A third one takes time from comparing two. Of a study of one's own one is enough; else all of
    the site are run.
    """
    played = {name for system in paper.systems.values() for name in system.played_by}
    named = [name for name in known if name in played | {*roles.values()}]
    return tuple(named if len(named) > 1 or (named and paper.is_study) else known)


class Lacking(NamedTuple):
    """Why a conclusion cannot hold here, and whether what is here may still contradict it."""

    why: str
    can_fail: bool


def undecidable(
    paper: Paper, shape: Shape, stacks: Sequence[str], roles: Mapping[str, str], *, full: bool
) -> dict[str, Lacking]:
    """Return the conclusions that no run on this machine can decide both ways.

    ``roles`` are the stacks that stand for systems of the paper. It is found by deciding them on
    figures that are all alike, of what would be launched here.
    """
    figures = list(_foreseen(paper, shape, full=full))
    of = {name: Subject(name, name, "here", figures) for name in stacks}
    given = {system: of[stack] for system, stack in roles.items()}
    here = cast(paper, list(of.values()), given)
    found = {}
    for predicate in paper.predicates.values():
        decisions = decide(predicate, here)
        if all(one.lacking for one in decisions):
            found[predicate.id] = Lacking(decisions[0].lacking, can_fail=True)
        elif all(one.outcome is Outcome.NOT_CHECKABLE for one in decisions):
            # What could be asked of equal figures says nothing; what is missing stands first.
            found[predicate.id] = Lacking(decisions[0].sentence.partition(";")[0], can_fail=False)
    return found


# Of a figure that is asked for with one of these a run that is scaled has another.
_OF_FULL_SIZE = frozenset({"problem_class", "atoms", "settings"})


def _foreseen(paper: Paper, shape: Shape, *, full: bool) -> Iterator[Measured]:
    """Yield a figure of each kind that a conclusion asks for and this machine can measure."""
    sizes = [0, *(1 << k for k in range(25)), *AROUND_A_PACKET, 10_000, 1_000_000]
    seen = set()
    leaves = [
        leaf
        for predicate in paper.predicates.values()
        for leaf in (predicate.here.leaves if predicate.here else ())
    ]
    for figure in (one for leaf in leaves for one in leaf.figures):
        if not (full or paper.is_study) and _OF_FULL_SIZE & figure.conditions.keys():
            continue
        counts = _counts_of(figure.metric, paper, shape)
        places = {
            "bytes": sizes,
            "n": range(4 if paper.id == "003" else 1),
            "nb": BLOCK_SIZES,
            "p": {1, *counts},
            "ranks": counts,
            "peer": range(1, counts[-1]),
        }
        for ranks, placement in product(counts, shape.placements()):
            if not shape.holds(ranks, placement):
                continue
            per_node = shape.cores_per_node if placement == "packed" else 1
            launch = {"processes": ranks, "ranks": ranks, "placement": placement}
            launch |= {"nodes": -(-ranks // per_node)}
            for at in places.get(figure.along, [ranks]):
                told = {**launch, figure.along: at}
                if any(told.get(key, asked) != asked for key, asked in figure.conditions.items()):
                    continue
                told |= figure.conditions
                key = (figure.benchmark, figure.metric, tuple(sorted(told.items())))
                if key not in seen:
                    seen.add(key)
                    yield _figure(*key)


def _counts_of(metric: str, paper: Paper, shape: Shape) -> list[int]:
    """Return the numbers of processes that something is measured with: one only by some checks."""
    checks = [name for name in paper.checks.values() if metric in benchmark_of(name).metrics]
    alone = any(every_check()[name].sweep is Sweep.PROCESS_COUNTS for name in checks)
    return sorted({*([1] if alone else []), *shape.rank_counts()})


def _figure(benchmark: str, metric: str, conditions: Sequence[tuple[str, Any]]) -> Measured:
    known = every_metric().get(metric)
    better = known.better if known else Better.HIGHER
    name = f"{benchmark}.{metric}.{conditions}"
    return Measured(benchmark, metric, "", better, 1.0, dict(conditions), name, "")
