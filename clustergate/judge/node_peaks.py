"""Whether what a node reached by its own measure contradicts itself. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from clustergate.core.model import METRICS, Estimate, Figure, Limit, Verdict
from clustergate.judge.judging import judge
from clustergate.machine.peaks import Peak

# Kernels for vectors half as wide as the processor's reach half of its FMA peak at most; those
# that fit it reach 0.7 to 0.95.
_DGEMM_SHARE = 0.5
# The cores of a node differ by up to a tenth in their turbo clocks, and in bandwidth by a little
# more with the place of their memory; a throttled core is at half.
_SHARE_OF_THE_FASTEST_CORE = {"fma_peak": 0.8, "triad": 0.7}


def relations(peaks: Sequence[Peak], *, disturbed: bool = False) -> tuple[Figure, ...]:
    """Return the peaks that contradict each other, judged; none of a sound node.

    DGEMM is at most the FMA peak of the same cores and at least half of it; no core is slower than
    0.8 (FMA peak) or 0.7 (triad) of the fastest. Each is a contradiction only when the intervals of
    both leave no doubt; kinds of peaks of which some are not steady are not compared. An FMA peak
    beyond its ceiling tells of the clock that timed it.

    On a virtual machine, others on the host slow single cores down: there a core is contradicted
    only beyond what they take, and a DGEMM only where that of every set of cores is too slow, as
    with wrong kernels. Where others ``disturbed`` every launch beside it, a slow DGEMM tells of
    them.
    """
    unsteady = {peak.kind for peak in peaks if not peak.steady}
    beyond = [peak for peak in peaks if peak.low > peak.ceiling]
    peaks = [peak for peak in peaks if peak.kind not in unsteady or peak in beyond]
    judged = [_judged(peak, _limits(peak, peaks, disturbed=disturbed)) for peak in peaks]
    return tuple(f for f in judged if f.judgement.verdict is not Verdict.NO_REFERENCE)


def _limits(peak: Peak, peaks: Sequence[Peak], *, disturbed: bool) -> list[Limit]:
    limits = []
    if peak.ceiling < math.inf:
        reason = (
            "no such cores compute so fast at any clock, so the clock that timed them runs slow; "
            "look at the clock source and at preloaded libraries"
        )
        limits.append(Limit(peak.ceiling, None, reason))
    if peak.kind == "dgemm":
        fma_peaks = {other.cores: other for other in peaks if other.kind == "fma_peak"}
        if fma_peak := fma_peaks.get(peak.cores):
            limits.append(Limit(fma_peak.at_most, None, f"nothing computes faster than {fma_peak}"))
            all_slow = all(
                p.cores in fma_peaks and p.high < _DGEMM_SHARE * fma_peaks[p.cores].low
                for p in peaks
                if p.kind == "dgemm"
            )
            is_wrong = (all_slow or not peak.virtual) and not disturbed
            limits += [_least_dgemm(fma_peak)] if is_wrong else []
    elif len(peak.cores) == 1:
        alone = [p for p in peaks if p.kind == peak.kind and len(p.cores) == 1]
        fastest = max(alone, key=lambda p: p.median)
        share = _SHARE_OF_THE_FASTEST_CORE[peak.kind] / peak.taken_by_the_host
        reason = (
            f"the cores of a node are as fast as each other, and this one is below {share:.0%} of "
            f"{fastest}; see whether core {peak.cores[0]} is throttled or something else runs on it"
        )
        limits.append(Limit(None, share * fastest.low, reason))
    return limits


def _least_dgemm(fma_peak: Peak) -> Limit:
    return Limit(
        None,
        _DGEMM_SHARE * fma_peak.low,
        f"it is below {_DGEMM_SHARE:.0%} of {fma_peak}, as with kernels of another processor; "
        "see which kernels the BLAS chose, and variables such as OPENBLAS_CORETYPE",
    )


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
