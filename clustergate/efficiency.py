"""HPL's rate against what the nodes can do: measured multiply-adds, DGEMM, and the data sheet."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from clustergate.model import Conditions, Row, Sample, derived_sample
from clustergate.node_peaks import Peak, value_of

FMA_PEAK = "fma peak"
DGEMM = "dgemm"
NOMINAL = "nominal"
_KINDS = {FMA_PEAK: "fma_peak", DGEMM: "dgemm"}
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
    found = {NOMINAL: nominal_gflops_per_core * cores}
    for name, benchmark in _KINDS.items():
        trials = [
            value_of(row)
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


def doubt_of(conditions: Conditions, sample: Sample, percent: float, peaks: Sequence[Peak]) -> str:
    """Return why an efficiency is not to be trusted, empty where it may be, and of other figures.

    ``sample`` is one of :func:`efficiencies` and ``percent`` its value; ``conditions`` are those of
    its case, beside which ``peaks`` were measured. Turbo clocks carry that of the nominal peak
    above 100 %.
    """
    against = sample.conditions.get("against")
    kind = _KINDS.get(str(against)) if sample.metric == "efficiency_percent" else None
    if kind is None or percent <= _NOISE:
        return ""
    cores = int(conditions["ranks_per_node"]) * int(conditions["cores_per_rank"])
    wanted = (None, sample.conditions.get("nb")) if kind == "dgemm" else (None,)
    beside = next(
        (p for p in peaks if p.kind == kind and len(p.cores) == cores and p.k in wanted), against
    )
    return (
        f"HPL was faster than {beside} beside it, so that was slowed by others on the node or the "
        "host, or HPL's clock is wrong; rely on the Gflop/s, and see what else runs there"
    )
