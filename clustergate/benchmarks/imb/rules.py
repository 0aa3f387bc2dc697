"""What must hold for the figures in a row of the Intel MPI Benchmarks. Pure.

IMB prints two decimals of each figure, so what follows from another is compared by the intervals
that both were rounded from. The formulas are those of IMB_output.c, of the files in P2P and of
MT_benchmark.h. Times are in us, sizes in bytes, bandwidths in MB/s, rates in messages/s.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

from clustergate.benchmarks.imb.columns import (
    LATENCY,
    MT_RATE,
    OVERLAP,
    P2P,
    RANGE,
    RANGE_BANDWIDTH,
    RATE,
)
from clustergate.benchmarks.imb.header import RunInformation
from clustergate.core.outputs import OUTPUT_CONTRADICTION
from clustergate.core.reasons import Reason

# Half of the last printed digit; the rest is for the rounding of this arithmetic.
_HALF = 0.005 + 1e-9
_MESSAGES = {"sendrecv": 2.0, "sendrecvmt": 2.0, "exchange": 4.0, "exchangemt": 4.0}
_RATE_PROBLEM = "{{{1}:.0f}} messages/s of {{0}} bytes|{{{0}:.2f}} MB/s"
_TO_ALL_OTHERS = ("one_put_all", "one_get_all", "put_all_local", "get_all_local")


class Rule(NamedTuple):
    """What must hold for every row of a table with one and the same of the ``factors``.

    ``fits`` takes a factor, the size and the figures of a row; ``problem`` writes two parts of
    these last that contradict each other, with ``|`` between them.
    """

    fits: Callable[..., bool]
    problem: str
    factors: tuple[float, ...] = (1.0,)


def broken_rule(rules: list[Rule], size: int, figures: Sequence[float]) -> Reason | None:
    """Return what is wrong with a row; of the rules the factors stay that fitted all rows."""
    for k, rule in enumerate(rules):
        factors = tuple(factor for factor in rule.factors if rule.fits(factor, size, *figures))
        if not factors:
            return contradiction(rule.problem, size, *figures)
        if factors != rule.factors:
            rules[k] = rule._replace(factors=factors)
    return None


def contradiction(problem: str, *numbers: float) -> Reason:
    one, _, other = problem.format(*numbers).partition("|")
    return OUTPUT_CONTRADICTION(one=one, other=other)


def rules_of(
    information: RunInformation,
    metrics: tuple[str, ...],
    benchmark: str,
    processes: int,
    threads: int,
) -> list[Rule]:
    """Return what must hold for the rows of a table."""
    name = benchmark.lower()
    in_order = [_IN_ORDER] if metrics[:3] == RANGE else []
    if metrics == OVERLAP:
        whole_of = min if information.program == "IMB-IO" else max
        said = "{1:.2f}, {2:.2f} and {3:.2f} us|an overlap of {4:.2f} %"
        return [Rule(functools.partial(_overlap_fits, whole_of), said)]
    if metrics in (LATENCY, RANGE_BANDWIDTH):
        messages = [_MESSAGES.get(name, 1.0)]
        if name in _TO_ALL_OTHERS:
            # Up to 2018 IMB counts the messages to all other processes, later one of them.
            messages = [1.0, float(max(1, processes - 1))]
        factors = tuple(count * unit for count in messages for unit in _megabytes(information))
        said = "{0} bytes in {1:.2f} us|{2:.2f} MB/s"
        if in_order:
            said = "{0} bytes in {2:.2f} us|{4:.2f} MB/s"
        return [*in_order, Rule(_bandwidth_fits, said, factors)]
    if metrics == MT_RATE:
        pairs = processes * threads // 2
        return [
            Rule(functools.partial(_mean_time_fits, pairs), "{1:.2f} us|{3:.0f} messages/s"),
            Rule(functools.partial(_thread_rate_fits, threads), _RATE_PROBLEM.format(2, 3)),
        ]
    if metrics == RATE:
        return [Rule(_rate_fits, _RATE_PROBLEM.format(1, 2), _megabytes(information))]
    if metrics == P2P:
        said = f"{{1:.2f}} us|{{3:.0f}} messages/s of {processes} processes"
        ways = 2.0 if name == "pingpong" else 1.0
        return [
            Rule(_rate_fits, _RATE_PROBLEM.format(2, 3)),
            Rule(functools.partial(_time_fits, ways, processes), said),
        ]
    return in_order


def _megabytes(information: RunInformation) -> tuple[float, ...]:
    """Return what turns bytes per us into MB/s: 2**20 bytes up to 2017, 10**6 from 2018 on.

    The sources of 2017 and 2018 say so; those of the updates of 2017 are not public.
    """
    binary = 1e6 / 2**20
    if information.year >= 2018:
        return (1.0,)
    return (binary, 1.0) if information.imb_version.startswith("2017 Update") else (binary,)


def _bandwidth_fits(factor: float, size: int, *figures: float) -> bool:
    """Tell whether size and time (the longest where there are several) give the MB/s."""
    time, rate = figures[len(figures) > 2], figures[-1]
    if size <= 0 or (rate <= 0.0 and time <= 0.0):
        return rate == 0.0
    # As products, so that a time printed as 0.00 bounds the MB/s from below only.
    least = (rate - _HALF) * (time - _HALF) if time > _HALF else 0.0
    return least <= factor * size <= (rate + _HALF) * (time + _HALF)


def _in_order(_: float, size: int, low: float, high: float, mean: float, *others: float) -> bool:
    return low <= mean <= high


_IN_ORDER = Rule(_in_order, "t_avg of {3:.2f} us|t_min to t_max of {1:.2f} to {2:.2f} us")


def _rate_fits(factor: float, size: int, *figures: float) -> bool:
    """Tell whether size and messages/s give the MB/s."""
    bandwidth, rate = figures[-2:]
    lowest, highest = factor * size * (rate - 0.5), factor * size * (rate + 0.5)
    return lowest <= (bandwidth + _HALF) * 1e6 and highest >= (bandwidth - _HALF) * 1e6


def _overlap_fits(
    whole_of: Callable[[float, float], float],
    _: float,
    size: int,
    overlapped: float,
    pure: float,
    computing: float,
    overlap: float,
) -> bool:
    """Tell whether an overlap is the part of a time that the other one hid.

    IMB-NBC relates it to the longer of communication and computation, IMB-IO to the shorter.
    """
    hidden, whole = pure + computing - overlapped, whole_of(pure, computing)
    lowest = _percent(hidden - 3 * _HALF, whole + _HALF)
    highest = _percent(hidden + 3 * _HALF, whole - _HALF)
    return lowest - _HALF <= overlap <= highest + _HALF


def _percent(part: float, whole: float) -> float:
    if part <= 0.0:
        return 0.0
    return 100.0 if part >= whole else 100.0 * part / whole


def _time_fits(
    ways: float, processes: int, _: float, size: int, time: float, bandwidth: float, rate: float
) -> bool:
    """Tell whether IMB-P2P's times lie within the bounds that its rates set.

    The time is a mean over all processes and the rate is of the slowest one, so their product lies
    between one process and all of them. PingPong's time is of one way, its rate of both.
    """
    longest, shortest = (time + _HALF) * (rate + 0.5), (time - _HALF) * (rate - 0.5)
    return longest * ways / 1e6 >= 1.0 and shortest * ways / 1e6 <= processes


def _mean_time_fits(
    pairs: int, _: float, size: int, time: float, bandwidth: float, rate: float
) -> bool:
    """Tell whether IMB-MT's rates are those of t_avg; it cuts them to integers."""
    return (rate - 1.0) * (time - _HALF) <= pairs * 1e6 <= (rate + 1.0) * (time + _HALF)


def _thread_rate_fits(
    threads: int, _: float, size: int, time: float, bandwidth: float, rate: float
) -> bool:
    """Tell whether IMB-MT's MB/s, which are of a t_max that is not printed, are not too high."""
    return bandwidth - _HALF <= (rate + 1.0) * size / threads / 1e6
