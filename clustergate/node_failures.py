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
_LONGEST = 200


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
        if named.search(said) and _TROUBLE.search(said):
            return line.strip()[:_LONGEST]
    return ""
