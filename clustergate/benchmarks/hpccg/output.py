"""Read what HPCCG 1.0 (Mantevo) prints into a row.

    Initial Residual = 525.045
    Parallelism:
      Number of MPI ranks: 2
    Final residual: 1.36379e-43
    Time Summary:
      Total   : 0.268926
    FLOPS Summary:
      Total   : 7.81189e+07

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
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from clustergate.benchmarks.text import Fields
from clustergate.core.model import OutputError, Row
from clustergate.core.outputs import (
    OUTPUT_CONTRADICTION,
    OUTPUT_LACKS,
    OUTPUT_OTHER_PROGRAM,
    OUTPUT_SECOND_RUN,
    OUTPUT_WRONG_RESULT,
)

SMALLEST_REDUCTION = 1e10
TITLE = re.compile(r"Initial Residual = (\S+)\s*$")
_HPCG = re.compile(r"Iteration = \d+ +Scaled Residual = |HPCG-Benchmark|Final Summary::HPCG")
_INITIAL = "Initial Residual"
_OVERHEADS = "SPARSEMV OVERHEADS"
_PROCESSES = "Parallelism/Number of MPI ranks"
_RATE = "MFLOPS Summary/Total"
_KEY = re.compile(r"( *)(\S.*?) *: *(.*?)\s*")


@dataclass(frozen=True)
class HpccgExpectation:
    """What a run was asked for; None where nothing was asked. ``edge`` is that of a block."""

    processes: int | None = None
    edge: int | None = None


def parse_hpccg(
    lines: Iterable[str], *, source: str = "output", expect: HpccgExpectation | None = None
) -> Iterator[Row]:
    """Yield the row of a run.

    Raises :class:`OutputError` for a text that is cut off or damaged, for a solver that did not
    converge, and for another run than the one expected.
    """
    fields = Fields(source)
    section = ""
    for number, line in enumerate(lines, 1):
        if match := TITLE.fullmatch(line):
            if _INITIAL in fields.values:
                raise OutputError(OUTPUT_SECOND_RUN(), line=number, source=source)
            fields.values[_INITIAL] = match.group(1), number
        elif _HPCG.match(line):
            # HPCG grew from HPCCG and begins alike.
            raise OutputError(
                OUTPUT_OTHER_PROGRAM(program="HPCG's log"), line=number, source=source
            )
        elif match := _KEY.fullmatch(line):
            indent, key, value = match.groups()
            section = section if indent else key
            fields.values[f"{section}/{key}" if indent else key] = value, number
    if not {_OVERHEADS, f"{_OVERHEADS}/SPARSEMV PARALLEL OVERHEAD Time"} <= fields.values.keys():
        # It prints none of them where it was built without MPI.
        raise fields.error(OUTPUT_LACKS(missing="the part on parallel overheads"))
    yield _row(fields, expect or HpccgExpectation())


def _row(fields: Fields, expect: HpccgExpectation) -> Row:
    edges = {axis: fields.count(f"Dimensions/{axis}") for axis in ("nx", "ny", "nz")}
    processes = fields.count(_PROCESSES)
    fields.compare(_PROCESSES, ("processes", expect.processes, processes))
    for axis, edge in edges.items():
        fields.compare(f"Dimensions/{axis}", (f"an edge {axis} of", expect.edge, edge))
    initial, final = fields.positive(_INITIAL), fields.positive("Final residual")
    if final * SMALLEST_REDUCTION > initial:
        most = f"{initial / SMALLEST_REDUCTION:g} at most"
        facts = {"what": "the final residual", "value": f"{final:g}", "wanted": most}
        raise fields.error(OUTPUT_WRONG_RESULT(**facts), "Final residual")
    seconds = fields.positive("Time Summary/Total")
    operations, rate = fields.positive("FLOPS Summary/Total"), fields.positive(_RATE)
    if not math.isclose(rate, 1e-6 * operations / seconds, rel_tol=1e-4):
        facts = {"one": f"{operations:g} operations in {seconds:g} s", "other": f"{rate:g} Mflop/s"}
        raise fields.error(OUTPUT_CONTRADICTION(**facts), _RATE)
    return Row(
        "HPCCG",
        "HPCCG",
        {"processes": processes, **edges, "iterations": fields.count("Number of iterations")},
        {"performance_mflops": rate, "time_s": seconds},
        line=fields.values[_RATE][1],
    )
