"""Read the text of one of the NAS Parallel Benchmarks 3.3 and 3.4 into a row.

    NAS Parallel Benchmarks 3.3 -- CG Benchmark
    NAS Parallel Benchmarks (NPB3.4-OMP) - CG Benchmark
    NAS Parallel Benchmarks (NPB3.3-OMP-C) - CG Benchmark
    NAS Parallel Benchmarks (NPB3.4-MZ MPI+OpenMP) - BT-MZ Benchmark
    NAS Parallel Benchmarks (NPB3.4-SER) - CG Benchmark
     CG Benchmark Completed.
     Total processes =                        2
     Mop/s total     =                    14.67
     Mop/s/process   =                     7.33
     Verification    =               SUCCESSFUL

``benchmark`` is ``NPB-BT`` and so on; conditions are ``processes`` of MPI, ``threads`` of OpenMP,
both of the multi-zone versions and neither of the serial ones, ``problem_class``, ``size`` as it is
printed, ``iterations`` and ``npb_version``; values are ``total_mop_per_s`` (10**6 operations per
second in all) and ``time_s``, which is left out where it is printed as 0.00.

The benchmark's own verification must be successful, and its rate per process or thread must follow
from that of all. What cannot be noticed: a changed digit of the time, and one of both rates within
what they are printed with; of a serial version any of the rate.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from clustergate.benchmarks.text import Fields
from clustergate.core.model import ConditionValue, OutputError, Row
from clustergate.core.outputs import (
    OUTPUT_CONTRADICTION,
    OUTPUT_DAMAGED,
    OUTPUT_MISPLACED,
    OUTPUT_SECOND_RUN,
    OUTPUT_TWICE,
    OUTPUT_WRONG_RESULT,
)

BENCHMARKS = ("BT", "CG", "EP", "FT", "IS", "LU", "MG", "SP")
# Those that MPI alone has not.
_OTHERS = ("DC", "UA", "BT-MZ", "LU-MZ", "SP-MZ")
TITLE = re.compile(
    r" ?NAS Parallel Benchmarks(?:.* --| \(NPB[\d.]+-(?:OMP|(?P<serial>SER)|MZ)\b[^()]*\) -)"
    r" (?P<name>\w\w(?:-MZ)?) Benchmark\s*$"
)
_COMPLETED = re.compile(r"\s*(\w\w(?:-MZ)?) Benchmark Completed\.?\s*")
# The blank is lost where somebody strips lines; what is compiled with is indented.
_FIELD = re.compile(r" ?([A-Z][\w /]*\w) *= +(\S.*?)\s*")
_COMPLETION = "Benchmark Completed"
_DECIMALS = 0.005


@dataclass(frozen=True)
class NpbExpectation:
    """What a run was asked for; None where nothing was asked. The class is a letter."""

    benchmark: str | None = None
    problem_class: str | None = None
    processes: int | None = None


def parse_npb(
    lines: Iterable[str], *, source: str = "output", expect: NpbExpectation | None = None
) -> Iterator[Row]:
    """Yield the row of a run.

    Raises :class:`OutputError` for a text that is cut off or damaged, whose verification failed, or
    that is not of the run expected.
    """
    fields = Fields(source)
    started = completed = None
    serial = False
    for number, line in enumerate(lines, 1):
        if match := _COMPLETED.fullmatch(line):
            if completed:
                raise OutputError(OUTPUT_SECOND_RUN(), line=number, source=source)
            completed = match.group(1)
            fields.values[_COMPLETION] = completed, number
        elif match := TITLE.fullmatch(line):
            started, serial = match["name"], bool(match["serial"])
        elif completed and (match := _FIELD.fullmatch(line.rstrip("\n"))):
            key, value = match.groups()
            if fields.values.setdefault(key, (value, number))[0] != value:
                raise fields.error(OUTPUT_TWICE(what=repr(key)), key)
            fields.values[key] = value, number
            if " = " in value:
                facts = {"what": "a value", "program": "NPB", "printed": f"{key} = {value}"}
                raise fields.error(OUTPUT_DAMAGED(**facts), key)
    if fields.text(_COMPLETION) not in (*BENCHMARKS, *_OTHERS) or started not in (
        None,
        completed,
    ):
        facts = {"what": f"the end of {completed}", "due": f"that of {started}"}
        raise fields.error(OUTPUT_MISPLACED(**facts), _COMPLETION)
    yield _row(fields, expect or NpbExpectation(), serial=serial)


def _row(fields: Fields, expect: NpbExpectation, *, serial: bool) -> Row:
    verified = fields.text("Verification")
    if verified != "SUCCESSFUL":
        facts = {"what": "the verification", "value": verified, "wanted": "SUCCESSFUL"}
        raise fields.error(OUTPUT_WRONG_RESULT(**facts), "Verification")
    # Behind the version, which is a word of any form: it was printed to its end.
    fields.text("Compile date")
    ones = {"thread": "threads", "process": "processes"}
    printed = [many for many in ones.values() if f"Total {many}" in fields.values]
    counts = {many: fields.count(f"Total {many}") for many in printed}
    total = fields.positive("Mop/s total") if serial else fields.number("Mop/s total")
    if not serial:
        one, many = next(((o, m) for o, m in ones.items() if m in counts), ("process", "processes"))
        count, each = fields.count(f"Total {many}"), fields.number(f"Mop/s/{one}")
        if not total or abs(total - each * count) > _DECIMALS * (count + 1) + 1e-6 * total:
            facts = {
                "one": f"{each:g} Mop/s of each of {count} {many}",
                "other": f"{total:g} in all",
            }
            raise fields.error(OUTPUT_CONTRADICTION(**facts), f"Mop/s/{one}")
    completed = fields.text(_COMPLETION)
    fields.compare(
        "",
        ("benchmark", expect.benchmark, completed),
        ("class", expect.problem_class, fields.text("Class")),
        ("processes", expect.processes, counts.get("processes")),
    )
    conditions: dict[str, ConditionValue] = {
        **counts,
        "problem_class": fields.text("Class"),
        "size": re.sub(r"\s", "", fields.text("Size")),
        # EP has none.
        "iterations": fields.count("Iterations", least=0),
        "npb_version": fields.text("Version"),
    }
    seconds = fields.number("Time in seconds")
    values = {"total_mop_per_s": total, **({"time_s": seconds} if seconds else {})}
    line = fields.values[_COMPLETION][1]
    return Row("NPB", f"NPB-{completed}", conditions, values, line=line)
