"""Read the JSON lines of the suite's own MPI kernels into rows.

Each of them prints a first line that names it, its processes and its arguments (older builds left
these out), a line for each measurement, and a last line that counts those. Launchers and MPI
libraries may print lines of their own before the first and after the last one; between them every
other line is an error.

``mpi_trials``: a row for each test, size and, of the ping-pong, ``peer``. ``time_us`` is the mean
over the trials of the maximum over the ranks, without the first trial and without spikes
(:mod:`clustergate.statistics.spikes`), half of the round trip for the ping-pong;
``unfiltered_time_us`` and ``removed_trials`` tell what the filter did.

``host_overhead``: a row for each ``call`` and size: the medians of the trials' ``overhead_us``
(iteration less work) and ``availability_percent`` (1 less overhead over base; Sandia MPI
Micro-Benchmark Suite), and of ``transfer_us``, their base.

``bidirectional_stream``: a row for each size; ``bandwidth_mb_s`` counts what all processes sent,
in 10**6 bytes.

``stream``: a row of ``STREAM`` for each ``kernel``; ``bandwidth_gb_s``, in 10**9 bytes, is that of
the fastest trial but the first, as STREAM counts.

What cannot be noticed: a changed digit of a time, a count or a size within the sizes that a program
takes, unless the expectation names it.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from clustergate.model import ConditionValue, OutputError, Row
from clustergate.statistics.spikes import filtered_mean

# In doubles, as mpi_trials.c has them: the paper's 8 bytes, 10 Kbytes and 1 Mbyte.
SMALL, MEDIUM, LARGE = 8, 10_000, 1_000_000
TEST_BYTES: Mapping[str, tuple[int, ...]] = {
    "ping_pong": (SMALL, LARGE),
    "right_shift": (SMALL, MEDIUM),
    "barrier": (0,),
    "bcast": (SMALL, LARGE),
    "scatter": (SMALL, MEDIUM),
    "gather": (SMALL, MEDIUM),
    "allgather": (SMALL, MEDIUM),
    "alltoall": (SMALL, MEDIUM),
    "reduce": (SMALL, LARGE),
    "allreduce": (SMALL, LARGE),
    "scan": (SMALL, LARGE),
}
STREAM_KERNELS = ("copy", "scale", "add", "triad")
# STREAM counts what its loops touch: two arrays, or three.
_ARRAYS_TOUCHED: Mapping[str, int] = {"copy": 2, "scale": 2, "add": 3, "triad": 3}
CALLS = ("isend", "irecv")
_DOUBLE_BYTES = 8
_FLUSH_STEP = 0.1


@dataclass(frozen=True)
class KernelExpectation:
    """What a run was asked for; None or nothing where nothing was asked.

    ``arguments`` are the words behind the program's name. ``settings`` are values that every line
    must hold under these names, such as ``flush_bytes``; ``measured`` are the rows that must be
    there: benchmark (of ``host_overhead`` the call, of ``stream`` the kernel) and bytes, 0 where
    there are no sizes.
    """

    program: str | None = None
    processes: int | None = None
    trials: int | None = None
    settings: Mapping[str, int] | None = None
    measured: frozenset[tuple[str, int]] = frozenset()
    arguments: tuple[str, ...] | None = None


class _Line(NamedTuple):
    number: int
    record: Mapping[str, Any]


def is_mpi_kernel(first_lines: Sequence[str]) -> bool:
    """Say whether these are the first lines of an output of one of the suite's MPI kernels."""
    return any(line.startswith('{"measurement":"begin","program":') for line in first_lines)


def parse_mpi_kernel(
    lines: Iterable[str], *, source: str = "output", expect: KernelExpectation | None = None
) -> Iterator[Row]:
    """Yield the rows of one program's output; its conditions are ``processes`` and what lines hold.

    Raises :class:`OutputError`, with the line where there is one, for an output that is cut off,
    damaged or not that of the run expected.
    """
    expect = expect or KernelExpectation()
    begun, measured = _read(lines, source)
    program, processes = begun["program"], begun["processes"]
    _compare(expect, begun, source)
    found: set[tuple[str, int]] = set()
    try:
        for row in _PROGRAMS[program](measured, processes, expect):
            held = row.conditions
            name = str(held.get("call", held.get("kernel", row.benchmark)))
            found.add((name, int(held.get("bytes", 0))))
            yield row
    except _Wrong as wrong:
        raise OutputError(wrong.message, line=wrong.line, source=source) from wrong
    missing = sorted(expect.measured - found)
    if missing:
        named = ", ".join(f"{name} of {size} bytes" for name, size in missing)
        raise OutputError(f"not measured: {named}", source=source)


def single_trials(
    lines: Iterable[str], test: str, *, source: str = "output"
) -> list[dict[str, Any]]:
    """Return what each trial of a test of ``mpi_trials`` took, for each size, as it was printed.

    Each has ``benchmark``, ``processes``, ``bytes``, ``flush_bytes`` and ``times_us``, the first
    trial first. Raises :class:`OutputError` as :func:`parse_mpi_kernel` does.
    """
    begun, measured = _read(lines, source)
    processes = begun["processes"]
    names = ("bytes", "flush_bytes", "times_us")
    return [
        {"benchmark": test, "processes": processes, **{name: line.record[name] for name in names}}
        for line in measured
        if line.record.get("test") == test
    ]


class _Wrong(Exception):
    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.message, self.line = message, line


def _read(lines: Iterable[str], source: str) -> tuple[Mapping[str, Any], list[_Line]]:
    """Return the first line and those of measurement, once they are seen to be complete."""
    begun: Mapping[str, Any] | None = None
    ended = False
    measured: list[_Line] = []
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
            record = _record(line)
            if begun is None:
                begun = _begin(record)
            elif record["measurement"] == "end":
                if record.get("count") != len(measured):
                    raise ValueError(
                        f"the last line counts {record.get('count')} measurements, but "
                        f"{len(measured)} came before it"
                    )
                ended = True
            else:
                measured.append(_Line(number, record))
        except ValueError as error:
            raise OutputError(str(error), line=number, source=source) from error
    if begun is not None and ended:
        return begun, measured
    message = "nothing was printed" if number == 0 else "the output is cut off: no last line"
    raise OutputError(f"{message}; look at the job's standard error", source=source)


def _record(line: str) -> dict[str, Any]:
    complaint = f"not a line of an MPI kernel: {line.strip()[:60]!r}"
    try:
        record = json.loads(line, parse_constant=_refuse)
    except ValueError as error:
        raise ValueError(complaint) from error
    if not isinstance(record, dict) or not isinstance(record.get("measurement"), str):
        raise ValueError(complaint)
    return record


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no figure")


def _begin(record: Mapping[str, Any]) -> Mapping[str, Any]:
    if record["measurement"] != "begin":
        raise ValueError("the first line is lost: this one is a measurement")
    if record.get("program") not in _PROGRAMS:
        raise ValueError(
            f"unknown program {record.get('program')!r}; known: {', '.join(_PROGRAMS)}"
        )
    if type(record.get("processes")) is not int or record["processes"] < 1:
        raise ValueError("'processes' must be a whole number from 1")
    arguments = record.get("arguments", ["unknown"])
    if not isinstance(arguments, list):
        raise ValueError("'arguments' must be a list")
    return {**record, "arguments": " ".join(map(str, arguments))}


def _compare(expect: KernelExpectation, begun: Mapping[str, Any], source: str) -> None:
    asked = None if expect.arguments is None else " ".join(expect.arguments)
    for what, wanted, found in (
        ("program", expect.program, begun["program"]),
        ("processes", expect.processes, begun["processes"]),
        ("arguments", asked, begun["arguments"]),
    ):
        if wanted is not None and wanted != found:
            raise OutputError(
                f"this is the output of another run: {what} {found} where {wanted} was asked for; "
                "look whether the program is a wrapper",
                source=source,
            )


def _value(line: _Line, key: str, *, least: float = 0.0) -> float:
    value = line.record.get(key)
    if type(value) not in (int, float) or not least <= float(value or 0) < math.inf:
        raise _Wrong(f"{key!r} must be a number from {least:g}, not {value!r}", line.number)
    return float(value or 0)


def _word(line: _Line, key: str, known: Iterable[str]) -> str:
    value = str(line.record.get(key))
    if value not in known:
        raise _Wrong(
            f"there is no {key} {value!r}; known: {', '.join(known)}",
            line.number,
        )
    return value


def _integer(line: _Line, key: str, *, least: int) -> int:
    value = line.record.get(key)
    if type(value) is not int or value < least:
        raise _Wrong(f"{key!r} must be a whole number from {least}, not {value!r}", line.number)
    return value


def _times(line: _Line, expect: KernelExpectation) -> list[float]:
    """Return the times of all trials; each of the measurement must have as many as were asked."""
    times = line.record.get("times_us")
    if not isinstance(times, list) or len(times) < 2:
        raise _Wrong("'times_us' must be a list of two times or more", line.number)
    if not all(isinstance(time, int | float) and 0 <= time < math.inf for time in times):
        raise _Wrong("'times_us' holds what is no time", line.number)
    if expect.trials is not None and len(times) != expect.trials:
        raise _Wrong(f"{len(times)} trials where {expect.trials} were asked for", line.number)
    return [float(time) for time in times]


def _expect_settings(line: _Line, expect: KernelExpectation) -> None:
    for name, wanted in (expect.settings or {}).items():
        if line.record.get(name) != wanted:
            raise _Wrong(
                f"{name} is {line.record.get(name)} where {wanted} was asked for", line.number
            )


def _kind(line: _Line, measurement: str) -> None:
    if line.record["measurement"] != measurement:
        raise _Wrong(
            f"a line of {line.record['measurement']!r} where {measurement!r} is printed",
            line.number,
        )


def _trials(lines: Sequence[_Line], processes: int, expect: KernelExpectation) -> Iterator[Row]:
    peers: dict[tuple[str, int], list[int]] = {}
    for line in lines:
        _kind(line, "trials")
        _expect_settings(line, expect)
        test, size = _word(line, "test", TEST_BYTES), _integer(line, "bytes", least=0)
        if size not in TEST_BYTES[test]:
            raise _Wrong(f"there is no test {test!r} of {size} bytes", line.number)
        times, flush_bytes = _times(line, expect), _integer(line, "flush_bytes", least=0)
        flushed = _FLUSH_STEP * len(times) if flush_bytes else 0.0
        if not math.isclose(_value(line, "first_flushed"), flushed, abs_tol=1e-4):
            raise _Wrong("the caches were not flushed before each trial", line.number)
        conditions: dict[str, ConditionValue] = {
            "processes": processes,
            "bytes": size,
            "flush_bytes": flush_bytes,
            "trials": len(times),
        }
        peer = _integer(line, "peer", least=1) if test == "ping_pong" else 0
        if peer:
            conditions["peer"] = peer
        peers.setdefault((test, size), []).append(peer)
        mean, share = filtered_mean(times), 0.5 if test == "ping_pong" else 1.0
        if mean.mean <= 0:
            raise _Wrong("the times of all trials are 0", line.number)
        values = {
            "time_us": share * mean.mean,
            "unfiltered_time_us": share * mean.unfiltered_mean,
            "removed_trials": float(mean.removed),
        }
        yield Row("mpi_trials", test, conditions, values, line=line.number)
    for (test, size), found in peers.items():
        # Not as a list: a damaged number of processes may be any.
        first, count = (1, processes - 1) if test == "ping_pong" else (0, 1)
        if len(found) != count or found != list(range(first, first + count)):
            raise _Wrong(
                f"{test} of {size} bytes stands there {len(found)} times, where {count} of "
                f"{processes} processes are right",
                lines[-1].number,
            )


def _host_overhead(
    lines: Sequence[_Line], processes: int, expect: KernelExpectation
) -> Iterator[Row]:
    trials: dict[tuple[str, int], list[_Line]] = {}
    for line in lines:
        _kind(line, "host_overhead")
        call, size = _word(line, "call", CALLS), _integer(line, "bytes", least=1)
        known = trials.setdefault((call, size), [])
        if _integer(line, "trial", least=0) != len(known):
            raise _Wrong(f"trial {len(known)} of {call} of {size} bytes is missing", line.number)
        known.append(line)
    for (call, size), found in trials.items():
        if expect.trials is not None and len(found) != expect.trials:
            raise _Wrong(
                f"{len(found)} trials of {call} of {size} bytes where {expect.trials} were asked "
                "for",
                found[-1].number,
            )
        overheads, availabilities, bases = [], [], []
        for line in found:
            _integer(line, "iterations", least=1)
            base = _value(line, "base_us", least=1e-4)
            overhead = _value(line, "iteration_us") - _value(line, "work_us")
            bases.append(base)
            overheads.append(overhead)
            availabilities.append(100 * (1 - overhead / base))
        yield Row(
            "host_overhead",
            "host_overhead",
            {"processes": processes, "call": call, "bytes": size, "trials": len(found)},
            {
                "overhead_us": statistics.median(overheads),
                "availability_percent": statistics.median(availabilities),
                "transfer_us": statistics.median(bases),
            },
            line=found[-1].number,
        )


def _bidirectional(
    lines: Sequence[_Line], processes: int, expect: KernelExpectation
) -> Iterator[Row]:
    for line in lines:
        _kind(line, "bidirectional_stream")
        size, messages = _integer(line, "bytes", least=1), _integer(line, "messages", least=1)
        seconds = _value(line, "seconds", least=1e-6)
        yield Row(
            "bidirectional_stream",
            "bidirectional_stream",
            {"processes": processes, "bytes": size, "seconds": round(seconds, 3)},
            {"bandwidth_mb_s": 1e-6 * size * messages / seconds},
            line=line.number,
        )


def _stream(lines: Sequence[_Line], processes: int, expect: KernelExpectation) -> Iterator[Row]:
    for line in lines:
        _kind(line, "stream")
        _expect_settings(line, expect)
        kernel = _word(line, "kernel", STREAM_KERNELS)
        elements = _integer(line, "elements", least=1)
        moved = _ARRAYS_TOUCHED[kernel] * _DOUBLE_BYTES * elements * processes
        if _integer(line, "bytes", least=1) != moved:
            raise _Wrong(f"{kernel} of these arrays moves {moved} bytes", line.number)
        times = _times(line, expect)
        fastest = min(times[1:])
        if fastest <= 0:
            raise _Wrong("a trial took no time", line.number)
        yield Row(
            "stream",
            "STREAM",
            {
                "processes": processes,
                "kernel": kernel,
                "elements": elements,
                "trials": len(times),
            },
            {"bandwidth_gb_s": 1e-3 * moved / fastest},
            line=line.number,
        )


_PROGRAMS: Mapping[str, Callable[[Sequence[_Line], int, KernelExpectation], Iterator[Row]]] = {
    "mpi_trials": _trials,
    "host_overhead": _host_overhead,
    "bidirectional_stream": _bidirectional,
    "stream": _stream,
}
