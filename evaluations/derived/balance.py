"""Ratios of HPC Challenge to HPL: how much a machine moves for what it computes.

Paper 000, sections 4.1.1 and 4.1.2. HPCC's own names and units: HPL in Tflop/s, bandwidths in GB/s
of one process, 1e9 bytes. Only figures of all processes at work enter, never HPCC's ``Single…``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clustergate.core.figures import DerivedError, require_positive
from clustergate.core.model import Better, Metric, Sample
from clustergate.core.reasons import Words

COLUMNS: Mapping[str, str] = {
    "HPL_Tflops": "HPL [Tflop/s]",
    "hpl_over_hpl": "HPL/HPL",
    "dgemm_over_hpl": "DGEMM/HPL",
    "fft_over_hpl": "FFT/HPL",
    "ptrans_balance_b_per_flop": "PTRANS [B/F]",
    "stream_balance_b_per_flop": "STREAM [B/F]",
    "ring_balance_b_per_kflop": "ring [B/kFlop]",
    "inverse_ring_latency_per_us": "1/latency [1/us]",
    "updates_per_flop": "updates/F",
}
"""The columns of the table of ratios and of its Kiviat diagram, and how they are written there."""

METRICS: Mapping[str, Metric] = {
    name: Metric(name, unit, Better.HIGHER)
    for name, unit in (
        ("ring_accumulated_gb_s", "GB/s"),
        ("stream_accumulated_gb_s", "GB/s"),
        ("ring_balance_b_per_kflop", "B/kFlop"),
        ("stream_balance_b_per_flop", "B/F"),
        ("ptrans_balance_b_per_flop", "B/F"),
        ("dgemm_over_hpl", "1"),
        ("fft_over_hpl", "1"),
        ("updates_per_flop", "Update/F"),
        ("inverse_ring_latency_per_us", "1/us"),
    )
}
"""Those of the ratios and of the accumulated bandwidths."""


def accumulated_gb_s(per_process_gb_s: float, processes: int) -> float:
    """Return the bandwidth of all processes together, in GB/s: of the random ring, of STREAM."""
    require_positive(processes=processes)
    return per_process_gb_s * processes


NO_FIGURE = Words("derived.no-figure", "there is no {name}, to which the others relate")


def ratio_row(summary: Mapping[str, float], processes: int) -> dict[str, float]:
    """Return the row of :data:`COLUMNS` of one run, from HPCC's summary by HPCC's names.

    A column whose figure the run does not have is left out, such as that of a RandomAccess that
    did not run. Raises :class:`DerivedError` without HPL, and for HPL, latencies or numbers of
    processes that are not above 0.
    """
    if "HPL_Tflops" not in summary:
        raise DerivedError(NO_FIGURE(name="HPL_Tflops"))
    hpl = summary["HPL_Tflops"]
    require_positive(HPL_Tflops=hpl, processes=processes)
    gflops = 1000 * hpl
    row = {"HPL_Tflops": hpl, "hpl_over_hpl": 1.0}
    totals = {
        "dgemm_over_hpl": ("StarDGEMM_Gflops", processes),
        "fft_over_hpl": ("MPIFFT_Gflops", 1),
        "ptrans_balance_b_per_flop": ("PTRANS_GBs", 1),
        "stream_balance_b_per_flop": ("StarSTREAM_Copy", processes),
        "ring_balance_b_per_kflop": ("RandomlyOrderedRingBandwidth_GBytes", 1000 * processes),
        "updates_per_flop": ("MPIRandomAccess_GUPs", 1),
    }
    for column, (name, times) in totals.items():
        if name in summary:
            row[column] = summary[name] * times / gflops
    if latency := summary.get("RandomlyOrderedRingLatency_usec"):
        require_positive(RandomlyOrderedRingLatency_usec=latency)
        row["inverse_ring_latency_per_us"] = 1 / latency
    return {column: row[column] for column in COLUMNS if column in row}


def balance_samples(samples: Sequence[Sample], processes: int) -> tuple[Sample, ...]:
    """Return the ratios and the accumulated bandwidths of each launch of HPCC as samples.

    A launch without HPL has none.
    """
    ratios = []
    for order in sorted({sample.order for sample in samples}):
        summary = {s.benchmark: s.value for s in samples if s.order == order}
        if "HPL_Tflops" not in summary:
            continue
        figures = {
            metric: accumulated_gb_s(summary[name], processes)
            for metric, name in _ACCUMULATED.items()
            if name in summary
        } | ratio_row(summary, processes)
        ratios += [
            Sample("HPCC", name, METRICS[name].unit, METRICS[name].better, {}, value, order)
            for name, value in figures.items()
            if name in METRICS
        ]
    return tuple(ratios)


_ACCUMULATED = {
    "ring_accumulated_gb_s": "RandomlyOrderedRingBandwidth_GBytes",
    "stream_accumulated_gb_s": "StarSTREAM_Copy",
}
