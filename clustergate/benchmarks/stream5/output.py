"""Read what McCalpin's STREAM 5.6 to 5.10 prints into rows.

    {"stream5":"rank","rank":0,"processes":1,"cores":[[0],[1]],"domains":[0],"kib":{"0":7515656}}
    STREAM version $Revision: 5.10 $
    This system uses 8 bytes per array element.
    Array size = 80000000 (elements), Offset = 0 (elements)
    Each kernel will be executed 10 times.
    Number of Threads counted = 2
    Function    Best Rate MB/s  Avg time     Min time     Max time
    Copy:           21250.0     0.061000     0.060235     0.063000
    Solution Validates: avg error less than 1.000000e-13 on all three arrays

The first line is of the suite's own ``stream5``, which runs STREAM as a rank of MPI: to which cores
each thread was bound, the NUMA domains of these, and where the memory lay. There is one such text
for each rank; STREAM alone prints none of these lines, and one text.

There is a row of ``STREAM5`` for each ``kernel``: ``bandwidth_gb_s`` and ``time_s``, both of the
fastest trial but the first. Conditions are ``elements``, ``trials``, ``threads``, ``processes``
where they are known and, where there are several, the NUMA ``domain`` of the rank.

What cannot be noticed: a changed digit within the rounding of rate and time, and of the average and
the longest time in their order.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from clustergate.benchmarks.stream.output import ARRAYS_TOUCHED
from clustergate.benchmarks.text import Fields
from clustergate.core.model import ConditionValue, OutputError, Row
from clustergate.core.outputs import (
    OUTPUT_CONTRADICTION,
    OUTPUT_DAMAGED,
    OUTPUT_FAILURE,
    OUTPUT_LACKS,
    OUTPUT_SECOND_RUN,
    OUTPUT_TWICE,
    OUTPUT_WRONG_RESULT,
)

# Pages that the loader or the MPI library touched lie where these ran.
_LEAST_LOCAL = 0.95
_OF_RANK = '{"stream5":'
_TITLE = re.compile(r"STREAM version \$Revision: 5\.\d+ \$\s*$")
TITLE = re.compile(rf"{re.escape(_OF_RANK)}|{_TITLE.pattern}")
_NUMBERS = r"\s+".join(rf"(?P<{name}>\d+\.\d+)" for name in ("rate", "avg", "least", "most"))
_ROW = re.compile(rf"(Copy|Scale|Add|Triad):\s+{_NUMBERS}\s*")
_SAID = {
    "bytes per array element": re.compile(
        r"This system uses (\d+) bytes per (?:array element|DOUBLE PRECISION word)\.\s*"
    ),
    "Array size": re.compile(r"Array size = (\d+)(?: \(elements\))?, Offset = .*\s*"),
    "Offset": re.compile(r"Array size = .*, Offset = (\d+)\b.*\s*"),
    "trials": re.compile(r"Each (?:kernel will be executed|test is run) (\d+) times[.,].*\s*"),
    "threads": re.compile(r"Number of Threads counted = (\d+)\s*"),
    "the validation": re.compile(r"(Solution Validates)\b.*\s*"),
}
_FAILED = re.compile(r"\s*Failed Validation on array .*|\s*(?:Solution )?.*[Vv]alidation failed.*")


@dataclass(frozen=True)
class Stream5Expectation:
    """What a run was asked for; None where nothing was asked."""

    processes: int | None = None
    threads: int | None = None
    elements: int | None = None


@dataclass
class _Rank:
    """What a rank printed: its own record, the record's line, and the numbered lines of STREAM."""

    record: Mapping[str, Any]
    line: int
    lines: list[tuple[int, str]] = field(default_factory=list)


def parse_stream5(
    lines: Iterable[str], *, source: str = "output", expect: Stream5Expectation | None = None
) -> Iterator[Row]:
    """Yield a row for each of the four kernels of each rank.

    Raises :class:`OutputError` for a text that is cut off, damaged or whose validation failed, for
    threads that share a core or may leave theirs, for a rank whose memory lies in another NUMA
    domain, and for another run than the one expected.
    """
    ranks: list[_Rank] = []
    alone = _Rank({}, 0)
    for number, line in enumerate(lines, 1):
        if line.startswith(_OF_RANK):
            ranks.append(_Rank(_record(line, number, source), number))
        else:
            (ranks[-1] if ranks else alone).lines.append((number, line))
    if expect is not None or ranks:
        _require_ranks(ranks, source)
    for rank in ranks or [alone]:
        yield from _rows_of(rank, len(ranks), source, expect or Stream5Expectation())


def _record(line: str, number: int, source: str) -> Mapping[str, Any]:
    try:
        record: Mapping[str, Any] = json.loads(line)
        cores = [int(core) for (core,) in record["cores"]]
        kib = {int(domain): int(size) for domain, size in record.get("kib", {}).items()}
        domains = [int(domain) for domain in record["domains"]]
        place = {name: int(record[name]) for name in ("rank", "processes")}
    except (ValueError, TypeError, KeyError, AttributeError):
        # Among them a thread with more cores than one.
        facts = {"what": "the cores of a rank's bound threads", "program": "stream5"}
        raise OutputError(
            OUTPUT_DAMAGED(**facts, printed=line.strip()), line=number, source=source
        ) from None
    return {**place, "cores": cores, "domains": domains, "kib": kib}


def _require_ranks(ranks: Sequence[_Rank], source: str) -> None:
    """Refuse what is not one text of each rank, with threads on cores and ranks in domains apart.

    A rank among several has a NUMA domain for itself, and its memory in it.
    """
    count = ranks[0].record["processes"] if ranks else 1
    if [rank.record["rank"] for rank in ranks] != [*range(count)]:
        missing = f"the text of one of {count} ranks, or its own first line,"
        raise OutputError(OUTPUT_LACKS(missing=missing), source=source)
    cores = [core for rank in ranks for core in rank.record["cores"]]
    if len({*cores}) < len(cores):
        what = f"the number of cores of {len(cores)} threads"
        reason = OUTPUT_WRONG_RESULT(what=what, value=len({*cores}), wanted=len(cores))
        raise OutputError(reason, line=ranks[-1].line, source=source)
    seen: list[int] = []
    for rank in ranks if count > 1 else ():
        domains, kib = rank.record["domains"], rank.record["kib"]
        local = sum(kib.get(domain, 0) for domain in domains) / (sum(kib.values()) or 1)
        wrong: dict[str, str] = {}
        if len(domains) != 1 or domains[0] in seen:
            listed = ", ".join(map(str, domains)) or "not known"
            wrong = {"what": f"the NUMA domain of rank {rank.record['rank']}", "value": listed}
            wrong["wanted"] = "its own"
        elif kib and local < _LEAST_LOCAL:
            wrong = {"what": f"memory in NUMA domain {domains[0]}", "value": f"{local:.0%}"}
            wrong["wanted"] = f"{_LEAST_LOCAL:.0%} at least"
        if wrong:
            raise OutputError(OUTPUT_WRONG_RESULT(**wrong), line=rank.line, source=source)
        seen += domains


def _rows_of(rank: _Rank, processes: int, source: str, asked: Stream5Expectation) -> Iterator[Row]:
    fields = Fields(source)
    rows: dict[str, tuple[re.Match[str], int]] = {}
    title = "the title"
    for number, line in rank.lines:
        if _TITLE.match(line):
            if title in fields.values:
                raise OutputError(OUTPUT_SECOND_RUN(), line=number, source=source)
            fields.values[title] = line, number
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
    fields.text(title)
    fields.text("the validation")
    known: dict[str, ConditionValue] = {}
    if rank.record:
        threads = ("threads", len(rank.record["cores"]), fields.count("threads"))
        fields.compare("threads", threads, ("threads", asked.threads, threads[2]))
    if processes > 1:
        known = {"processes": processes, "domain": rank.record["domains"][0]}
    fields.compare("", ("processes", asked.processes, processes))
    fields.compare("Array size", ("elements", asked.elements, fields.count("Array size")))
    if asked.elements is not None:
        fields.compare("Offset", ("an offset of", 0, fields.count("Offset", least=0)))
    yield from _of_kernels(rows, fields, known)


def _of_kernels(
    rows: Mapping[str, tuple[re.Match[str], int]],
    fields: Fields,
    known: Mapping[str, ConditionValue],
) -> Iterator[Row]:
    elements, each = fields.count("Array size"), fields.count("bytes per array element")
    conditions: dict[str, ConditionValue] = {
        **known,
        "elements": elements,
        "trials": fields.count("trials"),
    }
    if "threads" in fields.values:
        conditions["threads"] = fields.count("threads")
    for kernel, (match, number) in rows.items():
        rate, average, least, most = (float(match[k]) for k in ("rate", "avg", "least", "most"))
        moved = 1e-6 * ARRAYS_TOUCHED[kernel.lower()] * each * elements
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
            "stream5",
            "STREAM5",
            {**conditions, "kernel": kernel.lower()},
            {"bandwidth_gb_s": rate / 1e3, "time_s": least},
            line=number,
        )
