"""Which switch each node is on, and how far nodes are from each other, as far as anybody says.

That are the scheduler, a file that describes the fabric, and the hostfile.
"""

from __future__ import annotations

import contextlib
import functools
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from clustergate.core.model import DISTANCES, ClustergateError
from clustergate.core.reasons import Words
from clustergate.core.words import FILE_UNREADABLE
from clustergate.launch.hostfiles import Hostfile, HostfileError, expand
from clustergate.sites.schedulers import scheduler_of
from clustergate.sites.schedulers.scheduler import Scheduler

# Slurm, scontrol(1) and topology.conf(5):
#     SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[001-003]
#     SwitchName=leaf1 Nodes=n[001-003]
#     BlockName=b1 Nodes=n[001-018]
# A switch of switches has Switches=, and in what scontrol prints also Nodes=.
_SLURM = re.compile(
    r'^[ \t]*(?:Switch|Block)Name *= *"?([^\s"]+)"?(?=[^#\n]*?\sNodes *= *"?([^\s#"]+))'
    r"(?![^#\n]*\sSwitches *=)",
    re.MULTILINE | re.IGNORECASE,
)
# topology.yaml(5), since Slurm 25.05:
#     - topology: default
#       tree:
#         switches:
#           - switch: leaf1
#             nodes: n[001-003]
_YAML = re.compile(r"^ *- topology:", re.MULTILINE)
_PARENT = re.compile(
    r'^[ \t]*SwitchName *= *"?([^\s"]+)[^#\n]*?\sSwitches *= *"?([^\s#"]+)',
    re.MULTILINE | re.IGNORECASE,
)
# ibnetdiscover(8): a switch, then a line for each of its ports with what it leads to.
#     Switch  41 "S-248a070300000010"  # "MF0;leaf1:MQM8700/U1" enhanced port 0 lid 1 lmc 0
#     [1]     "H-98039b0300aa0001"[1](98039b0300aa0001)  # "n001 mlx5_0" lid 11 4xHDR
_SWITCH = re.compile(r'^Switch\s+\d+\s+"(S-[0-9a-f]+)"\s*#\s*"([^"]*)"')
# A port of a director has the number on the outside as well: [7][ext 3].
_PORT = re.compile(r'^\[\d+\](?:\[[^\]]*\])?\s+"H-[0-9a-f]+"\[\d+\].*#\s*"([^"]+)')
# ibnetdiscover -p: a line for each port, from either end.
#     SW 1 1 0x248a070300000010 4x HDR - CA 11 1 0x98039b0300aa0001 ( 'leaf1' - 'n001 mlx5_0' )
_END = r"\s+\d+\s+\d+\s+0x([0-9a-f]{16})"
_PORT_LINE = re.compile(rf"^SW{_END}\s+\S+\s+\S+\s+-\s+CA{_END}\s+\(\s*'(.*)'\s+-\s+'(.*)'\s*\)")
# Of a managed switch: its name, its model, and which of its chips it is: core1:CS7500/L10/U1.
_MANAGED = re.compile(r"MF0;([^:;]+):[^/]*(/.*)?")


def switches_of_slurm(text: str) -> dict[str, str]:
    """Return the switch of each node in what ``scontrol show topology`` or a topology.conf says.

    Or a topology.yaml.
    """
    switch_of: dict[str, str] = {}
    lines: Iterable[tuple[str, str]] = _SLURM.findall(re.sub(r"\\\r?\n", "", text))
    if _YAML.search(text):
        lines = _in_yaml(text)
    for switch, nodes in lines:
        try:
            switch_of |= dict.fromkeys(expand(nodes), switch)
        except HostfileError:
            # "(null)", or a name that no node can have.
            continue
    return switch_of


def _in_yaml(text: str) -> Iterator[tuple[str, str]]:
    # Few need it.
    import yaml

    try:
        left = [yaml.safe_load(text)]
    except yaml.YAMLError:
        return
    while left:
        one = left.pop()
        if isinstance(one, dict) and (name := one.get("switch") or one.get("block")):
            yield str(name), str(one.get("nodes", ""))
        left += one.values() if isinstance(one, dict) else one if isinstance(one, list) else []


def groups_of_slurm(text: str) -> dict[str, str]:
    """Return the switch above that of each node, in what Slurm says of its topology."""
    above: dict[str, str] = {}
    for switch, below in _PARENT.findall(re.sub(r"\\\n", " ", text)):
        with contextlib.suppress(HostfileError):
            # The lowest that leads to it.
            above = {**dict.fromkeys(expand(below), switch), **above}
    switch_of = switches_of_slurm(text)
    return {node: above[switch] for node, switch in switch_of.items() if switch in above}


def distance_between(
    hosts: Sequence[str], switch_of: Mapping[str, str], group_of: Mapping[str, str]
) -> str:
    """Return how far some nodes are from each other, empty where that is not known.

    Nodes on several switches of which nobody names a group are of one.
    """
    short = {host.partition(".")[0] for host in hosts}
    if len(short) < 2:
        return DISTANCES[0]
    switches = {switch_of.get(host, "") for host in short}
    groups = {group_of.get(host, "") for host in short}
    if "" in switches or (len(groups) > 1 and "" in groups):
        return ""
    if len(switches) == 1:
        return DISTANCES[1]
    return DISTANCES[2] if len(groups) == 1 else DISTANCES[3]


def distance_of(
    hosts: Sequence[str],
    scheduler: str,
    fabric: Path,
    devices: Iterable[str] = (),
    hostfile: Hostfile | None = None,
) -> str:
    """Return what :func:`distance_between` does of all that is known here.

    Of a node that the hostfile places, that counts; a fabric that cannot be read says nothing.
    """
    switch_of, group_of = _known_places(scheduler, fabric, tuple(devices))
    named = hostfile.nodes if hostfile else ()
    own = {node.name.partition(".")[0]: node for node in named if node.switch}
    switches = {**switch_of, **{name: node.switch for name, node in own.items()}}
    groups = {**group_of, **{name: node.rack for name, node in own.items()}}
    return distance_between(hosts, switches, {k: v for k, v in groups.items() if v})


@functools.lru_cache(maxsize=4)
def _known_places(
    scheduler: str, fabric: Path, devices: tuple[str, ...]
) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Return the switch and the group of each node, asked for once by each process."""
    text = ""
    with contextlib.suppress(ClustergateError, OSError):
        switch_of, no_answer = known_switches(scheduler, fabric, devices)
        if not no_answer:
            text = scheduler_of(scheduler).topology()
        text += fabric.read_text(errors="replace") if fabric.exists() else ""
        return switch_of, groups_of_slurm(text)
    return {}, {}


def switches_of_ibnetdiscover(text: str, devices: Iterable[str] = ()) -> dict[str, str]:
    """Return the switch of each node in what ``ibnetdiscover``, with or without ``-p``, prints.

    A node is known by the first word of its adapter's description, ``n001 mlx5_0``. Where its
    adapters are on several switches, it is on that of the ``devices`` that carry messages; on none
    where these are on several too, or are not in the descriptions. A managed switch has a name in
    its description, ``MF0;name:model/U1``, another one is known by its GUID. The boards of a
    director, ``MF0;name:model/L10/U1``, are switches of their own.
    """
    rails: dict[str, dict[str, set[str]]] = {}
    for switch, adapter in _adapters(text):
        device = adapter.partition(" ")[2].strip()
        rails.setdefault(_node(adapter), {}).setdefault(device, set()).add(switch)
    switch_of = {}
    for node, by_device in rails.items():
        used = [by_device[name] for name in devices if name in by_device]
        every = set().union(*by_device.values())
        on = every if len(every) == 1 else set().union(*used)
        if len(on) == 1:
            switch_of[node] = on.pop()
    return switch_of


def _adapters(text: str) -> Iterator[tuple[str, str]]:
    """Yield the switch and the description of each adapter at one."""
    switch = ""
    for line in text.splitlines():
        if head := _SWITCH.match(line):
            switch = _switch_name(head[2], head[1])
        elif of_port := _PORT_LINE.match(line):
            yield _switch_name(of_port[3], f"S-{of_port[1]}"), of_port[4]
        elif not line.startswith("["):
            switch = ""
        elif switch and (port := _PORT.match(line)):
            yield switch, port[1]


def _switch_name(description: str, guid: str) -> str:
    named = _MANAGED.fullmatch(description)
    chip = named[2] or "" if named else ""
    return named[1] + chip * (chip != "/U1") if named else guid


_ATTEMPTS, _PAUSE_S = 3, 2.0


NO_TOPOLOGY = Words(
    "slurm.no-topology",
    "{scheduler} did not tell which switch a node is on ({why})",
    remedy="run this again, or name the switches by switch= in the hostfile",
)


def switches_from_scheduler(scheduler: Scheduler) -> dict[str, str]:
    """Return the switch of each node as far as a scheduler says it, nothing without a topology.

    Raises :class:`ClustergateError` where it does not answer, asked a few times.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return switches_of_slurm(scheduler.topology())
        except ClustergateError as error:
            if attempt == _ATTEMPTS:
                why = error.reason.facts["why"]
                raise ClustergateError(NO_TOPOLOGY(why=why, scheduler=scheduler.name)) from None
        time.sleep(_PAUSE_S)
    return {}


NO_FABRIC = Words(
    "screening.no-fabric",
    "{path} connects no node to a switch",
    remedy="create it again with `ibnetdiscover`, or remove it",
)


def known_switches(
    scheduler: str, fabric: Path, devices: Iterable[str] = ()
) -> tuple[dict[str, str], str]:
    """Return the switch of each node as far as its scheduler and a file on the fabric say it.

    With them comes why that does not say it, empty where it was not asked or did. The file is the
    output of ibnetdiscover, or a topology.conf, and says it better: an administrator put it there.
    ``devices`` are those that carry messages. Raises :class:`ClustergateError` for a file that
    names no node at a switch.
    """
    switch_of, no_answer = {}, ""
    try:
        switch_of = switches_from_scheduler(scheduler_of(scheduler))
    except ClustergateError as error:
        no_answer = str(error)
    if fabric.exists():
        try:
            text = fabric.read_text(errors="replace")
        except OSError as error:
            raise ClustergateError(FILE_UNREADABLE(path=fabric, why=error)) from None
        of_file = switches_of_slurm(text)
        wired = {_node(adapter) for _, adapter in _adapters(text)}
        if not of_file and not wired:
            raise ClustergateError(NO_FABRIC(path=fabric))
        # Of a node with several rails the file says more, and perhaps no one switch.
        switch_of = {node: one for node, one in switch_of.items() if node not in wired}
        switch_of |= of_file | switches_of_ibnetdiscover(text, devices)
    return switch_of, no_answer


def _node(adapter: str) -> str:
    return adapter.partition(" ")[0].partition(".")[0]
