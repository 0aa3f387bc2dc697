"""The benchmarks, a folder for each: what it takes and what it prints."""
