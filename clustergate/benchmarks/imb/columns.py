"""The columns of the Intel MPI Benchmarks' tables. Pure.

      #bytes #repetitions      t[usec]   Mbytes/sec
        1024           20       501.86         2.04
        2048 out-of-mem.; needed X=   0.001 GB; use flag "-mem X" or MAX_MEM_USAGE>=X
       Group       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]   Mbytes/sec
           0            0           20        64.61        64.72        64.67         0.00
           1            0           20        61.75        62.12        61.93         0.00
#repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
          30         3.50         3.52         3.51
"""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

# What a table can have besides its sizes and repetitions, in the order of its columns.
LATENCY = ("latency_us", "bandwidth_mb_s")
RATE = ("bandwidth_mb_s", "message_rate_per_s")
RANGE = ("t_min_us", "t_max_us", "t_avg_us")
RANGE_BANDWIDTH = (*RANGE, "bandwidth_mb_s")
OVERLAP = ("t_overlapped_us", "t_pure_us", "t_cpu_us", "overlap_percent")
PASSIVE = ("t_pure_us", "t_overlapped_us")
P2P = ("latency_us", "bandwidth_mb_s", "message_rate_per_s")
MT_RATE = ("t_avg_us", "bandwidth_mb_s", "message_rate_per_s")
_WITH_SIZES = {LATENCY, RATE, RANGE, RANGE_BANDWIDTH, OVERLAP, PASSIVE, P2P, MT_RATE}
_WITHOUT_SIZES = {RANGE, OVERLAP}

_INTEGER = r"(\d{1,12})"
_FIGURE = r"(\d{1,12}\.\d\d)"
# What the numbers of a column are called, and their form.
_COLUMNS = {
    "Group": ("group", _INTEGER),
    "#bytes": ("bytes", _INTEGER),
    "#repetitions": ("repetitions", _INTEGER),
    "t[usec]": ("latency_us", _FIGURE),
    "t_min[usec]": ("t_min_us", _FIGURE),
    "t_max[usec]": ("t_max_us", _FIGURE),
    "t_avg[usec]": ("t_avg_us", _FIGURE),
    "t_ovrl[usec]": ("t_overlapped_us", _FIGURE),
    "t_pure[usec]": ("t_pure_us", _FIGURE),
    "t_CPU[usec]": ("t_cpu_us", _FIGURE),
    "overlap[%]": ("overlap_percent", _FIGURE),
    "Mbytes/sec": ("bandwidth_mb_s", _FIGURE),
    "Msg/sec": ("message_rate_per_s", _INTEGER),
    "defects": ("defects", _FIGURE),
}
# All columns are right-justified in so many characters.
WIDTH = 13
# Of the rows of a table without sizes.
NO_SIZE = -1


class Columns(NamedTuple):
    """The columns of a table: the names of its integers and of its figures.

    ``row`` matches a row of numbers, each a group; ``words`` one that has words for figures: the
    group if there are any, the size, the word.
    """

    integers: tuple[str, ...]
    metrics: tuple[str, ...]
    is_checked: bool
    is_aligned: bool
    row: re.Pattern[str]
    words: re.Pattern[str]

    @property
    def is_grouped(self) -> bool:
        return "group" in self.integers

    @property
    def is_sized(self) -> bool:
        return "bytes" in self.integers


@functools.lru_cache(maxsize=64)
def columns_of(line: str) -> Columns | None:
    """Return the columns of which a line has the names, None if it does not.

    Whoever changed the blanks of the text changed them here too: only where the names stand in
    their places must the figures.
    """
    printed = line.split()
    if not {*printed} <= _COLUMNS.keys():
        return None
    names = [_COLUMNS[name][0] for name in printed]
    is_grouped, is_checked = names[:1] == ["group"], names[-1:] == ["defects"]
    first = names.index("repetitions") + 1 if "repetitions" in names else 0
    integers, metrics = tuple(names[:first]), tuple(names[first : len(names) - is_checked])
    is_sized = integers[is_grouped:] == ("bytes", "repetitions")
    if metrics not in (_WITH_SIZES if is_sized else _WITHOUT_SIZES) or not (
        is_sized or integers[is_grouped:] == ("repetitions",)
    ):
        return None
    ends = [match.end() for match in re.finditer(r"\S+", line)]
    is_aligned = ends == [WIDTH * column for column in range(1, len(printed) + 1)]
    row = " *" + " +".join(_COLUMNS[name][1] for name in printed)
    if is_aligned:
        row = rf"(?=.{{{ends[-1]}}}\Z){row}"
    group = f"{_INTEGER} +" if is_grouped else "()"
    words = rf" *{group}{_INTEGER} (out-of-mem|int-overflow|time-out)[.;].*"
    return Columns(
        *(integers, metrics, is_checked, is_aligned),
        row=re.compile(row, re.ASCII),
        words=re.compile(words, re.ASCII),
    )
