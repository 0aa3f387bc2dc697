"""The overhead of messages for the processor, by a kernel of the suite."""

from clustergate.benchmarks.descriptor import Benchmark, Check, Headline, Sweep
from clustergate.benchmarks.host_overhead.limits import limits
from clustergate.benchmarks.host_overhead.output import parse_host_overhead
from clustergate.benchmarks.mpi_kernel import EFFORTS, kernel_build, kernel_format

BENCHMARK = Benchmark(
    "host_overhead",
    "host_overhead",
    kernel_format("host_overhead", parse_host_overhead),
    checks=(
        Check(
            "HostOverheadCheck",
            "What MPI_Isend and MPI_Irecv cost the processor, and what they leave it for work",
            Sweep.PLACEMENTS,
            tags=frozenset({"published", "published-002"}),
        ),
    ),
    efforts=EFFORTS,
    limits=limits,
    headlines=(
        Headline(
            *("availability at most, Isend", "%", "HostOverheadCheck", "host_overhead"),
            *("availability_percent", {"call": "isend"}),
        ),
    ),
    place=11,
    build=kernel_build("host_overhead"),
)
