"""Read the JSON lines of the suite's own kernels into rows.

They are ``node_peaks``, ``dgemm`` and ``core_distance``.
Each line is one trial of one measurement on some cores, and the last line of a program says how
many there were. The outputs of several programs may follow each other. Whatever is not such a line
is an error: nothing else prints to that output.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from clustergate.core.model import Better, ConditionValue, Metric, Row
from clustergate.machine.kernels.records import Line, cut_off, read_line

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
        one = read_line(number, line, source, "node_peaks or dgemm")
        if one.record["measurement"] == "end":
            one.require_count(pending)
            pending, ended = 0, True
            continue
        yield _row(one)
        pending, ended = pending + 1, False
    if not ended:
        raise cut_off(number, source)


def _row(line: Line) -> Row:
    name = line.word("measurement", _KINDS)
    kind, cores = _KINDS[name], line.integers("cores")
    line.best("seconds")
    conditions: dict[str, ConditionValue] = {
        "cores": len(cores),
        "core_ids": ",".join(map(str, cores)),
        "trial": line.integer("trial", least=0),
    }
    conditions |= {key: line.integer(key, least=1) for key in kind.integers}
    conditions |= {key: line.word(key) for key in kind.words}
    added = [key for key in kind.added_integers if key in line.record]
    conditions |= {key: line.integer(key, least=0) for key in added}
    figures = {**kind.figures, **{k: v for k, v in kind.added.items() if k in line.record}}
    values = {value: line.best(key) for key, value in figures.items()}
    return Row(SUITE, name, conditions, values, line=line.number)
