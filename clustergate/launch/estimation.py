"""What the launches of a case say together: one estimate per figure, if they suffice. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from clustergate.benchmarks.registry import descriptor_of
from clustergate.core.figures import name_of, reported
from clustergate.core.model import Better, Estimate, Excuse, Launch, Sample
from clustergate.core.reasons import Reason
from clustergate.core.texts import DISTURBED
from clustergate.launch.disturbance import most_disturbed
from clustergate.launch.excuses import explained_factor, launch_times
from clustergate.stats.modality import Modes, two_modes

# More than that is asked of nobody: what disturbs so many launches is there to stay.
_MOST_LAUNCHES = 50


@dataclass(frozen=True)
class Sampled:
    """One figure of a case, by its ``name`` in a reference file.

    ``sample`` is the first of its samples, for its name and conditions. ``excuse`` is what
    disturbances explain, where too few launches were undisturbed. ``modes`` are the two levels of
    its undisturbed launches, where there are two. ``launches`` are the values of those, by their
    order.
    """

    name: str
    sample: Sample
    estimate: Estimate
    excuse: Excuse | None = None
    modes: Modes | None = None
    launches: Mapping[int, float] = field(default_factory=dict)


def sampled_figures(
    samples: Sequence[Sample], launches: Sequence[Launch], needed: int, check: str = ""
) -> list[Sampled]:
    """Return the figures of a case that are judged, in the order of their first samples.

    ``check`` is the name of the case's check, for the sentences and for what is known of it.

    Only undisturbed launches count, where there are ``needed`` of them. Else all do, since none is
    better than the machine can be, with an excuse. Without ``launches`` every sample counts.
    """
    apart = descriptor_of(check).apart
    figures = [(name_of(alike[0]), alike) for alike in _by_figure(reported(samples))]
    disturbed = frozenset(launch.order for launch in launches if launch.disturbed)
    doubt = doubt_of(launches, needed, check)
    cause, times = most_disturbed(launches) if doubt else None, launch_times(samples)
    return [
        Sampled(
            name,
            alike[0],
            estimate_of(alike, () if doubt else disturbed),
            Excuse(explained_factor(alike, launches, times, apart), cause, doubt)
            if doubt and cause
            else None,
            two_modes([s.value for s in alike if s.order not in disturbed]),
            {s.order: s.value for s in alike if s.order not in disturbed},
        )
        for name, alike in figures
    ]


def estimate_of(alike: Sequence[Sample], disturbed: Collection[int] = ()) -> Estimate:
    """Return the best value of the undisturbed launches of one figure.

    Noise only ever slows a launch down, so the best is nearest to what the machine can do, once
    another launch comes near to it: the two best are the ends of the interval (the K-best scheme
    of Bryant and O'Hallaron, Computer Systems, chapter 9 of the first edition, K = 2). A single
    sample gives none.
    """
    counting = [s.value for s in alike if s.order not in disturbed] or [s.value for s in alike]
    best, *others = sorted(counting, reverse=alike[0].better is Better.HIGHER)
    if not others:
        return Estimate(best, None, None, confidence=0.0, samples=1)
    # Of n values, just one lies beyond the quantile 1/n with n (1/n) (1 - 1/n)**(n - 1).
    count = len(counting)
    confidence = (1 - 1 / count) ** (count - 1)
    low, high = sorted((best, others[0]))
    return Estimate(best, low, high, confidence, count)


def doubt_of(launches: Sequence[Launch], needed: int, check: str = "") -> Reason | None:
    """Return why too few launches are undisturbed for a verdict, and what to do about it.

    None when they are enough.
    """
    disturbed = [launch for launch in launches if launch.disturbed]
    left = len(launches) - len(disturbed)
    if not disturbed or left >= needed:
        return None
    worst = most_disturbed(launches)
    used = worst.facts if worst else {}
    lost_cores, stolen_cores = (float(str(used.get(f"{x}_cores", 0.0))) for x in ("lost", "stolen"))
    return DISTURBED(
        disturbed=len(disturbed),
        launches=len(launches),
        left=left,
        needed=needed,
        setting=f"{check}{'.' if check else ''}launches={_enough(len(launches), left, needed)}",
        worst=str(worst),
        by_programs=int(lost_cores > 2 * stolen_cores),
    )


def _enough(launches: int, left: int, needed: int) -> int:
    """Return how many launches would probably leave as many undisturbed ones as are needed.

    Where none was left, as if half of one had been; half as many again, since shares differ.
    """
    wanted = math.ceil(1.5 * needed * launches / max(left, 0.5))
    return min(max(wanted, needed + 1), _MOST_LAUNCHES)


def widest_interval(samples: Sequence[Sample], launches: Sequence[Launch]) -> float | None:
    """Return half of the widest interval of a benchmark as a fraction of its value.

    A benchmark's interval is the mean over its figures, which are judged together: one size that
    jumps needs no launches of all others. None where a figure has no interval, or no value above
    zero to compare it with.
    """
    by_benchmark: dict[str, list[float]] = {}
    for figure in sampled_figures(samples, launches, needed=1):
        width = _width(figure.estimate)
        if width is None:
            return None
        by_benchmark.setdefault(figure.sample.benchmark, []).append(width)
    return max(map(statistics.fmean, by_benchmark.values()), default=None)


def _width(estimate: Estimate) -> float | None:
    if estimate.low is None or estimate.high is None or estimate.value <= 0:
        return None
    return (estimate.high - estimate.low) / 2 / estimate.value


def _by_figure(samples: Sequence[Sample]) -> Iterator[list[Sample]]:
    groups: dict[object, list[Sample]] = {}
    for sample in samples:
        conditions = tuple(sorted(sample.conditions.items()))
        groups.setdefault((sample.benchmark, sample.metric, conditions), []).append(sample)
    yield from groups.values()
