"""Whether B is as fast as A, from independent launches of each in their order. Pure.

Everything is told of the ratio B/A, on logarithms. The ratio is the median of all ratios of a
launch of B to a launch of A (Hodges and Lehmann, 1963). Its interval is the widest of three, each
of which holds where the others may fail:

- ranks (Mann and Whitney, 1947): exact for independent launches of any distribution, with ties
  counted against a difference;
- means without the lowest and highest fifth (Yuen, The two-sample trimmed t for unequal population
  variances, 1974): for sets that scatter unequally;
- the likelihood ratio against noise in which a launch resembles the one before it, an
  autoregression of first order (the problem: Zwiers and von Storch, Taking serial correlation into
  account in tests of the mean, 1995; the likelihood: Box, Jenkins and Reinsel, Time series
  analysis, 7.1), of the pseudo-values of the trimmed means.

A set that drifts has no single level. Half the drift common to both is added to the interval from
which a difference is told. A ratio has no better knowledge than the digits that were printed: where
they hide the noise, half of the last digit is added on each side.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clustergate.core.model import Better
from clustergate.stats.comparison import (
    EQUIVALENCE_ERROR,
    FAMILY_ERROR,
    MARGIN,
    Comparison,
    Relation,
    from_logarithms,
    printed_steps,
    without_ratio,
)
from clustergate.stats.one_thread import scipy
from clustergate.stats.ranks import (
    fewest_for,
    kth_differences,
    rank_sum_bound,
    rank_sum_chance,
)

# The part of that error which is spent: real launches are not quite as the models have them.
_CAUTION = 0.5
_TRIMMED = 0.2
# How much a launch may resemble the one before it. Of 735 recorded series the lag-1 rank
# autocorrelation was 0.54 at most; from few launches it cannot be told.
_CORRELATIONS = np.linspace(0.0, 0.8, 9)
_MOST_FURTHER = 1000
_PAIRS_AT_ONCE = 2_000_000
_PAIRS_OF_A_ROW = 40_000

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Pair:
    """The launches of A and of B of one metric under one set of conditions, in their order."""

    a: ArrayLike
    b: ArrayLike
    better: Better


def compare(
    pairs: Sequence[Pair], *, margin: float = MARGIN, family_error: float = FAMILY_ERROR
) -> list[Comparison]:
    """Compare each pair; all that are handed in together are one family.

    Better is told by Holm's rule (A simple sequentially rejective multiple test procedure, 1979)
    over the family, equivalence by two one-sided tests for each (Schuirmann, 1987): the interval
    lies between 1/(1 + margin) and 1 + margin. What is both is equivalent, with a remark. A value
    of zero or less has no ratio: such pairs, and those with an empty side, cannot be told.
    """
    values = [(_values(pair.a), _values(pair.b)) for pair in pairs]
    comparisons: list[Comparison | None] = [None] * len(pairs)
    shapes: dict[tuple[int, int], list[int]] = {}
    for k, (a, b) in enumerate(values):
        if len(a) and len(b) and a.min() > 0.0 and b.min() > 0.0:
            shapes.setdefault((len(a), len(b)), []).append(k)
        else:
            comparisons[k] = without_ratio(len(a), len(b))
    chunks = [
        (
            rows,
            _Batch(np.array([values[k][0] for k in rows]), np.array([values[k][1] for k in rows])),
        )
        for shape, members in shapes.items()
        for rows in _in_chunks(members, shape)
    ]
    # Pairs of too few launches cannot be called better: they take nothing from the others.
    candidates = [
        (rows, batch) for rows, batch in chunks if batch.can_differ(_CAUTION * family_error)
    ]
    chances = {
        k: float(p)
        for rows, batch in candidates
        for k, p in zip(rows, batch.chances(), strict=True)
    }
    differing, level = _holm(chances, _CAUTION * family_error)
    for rows, batch in chunks:
        for k, one in zip(rows, batch.results(level, margin), strict=True):
            comparisons[k] = one.verdict_for(pairs[k].better, k in differing, margin)
    return [one for one in comparisons if one is not None]


def of_two_sessions(comparison: Comparison, shift: float) -> Comparison:
    """Return a comparison of launches of two sessions, with an interval for what hours do as well.

    The launches of a session share their hour, so that no number of them tells how the next one
    differs. ``shift`` is by how much unchanged ones did, the logarithm of a ratio: the interval
    reaches at least so far on both sides of the ratio. What is better with that, too, remains so,
    and nothing is equivalent.
    """
    if comparison.ratio is None:
        return comparison
    low = (
        None if comparison.low is None else min(comparison.low, comparison.ratio / math.exp(shift))
    )
    high = (
        None
        if comparison.high is None
        else max(comparison.high, comparison.ratio * math.exp(shift))
    )
    widened = dataclasses.replace(comparison, low=low, high=high, further_launches=None)
    if low is not None and high is not None and not low <= 1.0 <= high:
        return widened
    remark = (
        f"unchanged launches of two sessions differ by up to {math.exp(shift):g} times; what "
        "differs by less, clustergate ab finds"
    )
    if comparison.verdict is Relation.INCONCLUSIVE and comparison.remark:
        remark = comparison.remark
    return dataclasses.replace(widened, verdict=Relation.INCONCLUSIVE, remark=remark)


def _values(values: ArrayLike) -> Floats:
    return np.asarray(values, dtype=float).ravel()


def _in_chunks(members: list[int], shape: tuple[int, int]) -> Iterable[list[int]]:
    size = max(1, _PAIRS_AT_ONCE // min(shape[0] * shape[1], _PAIRS_OF_A_ROW))
    return (members[k : k + size] for k in range(0, len(members), size))


def _holm(chances: dict[int, float], error: float) -> tuple[set[int], float]:
    """Return what differs, and the level at which the step-down ended."""
    left = len(chances)
    differing: set[int] = set()
    for k, chance in sorted(chances.items(), key=lambda item: item[1]):
        if chance > error / left:
            break
        differing.add(k)
        left -= 1
    return differing, error / max(left, 1)


@dataclass(frozen=True)
class _RowResult:
    """A comparison before its better direction is known; logarithms of the ratio."""

    samples: tuple[int, int]
    ratio: float
    wide: tuple[float, float, float]
    narrow: tuple[float, float, float]
    steps: float
    needed: int | None

    def verdict_for(self, better: Better, differs: bool, margin: float) -> Comparison:
        edge = math.log1p(margin)
        low, high, confidence = self.narrow
        verdict, remark, further = Relation.EQUIVALENT, "", None
        if -edge <= low and high <= edge:
            if differs:
                remark = "a significant difference within the margin"
        else:
            low, high, confidence = self.wide
            if differs and better is not Better.NEITHER:
                b_better = (self.ratio > 0.0) == (better is Better.HIGHER)
                verdict = Relation.B_BETTER if b_better else Relation.A_BETTER
                low, high = (max(low, 0.0), high) if self.ratio > 0.0 else (low, min(high, 0.0))
            else:
                verdict = Relation.INCONCLUSIVE
                further = None if differs else self.needed
                if differs:
                    remark = "they differ, but neither direction is better for this metric"
                elif further is None:
                    remark = "no number of launches would decide" if not self.steps else (
                        f"the printed resolution is {100 * math.expm1(self.steps):.2g} %"
                    )  # fmt: skip
        return from_logarithms(
            verdict, self.ratio, (low, high), confidence, self.samples, further, remark
        )


class _Side:
    """One set per row: its trimmed mean, its pseudo-values, its drift."""

    def __init__(self, logs: Floats) -> None:
        self.n = n = logs.shape[1]
        self.sorted = np.sort(logs, axis=1)
        cut = int(_TRIMMED * n)
        self.kept = n - 2 * cut
        self.mean = self.sorted[:, cut : n - cut].mean(axis=1)
        clipped = np.clip(logs, self.sorted[:, [cut]], self.sorted[:, [n - 1 - cut]])
        deviations = (clipped - clipped.mean(axis=1, keepdims=True)) * (n / self.kept)
        self.pseudo = self.mean[:, None] + deviations
        self.variance = (deviations**2).sum(axis=1) * (self.kept / n) ** 2
        self.variance /= max(self.kept * (self.kept - 1), 1)
        place = np.arange(n) - (n - 1) / 2
        self.drift = deviations @ place * n / max(float((place**2).sum()), 1.0)


class _Batch:
    """Comparisons of equal numbers of launches, a row each."""

    def __init__(self, a: Floats, b: Floats) -> None:
        self.n, self.m = a.shape[1], b.shape[1]
        self.steps = printed_steps(a, b)
        self.a, self.b = _Side(np.log(a)), _Side(np.log(b))
        self.shift = self.b.mean - self.a.mean
        variance = self.a.variance + self.b.variance
        self.error = np.sqrt(np.maximum(variance, 1e-24))
        self.freedom = self._welch(variance)
        self.drift = np.abs(self.a.drift + self.b.drift) / 2
        self._likelihoods()

    def can_differ(self, level: float) -> bool:
        """Whether so many launches can show any difference."""
        return rank_sum_bound(level, self.n, self.m) is not None and self.n + self.m > 4

    def _welch(self, variance: Floats) -> Floats:
        parts = [side.variance**2 / max(side.kept - 1, 1) for side in (self.a, self.b)]
        smallest = float(max(min(self.a.kept, self.b.kept) - 1, 1))
        with np.errstate(all="ignore"):
            return np.asarray(np.nan_to_num(variance**2 / (parts[0] + parts[1]), nan=smallest))

    def _likelihoods(self) -> None:
        """Keep for each autocorrelation: the shift, its information, the sum of squares."""
        shifts, information, squares = [], [], []
        centre = self.a.mean[:, None]
        for phi in _CORRELATIONS:
            weights, sums, totals = [], [], []
            for side in (self.a, self.b):
                x = side.pseudo - centre
                first = 1.0 - phi**2
                steps = x[:, 1:] - phi * x[:, :-1]
                weights.append(first + (side.n - 1) * (1.0 - phi) ** 2)
                sums.append(first * x[:, 0] + (1.0 - phi) * steps.sum(axis=1))
                totals.append(first * x[:, 0] ** 2 + (steps**2).sum(axis=1))
            means = [s / w for s, w in zip(sums, weights, strict=True)]
            rest = sum(t - s * m for t, s, m in zip(totals, sums, means, strict=True))
            shifts.append(means[1] - means[0])
            information.append(weights[0] * weights[1] / (weights[0] + weights[1]))
            squares.append(np.maximum(rest, 1e-24))
        self._shifts, self._squares = np.array(shifts), np.array(squares)
        self._information = np.array(information)[:, None]
        # Two sets, each with the variance of its first value.
        self._volume = (-2 * np.log(1 - _CORRELATIONS**2))[:, None]
        total = self.n + self.m
        heights = total * np.log(self._squares) + self._volume
        self._best = heights.min(axis=0)
        # Launches that resemble each other tell as much as fewer that do not (Zwiers and von
        # Storch): so many degrees of freedom.
        likely = _CORRELATIONS[heights.argmin(axis=0)]
        self._likely_freedom = np.maximum(total * (1 - likely) / (1 + likely) - 4.0, 1.0)

    @property
    def _small_sample(self) -> float:
        # By simulation: what the likelihood ratio of few launches promises too much.
        return float(max(1.0 - 4.0 / (self.n + self.m), 0.1))

    def _likelihood_chances(self) -> Floats:
        total = self.n + self.m
        at_zero = self._squares + self._shifts**2 * self._information
        ratio = (total * np.log(at_zero) + self._volume).min(axis=0) - self._best
        root = np.sqrt(np.maximum(ratio * self._small_sample, 0.0))
        return np.asarray(2 * scipy.special.stdtr(self._likely_freedom, -root))

    def chances(self) -> Floats:
        """Return for each row how likely such a difference is when there is none."""
        t = np.maximum(np.abs(self.shift) - self.drift, 0.0) / self.error
        trimmed = 2 * scipy.special.stdtr(self.freedom, -t)
        rise = self.shift > 0.0
        against = np.array([_against(*row) for row in zip(self.a.sorted, self.b.sorted, rise,
                            strict=True)])  # fmt: skip
        ranks = np.array([2 * rank_sum_chance(int(u), self.n, self.m) for u in against])
        return np.asarray(np.maximum.reduce([trimmed, ranks, self._likelihood_chances()]))

    def _interval(self, level: float, ranks: tuple[Floats, Floats] | None) -> tuple[Floats, Floats]:
        """Return the widest of the three intervals, without drift; infinite where there is none."""
        total = self.n + self.m
        if ranks is None or total <= 4:
            none = np.full(len(self.shift), math.inf)
            return -none, none
        half = -scipy.special.stdtrit(self.freedom, level / 2) * self.error
        reach = scipy.special.stdtrit(self._likely_freedom, level / 2) ** 2 / self._small_sample
        with np.errstate(over="ignore"):
            allowed = np.exp((self._best + reach - self._volume) / total) - self._squares
        possible = allowed >= 0.0
        away = np.sqrt(np.where(possible, allowed, 0.0) / self._information)
        lows = np.where(possible, self._shifts - away, math.inf).min(axis=0)
        highs = np.where(possible, self._shifts + away, -math.inf).max(axis=0)
        low = np.minimum.reduce([self.shift - half, lows, ranks[0]])
        high = np.maximum.reduce([self.shift + half, highs, ranks[1]])
        return low - self.steps, high + self.steps

    def results(self, level: float, margin: float) -> list[_RowResult]:
        """Return the result of each row, with the interval of a level and that of equivalence."""
        pairs = self.n * self.m
        narrow_level = 2 * EQUIVALENCE_ERROR
        bounds = [rank_sum_bound(at, self.n, self.m) for at in (level, narrow_level)]
        wanted = {(pairs - 1) // 2, pairs // 2}
        for bound in bounds:
            if bound is not None:
                wanted |= {bound, pairs - 1 - bound}
        at = self._differences(sorted(wanted))
        ratio = (at[(pairs - 1) // 2] + at[pairs // 2]) / 2
        wide, narrow = (
            self._interval(size, None if bound is None else (at[bound], at[pairs - 1 - bound]))
            for size, bound in zip((level, narrow_level), bounds, strict=True)
        )
        needed = self._needed(ratio, wide, narrow, level, margin)
        return [
            _RowResult(
                (self.n, self.m),
                float(ratio[k]),
                (float(wide[0][k] - self.drift[k]), float(wide[1][k] + self.drift[k]), 1 - level),
                (float(narrow[0][k]), float(narrow[1][k]), 1 - narrow_level),
                float(self.steps[k]),
                needed[k],
            )
            for k in range(len(ratio))
        ]

    def _differences(self, places: list[int]) -> dict[int, Floats]:
        a, b = self.a.sorted, self.b.sorted
        if self.n * self.m <= _PAIRS_OF_A_ROW:
            all_pairs = (b[:, :, None] - a[:, None, :]).reshape(len(a), -1)
            all_pairs.partition(places, axis=1)
            return {k: all_pairs[:, k] for k in places}
        each = [kth_differences(x, y, places) for x, y in zip(a, b, strict=True)]
        return dict(zip(places, np.array(each).T, strict=True))

    def _needed(
        self,
        ratio: Floats,
        wide: tuple[Floats, Floats],
        narrow: tuple[Floats, Floats],
        level: float,
        margin: float,
    ) -> list[int | None]:
        """Return how many more launches each row needs, as widths shrink by the square root."""
        now = min(self.n, self.m)
        fewest = max(fewest_for(level), now)
        halves = [(high - low) / 2 - self.steps for low, high in (wide, narrow)]
        rooms = [np.abs(ratio) - self.drift - self.steps]
        rooms.append(math.log1p(margin) - np.abs(ratio) - self.steps)
        needed: list[int | None] = []
        for k in range(len(ratio)):
            sizes = [fewest if now < 5 else math.inf]
            for half, room in zip(halves, rooms, strict=True):
                if room[k] > 0.0 and math.isfinite(half[k]):
                    sizes.append(max(now * (half[k] / room[k]) ** 2, fewest))
            size = min(sizes)
            if not math.isfinite(size) and not math.isfinite(halves[0][k] + halves[1][k]):
                size = fewest
            further = math.ceil(size - now) if math.isfinite(size) else _MOST_FURTHER + 1
            needed.append(max(further, 1) if further <= _MOST_FURTHER else None)
        return needed


def _against(a: Floats, b: Floats, rise: bool) -> int:
    """Return how many pairs of sorted samples do not say that b is above, or below, a."""
    if rise:
        return int(len(a) * len(b) - np.searchsorted(a, b, side="left").sum())
    return int(np.searchsorted(a, b, side="right").sum())
