"""From rows to samples, and the names that figures carry in ReFrame, references and reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from clustergate.core.model import (
    METRICS,
    Better,
    ClustergateError,
    Conditions,
    Figure,
    Metric,
    OutputError,
    Row,
    Sample,
)
from clustergate.core.reasons import Words


class DerivedError(ClustergateError):
    """A figure does not follow from what was given."""


NOT_POSITIVE = Words("derived.not-positive", "{name} must be greater than 0, not {value}")


def require_positive(**named: float) -> None:
    """Raise :class:`DerivedError` that names the first argument that is not above 0."""
    for name, value in named.items():
        if not value > 0:
            raise DerivedError(NOT_POSITIVE(name=name, value=value))


# What tells two figures of one benchmark and one metric apart, in the order of the name, with the
# way it is written. Problem sizes of HPL are not among them: they follow from the machine.
_IDENTITY: Mapping[str, str] = {
    "mode": "{}",
    "processes": "{}p",
    "groups": "{}groups",
    "group": "group{}",
    "domain": "domain{}",
    "threads": "{}threads",
    "cores": "cores{}",
    "against": "against {}",
    "power_of": "power of {}",
    "peer": "to{}",
    "call": "{}",
    "kernel": "{}",
    "bytes": "{}B",
}
# Kept in the raw samples, but not judged: nobody waits for the fastest rank, and the rate of HPL
# stands for its time.
_NOT_JUDGED = frozenset({"t_min_us", "time_s"})
# What stands for others of the same messages: the bandwidth, which has finer digits and is that of
# the slowest rank, and else the time of that rank.
_MEASURED_BY: Mapping[str, tuple[str, ...]] = {
    "latency_us": ("bandwidth_mb_s",),
    "t_max_us": ("bandwidth_mb_s",),
    "t_avg_us": ("bandwidth_mb_s", "t_max_us"),
    "message_rate_per_s": ("bandwidth_mb_s",),
}


NO_DIRECTION = Words(
    "output.no-direction",
    "{benchmark}: no benchmark's metrics say which way {metric} is better",
)


def samples_of(
    rows: Iterable[Row], metrics: Mapping[str, Metric] = METRICS, order: int = 0
) -> tuple[Sample, ...]:
    """Return one sample per value of the rows that carry figures.

    Raises OutputError for a value whose metric is in no vocabulary: its direction would be unknown.
    """
    rows = tuple(rows)
    for row in rows:
        if unknown := next((name for name in row.values if name not in metrics), ""):
            facts = {"benchmark": row.benchmark, "metric": unknown}
            raise OutputError(NO_DIRECTION(**facts), line=row.line or None)
    return tuple(
        Sample(
            benchmark=row.benchmark,
            metric=name,
            unit=metrics[name].unit,
            better=metrics[name].better,
            conditions=row.conditions,
            value=value,
            order=order,
        )
        for row in rows
        for name, value in row.values.items()
    )


# The order follows the clock that the kernel tells, and what memory is free.
SAME_MATRIX = 0.1
"""By what fraction the orders of matrices may differ whose rates are compared."""


def matrix_order(figures: Iterable[Sample | Figure], benchmark: str) -> int | None:
    """Return the order of the matrix that ``benchmark`` solved, None where none did."""
    orders = (
        one.conditions["n"]
        for one in figures
        if one.benchmark == benchmark and "n" in one.conditions
    )
    return next((int(order) for order in orders), None)


# The status of a benchmark that IMB chose by itself and that cannot run with so many processes.
_CANNOT_RUN = "invalid"


def unmeasured(rows: Iterable[Row]) -> list[Row]:
    """Return the rows that carry a word such as ``out-of-mem`` instead of figures.

    What nobody asked for and cannot run with so many processes is none: see :func:`left_out`.
    """
    return [row for row in rows if row.status not in ("ok", _CANNOT_RUN)]


def left_out(rows: Iterable[Row]) -> list[str]:
    """Return in a sentence for each process count which benchmarks cannot run with it."""
    names_by_processes: dict[object, dict[str, None]] = {}
    for row in rows:
        if row.status == _CANNOT_RUN:
            names_by_processes.setdefault(row.conditions.get("processes"), {})[row.benchmark] = None
    return [
        f"not available here: {', '.join(names)}, which cannot run with {processes} processes"
        for processes, names in names_by_processes.items()
    ]


def reported(samples: Sequence[Sample]) -> list[Sample]:
    """Return the samples that are judged: qualities, and each of them once.

    The bandwidth of an empty message, which is always 0, is none. The time of the slowest rank is
    one where no bandwidth tells it.
    """
    judged = [
        sample
        for sample in samples
        if sample.better is not Better.NEITHER
        and sample.metric not in _NOT_JUDGED
        and not (sample.metric == "bandwidth_mb_s" and sample.conditions.get("bytes") == 0)
    ]
    rated = {_measurement(sample) for sample in judged if sample.metric == "bandwidth_mb_s"}
    return [one for one in judged if one.metric != "t_max_us" or _measurement(one) not in rated]


def _measurement(sample: Sample) -> tuple[str, frozenset[tuple[str, object]]]:
    return sample.benchmark, frozenset(sample.conditions.items())


def name_of(sample: Sample | Figure) -> str:
    """Return the name of a figure, such as ``PingPong.2p.8B.latency_us``."""
    metric = [] if sample.metric == sample.benchmark else [sample.metric]
    return ".".join([sample.benchmark, *_distinguishing(sample.conditions), *metric])


def same_measurement(name: str) -> list[str]:
    """Return which figures are the same measurement in other words, and stand for it.

    One measurement is compared once: by the bandwidth of the messages or else the time of the
    slowest rank, where there is one, and that speaks for the others.
    """
    stem, _, metric = name.rpartition(".")
    return [f"{stem}.{other}" for other in _MEASURED_BY.get(metric, ())]


FIGURE_TWICE = Words(
    "output.figure-twice",
    "two figures have the name {name}",
    cause="{differ} is not a part of names, so let the names of their benchmarks differ",
)


def refuse_shared_names(samples: Sequence[Sample], matrix: str = "") -> None:
    """Raise OutputError for two figures of a launch that references could not tell apart.

    Of the benchmark ``matrix``, which may solve many tilings in a launch, the best one counts.
    """
    seen: dict[str, Conditions] = {}
    for sample in (one for one in reported(samples) if one.benchmark != matrix):
        name = name_of(sample)
        other = seen.setdefault(name, sample.conditions)
        if other != sample.conditions:
            differ = sorted(k for k, v in sample.conditions.items() if other.get(k) != v)
            raise OutputError(FIGURE_TWICE(name=name, differ=", ".join(differ)))


def name_of_unmeasured(row: Row) -> str:
    """Return the name of what has no figure, such as ``Alltoall.2p.4194304B.out-of-mem``."""
    return ".".join([row.benchmark, *_distinguishing(row.conditions), row.status])


def _distinguishing(conditions: Conditions) -> list[str]:
    return [
        form.format(conditions[key]).replace(" ", "_")
        for key, form in _IDENTITY.items()
        if key in conditions and not (key == "groups" and conditions[key] == 1)
    ]
