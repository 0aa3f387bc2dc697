"""What to measure again, so that a doubt becomes an accusation or vanishes. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from clustergate.screening.localisation import Located
from clustergate.screening.rounds import Pairs, rounds_of

CONTROLS = 16
"""Sound pairs, or nodes, that are measured beside: how often those are slow is the measure."""

_FEWEST_PARTNERS = 3
_TRUSTED_OF_A_SUSPECT = 2


def further_rounds(
    nodes: int, pairs: ArrayLike, located: Sequence[Located], random: np.random.Generator
) -> list[Pairs]:
    """Return rounds of disjoint pairs that settle what several metrics leave in doubt.

    ``pairs`` are those that were measured. A doubted pair is measured again; each of its nodes that
    met too few others, and each suspect, meets trusted nodes; trusted nodes that would rest meet
    each other. Nothing when all is settled.
    """
    doubts = sorted({pair for found in located for pair in found.doubts if len(pair) == 2})
    suspects = sorted({node for found in located for node in found.suspects})
    if not doubts and not suspects:
        return []
    seen = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    met: Mapping[int, set[int]] = {}
    asked = {node for pair in doubts for node in pair} | set(suspects)
    met = {n: set(seen[(seen == n).any(axis=1)].ravel().tolist()) - {n} for n in asked}
    trusted = _trusted(nodes, located, asked, random)
    wanted = list(doubts)
    given = 0
    for node in sorted(asked):
        lacking = max(_FEWEST_PARTNERS - len(met[node]), 0)
        if node in suspects:
            lacking = max(lacking, _TRUSTED_OF_A_SUSPECT)
        # The next of the trusted in turn, so that no few of them meet everybody.
        new = [t for t in (*trusted[given:], *trusted[:given]) if t != node]
        new.sort(key=lambda t: t in met[node])
        wanted += [(node, partner) for partner in new[:lacking]]
        given = (given + lacking) % max(len(trusted), 1)
    return [_with_controls(members, trusted) for members in rounds_of(wanted)]


def further_nodes(located: Sequence[Located], nodes: int, random: np.random.Generator) -> list[int]:
    """Return the nodes to measure alone again: the doubted ones, and others to compare with."""
    doubts = sorted({unit[0] for found in located for unit in found.doubts if len(unit) == 1})
    if not doubts:
        return []
    return [*doubts, *_trusted(nodes, located, set(doubts), random)[: 2 * CONTROLS]]


def _trusted(
    nodes: int, located: Sequence[Located], asked: set[int], random: np.random.Generator
) -> list[int]:
    """Return the nodes that were slow in no metric, in a random order; if none, any others."""
    sound = [set(found.trusted) for found in located]
    found = sorted(set.intersection(*sound) - asked) if sound else []
    found = found or sorted(set(range(nodes)) - asked) or list(range(nodes))
    order: list[int] = random.permutation(found).tolist()
    return order


def _with_controls(members: list[tuple[int, int]], trusted: Sequence[int]) -> Pairs:
    busy = {node for pair in members for node in pair}
    idle = [node for node in trusted if node not in busy]
    controls = list(zip(idle[::2], idle[1::2], strict=False))[:CONTROLS]
    return np.array([*members, *controls], dtype=np.int64).reshape(-1, 2)
