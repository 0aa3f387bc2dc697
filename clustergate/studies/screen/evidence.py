"""How surely the launches at some places (nodes, links) are worse than those elsewhere. Pure.

Were all places sound, a launch at one of them would be exchangeable with a launch at any other, or
better than that by what sound places may differ for good. The chance that launches are as much
worse as they are is then that of Mann and Whitney's U (On a test of whether one of two random
variables is stochastically larger than the other, Ann. Math. Stat. 18, 1947, 50), whatever the
distribution of the noise: no scale enters it, so no fault can inflate that. A fault that comes and
goes shows in some launches alone: how many of the worst ones are at these places is hypergeometric
(R. A. Fisher, The design of experiments, 1935). As the same is asked again while launches come in,
each look has a part of the error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clustergate.stats import MAD
from clustergate.stats.ranks import rank_sum_bound, rank_sum_chance

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

OF_A_MEDIAN = 1.2533
"""Of the normal distribution: the standard deviation of a median, in those of the mean."""

_FEWEST_DIFFERENCES = 3
# The logarithm of what is no chance at all.
_LARGE = 700.0
# So many launches of a unit must be worse than what was launched elsewhere in the same turn.
_MOST_OF_THE_TURNS = 2 / 3
# The worst launches among which those of a fault that comes and goes are looked for, in launches
# of the unit; and what of the error is for that.
_OF_THE_WORST = 1 / 3
_FOR_THE_WORST = 0.3
# What of the error is for comparisons with all others, the rest for those that leave some out.
_WITH_ALL = 0.8
# What of it is for the first look at which anybody could be accused: a plain fault needs no more.
_FIRST_LOOK = 0.8


@dataclass(frozen=True)
class Launches:
    """Levels of launches (the larger the worse), the place of each, and its turn where known.

    In the order of time; ``places`` is how many places there are, numbered from 0.
    """

    levels: Floats
    place: Ints
    places: int
    turn: Ints | None = None

    def medians(self) -> Floats:
        """Return the median level of each place, 0 of one without launches."""
        return grouped_medians(self.levels, self.place, self.places)

    def lower_medians(self) -> Floats:
        """Return the median level of each place, of an even number the better of the middle two.

        One launch of two that was disturbed makes no place slow.
        """
        return grouped_quantile(self.levels, self.place, self.places, 0.5, lower=True)

    def noise(self) -> Floats:
        """Return the standard deviation of each place's median, 0 where too few tell it.

        It is that of successive launches at one place, which no lasting difference can inflate.
        Launches that failed (infinite levels) tell nothing; nor do places that were launched again
        while most were not: those are the ones where something had been disturbed.
        """
        worked = np.flatnonzero(np.isfinite(self.levels))
        order = worked[np.argsort(self.place[worked], kind="stable")]
        again = self.place[order][1:] == self.place[order][:-1]
        differences = np.abs(np.diff(self.levels[order]))[again]
        often = np.bincount(self.place, minlength=self.places)
        few = 2 * (often > 1).sum() <= (often > 0).sum()
        if few or len(differences) < _FEWEST_DIFFERENCES:
            return np.zeros(self.places)
        of_one = MAD * median(differences) / math.sqrt(2)
        return np.asarray(OF_A_MEDIAN * of_one / np.sqrt(np.maximum(often, 1)))

    def chance(self, unit: Bools, control: Bools, allowed: float) -> float:
        """Return how likely the places ``unit`` are so much worse than ``control``, if sound.

        By all of their launches, or by the worst third of them. Sound places differ by ``allowed``
        at most. It is 1 where what was worse was not so in comparison with the control of the same
        turns: whatever slows everything down for a while slows down those, too, that are measured
        again.
        """
        order, place, levels = self._worst_first
        own, other = order[unit[place]], control[place]
        against = levels[other][::-1]
        ahead = len(against) - np.searchsorted(against, self.levels[own] - allowed, side="left")
        m, n = len(own), len(against)
        whole = rank_sum_chance(int(ahead.sum()), m, n) / (1 - _FOR_THE_WORST)
        worst = math.ceil(m * _OF_THE_WORST)
        among = int((ahead + np.arange(1, m + 1) <= worst).sum())
        part = tail_probability(among, worst, m, n) / _FOR_THE_WORST
        chances = [1.0]
        if whole < 1.0 and self._worse_at_once(own, control[self.place]):
            chances.append(whole)
        if part < 1.0 and self._worse_at_once(own[:among], control[self.place]):
            chances.append(part)
        return min(chances)

    @cached_property
    def _worst_first(self) -> tuple[Ints, Ints, Floats]:
        """The launches by falling level: which they are, their places, their levels."""
        order = np.argsort(-self.levels, kind="stable")
        return order, self.place[order], self.levels[order]

    def centred(self) -> Launches:
        """Return these launches around the median of their place: their noise, and nothing else."""
        often = np.bincount(self.place, minlength=self.places)
        # The median of few follows them, and takes a part of their noise along.
        wider = np.sqrt(often / np.maximum(often - 1, 0.5))
        return replace(self, levels=(self.levels - self.medians()[self.place]) * wider[self.place])

    def noticed(self, place: int, among: Bools, allowed: float, chance: float) -> float:
        """Return by how much worse a place must be, for its chance among others to be that low."""
        own = self.place == place
        mine, against = self.levels[own], self.levels[among[self.place] & ~own]
        bound = rank_sum_bound(2 * chance, len(mine), len(against))
        if bound is None:
            return math.inf
        differences = np.sort(np.subtract.outer(against, mine), axis=None)
        return allowed + float(differences[-1 - bound])

    def _worse_at_once(self, own: Ints, other: Bools) -> bool:
        """Tell whether most launches ``own`` were worse than others of their turn."""
        if self.turn is None or not len(own):
            return True
        turns = int(self.turn.max()) + 1
        mine = self.turn[own]
        other = other & (np.bincount(mine, minlength=turns) > 0)[self.turn]
        both = own[(np.bincount(self.turn[other], minlength=turns) > 0)[mine]]
        if 2 * len(both) < len(own):
            return True
        usual = grouped_medians(self.levels[other], self.turn[other], turns)
        worse = self.levels[both] > usual[self.turn[both]]
        return bool(worse.mean() >= _MOST_OF_THE_TURNS)


@lru_cache(maxsize=65536)
def tail_probability(among: int, worst: int, own: int, others: int) -> float:
    """Return how likely that many of the ``worst`` launches of all are ``own`` ones, or more.

    1 where that is no more than must be expected: the median is not below that, so it is no less
    than a half, and interests nobody.
    """
    if among * (own + others) <= worst * own:
        return 1.0
    of_all_choices = log_choices(own + others, worst)
    return math.fsum(
        math.exp(log_choices(own, k) + log_choices(others, worst - k) - of_all_choices)
        for k in range(among, min(worst, own) + 1)
        if worst - k <= others
    )


def number_turns(turns: ArrayLike | None, launches: int) -> Ints | None:
    """Return turns as numbers from 0 without gaps; raises ValueError when they are too few."""
    if turns is None:
        return None
    known = np.asarray(turns, dtype=np.int64)
    if len(known) != launches:
        raise ValueError(f"{len(known)} turns of {launches} measurements")
    return np.unique(known, return_inverse=True)[1]


def expected_by_chance(
    chance: float, units: int, choices: float, left_out: int, trials: int
) -> float:
    """Return how many units look by chance like one of which that ``chance`` is known, at most.

    By Bonferroni over ``units``, over as many choices as ``choices`` is the logarithm of, and over
    the places that were left out of the comparison, chosen from ``trials``. None left out has most
    of the error; leaving out q of them has ``2**-q`` of the rest, for ``C(trials, q)`` comparisons.
    """
    if chance <= 0.0:
        return 0.0
    log = math.log(chance) + math.log(units) + choices
    if left_out:
        log += left_out * math.log(2) + log_choices(trials, left_out) - math.log(1 - _WITH_ALL)
    else:
        log -= math.log(_WITH_ALL)
    return math.exp(min(log, _LARGE))


def error_spent(error: float, own: int, others: int, units: int, at_first: int = 1) -> float:
    """Return the part of ``error`` for a look at a unit of ``own`` launches, beside ``others``.

    Each launch more than those ``at_first`` is a look, from the first on at which the worst of the
    ``units`` could be accused at all, by so many of its launches and that share of the others. The
    first look has most of the error; the 2**k-th to the next power have 2 / ((k + 1) * (k + 2)) of
    the rest together. Each of them has half of that, for they see nearly the same launches: that
    any partial sum is beyond a limit is at most twice as likely as that the last one is (P. Levy's
    inequality).
    """
    surest = (1 - _FOR_THE_WORST) * _WITH_ALL * _FIRST_LOOK
    least, first = math.log(units / error / surest), min(at_first, own)
    while first < own and least > log_choices(first + others * first // own, first):
        first += 1
    octave = (own - first + 1).bit_length()
    return error * (_FIRST_LOOK if octave == 1 else (1 - _FIRST_LOOK) / (octave * (octave + 1)))


def log_choices(n: int, k: int) -> float:
    """Return the logarithm of the number of choices of k from n."""
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def median(values: Floats) -> float:
    """Return the median; of few values it takes a tenth of what numpy's takes."""
    ordered = np.sort(values)
    return float(ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def grouped_medians(values: Floats, group: Ints, groups: int) -> Floats:
    """Return the median of the values of each group, 0 of a group without any."""
    return grouped_quantile(values, group, groups, 0.5)


def grouped_quantile(
    values: Floats, group: Ints, groups: int, share: float, *, lower: bool = False
) -> Floats:
    """Return that quantile of the values of each group, 0 of a group without any.

    Between two values it is interpolated, or the ``lower`` of them.
    """
    if not len(values):
        return np.zeros(groups)
    order = np.lexsort((values, group))
    ordered = values[order]
    starts = np.searchsorted(group[order], np.arange(groups + 1))
    counts = np.diff(starts)
    place = starts[:-1] + np.maximum(counts - 1, 0) * share
    below = np.minimum(np.floor(place).astype(np.int64), len(ordered) - 1)
    quantile = ordered[below]
    if not lower:
        above = np.minimum(np.ceil(place).astype(np.int64), len(ordered) - 1)
        quantile = quantile + (place - below) * (ordered[above] - quantile)
    return np.where(counts > 0, quantile, 0.0)
