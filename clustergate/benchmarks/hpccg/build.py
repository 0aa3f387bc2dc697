"""How HPCCG is built."""

from __future__ import annotations

from collections.abc import Iterable

from clustergate.benchmarks.build import Build, Command, Compiled, Source, Workplace, mpicc

PROGRAM = "test_HPCCG"
HPCCG = Source(
    "hpccg",
    "1.0",
    "HPCCG-1.0.tar.gz",
    "5be1b8cc3246811bfc9d6d7072be29455777d61b585675512ae52043ea64cefc",
    "https://downloads.mantevo.org/releaseTarballs/miniapps/HPCCG/HPCCG-1.0.tar.gz",
)


def commands(work: Workplace) -> Iterable[Command]:
    files = [str(path) for path in sorted(work.top.glob("*.cpp"))]
    yield mpicc(work.bin / PROGRAM, files, ["-DUSING_MPI"], description="HPCCG", wrapper="mpicxx")


BUILD = Build(
    programs=(PROGRAM,),
    recipes=(Compiled(commands, HPCCG, tools=("c++",), compiler="c++"),),
    package="hpccg",
    on_request=True,
)
