"""How surely the launches at some places (nodes, links) are worse than those elsewhere. Pure.

Were all places sound, a launch at one of them would be exchangeable with a launch at any other, or
better than that by what sound places may differ for good. The chance that launches are as much
worse as they are is then that of Mann and Whitney's U (On a test of whether one of two random
variables is stochastically larger than the other, Ann. Math. Stat. 18, 1947, 50), whatever the
distribution of the noise: no scale enters it, so no fault can inflate that. As the same is asked
again and again while launches come in, each doubling of the launches has a part of the error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clustergate.statistics.ranks import rank_sum_bound, rank_sum_chance

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

MAD = 1.4826
"""Of the normal distribution: the standard deviation, in median absolute deviations."""

# Of the normal distribution: the standard deviation of a median, in those of the mean.
_OF_A_MEDIAN = 1.2533
_FEWEST_DIFFERENCES = 3
# So many launches of a unit must be worse than what was launched elsewhere in the same turn.
_MOST_OF_THE_TURNS = 2 / 3


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
        return np.asarray(_OF_A_MEDIAN * of_one / np.sqrt(np.maximum(often, 1)))

    def chance(self, unit: Bools, control: Bools, allowed: float) -> float:
        """Return how likely the places ``unit`` are so much worse than ``control``, if sound.

        Sound places differ by ``allowed`` at most. It is 1 where the unit was not worse than what
        the control showed in the same turns: whatever slows everything down for a while slows down
        those, too, that are measured again.
        """
        own, other = unit[self.place], control[self.place]
        against = np.sort(self.levels[other])
        mine = self.levels[own] - allowed
        at_least = len(against) - np.searchsorted(against, mine, side="left")
        chance = rank_sum_chance(int(at_least.sum()), len(mine), len(against))
        return chance if chance == 1.0 or self._worse_at_once(own, other) else 1.0

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

    def _worse_at_once(self, own: Bools, other: Bools) -> bool:
        if self.turn is None or not own.any():
            return True
        turns = int(self.turn.max()) + 1
        other = other & (np.bincount(self.turn[own], minlength=turns) > 0)[self.turn]
        both = own & (np.bincount(self.turn[other], minlength=turns) > 0)[self.turn]
        if 2 * both.sum() < own.sum():
            return True
        usual = grouped_medians(self.levels[other], self.turn[other], turns)
        worse = self.levels[both] > usual[self.turn[both]]
        return bool(worse.mean() >= _MOST_OF_THE_TURNS)


def numbered(turns: ArrayLike | None, launches: int) -> Ints | None:
    """Return turns as numbers from 0 without gaps; raises ValueError when they are too few."""
    if turns is None:
        return None
    known = np.asarray(turns, dtype=np.int64)
    if len(known) != launches:
        raise ValueError(f"{len(known)} turns of {launches} measurements")
    return np.unique(known, return_inverse=True)[1]


def of_all(chance: float, units: int, choices: float, left_out: int, of: int) -> float:
    """Return the chance that any unit looks like one of which that ``chance`` is known.

    By Bonferroni over ``units``, over as many choices as ``choices`` is the logarithm of, and over
    the places that were left out of the comparison, chosen from ``of``: q of them stand for
    ``2**(q + 1) * C(of, q)`` comparisons, so that all numbers of them together count once.
    """
    if chance <= 0.0:
        return 0.0
    log = math.log(chance) + math.log(units) + choices
    log += (left_out + 1) * math.log(2) + log_choices(of, left_out)
    return math.exp(min(log, 0.0))


def spent(error: float, launches: int) -> float:
    """Return the part of ``error`` for units of which the most launched was launched so often.

    The n-th doubling has 1 / (n * (n + 1)), which is 1 in all.
    """
    doubling = max(launches, 1).bit_length()
    return error / (doubling * (doubling + 1))


def log_choices(n: int, k: int) -> float:
    """Return the logarithm of the number of choices of k from n."""
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def median(values: Floats) -> float:
    """Return the median; of few values it takes a tenth of what numpy's takes."""
    ordered = np.sort(values)
    return float(ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def grouped_medians(values: Floats, group: Ints, groups: int) -> Floats:
    """Return the median of the values of each group, 0 of a group without any."""
    order = np.lexsort((values, group))
    ordered = values[order]
    starts = np.searchsorted(group[order], np.arange(groups + 1))
    counts = np.diff(starts)
    lower = starts[:-1] + np.maximum(counts - 1, 0) // 2
    upper = starts[:-1] + counts // 2
    last = max(len(ordered) - 1, 0)
    if not len(ordered):
        return np.zeros(groups)
    medians = (ordered[np.minimum(lower, last)] + ordered[np.minimum(upper, last)]) / 2
    return np.where(counts > 0, medians, 0.0)
