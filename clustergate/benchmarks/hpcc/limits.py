"""What limits HPCC's figures.

Left out, because they are not sound: that StarDGEMM and StarFFT are at most SingleDGEMM and
SingleFFT (single values of one launch, without an interval); ping-pong and rings by the measured
bandwidth (their messages stay in the caches, and which pairs cross a link is not printed); STREAM
from below. Pure functions.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

from clustergate.benchmarks.hpl.limits import of_solving
from clustergate.benchmarks.hpl.output import hpl_flops
from clustergate.benchmarks.limits import (
    DOUBLE_BYTES,
    LOOK,
    Measurement,
    compute_limits,
    compute_limits_of_all_cores,
    limits_of_any,
    shared_by,
    stream_limits,
)
from clustergate.model import Limit

# FFT counts 5 n log2 n, and the best algorithms do without a third of them.
_FFT_COUNTED = 2.0
# Times of which HPCC prints the rate as well, in what and for which work of an order n.
_RATE_OF_TIME: Mapping[str, tuple[str, str, Callable[[int], float]]] = {
    "HPL_time": ("HPL_Tflops", "Tflop/s", lambda n: 1e-12 * hpl_flops(n)),
    "PTRANS_time": ("PTRANS_GBs", "GB/s", lambda n: 1e-9 * DOUBLE_BYTES * n * n),
}


def limits(one: Measurement) -> tuple[Limit, ...]:
    """Return the limits of a figure of HPCC."""
    metric = one.sample.metric
    if metric in _RATE_OF_TIME:
        name, unit, work = _RATE_OF_TIME[metric]
        rate = dataclasses.replace(one.sample, metric=name, unit=unit)
        amount = work(int(one.sample.conditions["n"]))
        return tuple(
            Limit(None, amount / limit.at_most, f"{limit.reason}; {LOOK}")
            for limit in limits(dataclasses.replace(one, sample=rate))
            if limit.at_most
        )
    return limits_of_any(
        one,
        _measured(one),
        cores=one.cores_of_a_rank if metric.startswith(("Star", "Single")) else None,
        answered="PingPongLatency" in metric,
    )


def _measured(one: Measurement) -> tuple[Limit, ...]:
    """Limit a figure by the peaks of the node."""
    metric, ranks, peaks = one.sample.metric, one.ranks, one.peaks
    if metric == "performance_gflops":
        return of_solving(one)
    if metric == "HPL_Tflops":
        return of_solving(one, unit=1e-3)
    if metric == "MPIFFT_Gflops":
        return compute_limits_of_all_cores(one, _FFT_COUNTED)
    if metric == "StarFFT_Gflops":
        return compute_limits(peaks, "fma_peak", one.cores, _FFT_COUNTED / ranks, shared_by(ranks))
    if metric == "SingleFFT_Gflops":
        return compute_limits(peaks, "fma_peak", one.cores_of_a_rank, _FFT_COUNTED)
    if metric == "StarDGEMM_Gflops":
        return compute_limits(peaks, "fma_peak", one.cores, 1 / ranks, shared_by(ranks))
    if metric == "SingleDGEMM_Gflops":
        return compute_limits(peaks, "fma_peak", one.cores_of_a_rank)
    if metric.startswith("StarSTREAM_"):
        return stream_limits(one, _vector_bytes(one) * ranks, one.cores, ranks)
    if metric.startswith("SingleSTREAM_"):
        return stream_limits(one, _vector_bytes(one), one.cores_of_a_rank)
    return ()


def _vector_bytes(one: Measurement) -> int:
    return int(one.sample.conditions["vector_size"]) * DOUBLE_BYTES
