"""A stream of messages both ways, by a kernel of the suite."""

from clustergate.benchmarks.bidirectional_stream.output import parse_bidirectional_stream
from clustergate.benchmarks.descriptor import Check, Headline, Sweep
from clustergate.benchmarks.limits import Measurement, Messages, limits_of_any, message_limits
from clustergate.benchmarks.mpi_kernel import kernel_benchmark
from clustergate.core.model import Limit

_BOTH_DIRECTIONS = Messages(2, 2, 2, pairs=True)


def limits(measurement: Measurement) -> tuple[Limit, ...]:
    counted = measurement.sample.metric == "bandwidth_mb_s"
    return limits_of_any(
        measurement, message_limits(measurement, _BOTH_DIRECTIONS) if counted else ()
    )


BENCHMARK = kernel_benchmark(
    "bidirectional_stream",
    parse_bidirectional_stream,
    checks=(
        Check(
            "BidirectionalStreamCheck",
            "Messages both ways between two processes without a pause",
            Sweep.PLACEMENTS,
            tags=frozenset({"published", "published-002"}),
        ),
    ),
    limits=limits,
    headlines=(
        Headline(
            *("stream in both directions best", "MB/s", "BidirectionalStreamCheck"),
            *("bidirectional_stream", "bandwidth_mb_s"),
        ),
    ),
    place=12,
)
