"""How the figures of a machine scatter that is simulated. Pure: all that is drawn has a seed.

A figure is what it is when nothing disturbs it, times the exponential of what is drawn here: for
its day, partly shared by all figures of its kind, and for each launch. In heavy tails some launches
of a figure have a spike, which may come again when it is launched again on the same day.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

COMPUTE, MEMORY, LATENCY, BANDWIDTH, COLLECTIVE = KINDS = (
    "compute", "memory", "latency", "bandwidth", "collectives",
)  # fmt: skip
LARGE_BYTES = 64 << 10
"""From that size on a message is bandwidth, below it latency."""


@dataclass(frozen=True)
class Noise:
    """Standard deviations of a launch and of a day, in percent."""

    launch: float
    day: float


@dataclass(frozen=True)
class Machine:
    """How the figures of a machine scatter, by kinds.

    ``shared`` is the part of a day's variance that all figures of a kind share, ``spikes`` the
    share of launches of a figure with a spike, exponential with a mean of ``spike`` standard
    deviations, which a later launch of that day has ``again`` with such a chance. ``levels`` are
    those of small messages by the distance of the nodes that a run gets, with their chances.
    """

    name: str
    noise: Mapping[str, Noise]
    exclusive: bool = True
    shared: float = 0.5
    spikes: float = 0.0
    spike: float = 5.0
    again: float = 0.0
    levels: Sequence[tuple[float, float]] = ((1.0, 0.5), (1.3, 0.3), (1.5, 0.2))

    def scaled(self, name: str, times: float) -> Machine:
        """Return a machine of another name that is so many times as noisy."""
        noise = {
            kind: Noise(times * one.launch, times * one.day) for kind, one in self.noise.items()
        }
        return dataclasses.replace(self, name=name, noise=noise)

    def sd(self, kinds: Sequence[str]) -> tuple[Array, Array]:
        """Return the standard deviations of a launch and of a day of some figures, by kinds."""
        each = np.array([(self.noise[kind].launch, self.noise[kind].day) for kind in kinds]) / 100
        return each[:, 0], each[:, 1]


def _kinds(*noise: tuple[float, float]) -> dict[str, Noise]:
    return {kind: Noise(*one) for kind, one in zip(KINDS, noise, strict=True)}


BARE_METAL = Machine(
    "bare metal", _kinds((0.5, 0.7), (1.0, 0.5), (2.0, 2.0), (1.0, 0.5), (4.0, 2.0))
)
# What many nodes do to collectives.
LARGE = Machine(
    "bare metal, 64 nodes", _kinds((0.5, 0.7), (1.0, 0.5), (2.0, 2.0), (1.0, 0.5), (15.0, 5.0))
)
HEAVY = dataclasses.replace(BARE_METAL, name="bare metal, heavy tails", spikes=0.05)
# As slow launches of real machines are slow the next time.
RECURRING = dataclasses.replace(HEAVY, name="bare metal, spikes that recur", again=0.35)
NOISY = BARE_METAL.scaled("four times noisier", 4.0)
CLOUD = Machine(
    "cloud", _kinds((0.5, 0.5), (2.0, 2.0), (5.0, 2.0), (4.0, 3.0), (20.0, 5.0)), spikes=0.05
)
SHARED = Machine(
    "shared",
    _kinds((3.0, 5.0), (5.0, 5.0), (12.0, 10.0), (12.0, 10.0), (20.0, 10.0)),
    exclusive=False,
    spikes=0.05,
)
MACHINES: Mapping[str, Machine] = {
    machine.name: machine for machine in (BARE_METAL, LARGE, HEAVY, RECURRING, NOISY, CLOUD, SHARED)
}


def day_of(machine: Machine, kinds: Sequence[str], lot: np.random.Generator) -> Array:
    """Return by how much each figure is slower on a day, as logarithms."""
    _, sd = machine.sd(kinds)
    of_kind = dict(zip(KINDS, lot.normal(size=len(KINDS)), strict=True))
    shared = np.array([of_kind[kind] for kind in kinds])
    own = lot.normal(size=len(kinds))
    both = np.sqrt(machine.shared) * shared + np.sqrt(1.0 - machine.shared) * own
    return np.asarray(sd * both)


def launches_of(
    machine: Machine,
    kinds: Sequence[str],
    count: int,
    lot: np.random.Generator,
    before: Array | None = None,
) -> tuple[Array, Array]:
    """Return by how much each figure is slower in some launches, and what of it are spikes.

    ``before`` are the spikes of the launches of the same day before these. Both are logarithms of
    the shape (launches, figures).
    """
    sd, _ = machine.sd(kinds)
    shape = (count, len(kinds))
    noise = lot.normal(size=shape) * sd
    spikes = np.where(
        lot.random(shape) < machine.spikes, lot.exponential(machine.spike * sd, shape), 0.0
    )
    if before is not None and machine.again:
        last = np.resize(before, shape)
        spikes = np.where(lot.random(shape) < machine.again, np.maximum(last, spikes), spikes)
    return noise + spikes, spikes


def level_of(machine: Machine, lot: np.random.Generator) -> int:
    """Return which of its levels of small messages a run gets with its nodes."""
    chances = np.array([chance for _, chance in machine.levels])
    return int(lot.choice(len(chances), p=chances / chances.sum()))
