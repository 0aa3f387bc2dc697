"""What Slurm's queue says of the jobs of a run."""

from __future__ import annotations

from pathlib import Path

from clustergate.sites.schedulers.slurm.commands import said_by_slurm

# A job with nodes that are still being started runs nothing either.
_WAITING = frozenset({"PENDING", "CONFIGURING"})


def waits_for(text: str, folder: Path) -> str | None:
    """Return what a job within a folder waits for, nothing for one that runs, None without one.

    ``text`` are lines of ``squeue`` (``%T|%r|%Z``): state, reason and folder of each job.
    """
    for line in text.splitlines():
        state, _, rest = line.strip().partition("|")
        why, _, where = rest.partition("|")
        if folder in Path(where).parents:
            return (state if why == "None" else why) if state in _WAITING else ""
    return None


def asked_in_slurm(folder: Path) -> str | None:
    """Ask Slurm, and return what :func:`waits_for` does of the jobs of the account."""
    return waits_for(said_by_slurm(["squeue", "--me", "--noheader", "--format=%T|%r|%Z"]), folder)
