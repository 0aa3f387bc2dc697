"""What ranks tell of two samples, whatever their distribution. Pure functions."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from clustergate.stats.one_thread import scipy

# Beyond so many pairs the normal distribution stands for the exact one, whose tails are lighter.
_EXACT_PAIRS = 10_000
# Unless one sample is small, and the answer one that could matter.
_FEW, _UNLIKELY = 16, 0.05


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
    """Return the k-th smallest of all differences b - a, from 0, for each k."""
    wanted = [*places]
    every = np.subtract.outer(b, a).ravel()
    every.partition(wanted)
    return [float(one) for one in every[wanted]]
