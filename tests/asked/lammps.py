"""LAMMPS."""

from __future__ import annotations

from clustergate.benchmarks.lammps.output import LammpsExpectation
from clustergate.benchmarks.lammps.problem import LJ_ENERGY, RHODO_ENERGY

ECHO = r"Loop time of"


def asked(text: str) -> LammpsExpectation:
    name, energy = ("lj", LJ_ENERGY) if "lj/cut, perpetual" in text else ("rhodo", RHODO_ENERGY)
    return LammpsExpectation(name, 2, 32000, 100, energy)
