"""How the NAS Parallel Benchmarks are built: a program for each benchmark and class."""

from __future__ import annotations

from collections.abc import Iterable

from clustergate.benchmarks.build import OPTIONS, Build, Command, Compiled, Source, Workplace
from clustergate.benchmarks.npb.rules import NPB_CLASSES, NPB_PROCESSES

NPB = Source(
    "npb",
    "3.4.3",
    "NPB3.4.3.tar.gz",
    "a97c03d7e87ab826fba79c754415a13632c5273877abad270c85201db0f86aeb",
    "https://www.nas.nasa.gov/assets/npb/NPB3.4.3.tar.gz",
)


def npb_program(benchmark: str, problem_class: str) -> str:
    """Return a program's name as NPB 3.4 has it, such as ``bt.C.x``; it runs on any processes."""
    return f"{benchmark}.{problem_class}.x"


def commands(work: Workplace) -> Iterable[Command]:
    """Yield make's call, with the two files that it reads."""
    options = " ".join(OPTIONS)
    # Its calls of MPI disagree in their types, which compilers of today refuse.
    fortran = f"{options} -std=legacy"
    variables = {
        **dict.fromkeys(("MPIFC", "FLINK"), "mpifc"),
        **dict.fromkeys(("MPICC", "CLINK"), "mpicc"),
        **dict.fromkeys(("FMPI_LIB", "FMPI_INC", "CMPI_LIB", "CMPI_INC"), ""),
        **dict.fromkeys(("FFLAGS", "FLINKFLAGS"), fortran),
        **dict.fromkeys(("CFLAGS", "CLINKFLAGS"), options),
        **{"CC": "cc", "UCC": "cc", "BINDIR": str(work.bin), "RAND": "randi8"},
    }
    suite = [program.split(".")[:2] for program in BUILD.programs]
    folder = work.top / "NPB3.4-MPI"
    files = {
        folder / "config" / "make.def": "".join(f"{k} = {v}\n" for k, v in variables.items()),
        folder / "config" / "suite.def": "".join(f"{name}\t{size}\n" for name, size in suite),
    }
    what = "the NAS Parallel Benchmarks, five classes of each"
    yield Command(["make", "-C", str(folder), "-j1", "suite"], what, files)


BUILD = Build(
    programs=tuple(npb_program(b, c) for b in sorted(NPB_PROCESSES) for c in NPB_CLASSES),
    recipes=(Compiled(commands, NPB, tools=("make", "gfortran"), compiler="gfortran"),),
    package="npb",
    # All but IS.
    fortran=True,
    on_request=True,
)
