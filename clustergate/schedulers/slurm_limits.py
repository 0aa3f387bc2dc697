"""What Slurm allows a job: so much time, so many nodes, and no longer than its reservation."""

from __future__ import annotations

import datetime
import functools
import os
import re
import subprocess
import time
from dataclasses import dataclass, replace

from clustergate.machine.processes import capture
from clustergate.model import ClustergateError
from clustergate.schedulers import SECONDS, said_by_slurm
from clustergate.wording.reasons import Reason, reason

SHORTEST_S = 60.0
"""Slurm counts the time limits of jobs in whole minutes."""
# The end of the reservation of all jobs, in seconds since the epoch, and its name: ReFrame and the
# checks are processes of their own, and read it there.
_RESERVATION = "CLUSTERGATE_RESERVATION"


@dataclass(frozen=True)
class Limits:
    """The longest time in seconds and the most nodes of a job; None for what nobody limits.

    ``reservation`` is the one by whose end, ``until``, they are limited, if they are.
    """

    seconds: float | None = None
    nodes: int | None = None
    reservation: str = ""
    until: float = 0.0

    @property
    def why(self) -> Reason:
        """What gives a job no more time."""
        if self.reservation:
            ends_at = f"{datetime.datetime.fromtimestamp(self.until):%H:%M}"
            return reason("limit.reservation", name=self.reservation, ends_at=ends_at)
        return reason("limit.partition", seconds=self.seconds)

    def within_reservation(self, now: float | None = None) -> Limits:
        """Return what is left of it before the reservation ends, at which Slurm ends its jobs."""
        end, _, name = os.environ.get(_RESERVATION, "").partition(" ")
        if not name:
            return self
        until = float(end)
        left_s = max(until - (time.time() if now is None else now), 0.0) // 60 * 60
        if self.seconds is not None and self.seconds <= left_s:
            return self
        return replace(self, seconds=left_s, reservation=name, until=until)


def is_in_reservation() -> bool:
    """Tell whether jobs are for a reservation that :func:`note_reservation` was told of."""
    return _RESERVATION in os.environ


def note_reservation(name: str) -> None:
    """Ask Slurm when a reservation ends, and let no job take longer; nothing where it has no end.

    Raises ClustergateError for one that is not there.
    """
    command = ["scontrol", "show", "reservation", name]
    try:
        own = {**os.environ, "SLURM_TIME_FORMAT": "%s"}
        ended = capture(command, env=own, timeout=SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return
    if f"Reservation {name} not found" in ended.stdout + ended.stderr:
        raise ClustergateError("wish.no-reservation", name=name)
    if end := re.search(r"\bEndTime=(\d+)\b", ended.stdout):
        os.environ[_RESERVATION] = f"{end[1]} {name}"


def limits_in(text: str, partition: str = "") -> Limits:
    """Return the limits of a partition in what ``scontrol show partition`` prints of all of them.

    With no name it is that of the default one; of a partition that is not there there are none.
    """
    wanted = rf"^PartitionName={re.escape(partition)}$" if partition else r"\bDefault=YES\b"
    blocks = re.split(r"\n\s*\n", text)
    text = next((one for one in blocks if re.search(wanted, one, re.MULTILINE)), "")
    time = re.search(r"\bMaxTime=(?:(\d+)-)?(\d+):(\d+):(\d+)\b", text)
    nodes = re.search(r"\bMaxNodes=(\d+)\b", text)
    seconds = None
    if time:
        days, hours, minutes, rest = (int(part or 0) for part in time.groups())
        seconds = float(((days * 24 + hours) * 60 + minutes) * 60 + rest)
    return Limits(seconds, int(nodes[1]) if nodes else None)


@functools.cache
def limits_of(partition: str) -> Limits:
    """Ask Slurm for the limits of a partition, the default one if none is named.

    There are none where it does not say.
    """
    return limits_in(said_by_slurm(["scontrol", "--all", "show", "partition"]), partition)
