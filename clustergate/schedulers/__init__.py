"""What batch systems say of nodes and jobs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence

from clustergate.machine.processes import capture

SLURM = ("slurm", "squeue")
"""The schedulers of ReFrame that are Slurm."""
PBS = ("pbs", "pbspro")
"""Those that are PBS; Torque has no ``place``."""
SECONDS = 10.0
"""What a command of Slurm's may take: a controller that is down must not hold up the verdict."""


def said_by_slurm(command: Sequence[str]) -> str:
    """Return what a command of Slurm's prints; nothing when it fails or does not answer."""
    try:
        own = {**os.environ, "SLURM_TIME_FORMAT": "%s"}
        ended = capture(command, env=own, timeout=SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ended.stdout if ended.returncode == 0 else ""
