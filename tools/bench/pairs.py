"""A stack against itself, on recorded launches: how often is it told apart? Pure.

Two launches of a stack that follow each other make a round, and a lot decides which of them is A's.
A comparison takes rounds that follow each other, from a place chosen by lot: the rounds of two
comparisons may be the same, the lots never are.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from clustergate.model import Better
from clustergate.statistics.comparison import Comparison, Relation
from clustergate.statistics.rounds import Rounds, compare_rounds
from tools.bench.launches import Launch

_BETTER = (Relation.A_BETTER, Relation.B_BETTER)


def recorded_rounds(launches: Sequence[Launch], stack: str) -> NDArray[np.float64]:
    """Return all launches of a stack in pairs, disturbed or not, in us: (rounds, 2, figures)."""
    mine = [launch.microseconds for launch in launches if launch.stack == stack]
    figures = [[one[name] for name in sorted(one)] for one in mine[: len(mine) // 2 * 2]]
    return np.array(figures, dtype=float).reshape(len(figures) // 2, 2, -1)


def told_apart(pairs: Sequence[NDArray[np.float64]], rounds: int, times: int, seed: int = 0) -> int:
    """Return how many comparisons of a stack with itself call anything better.

    ``pairs`` are the rounds of each stack; ``times`` comparisons are spread over them.
    """
    happened = 0
    for a, b in _drawn(pairs, rounds, times, seed):
        found = _compared(a, b)
        happened += any(one.verdict in _BETTER for one in found)
    return happened


def slowed(
    launches: Sequence[Launch], stacks: Sequence[str], rounds: int, times: int, factor: float,
    seed: int = 0,
) -> Mapping[str, int]:  # fmt: skip
    """Return what is said of a benchmark of which B is slower by a factor, in all its sizes.

    ``found``: A is better in some size, and B in none; ``inconclusive``: in some size, and nothing
    is better; ``missed``: neither, all are equivalent; ``wrong``: B is better somewhere.
    """
    counts: Counter[str] = Counter(dict.fromkeys(("found", "inconclusive", "missed", "wrong"), 0))
    names = sorted(launches[0].microseconds)
    benchmarks = sorted({name.partition("/")[0] for name in names})
    for k, (stack, benchmark) in enumerate(itertools.product(stacks, benchmarks)):
        pairs = [recorded_rounds(launches, stack)]
        columns = [c for c, name in enumerate(names) if name.partition("/")[0] == benchmark]
        for a, b in _drawn(pairs, rounds, times, seed + k):
            slower = b.copy()
            slower[:, columns] *= factor
            found = _compared(a, slower)
            counts[_said([found[column].verdict for column in columns])] += 1
    return dict(counts)


def _said(verdicts: Sequence[Relation]) -> str:
    if Relation.B_BETTER in verdicts:
        return "wrong"
    if Relation.A_BETTER in verdicts:
        return "found"
    return "inconclusive" if Relation.INCONCLUSIVE in verdicts else "missed"


def _drawn(
    pairs: Sequence[NDArray[np.float64]], rounds: int, times: int, seed: int
) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Return A's and B's launches of each comparison, of the shape (rounds, figures).

    Raises ValueError when fewer rounds than that were recorded.
    """
    lot = np.random.default_rng(seed)
    drawn = []
    for k in range(times):
        held = pairs[k % len(pairs)]
        if len(held) < rounds:
            raise ValueError(f"{len(held)} rounds were recorded, and {rounds} are asked for")
        start = int(lot.integers(0, len(held) - rounds + 1))
        part = held[start : start + rounds]
        first = lot.integers(0, 2, size=rounds)
        places = np.arange(rounds)
        drawn.append((part[places, first], part[places, 1 - first]))
    return drawn


def _compared(a: NDArray[np.float64], b: NDArray[np.float64]) -> list[Comparison]:
    (found,) = compare_rounds([Rounds(a, b, [Better.LOWER] * a.shape[1])])
    return found
