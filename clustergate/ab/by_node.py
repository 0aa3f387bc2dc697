"""Nodes against the median of all of them, figure by figure, over outputs of each. Pure.

A node stands out by more than ``max(tolerance, 4 * 1.4826 MAD * sqrt(1 + 1.57 / N))`` from the
median of N nodes: MAD is the median distance to that, 1.57 / N the variance of the median itself.
One that is the slowest of all each time stands out too, however little it is.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from clustergate.model import Better
from clustergate.statistics import MAD

FEWEST = 4
"""Nodes from which on their median tells which of them is slow."""
_SPREADS, _OF_MEDIAN = 4.0, 1.57
# The slowest each time is told where each time it is so many standard deviations away, which one
# figure of 700 has by chance with 28 nodes; or where being last alone is as rare over all figures.
_LAST_BY_SD, _CHANCE = 2.5, 0.05
# Less than that is how figures are printed.
_RESOLUTION = 0.002
_NODE = re.compile(r"[A-Za-z]+[0-9]+")

Key = tuple[str, ...]
"""What is compared: the benchmark, the metric, the conditions."""


@dataclass(frozen=True)
class Measured:
    """One value of a figure on a node; a cost that is lower is better, whatever the metric is."""

    node: str
    key: Key
    value: float
    better: Better

    @property
    def cost(self) -> float:
        """Return the logarithm of the value, higher is worse."""
        return -math.log(self.value) if self.better is Better.HIGHER else math.log(self.value)


@dataclass(frozen=True)
class Apart:
    """A node that stands out in a figure.

    ``slower_by`` are the fractions by which it was slower than the median of the nodes, each time.
    ``bound`` is what counts as slow, ``always_last`` that it was the slowest each time.
    """

    node: str
    key: Key
    slower_by: tuple[float, ...]
    bound: float
    nodes: int
    always_last: bool


def nodes_in(paths: Sequence[str]) -> dict[str, str]:
    """Return the node of each file: what looks like a name with a number, and differs most.

    Folders count, too. Empty where nothing differs.
    """
    words = {path: _NODE.findall("/".join(Path(path).parts[-2:])) for path in paths}
    most = min(map(len, words.values()), default=0)
    # Of several that differ as much the last: folders are rather days.
    places = range(-1, -most - 1, -1)
    kinds = {place: len({of[place] for of in words.values()}) for place in places}
    best = max(places, key=lambda place: kinds[place], default=None)
    if best is None or kinds[best] < 2:
        return {}
    return {path: of[best] for path, of in words.items()}


def apart(measured: Iterable[Measured], tolerance: float) -> tuple[list[Apart], int, int]:
    """Return who stands out, the slowest first, how many figures were compared, and on how many.

    ``tolerance`` is a fraction. The k-th value of each node is compared with the k-th of the
    others. Figures of fewer than :data:`FEWEST` nodes are not compared.
    """
    by_key: dict[Key, dict[str, list[float]]] = {}
    for one in measured:
        by_key.setdefault(one.key, {}).setdefault(one.node, []).append(one.cost)
    enough = {key: of for key, of in by_key.items() if len(of) >= FEWEST}
    standing_out = [x for key, of in enough.items() for x in _of_figure(key, of, tolerance, enough)]
    standing_out.sort(key=lambda one: -min(one.slower_by))
    most = max(map(len, enough.values()), default=0)
    return standing_out, len(enough), most


def _of_figure(
    key: Key,
    costs: Mapping[str, Sequence[float]],
    tolerance: float,
    figures: Mapping[Key, object],
) -> Iterable[Apart]:
    times = max(map(len, costs.values()))
    beyond: dict[str, list[float]] = {node: [] for node in costs}
    last: dict[str, int] = dict.fromkeys(costs, 0)
    bounds: list[float] = []
    spreads: list[float] = []
    for k in range(times):
        here = {node: of[k] for node, of in costs.items() if len(of) > k}
        if len(here) < FEWEST:
            continue
        middle = statistics.median(here.values())
        spread = MAD * statistics.median(abs(cost - middle) for cost in here.values())
        spreads.append(spread)
        bound = _SPREADS * spread * math.sqrt(1 + _OF_MEDIAN / len(here))
        bounds.append(max(math.log1p(tolerance), bound))
        for node, cost in here.items():
            beyond[node].append(cost - middle)
        last[max(here, key=lambda node: here[node])] += 1
    if not bounds:
        return
    seen = len(bounds)
    by_chance = len(figures) * len(costs) ** (1 - seen)
    for node, by in beyond.items():
        last_each_time = last[node] == seen > 1 and min(by) > _RESOLUTION
        far = all(a > _LAST_BY_SD * sd for a, sd in zip(by, spreads, strict=False))
        always = last_each_time and (far or by_chance < _CHANCE)
        if by and (always or all(a > bound for a, bound in zip(by, bounds, strict=False))):
            slower = tuple(map(math.expm1, by))
            yield Apart(node, key, slower, math.expm1(max(bounds)), len(costs), always)
