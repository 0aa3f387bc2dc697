"""Whether the figures in the rows of the Intel MPI Benchmarks contradict each other.

IMB prints two decimals of each figure, so what follows from another is compared by the intervals
that both were rounded from. The formulas are those of IMB_output.c, of the files in P2P and of
MT_benchmark.h. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from clustergate.benchmarks.imb.header import RunInformation
from clustergate.wording.reasons import Reason, reason

# What a table can have besides its sizes and repetitions, in the order of its columns.
LATENCY = ("latency_us", "bandwidth_mb_s")
RATE = ("bandwidth_mb_s", "message_rate_per_s")
RANGE = ("t_min_us", "t_max_us", "t_avg_us")
RANGE_BANDWIDTH = (*RANGE, "bandwidth_mb_s")
OVERLAP = ("t_overlapped_us", "t_pure_us", "t_cpu_us", "overlap_percent")
PASSIVE = ("t_pure_us", "t_overlapped_us")
P2P = ("latency_us", "bandwidth_mb_s", "message_rate_per_s")
MT_RATE = ("t_avg_us", "bandwidth_mb_s", "message_rate_per_s")

Problem = tuple[int, Reason]
"""Which of several rows is the first bad one, from 0, and what is wrong with it."""
_Column = Sequence[float]

# Half of the last printed digit; the rest is for the rounding of this arithmetic.
_HALF = 0.005 + 1e-9
_MESSAGES = {"sendrecv": 2.0, "sendrecvmt": 2.0, "exchange": 4.0, "exchangemt": 4.0}
_RATE_PROBLEM = "{{{1}:.0f}} messages/s of {{0}} bytes|{{{0}:.2f}} MB/s"
_TO_ALL_OTHERS = ("one_put_all", "one_get_all", "put_all_local", "get_all_local")


@dataclass
class Rule:
    """What must hold for every row of a table with one and the same of the ``factors``.

    ``right`` says of each row whether it holds, by a factor, the column of sizes in bytes and those
    of the figures; ``problem`` writes two parts of these that contradict each other, with ``|``
    between them. ``factors`` keeps those that fit all rows.
    """

    right: Callable[..., list[bool]]
    problem: str
    factors: list[float] = field(default_factory=lambda: [1.0])

    def first_wrong(self, *columns: _Column) -> Iterator[Problem]:
        """Yield the first row that no factor fits which fitted all rows before it."""
        misfits = {factor: self.right(factor, *columns) for factor in self.factors}
        self.factors = [factor for factor, right in misfits.items() if False not in right]
        if not self.factors:
            row = max(right.index(False) for right in misfits.values())
            cells = [column[row] for column in columns]
            one, _, other = self.problem.format(*cells).partition("|")
            yield row, reason("output.contradiction", one=one, other=other)


def first_wrong(right: Sequence[bool], problem: Callable[[int], Reason]) -> Iterator[Problem]:
    """Yield the first row that is not right, if there is one, with its problem."""
    if False in right:
        row = right.index(False)
        yield row, problem(row)


def rules_of(
    information: RunInformation,
    benchmark: str,
    processes: int,
    threads: int,
    metrics: Sequence[str],
) -> list[Rule]:
    """Return the rules of a table's rows; which factor fits is found anew in every table."""
    name, in_order = benchmark.lower(), []
    if metrics[:3] == RANGE:
        in_order = [Rule(_in_order, "t_avg of {3:.2f} us|t_min to t_max of {1:.2f} to {2:.2f} us")]
    if metrics == OVERLAP:
        whole_of = min if information.program == "IMB-IO" else max
        said = "{1:.2f}, {2:.2f} and {3:.2f} us|an overlap of {4:.2f} %"
        return [Rule(partial(_overlap_fits, whole_of), said)]
    if metrics in (LATENCY, RANGE_BANDWIDTH):
        messages = [_MESSAGES.get(name, 1.0)]
        if name in _TO_ALL_OTHERS:
            # Up to 2018 IMB counts the messages to all other processes, later one of them.
            messages = [1.0, float(max(1, processes - 1))]
        factors = [count * unit for count in messages for unit in _megabytes(information)]
        said = "{0} bytes in {1:.2f} us|{2:.2f} MB/s"
        if in_order:
            said = "{0} bytes in {2:.2f} us|{4:.2f} MB/s"
        return [*in_order, Rule(_bandwidth_fits, said, factors)]
    if metrics == MT_RATE:
        return [
            Rule(
                partial(_mean_time_fits, processes * threads // 2),
                "{1:.2f} us|{3:.0f} messages/s",
            ),
            Rule(partial(_bandwidth_of_threads_fits, threads), _RATE_PROBLEM.format(2, 3)),
        ]
    if metrics == RATE:
        return [Rule(_rate_fits, _RATE_PROBLEM.format(1, 2), _megabytes(information))]
    if metrics == P2P:
        said = f"{{1:.2f}} us|{{3:.0f}} messages/s of {processes} processes"
        bounds = partial(_time_fits, 2.0 if name == "pingpong" else 1.0, processes)
        return [Rule(_rate_fits, _RATE_PROBLEM.format(2, 3)), Rule(bounds, said)]
    return in_order


def _megabytes(information: RunInformation) -> list[float]:
    """Return what turns bytes per us into MB/s: 2**20 bytes up to 2017, 10**6 from 2018 on.

    The sources of 2017 and 2018 say so; those of the updates of 2017 are not public.
    """
    binary = 1e6 / 2**20
    if information.year >= 2018:
        return [1.0]
    return [binary, 1.0] if information.imb_version.startswith("2017 Update") else [binary]


def _bandwidth_fits(factor: float, sizes: _Column, *columns: _Column) -> list[bool]:
    """Tell whether sizes and times (the longest where there are several) give the MB/s."""
    # As products, so that a time printed as 0.00 bounds the MB/s from below only.
    return [
        (rate - _HALF) * (time - _HALF) * (time > _HALF)
        <= factor * size
        <= (rate + _HALF) * (time + _HALF)
        if size and (rate or time)
        else rate == 0.0
        for size, time, rate in zip(sizes, columns[len(columns) > 2], columns[-1], strict=True)
    ]


def _in_order(_: float, sizes: _Column, *columns: _Column) -> list[bool]:
    return [low <= mean <= high for low, high, mean in zip(*columns[:3], strict=True)]


def _rate_fits(factor: float, sizes: _Column, *columns: _Column) -> list[bool]:
    """Tell whether sizes and messages/s give the MB/s."""
    return [
        factor * size * (rate - 0.5) <= (bandwidth + _HALF) * 1e6
        and factor * size * (rate + 0.5) >= (bandwidth - _HALF) * 1e6
        for size, bandwidth, rate in zip(sizes, *columns[-2:], strict=True)
    ]


def _overlap_fits(
    whole_of: Callable[[float, float], float], _: float, sizes: _Column, *columns: _Column
) -> list[bool]:
    """Tell whether an overlap is the part of a time that the other one hid.

    IMB-NBC relates it to the longer of communication and computation, IMB-IO to the shorter.
    """

    def right(overlapped: float, pure: float, computing: float, overlap: float) -> bool:
        hidden, whole = pure + computing - overlapped, whole_of(pure, computing)
        lowest = _percent(hidden - 3 * _HALF, whole + _HALF)
        highest = _percent(hidden + 3 * _HALF, whole - _HALF)
        return lowest - _HALF <= overlap <= highest + _HALF

    return list(map(right, *columns))


def _percent(part: float, whole: float) -> float:
    if part <= 0.0:
        return 0.0
    return 100.0 if part >= whole else 100.0 * part / whole


def _time_fits(
    ways: float, processes: int, _: float, sizes: _Column, *columns: _Column
) -> list[bool]:
    """Tell whether IMB-P2P's times lie within the bounds that its rates set.

    The time is a mean over all processes and the rate is of the slowest one, so their product lies
    between one process and all of them. PingPong's time is of one way, its rate of both.
    """
    return [
        (time + _HALF) * (rate + 0.5) * ways / 1e6 >= 1.0
        and (time - _HALF) * (rate - 0.5) * ways / 1e6 <= processes
        for time, _, rate in zip(*columns, strict=True)
    ]


def _mean_time_fits(pairs: int, _: float, sizes: _Column, *columns: _Column) -> list[bool]:
    """Tell whether IMB-MT's rates are those of t_avg; it cuts them to integers."""
    return [
        (rate - 1.0) * (time - _HALF) <= pairs * 1e6 <= (rate + 1.0) * (time + _HALF)
        for time, _, rate in zip(*columns, strict=True)
    ]


def _bandwidth_of_threads_fits(
    threads: int, _: float, sizes: _Column, *columns: _Column
) -> list[bool]:
    """Tell whether IMB-MT's MB/s, which are of a t_max that is not printed, are not too high."""
    return [
        bandwidth - _HALF <= (rate + 1.0) * size / threads / 1e6
        for size, bandwidth, rate in zip(sizes, *columns[-2:], strict=True)
    ]
