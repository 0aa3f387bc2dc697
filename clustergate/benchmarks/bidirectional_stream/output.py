"""Read the lines of bidirectional_stream into rows.

    {"measurement":"bidirectional_stream","bytes":1,"messages":24920,"seconds":0.050609}

There is a row for each size; ``bandwidth_mb_s`` counts what all processes sent, in 10**6 bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clustergate.benchmarks.mpi_kernel import KernelExpectation, kernel_parser, require_kind
from clustergate.core.model import Row
from clustergate.machine.kernels.records import Line


@kernel_parser("bidirectional_stream")
def parse_bidirectional_stream(
    lines: Sequence[Line], processes: int, expect: KernelExpectation
) -> Iterator[Row]:
    for line in lines:
        require_kind(line, "bidirectional_stream")
        size, messages = line.integer("bytes", least=1), line.integer("messages", least=1)
        seconds = line.value("seconds", least=1e-6)
        yield Row(
            "bidirectional_stream",
            "bidirectional_stream",
            {"processes": processes, "bytes": size, "seconds": round(seconds, 3)},
            {"bandwidth_mb_s": 1e-6 * size * messages / seconds},
            line=line.number,
        )
