"""Since when a series of runs is at another level. Pure functions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustergate.stats.ranks import kth_differences, rank_sum_bound, rank_sum_chance

SMALLEST_SEGMENT = 3


@dataclass(frozen=True)
class ChangePoint:
    """From the value ``index`` on the level is higher by ``shift``, between ``low`` and ``high``.

    The shift is the median difference of a value after the change and one before it (Hodges and
    Lehmann, 1963), as far as to the neighbouring changes. ``low`` and ``high`` are None where there
    are too few values for an interval of the confidence that was asked for.
    """

    index: int
    shift: float
    low: float | None
    high: float | None


def change_points(
    values: Sequence[float], *, confidence: float, comparisons: int = 1
) -> tuple[ChangePoint, ...]:
    """Return where the level of a series changes, in order.

    Give logarithms where ratios are meant. With probability ``confidence`` nothing is found in any
    of ``comparisons`` series whose values come from one distribution each, whatever that is, though
    they be looked at again with every new value (:func:`share_spent`). A
    change is where the rank sum of the values before and after (Mann and Whitney, 1947; Pettitt, A
    non-parametric approach to the change-point problem, 1979) is less likely than chance allows
    over all places in the series; or those within a stretch and outside of it, over all stretches
    (Olshen and others, Circular binary segmentation, 2004), without which a change that is taken
    back would hide. What lies between two changes is searched again.

    A slow drift is shown as steps: runs are taken to be independent. Ties count against a change.
    Raises ValueError for values that are not finite, or a confidence not between 0 and 1.
    """
    if not 0.0 < confidence < 1.0 or comparisons < 1:
        raise ValueError("the confidence must lie between 0 and 1, of at least one series")
    series = np.asarray(values, dtype=float)
    if not np.isfinite(series).all():
        raise ValueError("a value that is not finite has no place in a trend")
    level = (1.0 - confidence) / comparisons
    spent = level * share_spent(len(series))
    edges = [0, *sorted(_cuts(_Pairs(series), spent)), len(series)]
    for k in range(1, len(edges) - 1):
        edges[k] = _placed(series, *edges[k - 1 : k + 2])
    cuts = edges[1:-1]
    return tuple(
        _change(series[edges[i] : cut], series[cut : edges[i + 2]], cut, level)
        for i, cut in enumerate(cuts)
    )


def share_spent(values: int) -> float:
    """Return the share of the chance of error that looks at so many values may use.

    Whoever looks after every run looks often, and each look may find what is chance. So each
    doubling of the values has a share of its own, 1/2, 1/6, 1/12 …, which are 1 together (the
    spending of Lan and DeMets, Discrete sequential boundaries for clinical trials, 1983). The looks
    within a doubling share most of their values, and are taken for one.
    """
    doubling = 1 + int(math.log2(max(values / (2 * SMALLEST_SEGMENT), 1.0)))
    return 1.0 / (doubling * (doubling + 1))


def _placed(series: NDArray[np.float64], start: int, cut: int, end: int) -> int:
    """Return where a change lies best: the values deviate least from the medians on both sides.

    Ranks alone cannot say to which side the highest of the lower values belongs. Where the changes
    around it leave no choice, it stays where it is.
    """

    def deviations(place: int) -> float:
        sides = series[start:place], series[place:end]
        return float(sum(np.abs(side - np.median(side)).sum() for side in sides))

    places = range(start + SMALLEST_SEGMENT, end - SMALLEST_SEGMENT + 1)
    return min(places, key=deviations, default=cut)


def _change(
    before: NDArray[np.float64], after: NDArray[np.float64], index: int, level: float
) -> ChangePoint:
    a, b = np.sort(before), np.sort(after)
    pairs = len(a) * len(b)
    shift = sum(kth_differences(a, b, ((pairs - 1) // 2, pairs // 2))) / 2
    bound = rank_sum_bound(level, len(a), len(b))
    if bound is None:
        return ChangePoint(index, shift, None, None)
    low, high = kth_differences(a, b, (bound, pairs - 1 - bound))
    return ChangePoint(index, shift, low, high)


class _Pairs:
    """How many values of a stretch are above, or below, those around it, by prefix sums."""

    def __init__(self, series: NDArray[np.float64]) -> None:
        self.length = len(series)
        self._above = self._sums(series[:, None] < series[None, :])
        self._below = self._sums(series[:, None] > series[None, :])

    @staticmethod
    def _sums(true: NDArray[np.bool_]) -> NDArray[np.int64]:
        return np.pad(true.astype(np.int64).cumsum(0).cumsum(1), ((1, 0), (1, 0)))

    def best_place(self, start: int, end: int) -> tuple[float, tuple[int, ...]]:
        """Return the place that tells most, before from after, with the chance of such a place."""
        places = np.arange(start + SMALLEST_SEGMENT, end - SMALLEST_SEGMENT + 1)
        return self._most_telling(start, end, places, np.full_like(places, end))

    def best_stretch(self, start: int, end: int) -> tuple[float, tuple[int, ...]]:
        """Return the stretch that tells most, inside from outside, with its chance."""
        first, last = np.triu_indices(end - start, SMALLEST_SEGMENT)
        first, last = first + start, last + start
        kept = (first > start) & (last - first <= end - start - SMALLEST_SEGMENT)
        return self._most_telling(start, end, first[kept], last[kept])

    def _most_telling(
        self, start: int, end: int, first: NDArray[np.int64], last: NDArray[np.int64]
    ) -> tuple[float, tuple[int, ...]]:
        if not len(first):
            return 1.0, ()
        m = last - first
        n = end - start - m
        above = self._counted(self._above, start, end, first, last)
        below = self._counted(self._below, start, end, first, last)
        # Ties are with the side that says there is no change.
        u = n * m - np.maximum(above, below)
        z = (n * m / 2 - u) / np.sqrt(n * m * (end - start + 1) / 12)
        k = int(z.argmax())
        chance = 2 * rank_sum_chance(int(u[k]), int(n[k]), int(m[k])) * len(first)
        return chance, tuple(c for c in (int(first[k]), int(last[k])) if start < c < end)

    @staticmethod
    def _counted(
        sums: NDArray[np.int64],
        start: int,
        end: int,
        first: NDArray[np.int64],
        last: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Return for stretches how many pairs of one inside and one outside a matrix counts."""
        all_rows = sums[end, last] - sums[end, first] - sums[start, last] + sums[start, first]
        inside = sums[last, last] - sums[last, first] - sums[first, last] + sums[first, first]
        return np.asarray(all_rows - inside)


def _cuts(pairs: _Pairs, level: float) -> list[int]:
    cuts: list[int] = []
    todo = [(0, pairs.length)]
    while todo:
        start, end = todo.pop()
        chance, places = min(pairs.best_place(start, end), pairs.best_stretch(start, end))
        if 2 * chance <= level:
            cuts += places
            edges = [start, *places, end]
            todo += itertools.pairwise(edges)
    return cuts
