"""The papers' tables, each with what was measured here as further rows. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clustergate.core.notation import number
from evaluations.facts import STANDS, Paper, PrintedValue
from evaluations.sheet import DISTURBED, OTHER_LAUNCH, BesideRow

MARKS = {DISTURBED: "?", OTHER_LAUNCH: "*"}
_TABLE = re.compile(r"Table \d+")
_NOTHING = "-"
_UNITS = {
    **{"ghz": "GHz", "mhz": "MHz", "mb s": "MB/s", "gbytes per s": "GB/s", "gbs": "GB/s"},
    **{"bytes": "bytes", "gb": "GB", "w": "W"},
}
# What is told of the machine at hand where no system states more.
_OF_ANY_MACHINE = ("processor", "cores_per_node", "memory", "os", "mpi")


@dataclass(frozen=True)
class Table:
    """A table: cells by the names of its rows, those of the paper and those measured here."""

    title: str
    columns: Sequence[str]
    printed: Mapping[str, Sequence[str]]
    measured: Mapping[str, Sequence[str]]


def tables(rows: Sequence[BesideRow], subjects: Sequence[str]) -> list[Table]:
    """Return the tables of which a paper's values say that they stand there, in their order.

    A row is a system, a column what was measured of it; ``subjects`` have a row each.
    """
    titled: dict[str, list[BesideRow]] = {}
    for row in rows:
        if found := _TABLE.search(row.value.source):
            titled.setdefault(found.group(), []).append(row)
    by_number = sorted(titled.items(), key=lambda item: int(item[0].split()[1]))
    return [_table(title, found, subjects) for title, found in by_number]


def machine_facts(node_state: Mapping[str, Any], stacks: Sequence[str]) -> dict[str, Any]:
    """Return what a run kept of its machine, by the names that facts of systems have."""
    hardware, kernel = (node_state["fingerprint"][part] for part in ("hardware", "kernel"))
    cores, caches, memory = hardware["cores"], hardware["caches"], hardware["memory_total_gib"]
    kind = " (virtual machine)" if hardware["virtual_machine"] else ""
    return {
        "processor": f"{hardware['processor']}{kind}",
        "vendor": hardware["system_vendor"] or _NOTHING,
        "sockets_per_node": hardware["sockets"],
        **dict.fromkeys(("cores_per_node", "cpus_per_node", "processors"), cores),
        **{level: [one for one in caches if level.upper() in one] for level in ("l1", "l2")},
        **dict.fromkeys(("memory", "memory_per_node"), f"{memory} GiB"),
        **dict.fromkeys(("os", "kernel"), f"Linux {kernel['release']}"),
        "mpi": list(stacks),
    }


def systems_table(paper: Paper, here: Mapping[str, Any] | None = None) -> Table | None:
    """Return what a paper states of its systems, one in a column, None where there is nothing.

    The first column is the machine at hand, as far as something is known ``here``; it is the only
    one of a study that states nothing.
    """
    described: dict[str, Mapping[str, Any]] = {"here": here} if here else {}
    for key, system in paper.systems.items():
        if system.facts:
            # A variant is what it is a variant of, but for what is stated of itself.
            family = [paper.systems[name].facts for name in reversed(paper.family(key))]
            described[key] = {fact: value for facts in family for fact, value in facts.items()}
    if not described:
        return None
    stated = [facts for name, facts in described.items() if name != "here"]
    named = dict.fromkeys(fact for facts in stated for fact in facts)
    rows = {
        _named(fact): [_stated(one.get(fact, _NOTHING)) for one in described.values()]
        for fact in named or _OF_ANY_MACHINE
    }
    return Table("What is stated of the systems", list(described), rows, {})


def _named(fact: str) -> str:
    """Return the words of a fact's name, its unit in brackets."""
    words = fact.replace("_", " ")
    for ending, unit in _UNITS.items():
        if words.endswith(f" {ending}"):
            return f"{words.removesuffix(ending)}[{unit}]"
    return words


def _stated(fact: Any) -> str:
    if isinstance(fact, Mapping):
        return ", ".join(f"{name}: {value}" for name, value in fact.items())
    if isinstance(fact, list):
        return ", ".join(map(str, fact))
    return str(fact)


def cell(row: BesideRow, subject: str) -> str:
    """Return what a subject measured of a printed value, with the marks of :data:`MARKS`."""
    if subject not in row.measured:
        return _NOTHING
    found = [mark for caution, mark in MARKS.items() if caution in row.launches[subject]]
    return " ".join([number(row.measured[subject]), *found])


def _table(title: str, rows: Sequence[BesideRow], subjects: Sequence[str]) -> Table:
    columns = list(dict.fromkeys(_column(row.value) for row in rows))
    printed: dict[str, list[str]] = {}
    measured = {subject: [_NOTHING] * len(columns) for subject in subjects}
    for row in rows:
        at = columns.index(_column(row.value))
        if row.value.suite and row.value.suite.relative:
            baseline = str(row.value.conditions["baseline"])
            printed.setdefault(baseline, [_NOTHING] * len(columns))[at] = "1"
        doubt = "" if row.value.standing == STANDS else f" ({row.value.standing})"
        cells = printed.setdefault(row.value.system, [_NOTHING] * len(columns))
        cells[at] = row.value.text + doubt
        for subject in subjects:
            if measured[subject][at] == _NOTHING:
                measured[subject][at] = cell(row, subject)
    return Table(title, columns, printed, measured)


def _column(value: PrintedValue) -> str:
    unit = "" if value.unit == "1" else f" [{value.unit}]"
    return ", ".join(filter(None, [f"{value.benchmark} {value.metric}{unit}", value.place]))
