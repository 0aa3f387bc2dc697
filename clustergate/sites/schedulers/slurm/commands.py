"""How Slurm's commands are asked."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence

from clustergate.core.model import ClustergateError
from clustergate.core.reasons import Words
from clustergate.machine.processes import capture
from clustergate.sites.schedulers.scheduler import SECONDS


def asking() -> dict[str, str]:
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
    try:
        ended = capture(command, env=asking(), timeout=seconds)
    except FileNotFoundError:
        raise ClustergateError(NO_ANSWER(why=f"there is no {command[0]} on PATH")) from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ClustergateError(NO_ANSWER(why=error)) from None
    if ended.returncode:
        last = (ended.stderr.strip().splitlines() or [f"{command[0]} failed"])[-1]
        raise ClustergateError(NO_ANSWER(why=last))
    return ended.stdout


def said_by_slurm(command: Sequence[str]) -> str:
    """Return what a command of Slurm's prints; nothing when it fails or does not answer."""
    try:
        return answer_of_slurm(command)
    except ClustergateError:
        return ""
