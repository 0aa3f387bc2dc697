"""The four operations of STREAM, by a kernel of the suite."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from clustergate.benchmarks.descriptor import Check, Format, Headline
from clustergate.benchmarks.limits import DOUBLE_BYTES, Measurement, limits_of_any, stream_limits
from clustergate.benchmarks.mpi_kernel import kernel_benchmark
from clustergate.benchmarks.stream.output import TITLE, parse_mccalpins, parse_stream
from clustergate.core.model import MEMORY, Limit, Row


def limits(measurement: Measurement) -> tuple[Limit, ...]:
    """Limit a figure, whose ranks wait for each other; from below nothing that is sound does."""
    array = int(measurement.sample.conditions["elements"]) * DOUBLE_BYTES * measurement.ranks
    counted = measurement.sample.metric == "bandwidth_gb_s"
    return limits_of_any(
        measurement, stream_limits(measurement, array, measurement.cores) if counted else ()
    )


_KERNEL = kernel_benchmark(
    "stream",
    parse_stream,
    title="STREAM",
    checks=(
        Check(
            "StreamCheck",
            "STREAM: memory bandwidth of one node by four operations, a rank on each core",
            tags=frozenset({"published", "published-003", "published-000"}),
        ),
    ),
    limits=limits,
    headlines=(
        Headline(
            *("STREAM triad", "GB/s", "StreamCheck", "STREAM", "bandwidth_gb_s"),
            {"kernel": "triad"},
        ),
    ),
    place=13,
    kinds={"STREAM": MEMORY},
)


def _parse(lines: Iterable[str], *, source: str = "output", expect: Any = None) -> Iterator[Row]:
    """Yield the rows of either program: a job only runs the suite's own, which says so first."""
    if expect is None:
        seen = list(lines)
        if any(TITLE.match(line) for line in seen):
            yield from parse_mccalpins(seen, source=source)
            return
        lines = seen
    yield from parse_stream(lines, source=source, expect=expect)


BENCHMARK = replace(
    _KERNEL,
    format=Format(re.compile(f"{_KERNEL.format.title.pattern}|{TITLE.pattern}"), _parse),
)
