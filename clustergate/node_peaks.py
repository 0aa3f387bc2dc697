"""What a node reached by its own measure, with intervals, and what that says of the node itself.

The interval of a peak runs from the slowest to the fastest trial, each moved outwards by its
distance from the median, and by 2 % of the median at least: the trials of a peak take a second and
a benchmark takes minutes, over which clocks move more than within that second, and the fastest of
few trials is not the fastest there is. Rows that were taken before and after a benchmark may come
together; then the interval holds what the node did meanwhile. Fewer than three trials give no
interval, and so no peak. Pure functions.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from clustergate.judging import judge
from clustergate.model import METRICS, Estimate, Figure, Limit, Row, Verdict

_FEWEST_TRIALS = 3
_SMALLEST_SPREAD = 0.02
# The interval of an undisturbed peak spans a twentieth to a tenth.
_STEADY = 0.75
# Kernels for vectors half as wide as the processor's reach half of its FMA peak at most; those
# that fit it reach 0.7 to 0.95.
_DGEMM_SHARE = 0.5
# Cores of one kind differ by up to a tenth in their turbo clocks, and in bandwidth by a little more
# with the place of their memory; a throttled core is at half.
_SHARE_OF_THE_FASTEST_CORE = {"fma_peak": 0.8, "triad": 0.7}
_NAMES = {"fma_peak": "FMA peak", "triad": "triad bandwidth", "dgemm": "DGEMM"}


@dataclass(frozen=True)
class Peak:
    """A measurement on some cores at once: ``fma_peak``, ``triad`` or ``dgemm``.

    ``median``, ``low`` and ``high`` are in Gflop/s or GB/s, ``k`` is the inner size of a dgemm.
    """

    kind: str
    metric: str
    cores: tuple[int, ...]
    k: int | None
    median: float
    low: float
    high: float
    trials: int

    @property
    def steady(self) -> bool:
        """Whether the trials agree well enough to bound anything.

        A core that something else runs on meanwhile loses half of its rate or more, in some trials
        and not in others: the fastest of such trials is no limit of the core.
        """
        return self.low >= _STEADY * self.high

    def __str__(self) -> str:
        size = "" if self.k is None else f" with k={self.k}"
        cores = f"{len(self.cores)} cores" if len(self.cores) > 1 else f"core {self.cores[0]}"
        reached = f"{self.low:.4g} to {self.high:.4g} {METRICS[self.metric].unit}"
        return f"the {_NAMES[self.kind]}{size} of {cores}, {reached}"


def peaks_of(rows: Iterable[Row]) -> tuple[Peak, ...]:
    """Return the peaks that rows of :func:`clustergate.outputs.peaks.parse_peaks` tell of."""
    trials: dict[tuple[str, str, tuple[int, ...], int | None], list[float]] = {}
    for row in rows:
        cores = tuple(int(core) for core in str(row.conditions["core_ids"]).split(","))
        k = int(row.conditions["k"]) if "k" in row.conditions else None
        for metric, value in row.values.items():
            trials.setdefault((row.benchmark, metric, cores, k), []).append(value)
    return tuple(
        Peak(kind, metric, cores, k, *_interval(values), len(values))
        for (kind, metric, cores, k), values in trials.items()
        if len(values) >= _FEWEST_TRIALS
    )


def undisturbed(peaks: Sequence[Peak]) -> tuple[Peak, ...]:
    """Return the peaks of those kinds of which every one is steady.

    All of a kind or none: without that of all cores at once, that of one core alone would be taken
    for the most there is.
    """
    disturbed = {peak.kind for peak in peaks if not peak.steady}
    return tuple(peak for peak in peaks if peak.kind not in disturbed)


def _interval(values: Sequence[float]) -> tuple[float, float, float]:
    median = statistics.median(values)
    lowest, highest, least = min(values), max(values), _SMALLEST_SPREAD * median
    return (
        median,
        max(0.0, lowest - max(median - lowest, least)),
        highest + max(highest - median, least),
    )


def relations(peaks: Sequence[Peak], core_kinds: Mapping[int, str]) -> tuple[Figure, ...]:
    """Return the peaks that contradict each other, judged; none of a sound node.

    DGEMM is at most the FMA peak of the same cores and at least half of it; no core is slower than
    0.8 (FMA peak) or 0.7 (triad) of the fastest of its kind. Each is a contradiction only when
    the intervals of both leave no doubt. ``core_kinds`` names the kind of cores by CPU number;
    cores that it does not name are of one kind.
    """
    judged = [_judged(peak, _limits(peak, peaks, core_kinds)) for peak in peaks]
    return tuple(f for f in judged if f.judgement.verdict is not Verdict.NO_REFERENCE)


def _limits(peak: Peak, peaks: Sequence[Peak], core_kinds: Mapping[int, str]) -> list[Limit]:
    found = []
    if peak.kind == "dgemm":
        for other in peaks:
            if other.kind == "fma_peak" and other.cores == peak.cores:
                found += _limits_of_dgemm(other)
    elif len(peak.cores) == 1:
        kind = core_kinds.get(peak.cores[0])
        alike = [
            p
            for p in peaks
            if p.kind == peak.kind and len(p.cores) == 1 and core_kinds.get(p.cores[0]) == kind
        ]
        fastest = max(alike, key=lambda p: p.median)
        share = _SHARE_OF_THE_FASTEST_CORE[peak.kind]
        reason = (
            f"cores of one kind are as fast as each other, and this one is below {share:.0%} of "
            f"{fastest}; see whether core {peak.cores[0]} is throttled or something else runs on it"
        )
        found.append(Limit(None, share * fastest.low, reason))
    return found


def _limits_of_dgemm(fma_peak: Peak) -> list[Limit]:
    return [
        Limit(fma_peak.high, None, f"nothing computes faster than {fma_peak}"),
        Limit(
            None,
            _DGEMM_SHARE * fma_peak.low,
            f"it is below {_DGEMM_SHARE:.0%} of {fma_peak}, as with kernels of another processor; "
            "see which kernels the BLAS chose, and variables such as OPENBLAS_CORETYPE",
        ),
    ]


def _judged(peak: Peak, limits: Sequence[Limit]) -> Figure:
    # The range of n trials holds the true median unless all of them are on one side of it.
    confidence = 1 - 0.5 ** (peak.trials - 1)
    estimate = Estimate(peak.median, peak.low, peak.high, confidence, peak.trials)
    conditions: dict[str, int | str] = {
        "cores": len(peak.cores),
        "core_ids": ",".join(map(str, peak.cores)),
    }
    if peak.k is not None:
        conditions["k"] = peak.k
    metric = METRICS[peak.metric]
    return Figure(
        benchmark=peak.kind,
        metric=peak.metric,
        unit=metric.unit,
        better=metric.better,
        conditions=conditions,
        estimate=estimate,
        judgement=judge(estimate, metric.better, metric.unit, None, limits),
    )
