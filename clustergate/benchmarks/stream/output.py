"""Read the lines of stream, and what McCalpin's STREAM 5.6 to 5.10 prints, into rows.

    STREAM version $Revision: 5.10 $
    This system uses 8 bytes per array element.
    Array size = 80000000 (elements), Offset = 0 (elements)
    Each kernel will be executed 10 times.
    Function    Best Rate MB/s  Avg time     Min time     Max time
    Copy:           21250.0     0.061000     0.060235     0.063000
    Solution Validates: avg error less than 1.000000e-13 on all three arrays

There is a row of ``STREAM`` for each ``kernel``; ``bandwidth_gb_s``, in 10**9 bytes, is that of the
fastest trial but the first, as STREAM counts, and ``p95_time_us`` what one trial of twenty exceeds
at most. Of McCalpin's it is ``bandwidth_gb_s`` and ``time_s``, both of the fastest trial, with
``threads``.

What cannot be noticed in the latter: a changed digit within the rounding of rate and time, and of
the average and the longest time in their order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from clustergate.benchmarks.mpi_kernel import (
    DOUBLE_BYTES,
    KernelExpectation,
    kernel_parser,
    require_kind,
    times_of,
)
from clustergate.benchmarks.text import Fields
from clustergate.core.model import ConditionValue, OutputError, Row
from clustergate.core.outputs import (
    OUTPUT_BAD_VALUE,
    OUTPUT_CONTRADICTION,
    OUTPUT_DAMAGED,
    OUTPUT_FAILURE,
    OUTPUT_LACKS,
    OUTPUT_SECOND_RUN,
    OUTPUT_TWICE,
)
from clustergate.machine.kernels.records import Line
from clustergate.stats.spikes import percentile_95

STREAM_KERNELS = ("copy", "scale", "add", "triad")
# STREAM counts what its loops touch: two arrays, or three.
_ARRAYS_TOUCHED: Mapping[str, int] = {"copy": 2, "scale": 2, "add": 3, "triad": 3}


TITLE = re.compile(r"STREAM version \$Revision: 5\.\d+ \$\s*$")
_NUMBERS = r"\s+".join(rf"(?P<{name}>\d+\.\d+)" for name in ("rate", "avg", "least", "most"))
_ROW = re.compile(rf"(Copy|Scale|Add|Triad):\s+{_NUMBERS}\s*")
_SAID = {
    "bytes per array element": re.compile(
        r"This system uses (\d+) bytes per (?:array element|DOUBLE PRECISION word)\.\s*"
    ),
    "Array size": re.compile(r"Array size = (\d+)(?: \(elements\))?, Offset = .*\s*"),
    "trials": re.compile(r"Each (?:kernel will be executed|test is run) (\d+) times[.,].*\s*"),
    "threads": re.compile(r"Number of Threads counted = (\d+)\s*"),
    "the validation": re.compile(r"(Solution Validates)\b.*\s*"),
}
_FAILED = re.compile(r"\s*Failed Validation on array .*|\s*(?:Solution )?.*[Vv]alidation failed.*")


def parse_mccalpins(lines: Iterable[str], *, source: str) -> Iterator[Row]:
    """Yield a row for each of the four kernels.

    Raises :class:`OutputError` for a text that is cut off, damaged or whose validation failed.
    """
    fields = Fields(source)
    rows: dict[str, tuple[re.Match[str], int]] = {}
    titles = 0
    for number, line in enumerate(lines, 1):
        if TITLE.match(line):
            titles += 1
            if titles > 1:
                raise OutputError(OUTPUT_SECOND_RUN(), line=number, source=source)
        elif _FAILED.match(line):
            words = line.strip()
            raise OutputError(
                OUTPUT_FAILURE(program="STREAM", words=words), line=number, source=source
            )
        elif line.split(":")[0] in ("Copy", "Scale", "Add", "Triad"):
            if not (match := _ROW.fullmatch(line)):
                facts = {"what": "a row", "program": "STREAM", "printed": line.strip()}
                raise OutputError(OUTPUT_DAMAGED(**facts), line=number, source=source)
            if match[1] in rows:
                raise OutputError(OUTPUT_TWICE(what=match[1]), line=number, source=source)
            rows[match[1]] = match, number
        for name, pattern in _SAID.items():
            if match := pattern.fullmatch(line):
                if name in fields.values:
                    raise OutputError(OUTPUT_TWICE(what=name), line=number, source=source)
                fields.values[name] = match[1], number
    for kernel in ("Copy", "Scale", "Add", "Triad"):
        if kernel not in rows:
            raise fields.error(OUTPUT_LACKS(missing=f"the row {kernel}"))
    fields.text("the validation")
    yield from _rows_of(rows, fields)


def _rows_of(rows: Mapping[str, tuple[re.Match[str], int]], fields: Fields) -> Iterator[Row]:
    elements, each = fields.count("Array size"), fields.count("bytes per array element")
    conditions: dict[str, ConditionValue] = {"elements": elements, "trials": fields.count("trials")}
    if "threads" in fields.values:
        conditions["threads"] = fields.count("threads")
    for kernel, (match, number) in rows.items():
        rate, average, least, most = (float(match[k]) for k in ("rate", "avg", "least", "most"))
        moved = 1e-6 * _ARRAYS_TOUCHED[kernel.lower()] * each * elements
        # The rate is printed by %.1f, times by %.6f; the smallest of them in some versions by %.4f.
        slack = 0.5 * 10.0 ** -len(match["least"].partition(".")[2])
        step = 0.5 * 10.0 ** -len(match["rate"].partition(".")[2])
        fits = (rate - step) * (least - slack) <= moved * (1 + 1e-9)
        if not (fits and moved * (1 - 1e-9) <= (rate + step) * (least + slack)):
            facts = {"one": f"{rate:g} MB/s", "other": f"{moved:g} MB in {least:g} s"}
            raise OutputError(OUTPUT_CONTRADICTION(**facts), line=number, source=fields.source)
        if not 0 < least <= average <= most:
            facts = {"one": f"the average {average:g} s", "other": f"{least:g} s to {most:g} s"}
            raise OutputError(OUTPUT_CONTRADICTION(**facts), line=number, source=fields.source)
        yield Row(
            "stream",
            "STREAM",
            {**conditions, "kernel": kernel.lower()},
            {"bandwidth_gb_s": rate / 1e3, "time_s": least},
            line=number,
        )


@kernel_parser("stream")
def parse_stream(lines: Sequence[Line], processes: int, expect: KernelExpectation) -> Iterator[Row]:
    for line in lines:
        require_kind(line, "stream", expect.settings)
        kernel = line.word("kernel", STREAM_KERNELS)
        elements = line.integer("elements", least=1)
        moved = _ARRAYS_TOUCHED[kernel] * DOUBLE_BYTES * elements * processes
        if line.integer("bytes", least=1) != moved:
            facts = {
                "one": f"{line.record['bytes']} bytes",
                "other": f"the {moved} that {kernel} moves",
            }
            raise line.wrong(OUTPUT_CONTRADICTION(**facts))
        times = times_of(line, expect)
        fastest = min(times[1:])
        if fastest <= 0:
            facts = {"name": "times_us", "wanted": "positive", "value": f"{fastest:g}"}
            raise line.wrong(OUTPUT_BAD_VALUE(**facts))
        yield Row(
            "stream",
            "STREAM",
            {"processes": processes, "kernel": kernel, "elements": elements, "trials": len(times)},
            {"bandwidth_gb_s": 1e-3 * moved / fastest, "p95_time_us": percentile_95(times)},
            line=line.number,
        )
