"""The energy of a node's processors, and performance per watt, with their boundary named.

Watts of processors, of sockets with their memory and of a whole system differ by factors; a figure
without its boundary compares with nothing (Martin et al., SiCortex SC072, section 8). They are
measured (RAPL, as Linux shows it under ``/sys/class/powercap``, of the first node, while a program
was launched; :mod:`clustergate.sites.schedulers.slurm.energy`) or stated in the site config. RAPL's
counters are readable for root alone on most kernels since 2020 (CVE-2020-8694), and absent on most
virtual machines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from clustergate.core.model import Launch, Sample, derived_sample
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


PACKAGES = "processor packages"
PACKAGES_AND_MEMORY = "processor packages and memory"
# Rates, and what they are called per watt.
PER_WATT: Mapping[str, str] = {
    "performance_gflops": "gflops_per_w",
    "performance_mflops": "mflops_per_w",
    "total_mop_per_s": "mop_per_j",
    "atom_steps_per_s": "atom_steps_per_j",
}
NOT_AVAILABLE = (
    "power: unavailable; no RAPL counters (/sys/class/powercap), no Slurm energy accounting, and "
    "no watts_per_socket in the site config"
)


@dataclass(frozen=True)
class Power:
    """Watts of all nodes together, and what they are the watts of."""

    watts: float
    boundary: str


def measured_power(launch: Launch, nodes: int) -> Power | None:
    """Return the mean power during a launch, None where the node did not show it.

    It was measured on the first node; the others are taken to be like it.
    """
    packages = launch.node.get("package_energy_j")
    memory = launch.node.get("memory_energy_j")
    if not isinstance(packages, int | float) or packages <= 0 or launch.seconds <= 0:
        return None
    joules, boundary = float(packages), PACKAGES
    if isinstance(memory, int | float) and memory > 0:
        joules, boundary = joules + float(memory), PACKAGES_AND_MEMORY
    source = f"{boundary} by RAPL" + (f" of one node times {nodes}" if nodes > 1 else "")
    return Power(nodes * joules / launch.seconds, source)


def stated_power(
    watts_per_socket: float | None,
    cores_per_socket: int | None,
    cores_per_node: int,
    nodes: int,
    power_of: str = "socket",
) -> Power | None:
    """Return the power of the sockets that are used, as the site config states it, if it does.

    ``power_of`` is its boundary (``socket with memory`` …). So many cores of each node take
    ceil(cores_per_node / cores_per_socket) sockets.
    """
    if watts_per_socket is None or cores_per_socket is None:
        return None
    sockets = nodes * -(-cores_per_node // cores_per_socket)
    return Power(sockets * float(watts_per_socket), f"{power_of} as stated")


def performance_per_watt(
    samples: Sequence[Sample], powers: Mapping[int, Power]
) -> tuple[Sample, ...]:
    """Return each rate per watt, from the power of its launch (by its order)."""
    return tuple(
        derived_sample(sample, metric, sample.value / power.watts, power_of=power.boundary)
        for sample in samples
        if (metric := PER_WATT.get(sample.metric)) and (power := powers.get(sample.order))
    )
