"""The eleven tests of MPI calls of Luecke et al., by a kernel of the suite."""

from collections.abc import Iterator

from clustergate.benchmarks.descriptor import Check, Headline, Sweep
from clustergate.benchmarks.limits import Measurement, limits_of_any, link_reason
from clustergate.benchmarks.mpi_kernel import kernel_benchmark
from clustergate.benchmarks.mpi_trials.output import TEST_BYTES, parse_mpi_trials
from clustergate.core.model import COLLECTIVE, Limit


def limits(measurement: Measurement) -> tuple[Limit, ...]:
    """Limit a figure.

    Not the times of flushed messages within a node: nobody knows how much a flush leaves.
    """
    answered = measurement.sample.benchmark == "ping_pong"
    return limits_of_any(measurement, _crossing(measurement) if answered else (), answered=answered)


def _crossing(one: Measurement) -> Iterator[Limit]:
    """Limit the time of half a round trip from below, where the message goes through the network.

    The other tests begin on each rank when it leaves a barrier, which is no common beginning.
    """
    peer, size = int(one.sample.conditions["peer"]), int(one.sample.conditions["bytes"])
    link_mb_s = one.node.link_mb_s
    if peer >= one.ranks and link_mb_s is not None:
        yield Limit(None, size / link_mb_s, link_reason(link_mb_s))


BENCHMARK = kernel_benchmark(
    "mpi_trials",
    parse_mpi_trials,
    checks=(
        Check(
            "MpiTrialsCheck",
            "Trials of eleven MPI calls with flushed caches, by the template of Luecke et al.",
            Sweep.LAYOUTS,
            tags=frozenset({"published", "published-004"}),
            rows=tuple(TEST_BYTES),
        ),
    ),
    limits=limits,
    headlines=tuple(
        Headline(title, "us", "MpiTrialsCheck", test, "time_us", {"bytes": size}, max)
        for title, test, size in (
            ("flushed bcast 8 B", "bcast", 8),
            ("flushed bcast 1 MB", "bcast", 1_000_000),
            ("flushed allreduce 8 B", "allreduce", 8),
            ("flushed alltoall 10 kB", "alltoall", 10_000),
            ("flushed barrier", "barrier", 0),
        )
    ),
    place=10,
    # The other two send from one rank to another.
    kinds=dict.fromkeys(TEST_BYTES.keys() - {"ping_pong", "right_shift"}, COLLECTIVE),
)
