"""The Intel MPI Benchmarks."""
