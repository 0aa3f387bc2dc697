"""What the suite's own MPI kernels share: their options, and the reader of their JSON lines.

Each of them prints a first line that names it, its processes and its arguments (older builds left
these out), a line for each measurement, and a last line that counts those. Launchers and MPI
libraries may print lines of their own before the first and after the last one; between them every
other line is an error.

What cannot be noticed: a changed digit of a time, a count or a size within the sizes that a program
takes, unless the expectation names it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from clustergate.benchmarks.build import Build, own_programs
from clustergate.benchmarks.descriptor import Benchmark, Budget, CannotRun, Effort, Format, Parser
from clustergate.kernels import SOURCES
from clustergate.kernels.peaks import json_record
from clustergate.model import OutputError, Row

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


class Line(NamedTuple):
    """A line of measurement, with its number in the text."""

    number: int
    record: Mapping[str, Any]
    source: str

    def wrong(self, message: str) -> OutputError:
        """Return the error that the line is not what the kernel prints."""
        return OutputError(message, line=self.number, source=self.source)

    def value(self, key: str, *, least: float = 0.0) -> float:
        """Return a number under a key."""
        value = self.record.get(key)
        if type(value) not in (int, float) or not least <= float(value or 0) < math.inf:
            raise self.wrong(f"{key!r} must be a number of at least {least:g}, not {value!r}")
        return float(value or 0)

    def word(self, key: str, known: Iterable[str]) -> str:
        """Return a word, one of those known."""
        value = str(self.record.get(key))
        if value not in known:
            raise self.wrong(f"there is no {key} {value!r}; known: {', '.join(known)}")
        return value

    def integer(self, key: str, *, least: int) -> int:
        """Return a whole number."""
        value = self.record.get(key)
        if type(value) is not int or value < least:
            raise self.wrong(f"{key!r} must be an integer of at least {least}, not {value!r}")
        return value

    def times(self, expect: KernelExpectation) -> list[float]:
        """Return the times of all trials; there must be as many as were asked for."""
        times = self.record.get("times_us")
        if not isinstance(times, list) or len(times) < 2:
            raise self.wrong("'times_us' must be a list of two times or more")
        if not all(isinstance(time, int | float) and 0 <= time < math.inf for time in times):
            raise self.wrong("'times_us' holds a value that is not a time")
        if expect.trials is not None and len(times) != expect.trials:
            raise self.wrong(f"{len(times)} trials, but {expect.trials} were requested")
        return [float(time) for time in times]

    def expect(self, measurement: str, settings: Mapping[str, int] | None = None) -> None:
        """Refuse a line of another measurement, or of one with other settings."""
        if self.record["measurement"] != measurement:
            raise self.wrong(
                f"a line of {self.record['measurement']!r} where {measurement!r} is printed"
            )
        for name, wanted in (settings or {}).items():
            if self.record.get(name) != wanted:
                raise self.wrong(f"{name} is {self.record.get(name)}, but {wanted} was requested")


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


def parse_kernel(
    program: str,
    rows: Rows,
    lines: Iterable[str],
    source: str,
    expect: KernelExpectation | None,
) -> Iterator[Row]:
    """Yield the rows of one program's output; its conditions are ``processes`` and what lines hold.

    Raises :class:`OutputError`, with the line where there is one, for an output that is cut off,
    damaged or not that of the run expected.
    """
    expect = expect or KernelExpectation()
    begun, measured = read_kernel(program, lines, source)
    _compare(expect, begun, source)
    present: set[tuple[str, int]] = set()
    for row in rows(measured, begun["processes"], expect):
        held = row.conditions
        name = str(held.get("call", held.get("kernel", row.benchmark)))
        present.add((name, int(held.get("bytes", 0))))
        yield row
    missing = sorted(expect.measured - present)
    if missing:
        named = ", ".join(f"{name} of {size} bytes" for name, size in missing)
        raise OutputError(f"not measured: {named}", source=source)


def doubling_bytes(largest_bytes: int) -> tuple[int, ...]:
    """Return 1, 2, 4, … bytes up to the largest."""
    if largest_bytes < 1:
        name = "the largest message in bytes"
        raise CannotRun("input.too-small", name=name, least=1, value=largest_bytes)
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
        try:
            if ended:
                raise ValueError(
                    "another output begins below the last line of the first: one left over from "
                    "before, or processes that each ran alone"
                )
            record = json_record(line, "an MPI kernel")
            if begun is None:
                begun = _begin(record, program)
            elif record["measurement"] == "end":
                if record.get("count") != len(measured):
                    raise ValueError(
                        f"the last line counts {record.get('count')} measurements, but "
                        f"{len(measured)} came before it"
                    )
                ended = True
            else:
                measured.append(Line(number, record, source))
        except ValueError as error:
            raise OutputError(str(error), line=number, source=source) from error
    if begun is not None and ended:
        return begun, measured
    message = "nothing was printed" if number == 0 else "the output is cut off: no last line"
    raise OutputError("output.kernel", source=source, problem=message)


def _begin(record: Mapping[str, Any], program: str) -> Mapping[str, Any]:
    if record["measurement"] != "begin":
        raise ValueError("the first line is lost: this one is a measurement")
    if record.get("program") != program:
        raise ValueError(f"this is the output of {record.get('program')!r} and not of {program}")
    if type(record.get("processes")) is not int or record["processes"] < 1:
        raise ValueError("'processes' must be an integer of at least 1")
    arguments = record.get("arguments", ["unknown"])
    if not isinstance(arguments, list):
        raise ValueError("'arguments' must be a list")
    return {**record, "arguments": " ".join(map(str, arguments))}


def _compare(expect: KernelExpectation, begun: Mapping[str, Any], source: str) -> None:
    asked = None if expect.arguments is None else " ".join(expect.arguments)
    for what, wanted, actual in (
        ("processes", expect.processes, begun["processes"]),
        ("arguments", asked, begun["arguments"]),
    ):
        if wanted is not None and wanted != actual:
            raise OutputError(
                f"this is the output of another run: {what} {actual}, but {wanted} was requested; "
                "look whether the program is a wrapper",
                source=source,
            )
