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
- A launch counts by how far it is from the mean of all launches of both within a window around it,
  the mean shift of Fukunaga and Hostetler (The estimation of the gradient of a density function,
  1975): which way launches become more frequent. It is what tells most of a shift, by an estimate
  of the launches' own distribution (Beran, Asymptotically efficient adaptive rank estimates in
  location models, 1974): launches near a sharp peak tell much, and those that something disturbed
  next to nothing, wherever they lie. The window is what A and B typically differ by in a round. A
  round in which both were slower than in the best rounds weighs less. All of that is of A and B
  together, which an exchange leaves as they are: it favours neither, and the test stays exact. A
  benchmark as a whole counts by the sum over its figures.
- A shift between A and B is tested in the same way, once B is moved by it. *Equivalent* are two
  such tests of each figure, one for each margin (Schuirmann, 1987); the intervals hold the shifts
  that the test at the last look does not reject, and the ratio is the one that it finds nothing
  against (Hodges and Lehmann, Estimates of location based on rank tests, 1963).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clustergate.core.model import BadRequest, Better
from clustergate.core.reasons import Words
from clustergate.stats.comparison import (
    COMPARE_CHANCES,
    COMPARE_NOT_FINITE,
    ENDLESS,
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
from clustergate.stats.slow_launches import (
    chance_of_slow,
    rounds_to_rule_out,
    slow_counts,
)

FEWEST = 10
"""Rounds without which nothing is called better: of fewer there are too few ways to draw."""
SLOW_LAUNCHES = "intermittently slow launches are not ruled out"
RATHER_SLOWER = "it is rather slower by more than is tolerated"
"""What keeps a figure open whose typical launches are within the margin."""

# The part of the error that is spent: a figure that scatters more with B than with A is not quite
# what the lot assumes.
_CAUTION = 0.5
# After so many rounds nothing is spent yet; after n of them all but their share is: so late looks
# have something left to spend, whenever the last one is.
_UNSPENT = 6
# That share, to which power, is what a margin has left to spend: to rule one out may take hundreds.
_LATE_MARGINS = 0.7
# A round weighs less from this quantile of the rounds' levels on.
_BEST_LEVELS = 0.1
# Half a window, in what A and B differ by in the middle one of the rounds in which they do: by just
# so much that two contenders that are far apart are still in one window.
_WINDOW = 1.1
# Differences of logarithms that are none.
_NOTHING = 1e-9
# From so many rounds on, a look follows after a twentieth more of them.
_EVERY_ROUND = 40
_WAYS = 10_000
# Of scores, beyond what single precision holds of a sum.
_DECIMALS = 4
# What is decided does not hold if rounds all alike show the opposite with a chance as low as that.
_RATHER = 0.25
_MOST_FURTHER = 1000
_HALVINGS = 20
# Slow launches of one alone that are less likely keep both from being equivalent.
_FAULT = 0.01

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Rounds:
    """What the rounds of one job measured: a row per round, a column per figure; NaN: nothing.

    ``better`` has one entry per column. ``members`` are the columns that a column stands for as a
    whole, if any.
    """

    a: ArrayLike
    b: ArrayLike
    better: Sequence[Better]
    members: Mapping[int, Sequence[int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Hypotheses:
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


def compare_rounds(jobs: Sequence[Rounds], *, margin: float = MARGIN) -> list[list[Comparison]]:
    """Compare each figure of each job; all that are handed in together are one family.

    A round counts for a figure that any of both measured; a launch without a value is slower than
    any. The samples of a :class:`Comparison` are the rounds until the figure was decided, all of
    them where it was not; its further launches the rounds that would probably decide. What is
    better and equivalent at the same look is equivalent, with a remark. The same data yield the
    same answer. Raises :class:`BadRequest` for tables that do not fit, values that are
    infinite, and a margin that is not between 0 and 1.
    """
    if not 0.0 < margin < 1.0:
        raise BadRequest(COMPARE_CHANCES())
    asked = Hypotheses(margin, FAMILY_ERROR / max(len(jobs), 1))
    return [answers(job, asked) for job in jobs]


def answers(job: Rounds, asked: Hypotheses) -> list[Comparison]:
    """Return what the rounds of one job say of each figure, looked at after every round."""
    trial = SequentialTest(asked)
    count = len(np.asarray(job.a))
    for rounds in {**dict.fromkeys(interim_looks(count)), count: None}:
        a, b = (np.asarray(side, dtype=float)[:rounds] for side in (job.a, job.b))
        trial.look(replace(job, a=a, b=b))
    return trial.comparisons()


def interim_looks(count: int) -> Iterator[int]:
    """Yield the numbers of rounds, up to a count, after which is looked at what they say."""
    rounds = _UNSPENT + 1
    while rounds <= count:
        yield rounds
        rounds += max(1, rounds // 20 if rounds >= _EVERY_ROUND else 1)


def alpha_spent(rounds: int, power: float = 1.0) -> float:
    """Return the part of an error that looks may have spent after so many rounds."""
    return 1.0 - (_UNSPENT / rounds) ** power if rounds > _UNSPENT else 0.0


class SequentialTest:
    """The looks at one job, each at all rounds that there are by then."""

    def __init__(self, asked: Hypotheses) -> None:
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
        self._against = [""] * figures
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

        Raises :class:`BadRequest` as :func:`compare_rounds` does.
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
        allowed = int(self._level * alpha_spent(table.rounds) * _WAYS) - int(self._crossed.sum())
        critical = math.inf
        while family.any():
            largest = scores[family].max(axis=0)
            critical = _critical(largest[~self._crossed], allowed)
            better = family & still & (scores[:, 0] >= critical)
            if not better.any():
                self._crossed |= largest >= critical
                # That which was drawn has crossed nothing that could still be said.
                self._crossed[0] = False
                break
            self.better[better] = table.rounds
            self._critical[better] = critical
            family &= ~better
        self._critical[still & family] = critical

    def _look_within(self, table: _Table, still: Flags) -> None:
        signs, edges = _signs(table.rounds), np.maximum(self._margins - table.steps, 0.0)
        sides = (1,) if self._asked.slower is None else ()
        for k in np.flatnonzero(still):
            self._against[k] = ""
        for side in (0, *sides):
            (columns,) = np.nonzero(still & (self.within[side] == 0))
            if not len(columns):
                continue
            units = table.units((edges if side == 0 else -edges)[columns], columns)
            scores = np.round((units.T @ signs) * np.float32(2 * side - 1), _DECIMALS)
            total = int(self._asked.error * alpha_spent(table.rounds, _LATE_MARGINS) * _WAYS)
            for k, row in zip(columns, scores, strict=True):
                crossed = self._crossed_within[side, k]
                critical = _critical(row[~crossed], total - int(crossed.sum()))
                self._narrow[side, k] = critical
                if edges[k] > 0.0 and row[0] >= critical:
                    why = self._speaks_against(table, int(k), side)
                    self._against[k] = why or self._against[k]
                    self.within[side, k] = 0 if why else table.rounds
                crossed |= row >= critical
                crossed[0] = False
        if not sides:
            self.within[1] = self.within[0]

    def _speaks_against(self, table: _Table, k: int, side: int) -> str:
        """Return what else speaks against what is not slower by a margin, if anything.

        That is intermittently slow launches, or an estimate beyond what is tolerated.
        """
        whose = side if self._asked.slower is None else None
        if (
            table.chance_of_fault(k, side) <= _FAULT
            or table.further_to_rule_out(k, whose, 0) is None
        ):
            return SLOW_LAUNCHES
        if self._asked.slower is None:
            return ""
        allowed = np.array([math.log1p(self._asked.slower)])
        slower = self.better[k] or table.units(allowed, [k]).sum() > 0.0
        return RATHER_SLOWER if slower else ""

    def comparisons(self) -> list[Comparison]:
        """Return what was found of each figure at its last look."""
        table = self._table
        if table is None:
            return []
        compared: list[Comparison | None] = [None] * table.figures
        for rounds in np.unique(self._rounds):
            columns = np.flatnonzero(self._rounds == rounds)
            part = table.first(int(rounds))
            shifts = part.shifts(columns, self._critical[columns], self._narrow[:, columns])
            for k, *shift in zip(columns, *shifts, strict=True):
                compared[k] = self._comparison(part, int(k), [float(one) for one in shift])
        return [one for one in compared if one is not None]

    def _comparison(self, table: _Table, k: int, shifts: Sequence[float]) -> Comparison:
        """Return what was found of a figure, by the table of the rounds that it was looked at."""
        count, better = table.counts[k], table.better[k]
        if not table.positive[k] or not table.both[k]:
            n, m = table.measured(k)
            why = "measured in no round by both"
            return without_ratio(n, m, why) if table.positive[k] else without_ratio(n, m)
        ratio, low, high, narrow_low, narrow_high = shifts
        differs, equal = bool(self.better[k]), bool(self.equivalent[k])
        only_slower = self._asked.slower is not None
        remark, further = table.missing(k), None
        verdict, confidence = Relation.INCONCLUSIVE, 1.0 - self._level
        if equal and not (differs and only_slower):
            verdict, confidence = Relation.EQUIVALENT, 1.0 - 2 * self._asked.error
            low, high = (low if only_slower else narrow_low), narrow_high
            remark = "a significant difference within the margin" if differs else remark
        elif differs and better is Better.NEITHER:
            remark = "they differ, but neither direction is better for this metric"
        elif differs and _contradicts(table.differences(k), ratio):
            remark = remark or "the slow rounds point the other way"
        elif differs:
            verdict = Relation.A_BETTER if ratio > 0.0 else Relation.B_BETTER
            low, high = (max(low, 0.0), high) if ratio > 0.0 else (low, min(high, 0.0))
        else:
            steps, edge = float(table.steps[k]), float(self._margins[k])
            # An estimate that may be chance counts as none, or few rounds ask for far too many.
            likely = 0.0 if low <= 0.0 <= high else ratio
            rooms = [(high - low, abs(ratio)), (narrow_high - narrow_low, edge - abs(likely))]
            if only_slower:
                rooms = [(2 * (ratio - low), ratio), (2 * (narrow_high - ratio), edge - likely)]
            remark = remark or self._against[k]
            if remark == SLOW_LAUNCHES:
                sides = (None,) if only_slower else (0, 1)
                each = [table.further_to_rule_out(k, side) for side in sides]
                further = None if None in each else max(filter(None, each), default=None)
            else:
                further = _further(count, rooms[:1] if remark == RATHER_SLOWER else rooms, steps)
                if further is None and max(-low, high) >= ENDLESS > abs(ratio) > edge + steps:
                    # Of an interval without an end nothing is known of how it shrinks: as many
                    # rounds again give it one.
                    further = min(count, _MOST_FURTHER)
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


COMPARE_SHAPES = Words(
    "compare.shapes",
    "A and B need a table of rounds and figures each, of one shape",
)


class _Table:
    """A job on logarithms: what each launch cost, endless where it has no value."""

    def __init__(self, job: Rounds) -> None:
        a, b = (np.asarray(side, dtype=float) for side in (job.a, job.b))
        if a.ndim != 2 or a.shape != b.shape or a.shape[1] != len(job.better):
            raise BadRequest(COMPARE_SHAPES())
        if np.isinf(a).any() or np.isinf(b).any():
            raise BadRequest(COMPARE_NOT_FINITE())
        self._job = Rounds(a, b, job.better, job.members)
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
        self._members = [np.array(job.members.get(k, [k])) for k in range(self.figures)]
        self.steps = np.zeros(self.figures)
        whole = self.positive & both.all(axis=0)
        if self.rounds and whole.any():
            self.steps[whole] = printed_steps(a[:, whole].T, b[:, whole].T)
        for k in np.flatnonzero(self.positive & self.both & ~whole):
            rows = both[:, k]
            self.steps[k] = printed_steps(a[rows, k][None], b[rows, k][None])[0]

    def first(self, rounds: int) -> _Table:
        """Return the first rounds."""
        a, b = (np.asarray(side)[:rounds] for side in (self._job.a, self._job.b))
        return _Table(Rounds(a, b, self.better, self._job.members))

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

    def further_to_rule_out(
        self, k: int, side: int | None, most: int = _MOST_FURTHER
    ) -> int | None:
        """Return how many more rounds would rule faults out, if they go on like that, 0 by now.

        That are those of B, also where no round showed one (None); of what rounds showed those of B
        (side 0), or of A (1).
        """
        tables = (self._a[:, [k]], self._b[:, [k]])
        unseen = 3.0 if side is None else 0.0
        needed = rounds_to_rule_out(*(tables[::-1] if side else tables), most, unseen)
        return None if needed is None else needed - self.rounds

    def differences(self, k: int) -> Floats:
        """Return by how much more B cost, of all rounds that count alike."""
        rows = (self._a[:, k] < ENDLESS) | (self._b[:, k] < ENDLESS)
        return np.asarray((self._b - self._a)[rows, k])

    def units(self, shifts: Floats, columns: Sequence[int] | Ints | None = None) -> Singles:
        """Return what each round says (rows) of each figure's B, moved by a shift, in a sum of 1.

        Positive is a slower B. Of several rows of shifts, the figures of one follow the other's.
        """
        parts = self._members if columns is None else [self._members[k] for k in columns]
        rows = np.atleast_2d(shifts)
        sizes = [len(part) for part in parts]
        flat = np.tile(np.concatenate(parts), len(rows))
        a, b = self._a[:, flat], self._b[:, flat]
        moved = np.where(b < ENDLESS, b - np.repeat(rows, sizes, axis=1).ravel(), ENDLESS)
        said = self._weights[:, flat] * _said(a, moved)
        starts = np.cumsum([0, *(sizes * len(rows))[:-1]])
        said = np.add.reduceat(said, starts, axis=1)
        lengths = np.sqrt((said**2).sum(axis=0))
        return np.asarray(said / np.where(lengths > 0.0, lengths, 1.0), dtype=np.float32)

    def shifts(self, columns: Ints, critical: Floats, narrow: Floats) -> list[Floats]:
        """Return shifts of B: the estimate, and the ends of the wide and the narrow interval."""
        largest = math.sqrt(self.rounds)
        wide, upper, lower = (np.minimum(one, largest) for one in (critical, *narrow))
        scores = np.array([np.zeros(len(columns)), wide, -wide, lower, -upper])
        steps = self.steps[columns] * np.array([0.0, -1.0, 1.0, -1.0, 1.0])[:, None]
        return list(self._shifts_at(scores, columns) + steps)

    def _shifts_at(self, scores: Floats, columns: Ints) -> Floats:
        """Return the shifts of B after which it has scores: the more it is moved, the lower."""
        ends = []
        for smaller, larger in ((self._a, self._b), (self._b, self._a)):
            known = (smaller < ENDLESS) & (larger < ENDLESS)
            apart = np.where(known, larger, -ENDLESS).max(axis=0, initial=-ENDLESS)
            apart -= np.where(known, smaller, ENDLESS).min(axis=0, initial=ENDLESS)
            ends.append([apart[self._members[k]].max() + 0.01 for k in columns])
        high, low = (np.broadcast_to(end, scores.shape) for end in (ends[0], -np.array(ends[1])))
        at_low, at_high = (self.units(end[0], columns).sum(axis=0) for end in (low, high))
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            beyond = self.units(middle, columns).sum(axis=0).reshape(scores.shape) > scores
            low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
        shifts = np.where(at_low <= scores, -ENDLESS, (low + high) / 2)
        return np.asarray(np.where(at_high >= scores, ENDLESS, shifts))


def _said(a: Floats, b: Floats) -> Floats:
    """Return what each round says of each figure: the score of B's launch, less that of A's.

    The score is the distance from the mean of the launches within a window, in half windows. Where
    rounds differ by more than the launches of a round do, it is that within the round. What has no
    value is endless, and slower than any.
    """
    rounds = len(a)
    both = np.concatenate([a, b])
    known = (a < ENDLESS) & (b < ENDLESS)
    apart = np.abs(b - a)
    typical = _middle(np.where(known & (apart > _NOTHING), apart, np.nan), _NOTHING)
    levels = np.where(known, (a + b) / 2, np.nan)
    levels -= _middle(levels, 0.0)
    common = _middle(np.abs(levels), 0.0) > typical
    values = both - np.tile(np.where(common & known, levels, 0.0), (2, 1))
    ordered, half = np.sort(values, axis=0), _WINDOW * typical
    sums = np.concatenate([np.zeros((1, a.shape[1])), np.cumsum(ordered, axis=0)])
    scores = np.empty(both.shape)
    for k, width in enumerate(half.tolist()):
        low = np.searchsorted(ordered[:, k], values[:, k] - width, side="left")
        high = np.searchsorted(ordered[:, k], values[:, k] + width, side="right")
        means = (sums[high, k] - sums[low, k]) / (high - low)
        scores[:, k] = (values[:, k] - means) / width
    scores[both >= ENDLESS] = 1.0
    return np.asarray(scores[rounds:] - scores[:rounds])


def _middle(values: Floats, otherwise: float) -> Floats:
    """Return the middle one of each column's values, the lower of two; NaN is no value."""
    ordered, counts = np.sort(values, axis=0), (~np.isnan(values)).sum(axis=0)
    if not len(values):
        return np.full(values.shape[1], otherwise)
    middle = np.take_along_axis(ordered, np.maximum(counts - 1, 0)[None] // 2, axis=0)[0]
    return np.where(counts > 0, middle, otherwise)


def _weights(levels: Floats) -> Floats:
    """Return the weight of each round for each figure; ``levels`` tell how slow both were."""
    held = ~np.isnan(levels).all(axis=0)
    weights = np.ones(levels.shape)
    known = levels[:, held]
    if known.size:
        # Those that expect NaN take twenty times as long.
        missing = np.isnan(known).any()
        quantile, median = (np.nanquantile, np.nanmedian) if missing else (np.quantile, np.median)
        above = np.maximum(known - quantile(known, _BEST_LEVELS, axis=0), 0.0)
        typical = median(above, axis=0)
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


@functools.lru_cache(maxsize=1)
def _signs(rounds: int) -> Singles:
    """Return ways to draw the first rounds, a column each; the first is the one that was drawn."""
    lot, rows = _drawn()
    while len(rows) < rounds:
        row = (1 - 2 * lot.integers(0, 2, size=_WAYS)).astype(np.float32)
        row[0] = 1.0
        rows.append(row)
    return np.stack(rows[:rounds])


def _contradicts(alike: Floats, ratio: float) -> bool:
    """Tell whether rounds that all weigh alike rather show the opposite of a ratio.

    By the ranks of their differences (Wilcoxon, Individual comparisons by ranking methods, 1945).
    """
    opposite = "less" if ratio > 0.0 else "greater"
    if not alike.any():
        return False
    return bool(scipy.stats.wilcoxon(alike, alternative=opposite).pvalue <= _RATHER)


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
