"""Repeated timings without what interrupts added to them, and how long the slow ones of them took.

The first trial sets things up and never counts. The mean is by the rule of Luecke et al.
(comparison of MPI calls on clusters, Origin 2000 and T3E-600, section 3): those beyond 1.8 times
the median of the others are candidates; never more than a tenth of them goes, the largest first. So
it hides a call that is slow once in ten: :func:`percentile_95` shows it. Pure.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

SPIKE_FACTOR = 1.8
LARGEST_SHARE_REMOVED = 0.1


def filtered_mean(times: Sequence[float]) -> float:
    """Return the mean of the trials after the first one, without their spikes.

    A tenth of the trials is rounded down: 5 of 50. Raises ValueError for fewer than two trials.
    """
    counted = _counted(times)
    beyond = SPIKE_FACTOR * statistics.median(counted)
    candidates = sum(time > beyond for time in counted)
    # In whole numbers: 0.1 times 50 may be less than 5.
    removed = min(candidates, int(len(counted) * LARGEST_SHARE_REMOVED + 1e-9))
    return statistics.fmean(counted[: len(counted) - removed])


def percentile_95(times: Sequence[float]) -> float:
    """Return the time that one trial of twenty exceeds at most: of 50 the third largest.

    Of fewer than 20 it is the largest. Raises ValueError for fewer than two trials.
    """
    counted = _counted(times)
    return counted[len(counted) - len(counted) // 20 - 1]


def _counted(times: Sequence[float]) -> list[float]:
    if len(times) < 2:
        raise ValueError("the first trial never counts, so at least two are needed")
    return sorted(times[1:])
