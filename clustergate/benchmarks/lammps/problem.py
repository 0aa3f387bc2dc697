"""The sizes at which LAMMPS's own benchmark inputs are run. Pure.

Martin et al. (SiCortex SC072, section 7) run them at fixed (strong) or growing (weak) sizes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from clustergate.benchmarks.descriptor import CannotRun
from clustergate.core.words import INPUT_TOO_SMALL, INPUT_UNKNOWN_NAME

# LAMMPS's own inputs: 20 cells of 4 atoms along each edge, and its data.rhodo.
LJ_CELLS, LJ_ATOMS_PER_CELL, RHODO_ATOMS = 20, 4, 32000
# Total energies in the logs that LAMMPS keeps beside its inputs (bench/log.15Jul25.*).
LJ_ENERGY, RHODO_ENERGY = -4.61338, -25356.2
LAMMPS_STEPS = 100
_MODELS, _SCALINGS = ["lj", "rhodo"], ["strong", "weak"]
# What Martin et al. run strong: 4194304 atoms, and one replica of data.rhodo.
STRONG_LJ_CELLS = (64, 128, 128)


def replicas(processes: int) -> tuple[int, int, int]:
    """Return three factors of a number of processes, as near to each other as they can be.

    So a problem grows with the processes and stays as near to a cube as it can, the largest first.
    """
    if processes < 1:
        raise CannotRun(INPUT_TOO_SMALL(name="the processes", least=1, value=processes))
    boxes = [
        (x, y, processes // (x * y))
        for x in range(1, processes + 1)
        if processes % x == 0
        for y in range(1, x + 1)
        if processes // x % y == 0 and processes // (x * y) <= y
    ]
    return min(boxes, key=lambda factors: factors[0] - factors[2])


@dataclass(frozen=True)
class LammpsProblem:
    """A run of one of LAMMPS's benchmark inputs.

    ``script`` is the input's name, ``edges`` are what its variables x, y and z multiply one replica
    by, ``atoms`` are what must then be there, ``energy`` is the total energy before the first step
    (of an atom in units of the potential for ``lj``, of all in kcal/mol for ``rhodo``).
    """

    script: str
    edges: tuple[float, float, float]
    atoms: int
    energy: float

    def arguments(self) -> list[str]:
        """Return the arguments of LAMMPS."""
        words = ["-in", self.script]
        for name, edge in zip("xyz", self.edges, strict=True):
            words += ["-var", name, f"{edge:g}"]
        return words


def lammps_name(model: str, scaling: str) -> str:
    """Return the name of a model's figures, such as ``LAMMPS-lj-strong``."""
    return f"LAMMPS-{model}-{scaling}"


def lammps_problem(model: str, scaling: str, processes: int, replicated: int = 0) -> LammpsProblem:
    """Return the problem of a model (``lj``, ``rhodo``) for ``strong`` or ``weak`` scaling.

    Strong keeps the size that the evaluation had, or ``replicated`` replicas along each edge; weak
    gives each process a replica. Raises :class:`CannotRun` for another model or scaling.
    """
    if model not in _MODELS:
        raise CannotRun(INPUT_UNKNOWN_NAME(kind="model", name=model, known=_MODELS))
    if scaling not in _SCALINGS:
        raise CannotRun(INPUT_UNKNOWN_NAME(kind="scaling", name=scaling, known=_SCALINGS))
    edges: tuple[float, float, float]
    if scaling == "weak":
        edges = replicas(processes)
    elif replicated or model == "rhodo":
        edges = (max(replicated, 1),) * 3
    else:
        x, y, z = STRONG_LJ_CELLS
        edges = (x / LJ_CELLS, y / LJ_CELLS, z / LJ_CELLS)
    if model == "rhodo":
        count = round(math.prod(edges))
        energy = RHODO_ENERGY * count
        return LammpsProblem("in.rhodo.scaled", edges, RHODO_ATOMS * count, energy)
    cells = math.prod(round(LJ_CELLS * edge) for edge in edges)
    return LammpsProblem("in.lj", edges, LJ_ATOMS_PER_CELL * cells, LJ_ENERGY)
