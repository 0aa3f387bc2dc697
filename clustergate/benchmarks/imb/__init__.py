"""The Intel MPI Benchmarks."""

from clustergate.benchmarks.descriptor import Benchmark, Format
from clustergate.benchmarks.imb.output import is_imb, parse_imb

BENCHMARK = Benchmark("imb", "IMB", Format(is_imb, parse_imb))
