"""Whether launches have two modes: two levels with nothing between them. Pure functions.

Placement makes modes: a buffer that lies on one memory or on the other, ranks that share a cache or
do not, a protocol that is chosen anew at each start. A mean of two modes is the value of neither.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

# Launches that a mode has at least: one alone is an outlier, two may be chance.
FEWEST_OF_A_MODE = 3
# Modes that are nearer to each other change no verdict.
SMALLEST_GAP = math.log(1.05)
# Two bell curves are parted cleanly from 2 on, as Ashman says. Here the gap is where it is largest,
# so that also one level falls into parts: of 6 to 60 launches of one level, normal, exponential or
# log-normal, no more than one set in 500 reaches this.
CLEANLY = 11.0


@dataclass(frozen=True)
class Modes:
    """Two levels of a figure: their medians, and how many launches were at each."""

    low: float
    high: float
    launches_low: int
    launches_high: int


def two_modes(values: Sequence[float]) -> Modes | None:
    """Return the two modes of some launches, None where one is seen.

    The sorted logarithms are parted at their largest gap. The parts are modes when each has some
    launches, when they are 5 % apart, and when they are parted cleanly: by Ashman's D, the distance
    of the means over the root of the mean variance (Ashman, Bird and Zepf, Astronomical Journal
    108, 1994, 2348, section 3). Values of zero or less have no logarithm, and no modes here.
    """
    if len(values) < 2 * FEWEST_OF_A_MODE or min(values) <= 0.0:
        return None
    ordered = sorted(math.log(value) for value in values)
    places = range(FEWEST_OF_A_MODE, len(ordered) - FEWEST_OF_A_MODE + 1)
    place = max(places, key=lambda k: ordered[k] - ordered[k - 1])
    low, high = ordered[:place], ordered[place:]
    if high[0] - low[-1] < SMALLEST_GAP or separation(low, high) < CLEANLY:
        return None
    return Modes(
        low=math.exp(statistics.median(low)),
        high=math.exp(statistics.median(high)),
        launches_low=len(low),
        launches_high=len(high),
    )


def separation(low: Sequence[float], high: Sequence[float]) -> float:
    """Return Ashman's D of two parts of at least two values each, infinite where none scatters."""
    scatter = math.sqrt((statistics.variance(low) + statistics.variance(high)) / 2)
    apart = abs(statistics.fmean(high) - statistics.fmean(low))
    return apart / scatter if scatter else math.inf
