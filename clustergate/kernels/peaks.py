"""Read the JSON lines of the suite's own kernels into rows.

They are ``node_peaks``, ``dgemm`` and ``core_distance``.
Each line is one trial of one measurement on some cores, and the last line of a program says how
many there were. The outputs of several programs may follow each other. Whatever is not such a line
is an error: nothing else prints to that output.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from clustergate.model import Better, ConditionValue, Metric, OutputError, Row

SUITE = "node-peaks"
METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("bandwidth_gb_s", "GB/s", Better.HIGHER),
        Metric("undisturbed_gb_s", "GB/s", Better.HIGHER),
        Metric("undisturbed_gflops", "Gflop/s", Better.HIGHER),
        Metric("cpu_share", "1", Better.NEITHER),
        Metric("clock_ghz", "GHz", Better.HIGHER),
        Metric("max_ghz", "GHz", Better.NEITHER),
        Metric("round_trip_ns", "ns", Better.LOWER),
    )
}


class _Kind(NamedTuple):
    """What a line of one measurement holds beside its cores, its trial and its seconds.

    ``figures`` are numbers above 0, by the names of their values. ``added`` ones and
    ``added_integers`` are absent from the lines of older kernels.
    """

    figures: Mapping[str, str]
    integers: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    added: Mapping[str, str] = MappingProxyType({})
    added_integers: tuple[str, ...] = ()


def _undisturbed(unit: str) -> dict[str, str]:
    return {"undisturbed": f"undisturbed_{unit}", "cpu_share": "cpu_share"}


_TRIAD = _Kind(
    {"bandwidth_gb_s": "bandwidth_gb_s"},
    integers=("array_mib",),
    added=_undisturbed("gb_s"),
)
_KINDS: Mapping[str, _Kind] = {
    "fma_peak": _Kind(
        {"gflops": "performance_gflops"},
        words=("vector",),
        added={**_undisturbed("gflops"), "clock_ghz": "clock_ghz", "max_ghz": "max_ghz"},
        added_integers=("flops_per_cycle", "virtual"),
    ),
    "triad": _TRIAD,
    "triad_glance": _TRIAD,
    "dgemm": _Kind(
        {"gflops": "performance_gflops"},
        integers=("m", "k"),
        words=("kernel",),
        added=_undisturbed("gflops"),
    ),
    # A node with one core has no distance to tell.
    "core_distance": _Kind({}, added={"round_trip_ns": "round_trip_ns"}),
}


def parse_peaks(lines: Iterable[str], *, source: str = "node peaks") -> Iterator[Row]:
    """Yield one row per trial.

    Conditions: ``cores`` (how many), ``core_ids`` (their logical CPU numbers, ``0,1``), ``trial``
    from 0, and of the measurement ``vector``, or ``array_mib``, or ``m``, ``k`` and ``kernel``.
    Values: ``performance_gflops``, or ``bandwidth_gb_s`` (10^9 bytes per second, as STREAM counts),
    and ``undisturbed_gflops`` or ``undisturbed_gb_s``, which is what the cores did while nothing
    else ran on them, and ``cpu_share``, the part of the time in which they could. A ``fma_peak``
    has its ``clock_ghz`` as well, the highest that the kernel knows as ``max_ghz``, and the
    conditions ``flops_per_cycle``, the most that a core with such vectors does, and ``virtual``, 1
    on a virtual machine. A ``core_distance`` has ``round_trip_ns``.
    Raises :class:`OutputError`, with the line, for a line that is none of these programs', for a
    figure that cannot be, and for an output that was cut off.
    """
    pending = 0
    number = 0
    ended = False
    for number, line in enumerate(lines, 1):
        try:
            record = json_record(line, "node_peaks or dgemm")
            if record["measurement"] == "end":
                _check_count(record, pending)
                pending, ended = 0, True
                continue
            row = _row(record, number)
        except (ValueError, OverflowError) as error:
            raise OutputError(str(error), line=number, source=source) from error
        pending, ended = pending + 1, False
        yield row
    if not ended:
        message = "nothing was printed" if number == 0 else "the output is cut off: no end record"
        raise OutputError("output.kernel", source=source, problem=message)


def json_record(line: str, program: str) -> dict[str, Any]:
    """Return the record on a line of a kernel; raises ValueError for any other line."""
    complaint = f"not a line of {program}: {line.strip()[:60]!r}"
    try:
        record = json.loads(line, parse_constant=_refuse)
    except ValueError as error:
        raise ValueError(complaint) from error
    if not isinstance(record, dict) or not isinstance(record.get("measurement"), str):
        raise ValueError(complaint)
    return record


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not a number")


def _check_count(record: Mapping[str, Any], measured: int) -> None:
    count = _integer(record, "count", least=1)
    if count != measured:
        raise ValueError(f"the end record counts {count} lines, but {measured} came before it")


def _row(record: Mapping[str, Any], line: int) -> Row:
    name = record["measurement"]
    kind = _KINDS.get(name)
    if kind is None:
        raise ValueError(f"unknown measurement {name!r}; known: {', '.join(_KINDS)}")
    cores = record.get("cores")
    if not isinstance(cores, list) or not cores or not all(type(core) is int for core in cores):
        raise ValueError("'cores' must be a list of CPU numbers")
    _positive(record, "seconds")
    conditions: dict[str, ConditionValue] = {
        "cores": len(cores),
        "core_ids": ",".join(map(str, cores)),
        "trial": _integer(record, "trial", least=0),
    }
    conditions |= {key: _integer(record, key, least=1) for key in kind.integers}
    conditions |= {key: _word(record, key) for key in kind.words}
    added = [key for key in kind.added_integers if key in record]
    conditions |= {key: _integer(record, key, least=0) for key in added}
    figures = {**kind.figures, **{k: v for k, v in kind.added.items() if k in record}}
    values = {value: _positive(record, key) for key, value in figures.items()}
    return Row(SUITE, name, conditions, values, line=line)


def _integer(record: Mapping[str, Any], key: str, *, least: int) -> int:
    value = record.get(key)
    if type(value) is not int or value < least:
        raise ValueError(f"{key!r} must be an integer of at least {least}, not {value!r}")
    return value


def _positive(record: Mapping[str, Any], key: str) -> float:
    value = record.get(key)
    if isinstance(value, dict):
        value = value.get("best")
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ValueError(f"{key!r} must be positive, not {value!r}")
    return float(value)


def _word(record: Mapping[str, Any], key: str) -> str:
    value = record.get(key)
    if not isinstance(value, str) or not value:
        raise ValueError(f"{key!r} must be a non-empty string, not {value!r}")
    return value
