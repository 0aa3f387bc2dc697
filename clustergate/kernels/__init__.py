"""The suite's own kernels: their inputs, and what they print."""
