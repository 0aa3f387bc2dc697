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
# Of a file or folder that a node lacks, as the C library, shells and the loader say it.
_LACKS = re.compile(
    r"No such file or directory|Permission denied|Stale file handle|Input/output error|"
    r"Transport endpoint is not connected|No space left on device|Read-only file system|"
    r"Exec format error|command not found|cannot open shared object file"
)
# What ssh says of itself is no file of the node.
_NO_FILE = re.compile(r"\((?:publickey|password|gssapi|keyboard|hostbased)|Host key verification")
# What comes of it: srun's word on a rank that ended.
_CAME_OF_IT = re.compile(r"\btasks? \d[\d,-]*: (?:Exited|Killed|Terminated)|[Ee]xit code")
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


def cause_of(lines: Sequence[str], hosts: Sequence[str], *, was_ended: bool = False) -> str:
    """Return the line that tells why a launch failed, empty where none does.

    That is the trouble of a host, by its name; what a node lacks, which the node itself says
    without its name, where that is missing or only what came of it. Of a launch that ``was_ended``
    the latter tells nothing.
    """
    named = first_node_failure(lines, hosts)
    if named and not _CAME_OF_IT.search(named):
        return named
    lacks = (x for x in lines if _LACKS.search(x) and not _NO_FILE.search(x))
    return next(lacks, "" if was_ended else named).strip()[:_LONGEST]
