"""What Slurm's queue says of the jobs of a run."""

from __future__ import annotations

from pathlib import Path

from clustergate.sites.schedulers.scheduler import why_waiting
from clustergate.sites.schedulers.slurm.commands import said_by_slurm

# A job with nodes that are still being started runs nothing either.
_WAITING = frozenset({"PENDING", "CONFIGURING"})


def waits_for(text: str, folder: Path) -> str | None:
    """Return what a job within a folder waits for, nothing for one that runs, None without one.

    ``text`` are lines of ``squeue`` (``%T|%r|%Z``): state, reason and folder of each job.
    """
    lines = (line.strip().split("|", 2) for line in text.splitlines())
    jobs = (
        ((state if why == "None" else why) if state in _WAITING else "", where)
        for state, why, where in (line for line in lines if len(line) == 3)
    )
    return why_waiting(jobs, folder)


def asked_in_slurm(folder: Path) -> str | None:
    """Ask Slurm, and return what :func:`waits_for` does of the jobs of the account."""
    return waits_for(said_by_slurm(["squeue", "--me", "--noheader", "--format=%T|%r|%Z"]), folder)
