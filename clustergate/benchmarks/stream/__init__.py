"""The four operations of STREAM, by a kernel of the suite."""

from clustergate.benchmarks.descriptor import Benchmark, Check, Headline
from clustergate.benchmarks.mpi_kernel import EFFORTS, kernel_build, kernel_format
from clustergate.benchmarks.stream.limits import limits
from clustergate.benchmarks.stream.output import parse_stream

BENCHMARK = Benchmark(
    "stream",
    "STREAM",
    kernel_format("stream", parse_stream),
    checks=(
        Check(
            "StreamCheck",
            "STREAM: memory bandwidth of one node by four operations, a rank on each core",
            tags=frozenset({"published", "published-003", "published-000"}),
        ),
    ),
    efforts=EFFORTS,
    limits=limits,
    headlines=(
        Headline(
            *("STREAM triad", "GB/s", "StreamCheck", "STREAM", "bandwidth_gb_s"),
            {"kernel": "triad"},
        ),
    ),
    place=13,
    build=kernel_build("stream"),
)
