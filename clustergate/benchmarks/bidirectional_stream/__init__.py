"""A stream of messages both ways, by a kernel of the suite."""

from clustergate.benchmarks.bidirectional_stream.limits import limits
from clustergate.benchmarks.bidirectional_stream.output import parse_bidirectional_stream
from clustergate.benchmarks.descriptor import Benchmark, Check, Headline, Sweep
from clustergate.benchmarks.mpi_kernel import EFFORTS, kernel_build, kernel_format

BENCHMARK = Benchmark(
    "bidirectional_stream",
    "bidirectional_stream",
    kernel_format("bidirectional_stream", parse_bidirectional_stream),
    checks=(
        Check(
            "BidirectionalStreamCheck",
            "Messages both ways between two processes without a pause",
            Sweep.PLACEMENTS,
            tags=frozenset({"published", "published-002"}),
        ),
    ),
    efforts=EFFORTS,
    limits=limits,
    headlines=(
        Headline(
            *("stream in both directions best", "MB/s", "BidirectionalStreamCheck"),
            *("bidirectional_stream", "bandwidth_mb_s"),
        ),
    ),
    place=12,
    build=kernel_build("bidirectional_stream"),
)
