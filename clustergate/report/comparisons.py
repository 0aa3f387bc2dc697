"""Comparisons as objects, as CSV and as a table for the terminal."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from clustergate.statistics.comparison import Comparison

METRIC = "metric"
_CELLS = ("verdict", "ratio", "low", "high", "confidence", "samples_a", "samples_b")
_TAIL = ("further_launches", "remark")


def record_of(metric: str, conditions: Mapping[str, str], one: Comparison) -> dict[str, Any]:
    """Return a comparison as JSON holds it."""
    told = {name: getattr(one, name) for name in (*_CELLS, *_TAIL)}
    return {METRIC: metric, "conditions": dict(conditions), **told, "verdict": one.verdict.value}


def as_csv(records: Sequence[Mapping[str, Any]]) -> str:
    """Return a row per comparison, a column for each condition of any."""
    names = list(dict.fromkeys(name for record in records for name in record["conditions"]))
    text = io.StringIO()
    table = csv.DictWriter(text, [METRIC, *names, *_CELLS, *_TAIL], lineterminator="\n")
    table.writeheader()
    for record in records:
        conditions = record["conditions"]
        table.writerow({**conditions, **{k: v for k, v in record.items() if k != "conditions"}})
    return text.getvalue()


def table_of(records: Sequence[Mapping[str, Any]]) -> Table:
    """Return a line per comparison; conditions that are the same everywhere tell nothing."""
    names = list(dict.fromkeys(name for record in records for name in record["conditions"]))
    names = [n for n in names if len({record["conditions"].get(n) for record in records}) > 1]
    table = Table(box=box.SIMPLE, show_edge=False)
    for name in (METRIC, *names, "verdict", "ratio", "interval", "launches", "more"):
        table.add_column(name, overflow="fold")
    for record in records:
        interval = "" if record["low"] is None else f"{record['low']:.3f}…{record['high']:.3f}"
        more = f"{record['further_launches']} launches" if record["further_launches"] else ""
        cells = (
            record[METRIC],
            *(record["conditions"].get(name, "") for name in names),
            record["verdict"],
            "" if record["ratio"] is None else f"{record['ratio']:.3f}",
            interval,
            f"{record['samples_a']}, {record['samples_b']}",
            "; ".join(filter(None, [more, record["remark"]])),
        )
        table.add_row(*map(Text, cells))
    return table


def counted(verdicts: Sequence[str]) -> str:
    """Return how many there are of each verdict, such as ``3 A better, 1 cannot tell``."""
    return ", ".join(f"{verdicts.count(v)} {v}" for v in dict.fromkeys(verdicts))
