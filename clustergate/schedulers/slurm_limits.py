"""What a partition of Slurm allows a job: so much time, so many nodes."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from clustergate.schedulers import said_by_slurm


@dataclass(frozen=True)
class Limits:
    """The longest time in seconds and the most nodes of a job; None for what nobody limits."""

    seconds: float | None = None
    nodes: int | None = None


def limits_in(text: str) -> Limits:
    """Return the limits in what ``scontrol show partition NAME`` prints; none in anything else."""
    time = re.search(r"\bMaxTime=(?:(\d+)-)?(\d+):(\d+):(\d+)\b", text)
    nodes = re.search(r"\bMaxNodes=(\d+)\b", text)
    seconds = None
    if time:
        days, hours, minutes, rest = (int(part or 0) for part in time.groups())
        seconds = float(((days * 24 + hours) * 60 + minutes) * 60 + rest)
    return Limits(seconds, int(nodes[1]) if nodes else None)


@functools.cache
def limits_of(partition: str) -> Limits:
    """Ask Slurm for the limits of a partition; none where it does not say, or none is named."""
    if not partition:
        return Limits()
    return limits_in(said_by_slurm(["scontrol", "show", "partition", partition]))
