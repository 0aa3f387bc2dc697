"""The suite's own MPI kernels."""

from clustergate.benchmarks.descriptor import (
    Benchmark,
    Budget,
    Check,
    Effort,
    Format,
    Headline,
    Sweep,
)
from clustergate.benchmarks.mpi_kernel.limits import limits
from clustergate.kernels.outputs import is_mpi_kernel, parse_mpi_kernel

_002 = frozenset({"published", "published-002"})

BENCHMARK = Benchmark(
    "mpi-kernel",
    "a kernel of the suite",
    Format(is_mpi_kernel, parse_mpi_kernel),
    checks=(
        Check(
            "MpiTrialsCheck",
            "Trials of eleven MPI calls with flushed caches, by the template of Luecke et al.",
            Sweep.LAYOUTS,
            tags=frozenset({"published", "published-004"}),
        ),
        Check(
            "HostOverheadCheck",
            "What MPI_Isend and MPI_Irecv cost the processor, and what they leave it for work",
            Sweep.PLACEMENTS,
            tags=_002,
        ),
        Check(
            "BidirectionalStreamCheck",
            "Messages both ways between two processes without a pause",
            Sweep.PLACEMENTS,
            tags=_002,
        ),
        Check(
            "StreamCheck",
            "STREAM: memory bandwidth of one node by four operations, a rank on each core",
            tags=frozenset({"published", "published-003", "published-000"}),
        ),
    ),
    efforts={
        "smoke": Effort(budget=Budget(at_least=3, at_most=6, seconds=20.0)),
        "maintenance": Effort(
            budget=Budget(at_least=10, at_most=20, seconds=180.0, precision=0.02)
        ),
        "acceptance": Effort(
            budget=Budget(at_least=10, at_most=50, seconds=3600.0, precision=0.01)
        ),
    },
    place=10,
    limits=limits,
    headlines=(
        *(
            Headline(title, "us", "MpiTrialsCheck", test, "time_us", {"bytes": size})
            for title, test, size in (
                ("flushed bcast 8 B", "bcast", 8),
                ("flushed bcast 1 MB", "bcast", 1_000_000),
                ("flushed allreduce 8 B", "allreduce", 8),
                ("flushed alltoall 10 kB", "alltoall", 10_000),
                ("flushed barrier", "barrier", 0),
            )
        ),
        Headline(
            *("availability at most, Isend", "%", "HostOverheadCheck", "host_overhead"),
            *("availability_percent", {"call": "isend"}),
        ),
        Headline(
            *("stream in both directions best", "MB/s", "BidirectionalStreamCheck"),
            *("bidirectional_stream", "bandwidth_mb_s"),
        ),
        Headline(
            *("STREAM triad", "GB/s", "StreamCheck", "STREAM", "bandwidth_gb_s"),
            {"kernel": "triad"},
        ),
    ),
)
