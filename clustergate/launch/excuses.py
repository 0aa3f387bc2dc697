"""How much slower a disturbance can have made a figure, at most. Pure.

Others make nothing faster than it can be, so that a disturbed launch still bounds its figure: it
would have been better by no more than the disturbance can explain. How much that is depends on how
the figure comes about; docs/verdicts-measured.md tells what each number here was measured by.

- **Ranks that compute apart** (HPL, DGEMM, FFT, STREAM) progress while they have their cores, and
  wait for the slowest at last: 1 / (1 - share), with the largest share that one rank was kept off.
- **Ranks that wait for each other all the time** progress while all have their cores: the same with
  the share in which any of them was kept off.
- **Messages that are timed for moments** may meet nothing but others: a rank that lost its core
  waits for a slice of the scheduler, milliseconds instead of microseconds. A launch alone bounds
  nothing then. The best of several does, as measured.
- **Cores that were moved apart** slow messages by some times what the round trip between the cores
  grew, as large ones go through memory then instead of a shared cache; other work by half at most,
  that of memory on another socket.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from clustergate.benchmarks.descriptor import Seconds
from clustergate.core.model import Better, Launch, Sample
from clustergate.machine.load import disturbing_cores

# Caches and slices of the scheduler: what was left of HPL's time varied by 6 % to either side.
_MARGIN = 1.25
# A disturbance need not last as long as the launch. In a second of it others had so many times more
# of the cores than on average, as slowdown goes: measured 2.1 at most.
_CONCENTRATED = 3.0
_LONG_S = 1.0
# Of so many launches the best was so many times worse at most: twice what was ever seen. Beyond
# that share in which a rank was kept off nothing was measured.
_BEST_OF = ((10, 5.0), (6, 8.0), (4, 12.0))
_MEASURED_KEPT_OFF = 0.8
# Where others used at most so much of what the launch did itself, the best of four or more was 1.73
# times worse at most, in 300 such runs.
_LITTLE = 0.15
_BEST_BESIDE_LITTLE = 3.5
# The same of cores that were far, in times of what the round trip between them grew: measured 2.3.
_FAR = 4.0
_FAR_LAUNCHES = 3
_OTHER_MEMORY = 2.0


def explained_factor(
    samples: Sequence[Sample],
    launches: Sequence[Launch],
    times: Times,
    apart: Mapping[str, Seconds | None],
) -> float:
    """Return how many times better a figure would have been at most, without disturbances.

    ``samples`` are those of one figure, ``times`` those of its case (:func:`launch_times`),
    ``apart`` what its benchmark says of that. Infinite where nothing is known.
    """
    by_order = {launch.order: launch for launch in launches}
    known = [(s, by_order[s.order]) for s in samples if s.order in by_order and s.value > 0]
    if not known:
        return math.inf
    seconds = [_seconds(sample, times, apart) for sample, _ in known]
    if min(seconds) >= _LONG_S:
        # What is measured for long bounds itself in each launch.
        costs = [_cost(sample) for sample, _ in known]
        without = [
            cost / _of_long(launch, took, apart=sample.benchmark in apart)
            for cost, took, (sample, launch) in zip(costs, seconds, known, strict=True)
        ]
        return min(costs) / min(without) if min(without) > 0 else math.inf
    return _of_short([launch for _, launch in known])


Times = Mapping[tuple[str, int], float]
"""How long the benchmarks of launches took, in seconds, by benchmark and launch."""


def launch_times(samples: Iterable[Sample]) -> Times:
    """Return how long each benchmark took in each launch, as far as it says so."""
    return {(s.benchmark, s.order): s.value for s in samples if s.metric == "time_s"}


def _cost(sample: Sample) -> float:
    return 1.0 / sample.value if sample.better is Better.HIGHER else sample.value


def _of_long(launch: Launch, seconds: float, *, apart: bool) -> float:
    if not launch.disturbed:
        return 1.0
    share = launch.kept_off if apart else launch.any_kept_off
    if share is None:
        return math.inf
    # All of it may have fallen into the time that the figure took, though hardly.
    dense = min(share * launch.seconds / seconds, 1.0 - (1.0 - share) / _CONCENTRATED)
    left = 1.0 - max(share, dense)
    far = min(launch.far, _OTHER_MEMORY) if apart else _further(launch.far)
    return far * _MARGIN / left if left > 0 else math.inf


def _of_short(launches: Sequence[Launch]) -> float:
    far = _further(max(launch.far for launch in launches))
    crowded = [launch for launch in launches if _is_crowded(launch)]
    if not crowded:
        return far if len(launches) >= _FAR_LAUNCHES else math.inf
    bounding = len(launches) - sum(
        x.any_kept_off is None or x.any_kept_off > _MEASURED_KEPT_OFF for x in crowded
    )
    worse = next((factor for least, factor in _BEST_OF if bounding >= least), math.inf)
    shares = [launch.others_share for launch in crowded]
    little = all(share is not None and share <= _LITTLE for share in shares)
    return far * (min(worse, _BEST_BESIDE_LITTLE) if little and worse < math.inf else worse)


def _further(far: float) -> float:
    return _FAR * far if far > 1.0 else 1.0


def _is_crowded(launch: Launch) -> bool:
    """Tell whether others used the node, and not only that its cores were far from each other."""
    lost, enough = launch.lost_cores or 0.0, disturbing_cores(launch.own_cores)
    moved_alone = launch.far > 1.0 and lost <= enough
    return bool(launch.disturbed) and not moved_alone


def _seconds(sample: Sample, times: Times, apart: Mapping[str, Seconds | None]) -> float:
    """Return how long a figure was measured, 0 where that is not known."""
    of = apart.get(sample.benchmark)
    if of is not None:
        return of(sample)
    return times.get((sample.benchmark, sample.order), 0.0)
