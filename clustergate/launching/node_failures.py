"""Which node is to blame, by what launchers and schedulers say when a launch fails. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

# Words of ssh, srun, slurmstepd, Hydra, PRRTE and mpirun_rsh about a node that does not take part.
_TROUBLE = re.compile(
    r"error|fail|refused|timed out|no route|unreachable|denied|closed by|could not|cannot|unable|"
    r"not resolve|lost|killed|not respond|dead|down\b",
    re.IGNORECASE,
)
# What slurmstepd says when a job is ended, on the first node, whichever one it was that failed.
_LAST_RITES = re.compile(r"\*\*\* (JOB|STEP) .* CANCELLED")
_LONGEST = 200
# Slurm's words, squeue(1) "JOB STATE CODES"; its exit status may be 0 all the same.
_ENDED = {
    "BOOT_FAIL": "one of its nodes did not boot",
    "CANCELLED": "it was cancelled, by a user, an administrator or the suite itself",
    "DEADLINE": "its deadline passed",
    "NODE_FAIL": "one of its nodes failed or stopped answering",
    "OUT_OF_MEMORY": "it exceeded its memory limit",
    "PREEMPTED": "another job preempted it",
    "TIMEOUT": "its time limit was reached, so a rank hangs or the limit is too short",
}


def ended_by_scheduler(state: str | None) -> str:
    """Return the sentence that the scheduler ended a job in this state, empty if it did not."""
    why = _ENDED.get(state or "")
    return f"the scheduler ended the job ({state}): {why}" if why else ""


def first_node_failure(lines: Iterable[str], hosts: Sequence[str]) -> str:
    """Return the first line of trouble that names one of the hosts, empty when none does.

    The first is the cause, and the others what came of it: a launcher that loses one node ends its
    processes on the others, and says so too.
    """
    if not hosts:
        return ""
    names = "|".join(re.escape(host) for host in sorted(hosts, key=len, reverse=True))
    # Not "n1" of "n10", nor of "slurmstepd-n1", which only tells who speaks.
    named = re.compile(rf"(?<![\w.-])(?:{names})(?![\w-])")
    for line in lines:
        # "[mpiexec@n1]" tells who speaks, too.
        said = re.sub(r"^\[[^\]]*\]", "", line)
        if named.search(said) and _TROUBLE.search(said) and not _LAST_RITES.search(said):
            return line.strip()[:_LONGEST]
    return ""
