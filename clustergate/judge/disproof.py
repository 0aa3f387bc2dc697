"""Figures that prove their reference wrong: no machine becomes so much better by itself. Pure.

A reference that is too low hides as much of a slow-down as it lacks. By how much unchanged machines
beat the best of five of their runs later was seen in ten public data sets of clusters: compute and
bandwidth by 1.02 to 1.06 times on the same exclusive nodes, latency by 1.11, collectives of few
nodes by 1.5 at worst and seldom; on shared nodes each by more.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

from clustergate.core.model import (
    BANDWIDTH,
    COLLECTIVE,
    COMPUTE,
    LATENCY,
    MEASURED,
    MEMORY,
    BaselineRuns,
    Better,
    Reference,
)
from clustergate.core.reasons import Reason, Words
from clustergate.judge.runs import best_level, days, kind_in, printed_step, spread
from clustergate.judge.scatter import FEWEST_DAYS
from clustergate.launch.estimation import Sampled
from clustergate.stats import MAD
from clustergate.stats.slow_share import FEWEST_LAUNCHES

WORSE = "worse"
"""How a figure is whose reference may have slipped, or the machine: it stays a regression."""
# By how many times an unchanged machine gains at most: on exclusive nodes by kind, and elsewhere.
_GAINS = {COMPUTE: 1.10, MEMORY: 1.10, BANDWIDTH: 1.10, LATENCY: 1.25, COLLECTIVE: 1.35}
_ELSEWHERE = 1.5
# As surely as a screening accuses a node.
_SURELY = 4.0
# What the days of a machine scatter by, where a baseline has too few of them to tell: where nodes
# are exclusive, that share of what it gains at most, on a logarithm.
_BETWEEN_DAYS, _OF_MOST_GAINED = 0.10, 0.1
REFERENCE_BITS = Words(
    "reference.bits",
    "{benchmark} is about {times:.0f} times {how} than {figures:~its reference|all its references}",
    cause="that looks like bits for bytes",
    remedy="correct {where}",
)
SLIPPED_POINT = Words(
    "reference.slipped-point",
    "{benchmark} is about {times:.0f} times {how} than {figures:~its reference|all its references}",
    cause="that looks like a slipped decimal point",
    remedy="correct {where}",
)
SLIPPED_PREFIX = Words(
    "reference.slipped-prefix",
    "{benchmark} is about {times:.0f} times {how} than {figures:~its reference|all its references}",
    cause="that looks like a slipped prefix, Tflop/s for Gflop/s",
    remedy="correct {where}",
)
# By how many times a reference is off that was written in bits, with a point or a prefix slipped.
_SLIPS: Mapping[float, Words[...]] = {
    8.0: REFERENCE_BITS,
    10.0: SLIPPED_POINT,
    100.0: SLIPPED_POINT,
    1000.0: SLIPPED_PREFIX,
}
# 8 and 10 times are told apart half-way.
_AS_FAR = math.log(10 / 8) / 2


def beyond_gain(
    kind: str, known: BaselineRuns | None, own: float = 0.0, *, exclusive: bool
) -> float:
    """Return from which gain on a reference is wrong that was made from runs, as a logarithm.

    It is more than an unchanged machine gains at a figure of this kind, and than what the runs
    scatter by: ``known`` are those of the baseline, ``own`` the standard deviation of the run
    beside it.
    """
    most = math.log(_GAINS[kind] if exclusive else _ELSEWHERE)
    of_runs = between = 0.0
    if known is not None:
        of_runs = spread(known) * math.sqrt(1 + 1 / len(known.runs))
        if days(known) < FEWEST_DAYS:
            between = _OF_MOST_GAINED * most if exclusive else _BETWEEN_DAYS
    return max(most, _SURELY * math.hypot(of_runs, between, own))


def disproved(
    check: str,
    sampled: Sequence[Sampled],
    expected: Sequence[Reference | None],
    *,
    exclusive: bool,
) -> list[Reason | None]:
    """Return of each figure of a case why its reference is proven wrong, None where it is not."""
    known = {
        place: (one, reference, -one.sample.better.worse_by(one.estimate.value, reference.value))
        for place, (one, reference) in enumerate(zip(sampled, expected, strict=True))
        if reference is not None and _comparable(one, reference)
    }
    slips = _slips(known)
    return [
        slips.get(place) or (_beaten(check, *known[place], exclusive) if place in known else None)
        for place in range(len(sampled))
    ]


REFERENCE_OUTGROWN = Words(
    "reference.outgrown",
    (
        "{value:number} {unit}, {ratio:compared} the reference {reference:number} ({origin}): an "
        "unchanged machine gains {most:.2f} x at most"
    ),
    cause="the reference is wrong, or the machine was changed",
    remedy="accept it: `clustergate baseline --accept-better '{figure}'`, after five new runs",
)


def _beaten(
    check: str, one: Sampled, reference: Reference, gained: float, exclusive: bool
) -> Reason | None:
    # On another processor, or measured otherwise, it is no wonder.
    if reference.doubt or not _is_measured(reference):
        return None
    values = [value for value in one.launches.values() if value > 0]
    if values:
        better = one.sample.better
        gained = min(gained, -better.worse_by(best_level(values, better), reference.value))
    if reference.baseline is not None:
        # What is printed in few digits may be half a step from what it is, on either side.
        step = printed_step(check, reference.baseline.values)
        gained -= _of_digits(step, one.estimate.value, reference.value)
    sample = one.sample
    kind = kind_in(check, sample.benchmark, sample.metric, sample.conditions.get("bytes"))
    if gained <= beyond_gain(kind, None, exclusive=exclusive):
        # How the runs scatter, which takes long to tell, only makes it more.
        return None
    most = beyond_gain(kind, reference.baseline, _scatter_of(values), exclusive=exclusive)
    if reference.baseline is None:
        most = max(most, abs(math.log1p(reference.side(sample.better) or 0.0)))
    if gained <= most:
        return None
    return REFERENCE_OUTGROWN(
        value=one.estimate.value,
        unit=one.sample.unit,
        reference=reference.value,
        ratio=one.estimate.value / reference.value,
        origin=reference.origin,
        where=reference.where or "it",
        most=math.exp(most),
        figure=one.name,
    )


def _of_digits(step: float, *values: float) -> float:
    """Return by how much the logarithms of values differ whose last digits are half a step off."""
    return sum(-math.log1p(-step / 2 / value) for value in values if step / 2 < value)


def _scatter_of(values: Sequence[float]) -> float:
    """Return the standard deviation of launches as logarithms, whatever a few of them do."""
    if len(values) < FEWEST_LAUNCHES:
        return 0.0
    logs = [math.log(value) for value in values]
    centre = statistics.median(logs)
    return MAD * statistics.median(abs(x - centre) for x in logs)


def _slips(known: Mapping[int, tuple[Sampled, Reference, float]]) -> dict[int, Reason]:
    """Return what slipped in references of whole benchmarks, by the places of their figures.

    ``known`` is by place, with what the figure gained on its reference, as a logarithm.
    """
    wholes: dict[tuple[str, str], dict[int, float]] = {}
    for place, (one, _, gained) in known.items():
        wholes.setdefault((one.sample.benchmark, one.sample.metric), {})[place] = gained
    disproved: dict[int, Reason] = {}
    for (benchmark, _), whole in wholes.items():
        median = statistics.median(whole.values())
        better = median > 0
        if not better and any(_is_measured(known[place][1]) for place in whole):
            # The machine reached it: what is a tenth of it is slow.
            continue
        least = min(gained if better else -gained for gained in whole.values())
        for times, words in _SLIPS.items():
            if abs(abs(median) - math.log(times)) <= _AS_FAR and 2 * least > math.log(times):
                for place in whole:
                    disproved[place] = words(
                        benchmark=benchmark,
                        figures=len(whole),
                        times=times,
                        how="better" if better else WORSE,
                        where=known[place][1].where or "it",
                    )
    return disproved


def _is_measured(reference: Reference) -> bool:
    return reference.origin.startswith(MEASURED)


def _comparable(one: Sampled, reference: Reference) -> bool:
    return (
        one.sample.better is not Better.NEITHER
        and one.sample.unit == reference.unit
        and min(one.estimate.value, reference.value) > 0
    )
