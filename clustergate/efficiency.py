"""HPL's rate against what the nodes can do: measured multiply-adds, DGEMM, and the data sheet."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from clustergate.model import Row, Sample, derived_sample

FMA_PEAK = "fma peak"
DGEMM = "dgemm"
NOMINAL = "nominal"


def node_peaks_gflops(
    peaks: Sequence[Row], nb: int, cores: int, nominal_gflops_per_core: float
) -> dict[str, float]:
    """Return the three peaks of one node in Gflop/s, those that were measured.

    Each measured peak is the median of its trials on ``cores`` cores at once, DGEMM's with
    k = ``nb``. Turbo clocks lift a measured one above the nominal one.
    """
    found = {NOMINAL: nominal_gflops_per_core * cores}
    for name, benchmark in ((FMA_PEAK, "fma_peak"), (DGEMM, "dgemm")):
        trials = [
            row.values["performance_gflops"]
            for row in peaks
            if row.benchmark == benchmark
            and row.conditions["cores"] == cores
            and row.conditions.get("k", nb) == nb
        ]
        if trials:
            found[name] = statistics.median(trials)
    return found


def efficiencies(
    samples: Sequence[Sample], node_peaks: Mapping[str, float], nodes: int
) -> tuple[Sample, ...]:
    """Return a sample in percent for each result of HPL and each peak of ``nodes`` nodes."""
    return tuple(
        derived_sample(
            sample, "efficiency_percent", 100 * sample.value / (peak * nodes), against=name
        )
        for sample in samples
        if sample.metric == "performance_gflops"
        for name, peak in node_peaks.items()
    )
