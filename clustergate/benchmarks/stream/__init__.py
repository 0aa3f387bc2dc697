"""The four operations of STREAM, by a kernel of the suite."""

from clustergate.benchmarks.descriptor import Check, Headline
from clustergate.benchmarks.limits import DOUBLE_BYTES, Measurement, limits_of_any, stream_limits
from clustergate.benchmarks.mpi_kernel import kernel_benchmark
from clustergate.benchmarks.stream.output import parse_stream
from clustergate.core.model import MEMORY, Limit


def limits(measurement: Measurement) -> tuple[Limit, ...]:
    """Limit a figure, whose ranks wait for each other; from below nothing that is sound does."""
    array = int(measurement.sample.conditions["elements"]) * DOUBLE_BYTES * measurement.ranks
    counted = measurement.sample.metric == "bandwidth_gb_s"
    return limits_of_any(
        measurement, stream_limits(measurement, array, measurement.cores) if counted else ()
    )


BENCHMARK = kernel_benchmark(
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
