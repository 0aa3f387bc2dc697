"""Comparisons as objects, as CSV and as a table for the terminal."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from clustergate.core.model import CaseRecord
from clustergate.core.notation import interval, listed
from clustergate.core.reasons import Reason, Words

if TYPE_CHECKING:
    from clustergate.stats.comparison import Comparison

METRIC = "metric"
METHOD = "method"
"""The condition of figures that two runs measured, each in another way: none is compared."""
FIGURE = "figure"
"""The condition that names a figure of a stored run as references do."""
_CELLS = ("verdict", "ratio", "low", "high", "confidence", "samples_a", "samples_b")
# The conditions that say of which case a figure is.
_CASE = ("check", "stack", "partition")
_BETTER = ("A better", "B better")
_TAIL = ("further_launches", "remark")


def record_of(metric: str, conditions: Mapping[str, str], comparison: Comparison) -> dict[str, Any]:
    """Return a comparison as JSON holds it."""
    cells = {name: getattr(comparison, name) for name in (*_CELLS, *_TAIL)}
    return {
        METRIC: metric,
        "conditions": dict(conditions),
        **cells,
        "verdict": comparison.verdict.value,
    }


def as_csv(records: Sequence[Mapping[str, Any]]) -> str:
    """Return a row per comparison, a column for each condition of any."""
    names = list(dict.fromkeys(name for record in records for name in record["conditions"]))
    sides = [name for name in ("a", "b") if any(name in record for record in records)]
    text = io.StringIO()
    table = csv.DictWriter(text, [METRIC, *names, *_CELLS, *_TAIL, *sides], lineterminator="\n")
    table.writeheader()
    for record in records:
        conditions = record["conditions"]
        table.writerow({**conditions, **{k: v for k, v in record.items() if k != "conditions"}})
    return text.getvalue()


def decided_records(records: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the comparisons in which A or B is better."""
    return [record for record in records if record["verdict"] in _BETTER]


def undecided_lines(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line per case for what :func:`decided_records` leaves out."""
    lines = []
    for case, members in _cases(records).items():
        rest = [one for one in members if one["verdict"] not in _BETTER]
        if not rest:
            continue
        line = f"{case}: {count_verdicts([one['verdict'] for one in rest])} (--all)".lstrip(": ")
        if disturbed := Counter(one["remark"] for one in rest if one["remark"]).most_common(1):
            line += f"; of {disturbed[0][1]}: {disturbed[0][0]}"
        lines.append(line)
    return lines


def why_nothing_common(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return in which conditions A and B differ where no figure is of both, else nothing."""
    sides: list[dict[str, dict[str, None]]] = []
    for side in "AB":
        values: dict[str, dict[str, None]] = {}
        for one in records:
            if one["remark"] == f"measured in {side} only":
                for name, value in {METRIC: one[METRIC], **one["conditions"]}.items():
                    values.setdefault(name, {})[value] = None
        sides.append(values)
    compared = any(not one["remark"].startswith("measured in") for one in records)
    otherwise = any(METHOD in one["conditions"] for one in records)
    if compared or not all(sides) or otherwise:
        return []
    differing = [
        f"{name} ({' and '.join(listed(list(of.get(name, ['none'])), 3) for of in sides)})"
        for name in dict.fromkeys(name for of in sides for name in of)
        if sides[0].get(name, {}).keys().isdisjoint(sides[1].get(name, {}))
    ]
    by = f": A and B differ in {', '.join(differing)}" if differing else ""
    return [
        f"nothing was compared, as no figure was measured in both under equal conditions{by}; "
        "--ignore COLUMN leaves out a column of a file that is no condition"
    ]


def suspect_columns(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return which column of two files leaves one value to each comparison, if any does."""
    if len(records) < 3 or any(max(one["samples_a"], one["samples_b"]) > 1 for one in records):
        return []
    values: dict[str, set[str]] = {}
    for one in records:
        for name, value in one["conditions"].items():
            values.setdefault(name, set()).add(value)
    return [
        f"column {name!r} differs in every row: if it is no condition, leave it out with --ignore "
        f"{name}"
        for name, of in values.items()
        if len(of) == len(records)
    ]


OTHER_METHOD = Words(
    "compare.other-method",
    "{cases:names}: not compared, as the two runs did not measure them in the same way",
    cause="the benchmark, what its mode asks of it, or how figures follow from it has changed",
    remedy="measure both with one version of clustergate",
)


def other_methods(keys: Iterable[Mapping[str, str]]) -> list[Reason]:
    """Return of what nothing is compared, as two runs measured it in different ways."""
    by_case: dict[str, dict[str, bool]] = {}
    for key in keys:
        by_case.setdefault(_case_of(key), {})[key.get(FIGURE, "")] = METHOD in key
    cases = [
        case if all(of.values()) else f"{sum(of.values())} of {len(of)} figures of {case}"
        for case, of in by_case.items()
        if any(of.values())
    ]
    return [OTHER_METHOD(cases=cases)] if cases else []


OTHER_PROCESSORS = Words(
    "compare.other-processors",
    "A ran on {a:list}, and B on {b:list}",
    cause="the difference is the machine's",
    remedy="for other causes, compare runs of one machine",
)


def other_processors(a: Iterable[CaseRecord], b: Iterable[CaseRecord]) -> list[Reason]:
    """Return that cases of two runs ran on other processors, as far as both say on which."""
    return [OTHER_PROCESSORS(a=x, b=y) for x, y in _unlike(a, b, lambda one: one.processors)]


OTHER_NODES = Words(
    "compare.other-nodes",
    "A ran on {a:names}, and B on {b:names}",
    cause="the difference may be the nodes'",
    remedy="for other causes, compare runs of the same nodes (`--nodes`)",
)


def other_nodes(a: Iterable[CaseRecord], b: Iterable[CaseRecord]) -> list[Reason]:
    """Return that cases of two runs ran on other nodes, as far as both say on which."""
    return [OTHER_NODES(a=x, b=y) for x, y in _unlike(a, b, lambda one: one.hosts)]


def _unlike(
    a: Iterable[CaseRecord], b: Iterable[CaseRecord], said_by: Callable[[CaseRecord], Sequence[str]]
) -> list[tuple[list[str], list[str]]]:
    """Return what the first case tells that is of two runs and tells something else of each."""
    of_a, of_b = ({one.name: said_by(one) for one in records} for records in (a, b))
    pairs = ((mine, of_b.get(name)) for name, mine in of_a.items())
    return [(list(x), list(y)) for x, y in pairs if x and y and x != y][:1]


def _cases(records: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    cases: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        cases.setdefault(_case_of(record["conditions"]), []).append(record)
    return cases


def _case_of(key: Mapping[str, str]) -> str:
    return " ".join(filter(None, (key.get(name, "") for name in _CASE)))


def tables_of(records: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Table]]:
    """Yield the cases, such as ``HplCheck mpich``, with a table of their figures.

    What is no case's, from a file, has an empty title. Remarks are too long for a table:
    :func:`remarks` tells them.
    """
    for case, members in _cases(records).items():
        yield case, _table(members)


def _table(records: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(box=box.SIMPLE, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    # The names alone give way on a narrow terminal.
    table.add_column("figure", overflow="fold")
    for column in ("verdict", "ratio", "interval", "covers", "launches"):
        table.add_column(column, no_wrap=True)
    for called, record in zip(_names(records), records, strict=True):
        ends = interval(record["low"], record["high"])
        cells = (
            called,
            record["verdict"],
            "" if record["ratio"] is None else f"{record['ratio']:.3f}",
            ends,
            f"{100 * record['confidence']:.4g} %" if ends else "",
            f"{record['samples_a']}, {record['samples_b']}",
        )
        table.add_row(*map(Text, cells))
    return table


def _names(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a name for each record: conditions are told by those alone that differ in them."""
    alike: dict[str, list[Mapping[str, str]]] = {}
    for record in records:
        alike.setdefault(_name(record), []).append(record["conditions"])
    telling = {called: _differing(members) for called, members in alike.items()}
    named = [(_name(record), record["conditions"]) for record in records]
    return [
        " ".join([called, *(f"{n}={of[n]}" for n in telling[called] if n in of)])
        for called, of in named
    ]


def _name(record: Mapping[str, Any]) -> str:
    name: str = record["conditions"].get(FIGURE, record[METRIC])
    return name


def _differing(members: Sequence[Mapping[str, str]]) -> list[str]:
    names = dict.fromkeys(name for conditions in members for name in conditions)
    return [n for n in names if len({conditions.get(n) for conditions in members}) > 1]


def remarks(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return each remark once, with the figures that it is about."""
    about: dict[str, list[str]] = {}
    for record in records:
        if record["remark"]:
            about.setdefault(record["remark"], []).append(_name(record))
    return [f"{remark}: {listed(names)}" for remark, names in about.items()]


def count_verdicts(verdicts: Sequence[str]) -> str:
    """Return how many there are of each verdict, such as ``3 A better, 1 inconclusive``."""
    return ", ".join(f"{verdicts.count(v)} {v}" for v in dict.fromkeys(verdicts))
