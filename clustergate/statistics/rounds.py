"""Whether B is as fast as A, from rounds in which both were launched in random order. Pure.

It is looked at after every round, and what is decided may stop. Nothing is assumed of how launches
scatter, drift or resemble each other:

- *Better* is told by what was drawn by lot. If nothing differs, the two names of a round could be
  exchanged for each other, in all its figures at once, and the driver's lot makes each way equally
  likely (Fisher, The design of experiments, 1935, section 21). A difference counts when, of all
  ways to draw, so few would have shown one as clear anywhere in the whole comparison, and at this
  or an earlier look: the step-down test of the largest statistic (Romano and Wolf, Exact and
  approximate stepdown methods for multiple hypothesis testing, 2005), whose chance of error is
  spent look by look (Lan and DeMets, Discrete sequential boundaries for clinical trials, 1983).
  Figures that go up and down together, as sizes of one curve do, cost next to nothing more.
- The statistic is that of Savage (Contributions to the theory of rank order statistics, 1956): the
  logarithm of a launch's rank among all launches of both. What disturbs a launch only ever makes it
  slower, so fast launches tell most, and a slow one may be as slow as it likes. A round in which A
  and B together were slower than in the best rounds weighs less; the weight follows from the sum of
  both, which an exchange leaves as it is: so it favours neither, and the test stays exact.
- A shift between A and B is tested in the same way, once B is moved by it. *Equivalent* are two
  such tests of each figure, one for each margin (Schuirmann, 1987); the intervals hold the shifts
  that the test at the last look does not reject, and the ratio is the one that it finds nothing
  against (Hodges and Lehmann, Estimates of location based on rank tests, 1963).
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
from clustergate.statistics.slow_launches import chance_of_slow, slow_counts

FEWEST = 11
"""Rounds without which nothing is called better: of fewer there are too few ways to draw."""

# The part of the error that is spent: a figure that scatters more with B than with A is not quite
# what the lot assumes.
_CAUTION = 0.5
# After so many rounds nothing is spent yet; after n of them all but their share is: so late looks
# have something left to spend, whenever the last one is.
_UNSPENT = 7
# A round weighs less from this quantile of the rounds' levels on.
_BEST_LEVELS = 0.1
# From so many rounds on, a look follows after a twentieth more of them.
_EVERY_ROUND = 40
_WAYS = 10_000
# Of scores, beyond what single precision holds of a sum.
_DECIMALS = 4
# What is decided does not hold if the opposite is in all of an interval of all rounds alike that
# misses the truth as often as not.
_RATHER = 0.5
# Beyond so many rounds the normal distribution stands for the exact one of signed ranks.
_EXACT_ROUNDS = 60
_MOST_FURTHER = 1000
_HALVINGS = 20
# Slow launches of one alone that are less likely keep both from being equivalent.
_FAULT = 0.05

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Rounds:
    """What the rounds of one job measured: a row per round, a column per figure; NaN: nothing.

    ``better`` has one entry per column.
    """

    a: ArrayLike
    b: ArrayLike
    better: Sequence[Better]


@dataclass(frozen=True)
class Question:
    """What is asked of all figures of a job.

    ``margins`` are the fractions within which B is equivalent, one for all figures or one for each;
    ``error`` is the chance, for each figure, to call equivalent what differs by its margin.
    ``family_error`` is that of calling anything better anywhere although nothing differs. Where
    only a ``slower`` B matters, A alone can be better, and *equivalent* is what is not slower by
    the margin, nor by more than this fraction in the estimate.
    """

    margins: float | Sequence[float] = MARGIN
    family_error: float = FAMILY_ERROR
    error: float = EQUIVALENCE_ERROR
    slower: float | None = None


def compare_rounds(
    jobs: Sequence[Rounds], *, margin: float = MARGIN, family_error: float = FAMILY_ERROR
) -> list[list[Comparison]]:
    """Compare each figure of each job; all that are handed in together are one family.

    A round counts for a figure that any of both measured; a launch without a value is slower than
    any. ``samples_a`` and ``samples_b`` are the rounds until the figure was decided, all of them
    where it was not; ``further_launches`` the further rounds that would probably decide. What is
    better and equivalent at the same look is equivalent, with a remark. The same data yield the
    same answer. Raises :class:`ComparisonError` for tables that do not fit, values that are
    infinite, and a margin or an error that is not between 0 and 1.
    """
    if not 0.0 < margin < 1.0 or not 0.0 < family_error < 1.0:
        raise ComparisonError("compare.chances")
    asked = Question(margin, family_error / max(len(jobs), 1))
    return [answers(job, asked) for job in jobs]


def answers(job: Rounds, asked: Question) -> list[Comparison]:
    """Return what the rounds of one job say of each figure, looked at after every round."""
    trial = Trial(asked)
    count = len(np.asarray(job.a))
    for rounds in {**dict.fromkeys(looks(count)), count: None}:
        a, b = (np.asarray(side, dtype=float)[:rounds] for side in (job.a, job.b))
        trial.look(Rounds(a, b, job.better))
    return trial.comparisons()


def looks(count: int) -> Iterator[int]:
    """Yield the numbers of rounds, up to a count, after which is looked at what they say."""
    rounds = _UNSPENT + 1
    while rounds <= count:
        yield rounds
        rounds += max(1, rounds // 20 if rounds >= _EVERY_ROUND else 1)


def spent(rounds: int) -> float:
    """Return the part of an error that looks may have spent after so many rounds."""
    return 1.0 - _UNSPENT / rounds if rounds > _UNSPENT else 0.0


class Trial:
    """The looks at one job, each at all rounds that there are by then."""

    def __init__(self, asked: Question) -> None:
        self._asked = asked
        self._level = _CAUTION * asked.family_error
        self._table: _Table | None = None

    def _begin(self, figures: int) -> None:
        self._margins = np.log1p(np.broadcast_to(np.asarray(self._asked.margins), figures))
        # The rounds after which each was decided, 0 where it is not: better, below the upper
        # margin, above the lower one.
        self.better = np.zeros(figures, dtype=int)
        self.within = np.zeros((2, figures), dtype=int)
        self._rounds = np.zeros(figures, dtype=int)
        self._critical = np.full(figures, math.inf)
        self._narrow = np.full((2, figures), math.inf)
        self._crossed = np.zeros(_WAYS, dtype=bool)
        self._crossed_within = np.zeros((2, figures, _WAYS), dtype=bool)

    @property
    def decided(self) -> Flags:
        """Which figures are decided."""
        return np.asarray((self.better > 0) | self.equivalent)

    @property
    def equivalent(self) -> Flags:
        """Which figures are equivalent."""
        return np.asarray((self.within > 0).all(axis=0))

    def look(self, job: Rounds) -> None:
        """Look at all rounds so far, of which what is decided needs no further ones.

        Raises :class:`ComparisonError` as :func:`compare_rounds` does.
        """
        table = _Table(job)
        if self._table is None:
            self._begin(table.figures)
        self._table = table
        if not table.figures or not table.rounds:
            return
        still = ~self.decided
        self._rounds[still] = table.rounds
        self._look_for_better(table, still)
        self._look_within(table, still)

    def _look_for_better(self, table: _Table, still: Flags) -> None:
        signs = _signs(table.rounds)
        scores = table.units(table.steps).T @ signs
        if self._asked.slower is None:
            scores = np.maximum(scores, -(table.units(-table.steps).T @ signs))
        scores = np.round(scores, _DECIMALS)
        # What was found equivalent still counts: the lots that left it out chose it.
        family = self.better == 0
        allowed = int(self._level * spent(table.rounds) * _WAYS) - int(self._crossed.sum())
        critical = math.inf
        while family.any():
            largest = scores[family].max(axis=0)
            critical = _critical(largest[~self._crossed], allowed)
            found = family & still & (scores[:, 0] >= critical)
            if not found.any():
                self._crossed |= largest >= critical
                # That which was drawn has crossed nothing that could still be said.
                self._crossed[0] = False
                break
            self.better[found] = table.rounds
            self._critical[found] = critical
            family &= ~found
        self._critical[still & family] = critical

    def _look_within(self, table: _Table, still: Flags) -> None:
        signs, edges = _signs(table.rounds), np.maximum(self._margins - table.steps, 0.0)
        sides = (1,) if self._asked.slower is None else ()
        for side in (0, *sides):
            (columns,) = np.nonzero(still & (self.within[side] == 0))
            if not len(columns):
                continue
            units = table.units(edges if side == 0 else -edges)[:, columns]
            scores = np.round((units.T @ signs) * np.float32(2 * side - 1), _DECIMALS)
            total = int(self._asked.error * spent(table.rounds) * _WAYS)
            for k, row in zip(columns, scores, strict=True):
                crossed = self._crossed_within[side, k]
                critical = _critical(row[~crossed], total - int(crossed.sum()))
                self._narrow[side, k] = critical
                if edges[k] > 0.0 and row[0] >= critical and self._holds(table, int(k), side):
                    self.within[side, k] = table.rounds
                crossed |= row >= critical
                crossed[0] = False
        if not sides:
            self.within[1] = self.within[0]

    def _holds(self, table: _Table, k: int, side: int) -> bool:
        """Tell whether nothing else speaks against what is not slower by a margin.

        That is launches that are slow now and then, or an estimate beyond what is tolerated.
        """
        if table.chance_of_fault(k, side) <= _FAULT:
            return False
        if self._asked.slower is None:
            return True
        allowed = np.full(table.figures, math.log1p(self._asked.slower))
        return not self.better[k] and bool(table.units(allowed)[:, k].sum() <= 0.0)

    def comparisons(self) -> list[Comparison]:
        """Return what was found of each figure at its last look."""
        table = self._table
        if table is None:
            return []
        found: list[Comparison | None] = [None] * table.figures
        for rounds in np.unique(self._rounds):
            columns = np.flatnonzero(self._rounds == rounds)
            part = table.part(int(rounds), columns)
            shifts = part.shifts(self._critical[columns], self._narrow[:, columns])
            for at, k in enumerate(columns):
                told = [float(one[at]) for one in shifts]
                found[k] = self._comparison(part, at, int(k), told)
        return [one for one in found if one is not None]

    def _comparison(self, table: _Table, at: int, k: int, shifts: Sequence[float]) -> Comparison:
        """Return what was found of a figure, the one ``at`` a place of its own table."""
        count, better = table.counts[at], table.better[at]
        if not table.positive[at] or not table.both[at]:
            n, m = table.measured(at)
            told = "measured in no round by both"
            return without_ratio(n, m, told) if table.positive[at] else without_ratio(n, m)
        ratio, low, high, narrow_low, narrow_high = shifts
        differs, equal = bool(self.better[k]), bool(self.equivalent[k])
        only_slower = self._asked.slower is not None
        remark, further = table.missing(at), None
        verdict, confidence = Relation.INCONCLUSIVE, 1.0 - self._level
        if equal and not (differs and only_slower):
            verdict, confidence = Relation.EQUIVALENT, 1.0 - 2 * self._asked.error
            low, high = (low if only_slower else narrow_low), narrow_high
            remark = "a significant difference within the margin" if differs else remark
        elif differs and better is Better.NEITHER:
            remark = "they differ, but neither direction is better for this metric"
        elif differs and _contradicts(table.differences(at), ratio):
            remark = remark or "the slow rounds point the other way"
        elif differs:
            verdict = Relation.A_BETTER if ratio > 0.0 else Relation.B_BETTER
            low, high = (max(low, 0.0), high) if ratio > 0.0 else (low, min(high, 0.0))
        else:
            steps, edge = float(table.steps[at]), float(self._margins[k])
            rooms = [(high - low, abs(ratio)), (narrow_high - narrow_low, edge - abs(ratio))]
            if only_slower:
                rooms = [(2 * (ratio - low), ratio), (2 * (narrow_high - ratio), edge - ratio)]
            further = _further(count, rooms, steps)
            if further is None and not remark:
                remark = (
                    f"the printed resolution is {100 * math.expm1(steps):.2g} %"
                    if steps
                    else f"more than {_MOST_FURTHER} further rounds would be needed"
                )
        sign, ends = (-1.0, (-high, -low)) if better is Better.HIGHER else (1.0, (low, high))
        return from_logarithms(
            verdict, sign * ratio, ends, confidence, (count, count), further, remark
        )


class _Table:
    """A job on logarithms: what each launch cost, endless where it has no value."""

    def __init__(self, job: Rounds) -> None:
        a, b = (np.asarray(side, dtype=float) for side in (job.a, job.b))
        if a.ndim != 2 or a.shape != b.shape or a.shape[1] != len(job.better):
            raise ComparisonError("compare.shapes")
        if np.isinf(a).any() or np.isinf(b).any():
            raise ComparisonError("compare.not-finite")
        self._job = Rounds(a, b, job.better)
        self.better = job.better
        self.rounds, self.figures = a.shape
        self._known = ~np.isnan(a), ~np.isnan(b)
        with np.errstate(invalid="ignore"):
            self.positive = np.asarray(~((a <= 0.0) | (b <= 0.0)).any(axis=0))
        signs = np.array([-1.0 if one is Better.HIGHER else 1.0 for one in job.better])
        neither = np.array([one is Better.NEITHER for one in job.better], dtype=bool)
        both = self._known[0] & self._known[1]
        self.both = both.any(axis=0)
        self.counts = [
            int(n) for n in np.where(neither, both, self._known[0] | self._known[1]).sum(axis=0)
        ]
        with np.errstate(invalid="ignore", divide="ignore"):
            costs = [signs * np.log(side) for side in (a, b)]
        counting = self.positive & self.both
        self._a, self._b = (
            np.where(counting & np.where(neither, both, known), cost, ENDLESS)
            for cost, known in zip(costs, self._known, strict=True)
        )
        self._weights = _weights(np.where(both & self.positive, self._a + self._b, np.nan) / 2)
        self.steps = np.zeros(self.figures)
        whole = self.positive & both.all(axis=0)
        if self.rounds and whole.any():
            self.steps[whole] = printed_steps(a[:, whole].T, b[:, whole].T)
        for k in np.flatnonzero(self.positive & self.both & ~whole):
            rows = both[:, k]
            self.steps[k] = printed_steps(a[rows, k][None], b[rows, k][None])[0]

    def part(self, rounds: int, columns: NDArray[np.intp]) -> _Table:
        """Return the first rounds of some figures."""
        a, b = (np.asarray(side)[:rounds, columns] for side in (self._job.a, self._job.b))
        return _Table(Rounds(a, b, [self.better[k] for k in columns]))

    def measured(self, k: int) -> tuple[int, int]:
        """Return how many rounds A has a value in, and B."""
        a, b = (int(known[:, k].sum()) for known in self._known)
        return a, b

    def missing(self, k: int) -> str:
        """Return which contender lacks values in rounds in which the other has them."""
        a, b = (known[:, k] for known in self._known)
        messages = [
            f"{side} has no value in {n} of {self.rounds} rounds"
            for side, n in (("A", int((b & ~a).sum())), ("B", int((a & ~b).sum())))
            if n
        ]
        return "; ".join(messages)

    def chance_of_fault(self, k: int, side: int) -> float:
        """Return how likely so many slow launches of B are by A's (side 0), or of A by B's."""
        counts = slow_counts(self._a[:, [k]], self._b[:, [k]])
        return chance_of_slow(counts[side], counts[1 - side], self.rounds)

    def differences(self, k: int) -> Floats:
        """Return by how much more B cost, of all rounds that count alike."""
        rows = (self._a[:, k] < ENDLESS) | (self._b[:, k] < ENDLESS)
        return np.asarray((self._b - self._a)[rows, k])

    def units(self, shifts: Floats) -> Singles:
        """Return what each round says (rows) of each figure's B, moved by a shift, in a sum of 1.

        Positive is a slower B. Of several rows of shifts, the figures of one follow the other's.
        """
        several = len(np.atleast_2d(shifts))
        a, b = (np.tile(side, (1, several)) for side in (self._a, self._b))
        moved = np.where(b < ENDLESS, b - shifts.ravel(), ENDLESS)
        ranks = np.log(scipy.stats.rankdata(np.concatenate([a, moved]), axis=0))
        said = np.tile(self._weights, (1, several)) * (ranks[self.rounds :] - ranks[: self.rounds])
        sizes = np.sqrt((said**2).sum(axis=0))
        return np.asarray(said / np.where(sizes > 0.0, sizes, 1.0), dtype=np.float32)

    def shifts(self, critical: Floats, narrow: Floats) -> list[Floats]:
        """Return shifts of B: the estimate, and the ends of the wide and the narrow interval."""
        largest = math.sqrt(self.rounds)
        wide, upper, lower = (np.minimum(one, largest) for one in (critical, *narrow))
        scores = np.array([np.zeros(self.figures), wide, -wide, lower, -upper])
        steps = self.steps * np.array([0.0, -1.0, 1.0, -1.0, 1.0])[:, None]
        return list(self._shifts_at(scores) + steps)

    def _shifts_at(self, scores: Floats) -> Floats:
        """Return the shifts of B after which it has scores: the more it is moved, the lower."""
        known = (self._a < ENDLESS) & (self._b < ENDLESS)
        ends = []
        for smaller, larger in ((self._a, self._b), (self._b, self._a)):
            highest = np.where(known, larger, -ENDLESS).max(axis=0, initial=-ENDLESS)
            ends.append(highest - np.where(known, smaller, ENDLESS).min(axis=0, initial=ENDLESS))
        high, low = (
            np.broadcast_to(end, scores.shape) for end in (ends[0] + 0.01, -ends[1] - 0.01)
        )
        at_low, at_high = (self.units(end[0]).sum(axis=0) for end in (low, high))
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            beyond = self.units(middle).sum(axis=0).reshape(scores.shape) > scores
            low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
        found = np.where(at_low <= scores, -ENDLESS, (low + high) / 2)
        return np.asarray(np.where(at_high >= scores, ENDLESS, found))


def _weights(levels: Floats) -> Floats:
    """Return the weight of each round for each figure; ``levels`` tell how slow both were."""
    held = ~np.isnan(levels).all(axis=0)
    weights = np.ones(levels.shape)
    known = levels[:, held]
    if known.size:
        above = np.maximum(known - np.nanquantile(known, _BEST_LEVELS, axis=0), 0.0)
        typical = np.nanmedian(above, axis=0)
        steps = above / np.where(typical > 0.0, typical, np.inf)
        weights[:, held] = np.nan_to_num(1.0 / np.sqrt(1.0 + steps**2), nan=1.0)
    return weights


def _critical(scores: Singles, allowed: int) -> float:
    """Return from which score on no more ways than allowed have one."""
    least = 10.0**-_DECIMALS / 2
    if allowed <= 0:
        return float(scores.max()) + least
    highest = np.partition(scores, len(scores) - allowed)
    edge = float(highest[len(scores) - allowed])
    if int((scores >= edge).sum()) <= allowed:
        return edge - least
    return edge + least


@functools.lru_cache(maxsize=1)
def _drawn() -> tuple[np.random.Generator, list[Singles]]:
    return np.random.default_rng(0), []


def _signs(rounds: int) -> Singles:
    """Return ways to draw the first rounds, a column each; the first is the one that was drawn."""
    lot, rows = _drawn()
    while len(rows) < rounds:
        row = (1 - 2 * lot.integers(0, 2, size=_WAYS)).astype(np.float32)
        row[0] = 1.0
        rows.append(row)
    return np.stack(rows[:rounds])


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


def _further(count: int, rooms: Sequence[tuple[float, float]], steps: float) -> int | None:
    """Return how many more rounds would probably decide, as widths shrink by the square root.

    Each of ``rooms`` is the width of an interval, and how far its middle is from what it must not
    hold.
    """
    sizes = [float(FEWEST)] if count < FEWEST else []
    for width, room in rooms:
        half = width / 2 - steps
        if room > steps and math.isfinite(half):
            sizes.append(max(count * (half / (room - steps)) ** 2, FEWEST))
    if not sizes:
        return None
    further = math.ceil(min(sizes) - count)
    return max(further, 1) if further <= _MOST_FURTHER else None
