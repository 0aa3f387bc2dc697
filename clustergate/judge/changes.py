"""Which sets of figures became slower than in their baseline, and than their neighbours. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clustergate.judge.contrasts import Contrasts, contrasts
from clustergate.judge.hypotheses import Hypothesis, hypotheses
from clustergate.judge.kinds import FigureId
from clustergate.judge.scatter import (
    EXCLUSIVE_NODES,
    SMALLEST,
    Prior,
    Scatter,
    components,
    scatter,
    shrunk,
    trend,
)
from clustergate.stats.one_thread import scipy

Floats = NDArray[np.float64]

# The chance that an unchanged run has anything that looks slow, if nothing of it were alike: it is
# rather 1 %, and launched again, next to nothing of that is left.
_SUSPICION = 0.20
# The same of what nobody launches again: ReFrame's own pass and fail, days of a baseline.
FALSE_ALARM = 0.005
# Nothing is called slower for less, however well it is known.
TOLERATED = math.log(1.03)
# Of a change, the part that a set must have moved by itself: else a neighbour became faster. Where
# it scatters much by itself that must be so many times as likely, as a logarithm.
_OWN_PART, _AS_LIKELY = 2 / 3, math.log(20.0)
# A slow-down that hides in no figure that passed.
HIDDEN = math.log(1.10)
# Of that so much is left in doubt, however well a figure is known: what is unchanged loses nothing.
IN_DOUBT = math.log(1.05)
_SURELY, _OFTEN = 0.99, 0.80
# Of what is rounded: its variance, the run's and the baseline's, and by how many steps it differs.
_OF_ROUNDED, _PRINTED = 2 / 12, 1.5
# Of a control and of a set, by weight, what speaks for the rest that a run lacks.
_ENOUGH_OF_A_CONTROL, _ENOUGH_OF_A_SET = 0.5, 0.8
NOMINAL = 0.5
"""Of a figure's variance in all, about the part within a day."""


@dataclass(frozen=True)
class Past:
    """What the runs of a baseline said of some figures, as logarithms, positive is worse.

    ``values`` has a row for each run, of which ``days`` tells the day, and nan for what it lacks.
    ``steps`` is what a figure differs by where its last printed digit does. ``exclusive`` tells
    whether a job had its nodes for itself, so that its figures vary as the ``prior`` says.
    ``variances`` are those of the figures between runs of a day where they are known from
    elsewhere, as of a single run. ``means`` is how many means were taken of a figure's runs, one
    for each distance of the nodes, and ``rarer`` by how many times the variance of its change is
    larger, where the run's distance is a rare one.
    """

    figures: Sequence[FigureId]
    days: NDArray[np.int_]
    values: Floats
    steps: Floats | None = None
    exclusive: bool = False
    variances: Floats | None = None
    means: Floats | None = None
    rarer: Floats | None = None
    prior: Prior = EXCLUSIVE_NODES


@dataclass(frozen=True)
class Change:
    """What a run says of a set of figures: all on natural logarithms, positive is worse.

    ``by`` is the change less that of the control, ``own`` that of the set itself. Beyond ``bound``
    it is suspicious. ``spread`` is the standard deviation of ``by`` on an unchanged machine, known
    with so many degrees of ``freedom``, ``own_spread`` that of ``own``; ``at_most`` is what the
    change may be (99 %), and ``hidden`` the same of the change by itself, where that is better
    known. ``since`` is the first day of a baseline that is not the newest one.
    """

    hypothesis: Hypothesis
    by: float
    own: float
    spread: float
    freedom: float
    bound: float
    own_spread: float
    own_bound: float
    at_most: float
    hidden: float
    controlled: bool
    since: str = ""

    @property
    def is_judged(self) -> bool:
        """Whether anything is known of how such a set scatters."""
        return self.freedom > 0 and not math.isnan(self.by)

    @property
    def is_slower(self) -> bool:
        """Whether it is slower than chance explains, by its own doing."""
        if not self.by > self.bound:
            return False
        # The likelihood ratio of "it became slower" and "its neighbours became faster".
        likely = self.by / 2 + _AS_LIKELY * self.own_spread**2 / self.by
        return self.own >= max(_OWN_PART * self.by, likely) or self.own > self.own_bound

    @property
    def is_outdone(self) -> bool:
        """Whether it is slower than its neighbours by what they became faster, within a tenth.

        A baseline of a slow hour looks so. What gained more shows nothing of the hour.
        """
        return self.by > self.bound and not self.is_slower and self.by - self.own <= HIDDEN

    def moved(self, places: Sequence[int], since: str) -> Change:
        """Return it as of figures that stand at other places, and of an earlier baseline."""
        moved = tuple(places[place] for place in self.hypothesis.places)
        return replace(self, hypothesis=replace(self.hypothesis, places=moved), since=since)

    @property
    def sureness(self) -> float:
        return self.by / self.spread if self.spread else math.inf


@dataclass(frozen=True)
class Judge:
    """The hypotheses about the figures of a run, with what their baseline says of each.

    ``chance`` is that of an unchanged run to look slower anywhere. ``weighed`` are the contrasts,
    where another judge of the same figures has them already.
    """

    past: Past
    chance: float = _SUSPICION
    weighed: Contrasts | None = None

    @cached_property
    def hypotheses(self) -> list[Hypothesis]:
        return hypotheses(self.past.figures)

    def among(self, rows: NDArray[np.bool_]) -> Judge:
        """Return the judge that some of the runs make."""
        days, values = self.past.days[rows], self.past.values[rows]
        past = replace(self.past, days=days, values=values)
        return replace(self, past=past, weighed=self._contrasts)

    def changes(self, run: Floats, again: Collection[tuple[int, ...]] = ()) -> list[Change]:
        """Return what a run says of each hypothesis; ``run`` has a value for each figure.

        ``again`` are the places of those that were suspicious before, and now have to confirm it.
        """
        less, plain = self._less_control, self._plain
        by = self._series(self._contrasts.less_control, run[None, :])[0] - less.mean
        own = self._series(self._contrasts.own, run[None, :])[0] - plain.mean
        bounds, own_bounds = self._bounds
        if again:
            asked = np.array([one.places in again for one in self.hypotheses])
            bounds = np.where(asked, np.minimum(self._confirming, bounds), bounds)
        return self._changes((by, own), (less, plain), (bounds, own_bounds))

    def trends(self) -> list[Change]:
        """Return by how much each set became slower from the first run to the last, evenly.

        The days of the runs are numbers whose differences count.
        """
        of, past = self._contrasts, self.past
        alone = np.zeros(len(self.hypotheses), dtype=bool)
        less, plain = (
            trend(self._series(x, past.values), past.days, self._families, controlled)
            for x, controlled in ((of.less_control, of.controlled), (of.own, alone))
        )
        bounds = (self._bounds_of(less), self._bounds_of(plain))
        return self._changes((less.mean, plain.mean), (less, plain), bounds)

    def _changes(
        self, of: tuple[Floats, Floats], known: tuple[Scatter, Scatter], bounds: tuple[Floats, ...]
    ) -> list[Change]:
        """Return changes, each given less its control and by itself."""
        (by, own), (less, plain) = of, known
        surely = np.full(len(by), 1 - _SURELY)
        doubt = _student(less.freedom, surely) * less.spread
        # Tails are of slow launches, and hide nothing where others slow nobody down.
        hides, of_own = (
            _student(one.lent, surely) * one.spread_lent
            if self.past.exclusive
            else _student(one.freedom, surely) * one.spread
            for one in (less, plain)
        )
        # Elsewhere a machine that became faster hides what became slower by itself.
        itself = self.past.exclusive & (of_own < hides)
        hidden = np.where(itself, own, by) + np.maximum(np.where(itself, of_own, hides), IN_DOUBT)
        return [
            Change(
                hypothesis=hypothesis,
                by=float(by[k]),
                own=float(own[k]),
                spread=float(less.spread[k]),
                freedom=float(less.freedom[k]),
                bound=float(bounds[0][k]),
                own_spread=float(plain.spread[k]),
                own_bound=float(bounds[1][k]),
                at_most=float(by[k] + doubt[k]),
                hidden=float(hidden[k]),
                controlled=bool(self._contrasts.controlled[k]),
            )
            for k, hypothesis in enumerate(self.hypotheses)
        ]

    def tolerances(self, compared: int) -> list[float]:
        """Return from where on each figure is slower, seen by itself; infinite for unknown.

        By these one of an unchanged run's ``compared`` figures is slower in one run of 200.
        """
        alone = self._plain
        chance = np.full(len(alone.spread), FALSE_ALARM / max(compared, 1))
        bounds = np.maximum(_student(alone.freedom, chance) * alone.spread, TOLERATED)
        own = dict(zip((one.places for one in self.hypotheses), bounds, strict=True))
        return [float(own[place,]) for place in range(len(self.past.figures))]

    def detectable(self) -> dict[str, float]:
        """Return by level what change is found in 80 % of runs, of its usual set of figures."""
        spread = self._less_control.spread
        surely = self._bounds[0] + float(scipy.special.ndtri(_OFTEN)) * spread
        by_level: dict[str, list[float]] = {}
        for hypothesis, change in zip(self.hypotheses, surely.tolist(), strict=True):
            by_level.setdefault(hypothesis.level, []).append(change)
        return {level: _median(changes) for level, changes in by_level.items()}

    @cached_property
    def _variances(self) -> Floats:
        """The variance of each figure between the runs of a day, else between days."""
        parts = components(self.past.values, self.past.days)
        variances = np.where(parts.runs > parts.days, parts.within, parts.between)
        if self.past.variances is not None:
            variances = self.past.variances
        return np.maximum(variances, np.maximum(_OF_ROUNDED * self.steps**2, SMALLEST))

    @property
    def steps(self) -> Floats:
        """What part of each figure its last printed digit is, 0 of a fine one."""
        steps = self.past.steps
        return np.zeros(len(self.past.figures)) if steps is None else steps

    @cached_property
    def _kinds(self) -> NDArray[np.str_]:
        return np.array([figure.kind for figure in self.past.figures])

    @cached_property
    def _contrasts(self) -> Contrasts:
        if self.weighed is not None:
            return self.weighed
        # A few runs tell a variance badly, so that of the usual figure of its kind is added.
        precision = 1.0 / (self._variances + self._of_kind)
        return contrasts(self.past.figures, self.hypotheses, precision)

    @cached_property
    def _of_kind(self) -> Floats:
        """Of each figure the variance of the usual one of its kind."""
        kinds = {*self._kinds.tolist()}
        usual = {kind: _median(self._variances[self._kinds == kind]) for kind in kinds}
        return np.array([usual[kind] for kind in self._kinds])

    @property
    def _usual(self) -> Floats:
        """The same with what a figure's printed digits add."""
        return self._of_kind + _OF_ROUNDED * self.steps**2

    def _series(self, coefficients: Any, values: Floats) -> Floats:
        """Return contrasts run by run; nan where too many of its figures are missing.

        A set, and its control, count by those of their figures that a run has, where these weigh
        enough of it.
        """
        missing = np.isnan(values)
        if not missing.any():
            whole_runs: Floats = (coefficients @ values.T).T
            return whole_runs
        own = self._contrasts.own
        controls = own - coefficients
        # Levels differ from figure to figure, and what is left of some is no level of all.
        usual = self._levels
        moved = np.where(missing, 0.0, values - usual)
        present = (~missing).T.astype(float)
        weights, of_set = controls @ present, own @ present
        whole = np.asarray(controls.sum(axis=1)).ravel()[:, None]
        share = np.where(whole > 0, weights / np.where(whole > 0, whole, 1.0), 1.0)
        few = (share < _ENOUGH_OF_A_CONTROL) | (of_set < _ENOUGH_OF_A_SET)
        control = (controls @ moved.T) / np.where(few, 1.0, share)
        of_own = (own @ moved.T) / np.where(few, 1.0, of_set)
        series: Floats = (of_own - control + (coefficients @ usual)[:, None]).T
        return np.where(few.T, np.nan, series)

    @cached_property
    def _levels(self) -> Floats:
        """What each figure was in the mean of the runs, 0 for what none has."""
        known = ~np.isnan(self.past.values)
        sums: Floats = np.where(known, self.past.values, 0.0).sum(axis=0)
        means: Floats = sums / np.maximum(known.sum(axis=0), 1)
        return means

    @cached_property
    def _families(self) -> list[tuple[str, str]]:
        kinds = [one.kind for one in self.past.figures]
        return [(x.level, max(kinds[place] for place in x.places)) for x in self.hypotheses]

    @cached_property
    def _less_control(self) -> Scatter:
        """How contrasts scatter less their control."""
        of, figures = self._contrasts, self.past.figures
        known = self._scatter(of.less_control, of.controlled)
        unplaced = [any(figures[p].unplaced for p in one.places) for one in self.hypotheses]
        # Nodes that lie far, nobody knows, and a slow network look alike without neighbours.
        freedom = np.where(unplaced & ~of.controlled, 0.0, known.freedom)
        return self._placed(replace(known, freedom=freedom))

    @cached_property
    def _plain(self) -> Scatter:
        """How contrasts scatter by themselves."""
        alone = np.zeros(len(self.hypotheses), dtype=bool)
        return self._placed(self._scatter(self._contrasts.own, alone))

    def _scatter(self, coefficients: Any, controlled: NDArray[np.bool_]) -> Scatter:
        past = self.past
        return scatter(
            self._series(coefficients, past.values),
            past.days,
            self._families,
            self._day_of(coefficients, controlled),
            self._variance_of(coefficients, controlled, self._usual),
            self._variance_of(coefficients, controlled, self._prior) if past.exclusive else None,
            controlled,
            _OF_ROUNDED * (coefficients.power(2) @ self.steps**2),
            self._most_of(past.means) - 1.0,
            past.prior.freedom,
        )

    def _most_of(self, single: Floats | None) -> Floats:
        """Return the most that any figure of each hypothesis has, 1 where nothing is given."""
        if single is None:
            return np.ones(len(self.hypotheses))
        return np.array([single[list(one.places)].max() for one in self.hypotheses])

    def _placed(self, one: Scatter) -> Scatter:
        """Return a scatter around the mean of the distance of a run's nodes."""
        times = np.sqrt(self._most_of(self.past.rarer))
        return replace(one, spread=one.spread * times, spread_lent=one.spread_lent * times)

    def _variance_of(
        self, coefficients: Any, controlled: NDArray[np.bool_], single: Floats
    ) -> Floats:
        """Return the variance of contrasts from that of single figures.

        Figures of a kind share a part of their day, which a difference to neighbours is free of:
        of ten sets of 22 sizes of IMB's collectives on ARCHER2 it had 0.08 of a figure's variance,
        which is what it would be if figures were independent.
        """
        together = self._contrasts.own @ single
        if not self.past.prior.together:
            together *= shrunk(self._contrasts.squares)
        apart: Floats = coefficients.power(2) @ single
        return np.where(controlled, apart, together)

    def _day_of(self, coefficients: Any, controlled: NDArray[np.bool_]) -> Floats:
        """Return by what variance the days of contrasts are guessed to differ.

        Where others use the nodes, too, all figures of a set may share what a day does to it.
        """
        of_set = self._variance_of(coefficients, controlled, self._variances)
        if self.past.exclusive:
            return of_set
        return np.where(controlled, self._contrasts.own @ self._variances, of_set)

    @cached_property
    def _prior(self) -> Floats:
        """What figures of each kind vary by on exclusive nodes, more where this machine's do."""
        seen = self._of_kind
        if self.past.variances is not None:
            seen = np.maximum(seen, self._variances)
        known = np.array([self.past.prior.deviations[kind] for kind in self._kinds])
        prior: Floats = np.maximum(seen / NOMINAL, known**2)
        return prior

    @property
    def _confirming(self) -> Floats:
        """From where on a change is confirmed: what was suspected is no longer one of many.

        Where others use the nodes, too, launches have tails, and that bound would be theirs.
        """
        if not self.past.exclusive:
            return self._bounds[0]
        less = self._less_control
        chance = np.full(len(less.spread), 1 - _SURELY)
        return np.maximum(_student(less.freedom, chance) * less.spread, self._least)

    @cached_property
    def _bounds(self) -> tuple[Floats, Floats]:
        """From where on a change is suspicious: less its control, and by itself."""
        return self._bounds_of(self._less_control), self._bounds_of(self._plain)

    def _bounds_of(self, known: Scatter) -> Floats:
        levels = Counter(one.level for one in self.hypotheses)
        of_level = np.array([levels[x.level] for x in self.hypotheses])
        chance = self.chance / len(levels) / of_level
        if not self.past.exclusive:
            # What a day does to all of a kind, launches of the same day confirm.
            once = np.minimum(chance, FALSE_ALARM / of_level)
            chance = np.where(self._contrasts.controlled, chance, once)
        return np.maximum(_student(known.freedom, chance) * known.spread, self._least)

    @cached_property
    def _least(self) -> Floats:
        """What is tolerated; neighbouring values that can be printed are no change either."""
        printed: Floats = _PRINTED * np.sqrt(self._contrasts.own.power(2) @ self.steps**2)
        return np.maximum(printed, TOLERATED)


def _student(freedom: Floats, chance: Floats) -> Floats:
    """Return the upper quantiles of Student's t; infinite where nothing is known."""
    known = freedom > 0
    quantiles = -scipy.special.stdtrit(np.where(known, np.minimum(freedom, 1e9), 1.0), chance)
    return np.where(known, quantiles, np.inf)


def _median(values: Sequence[float] | Floats) -> float:
    return float(np.median(values)) if len(values) else 0.0


def by_place(changes: Iterable[Change], figures: int) -> list[list[Change]]:
    """Return of each of so many figures, by its place, what is said of the sets that hold it."""
    holding: list[list[Change]] = [[] for _ in range(figures)]
    for change in changes:
        for place in change.hypothesis.places:
            holding[place].append(change)
    return holding


def slower(changes: Sequence[Change]) -> list[Change]:
    """Return the slower sets that say most: the surest first, and none that overlaps another.

    Several of them are told as the stack that they make up, where that is slower as a whole.
    """
    slow = [one for one in changes if one.is_slower]
    chosen = surest(slow)
    for whole in slow:
        places = set(whole.hypothesis.places)
        parts = [one for one in chosen if places.issuperset(one.hypothesis.places)]
        held = sum(len(one.hypothesis.places) for one in parts)
        if whole.hypothesis.level == "stack" and len(parts) > 1 and 2 * held > len(places):
            chosen = apart([whole, *chosen])
    return chosen


def surest(changes: Iterable[Change]) -> list[Change]:
    """Return the surest of some changes, and those that overlap none that is surer."""
    return apart(sorted(changes, key=lambda one: -one.sureness))


def apart(ordered: Sequence[Change]) -> list[Change]:
    """Return the first of some changes, and those that overlap none before them."""
    taken: set[int] = set()
    chosen = []
    for change in ordered:
        if taken.isdisjoint(change.hypothesis.places):
            taken.update(change.hypothesis.places)
            chosen.append(change)
    return chosen
