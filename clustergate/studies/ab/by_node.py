"""Nodes against the median of all of them, figure by figure, over outputs of each. Pure.

A node stands out that is slow each time (:mod:`clustergate.judge.nodes`). One that is the slowest
of all each time stands out too, however little it is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from clustergate.core.model import Better
from clustergate.judge.nodes import FEWEST_NODES, beside_median, slow_each_time

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
    others. Figures of fewer than :data:`FEWEST_NODES` are not compared.
    """
    by_key: dict[Key, dict[str, list[float]]] = {}
    for one in measured:
        by_key.setdefault(one.key, {}).setdefault(one.node, []).append(one.cost)
    enough = {key: of for key, of in by_key.items() if len(of) >= FEWEST_NODES}
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
    times = []
    for k in range(max(map(len, costs.values()))):
        here = {node: of[k] for node, of in costs.items() if len(of) > k}
        if (one := beside_median(here, math.log1p(tolerance))) is not None:
            times.append(one)
    if not times:
        return
    slow, seen = slow_each_time(times), len(times)
    by_chance = len(figures) * len(costs) ** (1 - seen)
    for node in costs:
        those = [one for one in times if node in one.slower_by]
        by = [one.slower_by[node] for one in those]
        last = len(by) == seen > 1 and all(one.slower_by[node] == one.most for one in those)
        far = all(one.slower_by[node] > _LAST_BY_SD * one.spread for one in those)
        always = last and min(by) > _RESOLUTION and (far or by_chance < _CHANCE)
        if always or node in slow:
            bound = math.expm1(max(one.bound for one in times))
            yield Apart(node, key, tuple(map(math.expm1, by)), bound, len(costs), always)
