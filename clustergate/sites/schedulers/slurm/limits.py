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
from dataclasses import replace

from clustergate.core.environment import export
from clustergate.core.model import ClustergateError
from clustergate.core.reasons import Words
from clustergate.machine.processes import capture
from clustergate.sites.schedulers.scheduler import SECONDS, Limits
from clustergate.sites.schedulers.slurm.commands import output_of_slurm, query_environment

LIMIT_PARTITION = Words(
    "limit.partition",
    "the partition limits jobs to {seconds:g} s",
    remedy="raise its MaxTime if that is too little",
)
LIMIT_QOS = Words(
    "limit.qos",
    "the QOS {name} limits jobs to {seconds:g} s",
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
# The end of the reservation of all jobs, in seconds since the epoch, and its name, and their QOS:
# ReFrame and the checks are processes of their own, and read it there.
_RESERVATION = "CLUSTERGATE_RESERVATION"
_QOS = "CLUSTERGATE_QOS"
# What "AccountingStorageEnforce" names where the limits of a QOS hold.
_ENFORCED = re.compile(r"^AccountingStorageEnforce\s*=.*\b(limits|safe|all)\b", re.MULTILINE)


def within_qos(limits: Limits, name: str, text: str) -> Limits:
    """Return what is left of limits by a QOS, in ``scontrol --oneliner show assoc_mgr``."""
    of = re.search(rf"^QOS={re.escape(name)}\(.*", text, re.MULTILINE)
    minutes, nodes = (
        re.search(pattern, of[0] if of else "")
        for pattern in (r"\bMaxWallPJ=(\d+)", r"\bMaxTRESPJ=(?:\S*,)?node=(\d+)")
    )
    within = limits
    if nodes and (limits.nodes is None or int(nodes[1]) < limits.nodes):
        within = replace(within, nodes=int(nodes[1]))
    if minutes and (limits.seconds is None or 60.0 * int(minutes[1]) < limits.seconds):
        seconds = 60.0 * int(minutes[1])
        within = replace(within, seconds=seconds, why=LIMIT_QOS(name=name, seconds=seconds))
    return within


def within_reservation(limits: Limits, now: float | None = None) -> Limits:
    """Return what is left of limits before the reservation ends, at which Slurm ends its jobs."""
    end, _, name = os.environ.get(_RESERVATION, "").partition(" ")
    if not name:
        return limits
    until = float(end)
    left_s = max(until - (time.time() if now is None else now), 0.0) // 60 * 60
    if limits.seconds is not None and limits.seconds <= left_s:
        return limits
    ends_at = f"{datetime.datetime.fromtimestamp(until):%H:%M}"
    why = LIMIT_RESERVATION(name=name, ends_at=ends_at)
    return replace(limits, seconds=left_s, until=until, why=why)


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
        ended = capture(command, env=query_environment(), timeout=SECONDS)
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
    limits = Limits(nodes=int(nodes[1]) if nodes else None)
    if time:
        days, hours, minutes, rest = (int(part or 0) for part in time.groups())
        seconds = float(((days * 24 + hours) * 60 + minutes) * 60 + rest)
        limits = replace(limits, seconds=seconds, why=LIMIT_PARTITION(seconds=seconds))
    return limits


@functools.cache
def limits_of(partition: str, qos: str = "") -> Limits:
    """Ask Slurm for the limits of a partition, the default one if none is named, and of a QOS.

    A QOS that all jobs ask for counts instead. There are none where Slurm does not say.
    """
    said = output_of_slurm(["scontrol", "--all", "show", "partition"])
    limits = limits_in(said, partition)
    own = re.search(r"\bQoS=([^\s/]+)(?!\S)", _block_of(partition, said))
    names = {own[1] if own else "", os.environ.get(_QOS) or qos} - {""}
    if names and _ENFORCED.search(output_of_slurm(["scontrol", "show", "config"])):
        known = output_of_slurm(["scontrol", "--oneliner", "show", "assoc_mgr", "flags=qos"])
        for name in sorted(names):
            limits = within_qos(limits, name, known)
    return limits


def _block_of(partition: str, text: str) -> str:
    wanted = rf"^PartitionName={re.escape(partition)}$" if partition else r"\bDefault=YES\b"
    blocks = re.split(r"\n\s*\n", text)
    return next((one for one in blocks if re.search(wanted, one, re.MULTILINE)), "")
