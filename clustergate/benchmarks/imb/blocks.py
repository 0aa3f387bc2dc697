"""What stands for the blocks of a size that one launch measured. Pure.

IMB prints a mean for each block. A disturbance meets few of many short blocks, so their bounded
mean scatters less between launches than the mean of all repetitions does.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from math import exp, log

from clustergate.benchmarks.imb.command import COUNTED
from clustergate.benchmarks.imb.output import parse_imb
from clustergate.core.model import ConditionValue, Row

_BOUND = log(2.0)
_BANDWIDTH = "bandwidth_mb_s"
# The time that IMB's MB/s follow from.
_TIMES = ("latency_us", "t_max_us")
_DIGITS = 2
# Half of the last digit that IMB prints of a time, and what its MB/s leave out.
_PRINTED, _ROUNDED = 0.0051, 1e-4


def bounded_mean(blocks: Sequence[float]) -> float:
    """Return the mean of the logarithms, each within a factor of two of the middle one.

    It moves with the share of the blocks that are slow, as the mean does, and no block by itself
    moves it far, as none does the median (one step to Huber's estimate of location: Robust
    statistics, 1981, 6.7). Of values of which one is no number above 0 it is the least.
    """
    least = min(blocks)
    if least <= 0.0 or least == max(blocks):
        return least
    logs = [log(block) for block in blocks]
    middle = statistics.median(logs)
    return exp(middle + statistics.fmean(max(-_BOUND, min(x - middle, _BOUND)) for x in logs))


def read_blocks(lines: Iterable[str]) -> Iterator[Row]:
    """Yield the rows of a launch's output, one for each figure."""
    return merge_blocks(parse_imb(lines))


def merge_blocks(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield a row for each figure in the place of those of its blocks.

    Its values have the digits that IMB prints, so that their resolution is known. What IMB printed
    a word for in any block has no figure.
    """
    blocks: dict[object, list[Row]] = {}
    for row in rows:
        own = {k: v for k, v in row.conditions.items() if k != "repetitions"}
        blocks.setdefault((row.suite, row.benchmark, tuple(own.items())), []).append(row)
    for of_one in blocks.values():
        failed = next((row for row in of_one if row.status != "ok"), None)
        yield failed or (of_one[0] if len(of_one) == 1 else _one_of(of_one))


def _one_of(blocks: Sequence[Row]) -> Row:
    first = blocks[0]
    values = {
        name: round(bounded_mean([row.values[name] for row in blocks]), _DIGITS)
        for name in first.values
    }
    conditions: dict[str, ConditionValue] = dict(first.conditions)
    if "repetitions" in conditions:
        conditions["repetitions"] = sum(int(row.conditions["repetitions"]) for row in blocks)
    moved = COUNTED.get(first.benchmark, 0) * int(conditions.get("bytes", 0))
    for name in _TIMES if moved and values.get(_BANDWIDTH) else ():
        # Where the MB/s have the finer digits, it is their mean that is known.
        if name in values and all(_is_told(row, name, moved) for row in blocks):
            values[name] = round(moved / values[_BANDWIDTH], _DIGITS)
    return Row(first.suite, first.benchmark, conditions, values, line=first.line)


def _is_told(row: Row, name: str, moved: int) -> bool:
    """Tell whether a block's MB/s tell its time."""
    time_us, rate = row.values[name], row.values[_BANDWIDTH]
    return rate > 0.0 and abs(moved / rate - time_us) <= _PRINTED + _ROUNDED * time_us
