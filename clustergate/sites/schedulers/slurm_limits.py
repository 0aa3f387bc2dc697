"""What Slurm allows a job: so much time, so many nodes, and no longer than its reservation.

A partition says it, its QOS, and the one that the jobs ask for.
"""

from __future__ import annotations

import datetime
import functools
import os
import re
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace

from clustergate.core.environment import export
from clustergate.core.model import ClustergateError
from clustergate.core.reasons import Reason, Words
from clustergate.machine.processes import capture
from clustergate.sites.schedulers import SECONDS, asking, said_by_slurm

SHORTEST_S = 60.0
"""Slurm counts the time limits of jobs in whole minutes."""
# The end of the reservation of all jobs, in seconds since the epoch, and its name, and their QOS:
# ReFrame and the checks are processes of their own, and read it there.
_RESERVATION = "CLUSTERGATE_RESERVATION"
_QOS = "CLUSTERGATE_QOS"
# What "AccountingStorageEnforce" names where the limits of a QOS hold.
_ENFORCED = re.compile(r"^AccountingStorageEnforce\s*=.*\b(limits|safe|all)\b", re.MULTILINE)


LIMIT_PARTITION = Words(
    "limit.partition",
    "the partition gives no job more than {seconds:g} s",
    remedy="raise its MaxTime if that is too little",
)
LIMIT_QOS = Words(
    "limit.qos",
    "the QOS {name} gives no job more than {seconds:g} s",
    remedy="raise its MaxWall or name another one by --qos if that is too little",
)
LIMIT_RESERVATION = Words(
    "limit.reservation",
    "the reservation {name} ends at {ends_at}",
    remedy=(
        "extend it by `scontrol update ReservationName={name} duration=MINUTES` if that is too "
        "little"
    ),
)


@dataclass(frozen=True)
class Limits:
    """The longest time in seconds and the most nodes of a job; None for what nobody limits.

    ``reservation`` is the one by whose end, ``until``, they are limited, if they are, ``qos`` the
    one that gives no more time than that.
    """

    seconds: float | None = None
    nodes: int | None = None
    reservation: str = ""
    until: float = 0.0
    qos: str = ""

    @property
    def why(self) -> Reason:
        """What gives a job no more time."""
        if self.reservation:
            ends_at = f"{datetime.datetime.fromtimestamp(self.until):%H:%M}"
            return LIMIT_RESERVATION(name=self.reservation, ends_at=ends_at)
        if self.qos:
            return LIMIT_QOS(name=self.qos, seconds=self.seconds or 0.0)
        return LIMIT_PARTITION(seconds=self.seconds or 0.0)

    def within_qos(self, name: str, text: str) -> Limits:
        """Return what is left of it by a QOS, in ``scontrol --oneliner show assoc_mgr``."""
        of = re.search(rf"^QOS={re.escape(name)}\(.*", text, re.MULTILINE)
        minutes, nodes = (
            re.search(pattern, of[0] if of else "")
            for pattern in (r"\bMaxWallPJ=(\d+)", r"\bMaxTRESPJ=(?:\S*,)?node=(\d+)")
        )
        limits = self
        if nodes and (self.nodes is None or int(nodes[1]) < self.nodes):
            limits = replace(limits, nodes=int(nodes[1]))
        if minutes and (self.seconds is None or 60.0 * int(minutes[1]) < self.seconds):
            limits = replace(limits, seconds=60.0 * int(minutes[1]), qos=name)
        return limits

    def within_reservation(self, now: float | None = None) -> Limits:
        """Return what is left of it before the reservation ends, at which Slurm ends its jobs."""
        end, _, name = os.environ.get(_RESERVATION, "").partition(" ")
        if not name:
            return self
        until = float(end)
        left_s = max(until - (time.time() if now is None else now), 0.0) // 60 * 60
        if self.seconds is not None and self.seconds <= left_s:
            return self
        return replace(self, seconds=left_s, reservation=name, until=until, qos="")


def is_in_reservation() -> bool:
    """Tell whether jobs are for a reservation that :func:`note_reservation` was told of."""
    return _RESERVATION in os.environ


def note_words(words: Iterable[str]) -> None:
    """Let no job take longer than the reservation and the QOS allow that options of sbatch name.

    Nothing where they set no end. Raises ClustergateError for a reservation that is not there.
    """
    for word in words:
        key, _, name = word.partition("=")
        if key == "reservation":
            _note_reservation(name)
        elif key == "qos":
            export(_QOS, name)


NO_RESERVATION = Words(
    "wish.no-reservation",
    "Slurm has no reservation {name}",
    remedy="`scontrol show reservation` lists those that there are",
)


def _note_reservation(name: str) -> None:
    command = ["scontrol", "show", "reservation", name]
    try:
        ended = capture(command, env=asking(), timeout=SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return
    if f"Reservation {name} not found" in ended.stdout + ended.stderr:
        raise ClustergateError(NO_RESERVATION(name=name))
    if end := re.search(r"\bEndTime=(\d+)\b", ended.stdout):
        export(_RESERVATION, f"{end[1]} {name}")


def limits_in(text: str, partition: str = "") -> Limits:
    """Return the limits of a partition in what ``scontrol show partition`` prints of all of them.

    With no name it is that of the default one; of a partition that is not there there are none.
    """
    text = _block_of(partition, text)
    time = re.search(r"\bMaxTime=(?:(\d+)-)?(\d+):(\d+):(\d+)\b", text)
    nodes = re.search(r"\bMaxNodes=(\d+)\b", text)
    seconds = None
    if time:
        days, hours, minutes, rest = (int(part or 0) for part in time.groups())
        seconds = float(((days * 24 + hours) * 60 + minutes) * 60 + rest)
    return Limits(seconds, int(nodes[1]) if nodes else None)


@functools.cache
def limits_of(partition: str, qos: str = "") -> Limits:
    """Ask Slurm for the limits of a partition, the default one if none is named, and of a QOS.

    A QOS that all jobs ask for counts instead. There are none where Slurm does not say.
    """
    said = said_by_slurm(["scontrol", "--all", "show", "partition"])
    limits = limits_in(said, partition)
    own = re.search(r"\bQoS=([^\s/]+)(?!\S)", _block_of(partition, said))
    names = {own[1] if own else "", os.environ.get(_QOS) or qos} - {""}
    if names and _ENFORCED.search(said_by_slurm(["scontrol", "show", "config"])):
        known = said_by_slurm(["scontrol", "--oneliner", "show", "assoc_mgr", "flags=qos"])
        for name in sorted(names):
            limits = limits.within_qos(name, known)
    return limits


def _block_of(partition: str, text: str) -> str:
    wanted = rf"^PartitionName={re.escape(partition)}$" if partition else r"\bDefault=YES\b"
    blocks = re.split(r"\n\s*\n", text)
    return next((one for one in blocks if re.search(wanted, one, re.MULTILINE)), "")
