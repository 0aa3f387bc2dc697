"""Whether the figures in a row of the Intel MPI Benchmarks contradict each other.

IMB prints two decimals of each figure, so what follows from another is compared by the intervals
that both were rounded from. The formulas are those of IMB_output.c, of the files in P2P and of
MT_benchmark.h.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from clustergate.benchmarks.imb.header import RunInformation

# What a table can have besides its sizes and repetitions, in the order of its columns.
LATENCY = ("latency_us", "bandwidth_mb_s")
RATE = ("bandwidth_mb_s", "message_rate_per_s")
RANGE = ("t_min_us", "t_max_us", "t_avg_us")
RANGE_BANDWIDTH = (*RANGE, "bandwidth_mb_s")
OVERLAP = ("t_overlapped_us", "t_pure_us", "t_cpu_us", "overlap_percent")
PASSIVE = ("t_pure_us", "t_overlapped_us")
P2P = ("latency_us", "bandwidth_mb_s", "message_rate_per_s")
MT_RATE = ("t_avg_us", "bandwidth_mb_s", "message_rate_per_s")

# Says what is wrong with a row of a size in bytes and its figures; None if nothing is.
Check = Callable[[int, Sequence[float]], str | None]

# Half of the last printed digit; the rest is for the rounding of this arithmetic.
_HALF = 0.005 + 1e-9
_MESSAGES = {"sendrecv": 2.0, "sendrecvmt": 2.0, "exchange": 4.0, "exchangemt": 4.0}
_TO_ALL_OTHERS = ("one_put_all", "one_get_all", "put_all_local", "get_all_local")


class Measured(NamedTuple):
    """What a check must know of a table."""

    information: RunInformation
    benchmark: str
    processes: int
    threads: int
    metrics: tuple[str, ...]


def check_of(measured: Measured) -> Check:
    """Return the check of a table's rows."""
    return _CHECKS[measured.metrics](measured)


def _megabytes(information: RunInformation) -> list[float]:
    """Return what turns bytes per us into MB/s: 2**20 bytes up to 2017, 10**6 from 2018 on.

    The sources of 2017 and 2018 say so; those of the updates of 2017 are not public.
    """
    binary = 1e6 / 2**20
    if information.year >= 2018:
        return [1.0]
    return [binary, 1.0] if information.imb_version.startswith("2017 Update") else [binary]


def _latency(measured: Measured) -> Check:
    factors = _bandwidth_factors(measured)
    return lambda size, figures: _bandwidth_problem(factors, size, *figures)


def _range_bandwidth(measured: Measured) -> Check:
    factors = _bandwidth_factors(measured)
    return lambda size, figures: (
        _range_problem(size, figures) or _bandwidth_problem(factors, size, figures[1], figures[3])
    )


def _range_problem(size: int, figures: Sequence[float]) -> str | None:
    if figures[0] <= figures[2] <= figures[1]:
        return None
    return "t_min <= t_avg <= t_max does not hold"


def _bandwidth_factors(measured: Measured) -> list[float]:
    """Return what may turn message bytes per us into the benchmark's MB/s."""
    name = measured.benchmark.lower()
    messages = [_MESSAGES.get(name, 1.0)]
    if name in _TO_ALL_OTHERS:
        # Up to 2018 IMB counts the messages to all other processes, later one of them.
        messages = [1.0, float(max(1, measured.processes - 1))]
    return [count * unit for count in messages for unit in _megabytes(measured.information)]


def _bandwidth_problem(
    factors: list[float], size: int, time: float, bandwidth: float
) -> str | None:
    """Say if size and time do not give the MB/s; ``factors`` keeps those that fit all rows."""
    if bandwidth == 0.0 and (size == 0 or time == 0.0):
        return None
    # As products, so that a time printed as 0.00 bounds the MB/s from below only.
    lowest = (bandwidth - _HALF) * max(time - _HALF, 0.0)
    highest = (bandwidth + _HALF) * (time + _HALF)
    fitting = [factor for factor in factors if lowest <= factor * size <= highest]
    if not fitting or size == 0:
        return f"{size} bytes in {time:.2f} us do not give {bandwidth:.2f} MB/s"
    factors[:] = fitting
    return None


def _rate(measured: Measured) -> Check:
    factors = _megabytes(measured.information)
    return lambda size, figures: _rate_problem(factors, size, *figures)


def _rate_problem(factors: list[float], size: int, bandwidth: float, rate: float) -> str | None:
    """Say if size and messages/s do not give the MB/s, as :func:`_bandwidth_problem` does."""
    lowest, highest = (bandwidth - _HALF) * 1e6, (bandwidth + _HALF) * 1e6
    fitting = [
        factor
        for factor in factors
        if factor * size * (rate - 0.5) <= highest and factor * size * (rate + 0.5) >= lowest
    ]
    if not fitting:
        return f"{rate:.0f} messages/s of {size} bytes do not give {bandwidth:.2f} MB/s"
    factors[:] = fitting
    return None


def _overlap(measured: Measured) -> Check:
    """Return the check of the overlap: the part of a time that the other one hid.

    IMB-NBC relates it to the longer of communication and computation, IMB-IO to the shorter.
    """
    whole_of: Callable[[float, float], float] = max
    if measured.information.program == "IMB-IO":
        whole_of = min

    def check(size: int, figures: Sequence[float]) -> str | None:
        overlapped, pure, computing, overlap = figures
        hidden, whole = pure + computing - overlapped, whole_of(pure, computing)
        lowest = _percent(hidden - 3 * _HALF, whole + _HALF)
        highest = _percent(hidden + 3 * _HALF, whole - _HALF)
        if lowest - _HALF <= overlap <= highest + _HALF:
            return None
        return (
            f"{overlapped:.2f}, {pure:.2f} and {computing:.2f} us do not give an overlap of "
            f"{overlap:.2f} %"
        )

    return check


def _percent(part: float, whole: float) -> float:
    if part <= 0.0:
        return 0.0
    return 100.0 if part >= whole else 100.0 * part / whole


def _p2p(measured: Measured) -> Check:
    """Return the check of IMB-P2P: MB/s by the rate, and the time by its bounds.

    The time is a mean over all processes and the rate is of the slowest one, so their product lies
    between one process and all of them. PingPong's time is of one way, its rate of both.
    """
    ways = 2.0 if measured.benchmark.lower() == "pingpong" else 1.0

    def check(size: int, figures: Sequence[float]) -> str | None:
        time, bandwidth, rate = figures
        if problem := _rate_problem([1.0], size, bandwidth, rate):
            return problem
        fewest = (time - _HALF) * (rate - 0.5) * ways / 1e6
        most = (time + _HALF) * (rate + 0.5) * ways / 1e6
        if most >= 1.0 and fewest <= measured.processes:
            return None
        return f"{time:.2f} us do not fit {rate:.0f} messages/s of {measured.processes} processes"

    return check


def _mt_rate(measured: Measured) -> Check:
    """Return the check of IMB-MT's bands: the rate is of t_avg, MB/s of a t_max not printed."""
    pairs = measured.processes * measured.threads // 2

    def check(size: int, figures: Sequence[float]) -> str | None:
        time, bandwidth, rate = figures
        # IMB cuts the rate to an integer.
        if not (rate - 1.0) * (time - _HALF) <= pairs * 1e6 <= (rate + 1.0) * (time + _HALF):
            return f"{time:.2f} us do not give {rate:.0f} messages/s"
        if bandwidth - _HALF > (rate + 1.0) * size / measured.threads / 1e6:
            return f"{rate:.0f} messages/s of {size} bytes do not give {bandwidth:.2f} MB/s"
        return None

    return check


_CHECKS: dict[tuple[str, ...], Callable[[Measured], Check]] = {
    LATENCY: _latency,
    RATE: _rate,
    RANGE: lambda _: _range_problem,
    RANGE_BANDWIDTH: _range_bandwidth,
    OVERLAP: _overlap,
    PASSIVE: lambda _: lambda size, figures: None,
    P2P: _p2p,
    MT_RATE: _mt_rate,
}
