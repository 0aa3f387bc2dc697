"""LAMMPS."""

from clustergate.benchmarks.descriptor import Benchmark, Format
from clustergate.benchmarks.lammps.output import is_lammps, parse_lammps

BENCHMARK = Benchmark("lammps", "LAMMPS", Format(is_lammps, parse_lammps))
