"""One node beside what screenings measured of its kind, and of itself. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from clustergate.judge.nodes import beside_median
from clustergate.machine.peaks import OF_A_VIRTUAL_MACHINE
from clustergate.stats import MAD
from clustergate.studies.screen.measures import ALONE, MEASURES, Measure, Result

Rates = Mapping[str, Mapping[str, Sequence[float]]]
"""By node and measure, the levels of its launches: logarithms, positive is worse."""
_KERNELS = {one.key: one for one in ALONE if one.kind == "peaks"}
_MACHINE_OF = {"fma_peak_gflops": "fma_peak", "triad_gb_s": "triad"}
# As of nodes beside their median, and of launches beside those of before.
_SPREADS = 4.0


@dataclass(frozen=True)
class Behind:
    """A measure in which a node is slower than its ``kind``, or else than its own past.

    ``by`` and ``usual`` are logarithms, positive is worse; ``nodes`` are those it stands beside.
    """

    measure: Measure
    by: float
    usual: float
    nodes: int
    kind: bool


def rates_of(results: Iterable[Result]) -> dict[str, dict[str, list[float]]]:
    """Return what the raw kernels reached on each node of a screening."""
    rates: dict[str, dict[str, list[float]]] = {}
    for one in results:
        for key, value in one.values.items():
            if key in _KERNELS and len(one.nodes) == 1:
                of_node = rates.setdefault(one.nodes[0], {})
                of_node.setdefault(key, []).append(_KERNELS[key].level(value))
    return rates


def behind(
    now: Mapping[str, float], node: str, past: Rates, *, virtual: bool = False
) -> list[Behind]:
    """Return in what a node is slow, by one launch of its raw kernels: values by measure.

    Slow is what is behind the median of four nodes of its kind by more than they scatter, or behind
    its own launches by more than launches of a node scatter, and by 10 % at least; of a ``virtual``
    machine by what its host may take, too. Without such a ``past`` nothing is.
    """
    behind = []
    for key in _KERNELS.keys() & now.keys():
        measure, level = MEASURES[key], _KERNELS[key].level(now[key])
        tolerated = math.log(measure.tolerated)
        if virtual:
            tolerated += math.log(OF_A_VIRTUAL_MACHINE[_MACHINE_OF[key]])
        levels = {name: of[key] for name, of in past.items() if of.get(key)}
        usual = {name: statistics.median(of) for name, of in levels.items()}
        beside = beside_median({**usual, node: level}, tolerated)
        if beside and node in beside.slow:
            by = beside.slower_by[node]
            behind.append(Behind(measure, by, level - by, len(beside.slower_by) - 1, kind=True))
            continue
        # Of a single launch on each nobody knows what launches differ by.
        left = [abs(x - usual[n]) for n, of in levels.items() if len(of) > 1 for x in of]
        if node in levels and left:
            launches = len(levels[node])
            spread = MAD * statistics.median(left) * math.sqrt(1 + 1 / launches)
            if (by := level - usual[node]) > max(tolerated, _SPREADS * spread):
                behind.append(Behind(measure, by, usual[node], 1, kind=False))
    return sorted(behind, key=lambda one: -one.by)


def each_time(looks: Sequence[Sequence[Behind]]) -> list[Behind]:
    """Return what of the last launch was behind in all of them."""
    keys = [{one.measure.key for one in look} for look in looks]
    return [one for one in looks[-1] if all(one.measure.key in of for of in keys)] if looks else []
