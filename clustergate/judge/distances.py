"""How far the nodes of a run lay from each other, which decides small messages. Pure.

On a cluster whose jobs get other nodes each time, latency has levels: 1 on one switch, 1.3 and 1.5
times that beyond. Each level has a mean of its own, and all of them one scatter; each mean costs a
degree of freedom. Runs of which nobody knows where their nodes lay are of an unknown distance.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping

from clustergate.core.model import LATENCY, UNKNOWN_DISTANCE, BaselineRuns, Better


def is_covariate(kind: str, nodes: int) -> bool:
    """Tell whether the distance of its nodes decides a figure."""
    return kind == LATENCY and nodes > 1


def distances(known: BaselineRuns) -> tuple[str, ...]:
    """Return the distance in each run of a baseline; unknown of all where it is so of one."""
    named = known.distances
    if len(named) != len(known.values) or UNKNOWN_DISTANCE in named:
        return (UNKNOWN_DISTANCE,) * len(known.values)
    return named


def shifts(known: BaselineRuns, better: Better) -> Mapping[str, float]:
    """Return by how much the runs of each distance are worse than all of them, as logarithms."""
    by_distance: dict[str, list[float]] = {}
    for where, value in zip(distances(known), known.values, strict=True):
        by_distance.setdefault(where, []).append(better.worse_by(value, 1.0))
    usual = statistics.fmean(cost for costs in by_distance.values() for cost in costs)
    return {where: statistics.fmean(costs) - usual for where, costs in by_distance.items()}


def rarer(known: BaselineRuns, distance: str) -> float:
    """Return by how many times the variance of a change is larger than if all runs were of it.

    The mean of a distance is known from its own runs alone.
    """
    named = distances(known)
    own = max(named.count(distance), 1)
    return (1.0 + 1.0 / own) / (1.0 + 1.0 / len(named))
