"""Which switch each node is on, as Slurm or the InfiniBand fabric says it; as far as it does."""

from __future__ import annotations

import re
from pathlib import Path

from clustergate.launching.hostfiles import HostfileError, expand
from clustergate.model import ClustergateError
from clustergate.schedulers import SLURM, said_by_slurm

# A leaf of topology/tree, or a block of topology/block (scontrol(1), show topology).
_LEAF = re.compile(r"^SwitchName=(\S+)\s.*\bLevel=0\b.*\bNodes=(\S+)", re.MULTILINE)
_BLOCK = re.compile(r"^BlockName=(\S+)\s.*\bNodes=(\S+)", re.MULTILINE)
# ibnetdiscover(8): a switch, then a line for each of its ports with what it leads to.
_SWITCH = re.compile(r'^Switch\s+\d+\s+"(S-[0-9a-f]+)"\s*#\s*"([^"]*)"')
# A port of a director has the number on the outside as well: [7][ext 3].
_PORT = re.compile(r'^\[\d+\](?:\[[^\]]*\])?\s+"H-[0-9a-f]+"\[\d+\].*#\s*"([^\s"]+)')
# Of a managed switch: its name, its model, and which of its chips it is: core1:CS7500/L10/U1.
_MANAGED = re.compile(r"MF0;([^:;]+):[^/]*(/.*)?")


def switches_of_slurm(text: str) -> dict[str, str]:
    """Return the switch of each node in what ``scontrol show topology`` prints."""
    switch_of: dict[str, str] = {}
    for switch, nodes in [*_LEAF.findall(text), *_BLOCK.findall(text)]:
        try:
            switch_of |= dict.fromkeys(expand(nodes), switch)
        except HostfileError:
            # "(null)", or a name that no node can have.
            continue
    return switch_of


def switches_of_ibnetdiscover(text: str) -> dict[str, str]:
    """Return the switch of each node in what ``ibnetdiscover`` prints.

    A node is known by the first word of its adapter's description, ``n001 HCA-1``; with several
    adapters it is on the switch of the one that is listed first. A managed switch has a name in its
    description, ``MF0;name:model/U1``, another one is known by its GUID. The boards of a director,
    ``MF0;name:model/L10/U1``, are switches of their own.
    """
    switch_of: dict[str, str] = {}
    switch = ""
    for line in text.splitlines():
        if head := _SWITCH.match(line):
            named = _MANAGED.fullmatch(head[2])
            chip = named[2] or "" if named else ""
            switch = named[1] + chip * (chip != "/U1") if named else head[1]
        elif not line.startswith("["):
            switch = ""
        elif switch and (port := _PORT.match(line)):
            switch_of.setdefault(port[1].partition(".")[0], switch)
    return switch_of


def known_switches(scheduler: str, fabric: Path) -> dict[str, str]:
    """Return the switch of each node as far as Slurm says it, and a file of ibnetdiscover's text.

    The file says it better: an administrator put it there. Raises :class:`ClustergateError` for a
    file that names no node.
    """
    said = said_by_slurm(["scontrol", "show", "topology"]) if scheduler in SLURM else ""
    switch_of = switches_of_slurm(said)
    if fabric.exists():
        try:
            wired = switches_of_ibnetdiscover(fabric.read_text(errors="replace"))
        except OSError as error:
            raise ClustergateError("file.unreadable", path=fabric, why=error) from None
        if not wired:
            raise ClustergateError("screening.no-fabric", path=fabric)
        switch_of |= wired
    return switch_of
