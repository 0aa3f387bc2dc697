"""The HPC Challenge."""
