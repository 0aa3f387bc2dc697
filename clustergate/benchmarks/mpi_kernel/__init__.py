"""The suite's own MPI kernels."""

from clustergate.benchmarks.descriptor import Benchmark, Format
from clustergate.kernels.outputs import is_mpi_kernel, parse_mpi_kernel

BENCHMARK = Benchmark(
    "mpi-kernel", "a kernel of the suite", Format(is_mpi_kernel, parse_mpi_kernel)
)
