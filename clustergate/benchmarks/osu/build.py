"""How the OSU Micro-Benchmarks are built: each program with the files that all share."""

from __future__ import annotations

from collections.abc import Iterable

from clustergate.benchmarks.build import Build, Command, Compiled, Source, Workplace, mpicc

OSU = Source(
    "osu",
    "7.4",
    "osu-micro-benchmarks-7.4.tar.gz",
    "1edd0c2efa61999409bfb28740a7f39689a5b42b1a1b4c66d1656e5637f7cefc",
    "https://mvapich.cse.ohio-state.edu/download/mvapich/osu-micro-benchmarks-7.4.tar.gz",
)
_SHARED = ("", "_mpi", "_validation", "_graph", "_papi")
OF_TWO = ("latency", "bw", "bibw")
OF_PAIRS = ("mbw_mr", "multi_lat")
ONE_SIDED = ("put_latency", "get_latency", "put_bw", "get_bw")
BLOCKING = (
    *("allgather", "allreduce", "alltoall", "barrier", "bcast", "gather", "reduce", "scatter"),
)
NON_BLOCKING = ("iallreduce", "ialltoall", "ibcast")
# By the folder below c/mpi.
_PROGRAMS = {
    "pt2pt/standard": (*OF_TWO, *OF_PAIRS),
    "one-sided": ONE_SIDED,
    "collective/blocking": BLOCKING,
    "collective/non_blocking": NON_BLOCKING,
}


def commands(work: Workplace) -> Iterable[Command]:
    """Yield a call of the wrapper for each program: its configure script only looks for devices."""
    util = work.top / "c" / "util"
    shared = [str(util / f"osu_util{part}.c") for part in _SHARED]
    options = [f'-DPACKAGE_VERSION="{OSU.version}"', f"-I{util}"]
    for folder, names in _PROGRAMS.items():
        for name in names:
            own = work.top / "c" / "mpi" / folder / f"osu_{name}.c"
            libraries = ["-lm", "-lpthread"]
            yield mpicc(work.bin / f"osu_{name}", [str(own), *shared], options, libraries)


BUILD = Build(
    programs=tuple(f"osu_{name}" for names in _PROGRAMS.values() for name in names),
    recipes=(Compiled(commands, OSU),),
    package="osu-micro-benchmarks",
    on_request=True,
)
