"""The NAS Parallel Benchmarks."""
