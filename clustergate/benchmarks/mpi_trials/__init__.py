"""The eleven tests of MPI calls of Luecke et al., by a kernel of the suite."""

from clustergate.benchmarks.descriptor import Check, Headline, Sweep
from clustergate.benchmarks.mpi_kernel import kernel_benchmark
from clustergate.benchmarks.mpi_trials.limits import limits
from clustergate.benchmarks.mpi_trials.output import parse_mpi_trials

BENCHMARK = kernel_benchmark(
    "mpi_trials",
    parse_mpi_trials,
    checks=(
        Check(
            "MpiTrialsCheck",
            "Trials of eleven MPI calls with flushed caches, by the template of Luecke et al.",
            Sweep.LAYOUTS,
            tags=frozenset({"published", "published-004"}),
        ),
    ),
    limits=limits,
    headlines=tuple(
        Headline(title, "us", "MpiTrialsCheck", test, "time_us", {"bytes": size})
        for title, test, size in (
            ("flushed bcast 8 B", "bcast", 8),
            ("flushed bcast 1 MB", "bcast", 1_000_000),
            ("flushed allreduce 8 B", "allreduce", 8),
            ("flushed alltoall 10 kB", "alltoall", 10_000),
            ("flushed barrier", "barrier", 0),
        )
    ),
    place=10,
)
