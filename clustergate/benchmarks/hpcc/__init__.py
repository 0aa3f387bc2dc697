"""The HPC Challenge."""

from clustergate.benchmarks.descriptor import Benchmark, Format
from clustergate.benchmarks.hpcc.output import METRICS, is_hpcc, parse_hpcc

BENCHMARK = Benchmark("hpcc", "HPCC", Format(is_hpcc, parse_hpcc), METRICS)
