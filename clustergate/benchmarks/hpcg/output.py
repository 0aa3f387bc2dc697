"""Read the result file of HPCG 3.0 and 3.1 into a row.

    HPCG-Benchmark
    version=3.1
    Machine Summary::Distributed Processes=2
    Machine Summary::Threads per processes=1
    Local Domain Dimensions::nx=32
    Linear System Information::Number of Equations=65536
    Spectral Convergence Tests::Result=PASSED
    Iteration Count Information::Optimized CG iterations per set=50
    Benchmark Time Summary::Total=10.9452
    Floating Point Operations Summary::Total with convergence overhead=1.0412e+10
    GFLOP/s Summary::Total with convergence and optimization phase overhead=0.921337
    Final Summary::HPCG result is VALID with a GFLOP/s rating of=0.921337

``benchmark`` is ``HPCG``; conditions are ``processes``, ``threads``, ``nx``, ``ny``, ``nz`` (the
block of each process), ``gx``, ``gy``, ``gz`` (the whole grid), ``iterations`` of a set and
``sets``; values are ``performance_gflops`` (the rating) and ``time_s`` (of the sets).

A result that HPCG calls invalid is refused. Rating, operations and time must follow from each
other, and from the grid. What cannot be noticed: a changed digit of a time that enters the rating
by a tenth (set-up, optimization), within what is printed of it, and of what no row tells.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from clustergate.benchmarks.hpcg.problem import COARSE_GRIDS, nonzeros, operations
from clustergate.benchmarks.text import Fields
from clustergate.core.model import OutputError, Row
from clustergate.core.outputs import (
    OUTPUT_CONTRADICTION,
    OUTPUT_FAILURE,
    OUTPUT_LACKS,
    OUTPUT_OTHER_PROGRAM,
    OUTPUT_SECOND_RUN,
    OUTPUT_TWICE,
)

TITLE = re.compile(r"HPCG-Benchmark\s*$")
_KEY = re.compile(r"(\S[^=]*)=(.*?)\s*")
_READ = ("3.0", "3.1")
# There is one of these for each grid.
_REPEATED = "::Coarse Grids::"
_MACHINE, _DOMAIN, _GLOBAL = (
    "Machine Summary",
    "Local Domain Dimensions",
    "Global Problem Dimensions",
)
_SYSTEM, _ITERATIONS = "Linear System Information", "Iteration Count Information"
_TIME, _OPERATIONS = "Benchmark Time Summary", "Floating Point Operations Summary"
_RATES = "GFLOP/s Summary"
_OVERHEAD = f"{_RATES}::Total with convergence and optimization phase overhead"
_RATING = "Final Summary::HPCG result is VALID with a GFLOP/s rating of"
_TESTS = (
    "Spectral Convergence Tests::Result",
    "Departure from Symmetry |x'Ay-y'Ax|/(2*||x||*||A||*||y||)/epsilon::Result",
    f"{_ITERATIONS}::Result",
    "Reproducibility Information::Result",
)
_AXES = ("nx", "ny", "nz")
# It prints six digits.
_DIGITS = 2e-5


@dataclass(frozen=True)
class HpcgExpectation:
    """What a run was asked for; None where nothing was asked. ``edge`` is that of a block."""

    processes: int | None = None
    edge: int | None = None


def parse_hpcg(
    lines: Iterable[str], *, source: str = "output", expect: HpcgExpectation | None = None
) -> Iterator[Row]:
    """Yield the row of a run.

    Raises :class:`OutputError` for a text that is cut off or damaged, for a result that HPCG calls
    invalid, and for another run than the one expected.
    """
    fields = Fields(source)
    title = ""
    for number, line in enumerate(lines, 1):
        if TITLE.match(line):
            if title:
                raise OutputError(OUTPUT_SECOND_RUN(), line=number, source=source)
            title = line
        elif title and (match := _KEY.fullmatch(line)) and _REPEATED not in line:
            key, value = match.groups()
            if fields.values.get(key, (value, 0))[0] != value:
                raise OutputError(OUTPUT_TWICE(what=key), line=number, source=source)
            fields.values.setdefault(key, (value, number))
    if not title:
        raise fields.error(OUTPUT_LACKS(missing="the title"))
    if (version := fields.text("version")) not in _READ:
        raise fields.error(OUTPUT_OTHER_PROGRAM(program=f"HPCG {version}"), "version")
    yield _row(fields, expect or HpcgExpectation())


def _row(fields: Fields, expect: HpcgExpectation) -> Row:
    for test in _TESTS:
        if (result := fields.text(test)) != "PASSED":
            words = f"{test.partition('::')[0]}: {result}"
            raise fields.error(OUTPUT_FAILURE(program="HPCG", words=words), test)
    rating = fields.positive(_RATING)
    blocks = {axis: fields.count(f"{_DOMAIN}::{axis}") for axis in _AXES}
    parts = {axis: fields.count(f"Processor Dimensions::np{axis[-1]}") for axis in _AXES}
    grid = {axis: fields.count(f"{_GLOBAL}::Global {axis}") for axis in _AXES}
    processes = fields.count(f"{_MACHINE}::Distributed Processes")
    whole = (grid["nx"], grid["ny"], grid["nz"])
    sets, iterations = _sets(fields)
    seconds = fields.positive(f"{_TIME}::Total")
    for key, printed, follows in (
        (f"{_MACHINE}::Distributed Processes", processes, math.prod(parts.values())),
        *((f"{_GLOBAL}::Global {axis}", grid[axis], blocks[axis] * parts[axis]) for axis in _AXES),
        (f"{_SYSTEM}::Number of Equations", _count(fields, "Equations"), math.prod(whole)),
        (f"{_SYSTEM}::Number of Nonzero Terms", _count(fields, "Nonzero Terms"), nonzeros(*whole)),
        ("Multigrid Information::Number of coarse grid levels", _levels(fields), COARSE_GRIDS),
    ):
        _require_equal(fields, key, printed, follows)
    done = fields.positive(f"{_OPERATIONS}::Total")
    _require_close(fields, f"{_OPERATIONS}::Total", done, operations(whole, sets, iterations))
    _require_close(
        fields, f"{_RATES}::Raw Total", _rate(fields, "Raw Total"), 1e-9 * done / seconds
    )
    _require_rating(fields, rating, done, sets, seconds)
    fields.compare("Machine Summary", ("processes", expect.processes, processes))
    for axis, edge in blocks.items():
        fields.compare(f"{_DOMAIN}::{axis}", (f"an edge {axis} of", expect.edge, edge))
    return Row(
        "HPCG",
        "HPCG",
        {
            "processes": processes,
            "threads": fields.count(f"{_MACHINE}::Threads per processes"),
            **blocks,
            **{f"g{axis[-1]}": edge for axis, edge in grid.items()},
            "iterations": iterations,
            "sets": sets,
        },
        {"performance_gflops": rating, "time_s": seconds},
        line=fields.values[_RATING][1],
    )


def _count(fields: Fields, of: str) -> int:
    return fields.count(f"{_SYSTEM}::Number of {of}")


def _levels(fields: Fields) -> int:
    return fields.count("Multigrid Information::Number of coarse grid levels")


def _rate(fields: Fields, name: str) -> float:
    return fields.positive(f"{_RATES}::{name}")


def _sets(fields: Fields) -> tuple[int, int]:
    """Return how many sets of iterations were rated, and of how many iterations each is."""
    key = f"{_ITERATIONS}::Total number of optimized iterations"
    every, each = fields.count(key), fields.count(f"{_ITERATIONS}::Optimized CG iterations per set")
    _require_equal(fields, key, every % each, 0)
    return every // each, each


def _require_rating(fields: Fields, rating: float, done: float, sets: int, seconds: float) -> None:
    """Require the rating to follow: operations of the reference code, in time with overheads.

    Set-up and optimization count by a tenth for each set, as in ReportResults.cpp.
    """
    reference = fields.count(f"{_ITERATIONS}::Reference CG iterations per set")
    optimized = fields.count(f"{_ITERATIONS}::Optimized CG iterations per set")
    rated = fields.positive(f"{_OPERATIONS}::Total with convergence overhead")
    _require_close(
        fields,
        f"{_OPERATIONS}::Total with convergence overhead",
        rated,
        done * reference / optimized,
    )
    beside = fields.number(f"{_TIME}::Optimization phase") + fields.number(
        "Setup Information::Setup Time"
    )
    _require_close(fields, _RATING, rating, 1e-9 * rated / (seconds + sets * beside / 10))
    _require_equal(fields, _OVERHEAD, fields.text(_OVERHEAD), fields.text(_RATING))


def _require_equal(fields: Fields, key: str, printed: object, follows: object) -> None:
    if printed != follows:
        facts = {"one": f"{key} of {printed}", "other": f"{follows}, which follows from the others"}
        raise fields.error(OUTPUT_CONTRADICTION(**facts), key)


def _require_close(fields: Fields, key: str, printed: float, follows: float) -> None:
    if not math.isclose(printed, follows, rel_tol=_DIGITS):
        _require_equal(fields, key, f"{printed:g}", f"{follows:g}")
        raise fields.error(OUTPUT_CONTRADICTION(one=f"{key} of {printed!r}", other=f"{follows!r}"))
