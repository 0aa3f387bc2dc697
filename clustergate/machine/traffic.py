"""Through which network a node sent what: whether the fabric that was meant carried a launch."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path

from clustergate.machine.kernel_files import integer, text

# What leaves a node beside the messages: ssh, the scheduler, the shared file system.
_BESIDE = 1 << 20
# port_xmit_data counts words of four octets: Documentation/ABI/stable/sysfs-class-infiniband.
_OCTETS = 4


def read_sent(root: Path = Path("/")) -> dict[str, int]:
    """Return the bytes that each network device has sent since boot, the loopback left out.

    InfiniBand and Omni-Path adapters count what passes by the kernel, under names of their own.
    """
    sent = {}
    # interface: 8 figures of what was received, then bytes of what was sent, proc(5).
    pattern = r"^ *([^\s:]+):((?: *[0-9]{1,20}){9})"
    for name, figures in re.findall(pattern, text(root / "proc/net/dev") or "", re.MULTILINE):
        if name != "lo":
            sent[name] = int(figures.split()[8])
    for port in sorted(root.glob("sys/class/infiniband/*/ports/*/counters/port_xmit_data")):
        words = integer(port)
        if words is not None:
            name = port.parents[3].name
            sent[name] = sent.get(name, 0) + words * _OCTETS
    return sent


def sent_between(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """Return the bytes sent between two readings, by device; those that sent nothing left out."""
    sent = {name: count - before.get(name, 0) for name, count in after.items()}
    return {name: count for name, count in sent.items() if count > 0}


def beside_the_fabric(sent: Mapping[str, int], fabric: Collection[str]) -> str:
    """Return the sentence that a launch went through another network than meant, empty if not.

    ``fabric`` names the devices that were to carry it. TCP over InfiniBand counts for the adapter
    and for its network interface, and is told as well.
    """
    meant = sum(count for name, count in sent.items() if name in fabric)
    others = {name: count for name, count in sent.items() if name not in fabric}
    if sum(others.values()) <= max(_BESIDE, meant / 2):
        return ""
    volumes = ", ".join(f"{count / 1e6:.1f} MB through {name}" for name, count in others.items())
    return (
        f"the first node sent {volumes} and {meant / 1e6:.1f} MB through {', '.join(fabric)}, the "
        "fabric of this partition: the MPI library fell back to another network; look for a driver "
        "that is not loaded, a port that is down, or a library built without that fabric"
    )
