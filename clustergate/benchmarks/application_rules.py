"""What the published evaluations' applications can be run with: process counts and inputs. Pure.

The rules are those of the NAS Parallel Benchmarks (README of NPB 3.3 and 3.4, MPI version) and of
two published evaluations: Pase (IBM e326 and x336, section 3.4) runs NPB of class C; Martin et al.
(SiCortex SC072, section 7) run HPCCG and LAMMPS at fixed (strong) or growing (weak) sizes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from clustergate.model import ClustergateError

NPB_CLASSES = ("S", "W", "A", "B", "C")
_SQUARE, _POWER_OF_TWO, _ANY = "a square", "a power of two", "any number"
NPB_PROCESSES: Mapping[str, str] = {
    **dict.fromkeys(("bt", "sp"), _SQUARE),
    **dict.fromkeys(("cg", "ft", "is", "lu", "mg"), _POWER_OF_TWO),
    "ep": _ANY,
}

# LAMMPS's own inputs: 20 cells of 4 atoms along each edge, and its data.rhodo.
LJ_CELLS, LJ_ATOMS_PER_CELL, RHODO_ATOMS = 20, 4, 32000
# Total energies in the logs that LAMMPS keeps beside its inputs (bench/log.15Jul25.*).
LJ_ENERGY, RHODO_ENERGY = -4.61338, -25356.2
LAMMPS_STEPS = 100
# What Martin et al. run strong: 4194304 atoms, and one replica of data.rhodo.
STRONG_LJ_CELLS = (64, 128, 128)
HPCCG_EDGE = 64


class ApplicationError(ClustergateError):
    """An application cannot run like this: its own rules do not allow it."""


def is_allowed(benchmark: str, processes: int) -> bool:
    """Tell whether a benchmark of NPB runs on so many processes."""
    if processes < 1:
        return False
    rule = NPB_PROCESSES[benchmark]
    if rule == _SQUARE:
        return math.isqrt(processes) ** 2 == processes
    return rule == _ANY or processes & (processes - 1) == 0


def npb_processes(benchmark: str, asked: int, available: int) -> int:
    """Return how many processes run a benchmark of NPB: as asked, or the most that may.

    ``asked`` 0 leaves it open. Raises :class:`ApplicationError` for a number that the benchmark
    does not run on.
    """
    if asked == 0:
        return max(count for count in range(1, available + 1) if is_allowed(benchmark, count))
    if not is_allowed(benchmark, asked):
        raise ApplicationError(
            f"{benchmark.upper()} of the NAS Parallel Benchmarks runs on {NPB_PROCESSES[benchmark]}"
            f" of processes, and {asked} were asked for"
        )
    return asked


def npb_class(name: str) -> str:
    """Return the name of a problem size, S to C; raises :class:`ApplicationError` for another."""
    if name not in NPB_CLASSES:
        known = ", ".join(NPB_CLASSES)
        raise ApplicationError(f"NPB has no class {name!r} here; known: {known}")
    return name


def replicas(processes: int) -> tuple[int, int, int]:
    """Return three factors of a number of processes, as near to each other as they can be.

    So a problem grows with the processes and stays as near to a cube as it can, the largest first.
    """
    if processes < 1:
        raise ApplicationError(f"a problem cannot grow with {processes} processes")
    found = [
        (x, y, processes // (x * y))
        for x in range(1, processes + 1)
        if processes % x == 0
        for y in range(1, x + 1)
        if processes // x % y == 0 and processes // (x * y) <= y
    ]
    return min(found, key=lambda factors: factors[0] - factors[2])


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
        """Return the arguments of ``lmp``."""
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
    gives each process a replica. Raises :class:`ApplicationError` for another model or scaling.
    """
    if model not in ("lj", "rhodo"):
        raise ApplicationError(f"there is no model {model!r}; known: lj, rhodo")
    if scaling not in ("strong", "weak"):
        raise ApplicationError(f"there is no scaling {scaling!r}; known: strong, weak")
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


def hpccg_arguments(edge: int = HPCCG_EDGE) -> list[str]:
    """Return the arguments of HPCCG: the block of each process, so that it always scales weakly."""
    if edge < 2:
        raise ApplicationError(f"a block must have an edge of 2 at least, not {edge}")
    return [str(edge)] * 3
