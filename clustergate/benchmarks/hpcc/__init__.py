"""The HPC Challenge."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from clustergate.benchmarks.budget import TWO_LAUNCHES
from clustergate.benchmarks.descriptor import Benchmark, Check, Clocks, Format, Headline, Share
from clustergate.benchmarks.hpcc.build import BUILD
from clustergate.benchmarks.hpcc.output import KINDS, METRICS, TITLE, parse_hpcc
from clustergate.benchmarks.hpl.effort import LinpackEffort
from clustergate.benchmarks.hpl.limits import solver_limits
from clustergate.benchmarks.hpl.output import hpl_flops
from clustergate.benchmarks.hpl.sizing import rate_of_fewer_ranks
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
from clustergate.core.model import Better, Conditions, Limit, Sample

# STREAM goes through its arrays that often at least.
_STREAM_TRIALS = 10


def _dgemm_s(sample: Sample) -> float:
    return 2.0 * float(sample.conditions["n"]) ** 3 / (sample.value * 1e9)


def _fft_s(sample: Sample) -> float:
    n = float(sample.conditions["n"])
    return 5.0 * n * math.log2(n) / (sample.value * 1e9)


def _stream_s(sample: Sample) -> float:
    arrays = 2 if sample.benchmark.endswith(("Copy", "Scale")) else 3
    moved = 8.0 * arrays * float(sample.conditions["vector_size"])
    return _STREAM_TRIALS * moved / (sample.value * 1e9)


def _hpl_s(sample: Sample) -> float:
    return 2.0 / 3.0 * float(sample.conditions["n"]) ** 3 / (sample.value * 1e12)


APART: Mapping[str, Callable[[Sample], float] | None] = {
    "HPL": None,
    "HPL_Tflops": _hpl_s,
    "HPL_time": lambda sample: sample.value,
    **{f"{who}DGEMM_Gflops": _dgemm_s for who in ("Star", "Single")},
    **{f"{who}FFT_Gflops": _fft_s for who in ("Star", "Single")},
    **{
        f"{who}STREAM_{kernel}": _stream_s
        for who in ("Star", "Single")
        for kernel in ("Copy", "Scale", "Add", "Triad")
    },
}


# FFT counts 5 n log2 n, and the best algorithms do without a third of them.
_FFT_COUNTED = 2.0
# Times of which HPCC prints the rate as well, in what and for which work of an order n.
_RATE_OF_TIME: Mapping[str, tuple[str, str, Callable[[int], float]]] = {
    "HPL_time": ("HPL_Tflops", "Tflop/s", lambda n: 1e-12 * hpl_flops(n)),
    "PTRANS_time": ("PTRANS_GBs", "GB/s", lambda n: 1e-9 * DOUBLE_BYTES * n * n),
}


def limits(measurement: Measurement) -> tuple[Limit, ...]:
    metric = measurement.sample.metric
    if metric in _RATE_OF_TIME:
        name, unit, work = _RATE_OF_TIME[metric]
        rate = dataclasses.replace(measurement.sample, metric=name, unit=unit)
        amount = work(int(measurement.sample.conditions["n"]))
        return tuple(
            Limit(None, amount / limit.at_most, f"{limit.reason}; {LOOK}")
            for limit in limits(dataclasses.replace(measurement, sample=rate))
            if limit.at_most
        )
    return limits_of_any(
        measurement,
        _measured(measurement),
        cores=measurement.cores_of_a_rank if metric.startswith(("Star", "Single")) else None,
        answered="PingPongLatency" in metric,
    )


def _measured(one: Measurement) -> tuple[Limit, ...]:
    """Limit a figure by the peaks of the node."""
    metric, ranks, peaks = one.sample.metric, one.ranks, one.peaks
    if metric == "performance_gflops":
        return solver_limits(one)
    if metric == "HPL_Tflops":
        return solver_limits(one, unit=1e-3)
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


@dataclass(frozen=True, kw_only=True)
class HpccEffort(LinpackEffort):
    """How large HPCC's matrices are; ``random_access`` takes a time of its own."""

    random_access: bool = True


def _measures(check: str, row: str, conditions: Conditions, effort: HpccEffort | None) -> bool:
    return effort is None or effort.random_access or "RandomAccess" not in row


# One process alone sends nothing, and HPCC leaves these out.
_BETWEEN_PROCESSES = (
    *("MaxPingPongLatency_usec", "MinPingPongBandwidth_GBytes"),
    *("RandomlyOrderedRingLatency_usec", "RandomlyOrderedRingBandwidth_GBytes"),
)
_JUDGED = (
    *("HPL_Tflops", "SingleDGEMM_Gflops", "StarDGEMM_Gflops", "PTRANS_GBs", "MPIFFT_Gflops"),
    *("SingleSTREAM_Triad", "StarSTREAM_Triad", *_BETWEEN_PROCESSES),
)
_WITH_RANDOM_ACCESS = (*_JUDGED, "StarRandomAccess_GUPs", "MPIRandomAccess_GUPs")

# A node's bandwidth is shared: what one rank reaches says little.
_OF_TRIAD = Share("of the node's triad", "triad")


def _of_fewer_ranks(metric: str, fewer: int, more: int) -> float | None:
    """Return how a figure of a few ranks less differs: what each has, or a pair or ring, does not.

    HPL has as much for each. PTRANS, FFT and RandomAccess of all ranks together take other ways
    where these are no power of two.
    """
    if metric in ("HPL_Tflops", "performance_gflops"):
        return rate_of_fewer_ranks(fewer, more)
    of_each = metric.startswith(("Star", "Single")) or "PingPong" in metric or "Ring" in metric
    return 1.0 if of_each else None


BENCHMARK = Benchmark(
    "hpcc",
    "HPCC",
    Format(TITLE, parse_hpcc, holds=("hpl",)),
    checks=(
        Check(
            "HpccCheck",
            "HPC Challenge: HPL, DGEMM, PTRANS, RandomAccess, STREAM, FFT and rings in one run",
            judged={"smoke": _JUDGED, "maintenance": _WITH_RANDOM_ACCESS},
            between_processes=frozenset(_BETWEEN_PROCESSES),
            rows=(
                "HPL",
                *(x.name for x in METRICS.values() if x.better is not Better.NEITHER),
            ),
        ),
    ),
    efforts={
        "quick": HpccEffort(
            seconds=1.0,
            memory_fraction=0.2,
            random_access=False,
            saves_time_by="HPCC of 1 s",
        ),
        "smoke": HpccEffort(
            seconds=3.0,
            memory_fraction=0.2,
            random_access=False,
            saves_time_by="no time-bounded RandomAccess",
        ),
        "maintenance": HpccEffort(
            budget=TWO_LAUNCHES,
            seconds=40.0,
            memory_fraction=0.2,
            saves_time_by="HPCC on a fifth of the memory",
        ),
        "acceptance": HpccEffort(seconds=600.0, memory_fraction=0.5),
    },
    metrics=METRICS,
    place=2,
    limits=limits,
    clocks=Clocks(
        dated=r"Current time \((\d{1,12})\) is .*\s*",
        lasted=r"(?:(?:Verification:  )?Real time used +=|Execution time \(wall clock\) +=) *"
        r"(\d{1,12}\.\d{1,9}) sec.*\s*",
        # HPL's own rows have told it.
        repeated=frozenset({"HPL_time"}),
    ),
    matrix="HPL",
    measures=_measures,
    usual_s=280.0,
    kinds=KINDS,
    apart=APART,
    families={
        # What HPL_Tflops tells in other words.
        "": ("performance_gflops", "HPL_time"),
        "All ranks together": (),
        "Times of all ranks together": ("_time",),
        "Every rank at once": ("Star",),
        "One rank alone": ("Single",),
        "Between ranks": ("PingPong", "OrderedRing"),
    },
    headlines=(
        Headline("HPCC HPL", "Gflop/s", "HpccCheck", "HPL_Tflops", "HPL_Tflops", scale=1000.0),
        *(
            Headline(
                *(f"HPCC {title}", unit, "HpccCheck", figure, figure),
                share=share,
                first="memory / core" * (share is not None),
            )
            for title, unit, figure, share in (
                ("StarDGEMM", "Gflop/s", "StarDGEMM_Gflops", None),
                (
                    "StarSTREAM Triad",
                    "GB/s",
                    "StarSTREAM_Triad",
                    _OF_TRIAD,
                ),
                ("MPIFFT", "Gflop/s", "MPIFFT_Gflops", None),
                ("PTRANS", "GB/s", "PTRANS_GBs", None),
            )
        ),
        Headline(
            *("HPCC random ring latency", "us", "HpccCheck"),
            *("RandomlyOrderedRingLatency_usec", "RandomlyOrderedRingLatency_usec"),
            pick=min,
        ),
    ),
    build=BUILD,
    of_fewer_ranks=_of_fewer_ranks,
)
