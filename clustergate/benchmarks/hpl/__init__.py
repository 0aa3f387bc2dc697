"""HPL."""

from clustergate.benchmarks.descriptor import Benchmark, Format
from clustergate.benchmarks.hpl.output import is_hpl, parse_hpl

BENCHMARK = Benchmark("hpl", "HPL", Format(is_hpl, parse_hpl))
