"""Whether B is as fast as A, from rounds in which both were launched in random order. Pure.

What disturbs a round disturbs both launches of it, so the ratio B/A is taken within rounds, on
logarithms. Every round counts, whatever disturbed it. Nothing is assumed of how launches scatter,
drift or resemble each other:

- *Better* is told by what was drawn by lot. If nothing differs, the two names of a round could be
  exchanged for each other, in all its figures at once, and the driver's lot makes each way equally
  likely (Fisher, The design of experiments, 1935, section 21; Pitman, Significance tests which may
  be applied to samples from any populations, 1937). A difference counts when, of all ways to draw,
  so few would have shown one as clear anywhere in the whole comparison: the step-down test of the
  largest statistic (Westfall and Young, Resampling-based multiple testing, 1993, algorithm 4.1;
  Romano and Wolf, Exact and approximate stepdown methods for multiple hypothesis testing, 2005).
  Figures that go up and down together, as sizes of one curve do, then cost next to nothing more.
- The statistic is the weighted mean of the differences, those beyond a multiple of their median
  size cut to it (Maritz, A note on exact robust confidence intervals for location, 1979), as a t.
- A round in which A and B together were slower than in the best rounds weighs less, by Cauchy's
  function (Holland and Welsch, Robust regression using iteratively reweighted least-squares, 1977).
  The weight follows from the sum of both, which an exchange of A and B leaves as it is: so it
  favours neither, and the test stays exact.
- The ratio is the weighted median of the means of all pairs of rounds (Hodges and Lehmann,
  Estimates of location based on rank tests, 1963). For *equivalent* two intervals must lie within
  the margin: that of the weighted rounds, and that of the signed ranks of all rounds alike
  (Wilcoxon, Individual comparisons by ranking methods, 1945; Hollander, Wolfe and Chicken,
  Nonparametric statistical methods, third edition, 3.3), which slow launches of one alone widen.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from clustergate.model import Better
from clustergate.statistics.comparison import (
    ENDLESS,
    EQUIVALENCE_ERROR,
    FAMILY_ERROR,
    MARGIN,
    Comparison,
    ComparisonError,
    Relation,
    from_logarithms,
    printed_steps,
    without_ratio,
)

FEWEST = 9
"""Rounds without which nothing is called better: of fewer there are too few ways to draw."""

# The part of the error that is spent: a figure that scatters more with B than with A is not quite
# what the lot assumes.
_CAUTION = 0.5
# Median sizes of a difference beyond which it is cut: three standard deviations of normal ones.
_CUT = 3 / 0.6745
# A round weighs less from this quantile of the rounds' levels on, and half of what the best ones
# do at so many times the median distance from it.
_BEST_LEVELS = 0.1
_HALF_WEIGHT = 1.5
# What weighted rounds show does not hold if the opposite is in all of an interval that misses the
# truth as often as not.
_RATHER = 0.5
# Up to so many rounds all ways to draw are tried, beyond them so many by chance.
_ALL_WAYS_OF = 15
_DRAWS = 10_000
_DRAWS_AT_ONCE = 1_000
_STEPS_OF_THE_SCALE = 4_001
# Beyond so many rounds the normal distribution stands for the exact one of signed ranks.
_EXACT_ROUNDS = 60
_MOST_FURTHER = 1000

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Rounds:
    """What the rounds of one job measured: a row per round, a column per figure; NaN: nothing.

    ``better`` has one entry per column.
    """

    a: ArrayLike
    b: ArrayLike
    better: Sequence[Better]


def compare_rounds(
    jobs: Sequence[Rounds], *, margin: float = MARGIN, family_error: float = FAMILY_ERROR
) -> list[list[Comparison]]:
    """Compare each figure of each job; all that are handed in together are one family.

    A round counts for a figure that both launches measured; where one has no value, that speaks
    against its contender before it is called better or equivalent. Equivalence is told for each
    figure by itself, as in :func:`clustergate.statistics.comparison.compare`, and what is both is
    equivalent with a remark. ``samples_a`` and ``samples_b`` are the rounds that count,
    ``further_launches`` the further rounds that would probably decide. The same data yield the
    same answer. Raises :class:`ComparisonError` for tables that do not fit, values that are
    infinite, and a margin or an error that is not between 0 and 1.
    """
    if not 0.0 < margin < 1.0 or not 0.0 < family_error < 1.0:
        raise ComparisonError("the margin and the chance of error must lie between 0 and 1")
    tables = [_Table(job) for job in jobs]
    level = _CAUTION * family_error
    chances, critical = exchange_chances(
        [table.differences for table in tables], level, [table.weights for table in tables]
    )
    return [
        [table.comparison(k, float(one[k]), critical, level, margin) for k in range(len(one))]
        for table, one in zip(tables, chances, strict=True)
    ]


class _Table:
    """A job on logarithms."""

    def __init__(self, job: Rounds) -> None:
        a, b = (np.asarray(side, dtype=float) for side in (job.a, job.b))
        if a.ndim != 2 or a.shape != b.shape or a.shape[1] != len(job.better):
            raise ComparisonError("A and B need a table of rounds and figures each, of one shape")
        if np.isinf(a).any() or np.isinf(b).any():
            raise ComparisonError("a value is not finite; leave that launch out")
        self.a, self.b, self.better = a, b, job.better
        self.positive = np.asarray(~((a <= 0.0) | (b <= 0.0)).any(axis=0))
        with np.errstate(invalid="ignore", divide="ignore"):
            logs = [np.where(self.positive, np.log(side), np.nan) for side in (a, b)]
        self.differences = logs[1] - logs[0]
        signs = {Better.LOWER: 1.0, Better.HIGHER: -1.0, Better.NEITHER: 0.0}
        costs = [signs[one] * (logs[0][:, k] + logs[1][:, k]) for k, one in enumerate(job.better)]
        self.weights = weights_of(np.array(costs).reshape(a.shape[::-1]).T / 2)

    def comparison(
        self, k: int, chance: float, critical: float, level: float, margin: float
    ) -> Comparison:
        counting = ~np.isnan(self.differences[:, k])
        logs, count = self.differences[counting, k], int(counting.sum())
        if not count:
            n, m = (int((~np.isnan(side[:, k])).sum()) for side in (self.a, self.b))
            if self.positive[k]:
                return without_ratio(n, m, "measured in no round by both")
            return without_ratio(n, m)
        steps = float(printed_steps(self.a[counting, k][None], self.b[counting, k][None])[0])
        weighted = _Weighted(logs, self.weights[counting, k])
        ratio = weighted.centre
        likely = weighted.interval(_t_beyond(EQUIVALENCE_ERROR, count), steps)
        wide = weighted.interval(_score_as_t(critical, count), steps)
        alike = self._all_alike(k)
        _, *every = shift_of(alike, 2 * EQUIVALENCE_ERROR)
        narrow = min(likely[0], every[0] - steps), max(likely[1], every[1] + steps)
        edge = math.log1p(margin)
        differs = count >= FEWEST and chance <= level and not likely[0] <= 0.0 <= likely[1]
        remark, further = self._missing(k), None
        low, high = wide
        confidence = 1 - level
        verdict = Relation.INCONCLUSIVE
        if -edge <= narrow[0] and narrow[1] <= edge:
            verdict = Relation.EQUIVALENT
            low, high = narrow
            confidence = 1 - 2 * EQUIVALENCE_ERROR
            remark = "a significant difference within the margin" if differs else remark
        elif differs and self.better[k] is Better.NEITHER:
            remark = "they differ, but neither direction is better for this metric"
        elif differs and _contradicts(alike, ratio):
            remark = remark or "the slow rounds point the other way"
        elif differs:
            upwards = self.better[k] is Better.HIGHER
            verdict = Relation.B_BETTER if (ratio > 0.0) == upwards else Relation.A_BETTER
            low, high = (max(low, 0.0), high) if ratio > 0.0 else (low, min(high, 0.0))
        else:
            further = _further(count, ratio, wide, narrow, steps, edge)
            if further is None:
                remark = (
                    f"the printed resolution is {100 * math.expm1(steps):.2g} %"
                    if steps
                    else f"more than {_MOST_FURTHER} further rounds would be needed"
                )
        return from_logarithms(
            verdict, ratio, (low, high), confidence, (count, count), further, remark
        )

    def _all_alike(self, k: int) -> Floats:
        """Return the differences of all rounds: a launch without a value is slower than any."""
        differences = self.differences[:, k].copy()
        if self.better[k] is not Better.NEITHER:
            endless = ENDLESS if self.better[k] is Better.LOWER else -ENDLESS
            a, b = (np.isnan(side[:, k]) for side in (self.a, self.b))
            differences[b & ~a], differences[a & ~b] = endless, -endless
        return np.asarray(differences[~np.isnan(differences)])

    def _missing(self, k: int) -> str:
        """Return which contender lacks values in rounds in which the other has them."""
        a, b = (np.isnan(side[:, k]) for side in (self.a, self.b))
        messages = [
            f"{side} has no value in {n} of {len(a)} rounds"
            for side, n in (("A", int((a & ~b).sum())), ("B", int((b & ~a).sum())))
            if n
        ]
        return "; ".join(messages)


def weights_of(levels: ArrayLike) -> Floats:
    """Return the weight of each round for each figure, 0 where nothing was measured.

    ``levels`` tell how slow A and B together were in a round: logarithms, of the shape (rounds,
    figures), NaN where nothing was measured. Half of the rounds or more weigh at least 0.69.
    """
    known = np.asarray(levels, dtype=float)
    weights = np.zeros(known.shape)
    held = ~np.isnan(known).all(axis=0)
    above = known[:, held] - np.nanquantile(known[:, held], _BEST_LEVELS, axis=0)
    above = np.maximum(above, 0.0)
    typical = np.nanmedian(above, axis=0)
    steps = above / np.where(typical > 0.0, _HALF_WEIGHT * typical, np.inf)
    weights[:, held] = np.nan_to_num(1.0 / (1.0 + steps**2))
    return weights


def exchange_chances(
    jobs: Sequence[ArrayLike],
    level: float = _CAUTION * FAMILY_ERROR,
    weights: Sequence[ArrayLike] | None = None,
    *,
    cut: float = _CUT,
) -> tuple[list[Floats], float]:
    """Return how likely so clear a difference is anywhere, when none is real, and a critical t.

    Each job is a table of differences, of the shape (rounds, figures), NaN where nothing was
    measured; ``weights`` are as large, None for equal ones. The chances are those of the step-down
    test, of the same shape as the figures: exact where all ways to draw are few enough to be tried,
    else of 10,000 of them and that which was drawn (Phipson and Smyth, Permutation p-values should
    never be zero, 2010). The critical value is the score that only ``level`` of the ways exceed
    among the figures that do not differ. Differences beyond ``cut`` times the median of their size
    are cut to it.
    """
    tables = [np.asarray(job, dtype=float) for job in jobs]
    equal = [np.ones(table.shape) for table in tables]
    scored = [
        _Scored(table, np.asarray(of_rounds, dtype=float), cut)
        for table, of_rounds in zip(tables, weights or equal, strict=True)
    ]
    observed = np.concatenate([one.observed for one in scored] or [np.zeros(0)])
    if not len(observed):
        return [np.zeros(0) for _ in scored], math.inf
    order = np.argsort(-observed, kind="stable")
    ranked = observed[order]
    at_least, ways = np.zeros(len(ranked)), 0
    highest = []
    for drawn in _ways([one.rounds for one in scored]):
        scores = np.concatenate(
            [one.scores(signs) for one, signs in zip(scored, drawn, strict=True)], axis=1
        )[:, order]
        # The largest of this figure and of all that are less clear.
        largest = np.maximum.accumulate(scores[:, ::-1], axis=1)[:, ::-1]
        at_least += (largest >= ranked * (1 - 1e-12) - 1e-12).sum(axis=0)
        ways += len(largest)
        highest.append(largest)
    chances = np.minimum(np.maximum.accumulate(at_least / ways), 1.0)
    # The step at which the test ended: the figures from there on are those that do not differ.
    end = min(int((chances <= level).sum()), len(ranked) - 1)
    left = np.concatenate([largest[:, end] for largest in highest])
    critical = float(np.quantile(left, 1 - level, method="higher"))
    in_order = np.empty(len(order))
    in_order[order] = chances
    ends = np.cumsum([len(one.observed) for one in scored])
    return np.split(in_order, ends[:-1]), critical


class _Scored:
    """The differences of a job, ready to be given other signs.

    A score is the normal quantile of how likely such a t is, so that jobs of few and of many
    rounds stand on one scale.
    """

    def __init__(self, differences: Floats, weights: Floats, cut: float) -> None:
        self.rounds = len(differences)
        present = ~np.isnan(differences)
        values = np.where(present, differences, 0.0)
        sizes = np.where(present, np.abs(differences), np.nan)
        limits = np.full(values.shape[1], math.inf)
        held = present.any(axis=0)
        limits[held] = cut * np.nanmedian(sizes[:, held], axis=0)
        # Where most are exactly 0, nothing is cut.
        limits[limits == 0.0] = math.inf
        values = weights * np.clip(values, -limits, limits)
        norms = np.sqrt((values**2).sum(axis=0))
        self._unit: Floats = values / np.where(norms > 0.0, norms, 1.0)
        self._counts = present.sum(axis=0)
        self._scales = {int(n): _scale(int(n)) for n in np.unique(self._counts)}
        self.observed = self.scores(np.ones((1, self.rounds)))[0]

    def scores(self, signs: Floats) -> Floats:
        """Return the score of each figure (columns) for each way to draw (rows)."""
        sums = np.abs(signs @ self._unit)
        scores = np.zeros_like(sums)
        for count, scale in self._scales.items():
            columns = self._counts == count
            if count > 1:
                grid = np.linspace(0.0, 1.0, _STEPS_OF_THE_SCALE)
                scores[:, columns] = np.interp(sums[:, columns] / math.sqrt(count), grid, scale)
        return scores


@functools.lru_cache(maxsize=512)
def _scale(count: int) -> Floats:
    """Return the scores of sums from 0 to the largest that so many rounds can have."""
    part = np.linspace(0.0, 1.0, _STEPS_OF_THE_SCALE)
    part[-1] = 1.0 - 1e-9
    t = part * math.sqrt(max(count - 1, 1)) / np.sqrt(1.0 - part**2)
    tail = np.maximum(scipy.special.stdtr(max(count - 1, 1), -t), 1e-300)
    # The last digits of a sum must not decide: the scale goes on rising to its end.
    return np.asarray(-scipy.special.ndtri(tail) + 1e-9 * part)


def _score_as_t(score: float, count: int) -> float:
    """Return the t of so many rounds that has a score."""
    return _t_beyond(float(scipy.special.ndtr(-score)), count)


def _t_beyond(chance: float, count: int) -> float:
    """Return the t of so many rounds that is exceeded with a chance."""
    if chance <= 0.0 or count < 2:
        return math.inf
    return float(-scipy.special.stdtrit(count - 1, chance))


def _ways(rounds: Sequence[int]) -> Iterator[list[Floats]]:
    """Yield ways to draw, as signs of the shape (ways, rounds) of each job.

    All of them, up to the exchange of A and B everywhere, or many by chance and the one observed.
    """
    total = sum(rounds)
    ends = np.cumsum(rounds)[:-1]
    if total <= _ALL_WAYS_OF:
        numbers = np.arange(2 ** max(total - 1, 0))
        bits = (numbers[:, None] >> np.arange(total)) & 1
        for first in range(0, len(bits), _DRAWS_AT_ONCE):
            yield np.split(1.0 - 2.0 * bits[first : first + _DRAWS_AT_ONCE], ends, axis=1)
        return
    yield [np.ones((1, count)) for count in rounds]
    lot = np.random.default_rng(0)
    for _ in range(_DRAWS // _DRAWS_AT_ONCE):
        bits = lot.integers(0, 2, size=(_DRAWS_AT_ONCE, total))
        yield np.split(1.0 - 2.0 * bits, ends, axis=1)


@functools.lru_cache(maxsize=256)
def _signed_rank_chances(count: int) -> Floats:
    """Return P(W <= w) of the signed ranks of so many differences, w from 0."""
    ways = np.zeros(count * (count + 1) // 2 + 1)
    ways[0] = 1.0
    for rank in range(1, count + 1):
        ways[rank:] += ways[:-rank].copy()
    return np.cumsum(ways) / 2.0**count


def _signed_rank_bound(level: float, count: int) -> int | None:
    """Return the largest w with 2 P(W <= w) <= level, None where even w = 0 is too likely."""
    if 2.0 * 0.5**count > level:
        return None
    if count <= _EXACT_ROUNDS:
        return int(np.searchsorted(2 * _signed_rank_chances(count), level, side="right")) - 1
    mean = count * (count + 1) / 4
    deviation = math.sqrt(mean * (2 * count + 1) / 6)
    return max(math.floor(mean - 0.5 + float(scipy.special.ndtri(level / 2)) * deviation), 0)


def shift_of(differences: ArrayLike, level: float) -> tuple[float, float, float]:
    """Return the estimate of Hodges and Lehmann and the interval of the signed ranks around it.

    The interval misses the centre of symmetric differences with a chance of at most ``level``;
    it is infinite where they are too few.
    """
    values = np.asarray(differences, dtype=float)
    first, second = np.triu_indices(len(values))
    means = np.sort((values[first] + values[second]) / 2)
    bound = _signed_rank_bound(level, len(values))
    centre = float(np.median(means))
    if bound is None:
        return centre, -math.inf, math.inf
    return centre, float(means[bound]), float(means[len(means) - 1 - bound])


def _contradicts(alike: Floats, ratio: float) -> bool:
    """Tell whether rounds that all weigh alike rather show the opposite of a ratio."""
    _, low, high = shift_of(alike, _RATHER)
    return high < 0.0 if ratio > 0.0 else low > 0.0


class _Weighted:
    """The differences of one figure by the weights of their rounds: a centre and its intervals."""

    def __init__(self, logs: Floats, weights: Floats) -> None:
        first, second = np.triu_indices(len(logs))
        means = (logs[first] + logs[second]) / 2
        order = np.argsort(means)
        shares = np.cumsum((weights[first] * weights[second])[order])
        half = [np.searchsorted(shares, shares[-1] / 2, side) for side in ("left", "right")]
        self.centre = float(means[order][np.minimum(half, len(means) - 1)].mean())
        away = logs - self.centre
        limit = _CUT * float(np.median(np.abs(away)))
        squares = (weights * np.clip(away, -limit, limit)) ** 2
        count = len(logs)
        self._error = math.inf
        if count > 1:
            self._error = math.sqrt(float(squares.sum()) * count / (count - 1)) / weights.sum()

    def interval(self, t: float, steps: float) -> tuple[float, float]:
        """Return the interval that a t and the printed digits make, infinite for a single round."""
        half = (t * self._error if self._error else 0.0) + steps
        return self.centre - half, self.centre + half


def _further(
    count: int,
    ratio: float,
    wide: Sequence[float],
    narrow: Sequence[float],
    steps: float,
    edge: float,
) -> int | None:
    """Return how many more rounds would probably decide, as widths shrink by the square root."""
    sizes = [float(FEWEST)] if count < FEWEST else []
    for (low, high), room in (
        (wide, abs(ratio) - steps),
        (narrow, edge - abs(ratio) - steps),
    ):
        half = (high - low) / 2 - steps
        if room > 0.0 and math.isfinite(half):
            sizes.append(max(count * (half / room) ** 2, FEWEST))
    if not sizes:
        return None
    further = math.ceil(min(sizes) - count)
    return max(further, 1) if further <= _MOST_FURTHER else None
