"""What ranks tell of two samples, whatever their distribution. Pure functions."""

from __future__ import annotations

import bisect
import functools
import itertools
import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from clustergate.stats.one_thread import scipy

# Differences that are sorted for each sample: another count of them costs about as much.
_SORTED_FOR_EACH = 1
# Beyond so many pairs the normal distribution stands for the exact one, whose tails are lighter.
_EXACT_PAIRS = 10_000
# Unless one sample is small, and the answer one that could matter.
_FEW, _UNLIKELY = 16, 0.05

_Counted = tuple[int, float, NDArray[np.intp]]
"""How many differences are at most a value, the value, and for each b where those begin in a."""


@functools.lru_cache(maxsize=4096)
def _rank_sum_chances(n: int, m: int) -> NDArray[np.float64]:
    """Return P(U <= u) for u up to half of n * m."""
    return _chances(n, m, n * m // 2)


def _chances(n: int, m: int, largest: int) -> NDArray[np.float64]:
    """Return P(U <= u) for u up to the largest.

    The numbers of arrangements are the coefficients of a Gaussian binomial (Mann and Whitney, On a
    test of whether one of two random variables is stochastically larger than the other, 1947).
    """
    length = largest + 1
    counts = np.zeros(length)
    counts[0] = 1.0
    for i in range(1, min(n, m) + 1):
        step = max(n, m) + i
        if step < length:
            counts[step:] -= counts[:-step].copy()
        for start in range(min(i, length)):
            counts[start::i] = np.cumsum(counts[start::i])
    return np.cumsum(counts) / float(math.comb(n + m, n))


def rank_sum_chance(u: int, n: int, m: int) -> float:
    """Return P(U <= u) of Mann and Whitney's U for samples of n and m of one distribution.

    Ties must have been counted against what is claimed; then it is an upper bound.
    """
    if u < 0:
        return 0.0
    if 2 * u >= n * m:
        return 1.0
    if n * m <= _EXACT_PAIRS:
        return float(_rank_sum_chances(n, m)[u])
    deviation = math.sqrt(n * m * (n + m + 1) / 12)
    chance = float(scipy.special.ndtr((u + 0.5 - n * m / 2) / deviation))
    # Of a few against many the normal distribution's tail is heavier by orders of magnitude.
    return float(_chances(n, m, u)[-1]) if min(n, m) <= _FEW and chance < _UNLIKELY else chance


def rank_sum_bound(level: float, n: int, m: int) -> int | None:
    """Return the largest u with 2 P(U <= u) <= level, None where even u = 0 is too likely."""
    if 2 * rank_sum_chance(0, n, m) > level:
        return None
    if n * m <= _EXACT_PAIRS:
        return int(np.searchsorted(2 * _rank_sum_chances(n, m), level, side="right")) - 1
    deviation = math.sqrt(n * m * (n + m + 1) / 12)
    return math.floor(n * m / 2 - 0.5 + float(scipy.special.ndtri(level / 2)) * deviation)


def fewest_for(level: float) -> int:
    """Return how many samples each side needs for a rank sum of that level."""
    n = 1
    while 2.0 / math.comb(2 * n, n) > level:
        n += 1
    return n


def kth_differences(
    a: NDArray[np.float64], b: NDArray[np.float64], places: Iterable[int]
) -> list[float]:
    """Return the k-th smallest of all b - a, from 0, for each k, for sorted samples of any length.

    Bounds are drawn together by how many differences are at most a value, until those between them
    are few enough to be sorted. What was counted for one k bounds the next one, too.
    """
    low, high = float(b[0] - a[-1]), float(b[-1] - a[0])
    largest = max(abs(float(x)) for x in (a[0], a[-1], b[0], b[-1]))
    close = max(1e-12 * (high - low), 4 * math.ulp(largest))
    none, all_ = np.full(len(b), len(a)), np.zeros(len(b), dtype=np.intp)
    counted: list[_Counted] = [(0, low - close, none), (len(a) * len(b), high + close, all_)]
    differences: list[float] = []
    start, between = 0, a[:0]
    for k in places:
        if not start <= k < start + len(between):
            start, between = _around(a, b, k, close, counted)
        differences.append(float(between[k - start]))
    return differences


def _around(
    a: NDArray[np.float64], b: NDArray[np.float64], k: int, close: float, counted: list[_Counted]
) -> tuple[int, NDArray[np.float64]]:
    """Return differences in order, among them the k-th, and which is the first of them."""
    place = bisect.bisect_right(counted, k, key=lambda one: one[0])
    # So many differences are at most ``low``, never more than k, and at most ``high``: always more.
    (below, low, firsts), (upto, high, lasts) = counted[place - 1], counted[place]
    few = _SORTED_FOR_EACH * (len(a) + len(b))
    for tried in itertools.count(1):
        if upto - below <= few:
            break
        if tried % 3:
            # Where the differences lie evenly, this is little beyond k, on the side of which less
            # is known.
            aim = k + 0.5 + math.copysign(few / 5, upto + below - 2 * k)
            middle = low + (aim - below) / (upto - below) * (high - low)
        else:
            some = firsts > lasts
            least = float((b[some] - a[firsts[some] - 1]).min())
            most = float((b[some] - a[lasts[some]]).max())
            if most - least <= 2 * close:
                # All between them are as good as equal, however many.
                return below, np.broadcast_to(least, upto - below)
            middle = (least + most) / 2
        from_here = a.searchsorted(b - middle)
        at_most = len(a) * len(b) - int(from_here.sum())
        one = (at_most, middle, from_here)
        bisect.insort(counted, one, key=lambda one: one[:2])
        if at_most > k:
            upto, high, lasts = one
        else:
            below, low, firsts = one
    counts = firsts - lasts
    of = lasts + counts - counts.cumsum()
    between = b.repeat(counts) - a[np.arange(upto - below) + of.repeat(counts)]
    between.sort()
    return below, between
