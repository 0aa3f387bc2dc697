"""What batch systems say of nodes and jobs."""

SLURM = ("slurm", "squeue")
"""The schedulers of ReFrame that are Slurm."""
