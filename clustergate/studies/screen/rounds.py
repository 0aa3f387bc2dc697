"""Which nodes meet when: rounds of disjoint pairs, so that no node waits for another. Pure.

Nodes are numbered from 0. All pairs of n nodes, n even, fall into n - 1 rounds in which each node
has exactly one partner: one node keeps its place and the others walk round a circle (T. P. Kirkman,
On a problem in combinations, 1847; É. Lucas, Récréations mathématiques II, 1883, 6th recreation;
tournaments are planned this way). For n odd there are n rounds, and in each another node rests.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

Pairs = NDArray[np.int64]
"""One row per pair, two columns of node numbers."""


def number_of_rounds(nodes: int) -> int:
    """Return how many rounds all pairs take: n - 1 for an even number of nodes, n for an odd one.

    Raises ValueError for a negative number; fewer than two nodes have no round.
    """
    if nodes < 0:
        raise ValueError(f"there are no {nodes} nodes")
    return 0 if nodes < 2 else nodes - 1 + nodes % 2


def rounds(nodes: int, number: int | None = None, seed: int | None = None) -> Iterator[Pairs]:
    """Yield rounds of disjoint pairs in which no pair occurs twice; all pairs without ``number``.

    With ``number`` only so many of the rounds are yielded, drawn at random: each node then meets so
    many others (one fewer for each round that it rests in). ``seed`` shuffles nodes and rounds; the
    same seed gives the same plan. Without it the nodes keep their places and the rounds their
    order. Raises ValueError for a negative number of nodes or rounds.
    """
    possible = number_of_rounds(nodes)
    if number is not None and number < 0:
        raise ValueError(f"there are no {number} rounds")
    wanted = possible if number is None else min(number, possible)
    places, order = np.arange(nodes), np.arange(possible)
    if seed is not None:
        random = np.random.default_rng(seed)
        places, order = random.permutation(nodes), random.permutation(possible)
    # An odd number of nodes has an empty place that keeps still: who meets it rests.
    around = possible
    steps = np.arange(1, (around + 1) // 2)
    for turn in order[:wanted].tolist():
        left, right = (turn + steps) % around, (turn - steps) % around
        if nodes % 2 == 0:
            left, right = np.append(left, nodes - 1), np.append(right, turn)
        yield np.stack([places[left], places[right]], axis=1)


def rounds_of(pairs: Sequence[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Return some pairs as rounds of disjoint ones, each pair as early as both nodes are free.

    It takes fewer than twice as many rounds as the node with the most pairs has, which is what a
    greedy colouring of edges takes at most. A pair that is named twice is in two rounds.
    """
    rounds: list[list[tuple[int, int]]] = []
    busy: list[set[int]] = []
    for pair in pairs:
        for members, taken in zip(rounds, busy, strict=True):
            if not taken.intersection(pair):
                members.append(pair)
                taken.update(pair)
                break
        else:
            rounds.append([pair])
            busy.append(set(pair))
    return rounds
