"""Read what host_overhead prints: the cost of messages for the processor.

{"measurement":"host_overhead","call":"isend","bytes":1,"trial":0,"iterations":2000,
 "base_us":0.1850,"p95_us":0.3180,"work_us":0.3030,"iteration_us":0.3960}
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from clustergate.benchmarks.mpi_kernel import KernelExpectation, kernel_parser, require_kind
from clustergate.benchmarks.text import OUTPUT_OTHER_RUN
from clustergate.core.model import Row
from clustergate.core.outputs import OUTPUT_LACKS
from clustergate.machine.kernels.records import Line

CALLS = ("isend", "irecv")


@kernel_parser("host_overhead")
def parse_host_overhead(
    lines: Sequence[Line], processes: int, expect: KernelExpectation
) -> Iterator[Row]:
    trials: dict[tuple[str, int], list[Line]] = {}
    for line in lines:
        require_kind(line, "host_overhead")
        call, size = line.word("call", CALLS), line.integer("bytes", least=1)
        known = trials.setdefault((call, size), [])
        if line.integer("trial", least=0) != len(known):
            missing = f"trial {len(known)} of {call} of {size} bytes"
            raise line.wrong(OUTPUT_LACKS(missing=missing))
        known.append(line)
    for (call, size), group in trials.items():
        if expect.trials is not None and len(group) != expect.trials:
            facts = {"actual": len(group), "wanted": expect.trials}
            raise group[-1].wrong(OUTPUT_OTHER_RUN(what=f"trials of {call}", **facts))
        for line in group:
            line.integer("iterations", least=1)
        bases = [line.value("base_us", least=1e-4) for line in group]
        overheads = [line.value("iteration_us") - line.value("work_us") for line in group]
        free = [100 * (1 - spent / base) for spent, base in zip(overheads, bases, strict=True)]
        yield Row(
            "host_overhead",
            "host_overhead",
            {"processes": processes, "call": call, "bytes": size, "trials": len(group)},
            {
                "overhead_us": statistics.median(overheads),
                "availability_percent": statistics.median(free),
                "transfer_us": statistics.median(bases),
                # What one transfer of twenty exceeds, in the slowest trial.
                "p95_time_us": max(line.value("p95_us", least=1e-4) for line in group),
            },
            line=group[-1].number,
        )
