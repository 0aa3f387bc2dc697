"""The energy that Slurm counts for the steps of a job (``sacct``, ConsumedEnergyRaw).

Slurm counts by steps, so a launch has energy of its own only where it was a step of its own: by
``srun``, or by a launcher that starts its daemons so. What the counter includes depends on Slurm's
plugin (slurm.conf(5), AcctGatherEnergyType).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from clustergate.core.model import Launch
from clustergate.machine.power import PACKAGES_AND_MEMORY, Power

SHORTEST_S = 30.0
"""A launch must last so long: Slurm tells times in whole seconds, and reads its counters rarely."""

_BOUNDARIES: Mapping[str, str] = {
    "rapl": PACKAGES_AND_MEMORY,
    "ipmi": "whole nodes by IPMI",
    "xcc": "whole nodes by their controllers",
    "pm_counters": "whole nodes by their counters",
}
_PLUGIN = re.compile(r"^AcctGatherEnergyType\s*=\s*(?:acct_gather_energy/)?(\S+)", re.MULTILINE)
# What Slurm says for no value (slurm.h: NO_VAL64 and NO_VAL).
_NO_VALUES = frozenset({0xFFFFFFFFFFFFFFFE, 0xFFFFFFFE})
# Start and end are whole seconds, and a launcher needs a moment for its step.
_APART_S = 2.0


@dataclass(frozen=True)
class Step:
    """A step of a job: seconds since the epoch, and joules of all its nodes."""

    name: str
    started: float
    ended: float
    joules: float


def steps_of(text: str) -> Iterator[Step]:
    """Yield the steps that sacct tells energy of.

    ``text`` are lines ``JobIDRaw|Start|End|ConsumedEnergyRaw`` with times since the epoch. The job
    itself and its batch step contain what lies between the launches, and are left out.
    """
    for line in text.splitlines():
        fields = line.split("|")
        if len(fields) != 4 or not re.search(r"\.\d+$", fields[0]):
            continue
        name, *numbers = fields
        if all(number.isdecimal() for number in numbers):
            started, ended, joules = map(int, numbers)
            if joules > 0 and joules not in _NO_VALUES:
                yield Step(name, started, ended, joules)


def boundary_of(configuration: str) -> str:
    """Return what Slurm's counter includes, from ``scontrol show config``; empty for no counter."""
    match = _PLUGIN.search(configuration)
    boundary = _BOUNDARIES.get(match.group(1), "") if match else ""
    return f"{boundary}, told by Slurm" if boundary else ""


def powers_of_launches(
    launches: Iterable[Launch], steps: Sequence[Step], boundary: str
) -> dict[int, Power]:
    """Return the mean power of each launch's own step, by the order of the launch."""
    powers = {}
    for launch in launches:
        own = [step for step in steps if _is_step_of(launch, step)]
        if boundary and len(own) == 1 and launch.seconds >= SHORTEST_S:
            powers[launch.order] = Power(own[0].joules / (own[0].ended - own[0].started), boundary)
    return powers


def _is_step_of(launch: Launch, step: Step) -> bool:
    begin, end = launch.started, launch.started + launch.seconds
    # Slurm cuts fractions of seconds off.
    return abs(step.started - begin) <= _APART_S and abs(step.ended - end) <= _APART_S
