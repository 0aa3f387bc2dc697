"""Which nodes and pairs are screened next. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from clustergate.stats.sequential import DAY_S
from clustergate.studies.roll.state import APART_S, PAIR, State


@dataclass(frozen=True)
class Bounds:
    """How much of the machine screening may take, and how often it looks.

    ``share`` is the part of the nodes that its jobs have at most, running or waiting, ``jobs`` how
    many there are at once. A node is due ``every_s`` after it was last looked at, a suspect as soon
    as a look counts again, after ``apart_s``. A busy node that is ``overdue_s`` late is waited for.
    """

    share: float = 0.05
    jobs: int = 4
    every_s: float = DAY_S
    overdue_s: float = 3 * DAY_S
    apart_s: float = APART_S

    def nodes(self, of: int) -> int:
        """Return how many nodes of a machine of so many may be taken; a pair always."""
        return max(int(self.share * of), min(of, 2))


class NextJob(NamedTuple):
    """The nodes of a job, one or two; one that ``waits`` is for a node that is busy."""

    nodes: tuple[str, ...]
    waits: bool = False


def next_jobs(
    state: State, idle: Collection[str], usable: Collection[str], bounds: Bounds, now: float
) -> list[NextJob]:
    """Return the next jobs, the most urgent first.

    ``idle`` of the ``usable`` nodes have no job now. Two idle nodes are a pair, as that tells of
    their links, too; a suspect meets one that was good with others.
    """
    taken = {node for job in state.jobs.values() for node in job.nodes}
    room = bounds.nodes(len(usable)) - len(taken)
    jobs = bounds.jobs - len(state.jobs)
    idle = {*idle}
    free = [node for node in usable if node in idle and node not in taken]
    due = _by_urgency(state, [n for n in free if is_due(state, n, bounds, now)])
    planned: list[NextJob] = []
    while due and room > 0 and jobs > 0:
        node = due[0]
        partner = _partner(state, node, due[1:], free) if room > 1 else None
        members = (node, partner) if partner else (node,)
        planned.append(NextJob(members))
        due = [one for one in due if one not in members]
        free = [one for one in free if one not in members]
        room, jobs = room - len(members), jobs - 1
    busy = [node for node in usable if node not in idle and node not in taken]
    late = [node for node in busy if _late_s(state, node, bounds, now) >= bounds.overdue_s]
    # Half of all jobs: else those that wait would keep idle nodes from being screened.
    waiting = sum(job.waits for job in state.jobs.values())
    most = max(min(room, jobs, bounds.jobs // 2 - waiting), 0)
    planned += [NextJob((node,), waits=True) for node in _by_urgency(state, late)[:most]]
    return planned


def is_due(state: State, node: str, bounds: Bounds, now: float) -> bool:
    """Tell whether a node is to be looked at again."""
    return _late_s(state, node, bounds, now) >= 0


def _late_s(state: State, node: str, bounds: Bounds, now: float) -> float:
    of = state.of(node)
    every_s = min(bounds.apart_s, bounds.every_s) if of.slow else bounds.every_s
    # What was lost again and again tells of the job more than of the node.
    every_s *= 1 + min(of.lost, 5)
    # A look by a clock that was ahead would keep it from being looked at until then.
    looked_at = max((at for at in of.looked_at.values() if at <= now), default=0.0)
    return now - looked_at - every_s


def _by_urgency(state: State, nodes: Iterable[str]) -> list[str]:
    """Return suspects first, then those that were seen good the longest ago."""
    return sorted(nodes, key=lambda n: (not state.of(n).slow, state.of(n).good_alone_and_paired, n))


def _partner(state: State, node: str, due: list[str], free: list[str]) -> str | None:
    """Return with whom a node is paired: one that is due if that tells as much."""
    suspect = bool(state.of(node).slow.get(PAIR))
    for among in (due, free):
        known = [
            one
            for one in among
            if one != node and not state.of(one).accused and not state.of(one).slow
        ]
        if suspect:
            known = [one for one in known if state.of(one).good_at.get(PAIR)]
        if known:
            return min(known, key=lambda one: (state.of(node).met.get(one, 0.0), one))
        if not suspect:
            return None
    return None
