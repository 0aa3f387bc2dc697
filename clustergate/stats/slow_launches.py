"""Faults that come and go: does B have more slow launches than A, and than is usual? Pure.

A launch is slow from :data:`SLOW` times the lower quartile of all launches of both on. No lot can
tell four slow launches of twelve from chance: exchanging A and B in their rounds shows as much in 1
of 16 ways. So the share of slow launches that is usual is known beforehand, and learned from A: it
has a beta distribution, that of one slow launch in 41 to which those of A are added, and the chance
is that of so many slow ones of B (Gelman et al., Bayesian data analysis, third edition, 2.4).

That nothing is found does not rule it out: how many more of B's launches may be half as slow again,
or a tenth slower where rounds scatter little, is told by the rounds in which one of both was
(Agresti and Min, Simple improved confidence intervals for comparing matched proportions, Statistics
in Medicine 24, 2005).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from clustergate.stats.one_thread import scipy

SLOW = 3.5
"""So many times the lower quartile a slow launch takes."""
ERROR = 0.006
"""Chance of a fault to be shared by all benchmarks of a comparison; chosen on recordings."""
# In so many rounds; of later ones in inverse proportion to them, for there is a look after each.
_AT_FIRST = 12
RULED_OUT = 1 / 3
"""The share of launches, beyond A's, of which it must be ruled out that B's are slow."""

_QUARTILE = 0.25
# From so many times the lower quartile on they are counted for that; and the standard errors by
# which they are, with three rounds added: with a look after each round, of simulated contenders of
# which one was twice as slow in a third of its launches, 1 of 60 had that ruled out.
_RATHER_SLOW, _ERRORS = 1.5, 2.33
# On a quiet machine from as many as must be ruled out of a size on, and so many times the lower
# quartile of what A and B differ by in a round.
_QUIET_SLOW, _APART = 1.1, 8.0
# Slow launches, and others, that are taken for seen before anything was.
_SLOW_BEFORE, _FAST_BEFORE = 1.0, 40.0

Floats = NDArray[np.float64]


def slow_counts(a: Floats, b: Floats) -> tuple[int, int]:
    """Return how many launches of A are slow, and of B: logarithms of their times, in rounds.

    Each is a table of rounds and figures, of which a launch's is the mean; what has no value is
    endless, and slow.
    """
    slow_a, slow_b = _slow(a, b, SLOW)
    return int(slow_a.sum()), int(slow_b.sum())


def _slow(a: Floats, b: Floats, times: float) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    both = np.concatenate([a, b])
    if not both.size:
        return np.zeros(0, dtype=bool), np.zeros(0, dtype=bool)
    with np.errstate(invalid="ignore"):
        above = (both - np.quantile(both, _QUARTILE, axis=0, method="lower")).mean(axis=1)
        slow = above > np.log(times)
    return slow[: len(a)], slow[len(a) :]


def rounds_to_rule_out(a: Floats, b: Floats, most: int, unseen: float = 3.0) -> int | None:
    """Return after how many rounds like these :data:`RULED_OUT` would be, at ``most`` as many more.

    That are these rounds where it is by now. None if it would not be by then. ``unseen`` rounds, in
    which one of both was slow, are taken for seen: where there are none, what no round showed is.
    """
    slow = [_slow(a, b, times) for times in {_RATHER_SLOW, _rather_slow(a, b)}]
    later = range(max(len(a), 1), len(a) + most + 1)
    return next(
        (n for n in later if all(_most_slower(*x, n, unseen) < RULED_OUT for x in slow)), None
    )


def _rather_slow(a: Floats, b: Floats) -> float:
    """Return from how many times the lower quartile on launches count as slow, of such rounds."""
    with np.errstate(invalid="ignore"):
        apart = np.abs((a - b).mean(axis=1))
    apart = apart[np.isfinite(apart)]
    quiet = float(np.quantile(apart, _QUARTILE)) if apart.size else np.inf
    return min(_RATHER_SLOW, max(_QUIET_SLOW, float(np.exp(_APART * quiet))))


def _most_slower(
    slow_a: NDArray[np.bool_], slow_b: NDArray[np.bool_], rounds: int, unseen: float
) -> float:
    """Return which share it may be after so many rounds that go on as those that are known."""
    times = rounds / max(len(slow_a), 1)
    more = times * (int(slow_b.sum()) - int(slow_a.sum()))
    of_one = times * int((slow_a != slow_b).sum())
    return (more + _ERRORS * float(np.sqrt(of_one + unseen - more**2 / rounds))) / rounds


def is_fault(slow_a: int, slow_b: int, rounds: int, benchmarks: int) -> bool:
    """Tell whether B has more slow launches than chance has, in any of so many benchmarks."""
    error = ERROR / benchmarks * min(_AT_FIRST / max(rounds, 1), 1.0)
    return chance_of_slow(slow_a, slow_b, rounds) <= error


def chance_of_slow(slow_a: int, slow_b: int, rounds: int) -> float:
    """Return how likely so many slow launches of B are in so many rounds, by those of A."""
    slow, fast = _SLOW_BEFORE + slow_a, _FAST_BEFORE + rounds - slow_a
    return float(scipy.stats.betabinom.sf(slow_b - 1, rounds, slow, fast))
