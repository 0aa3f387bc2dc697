"""Read the lines of stream into rows.

There is a row of ``STREAM`` for each ``kernel``; ``bandwidth_gb_s``, in 10**9 bytes, is that of the
fastest trial but the first, as STREAM counts, and ``p95_time_us`` what one trial of twenty exceeds
at most.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from clustergate.benchmarks.mpi_kernel import (
    DOUBLE_BYTES,
    KernelExpectation,
    kernel_parser,
    require_kind,
    times_of,
)
from clustergate.core.model import Row
from clustergate.core.outputs import OUTPUT_BAD_VALUE, OUTPUT_CONTRADICTION
from clustergate.machine.kernels.records import Line
from clustergate.stats.spikes import percentile_95

STREAM_KERNELS = ("copy", "scale", "add", "triad")
# STREAM counts what its loops touch: two arrays, or three.
ARRAYS_TOUCHED: Mapping[str, int] = {"copy": 2, "scale": 2, "add": 3, "triad": 3}


@kernel_parser("stream")
def parse_stream(lines: Sequence[Line], processes: int, expect: KernelExpectation) -> Iterator[Row]:
    for line in lines:
        require_kind(line, "stream", expect.settings)
        kernel = line.word("kernel", STREAM_KERNELS)
        elements = line.integer("elements", least=1)
        moved = ARRAYS_TOUCHED[kernel] * DOUBLE_BYTES * elements * processes
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
