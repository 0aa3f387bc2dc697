"""Whether B is as fast as A, from several launches of each in the order of launching. Pure.

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
import enum
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clustergate.core.model import BadRequest, Better
from clustergate.core.reasons import Words
from clustergate.stats.one_thread import scipy
from clustergate.stats.ranks import (
    fewest_for,
    kth_differences,
    rank_sum_bound,
    rank_sum_chance,
)

MARGIN = 0.05
FAMILY_ERROR = 0.01
"""Chance that anywhere in a suite something is called better although nothing differs."""
EQUIVALENCE_ERROR = 0.025
"""Chance of calling two sets equivalent that differ by the margin, for each comparison."""
ENDLESS = 50.0
"""Logarithm of a ratio beyond which an interval says nothing."""

# The part of that error which is spent: real launches are not quite as the models have them.
_CAUTION = 0.5
_TRIMMED = 0.2
# How much a launch may resemble the one before it. Of 735 recorded series the lag-1 rank
# autocorrelation was 0.54 at most; from few launches it cannot be told.
_CORRELATIONS = np.linspace(0.0, 0.8, 9)
_DIGITS = 9
_MOST_FURTHER = 1000
# Chance of error of an interval that tells where a ratio rather is.
_RATHER = 0.5
_PAIRS_AT_ONCE = 2_000_000
# By how much unchanged runs were above the best of another hour, rounded up: with many launches and
# with few (docs/verdicts-measured.md). Ranks that compute apart meet others in caches and memory
# alone: a third of DGEMM's rate was lost for seconds on a virtual machine whose cores stayed its
# own.
_MANY_LAUNCHES = 10
_SHIFTS = {True: math.log(2.0), False: math.log(2.5)}
_SHIFT_APART = math.log(1.5)
_PAIRS_OF_A_ROW = 40_000

Floats = NDArray[np.float64]


class Relation(enum.Enum):
    """What can be said of A and B."""

    A_BETTER = "A better"
    B_BETTER = "B better"
    EQUIVALENT = "equivalent"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True)
class Pair:
    """The launches of A and of B of one metric under one set of conditions, in their order."""

    a: ArrayLike
    b: ArrayLike
    better: Better


@dataclass(frozen=True)
class Comparison:
    """What two sets say of each other; ``ratio`` is B/A.

    The interval from ``low`` to ``high`` has the ``confidence`` (0 to 1) for this comparison alone
    and is the one the verdict rests on; None for an end that launches do not give, both where there
    are too few of them for a verdict.
    ``further_launches`` are those of each side that would probably decide, None where it is
    decided or no number would.
    """

    verdict: Relation
    ratio: float | None
    low: float | None
    high: float | None
    confidence: float
    samples_a: int
    samples_b: int
    further_launches: int | None = None
    remark: str = ""


COMPARE_CHANCES = Words(
    "compare.chances",
    "the margin and the chance of error must lie between 0 and 1",
)


def compare(
    pairs: Sequence[Pair], *, margin: float = MARGIN, family_error: float = FAMILY_ERROR
) -> list[Comparison]:
    """Compare each pair; all that are handed in together are one family.

    Better is told by Holm's rule (A simple sequentially rejective multiple test procedure, 1979)
    over the family, equivalence by two one-sided tests for each (Schuirmann, 1987): the interval
    lies between 1/(1 + margin) and 1 + margin. What is both is equivalent, with a remark. A value
    of zero or less has no ratio: such pairs, and those with an empty side, cannot be told.
    Raises :class:`BadRequest` for values that are not finite and a margin or an error that
    is not between 0 and 1.
    """
    if not 0.0 < margin < 1.0 or not 0.0 < family_error < 1.0:
        raise BadRequest(COMPARE_CHANCES())
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


def unless_contradicted(one: Comparison, everything: Pair, margin: float = MARGIN) -> Comparison:
    """Return a comparison of the launches that count, undecided if all launches rather deny it.

    Disturbed launches are left out of each set by itself: whoever is disturbed by what itself does
    would be spared. ``everything`` holds those launches, too. They deny what is better when their
    ratio is on the other side of 1, and what is equivalent when it is beyond the margin: all of an
    interval that misses the truth as often as not, that of the ranks (Hodges and Lehmann, 1963).
    """
    a, b = (np.sort(_values(side)) for side in (everything.a, everything.b))
    left_out = [len(a) - one.samples_a, len(b) - one.samples_b]
    for side, count, n in zip("AB", (one.samples_a, one.samples_b), left_out, strict=True):
        if n and not count:
            which = f"all {n} launches of {side} were" if n > 1 else f"the launch of {side} was"
            return dataclasses.replace(one, remark=f"{which} disturbed")
    if one.verdict is Relation.INCONCLUSIVE or one.ratio is None or not any(left_out):
        return one
    bound = rank_sum_bound(_RATHER, len(a), len(b))
    if bound is None or min(a[0], b[0]) <= 0.0:
        return one
    a, b = np.log(a), np.log(b)
    pairs = len(a) * len(b)
    low, middle, high = kth_differences(a, b, (bound, pairs // 2, pairs - 1 - bound))
    edge = math.log1p(margin)
    if one.verdict is Relation.EQUIVALENT:
        denied = low > edge or high < -edge
    else:
        denied = high < 0.0 if one.ratio > 1.0 else low > 0.0
    if not denied:
        return one
    remark = (
        f"{one.verdict.value} without the {sum(left_out)} disturbed launches, but with them B/A is "
        f"{math.exp(middle):.3g}"
    )
    return dataclasses.replace(one, verdict=Relation.INCONCLUSIVE, remark=remark)


def between_sessions(launches: int, *, apart: bool) -> float:
    """Return by how much unchanged runs of so many launches were above those of another hour.

    It is the logarithm of a ratio: of ranks that compute ``apart``, else of messages.
    """
    return _SHIFT_APART if apart else _SHIFTS[launches >= _MANY_LAUNCHES]


def of_two_sessions(one: Comparison, shift: float) -> Comparison:
    """Return a comparison of launches of two sessions, with an interval for what hours do as well.

    The launches of a session share their hour, so that no number of them tells how the next one
    differs. ``shift`` is by how much unchanged ones did, the logarithm of a ratio: the interval
    reaches at least so far on both sides of the ratio. What is better with that, too, remains so,
    and nothing is equivalent.
    """
    if one.ratio is None:
        return one
    low = None if one.low is None else min(one.low, one.ratio / math.exp(shift))
    high = None if one.high is None else max(one.high, one.ratio * math.exp(shift))
    widened = dataclasses.replace(one, low=low, high=high, further_launches=None)
    if low is not None and high is not None and not low <= 1.0 <= high:
        return widened
    remark = (
        f"unchanged launches of two sessions differ by up to {math.exp(shift):g} times; what "
        "differs by less, clustergate ab finds"
    )
    if one.verdict is Relation.INCONCLUSIVE and one.remark:
        remark = one.remark
    return dataclasses.replace(widened, verdict=Relation.INCONCLUSIVE, remark=remark)


COMPARE_NOT_FINITE = Words(
    "compare.not-finite",
    "a value is not finite",
    remedy="leave that launch out or measure it again",
)


def _values(values: ArrayLike) -> Floats:
    checked = np.asarray(values, dtype=float).ravel()
    if not np.isfinite(checked).all():
        raise BadRequest(COMPARE_NOT_FINITE())
    return checked


def without_ratio(
    n: int, m: int, remark: str = "a value of zero or less has no ratio"
) -> Comparison:
    """Return what n launches of A and m of B say where no ratio can be formed, and why."""
    if not n or not m:
        remark = f"measured in {'A only' if n else 'B only' if m else 'neither'}"
    return Comparison(Relation.INCONCLUSIVE, None, None, None, 0.0, n, m, None, remark)


def from_logarithms(
    verdict: Relation,
    ratio: float,
    interval: tuple[float, float],
    confidence: float,
    samples: tuple[int, int],
    further: int | None,
    remark: str,
) -> Comparison:
    """Return a comparison from logarithms; an end of the interval that is endless is left out.

    What is undecided has none then, nor a ratio, where rounds without a value are all that makes
    it.
    """
    undecided = verdict is Relation.INCONCLUSIVE
    known = None if undecided and abs(ratio) >= ENDLESS else math.exp(ratio)
    low, high = (math.exp(end) if abs(end) < ENDLESS else None for end in interval)
    if undecided and None in (low, high):
        low = high = None
    if low is None and high is None:
        confidence = 0.0
    return Comparison(verdict, known, low, high, confidence, *samples, further, remark)


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


def printed_steps(a: Floats, b: Floats) -> Floats:
    """Return for each row how far rounding may move the logarithm of the ratio.

    Half of the last printed digit of either value, if the noise is smaller than that: otherwise it
    carries the values over the steps, and their mean is right (Widrow and Kollár, Quantization
    noise, 2008). Equal whole numbers are taken to be exact.
    """
    both = np.concatenate([a, b], axis=1)
    unit = np.zeros(len(both))
    for digits in range(_DIGITS, -1, -1):
        whole = (np.abs(both - np.round(both, digits)) <= 1e-12 * both).all(axis=1)
        unit[whole] = 10.0**-digits
    constant = both.max(axis=1) == both.min(axis=1)
    unit[constant & (unit == 1.0)] = 0.0
    hidden = np.minimum(a.std(axis=1), b.std(axis=1)) < unit / 2
    reach = unit / 2 / np.median(a, axis=1) + unit / 2 / np.median(b, axis=1)
    return np.where(hidden, reach, 0.0)
