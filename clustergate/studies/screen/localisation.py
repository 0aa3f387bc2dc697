"""From what pairs of nodes reached: which node, which link, which switch is to blame. Pure.

A level is the natural logarithm of a figure, turned so that positive is worse, and infinite where
nothing was measured because the launch failed. What is expected of the level of a pair is a centre,
one for the pairs on one switch and one for the others.

Faults only make slower, and fewer than half of the nodes are bad: a first centre is the lower
quartile, and the pairs of nodes that are slow with most of their partners count no further (as in
the concentration steps of P. J. Rousseeuw and K. Van Driessen, Technometrics 41, 1999, 212), where
"slow" begins so high that such nodes are a minority. The noise of a pair is the larger of two: the
median absolute deviation of the pairs (F. R. Hampel, The influence curve, J. Am. Stat. Assoc. 69,
1974, 383), which holds their lasting differences, and what successive launches of one pair differ
by. A pair is *slow* when its median lies beyond the expected by more than is tolerated and by more
than four times that noise. That is a doubt, and says what to measure again.

Accusations rest on ranks and not on those scales (:mod:`clustergate.studies.screen.evidence`). A
node is judged by all launches of its row, so noise of single pairs that would hide one of them does
not hide the node. A unit (a link, a node, a block of links between two switches) with r links, of
which b were chosen, is that much worse than the rest by chance with at most::

    units * C(r, b) * C(others, q) * P / w(q)

where q other suspects were left out of the rest, so that one fault does not hide another, which has
the share w(q) of the error. It is accused when that is below its part of the error that is granted
to the whole family. That it is the
node and not some of its links takes the better half of its links to be worse than the rest, too:
were no more than half of them bad, those would be sound. Nor is a link accused that is not worse
than the other links of its nodes.
"""

from __future__ import annotations

import enum
import math
import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from clustergate.stats import MAD
from clustergate.studies.screen.evidence import (
    OF_A_MEDIAN,
    Bools,
    Floats,
    Ints,
    Launches,
    error_spent,
    expected_by_chance,
    grouped_medians,
    grouped_quantile,
    log_choices,
    median,
    number_turns,
)

FAMILY_ERROR = 0.01
"""Of a screening of sound nodes: the chance that anything is accused, over all its metrics."""
TOLERATED = math.log(1.10)
"""What is never called slow, however well it is known: 10 %."""
TOO_NOISY = math.log(2.0)
"""Whoever is twice as slow must be seen, or nobody was screened."""
DOUBTFUL = 0.045
"""What fewer sound nodes look like, of as many as the square root of all, is measured again."""


_SCALES = 4.0
# For the normal distribution: how much the lower half of it scatters around its lower quartile.
_LOWER_MAD = 2.4
# Levels of failed launches: far beyond what any fault can slow down.
_FAILED = math.log(1e6)
_FEW_LINKS = 3
# What comes and goes shows in the worst launches of a node.
_SELDOM = 5 / 6
# Other nodes that may be bad as well, and hide what one does.
_MOST_BESIDE = 3
_FEWEST_OF_A_PART = 3
_FEWEST_OF_A_SWITCH = 3
_MOST_OF_A_SWITCH = 0.75
_FEWEST_OF_A_CLASS = 3
# What nearly all places would have shown is said to be seen.
_NEARLY_ALL = 0.95
# Of all pairs so many may be launched again in place of all.
_FEW_OF_ALL = 1 / 6
# Of more places the scale is known well enough, and ranks add nothing.
_FEW_PLACES = 64
# Where so many nodes are better than all others, those may be slow.
_FEWEST_BETTER = 1 / 4
# What is better is no chance when it was launched so often.
_OFTEN = 4
# After so many launches ranks alone say whether it is in doubt.
_MANY = 8
# For each far slower launch there must be so many at its place to call it chance: of a fault that
# acts in a third of the launches, none of nine others shows it with 3 %.
_FOR_A_FAR_ONE = 10
# Where nodes are many, those of the slowest launches are launched again: so many, and so often for
# each slow launch. Of seven launches that are slow one time in three, two are with 74 %.
_MOST_RETURNING, _FOR_A_SLOW_ONE = 16, 7
# What of the error of pairs is for nodes: of those a job can be kept away.
_FOR_NODES = 2 / 3
# That it is all of a node and not some of its links, once it is one of them.
_ALL_OF_IT = 0.05
# Links that are judged one by one, the worst first.
_MOST_LINKS = 256


class Unit(enum.Enum):
    """What can be to blame."""

    NODE = "node"
    PART_OF_NODE = "part of a node's links"
    LINK = "link"
    SWITCH = "switch"
    BETWEEN_SWITCHES = "links between switches"
    INSIDE_SWITCH = "links inside a switch"


@dataclass(frozen=True)
class Blame:
    """One unit that is to blame.

    ``nodes`` are numbers: one of a node, two of a link, those concerned of a switch; ``switches``
    are numbers, too. ``slow`` of ``links`` links were slow, failed ones among them. ``factor`` is
    by how many times the figure is worse, infinite where most launches failed; ``chance`` how
    likely it is at most that sound nodes look like that anywhere in this family. ``partners`` of a
    part of a node's links are the nodes at their other ends. ``seen`` are the best and the worst
    level of its launches, ``elsewhere`` those of all launches of which nothing is suspected.
    ``seldom`` says that most launches were as usual: ``factor`` is then that of the worst third.
    """

    unit: Unit
    nodes: tuple[int, ...]
    switches: tuple[int, ...]
    slow: int
    links: int
    observations: int
    factor: float
    chance: float
    partners: tuple[int, ...] = ()
    seen: tuple[float, float] = (math.nan, math.nan)
    elsewhere: tuple[float, float] = (math.nan, math.nan)
    seldom: bool = False

    @property
    def failed(self) -> bool:
        """Whether it is not slow, but does not work at all."""
        return math.isinf(self.factor)


@dataclass(frozen=True)
class Located:
    """What the observations of one metric say.

    ``centres`` are the levels of sound pairs by class (``same switch``, ``other``, or ``all``),
    ``scale`` is the noise of a pair, ``threshold`` what is slow beyond the expected, all natural
    logarithms; ``noticed`` is what would at least have become a doubt with nearly every pair, and
    ``launches`` how often the usual one was launched. Where nothing worked there are no centres.
    ``doubts`` are pairs (or single nodes)
    that were slow and not surely enough to accuse anybody, ``suspects`` nodes of which the same
    holds, ``unmeasured`` nodes of which nothing is known, ``trusted`` those that were slow with
    nobody. ``faster`` are pairs (or single nodes) that are better than the others by as much as
    would be called slow. ``outnumbering`` are the other nodes where they are too many to be the
    exception: either they are slow, or the faster ones are what differs. ``at_times`` are pairs
    that were slow in some launches and not in most, and of which nothing else is said.
    ``returning`` are nodes, of many, that were far slower in a launch and not launched often enough
    since to show whether that comes again.
    """

    blames: tuple[Blame, ...] = ()
    doubts: tuple[tuple[int, ...], ...] = ()
    suspects: tuple[int, ...] = ()
    unmeasured: tuple[int, ...] = ()
    trusted: tuple[int, ...] = ()
    faster: tuple[tuple[int, ...], ...] = ()
    outnumbering: tuple[int, ...] = ()
    at_times: tuple[tuple[int, ...], ...] = ()
    returning: tuple[int, ...] = ()
    centres: dict[str, float] = field(default_factory=dict)
    scale: float = math.nan
    threshold: float = math.nan
    noticed: float = math.nan
    launches: int = 0

    @property
    def too_noisy(self) -> bool:
        """Whether somebody who is twice as slow would not be seen."""
        return self.noticed > TOO_NOISY


def locate(
    nodes: int,
    pairs: ArrayLike,
    levels: ArrayLike,
    switches: Sequence[int] | None = None,
    *,
    turns: ArrayLike | None = None,
    tolerated: float = TOLERATED,
    error: float = FAMILY_ERROR,
) -> Located:
    """Return who is to blame for what pairs of nodes showed.

    ``pairs`` has a row of two node numbers for each observation, as often as the pair was measured
    and in the order of time; ``levels`` has its level, ``turns`` the number of its round where that
    is known. ``switches`` numbers the switch of each node. ``error`` is the chance of a wrong
    accusation that is granted to this call and to all earlier ones of the same screening. Raises
    ValueError for numbers of nodes that are not there, a pair of a node with itself, or a level
    that is NaN or minus infinite.
    """
    ends = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    seen = np.asarray(levels, dtype=np.float64)
    _require_sound(nodes, ends, seen)
    if switches is not None and len(switches) != nodes:
        raise ValueError(f"{len(switches)} switches for {nodes} nodes")
    known = np.zeros(nodes, dtype=bool)
    known[ends.ravel()] = True
    unmeasured = tuple(np.flatnonzero(~known).tolist())
    if np.isinf(seen).all():
        return Located(unmeasured=unmeasured)
    groups = None if switches is None else np.unique(np.asarray(switches), return_inverse=True)[1]
    turn = number_turns(turns, len(seen))
    return _Search(nodes, ends, seen, turn, groups, tolerated, error).locate(unmeasured)


def locate_alone(
    nodes: int,
    where: ArrayLike,
    levels: ArrayLike,
    *,
    turns: ArrayLike | None = None,
    tolerated: float = TOLERATED,
    error: float = FAMILY_ERROR,
) -> Located:
    """Return which nodes are slow by themselves, compared with the others.

    ``where`` names the node of each level. Of fewer than three nodes that can be compared nobody is
    accused, unless it fails: two that differ do not say which of them is wrong. Nor do as many as
    half of them. The other arguments, and what is raised, are those of :func:`locate`.
    """
    at = np.asarray(where, dtype=np.int64)
    seen = np.asarray(levels, dtype=np.float64)
    _require_sound(nodes, at, seen)
    observed = np.bincount(at, minlength=nodes)
    unmeasured = tuple(np.flatnonzero(observed == 0).tolist())
    worked = np.isfinite(seen)
    working = np.bincount(at, worked, minlength=nodes) > 0
    if not working.any():
        return Located(unmeasured=unmeasured)
    turn = number_turns(turns, len(seen))
    noise = Launches(seen, at, nodes).noise()
    raw = grouped_medians(seen[worked], at[worked], nodes)
    beyond = raw - np.quantile(raw[working], 0.25, method="lower")
    kept = working & (beyond <= _rough(beyond[working], tolerated, noise))
    # Half of the nodes are no better than the others by chance, once the noise is known.
    if 2 * kept.sum() < working.sum() + (not noise.any()):
        kept = working
    centre = float(np.quantile(raw[kept], 0.5, method="lower"))
    expected = _Expected(raw[kept] - centre, noise, kept, tolerated)
    launches = Launches(np.where(worked, seen - centre, _FAILED), at, nodes, turn)
    typical = launches.medians()
    slow = (observed > 0) & (typical > expected.thresholds)
    down = slow & (typical > _FAILED / 2)
    better = working & (typical < -expected.thresholds)
    if 2 * (slow & ~down).sum() >= working.sum() > 1:
        better = working & ~slow
    outnumbering = working & ~better & ~down
    if better.sum() < _FEWEST_BETTER * working.sum() or not better.any():
        outnumbering[:] = False
    comparable = working.sum() >= 3 and not outnumbering.any()
    again = outnumbering.any() and observed.max() < _OFTEN
    blames, doubts = [], []
    shown = grouped_quantile(launches.levels, at, nodes, _SELDOM)
    for node in np.flatnonzero((observed > 0) & (shown > expected.lasting)).tolist():
        if not (comparable or down[node]):
            doubts += [(node,)] if again else []
            continue
        unit = np.arange(nodes) == node
        others = slow & ~unit
        chance = min(
            expected_by_chance(
                launches.chance(unit, ~unit & ~out, expected.lasting), nodes, 0.0, *counts
            )
            for out, counts in ((others, (int(others.sum()), nodes - 1)), (unit, (0, 0)))
        )
        k = int((launches.levels[at == node] > expected.lasting).sum())
        m = int(observed[node])
        if m >= 2 and chance <= error_spent(error, m, len(seen) - m, nodes):
            ranges = _range(seen[at == node]), _range(seen[~slow[at] & (at != node)])
            factor, seldom = _factor(launches.levels[at == node], tolerated)
            evidence = k, m, m, factor, chance, (), *ranges, seldom
            blames.append(Blame(Unit.NODE, (node,), (), *evidence))
        elif (slow[node] and m < _MANY) or doubtful(chance, nodes):
            doubts.append((node,))
    return Located(
        blames=tuple(blames),
        doubts=tuple(doubts),
        unmeasured=unmeasured,
        trusted=tuple(np.flatnonzero((observed > 0) & ~slow).tolist()),
        faster=tuple((node,) for node in np.flatnonzero(better).tolist()),
        outnumbering=tuple(np.flatnonzero(outnumbering).tolist()),
        centres={"all": centre},
        scale=expected.scale,
        threshold=expected.threshold,
        noticed=_noticed(launches, working & ~slow, expected),
        launches=int(np.median(observed[working])),
    )


def doubtful(chance: float, units: int) -> bool:
    """Tell whether of so many units so few look by chance like one that it is measured again.

    A fault that comes and goes looks like chance at first: it takes less than for an accusation.
    """
    return chance <= DOUBTFUL * math.sqrt(units)


def _require_sound(nodes: int, numbers: Ints, levels: Floats) -> None:
    if len(numbers) != len(levels):
        raise ValueError(f"{len(levels)} levels of {len(numbers)} measurements")
    if numbers.size and (numbers.min() < 0 or numbers.max() >= nodes):
        raise ValueError(f"there are {nodes} nodes, from 0 on")
    if numbers.ndim == 2 and (numbers[:, 0] == numbers[:, 1]).any():
        raise ValueError("a node is no pair with itself")
    if np.isnan(levels).any() or np.isneginf(levels).any():
        raise ValueError("a level is a number, or infinite where the launch failed")


def _factor(levels: Floats, tolerated: float) -> tuple[float, bool]:
    """Return by how many times a unit is worse, and whether only so in the worst of its launches.

    Infinite where those failed.
    """
    level = median(levels)
    seldom = level <= tolerated
    if seldom:
        level = float(np.quantile(levels, _SELDOM, method="higher"))
    # Half of what a failed launch counts for: the median of a failed and a working one, too.
    return math.inf if level > _FAILED / 2 else math.exp(level), seldom


@dataclass(frozen=True)
class _Row:
    """The links of a node that may be to blame, those it is compared with, and by what chance."""

    own: Bools
    control: Bools
    chance: float


def _is_a_row(slow: int, links: int) -> bool:
    """Tell whether so many slow links of a node are the node; of two or three it takes all."""
    return slow >= 2 and 2 * slow > links and (slow == links or links > _FEW_LINKS)


def _mask(number: int, chosen: Sequence[int] | Ints) -> Bools:
    mask = np.zeros(number, dtype=bool)
    mask[np.asarray(chosen, dtype=np.int64)] = True
    return mask


def _range(levels: Floats) -> tuple[float, float]:
    """Return the best and the worst of what worked."""
    worked = levels[np.isfinite(levels)]
    return (float(worked.min()), float(worked.max())) if len(worked) else (math.nan, math.nan)


def _rough(beyond: Floats, tolerated: float, noise: Floats) -> Floats:
    """Return for each place beyond what it does not go into the centre, by a first, low centre."""
    lower = np.sort(beyond)[: max(len(beyond) // 2, 1)]
    scale = float(np.median(np.abs(lower)))
    return np.maximum(max(tolerated, _SCALES * _LOWER_MAD * scale), 2 * noise)


class _Expected:
    """What is expected of the medians of places: from those that are kept, and their noise.

    Beyond its entry of ``thresholds`` a place is slow; ``threshold`` is a usual one. ``lasting`` is
    by how much sound places may differ for good, beside what their noise explains.
    """

    def __init__(self, kept: Floats, noise: Floats, which: Bools, tolerated: float) -> None:
        between = _between(kept)
        self.scale = max(between, float(np.median(noise[which])))
        self.thresholds = np.maximum(max(tolerated, _SCALES * between), _SCALES * noise)
        self.threshold = float(np.median(self.thresholds[which]))
        self.lasting = _lasting(kept, noise[which], tolerated)

    def beyond_far(self, launches: Launches) -> Floats:
        """Return by how much each launch is worse than twice what counts as slow at its place."""
        return np.asarray(launches.levels - self.thresholds[launches.place] - TOO_NOISY)

    def unsettled(self, launches: Launches) -> Bools:
        """Return of each place whether too few launches call its far slower ones chance.

        Of many places it is those that had two of them or, where each was launched often, one.
        """
        often = np.bincount(launches.place, minlength=launches.places)
        is_far = self.beyond_far(launches) > 0
        far = np.bincount(launches.place, is_far, minlength=launches.places)
        if launches.places > _FEW_PLACES:
            far[far < (1 if np.median(often) >= _OFTEN else 2)] = 0
        return np.asarray(often < _FOR_A_FAR_ONE * far)


def _between(medians: Floats) -> float:
    return MAD * median(np.abs(medians))


def _lasting(medians: Floats, noise: Floats, tolerated: float) -> float:
    """Return by how much places may differ for good, beside what the noise of few may look like."""
    explained = median(noise) * (1 + 3 / math.sqrt(len(medians)))
    return max(tolerated, _SCALES * math.sqrt(max(_between(medians) ** 2 - explained**2, 0.0)))


def _noticed(launches: Launches, sound: Bools, expected: _Expected) -> float:
    """Return by how much worse nearly every sound place would have become a doubt."""
    places = np.flatnonzero(sound)
    if not len(places):
        return math.inf
    noticed = (expected.thresholds - launches.medians())[places]
    if len(places) <= _FEW_PLACES:
        chance = DOUBTFUL / len(places)
        noise, lasting = launches.centred(), expected.lasting
        by_rank = [noise.noticed(place, sound, lasting, chance) for place in places.tolist()]
        noticed = np.minimum(noticed, by_rank)
    return float(np.quantile(noticed, _NEARLY_ALL, method="higher"))


class _Search:
    """The links of one metric, and what is left of them while units are found to blame."""

    def __init__(
        self,
        nodes: int,
        ends: Ints,
        levels: Floats,
        turn: Ints | None,
        groups: Ints | None,
        tolerated: float,
        error: float,
    ) -> None:
        self._nodes = nodes
        self._groups = groups
        ordered = np.sort(ends, axis=1)
        keys, self._link_of = np.unique(ordered @ np.array([nodes, 1]), return_inverse=True)
        self._ends = np.stack([keys // nodes, keys % nodes], axis=1)
        self._observed = np.bincount(self._link_of)
        self._partners = np.bincount(self._ends.ravel(), minlength=nodes)
        self._class_of, self._classes = self._classify()
        self._levels = levels
        self._failed = np.isinf(levels)
        # A part of a node's links takes five nodes, blocks of links take switches.
        kinds = 1 + (nodes > _FEWEST_OF_A_PART + 1) + (groups is not None)
        self._for_nodes, self._for_others = _FOR_NODES * error, (1 - _FOR_NODES) * error / kinds
        self._turn, self._tolerated = turn, tolerated
        self._noise = Launches(levels, self._link_of, len(self._ends)).noise()
        self._fit(np.zeros(nodes, dtype=bool))

    def _classify(self) -> tuple[Ints, tuple[str, ...]]:
        """Return the class of each link; of few links none is made."""
        if self._groups is not None:
            same = self._on_one_switch()
            if min(same.sum(), (~same).sum()) >= _FEWEST_OF_A_CLASS:
                return np.where(same, 0, 1), ("same switch", "other")
        return np.zeros(len(self._ends), dtype=np.int64), ("all",)

    def _on_one_switch(self) -> Bools:
        if self._groups is None:
            return np.zeros(len(self._ends), dtype=bool)
        return np.asarray(self._groups[self._ends[:, 0]] == self._groups[self._ends[:, 1]])

    # --- what is expected -----------------------------------------------------------------

    def _fit(self, known: Bools) -> None:
        """Find centres, effects and scale from what worked, and with them what is slow.

        Nodes that are ``known`` to be bad, and those that seem so, do not go into them.
        """
        links = len(self._ends)
        worked = np.bincount(self._link_of, ~self._failed) > 0
        raw = grouped_medians(self._levels[~self._failed], self._link_of[~self._failed], links)
        beyond = raw - self._centres(raw, worked, 0.25)[self._class_of]
        rough = _rough(beyond[worked], self._tolerated, self._noise)
        bad = self._mostly(~worked | (beyond > rough))
        while 2 * bad.sum() > self._nodes and (beyond[worked] > rough[worked]).any():
            rough = 2 * rough
            bad = self._mostly(~worked | (beyond > rough))
        if 2 * bad.sum() > self._nodes:
            bad[:] = False
        kept = worked & ~(bad | known)[self._ends].any(axis=1)
        if not kept.any():
            kept = worked
        centres = self._centres(raw, kept, 0.5)
        expected = centres[self._class_of]
        self._expected = _Expected((raw - expected)[kept], self._noise, kept, self._tolerated)
        self.centres = dict(zip(self._classes, centres.tolist(), strict=True))
        levels = np.where(self._failed, _FAILED, self._levels - expected[self._link_of])
        self._launches = Launches(levels, self._link_of, links, self._turn)
        self._typical = self._launches.lower_medians()
        self._means = np.bincount(self._link_of, levels, minlength=links) / self._observed
        self._between_rows = self._lasting_of_rows(kept)
        failing = 2 * np.bincount(self._link_of, self._failed, minlength=links) >= self._observed
        self._slow = failing | (self._typical > self._expected.thresholds)
        self._faster = self._typical < -self._expected.thresholds

    def _lasting_of_rows(self, kept: Bools) -> float:
        """Return by how much sound nodes may differ for good."""
        mine = np.flatnonzero(kept[self._link_of] & ~self._failed)
        at = self._ends[self._link_of[mine]].ravel()
        levels = np.repeat(self._launches.levels[mine], 2)
        often = np.bincount(at, minlength=self._nodes)
        if (often > 0).sum() <= _FEW_LINKS:
            return self._tolerated
        rows = grouped_quantile(levels, at, self._nodes, 0.5)
        noise = MAD * grouped_quantile(np.abs(levels - rows[at]), at, self._nodes, 0.5)
        noise *= OF_A_MEDIAN / np.sqrt(np.maximum(often, 1))
        some = often > 0
        return _lasting(rows[some] - median(rows[some]), noise[some], self._tolerated)

    def _centres(self, raw: Floats, kept: Bools, quantile: float) -> Floats:
        """Return the centre of each class; one of which nothing is kept takes that of all."""
        centres = []
        for number in range(len(self._classes)):
            of_class = raw[kept & (self._class_of == number)]
            values = of_class if len(of_class) else raw[kept]
            # Not between two values: of few pairs one may be sound and the next one bad.
            centres.append(np.quantile(values, quantile, method="lower"))
        return np.array(centres)

    # --- who is to blame ------------------------------------------------------------------

    def locate(self, unmeasured: tuple[int, ...]) -> Located:
        """Return everything that is found."""
        self._touched = np.zeros(len(self._ends), dtype=bool)
        nodes, suspects = self._blamed_nodes()
        if nodes:
            # Some may have stood out by their ranks alone, and still be in what is expected.
            self._fit(self._these(list(nodes)))
            self._touched[:] = False
            nodes, suspects = self._blamed_nodes()
        blames = [*self._switches(nodes), *self._blocks(), *self._parts()]
        noticed = _noticed(self._launches, ~(self._slow | self._touched), self._expected)
        links, doubts = self._links()
        hiding = self._hiding(noticed - TOO_NOISY)
        if hiding is not None:
            doubts += [pair for pair in hiding if pair not in doubts]
            noticed = TOO_NOISY
        faster, outnumbering = self._better()
        if outnumbering and not nodes and int(self._observed.max()) < _OFTEN:
            doubts += [pair for pair in faster if pair not in doubts]
        accused = {*doubts, *(blame.nodes for blame in links)}
        trusted = self._tally(self._slow) == 0
        trusted[list(unmeasured)] = False
        return Located(
            blames=(*blames, *links),
            doubts=tuple(doubts),
            suspects=suspects,
            unmeasured=unmeasured,
            trusted=tuple(np.flatnonzero(trusted).tolist()),
            faster=faster,
            outnumbering=outnumbering,
            at_times=tuple(pair for pair in self._slow_at_times() if pair not in accused),
            returning=self._returning(),
            centres=self.centres,
            scale=self._expected.scale,
            threshold=self._expected.threshold,
            noticed=noticed,
            launches=int(np.median(self._observed)),
        )

    def _hiding(self, excess: float) -> list[tuple[int, ...]] | None:
        """Return the pairs that would be slow were the limit lower by ``excess``.

        One that is twice as slow is nearly always among them, so it suffices to launch these again.
        None where there is no excess, where all pairs are few anyway, or where these are not few.
        """
        if not 0.0 < excess < math.inf or len(self._ends) <= _FEW_PLACES:
            return None
        # Never below the middle between sound and twice as slow.
        limits = np.maximum(self._expected.thresholds - excess, TOO_NOISY / 2)
        if np.median(limits) <= TOO_NOISY / 2:
            return None
        near = self._launches.medians() > np.minimum(limits, self._expected.thresholds)
        near &= ~(self._slow | self._touched) & (self._observed < _MANY)
        few = near.sum() <= _FEW_OF_ALL * len(self._ends)
        return list(map(tuple, self._ends[near].tolist())) if few else None

    def _slow_at_times(self) -> Iterator[tuple[int, ...]]:
        worst = np.zeros(len(self._ends))
        np.maximum.at(worst, self._link_of, self._launches.levels)
        some = (worst > self._expected.thresholds) & ~self._slow & ~self._touched
        yield from map(tuple, self._ends[some].tolist())

    def _returning(self) -> tuple[int, ...]:
        """Return the nodes whose slow launches are to show whether more follow, the worst first.

        Of few links each is launched again by itself.
        """
        if len(self._ends) <= _FEW_PLACES:
            return ()
        beyond = self._expected.beyond_far(self._launches)
        settled = self._touched | (self._slow & (self._observed > 1))
        far = np.flatnonzero((beyond > 0) & ~settled[self._link_of])
        at = self._ends[self._link_of[far]].ravel()
        excess = np.bincount(at, np.repeat(beyond[far], 2), minlength=self._nodes)
        launched = np.bincount(self._ends[self._link_of].ravel(), minlength=self._nodes)
        often = _FOR_A_SLOW_ONE * np.bincount(at, minlength=self._nodes)
        worst = np.argsort(-excess, kind="stable")[:_MOST_RETURNING]
        return tuple(worst[launched[worst] < often[worst]].tolist())

    def _tally(self, links: Bools) -> Ints:
        """Return of each node how many of these links it has."""
        return np.bincount(self._ends[links].ravel(), minlength=self._nodes)

    def _mostly(self, links: Bools) -> Bools:
        """Return the nodes that have more than half of their links among these."""
        return 2 * self._tally(links) > self._partners

    def _better(self) -> tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]:
        """Return the pairs that are better, and the other nodes if they may be the slow ones."""
        faster = tuple(map(tuple, self._ends[self._faster].tolist()))
        # A switch explains why the two on it are better with each other than with the rest.
        plain = self._faster & ~self._on_one_switch()
        if self._groups is None or len(np.unique(self._groups)) == 1:
            plain = self._faster
        of_better = np.zeros(self._nodes, dtype=bool)
        of_better[self._ends[plain].ravel()] = True
        among = of_better[self._ends].all(axis=1)
        rest = (self._partners > 0) & ~of_better
        if (
            not plain.any()
            or of_better.sum() < _FEWEST_BETTER * self._nodes
            or 2 * plain[among].sum() <= among.sum()
            or 2 * rest.sum() < self._nodes
        ):
            return faster, ()
        return faster, tuple(np.flatnonzero(rest).tolist())

    def _blamed_nodes(self) -> tuple[dict[int, Blame], tuple[int, ...]]:
        """Return the nodes that are slow with most of the partners which are not bad themselves.

        And those of which that is not sure. Their links are not judged one by one: first comes
        whether it is the node.
        """
        bad = self._mostly(self._slow) & (self._tally(self._slow) >= 2)
        worst, candidates = self._worst_rows()
        most = _MOST_BESIDE if self._nodes <= _FEW_PLACES else 0
        blames: dict[int, Blame] = {}
        unsure = []
        for node in np.flatnonzero(bad | candidates).tolist():
            beside = [n for n in worst[: most + 1] if n != node][:most]
            others = {frozenset(beside[:k]) for k in range(len(beside) + 1)}
            others.add(frozenset(np.flatnonzero(bad).tolist()) - {node})
            tried = [self._row(node, self._these(them)) for them in others]
            best = min(tried, key=operator.attrgetter("chance"))
            unit = self._unit_of(best) if best.chance <= FAMILY_ERROR else None
            if unit:
                slow = self._slow_of(best)
                partners = () if unit is Unit.NODE else self._partners_of(node, slow)
                evidence = best.own, len(slow), best.chance
                blames[node] = self._blame(unit, (node,), (), *evidence, partners=partners)
            elif doubtful(best.chance, self._nodes):
                if not self._rather_a_link(node, best.chance):
                    unsure.append(node)
            elif bad[node] and self._unsure(node, bad):
                unsure.append(node)
        for node in (*blames, *unsure):
            self._touched |= (self._ends == node).any(axis=1)
        return blames, tuple(unsure)

    def _worst_rows(self) -> tuple[list[int], Bools]:
        """Return the nodes, the worst first, and those that may be bad by any of their launches."""
        of_launch = self._ends[self._link_of]
        levels, at = np.repeat(self._launches.levels, 2), of_launch.ravel()
        rows = grouped_quantile(levels, at, self._nodes, 0.5)
        worst = np.argsort(-rows, kind="stable").tolist()
        candidates = np.zeros(self._nodes, dtype=bool)
        for level in (rows, grouped_quantile(levels, at, self._nodes, _SELDOM)):
            order = np.argsort(-level, kind="stable")[:_FEW_PLACES]
            candidates[order[level[order] > self._tolerated]] = True
        return worst, candidates

    def _rather_a_link(self, node: int, chance: float) -> bool:
        """Tell whether a single link of a node is the likelier culprit than the node."""
        own = np.flatnonzero((self._ends == node).any(axis=1))
        worst = own[np.argmax(self._typical[own])]
        return self._chance_of(np.array([worst]), 1, len(self._ends)) < chance

    def _granted(self, own: Bools, units: int, error: float) -> float:
        """Return what of an error is granted to a unit of these links, one of so many units."""
        launches = int(self._observed[own].sum())
        others = len(self._levels) - launches
        return error_spent(error, launches, others, units, int(own.sum()))

    def _row(self, node: int, out: Bools) -> _Row:
        """Return the links of a node, without those to others that may be bad as well."""
        mine = (self._ends == node).any(axis=1)
        aside = out[self._ends].any(axis=1)
        own, control = mine & ~aside, ~mine & ~aside
        if own.sum() < 2 or not control.any():
            return _Row(own, control, math.inf)
        chance = self._launches.chance(own, control, self._between_rows)
        chance = expected_by_chance(chance, self._nodes, 0.0, int(out.sum()), self._nodes - 1)
        return _Row(own, control, chance)

    def _unit_of(self, row: _Row) -> Unit | None:
        """Return what of a node is to blame by all of its links, None where that is not sure.

        Were no more than half of them bad, the best half would be sound; were no more than two, all
        but the worst two.
        """
        if row.chance > self._granted(row.own, self._nodes, self._for_nodes):
            return None
        links = np.flatnonzero(row.own)
        best = links[np.argsort(self._means[links], kind="stable")]
        half = 1 if len(best) <= _FEW_LINKS else (len(best) + 1) // 2
        for unit, sound in ((Unit.NODE, half), (Unit.PART_OF_NODE, len(best) - 2)):
            some = self._chosen(best[: max(sound, 1)])
            if self._launches.chance(some, row.control, self._between_rows) <= _ALL_OF_IT:
                return unit
        return None

    def _slow_of(self, row: _Row) -> Ints:
        """Return the links of a row that are worse than most others."""
        limit = median(self._means[row.control]) + self._between_rows
        return np.flatnonzero(row.own & (self._means > limit))

    def _partners_of(self, node: int, links: Ints) -> tuple[int, ...]:
        return tuple((self._ends[links].sum(axis=1) - node).tolist())

    def _unsure(self, node: int, bad: Bools) -> bool:
        """Tell whether a node is slow with most of the partners that are not bad, or has none."""
        own = (self._ends == node).any(axis=1)
        partners = self._ends[own].sum(axis=1) - node
        slow = self._slow[own][~bad[partners]]
        return not len(slow) or _is_a_row(int(slow.sum()), len(slow))

    def _switches(self, nodes: dict[int, Blame]) -> Iterator[Blame]:
        """Yield the nodes, most nodes of one switch as that switch."""
        if self._groups is None:
            yield from nodes.values()
            return
        sizes = np.bincount(self._groups)
        blamed = np.bincount(self._groups[list(nodes)], minlength=len(sizes))
        whole = (blamed >= _FEWEST_OF_A_SWITCH) & (blamed >= _MOST_OF_A_SWITCH * sizes)
        if whole.sum() == len(sizes):
            whole[:] = False
        for switch in np.flatnonzero(whole).tolist():
            members = [node for node in nodes if self._groups[node] == switch]
            theirs = [nodes[node] for node in members]
            yield Blame(
                Unit.SWITCH,
                tuple(members),
                (switch,),
                sum(blame.slow for blame in theirs),
                sum(blame.links for blame in theirs),
                sum(blame.observations for blame in theirs),
                float(np.median([blame.factor for blame in theirs])),
                min(1.0, sum(blame.chance for blame in theirs)),
            )
        yield from (blame for node, blame in nodes.items() if not whole[self._groups[node]])

    def _blocks_of(self) -> Iterator[tuple[tuple[int, ...], Ints]]:
        """Yield the links inside each switch and between each two, where they are enough."""
        if self._groups is None:
            return
        sides = np.sort(self._groups[self._ends], axis=1)
        count = int(self._groups.max()) + 1
        keys, block_of = np.unique(sides @ np.array([count, 1]), return_inverse=True)
        order = np.argsort(block_of, kind="stable")
        edges = np.searchsorted(block_of[order], np.arange(len(keys) + 1))
        for number, key in enumerate(keys.tolist()):
            members = order[edges[number] : edges[number + 1]]
            if len(members) >= _FEWEST_OF_A_PART:
                yield tuple(sorted({key // count, key % count})), members

    def _is_a_block(self, members: Ints) -> bool:
        """Tell whether most links of a block are slow, without the node that has most of them."""
        bad = members[self._slow[members]]
        if len(bad) < _FEWEST_OF_A_PART or 2 * len(bad) <= len(members):
            return False
        worst = int(np.argmax(np.bincount(self._ends[bad].ravel())))
        others = members[~(self._ends[members] == worst).any(axis=1)]
        return bool(len(others)) and 2 * int(self._slow[others].sum()) > len(others)

    def _blocks(self) -> list[Blame]:
        blocks = list(self._blocks_of())
        blames = []
        for switches, members in blocks:
            free = members[~self._touched[members]]
            if not self._is_a_block(free):
                continue
            bad = free[self._slow[free]]
            chance = self._chance_of(bad, len(free), len(blocks))
            if chance > self._granted(self._chosen(bad), len(blocks), self._for_others):
                continue
            unit = Unit.INSIDE_SWITCH if len(switches) == 1 else Unit.BETWEEN_SWITCHES
            concerned = tuple(np.unique(self._ends[bad]).tolist())
            own = self._chosen(bad)
            blames.append(self._blame(unit, concerned, switches, own, len(bad), chance, links=free))
            self._touched[members] = True
        return blames

    def _parts(self) -> list[Blame]:
        """Return nodes that are slow with some of their partners only."""
        blames: list[Blame] = []
        while True:
            free = self._slow & ~self._touched
            counts = self._tally(free)
            node = int(np.argmax(counts))
            if counts[node] < _FEWEST_OF_A_PART:
                return blames
            own = np.flatnonzero((self._ends == node).any(axis=1) & ~self._touched)
            bad = own[free[own]]
            chance = self._chance_of(bad, len(own), self._nodes)
            if chance > self._granted(self._chosen(bad), self._nodes, self._for_others):
                return blames
            partners = self._partners_of(node, bad)
            part = Unit.PART_OF_NODE, (node,), (), self._chosen(bad), len(bad), chance
            blames.append(self._blame(*part, links=own, partners=partners))
            self._touched[bad] = True

    def _links(self) -> tuple[list[Blame], list[tuple[int, ...]]]:
        """Return the links that are slow by themselves, and those of which nobody can tell yet."""
        blames, doubts = [], []
        limit = 0.0 if len(self._ends) <= _FEW_PLACES else self._expected.lasting
        free = np.flatnonzero((self._typical > limit) & ~self._touched)
        worst = free[np.argsort(-self._typical[free], kind="stable")][:_MOST_LINKS]
        unsettled = self._expected.unsettled(self._launches) & ~self._touched
        looked_at = {*worst, *free[self._slow[free]], *np.flatnonzero(unsettled)}
        for link in sorted(map(int, looked_at)):
            pair = tuple(self._ends[link].tolist())
            chance = self._chance_of(np.array([link]), 1, len(self._ends))
            own = self._chosen(np.array([link]))
            often = self._observed[link] >= 2
            granted = self._granted(own, len(self._ends), self._for_others)
            if often and chance <= granted and self._sticks_out(own):
                blames.append(self._blame(Unit.LINK, pair, (), own, 1, chance))
            elif (
                unsettled[link]
                or (self._slow[link] and self._observed[link] < _MANY)
                or doubtful(chance, len(self._ends))
            ):
                doubts.append(pair)
        return blames, doubts

    def _sticks_out(self, own: Bools) -> bool:
        """Tell whether a link is worse than the other links of its two nodes."""
        beside = _mask(self._nodes, self._ends[own].ravel())[self._ends].any(axis=1) & ~own
        links = int(beside.sum()) + 1
        chance = self._launches.chance(own, beside, 0.0)
        return expected_by_chance(chance, links, 0.0, 0, links) <= FAMILY_ERROR

    def _these(self, nodes: Iterable[int]) -> Bools:
        return _mask(self._nodes, list(nodes))

    def _chosen(self, links: Ints) -> Bools:
        return _mask(len(self._ends), links)

    def _chance_of(self, chosen: Ints, links: int, units: int) -> float:
        """Return how likely these are so much worse, chosen from so many links of such a unit."""
        own = self._chosen(chosen)
        free = ~own & ~self._touched
        choices = log_choices(links, len(chosen))
        chances = [math.inf]
        beside = [own & free, self._slow & free]
        if len(self._ends) <= _FEW_PLACES:
            worst = np.flatnonzero(free)[np.argsort(-self._typical[free], kind="stable")[:2]]
            beside += [self._chosen(worst[:1]), self._chosen(worst)]
        for out in beside if len(chosen) > 1 or len(self._ends) <= _FEW_PLACES else beside[:1]:
            control = free & ~out
            if control.any():
                others = self._typical[control]
                noise = self._noise[control]
                lasting = _lasting(others - median(others), noise, self._tolerated)
                chance = self._launches.chance(own, control, lasting)
                rest = len(self._ends) - len(chosen)
                chances.append(expected_by_chance(chance, units, choices, int(out.sum()), rest))
        return min(chances)

    def _blame(
        self,
        unit: Unit,
        nodes: tuple[int, ...],
        switches: tuple[int, ...],
        own: Bools,
        slow: int,
        chance: float,
        *,
        links: Ints | None = None,
        partners: tuple[int, ...] = (),
    ) -> Blame:
        """Return a unit to blame for its links ``own``, of which it may have more than those."""
        all_of_it = np.flatnonzero(own) if links is None else links
        mine = own[self._link_of]
        single = unit is Unit.LINK
        observations = int(self._observed[all_of_it].sum())
        sound = ~(own | self._slow | self._touched)[self._link_of]
        factor, seldom = _factor(self._launches.levels[mine], self._tolerated)
        return Blame(
            unit,
            nodes,
            switches,
            int((self._launches.levels[mine] > self._expected.lasting).sum()) if single else slow,
            observations if single else len(all_of_it),
            observations,
            factor,
            chance,
            partners,
            _range(self._levels[mine]),
            _range(self._levels[sound]),
            seldom,
        )
