"""Nodes of one run against the median of them all: who is slow is seen without any past. Pure.

Of N equal nodes one is slow that is behind their median by more than ``max(tolerance, 4 * 1.4826
MAD * sqrt(1 + 1.57 / N))``: MAD is the median distance to that median, and 1.57 / N the variance of
the median of N, in units of that of one. Student's t against the others is no better: of two slow
nodes of 16 each hides the other. Of several times it must be so once, and each other time beyond
what chance explains for this one node (1 %).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clustergate.stats import MAD

FEWEST_NODES = 4
"""Nodes from which on their median tells which of them is slow."""
_SPREADS, _AGAIN, _OF_MEDIAN = 4.0, statistics.NormalDist().inv_cdf(0.99), math.pi / 2


@dataclass(frozen=True)
class BesideMedian:
    """How nodes stand to the median of them all, on natural logarithms, positive is worse.

    ``spread`` is the standard deviation of a usual node, and beyond ``bound`` one is slow; beyond
    ``again`` one is so that was slow another time.
    """

    slower_by: Mapping[str, float]
    spread: float
    bound: float
    again: float

    @property
    def most(self) -> float:
        """By how much the slowest is slower."""
        return max(self.slower_by.values())

    @property
    def slow(self) -> list[str]:
        """The slow nodes, the slowest first."""
        beyond = [node for node, by in self.slower_by.items() if by > self.bound]
        return sorted(beyond, key=lambda node: -self.slower_by[node])


def beside_median(costs: Mapping[str, float], tolerance: float) -> BesideMedian | None:
    """Return how nodes stand to their median, None for fewer than :data:`FEWEST_NODES`.

    ``costs`` and ``tolerance`` are natural logarithms, positive is worse.
    """
    if len(costs) < FEWEST_NODES:
        return None
    middle = statistics.median(costs.values())
    slower_by = {node: cost - middle for node, cost in costs.items()}
    spread = MAD * statistics.median(map(abs, slower_by.values()))
    of_node = spread * math.sqrt(1 + _OF_MEDIAN / len(costs))
    bound, again = (max(tolerance, spreads * of_node) for spreads in (_SPREADS, _AGAIN))
    return BesideMedian(slower_by, spread, bound, again)


def slow_each_time(times: Sequence[BesideMedian]) -> list[str]:
    """Return the nodes that are slow in each of several launchings in which they take part."""
    nodes = dict.fromkeys(node for one in times for node in one.slow)
    return [
        node
        for node in nodes
        if all(one.slower_by.get(node, math.inf) > one.again for one in times)
    ]
