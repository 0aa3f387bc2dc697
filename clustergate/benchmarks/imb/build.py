"""How the Intel MPI Benchmarks are had: Intel's own binaries, or compiled where they do not run."""

from __future__ import annotations

from collections.abc import Iterable

from clustergate.benchmarks.build import (
    COMMON_UNIT,
    Build,
    Command,
    Compiled,
    Source,
    Wheel,
    Workplace,
)

SUITES = ("IMB-MPI1", "IMB-RMA", "IMB-NBC", "IMB-P2P", "IMB-MT")
IMB = Source(
    "imb",
    "2021.7",
    "IMB-v2021.7.tar.gz",
    "acee02cc719a74e6853194576cb7e6bf1fdc74f8971578e1b2141306c3c19477",
    "https://github.com/intel/mpi-benchmarks/archive/refs/tags/IMB-v2021.7.tar.gz",
    key=("imb", ""),
)


def commands(work: Workplace) -> Iterable[Command]:
    """Yield make's call; the suites share object files, so one at a time."""
    make = ["make", "-C", str(work.top), "-j1", "CC=mpicc", "CXX=mpicxx", *SUITES]
    yield Command(make, f"IMB {IMB.version}")
    yield Command(["cp", *(str(work.top / suite) for suite in SUITES), str(work.bin)])


BUILD = Build(
    programs=SUITES,
    recipes=(
        # IMB-MT wants Intel's OpenMP library, but not the MPI that lies beside it.
        Wheel(
            pins="intel-mpi.txt",
            folder="bin",
            origin="Intel's binary from its wheel",
            version="2021.11",
            libraries=("lib/libiomp5.so",),
        ),
        Compiled(commands, IMB, tools=("make", "c++")),
    ),
    package="intel-mpi-benchmarks",
    unit=COMMON_UNIT,
)
