"""The overhead of messages for the processor, by a kernel of the suite."""

from clustergate.benchmarks.descriptor import Check, Headline, Sweep
from clustergate.benchmarks.host_overhead.output import parse_host_overhead
from clustergate.benchmarks.limits import Measurement
from clustergate.benchmarks.mpi_kernel import kernel_benchmark
from clustergate.core.model import Limit

# It is the difference of two times, each with its noise: where other programs took the core while
# the work alone was timed, the rest of it looks like more than all.
_AVAILABILITY = Limit(
    200.0, None, "no processor has more than all of its time for work, but for the noise"
)


def limits(measurement: Measurement) -> tuple[Limit, ...]:
    """Limit a figure; what a call takes may be next to nothing."""
    return (_AVAILABILITY,) if measurement.sample.metric == "availability_percent" else ()


BENCHMARK = kernel_benchmark(
    "host_overhead",
    parse_host_overhead,
    checks=(
        Check(
            "HostOverheadCheck",
            "What MPI_Isend and MPI_Irecv cost the processor, and what they leave it for work",
            Sweep.PLACEMENTS,
            tags=frozenset({"published", "published-002"}),
        ),
    ),
    limits=limits,
    headlines=(
        Headline(
            *("availability at most, Isend", "%", "HostOverheadCheck", "host_overhead"),
            *("availability_percent", {"call": "isend"}),
        ),
    ),
    place=11,
)
