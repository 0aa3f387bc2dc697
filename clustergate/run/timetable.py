"""When each case of a run begins: those on few nodes side by side, all others alone. Pure.

Whatever crosses many switches would feel whatever else does, so it has the system for itself. A
node, or a pair of nodes, has its memory and its links for itself, as when a screening measures
pairs at once. What looks slow is launched again alone, so nobody is called slower for a neighbour.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from clustergate.core.model import CaseId
from clustergate.sites.description import MAX_JOBS, Partition
from clustergate.sites.modes import MAINTENANCE, NODE_USAGE, PROCESS_COUNT, Mode, used_shape
from clustergate.sites.schedulers import scheduler_of

FEW_NODES = 2
"""Cases on so many nodes at most run beside others."""


@dataclass(frozen=True)
class Job:
    """A case that is to run: on so many nodes of a partition, for so many seconds.

    It runs ``alone`` where something beside it would disturb it.
    """

    case: CaseId
    nodes: int
    seconds: float
    alone: bool


@dataclass(frozen=True)
class Planned:
    """A job, the seconds after which it begins, and its nodes: the partition's, counted from 0."""

    job: Job
    start_s: float
    nodes: tuple[int, ...]

    @property
    def end_s(self) -> float:
        return self.start_s + self.job.seconds

    def shares_nodes(self, other: Planned) -> bool:
        """Tell whether a node of a partition is of both."""
        same = self.job.case.partition == other.job.case.partition
        return same and not set(self.nodes).isdisjoint(other.nodes)


@dataclass(frozen=True)
class Timetable:
    """What runs when, in the order of the starts."""

    planned: tuple[Planned, ...]

    @property
    def seconds(self) -> float:
        """How long all of it takes."""
        return max((one.end_s for one in self.planned), default=0.0)

    @cached_property
    def longest_chain_s(self) -> float:
        """The longest time that launches need which share nodes, one with the next."""
        ends: list[float] = []
        for place, one in enumerate(self.planned):
            before = (
                end
                for end, other in zip(ends, self.planned[:place], strict=True)
                if other.end_s <= one.start_s and one.shares_nodes(other)
            )
            ends.append(one.job.seconds + max(before, default=0.0))
        return max(ends, default=0.0)


def at_once(partition: Partition) -> int:
    """Return how many jobs a partition has at once: one where they might share a node."""
    if not (scheduler_of(partition.scheduler).is_batch and partition.has_nodes_for_itself):
        return 1
    return _submitted(partition)


def _submitted(partition: Partition) -> int:
    return max(1, int(partition.reframe.get("max_jobs", MAX_JOBS)))


def is_few(nodes: int) -> bool:
    """Tell whether a case on so many nodes may run beside others that have other nodes."""
    return nodes <= FEW_NODES


def jobs_of(
    mode: Mode, cases: Sequence[CaseId], seconds: Sequence[float], partitions: Iterable[Partition]
) -> list[Job]:
    """Return the jobs of cases, which take so many ``seconds`` each.

    Only a gate and its baseline are so large that any runs beside others. A case of the same layout
    runs alone in all partitions, if it does in one; and all do where ReFrame would submit jobs at
    once that might share a node.
    """
    by_name = {one.fullname: one for one in partitions}
    here = [by_name.get(case.partition) for case in cases]
    nodes = [nodes_of(mode, case, one) for case, one in zip(cases, here, strict=True)]
    if mode.name != MAINTENANCE:
        here = [None] * len(cases)
    shared = any(one is None or (at_once(one) == 1 and _submitted(one) > 1) for one in here)
    none = shared or all(one is None or at_once(one) == 1 for one in here)
    many = {
        (case.check, case.parameters)
        for case, count in zip(cases, nodes, strict=True)
        if none or not is_few(count)
    }
    return [
        Job(case, count, one, (case.check, case.parameters) in many)
        for case, count, one in zip(cases, nodes, seconds, strict=True)
    ]


def nodes_of(mode: Mode, case: CaseId, partition: Partition | None) -> int:
    """Return on how many nodes a case runs; all that the mode uses where no count is swept."""
    if partition is None:
        return 1
    used = used_shape(mode.name, case.check, partition)
    asked = dict(case.parameters)
    if PROCESS_COUNT not in asked:
        return used.nodes
    return used.nodes_for(int(asked[PROCESS_COUNT]), asked.get(NODE_USAGE, "packed"))


def timetable(jobs: Sequence[Job], partitions: Iterable[Partition]) -> Timetable:
    """Return when each job begins: first those that run alone, in turn, then the others.

    Those begin in their order as soon as there are nodes for them and their partition takes another
    job, as ReFrame and a scheduler that keeps the order do it. Partitions with one ``access`` share
    their nodes.
    """
    by_name = {one.fullname: one for one in partitions}
    planned: list[Planned] = []
    start_s = 0.0
    for job in jobs:
        if job.alone:
            planned.append(Planned(job, start_s, tuple(range(job.nodes))))
            start_s += job.seconds
    pools: dict[tuple[str, ...], list[Job]] = {}
    for job in jobs:
        if not job.alone:
            pools.setdefault(tuple(by_name[job.case.partition].access), []).append(job)
    for some in pools.values():
        planned += _side_by_side(some, by_name, start_s)
    return Timetable(tuple(sorted(planned, key=lambda one: one.start_s)))


def _side_by_side(
    jobs: Sequence[Job], by_name: Mapping[str, Partition], start_s: float
) -> list[Planned]:
    """Return jobs that begin in their order on free nodes, so many of a partition at once."""
    nodes = max(by_name[job.case.partition].shape.nodes for job in jobs)
    free_s = [start_s] * nodes
    planned: list[Planned] = []
    begins_s = start_s
    for job in jobs:
        most = at_once(by_name[job.case.partition])
        ends = sorted(one.end_s for one in planned if one.job.case.partition == job.case.partition)
        full = ends[-most] if len(ends) >= most else start_s
        chosen = sorted(range(nodes), key=lambda node: (free_s[node], node))[: job.nodes]
        # No job overtakes another.
        begins_s = max(begins_s, full, *(free_s[node] for node in chosen))
        planned.append(Planned(job, begins_s, tuple(sorted(chosen))))
        for node in chosen:
            free_s[node] = planned[-1].end_s
    return planned
