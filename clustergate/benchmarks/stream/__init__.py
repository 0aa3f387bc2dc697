"""The four operations of STREAM, by a kernel of the suite."""

from clustergate.benchmarks.descriptor import Check, Headline
from clustergate.benchmarks.mpi_kernel import kernel_benchmark
from clustergate.benchmarks.stream.limits import limits
from clustergate.benchmarks.stream.output import parse_stream

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
)
