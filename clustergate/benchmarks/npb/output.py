"""Read the text of one of the NAS Parallel Benchmarks 3.3 and 3.4 (MPI) into a row.

``benchmark`` is ``NPB-BT`` and so on; conditions are ``processes``, ``problem_class``, ``size`` as
it is printed, ``iterations`` and ``npb_version``; values are ``total_mop_per_s`` (10**6 operations
per second of all processes) and ``time_s``, which is left out where it is printed as 0.00.

The benchmark's own verification must be successful, and its rate per process must follow from that
of all. What cannot be noticed: a changed digit of the time, and one of both rates within what they
are printed with.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from clustergate.model import ConditionValue, OutputError, Row

BENCHMARKS = ("BT", "CG", "EP", "FT", "IS", "LU", "MG", "SP")
_TITLE = re.compile(r"\s*NAS Parallel Benchmarks.* -- (\w\w) Benchmark\s*")
_COMPLETED = re.compile(r"\s*(\w\w) Benchmark Completed\.?\s*")
_FIELD = re.compile(r" ([A-Z][\w /]*\w) *= +(\S.*?)\s*")
_DECIMALS = 0.005


@dataclass(frozen=True)
class NpbExpectation:
    """What a run was asked for; None where nothing was asked. The class is a letter."""

    benchmark: str | None = None
    problem_class: str | None = None
    processes: int | None = None


def is_npb(first_lines: Sequence[str]) -> bool:
    """Say whether these are the first lines of a benchmark of NPB."""
    return any(_TITLE.fullmatch(line) for line in first_lines)


def parse_npb(
    lines: Iterable[str], *, source: str = "output", expect: NpbExpectation | None = None
) -> Iterator[Row]:
    """Yield the row of a run.

    Raises :class:`OutputError` for a text that is cut off or damaged, whose verification failed, or
    that is not of the run expected.
    """
    fields = _Fields(source)
    started = None
    for number, line in enumerate(lines, 1):
        if match := _COMPLETED.fullmatch(line):
            if fields.benchmark:
                raise fields.error("the results of another benchmark begin here", number)
            fields.benchmark, fields.line = match.group(1), number
        elif match := _TITLE.fullmatch(line):
            started = match.group(1)
        elif fields.benchmark and (match := _FIELD.fullmatch(line.rstrip("\n"))):
            fields.take(match.group(1), match.group(2), number)
    if not fields.benchmark:
        raise fields.error('the output is cut off: no line "Benchmark Completed"', None)
    if fields.benchmark not in BENCHMARKS or started not in (None, fields.benchmark):
        raise fields.error(f"{started} began and {fields.benchmark} is completed", fields.line)
    yield _row(fields, expect or NpbExpectation())


def _row(fields: _Fields, expect: NpbExpectation) -> Row:
    verified = fields.text("Verification")
    if verified != "SUCCESSFUL":
        raise fields.error(
            f"the benchmark says of its result that it is {verified}: do not trust the figures, "
            "look for a faulty node, compiler or library",
            fields.lines["Verification"],
        )
    # Behind the version, which is a word of any form: it was printed to its end.
    fields.text("Compile date")
    count = fields.integer("Total processes")
    total, each = fields.number("Mop/s total"), fields.number("Mop/s/process")
    if total <= 0 or abs(total - each * count) > _DECIMALS * (count + 1) + 1e-6 * total:
        raise fields.error(
            f"{each:g} Mop/s of each of {count} processes are not {total:g} in all",
            fields.lines["Mop/s/process"],
        )
    for key, wanted, actual in (
        ("benchmark", expect.benchmark, fields.benchmark),
        ("class", expect.problem_class, fields.text("Class")),
        ("processes", expect.processes, count),
    ):
        if wanted is not None and wanted != actual:
            raise fields.error(f"another run: {key} {actual}, but {wanted} was requested", None)
    conditions: dict[str, ConditionValue] = {
        "processes": count,
        "problem_class": fields.text("Class"),
        "size": re.sub(r"\s", "", fields.text("Size")),
        # EP has none.
        "iterations": fields.integer("Iterations", least=0),
        "npb_version": fields.text("Version"),
    }
    seconds = fields.number("Time in seconds")
    values = {"total_mop_per_s": total, **({"time_s": seconds} if seconds else {})}
    return Row("NPB", f"NPB-{fields.benchmark}", conditions, values, line=fields.line)


class _Fields:
    """The lines ``name = value`` below the line that tells of the end."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.benchmark = ""
        self.line = 0
        self.values: dict[str, str] = {}
        self.lines: dict[str, int] = {}

    def error(self, message: str, line: int | None) -> OutputError:
        return OutputError(message, line=line, source=self.source)

    def take(self, key: str, value: str, line: int) -> None:
        if " = " in value:
            raise self.error(f"two lines ran into each other: {key} = {value}", line)
        if self.values.setdefault(key, value) != value:
            raise self.error(f"{key!r} is printed twice and differs", line)
        self.lines[key] = line

    def text(self, key: str) -> str:
        if key not in self.values:
            raise self.error(f"the output is cut off: no {key!r}", None)
        return self.values[key]

    def number(self, key: str) -> float:
        text = self.text(key)
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not 0 <= value < math.inf:
            raise self.error(f"{key!r} is not a number: {text!r}", self.lines[key])
        return value

    def integer(self, key: str, least: int = 1) -> int:
        value = self.number(key)
        if value < least or value != int(value):
            raise self.error(f"{key!r} is not a valid count: {self.text(key)!r}", self.lines[key])
        return int(value)
