"""Launches that are far worse than the others of an unchanged machine: what of them is usual? Pure.

The best launch tells what a node can do, and a fault that comes and goes leaves it as it is. So the
share of launches that are far worse has a test of its own (binomial). ``worse_by`` are logarithms
of ratios to the reference, positive is worse.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from clustergate.stats.one_thread import scipy

# Of a run in which nothing has changed: the chance that it is called a regression by the slow
# launches of any of its figures, as small a one as of benchmarks.
_ERROR = 0.005 / 4
# The best of fewer launches of a short benchmark has a tail that no baseline of some 20 runs shows:
# of unchanged runs of one launch 41 % were called regressions by the worst launch of the baseline,
# of two 5 %, of three none of 79.
FEWEST_LAUNCHES = 3
# A launch is far worse from three times on. So many of the unchanged ones were, of figures and of
# groups; what a baseline has beyond that is taken twice.
FAR_WORSE = math.log(3.0)
_SLOW_SHARES = (0.03, 0.01)
_TWICE = math.log(2.0)
# Slow launches that are less likely than that do not pass. Nor do so many that a fault in a third
# of the launches, beside what is usual, would show no more in one run of four: 1 of 6 or fewer.
_DOUBTFUL = 0.1
_FAULTY_SHARE, _AS_FEW = 1 / 3, 0.25


def slow_launches(worse_by: Sequence[float]) -> list[float]:
    """Return those launches that are far worse than the reference."""
    return [value for value in worse_by if value > FAR_WORSE]


def mostly_slow(worse_by: Sequence[float]) -> list[float]:
    """Return the launches twice as slow as the reference, where they are most of three or more."""
    slow = [value for value in worse_by if value > _TWICE]
    return slow if 2 * len(slow) > len(worse_by) >= FEWEST_LAUNCHES else []


def chance_of_slow(slow: int, launches: int, usual: float) -> float:
    """Return how likely an unchanged run has so many slow launches or more (binomial)."""
    return float(scipy.special.bdtrc(slow - 1, launches, usual)) if slow else 1.0


def usual_share(known: float | None, together: bool = False) -> float:
    """Return the share of launches that are slow on an unchanged machine.

    ``known`` is that of a baseline, None where there is none; of a figure, or of all figures of a
    benchmark ``together``.
    """
    return max(_SLOW_SHARES[together], min(2.0 * (known or 0.0), 1.0))


def is_slow_share(slow: int, launches: int, usual: float, compared: int) -> bool:
    """Tell whether a run that compares so many figures has more slow launches than is usual."""
    return chance_of_slow(slow, launches, usual) < _ERROR / compared


def is_doubtful_share(slow: int, launches: int, usual: float) -> bool:
    """Tell whether a run does not pass by its slow launches, of which there are some.

    They are too many for an unchanged machine, or too many to rule out a fault now and then.
    """
    faulty = min(usual + _FAULTY_SHARE, 1.0)
    rare = chance_of_slow(slow, launches, usual) < _DOUBTFUL
    return rare or bool(scipy.special.bdtr(slow, launches, faulty) > _AS_FEW)
