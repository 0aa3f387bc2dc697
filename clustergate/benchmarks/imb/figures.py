"""The figures in rows of the Intel MPI Benchmarks, in columns, and whether they are right.

A table has few rows, so those of many tables with the same columns and the same rules are turned
into numbers, and checked, at once.

IMB prints two decimals of each figure, so what follows from another is compared by the intervals
that both were rounded from. The formulas are those of IMB_output.c, of the files in P2P and of
MT_benchmark.h. Pure.
"""

from __future__ import annotations

import bisect
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clustergate.benchmarks.imb.columns import (
    LATENCY,
    MT_RATE,
    NO_SIZE,
    OVERLAP,
    P2P,
    RANGE,
    RANGE_BANDWIDTH,
    RATE,
    WIDTH,
    Columns,
    Head,
)
from clustergate.benchmarks.imb.header import RunInformation
from clustergate.benchmarks.imb.output import Block, Problem
from clustergate.benchmarks.text import OUTPUT_OTHER_RUN
from clustergate.model import OutputError, Part, Row, Table
from clustergate.wording.outputs import OUTPUT_CONTRADICTION, OUTPUT_WRONG_RESULT

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_BLANK = ord(" ")
# Enough to make the cost of an array's call small, few enough to be nothing in memory.
_AT_ONCE = 1000
# Half of the last printed digit; the rest is for the rounding of this arithmetic.
_HALF = 0.005 + 1e-9
_MESSAGES = {"sendrecv": 2.0, "sendrecvmt": 2.0, "exchange": 4.0, "exchangemt": 4.0}
_RATE_PROBLEM = "{{{1}:.0f}} messages/s of {{0}} bytes|{{{0}:.2f}} MB/s"
_TO_ALL_OTHERS = ("one_put_all", "one_get_all", "put_all_local", "get_all_local")


def checked(parts: Iterable[Row | Block | None], source: str) -> Iterator[Part]:
    """Yield rows and tables in the order of their parts; at a None, all before it is checked.

    Raises :class:`OutputError` for the first line that is wrong.
    """
    waiting: list[Row | Block] = []
    rows = 0
    try:
        for part in parts:
            if isinstance(part, Block):
                rows += part.count
                if not (waiting and part.joins(waiting[-1])):
                    waiting.append(part)
            elif part:
                waiting.append(part)
            if part is None or rows >= _AT_ONCE:
                rows = 0
                yield from _checked(waiting, source)
    except OutputError:
        # What is wrong above the line of the complaint comes first. What is right there counts
        # for who wants what was complete when the text was cut off.
        yield from _checked(waiting, source)
        raise
    yield from _checked(waiting, source)


def _checked(waiting: list[Row | Block], source: str) -> Iterator[Part]:
    """Yield what waits, after which nothing does."""
    parts = waiting.copy()
    waiting.clear()
    alike: dict[object, list[Block]] = {}
    for part in parts:
        if isinstance(part, Block):
            reader = part.reader
            rules = reader.rules = reader.rules or rules_of(reader.information, reader.head)
            # Which factor fits is found anew in every table; the last rule alone has several.
            own = len(rules) > 0 and len(rules[-1].factors) > 1
            alike.setdefault((reader.columns, *rules, own and reader), []).append(part)
    if problems := [problem for blocks in alike.values() for problem in _problems(blocks)]:
        line, said = min(problems, key=lambda problem: problem[0])
        raise OutputError(said, line=line, source=source)
    for part in parts:
        if not isinstance(part, Block):
            yield part
        elif part.reader.counts:
            yield part.table


def _problems(blocks: Sequence[Block]) -> Iterator[Problem]:
    """Make the tables of blocks with the same columns and rules, and yield lines that are wrong."""
    first, columns = blocks[0].reader, blocks[0].reader.columns
    starts = [0, *itertools.accumulate(block.count for block in blocks)]
    numbers = _numbers(columns, "".join(block.text for block in blocks), starts[-1])
    names = columns.conditions
    integers, figures = numbers[: len(names)].astype(np.int64), numbers[len(names) :]
    groups = integers[0].tolist() if columns.grouped else []
    bytes_ = integers[-2] if columns.sized else np.full(starts[-1], NO_SIZE)
    sizes, repetitions = bytes_.tolist(), integers[-1]
    most = np.empty_like(repetitions)
    most[1:] = repetitions[:-1]
    counts = repetitions.tolist()
    problems: list[Problem] = []
    for block, start, end in zip(blocks, starts, starts[1:], strict=False):
        reader = block.reader
        block.table = Table(
            reader.information.suite,
            reader.head.benchmark,
            reader.head.conditions,
            names,
            columns.metrics,
            integers[:, start:end],
            figures[: len(columns.metrics), start:end],
            block.line,
        )
        for row, said in reader.misplaced(block.start, groups[start:end], sizes[start:end]):
            problems.append((start + row, said))
        most[start] = reader.most_repetitions or counts[start]
        reader.most_repetitions = counts[end - 1]
    # They do not grow with the sizes, unless these are the user's own.
    bound = most if first.lengths.declared else repetitions
    right = (repetitions > 0) & (repetitions <= bound)
    problems += contradiction(right, "{0} repetitions|the {1} before", repetitions, bound)
    asked = first.asked_repetitions
    if asked is not None:
        for row in np.flatnonzero(repetitions != asked).tolist():
            count = int(repetitions[row])
            other = OUTPUT_OTHER_RUN(what="repetitions", actual=count, wanted=asked)
            problems.append((row, other))
    if columns.checked:
        for row in np.flatnonzero(figures[-1]).tolist():
            printed = float(figures[-1, row])
            wrong = OUTPUT_WRONG_RESULT(what="'defects'", value=printed, wanted="0")
            problems.append((row, wrong))
    for k, rule in enumerate(first.rules):
        first.rules[k], misfits = rule.narrowed(bytes_, *figures[: len(columns.metrics)])
        problems += misfits
    for row, said in problems:
        at = bisect.bisect_right(starts, row) - 1
        yield blocks[at].line + row - starts[at], said


def _numbers(columns: Columns, text: str, rows: int) -> Floats:
    """Return the numbers in lines that have the form of rows, one array for each column.

    Those that stand in their places are made of their digits: every integer below 2**53 is exact,
    and its hundredth the nearest there is, as of ``float``.
    """
    weights, units = _weights(columns)
    width = WIDTH * len(units)
    if columns.aligned and len(text) == rows * (width + 1):
        characters = np.frombuffer(text.encode(), np.uint8).reshape(rows, width + 1)
        cells = characters[:, :width].reshape(rows, len(units), WIDTH)
        # No other character of a row is below a blank.
        if cells[:, :, 0].max() == _BLANK < cells[:, :, -1].min():
            # A digit's value; of a blank nothing, and points have no weight.
            digits = (characters & 15).astype(float)
            cells = digits[:, :width].reshape(rows, len(units), WIDTH)
            exact: Floats = np.matmul(cells.transpose(1, 0, 2), weights)[:, :, 0] / units
            return exact
    split: Floats = np.array(list(map(float, text.split()))).reshape(rows, len(units)).T
    return split


@functools.lru_cache(maxsize=64)
def _weights(columns: Columns) -> tuple[Floats, Floats]:
    """Return what each character of a row counts, and what the sums are to be divided by."""
    tens = 10.0 ** np.arange(WIDTH)[::-1]
    # The point of a figure stands before its last two digits.
    hundredths = np.array([*tens[1:-2], 0.0, *tens[-2:]])
    whole = [True] * len(columns.conditions)
    whole += [name == "message_rate_per_s" for name in columns.metrics]
    whole += [False] * columns.checked
    weights = [tens if is_whole else hundredths for is_whole in whole]
    units = [1.0 if is_whole else 100.0 for is_whole in whole]
    return np.array(weights)[:, :, None], np.array(units)[:, None]


class Rule(NamedTuple):
    """What must hold for every row of a table with one and the same of the ``factors``.

    ``right`` says of each row whether it holds, by what is known of the table, a factor, the column
    of sizes in bytes and those of the figures; ``problem`` writes two parts of these that
    contradict each other, with ``|`` between them.
    """

    right: Callable[..., Bools]
    known: tuple[Any, ...]
    problem: str
    factors: tuple[float, ...] = (1.0,)

    def narrowed(self, *columns: Floats) -> tuple[Rule, list[Problem]]:
        """Return the rule with the factors that fit all rows, and the first row that none fits."""
        right = {factor: self.right(*self.known, factor, *columns) for factor in self.factors}
        fitting = tuple(factor for factor, rows in right.items() if rows.all())
        if fitting:
            return (self if fitting == self.factors else self._replace(factors=fitting)), []
        best = max(right.values(), key=lambda rows: int(rows.argmin()))
        return self, contradiction(best, self.problem, *columns)


def contradiction(right: Bools, problem: str, *columns: NDArray[Any]) -> list[Problem]:
    """Return the first row that is not right, if there is one, with two parts of it."""
    if right.all():
        return []
    row = int(right.argmin())
    one, _, other = problem.format(*(column[row] for column in columns)).partition("|")
    return [(row, OUTPUT_CONTRADICTION(one=one, other=other))]


def rules_of(information: RunInformation, head: Head) -> list[Rule]:
    """Return what must hold for the rows of a table."""
    metrics = head.columns.metrics
    in_order = [_IN_ORDER] if metrics[:3] == RANGE else []
    if metrics == RANGE:
        return in_order
    name, processes, threads = head.benchmark.lower(), head.processes, head.threads or 1
    if metrics == OVERLAP:
        whole_of = np.minimum if information.program == "IMB-IO" else np.maximum
        said = "{1:.2f}, {2:.2f} and {3:.2f} us|an overlap of {4:.2f} %"
        return [Rule(_overlap_fits, (whole_of,), said)]
    if metrics in (LATENCY, RANGE_BANDWIDTH):
        messages = [_MESSAGES.get(name, 1.0)]
        if name in _TO_ALL_OTHERS:
            # Up to 2018 IMB counts the messages to all other processes, later one of them.
            messages = [1.0, float(max(1, processes - 1))]
        factors = tuple(count * unit for count in messages for unit in _megabytes(information))
        said = "{0} bytes in {1:.2f} us|{2:.2f} MB/s"
        if in_order:
            said = "{0} bytes in {2:.2f} us|{4:.2f} MB/s"
        return [*in_order, Rule(_bandwidth_fits, (), said, factors)]
    if metrics == MT_RATE:
        pairs = processes * threads // 2
        return [
            Rule(_mean_time_fits, (pairs,), "{1:.2f} us|{3:.0f} messages/s"),
            Rule(_bandwidth_of_threads_fits, (threads,), _RATE_PROBLEM.format(2, 3)),
        ]
    if metrics == RATE:
        return [Rule(_rate_fits, (), _RATE_PROBLEM.format(1, 2), _megabytes(information))]
    if metrics == P2P:
        said = f"{{1:.2f}} us|{{3:.0f}} messages/s of {processes} processes"
        bounds = (2.0 if name == "pingpong" else 1.0, processes)
        return [
            Rule(_rate_fits, (), _RATE_PROBLEM.format(2, 3)),
            Rule(_time_fits, bounds, said),
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


def _bandwidth_fits(factor: float, sizes: Floats, *columns: Floats) -> Bools:
    """Tell whether sizes and times (the longest where there are several) give the MB/s."""
    time, rate = columns[len(columns) > 2], columns[-1]
    # As products, so that a time printed as 0.00 bounds the MB/s from below only.
    least = (rate - _HALF) * (time - _HALF) * (time > _HALF)
    fits = (least <= factor * sizes) & (factor * sizes <= (rate + _HALF) * (time + _HALF))
    return np.where((sizes > 0) & ((rate > 0.0) | (time > 0.0)), fits, rate == 0.0)


def _in_order(_: float, sizes: Floats, *columns: Floats) -> Bools:
    low, high, mean = columns[:3]
    return (low <= mean) & (mean <= high)


_IN_ORDER = Rule(_in_order, (), "t_avg of {3:.2f} us|t_min to t_max of {1:.2f} to {2:.2f} us")


def _rate_fits(factor: float, sizes: Floats, *columns: Floats) -> Bools:
    """Tell whether sizes and messages/s give the MB/s."""
    bandwidth, rate = columns[-2:]
    lowest, highest = factor * sizes * (rate - 0.5), factor * sizes * (rate + 0.5)
    return (lowest <= (bandwidth + _HALF) * 1e6) & (highest >= (bandwidth - _HALF) * 1e6)


def _overlap_fits(whole_of: np.ufunc, _: float, sizes: Floats, *columns: Floats) -> Bools:
    """Tell whether an overlap is the part of a time that the other one hid.

    IMB-NBC relates it to the longer of communication and computation, IMB-IO to the shorter.
    """
    overlapped, pure, computing, overlap = columns
    hidden, whole = pure + computing - overlapped, whole_of(pure, computing)
    lowest = _percent(hidden - 3 * _HALF, whole + _HALF)
    highest = _percent(hidden + 3 * _HALF, whole - _HALF)
    return (lowest - _HALF <= overlap) & (overlap <= highest + _HALF)


def _percent(part: Floats, whole: Floats) -> Floats:
    return np.where(part <= 0.0, 0.0, np.where(part >= whole, 100.0, 100.0 * part / whole))


def _time_fits(ways: float, processes: int, _: float, sizes: Floats, *columns: Floats) -> Bools:
    """Tell whether IMB-P2P's times lie within the bounds that its rates set.

    The time is a mean over all processes and the rate is of the slowest one, so their product lies
    between one process and all of them. PingPong's time is of one way, its rate of both.
    """
    time, _bandwidth, rate = columns
    longest, shortest = (time + _HALF) * (rate + 0.5), (time - _HALF) * (rate - 0.5)
    return (longest * ways / 1e6 >= 1.0) & (shortest * ways / 1e6 <= processes)


def _mean_time_fits(pairs: int, _: float, sizes: Floats, *columns: Floats) -> Bools:
    """Tell whether IMB-MT's rates are those of t_avg; it cuts them to integers."""
    time, _bandwidth, rate = columns
    lowest, highest = (rate - 1.0) * (time - _HALF), (rate + 1.0) * (time + _HALF)
    return (lowest <= pairs * 1e6) & (pairs * 1e6 <= highest)


def _bandwidth_of_threads_fits(threads: int, _: float, sizes: Floats, *columns: Floats) -> Bools:
    """Tell whether IMB-MT's MB/s, which are of a t_max that is not printed, are not too high."""
    bandwidth, rate = columns[-2:]
    return bandwidth - _HALF <= (rate + 1.0) * sizes / threads / 1e6
