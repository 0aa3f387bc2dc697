"""The mean of repeated timings without what interrupts added to them.

The rule is that of Luecke et al. (comparison of MPI calls on clusters, Origin 2000 and T3E-600,
section 3): the first trial sets things up and never counts; of the others, those beyond 1.8 times
their median are candidates; never more than a tenth of them goes, the largest first. Pure.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

SPIKE_FACTOR = 1.8
LARGEST_SHARE_REMOVED = 0.1


@dataclass(frozen=True)
class FilteredMean:
    """The mean of what is left, the mean of all but the first trial, and how many were removed.

    All in the unit of the times; ``trials`` counts those that are left of all.
    """

    mean: float
    unfiltered_mean: float
    removed: int
    trials: int


def filtered_mean(times: Sequence[float]) -> FilteredMean:
    """Return the mean of the trials after the first one, without their spikes.

    A tenth of the trials is rounded down: 5 of 50. Raises ValueError for fewer than two trials.
    """
    counted = sorted(times[1:])
    if not counted:
        raise ValueError("the first trial never counts, so at least two are needed")
    beyond = SPIKE_FACTOR * statistics.median(counted)
    candidates = sum(time > beyond for time in counted)
    # In whole numbers: 0.1 times 50 may be less than 5.
    removed = min(candidates, int(len(counted) * LARGEST_SHARE_REMOVED + 1e-9))
    kept = counted[: len(counted) - removed]
    return FilteredMean(statistics.fmean(kept), statistics.fmean(counted), removed, len(kept))
