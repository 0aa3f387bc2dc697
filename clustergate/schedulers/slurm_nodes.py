"""What Slurm says of nodes that it gives to nobody, for a run in which something failed."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator

from clustergate.machine.processes import capture
from clustergate.model import Case
from clustergate.schedulers import SECONDS, SLURM

_USED = frozenset({"allocated", "completing", "idle", "mixed", "planned", "reserved"})
# sinfo(1), "NODE STATE CODES": marks behind a state, for power saving and the like.
_MARKS = "~#!%$@^-+"
_MOST = 5
_COMMAND = ["sinfo", "--noheader", "--format=%N|%T|%E"]


def notes_on_failure(schedulers: Iterable[str], cases: Iterable[Case]) -> list[str]:
    """Return what Slurm says of its nodes when a case failed, nothing when none did."""
    failed = any(case.state.broken for case in cases)
    return notes_of_slurm() if failed and not {*SLURM}.isdisjoint(schedulers) else []


def notes_of_slurm() -> list[str]:
    """Ask Slurm, and return a sentence for each reason; one if Slurm does not answer."""
    try:
        ended = capture(_COMMAND, timeout=SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        return [f"Slurm could not be asked for its nodes ({error})"]
    if ended.returncode:
        last = (ended.stderr.strip().splitlines() or ["sinfo failed"])[-1]
        return [f"Slurm could not be asked for its nodes: {last}"]
    notes = list(unused_nodes(ended.stdout))
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
        yield f"Slurm does not use {nodes}: {', '.join(causes)}"
