"""The heads of the Intel MPI Benchmarks' tables: what is measured, and in which columns."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from clustergate.model import Conditions

# What a table can have besides its sizes and repetitions, in the order of its columns.
LATENCY = ("latency_us", "bandwidth_mb_s")
RATE = ("bandwidth_mb_s", "message_rate_per_s")
RANGE = ("t_min_us", "t_max_us", "t_avg_us")
RANGE_BANDWIDTH = (*RANGE, "bandwidth_mb_s")
OVERLAP = ("t_overlapped_us", "t_pure_us", "t_cpu_us", "overlap_percent")
PASSIVE = ("t_pure_us", "t_overlapped_us")
P2P = ("latency_us", "bandwidth_mb_s", "message_rate_per_s")
MT_RATE = ("t_avg_us", "bandwidth_mb_s", "message_rate_per_s")

_METRIC_OF_COLUMN = {
    "t[usec]": "latency_us",
    "t_min[usec]": "t_min_us",
    "t_max[usec]": "t_max_us",
    "t_avg[usec]": "t_avg_us",
    "t_ovrl[usec]": "t_overlapped_us",
    "t_pure[usec]": "t_pure_us",
    "t_CPU[usec]": "t_cpu_us",
    "overlap[%]": "overlap_percent",
    "Mbytes/sec": "bandwidth_mb_s",
    "Msg/sec": "message_rate_per_s",
}
_WITH_SIZES = {LATENCY, RATE, RANGE, RANGE_BANDWIDTH, OVERLAP, PASSIVE, P2P, MT_RATE}
_WITHOUT_SIZES = {RANGE, OVERLAP}
# All columns are right-justified in so many characters.
WIDTH = 13
# Of the rows of a table without sizes.
NO_SIZE = -1
_INTEGER = r"\d{1,12}"
_FIGURE = r"\d{1,12}\.\d\d"
_STATUS = r"(out-of-mem|int-overflow|time-out)[.;].*"


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns of a table: ``grouped`` and ``checked`` tell of "Group" and "defects".

    ``is_row`` says of a line, or of its shape, whether it has the form of a row; ``shapes`` are
    those that were seen to have it.
    """

    grouped: bool
    sized: bool
    metrics: tuple[str, ...]
    checked: bool
    aligned: bool
    is_row: Callable[[str], re.Match[str] | None]
    words: re.Pattern[str]
    shapes: set[str] = field(default_factory=set)

    @functools.cached_property
    def conditions(self) -> tuple[str, ...]:
        return (*("group",) * self.grouped, *("bytes",) * self.sized, "repetitions")


class Head(NamedTuple):
    """What stands above the rows of a table; ``conditions`` are what all of them have in common."""

    benchmark: str
    processes: int
    groups: int
    idle: int
    threads: int | None
    mode: str
    columns: Columns
    conditions: Conditions


@functools.lru_cache(maxsize=64)
def columns_of(line: str) -> Columns | None:
    """Return the columns of which a line has the names, None if it does not.

    Whoever changed the blanks of the text changed them here too: only where the names stand in
    their places must the figures.
    """
    words = line.split()
    grouped, checked = words[:1] == ["Group"], words[-1:] == ["defects"]
    names = words[grouped : len(words) - checked]
    sized = names[:1] == ["#bytes"]
    metrics = tuple(_METRIC_OF_COLUMN.get(name, "") for name in names[sized + 1 :])
    if names[sized : sized + 1] != ["#repetitions"] or metrics not in (
        _WITH_SIZES if sized else _WITHOUT_SIZES
    ):
        return None
    ends = [match.end() for match in re.finditer(r"\S+", line)]
    aligned = ends == [WIDTH * column for column in range(1, len(words) + 1)]
    forms = [_INTEGER] * (grouped + sized + 1)
    forms += [_INTEGER if name == "message_rate_per_s" else _FIGURE for name in metrics]
    row = " *" + " +".join([*forms, *[_FIGURE] * checked]) + r"[ \r]*"
    group = rf"({_INTEGER}) +" if grouped else "()"
    if aligned:
        row = rf"(?=.{{{ends[-1] - 1}}}\d[ \r]*\Z){row}"
    return Columns(
        grouped,
        sized,
        metrics,
        checked,
        aligned,
        is_row=re.compile(row, re.ASCII).fullmatch,
        words=re.compile(f" *{group}({_INTEGER}) {_STATUS}", re.ASCII),
    )
