"""HPCCG."""

from clustergate.benchmarks.descriptor import Benchmark, Format
from clustergate.benchmarks.hpccg.output import is_hpccg, parse_hpccg

BENCHMARK = Benchmark("hpccg", "HPCCG", Format(is_hpccg, parse_hpccg))
