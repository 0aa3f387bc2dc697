"""The energy that a node's processors count: RAPL, as Linux shows it under ``/sys/class/powercap``.

The counters are readable for root alone on most kernels since 2020 (CVE-2020-8694), and absent on
most virtual machines: then there is no energy to tell.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from clustergate.machine.kernel_files import integer, word

_FOLDER = "sys/class/powercap"
# Zones by what they count; "core" and "uncore" are parts of their package, and count no more.
_PARTS: Mapping[str, str] = {"package": "package_energy_j", "dram": "memory_energy_j"}


class Counter(NamedTuple):
    """Microjoules since some time; beyond ``range_uj`` it begins at 0 again."""

    part: str
    energy_uj: int
    range_uj: int


def read_energy(root: Path = Path("/")) -> dict[str, Counter]:
    """Return the counters of processor packages and of memory, by the names of their zones."""
    counters = {}
    for folder in sorted((root / _FOLDER).glob("*-rapl:*")):
        name = re.sub(r"-\d+$", "", word(folder / "name") or "")
        energy, largest = integer(folder / "energy_uj"), integer(folder / "max_energy_range_uj")
        # "-mmio" zones count the same packages once more.
        if name in _PARTS and "mmio" not in folder.name and energy is not None and largest:
            counters[folder.name] = Counter(_PARTS[name], energy, largest)
    return counters


def energy_between(before: Mapping[str, Counter], after: Mapping[str, Counter]) -> dict[str, float]:
    """Return the joules between two readings: ``package_energy_j`` and ``memory_energy_j``.

    Each is the sum over all zones of its kind; nothing where a zone came or went. A counter may
    have begun anew once in between: at 250 W one of 65536 J does so every four minutes, and what
    takes longer than :func:`longest_s` cannot be told.
    """
    joules: dict[str, float] = {}
    if before.keys() != after.keys():
        return joules
    for zone, counter in after.items():
        increase = counter.energy_uj - before[zone].energy_uj
        if increase < 0:
            increase += counter.range_uj + 1
        joules[counter.part] = round(joules.get(counter.part, 0.0) + 1e-6 * increase, 6)
    return joules


def longest_s(counters: Mapping[str, Counter], watts: float = 500.0) -> float:
    """Return how many seconds a reading is good for when a package takes so many watts."""
    return min((1e-6 * counter.range_uj / watts for counter in counters.values()), default=0.0)
