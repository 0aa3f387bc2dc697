"""What to measure again, so that a doubt becomes an accusation or vanishes. Pure."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from clustergate.studies.screen.localisation import TOO_NOISY, Located, Unit
from clustergate.studies.screen.rounds import Pairs, rounds, rounds_of

CONTROLS = 16
"""Sound pairs, or nodes, that are measured beside: how often those are slow is the measure."""

_FEWEST_PARTNERS = 3
_TRUSTED_OF_A_SUSPECT = 2
# Launches of each that are sensible, and from which on it can be told whether they are enough; of
# all nodes, from which on it shows that many times as many would not be.
_MOST_LAUNCHES, _ENOUGH_TO_TELL, _ENOUGH_OF_ALL = 8, 5, 30
# Of so many nodes all pairs take few rounds.
_FEW = 8


def drop_moot_doubts(located: Mapping[str, Located]) -> dict[str, Located]:
    """Return what metrics say without the doubts about whom any of them accuses.

    A node that is to blame is mended first: what its links do besides is seen after that.
    """
    nodes = accused_nodes(located)
    links = {b.nodes for one in located.values() for b in one.blames if b.unit is Unit.LINK}
    return {
        key: replace(
            one,
            doubts=tuple(d for d in one.doubts if not nodes.intersection(d) and d not in links),
            suspects=tuple(n for n in one.suspects if n not in nodes),
            returning=tuple(n for n in one.returning if n not in nodes),
        )
        for key, one in located.items()
    }


def accused_nodes(located: Mapping[str, Located]) -> set[int]:
    """Return the nodes that any metric accuses, by themselves or with their switch."""
    blames = [blame for one in located.values() for blame in one.blames]
    return {n for b in blames if b.unit in (Unit.NODE, Unit.SWITCH) for n in b.nodes}


def launches_needed(located: Located) -> float:
    """Return how many launches of each it takes to see who is twice as slow.

    Noise falls with the square root of the launches.
    """
    return located.launches * (located.noticed / TOO_NOISY) ** 2


def should_repeat(located: Located, nodes: int, accused: bool, room: bool) -> bool:
    """Tell whether everything should be launched again, because the noise of a metric is too large.

    Not beyond what is sensible; and once somebody is ``accused`` it takes more to go on. Nothing
    does where there is no ``room`` for another bad node, as those are fewer than half.
    """
    if not located.too_noisy or (accused and not room) or located.launches > _MOST_LAUNCHES:
        return False
    if accused:
        return launches_needed(located) <= _MOST_LAUNCHES
    if located.launches >= _ENOUGH_TO_TELL:
        return launches_needed(located) <= 2 * _MOST_LAUNCHES
    # Noise falls faster than expected where it is that of a few disturbed launches, or of a fault.
    early = nodes * located.launches < _ENOUGH_OF_ALL
    return early or launches_needed(located) <= 8 * _MOST_LAUNCHES


def settle(located: Mapping[str, Located], nodes: int) -> dict[str, Located]:
    """Return what metrics say, without doubts where no more nodes can be bad."""
    if room_for_more(located, nodes):
        return drop_moot_doubts(located)
    return {key: replace(one, doubts=(), suspects=(), returning=()) for key, one in located.items()}


def room_for_more(located: Mapping[str, Located], nodes: int) -> bool:
    """Tell whether beside the bad nodes another one would leave the sound a majority."""
    bad = len(accused_nodes(located))
    return not bad or 2 * (bad + 1) < nodes


def further_rounds(
    nodes: int, pairs: ArrayLike, located: Sequence[Located], random: np.random.Generator
) -> list[Pairs]:
    """Return rounds of disjoint pairs that settle what several metrics leave in doubt.

    ``pairs`` are those that were measured. A doubted pair is measured again; each of its nodes that
    met too few others, and each suspect, meets trusted nodes, those first that it met least; nodes
    that would rest meet each other. Where few nodes leave none for that, all pairs are measured
    again: each is compared with what ran about the same time. Nothing when all is settled.
    """
    doubts = sorted({pair for groups in located for pair in groups.doubts if len(pair) == 2})
    suspects = sorted({n for groups in located for n in (*groups.suspects, *groups.returning)})
    if not doubts and not suspects:
        return []
    seen = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    asked = {node for pair in doubts for node in pair} | set(suspects)
    met = {n: Counter(seen[(seen == n).any(axis=1)].ravel().tolist()) for n in asked}
    trusted = _trusted(nodes, located, asked, random)
    wanted = list(doubts)
    given = 0
    for node in sorted(asked):
        lacking = max(_FEWEST_PARTNERS - (len(met[node]) - 1), 0)
        if node in suspects:
            lacking = max(lacking, _TRUSTED_OF_A_SUSPECT)
        # The next of the trusted in turn, so that no few of them meet everybody.
        new = (t for t in (*trusted[given:], *trusted[:given]) if t != node)
        partners = heapq.nsmallest(lacking, new, key=met[node].__getitem__)
        wanted += [(node, partner) for partner in partners]
        given = (given + lacking) % max(len(trusted), 1)
    others = [n for n in range(nodes) if n not in trusted and n not in suspects]
    asking = rounds_of(wanted)
    known = random.permutation(np.unique(np.sort(seen, axis=1), axis=0), axis=0).tolist()
    rest = [*trusted, *others]
    # Where all pairs were not measured, new ones would only bring doubts of their own.
    beside = [*known, *zip(rest[::2], rest[1::2], strict=False)]
    groups = [_with_controls(members, beside, rest, doubts) for members in asking]
    if nodes > _FEW:
        return groups
    seed = int(random.integers(2**31))
    if any(len(a) == len(b) for a, b in zip(groups, asking, strict=True)):
        return list(rounds(nodes, seed=seed))
    return [*groups, *rounds(nodes, 1, seed)]


def further_nodes(located: Sequence[Located], nodes: int, random: np.random.Generator) -> list[int]:
    """Return the nodes to measure alone again: the doubted ones, and others to compare with."""
    doubts = sorted({unit[0] for one in located for unit in one.doubts if len(unit) == 1})
    if not doubts:
        return []
    return [*doubts, *_trusted(nodes, located, set(doubts), random)[: 2 * CONTROLS]]


def _trusted(
    nodes: int, located: Sequence[Located], asked: set[int], random: np.random.Generator
) -> list[int]:
    """Return the nodes that were slow in no metric, in a random order; if none, any others."""
    sound = [set(trusted.trusted) for trusted in located]
    trusted = sorted(set.intersection(*sound) - asked) if sound else []
    trusted = trusted or sorted(set(range(nodes)) - asked) or list(range(nodes))
    order: list[int] = random.permutation(trusted).tolist()
    return order


def _with_controls(
    members: list[tuple[int, int]],
    beside: Sequence[Sequence[int]],
    rest: Sequence[int],
    doubts: Sequence[tuple[int, ...]],
) -> Pairs:
    """Return pairs with others ``beside`` them, of nodes that may ``rest`` and are free."""
    free = set(rest) - {node for pair in members for node in pair}
    controls: list[Sequence[int]] = []
    for pair in beside:
        if len(controls) == CONTROLS:
            break
        if free.issuperset(pair) and tuple(sorted(pair)) not in doubts:
            controls.append(pair)
            free.difference_update(pair)
    return np.array([*members, *controls], dtype=np.int64).reshape(-1, 2)
