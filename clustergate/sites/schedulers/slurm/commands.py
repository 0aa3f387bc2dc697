"""How Slurm's commands are asked, and what squeue says."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from clustergate.core.model import ClustergateError
from clustergate.core.reasons import Words
from clustergate.sites.schedulers.scheduler import SECONDS, answer, why_waiting


def query_environment() -> dict[str, str]:
    """Return an environment in which Slurm's commands leave out nothing, with times in seconds.

    ``SINFO_PARTITION`` and the like narrow what a user sees.
    """
    narrowing = ("SINFO_", "SQUEUE_", "SACCT_")
    own = {name: value for name, value in os.environ.items() if not name.startswith(narrowing)}
    return {**own, "SLURM_TIME_FORMAT": "%s"}


NO_ANSWER = Words(
    "slurm.no-answer",
    "Slurm could not be asked for its nodes: {why}",
    remedy=(
        "run this on a login node of the Slurm system; there `scontrol ping` shows whether its "
        "controller answers"
    ),
)


def answer_of_slurm(command: Sequence[str], seconds: float = SECONDS) -> str:
    """Return what a command of Slurm's prints within so many seconds.

    Raises :class:`ClustergateError` where it fails or does not answer.
    """
    return answer(command, NO_ANSWER, seconds, query_environment())


def output_of_slurm(command: Sequence[str]) -> str:
    """Return what a command of Slurm's prints; nothing when it fails or does not answer."""
    try:
        return answer_of_slurm(command)
    except ClustergateError:
        return ""


# A job with nodes that are still being started runs nothing either.
_WAITING = frozenset({"PENDING", "CONFIGURING"})


def waits_for(text: str, folder: Path) -> str | None:
    """Return what a job within a folder waits for, nothing for one that runs, None without one.

    ``text`` are lines of squeue (``%T|%r|%Z``): state, reason and folder of each job.
    """
    lines = (line.strip().split("|", 2) for line in text.splitlines())
    jobs = (
        ((state if why == "None" else why) if state in _WAITING else "", where)
        for state, why, where in (line for line in lines if len(line) == 3)
    )
    return why_waiting(jobs, folder)
