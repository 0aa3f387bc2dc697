"""What Slurm says of its nodes: how many partitions have, and which it gives to nobody."""

from __future__ import annotations

from clustergate.core.model import ClustergateError
from clustergate.core.reasons import Words
from clustergate.sites.schedulers.scheduler import DEFAULT, NodeGroup, Queue, Queues
from clustergate.sites.schedulers.slurm.commands import NO_ANSWER

_USED = frozenset({"allocated", "completing", "idle", "mixed", "planned", "reserved"})
# sinfo(1), "NODE STATE CODES": marks behind a state, for power saving and the like.
_MARKS = "~#!%$@^-+"
RESERVED = "`--reservation NAME` runs in its reservation (`scontrol show reservation`)"


NOT_USED = Words("slurm.not-used", "Slurm does not use {nodes}: {causes}", remedy="{remedy}")


def _causes(state: str, why: str, reserved: bool) -> str:
    """Return why Slurm does not use a node of this state (``%T``), empty where it does."""
    silent = state.endswith("*")
    state = state.rstrip("*").rstrip(_MARKS)
    if (state in _USED or (reserved and state == "maint")) and not silent:
        return ""
    known = why if why != "none" else ""
    return ", ".join(filter(None, [state, "does not respond" * silent, known]))


FORMAT = "%P|%D|%X|%Y|%N|%f|%T|%E"


def nodes_in(text: str, *, reserved: bool = False) -> Queues:
    """Return the nodes of each partition in lines of sinfo (``%P|%D|%X|%Y|%N|%f|%T|%E``).

    Jobs in a reservation, ``reserved``, are given its nodes. Raises :class:`ClustergateError` for
    a line that is none: of nodes that it may be about nothing is known.
    """
    partitions: dict[str, Queue] = {}
    has_reason = False
    for line in text.splitlines():
        name, *rest = line.strip().split("|", 7)
        if len(rest) != 7 or not all(number.isdecimal() for number in rest[:3]):
            # A reason that somebody gave may have several lines.
            if has_reason or not line.strip():
                continue
            raise ClustergateError(NO_ANSWER(why=f"sinfo printed {line.strip()[:80]!r}"))
        has_reason = rest[6] != "none"
        nodes, sockets, cores = map(int, rest[:3])
        names, features, state, why = rest[3:]
        alike = NodeGroup(nodes, sockets * cores, names, features, _causes(state, why, reserved))
        for key in (name.rstrip("*"), *([DEFAULT] if name.endswith("*") else [])):
            has = partitions.setdefault(key, Queue())
            if names:
                has.groups.append(alike)
    return partitions
