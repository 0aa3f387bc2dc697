"""The NAS Parallel Benchmarks."""

from clustergate.benchmarks.descriptor import Benchmark, Format
from clustergate.benchmarks.npb.output import is_npb, parse_npb

BENCHMARK = Benchmark("npb", "NPB", Format(is_npb, parse_npb))
