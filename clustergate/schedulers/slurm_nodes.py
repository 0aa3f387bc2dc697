"""What Slurm says of its nodes: how many partitions have, and which it gives to nobody."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from clustergate.machine.processes import capture
from clustergate.model import Case, ClustergateError
from clustergate.schedulers import SECONDS, SLURM

_USED = frozenset({"allocated", "completing", "idle", "mixed", "planned", "reserved"})
# sinfo(1), "NODE STATE CODES": marks behind a state, for power saving and the like.
_MARKS = "~#!%$@^-+"
_MOST = 5
_RESERVED = "; `--reservation NAME` runs in its reservation (`scontrol show reservation`)"
NodesByCores = Mapping[str, Counter[int]]
"""How many nodes of how many cores partitions have, by their names."""
DEFAULT = ""
"""Stands for the partition that a job goes to that names none."""


def notes_on_failure(schedulers: Iterable[str], cases: Iterable[Case]) -> list[str]:
    """Return what Slurm says of its nodes when a case failed, nothing when none did."""
    failed = any(case.state.broken for case in cases)
    return notes_of_slurm() if failed and not {*SLURM}.isdisjoint(schedulers) else []


def notes_of_slurm() -> list[str]:
    """Ask Slurm, and return a sentence for each reason; one if Slurm does not answer."""
    try:
        notes = list(unused_nodes(_sinfo("--format=%N|%T|%E")))
    except ClustergateError as error:
        return [str(error)]
    more = [f"and {len(notes) - _MOST} more reasons: see sinfo -R"] if len(notes) > _MOST else []
    return [*notes[:_MOST], *more]


def unused_nodes(text: str) -> Iterator[str]:
    """Yield a sentence for each line of sinfo (``%N|%T|%E``) about nodes that are not in use."""
    seen = set()
    for line in text.splitlines():
        nodes, _, rest = line.partition("|")
        state, _, reason = rest.partition("|")
        silent = state.endswith("*")
        state = state.rstrip("*").rstrip(_MARKS)
        if (state in _USED and not silent) or (nodes, state) in seen:
            continue
        # A node of several partitions is told for each.
        seen.add((nodes, state))
        causes = [state, "does not respond"] if silent else [state]
        causes += [reason] if reason and reason != "none" else []
        remedy = _RESERVED if state == "maint" else ""
        yield f"Slurm does not use {nodes}: {', '.join(causes)}{remedy}"


def nodes_by_cores(seconds: float = SECONDS) -> NodesByCores:
    """Ask Slurm within so many seconds how many nodes of how many cores its partitions have.

    Raises :class:`ClustergateError` where it does not answer.
    """
    return nodes_in(_sinfo("--all", "--exact", "--format=%P|%D|%X|%Y", seconds=seconds))


def nodes_in(text: str) -> NodesByCores:
    """Return the nodes by their cores, of each partition, in lines of sinfo (``%P|%D|%X|%Y``)."""
    partitions: dict[str, Counter[int]] = {}
    for line in text.splitlines():
        name, _, rest = line.strip().partition("|")
        numbers = rest.split("|")
        if len(numbers) == 3 and all(number.isdecimal() for number in numbers):
            nodes, sockets, cores = map(int, numbers)
            for key in (name.rstrip("*"), *([DEFAULT] if name.endswith("*") else [])):
                partitions.setdefault(key, Counter())[sockets * cores] += nodes
    return partitions


def _sinfo(*options: str, seconds: float = SECONDS) -> str:
    try:
        ended = capture(["sinfo", "--noheader", *options], timeout=seconds)
    except FileNotFoundError:
        raise ClustergateError("slurm.no-answer", why="there is no sinfo on PATH") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ClustergateError("slurm.no-answer", why=error) from None
    if ended.returncode:
        last = (ended.stderr.strip().splitlines() or ["sinfo failed"])[-1]
        raise ClustergateError("slurm.no-answer", why=last)
    return ended.stdout
