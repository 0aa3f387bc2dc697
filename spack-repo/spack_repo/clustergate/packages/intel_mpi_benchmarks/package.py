"""The Intel MPI Benchmarks, one suite after the other."""

from spack_repo.builtin.packages.intel_mpi_benchmarks import package as builtin


class IntelMpiBenchmarks(builtin.IntelMpiBenchmarks):
    """The builtin recipe, without its parallel make.

    The makefile starts one make per suite in the same folder, and they write the same object files:
    with many cores one links what another is just writing.
    """

    parallel = False
