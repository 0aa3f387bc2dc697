"""How long those of HPCC's parts took in which each rank computes by itself. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from clustergate.model import Sample

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
