"""HPL's rate against what the nodes can do: measured multiply-adds, DGEMM, and the data sheet."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from clustergate.core.model import Row, Sample, derived_sample
from clustergate.core.reasons import Reason, Words
from clustergate.core.texts import SHARE
from clustergate.machine.peaks import value_of

FMA_PEAK = "fma peak"
DGEMM = "dgemm"
NOMINAL = "nominal"
_KINDS = {FMA_PEAK: "fma_peak", DGEMM: "dgemm"}
_TITLES = {FMA_PEAK: "FMA peak", DGEMM: "DGEMM"}
# Percent up to which a rate and a peak of the same node may differ by the noise of both.
_NOISE = 102.0


def node_peaks_gflops(
    peaks: Sequence[Row], nb: int, cores: int, nominal_gflops_per_core: float
) -> dict[str, float]:
    """Return the three peaks of one node in Gflop/s, those that were measured.

    Each measured peak is the median of its trials on ``cores`` cores at once, of what these did
    while nothing else ran on them, DGEMM's with k = ``nb``. Turbo clocks lift a measured one above
    the nominal one.
    """
    gflops = {NOMINAL: nominal_gflops_per_core * cores}
    for name, benchmark in _KINDS.items():
        trials = [
            value_of(row)
            for row in peaks
            if row.benchmark == benchmark
            and row.conditions["cores"] == cores
            and row.conditions.get("k", nb) == nb
        ]
        if trials:
            gflops[name] = statistics.median(trials)
    return gflops


def efficiencies(
    samples: Sequence[Sample], node_peaks: Mapping[str, float], nodes: int
) -> tuple[Sample, ...]:
    """Return a sample in percent for each result of HPL and each peak of ``nodes`` nodes."""
    return tuple(
        derived_sample(sample, SHARE, 100 * sample.value / (peak * nodes), against=name)
        for sample in samples
        if sample.metric == "performance_gflops"
        for name, peak in node_peaks.items()
    )


ABOVE_PEAK = Words(
    "figure.above-peak",
    "{benchmark} was faster than the {peak} measured right before and after it",
    cause="other load slowed the peak's own measurement, or a clock is wrong",
    remedy="rely on the Gflop/s, and check what else runs there",
)


def doubt_of(sample: Sample, percent: float) -> Reason | None:
    """Return why an efficiency is not to be trusted, None where it may be, and of other figures.

    ``sample`` is one of :func:`efficiencies` and ``percent`` its value. Turbo clocks carry that of
    the nominal peak above 100 %.
    """
    title = _TITLES.get(str(sample.conditions.get("against")))
    if title is None or sample.metric != SHARE or percent <= _NOISE:
        return None
    return ABOVE_PEAK(benchmark="HPL", peak=title)
