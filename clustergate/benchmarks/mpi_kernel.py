"""What the suite's own MPI kernels share: their options, and the reader of their JSON lines.

    {"measurement":"begin","program":"bidirectional_stream","processes":2}
    {"measurement":"bidirectional_stream","bytes":1,"messages":24920,"seconds":0.050609}
    {"measurement":"end","count":25}

Each of them prints a first line that names it, its processes and its arguments (older builds left
these out), a line for each measurement, and a last line that counts those. Launchers and MPI
libraries may print lines of their own before the first and after the last one; between them every
other line is an error.

What cannot be noticed: a changed digit of a time, a count or a size within the sizes that a program
takes, unless the expectation names it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clustergate.benchmarks.budget import Budget
from clustergate.benchmarks.build import Build, own_programs
from clustergate.benchmarks.descriptor import Benchmark, CannotRun, Effort, Format, Parser
from clustergate.benchmarks.text import OUTPUT_OTHER_RUN, Fields
from clustergate.core.model import OutputError, Row
from clustergate.core.outputs import (
    OUTPUT_BAD_VALUE,
    OUTPUT_LACKS,
    OUTPUT_MISPLACED,
    OUTPUT_SECOND_RUN,
)
from clustergate.core.words import INPUT_TOO_SMALL
from clustergate.machine.kernels import SOURCES
from clustergate.machine.kernels.records import Line, cut_off, read_line

DOUBLE_BYTES = 8
EFFORTS: Mapping[str, Effort] = {
    "smoke": Effort(budget=Budget(at_least=3, at_most=6, seconds=20.0)),
    "maintenance": Effort(budget=Budget(at_least=10, at_most=20, seconds=180.0, precision=0.02)),
    "acceptance": Effort(budget=Budget(at_least=10, at_most=50, seconds=3600.0, precision=0.01)),
}


@dataclass(frozen=True)
class KernelExpectation:
    """What a run was asked for; None or nothing where nothing was asked.

    ``arguments`` are the words behind the program's name. ``settings`` are values that every line
    must hold under these names, such as ``flush_bytes``; ``measured`` are the rows that must be
    there: benchmark (of ``host_overhead`` the call, of ``stream`` the kernel) and bytes, 0 where
    there are no sizes.
    """

    processes: int | None = None
    trials: int | None = None
    settings: Mapping[str, int] | None = None
    measured: frozenset[tuple[str, int]] = frozenset()
    arguments: tuple[str, ...] | None = None


def require_kind(line: Line, measurement: str, settings: Mapping[str, int] | None = None) -> None:
    """Refuse a line of another measurement, or of one with other settings."""
    if line.record["measurement"] != measurement:
        due = f"one of {measurement!r}"
        what = f"a line of {line.record['measurement']!r}"
        raise line.wrong(OUTPUT_MISPLACED(what=what, due=due))
    for name, wanted in (settings or {}).items():
        if (actual := line.record.get(name)) != wanted:
            raise line.wrong(OUTPUT_OTHER_RUN(what=name, actual=actual, wanted=wanted))


def times_of(line: Line, expect: KernelExpectation) -> list[float]:
    """Return the times of all trials in us; there must be as many as were asked for."""
    times = line.times("times_us")
    if expect.trials is not None and len(times) != expect.trials:
        facts = {"actual": len(times), "wanted": expect.trials}
        raise line.wrong(OUTPUT_OTHER_RUN(what="trials", **facts))
    return times


Rows = Callable[[Sequence[Line], int, KernelExpectation], Iterator[Row]]
"""From the lines of measurement, the processes and the expectation to rows."""


def kernel_benchmark(name: str, parse: Parser, title: str = "", **known: Any) -> Benchmark:
    """Return the descriptor of a kernel, whose first line names it, with what is ``known`` of it.

    They are compiled together, since they take seconds.
    """
    first = f'{{"measurement":"begin","program":"{name}"'
    recipe = own_programs(SOURCES, (name,), ("mpi_kernel.h",), origin="the suite's own kernel")
    return Benchmark(
        name,
        title or name,
        Format(re.compile(re.escape(first)), parse),
        efforts=EFFORTS,
        build=Build((name,), (recipe,), package="clustergate-kernels", unit="mpi-kernels"),
        **known,
    )


def kernel_parser(program: str) -> Callable[[Rows], Callable[..., Iterator[Row]]]:
    """Make the parser of a program's output of what turns its lines of measurement into rows.

    Their conditions are ``processes`` and what lines hold. The parser raises :class:`OutputError`,
    with the line where there is one, for an output that is cut off, damaged or not that of the run
    expected.
    """

    def parser_of(rows: Rows) -> Callable[..., Iterator[Row]]:
        @functools.wraps(rows)
        def parse(
            lines: Iterable[str], *, source: str = "output", expect: KernelExpectation | None = None
        ) -> Iterator[Row]:
            expect = expect or KernelExpectation()
            begun, measured = read_kernel(program, lines, source)
            _compare(expect, begun, source)
            present: set[tuple[str, int]] = set()
            for row in rows(measured, begun["processes"], expect):
                held = row.conditions
                name = str(held.get("call", held.get("kernel", row.benchmark)))
                present.add((name, int(held.get("bytes", 0))))
                yield row
            if missing := sorted(expect.measured - present):
                named = ", ".join(f"{name} of {size} bytes" for name, size in missing)
                raise OutputError(OUTPUT_LACKS(missing=named), source=source)

        return parse

    return parser_of


def doubling_bytes(largest_bytes: int) -> tuple[int, ...]:
    """Return 1, 2, 4, … bytes up to the largest."""
    if largest_bytes < 1:
        name = "the largest message in bytes"
        raise CannotRun(INPUT_TOO_SMALL(name=name, least=1, value=largest_bytes))
    return tuple(1 << k for k in range(largest_bytes.bit_length()))


def arguments(settings: Mapping[str, float]) -> list[str]:
    """Return numbers as options: ``{"trials": 5}`` becomes ``--trials 5``."""
    named = [(f"--{name.replace('_', '-')}", f"{value:.15g}") for name, value in settings.items()]
    return [word for pair in named for word in pair]


def read_kernel(
    program: str, lines: Iterable[str], source: str
) -> tuple[Mapping[str, Any], list[Line]]:
    """Return the first line and those of measurement, once they are seen to be complete."""
    begun: Mapping[str, Any] | None = None
    ended = False
    measured: list[Line] = []
    number = 0
    for number, line in enumerate(lines, 1):
        if (begun is None or ended) and not line.startswith("{"):
            continue
        if ended:
            raise OutputError(OUTPUT_SECOND_RUN(), line=number, source=source)
        one = read_line(number, line, source, "an MPI kernel")
        if begun is None:
            begun = _begin(one, program)
        elif one.record["measurement"] == "end":
            one.require_count(len(measured))
            ended = True
        else:
            measured.append(one)
    if begun is None or not ended:
        raise cut_off(number, source)
    return begun, measured


def _begin(line: Line, program: str) -> Mapping[str, Any]:
    if line.record["measurement"] != "begin":
        raise line.wrong(OUTPUT_MISPLACED(what="a measurement", due="the first line"))
    if (other := line.record.get("program")) != program:
        raise line.wrong(OUTPUT_OTHER_RUN(what="program", actual=other, wanted=program))
    line.integer("processes", least=1)
    arguments = line.record.get("arguments", ["unknown"])
    if not isinstance(arguments, list):
        wanted, value = "a list", repr(arguments)[:60]
        raise line.wrong(OUTPUT_BAD_VALUE(name="arguments", wanted=wanted, value=value))
    return {**line.record, "arguments": " ".join(map(str, arguments))}


def _compare(expect: KernelExpectation, begun: Mapping[str, Any], source: str) -> None:
    asked = None if expect.arguments is None else " ".join(expect.arguments)
    processes = ("processes", expect.processes, begun["processes"])
    Fields(source).compare("", processes, ("arguments", asked, begun["arguments"]))
