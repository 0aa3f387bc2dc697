"""From what pairs of nodes reached: which node, which link, which switch is to blame. Pure.

A level is the natural logarithm of a figure, turned so that positive is worse, and infinite where
nothing was measured because the launch failed. What is expected of the level of a pair is a centre,
one for the pairs on one switch and one for the others, plus an effect of each of its two nodes: an
additive model, fitted by medians (J. W. Tukey, Exploratory Data Analysis, 1977, chapter 11), so
that a few bad rows do not move the others. Its scale is the median absolute deviation (F. R.
Hampel, The influence curve, J. Am. Stat. Assoc. 69, 1974, 383). An observation is *slow* when it
lies beyond the expected by more than is tolerated and by more than four such scales.

Faults only make slower, so up to half of the nodes may be bad: a first centre is the lower
quartile, and the pairs of nodes that are slow with most of their partners count no further (as in
the concentration steps of P. J. Rousseeuw and K. Van Driessen, Technometrics 41, 1999, 212).

Nothing is assumed of the noise but that two observations of sound nodes are slow independently of
each other, with a chance ``p0`` that the pairs which nobody suspects tell: (slow + 1) / (all + 1).
A unit (a link, a node, a block of links between two switches) with r links, of which b were slow,
link l in k of m observations, is slow by chance with at most::

    units * C(r, b) * product over the slow links of P(Binomial(m, p0) >= k)

(Bonferroni over units and over the choices of b links). It is accused when this is below its part
of the error that is granted to the whole family. So a single slow observation never accuses
anybody; it is a doubt, and says what to measure again.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

FAMILY_ERROR = 0.01
"""Of a screening of sound nodes: the chance that anything is accused, over all its metrics."""
TOLERATED = math.log(1.10)
"""What is never called slow, however well it is known: 10 %."""

_KINDS_OF_UNITS = 4
_SCALES = 4.0
_MAD = 1.4826
# For the normal distribution: how much the lower half of it scatters around its lower quartile.
_LOWER_MAD = 2.4
# Levels of failed launches: far beyond what any fault can slow down.
_FAILED = math.log(1e6)
# An effect of a node that met fewer others would take the faults of its links for its own.
_FEWEST_PARTNERS = 5
_FEWEST_OF_A_PART = 3
_FEWEST_OF_A_SWITCH = 3
_MOST_OF_A_SWITCH = 0.75
_FEWEST_OF_A_CLASS = 3
_POLISHES = 12
_POLISHED = 1e-4

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


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
    part of a node's links are the nodes at their other ends.
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

    @property
    def failed(self) -> bool:
        """Whether it is not slow, but does not work at all."""
        return math.isinf(self.factor)


@dataclass(frozen=True)
class Located:
    """What the observations of one metric say.

    ``centres`` are the levels of sound pairs by class (``same switch``, ``other``, or ``all``),
    ``scale`` is their noise, ``threshold`` what is slow beyond the expected, all natural
    logarithms; ``slow_by_chance`` is p0. Where nothing worked there are no centres. ``doubts`` are
    pairs (or single nodes) that were slow and not surely enough to accuse anybody, ``suspects``
    nodes of which the same holds,
    ``unmeasured`` nodes of which nothing is known, ``trusted`` those that were slow with nobody.
    ``faster`` are pairs that are better than sound ones by as much as would be called slow: a sign
    that most of the others are not sound.
    """

    blames: tuple[Blame, ...] = ()
    doubts: tuple[tuple[int, ...], ...] = ()
    suspects: tuple[int, ...] = ()
    unmeasured: tuple[int, ...] = ()
    trusted: tuple[int, ...] = ()
    faster: tuple[tuple[int, ...], ...] = ()
    centres: dict[str, float] = field(default_factory=dict)
    scale: float = math.nan
    threshold: float = math.nan
    slow_by_chance: float = 1.0

    @property
    def settled(self) -> bool:
        """Whether there is nothing to measure again."""
        return not self.doubts and not self.suspects


def locate(
    nodes: int,
    pairs: ArrayLike,
    levels: ArrayLike,
    switches: Sequence[int] | None = None,
    *,
    tolerated: float = TOLERATED,
    error: float = FAMILY_ERROR,
) -> Located:
    """Return who is to blame for what pairs of nodes showed.

    ``pairs`` has a row of two node numbers for each observation, in any order and as often as the
    pair was measured; ``levels`` has its level. ``switches`` numbers the switch of each node.
    ``error`` is the chance of a wrong accusation that is granted to this call. Raises ValueError
    for numbers of nodes that are not there, a pair of a node with itself, or a level that is NaN
    or minus infinite.
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
    return _Search(nodes, ends, seen, groups, tolerated, error / _KINDS_OF_UNITS).located(
        unmeasured
    )


def locate_alone(
    nodes: int,
    where: ArrayLike,
    levels: ArrayLike,
    *,
    tolerated: float = TOLERATED,
    error: float = FAMILY_ERROR,
) -> Located:
    """Return which nodes are slow by themselves, against the median of all.

    ``where`` names the node of each level. Of fewer than three nodes that can be compared, nobody
    is accused: two that differ do not say which of them is wrong. Raises as :func:`locate` does.
    """
    at = np.asarray(where, dtype=np.int64)
    seen = np.asarray(levels, dtype=np.float64)
    _require_sound(nodes, at, seen)
    observed = np.bincount(at, minlength=nodes)
    unmeasured = tuple(np.flatnonzero(observed == 0).tolist())
    working = np.unique(at[np.isfinite(seen)])
    if len(working) == 0:
        return Located(unmeasured=unmeasured)
    typical = np.array([np.median(seen[(at == n) & np.isfinite(seen)]) for n in working])
    centre = float(np.median(typical))
    scale = _MAD * float(np.median(np.abs(typical - centre)))
    threshold = max(tolerated, _SCALES * scale)
    beyond = np.where(np.isinf(seen), _FAILED, seen - centre)
    slow = beyond > threshold
    if len(working) < 3:
        slow &= np.isinf(seen)
    counts = np.bincount(at, slow, minlength=nodes).astype(np.int64)
    candidates = (counts >= 2) & (2 * counts >= observed)
    p0 = _slow_by_chance(counts[~candidates], observed[~candidates])
    blames, doubts = [], []
    for node in np.flatnonzero(counts).tolist():
        k, m = int(counts[node]), int(observed[node])
        chance = _chance(nodes, 1, [(k, m)], p0)
        if k >= 2 and chance <= error:
            factor = _factor(np.median(beyond[at == node]))
            blames.append(Blame(Unit.NODE, (node,), (), k, m, m, factor, chance))
        elif 2 * k >= m:
            doubts.append((node,))
    return Located(
        blames=tuple(blames),
        doubts=tuple(doubts),
        unmeasured=unmeasured,
        trusted=tuple(np.flatnonzero((counts == 0) & (observed > 0)).tolist()),
        centres={"all": centre},
        scale=scale,
        threshold=threshold,
        slow_by_chance=p0,
    )


def _require_sound(nodes: int, numbers: Ints, levels: Floats) -> None:
    if len(numbers) != len(levels):
        raise ValueError(f"{len(levels)} levels of {len(numbers)} measurements")
    if numbers.size and (numbers.min() < 0 or numbers.max() >= nodes):
        raise ValueError(f"there are {nodes} nodes, from 0 on")
    if numbers.ndim == 2 and (numbers[:, 0] == numbers[:, 1]).any():
        raise ValueError("a node is no pair with itself")
    if np.isnan(levels).any() or np.isneginf(levels).any():
        raise ValueError("a level is a number, or infinite where the launch failed")


def _slow_by_chance(slow: Ints, observed: Ints) -> float:
    return (float(slow.sum()) + 1.0) / (float(observed.sum()) + 1.0)


def _chance(units: int, links: int, slow: Iterable[tuple[int, int]], p0: float) -> float:
    """Return the bound of the module's docstring, from (k, m) of each slow link."""
    # Half a second that no other command needs.
    from scipy import stats

    counted = list(slow)
    b = len(counted)
    log = math.log(units) + float(
        special.gammaln(links + 1) - special.gammaln(b + 1) - special.gammaln(links - b + 1)
    )
    for k, m in counted:
        log += k * math.log(p0) if k == m else float(stats.binom.logsf(k - 1, m, p0))
    return math.exp(min(log, 0.0))


def _factor(level: float) -> float:
    # Half of what a failed launch counts for: the median of a failed and a working one, too.
    return math.inf if level > _FAILED / 2 else math.exp(level)


class _Search:
    """The links of one metric, and what is left of them while units are found to blame."""

    def __init__(
        self,
        nodes: int,
        ends: Ints,
        levels: Floats,
        groups: Ints | None,
        tolerated: float,
        error: float,
    ) -> None:
        self._nodes = nodes
        self._groups = groups
        self._error = error
        ordered = np.sort(ends, axis=1)
        keys, self._link_of = np.unique(ordered @ np.array([nodes, 1]), return_inverse=True)
        self._ends = np.stack([keys // nodes, keys % nodes], axis=1)
        self._observed = np.bincount(self._link_of)
        self._partners = np.bincount(self._ends.ravel(), minlength=nodes)
        self._class_of, self._classes = self._classify()
        self._levels = levels
        self._failed = np.isinf(levels)
        self._fit(tolerated)

    def _classify(self) -> tuple[Ints, tuple[str, ...]]:
        """Return the class of each link; of few links none is made."""
        if self._groups is not None:
            same = self._groups[self._ends[:, 0]] == self._groups[self._ends[:, 1]]
            if min(same.sum(), (~same).sum()) >= _FEWEST_OF_A_CLASS:
                return np.where(same, 0, 1), ("same switch", "other")
        return np.zeros(len(self._ends), dtype=np.int64), ("all",)

    # --- what is expected -----------------------------------------------------------------

    def _fit(self, tolerated: float) -> None:
        """Find centres, effects and scale from what worked, and with them what is slow."""
        worked = np.bincount(self._link_of, ~self._failed) > 0
        of_link = np.where(self._failed, 0.0, self._levels)[~self._failed]
        raw = _grouped_medians(of_link, self._link_of[~self._failed], len(self._ends))
        low = self._centres(raw, worked, 0.25)
        beyond = raw - low[self._class_of]
        rough = max(tolerated, _SCALES * _LOWER_MAD * _lower_scale(beyond[worked]))
        bad = self._mostly(~worked | (beyond > rough))
        kept = worked & ~bad[self._ends].any(axis=1)
        if 2 * bad.sum() > self._nodes or not kept.any():
            kept = worked
        centres = self._centres(raw, kept, 0.5)
        expected = centres[self._class_of]
        effects = self._polished(raw - expected, worked)
        left = raw - expected - effects[self._ends].sum(axis=1)
        self.scale = _MAD * float(np.median(np.abs(left[kept])))
        self.threshold = max(tolerated, _SCALES * self.scale)
        self.centres = dict(zip(self._classes, centres.tolist(), strict=True))
        # An effect within what is tolerated is how the node is; a larger one is what is looked for.
        usual = np.where(np.abs(effects) < tolerated, effects, 0.0)
        expected = (expected + usual[self._ends].sum(axis=1))[self._link_of]
        self._beyond = np.where(self._failed, _FAILED, self._levels - expected)
        best = _grouped_medians(self._beyond, self._link_of, len(self._ends))
        self._faster = best < -self.threshold
        self._slow = np.bincount(
            self._link_of, self._failed | (self._beyond > self.threshold)
        ).astype(np.int64)

    def _centres(self, raw: Floats, kept: Bools, quantile: float) -> Floats:
        """Return the centre of each class; one of which nothing is kept takes that of all."""
        found = []
        for number in range(len(self._classes)):
            of_class = raw[kept & (self._class_of == number)]
            values = of_class if len(of_class) else raw[kept]
            # Not between two values: of few pairs one may be sound and the next one bad.
            found.append(np.quantile(values, quantile, method="lower"))
        return np.array(found)

    def _polished(self, beyond: Floats, worked: Bools) -> Floats:
        """Return the effect of each node by median polish; 0 of nodes that met few others."""
        ends = self._ends[worked]
        rows = ends.ravel()
        enough = np.bincount(rows, minlength=self._nodes) >= _FEWEST_PARTNERS
        effects = np.zeros(self._nodes)
        if not enough.any():
            return effects
        for turn in range(_POLISHES):
            left = beyond[worked] - effects[ends].sum(axis=1)
            step = _grouped_medians(np.repeat(left, 2), rows, self._nodes)
            step[~enough] = 0.0
            # Both ends of a link take their share at once: half a step each, after the first.
            effects += step if turn == 0 else step / 2
            effects[enough] -= np.median(effects[enough])
            if np.abs(step).max() < _POLISHED:
                break
        return effects

    # --- who is to blame ------------------------------------------------------------------

    def located(self, unmeasured: tuple[int, ...]) -> Located:
        """Return everything that is found."""
        self._left = self._slow > 0
        often = (self._slow >= 2) & (2 * self._slow >= self._observed)
        mostly_slow = 2 * self._slow > self._observed
        bad_nodes = self._mostly(mostly_slow) & (self._tally(mostly_slow) >= 2)
        bad_blocks = self._bad_blocks(mostly_slow)
        unsuspected = ~(often | bad_nodes[self._ends].any(axis=1) | bad_blocks)
        self._p0 = _slow_by_chance(self._slow[unsuspected], self._observed[unsuspected])
        self._touched = np.zeros(len(self._ends), dtype=bool)
        nodes, suspects = self._blamed_nodes(mostly_slow, bad_nodes)
        blames = [*self._switches(nodes), *self._blocks(mostly_slow), *self._parts(mostly_slow)]
        links, doubts = self._links()
        trusted = self._tally(self._slow > 0) == 0
        trusted[list(unmeasured)] = False
        return Located(
            blames=(*blames, *links),
            doubts=tuple(doubts),
            suspects=suspects,
            unmeasured=unmeasured,
            trusted=tuple(np.flatnonzero(trusted).tolist()),
            faster=tuple(map(tuple, self._ends[self._faster].tolist())),
            centres=self.centres,
            scale=self.scale,
            threshold=self.threshold,
            slow_by_chance=self._p0,
        )

    def _tally(self, links: Bools) -> Ints:
        """Return of each node how many of these links it has."""
        return np.bincount(self._ends[links].ravel(), minlength=self._nodes)

    def _mostly(self, links: Bools) -> Bools:
        """Return the nodes that have more than half of their links among these."""
        return 2 * self._tally(links) > self._partners

    def _blamed_nodes(
        self, slow: Bools, candidates: Bools
    ) -> tuple[dict[int, Blame], tuple[int, ...]]:
        """Return the nodes that are slow with most of the partners which are not bad themselves."""
        found: dict[int, Blame] = {}
        unsure = []
        for node in np.flatnonzero(candidates).tolist():
            own = (self._ends == node).any(axis=1)
            partners = self._ends[own].sum(axis=1) - node
            with_sound = np.flatnonzero(own)[~candidates[partners]]
            mine = with_sound[slow[with_sound]]
            if 2 * len(mine) <= len(with_sound):
                # Its links are slow because the nodes at their other ends are.
                if not len(with_sound):
                    unsure.append(node)
                continue
            chance = self._chance_of(mine, len(with_sound), self._nodes)
            if len(mine) < 2 or chance > self._error:
                unsure.append(node)
                continue
            observations = int(self._observed[with_sound].sum())
            factor = self._factor_of(with_sound)
            found[node] = Blame(
                Unit.NODE, (node,), (), len(mine), len(with_sound), observations, factor, chance
            )
            self._touched |= own
        for node in unsure:
            # Its links are not judged one by one: first comes whether it is the node.
            self._touched |= (self._ends == node).any(axis=1)
        return found, tuple(unsure)

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

    def _is_a_block(self, members: Ints, slow: Bools) -> bool:
        """Tell whether most links of a block are slow, without the node that has most of them."""
        bad = members[slow[members]]
        if len(bad) < _FEWEST_OF_A_PART or 2 * len(bad) <= len(members):
            return False
        worst = int(np.argmax(np.bincount(self._ends[bad].ravel())))
        others = members[~(self._ends[members] == worst).any(axis=1)]
        return bool(len(others)) and 2 * int(slow[others].sum()) > len(others)

    def _bad_blocks(self, slow: Bools) -> Bools:
        found = np.zeros(len(self._ends), dtype=bool)
        for _, members in self._blocks_of():
            if self._is_a_block(members, slow):
                found[members] = True
        return found

    def _blocks(self, slow: Bools) -> list[Blame]:
        blocks = list(self._blocks_of())
        found = []
        for switches, members in blocks:
            free = members[~self._touched[members]]
            if not self._is_a_block(free, slow):
                continue
            bad = free[slow[free]]
            chance = self._chance_of(bad, len(free), len(blocks))
            if chance > self._error:
                continue
            unit = Unit.INSIDE_SWITCH if len(switches) == 1 else Unit.BETWEEN_SWITCHES
            concerned = tuple(np.unique(self._ends[bad]).tolist())
            found.append(
                Blame(
                    unit,
                    concerned,
                    switches,
                    len(bad),
                    len(free),
                    int(self._observed[free].sum()),
                    self._factor_of(bad),
                    chance,
                )
            )
            self._touched[members] = True
        return found

    def _parts(self, slow: Bools) -> list[Blame]:
        """Return nodes that are slow with some of their partners only."""
        found: list[Blame] = []
        while True:
            free = slow & ~self._touched
            counts = self._tally(free)
            node = int(np.argmax(counts))
            if counts[node] < _FEWEST_OF_A_PART:
                return found
            own = np.flatnonzero((self._ends == node).any(axis=1) & ~self._touched)
            bad = own[free[own]]
            chance = self._chance_of(bad, len(own), self._nodes)
            if chance > self._error:
                return found
            partners = tuple((self._ends[bad].sum(axis=1) - node).tolist())
            found.append(
                Blame(
                    Unit.PART_OF_NODE,
                    (node,),
                    (),
                    len(bad),
                    len(own),
                    int(self._observed[own].sum()),
                    self._factor_of(bad),
                    chance,
                    partners,
                )
            )
            self._touched[bad] = True

    def _links(self) -> tuple[list[Blame], list[tuple[int, ...]]]:
        """Return the links that are slow by themselves, and those of which nobody can tell yet."""
        found, doubts = [], []
        for link in np.flatnonzero(self._left & ~self._touched).tolist():
            k, m = int(self._slow[link]), int(self._observed[link])
            pair = tuple(self._ends[link].tolist())
            chance = self._chance_of(np.array([link]), 1, len(self._ends))
            if k >= 2 and chance <= self._error:
                factor = self._factor_of(np.array([link]))
                found.append(Blame(Unit.LINK, pair, (), k, m, m, factor, chance))
            elif 2 * k >= m:
                doubts.append(pair)
        return found, doubts

    def _chance_of(self, slow: Ints, links: int, units: int) -> float:
        counted = zip(self._slow[slow].tolist(), self._observed[slow].tolist(), strict=True)
        return _chance(units, links, counted, self._p0)

    def _factor_of(self, links: Ints) -> float:
        """Return by how many times these links are worse than expected, by the median."""
        chosen = np.zeros(len(self._ends), dtype=bool)
        chosen[links] = True
        return _factor(float(np.median(self._beyond[chosen[self._link_of]])))


def _lower_scale(beyond: Floats) -> float:
    """Return the median distance from 0 of the lower half."""
    lower = np.sort(beyond)[: max(len(beyond) // 2, 1)]
    return float(np.median(np.abs(lower)))


def _grouped_medians(values: Floats, group: Ints, groups: int) -> Floats:
    """Return the median of the values of each group, 0 of a group without any."""
    order = np.lexsort((values, group))
    ordered = values[order]
    starts = np.searchsorted(group[order], np.arange(groups + 1))
    counts = np.diff(starts)
    lower = starts[:-1] + np.maximum(counts - 1, 0) // 2
    upper = starts[:-1] + counts // 2
    last = max(len(ordered) - 1, 0)
    medians = (ordered[np.minimum(lower, last)] + ordered[np.minimum(upper, last)]) / 2
    return np.where(counts > 0, medians, 0.0)
