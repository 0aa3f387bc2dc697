"""Performance per watt, with the boundary of the watts named. Pure functions.

Watts of processors, of sockets with their memory and of a whole system differ by factors; a figure
without its boundary compares with nothing (Martin et al., SiCortex SC072, section 8). They are
measured (RAPL, of the first node, while a program was launched;
:mod:`clustergate.schedulers.slurm_energy`) or stated in the site config.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clustergate.model import Launch, Sample, derived_sample

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
