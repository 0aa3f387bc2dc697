"""Read what HPCCG 1.0 (Mantevo) prints into a row.

``benchmark`` is ``HPCCG``; conditions are ``processes``, ``nx``, ``ny`` and ``nz`` (the block of
each process) and ``iterations``; values are ``performance_mflops`` (the "Total" of all processes)
and ``time_s``.

HPCCG accepts whatever its solver reaches. Its matrix is diagonally dominant, with a condition
number of 53 at most, so that 149 iterations reduce the residual beyond all rounding: here it must
fall by 1e10. The rate must follow from the operations and the time. What cannot be noticed: a
changed digit within what is printed of these.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from clustergate.model import OutputError, Row

SMALLEST_REDUCTION = 1e10
_INITIAL = re.compile(r"Initial Residual = (\S+)\s*")
_NAME = "Mini-Application Name"
_LAST_SECTION = "SPARSEMV OVERHEADS"
_KEY = re.compile(r"( *)(\S.*?) *: *(.*?)\s*")


@dataclass(frozen=True)
class HpccgExpectation:
    """What a run was asked for; None where nothing was asked. ``edge`` is that of a block."""

    processes: int | None = None
    edge: int | None = None


def is_hpccg(first_lines: Sequence[str]) -> bool:
    """Say whether these are the first lines of an output of HPCCG."""
    return any(_INITIAL.fullmatch(line) for line in first_lines)


def parse_hpccg(
    lines: Iterable[str], *, source: str = "output", expect: HpccgExpectation | None = None
) -> Iterator[Row]:
    """Yield the row of a run.

    Raises :class:`OutputError` for a text that is cut off or damaged, for a solver that did not
    converge, and for another run than the one expected.
    """
    fields: dict[str, tuple[str, int]] = {}
    section = ""
    for number, line in enumerate(lines, 1):
        if match := _INITIAL.fullmatch(line):
            if "initial" in fields:
                raise OutputError(
                    "a second run begins here: one left over from before, or processes that each "
                    "ran alone",
                    line=number,
                    source=source,
                )
            fields["initial"] = match.group(1), number
        elif match := _KEY.fullmatch(line):
            indent, key, value = match.groups()
            section = section if indent else key
            fields[f"{section}/{key}" if indent else key] = value, number
    if (
        _LAST_SECTION not in fields
        or f"{_LAST_SECTION}/SPARSEMV PARALLEL OVERHEAD Time" not in fields
    ):
        raise OutputError(
            "the output is cut off, or HPCCG was built without MPI: no parallel overheads",
            source=source,
        )
    yield _row(_Numbers(fields, source), expect or HpccgExpectation())


class _Numbers:
    def __init__(self, fields: Mapping[str, tuple[str, int]], source: str) -> None:
        self._fields, self._source = fields, source

    def error(self, message: str, key: str) -> OutputError:
        return OutputError(message, line=self.line(key), source=self._source)

    def line(self, key: str) -> int | None:
        return self._fields[key][1] if key in self._fields else None

    def number(self, key: str) -> float:
        try:
            value = float(self._fields[key][0])
        except (KeyError, ValueError):
            value = math.nan
        if not 0 < value < math.inf:
            raise self.error(f"{key!r} is missing or not positive", key)
        return value

    def count(self, key: str) -> int:
        value = self.number(key)
        if value != int(value):
            raise self.error(f"{key!r} is not an integer", key)
        return int(value)


def _row(text: _Numbers, expect: HpccgExpectation) -> Row:
    edges = {axis: text.count(f"Dimensions/{axis}") for axis in ("nx", "ny", "nz")}
    processes = text.count("Parallelism/Number of MPI ranks")
    if expect.processes not in (None, processes):
        raise text.error(
            f"another run: {processes} processes, but {expect.processes} were requested",
            "Parallelism/Number of MPI ranks",
        )
    if expect.edge is not None and set(edges.values()) != {expect.edge}:
        raise text.error(
            f"another run: blocks of {edges}, but an edge of {expect.edge} was requested",
            "Dimensions/nx",
        )
    initial, final = text.number("initial"), text.number("Final residual")
    if final * SMALLEST_REDUCTION > initial:
        raise text.error(
            f"the residual fell from {initial:g} to {final:g} only: the result is wrong; look for "
            "a faulty node or build",
            "Final residual",
        )
    seconds, operations = text.number("Time Summary/Total"), text.number("FLOPS Summary/Total")
    rate = text.number("MFLOPS Summary/Total")
    if not math.isclose(rate, 1e-6 * operations / seconds, rel_tol=1e-4):
        raise text.error(
            f"{operations:g} operations in {seconds:g} s are not {rate:g} Mflop/s",
            "MFLOPS Summary/Total",
        )
    return Row(
        "HPCCG",
        "HPCCG",
        {"processes": processes, **edges, "iterations": text.count("Number of iterations")},
        {"performance_mflops": rate, "time_s": seconds},
        line=text.line("MFLOPS Summary/Total") or 0,
    )
