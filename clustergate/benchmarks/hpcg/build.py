"""How HPCG is built: its reference code, a process on each core."""

from __future__ import annotations

from collections.abc import Iterable

from clustergate.benchmarks.build import Build, Command, Compiled, Source, Workplace, mpicc

PROGRAM = "xhpcg"
HPCG = Source(
    "hpcg",
    "3.1",
    "hpcg-3.1.tar.gz",
    "33a434e716b79e59e745f77ff72639c32623e7f928eeb7977655ffcaade0f4a4",
    "https://www.hpcg-benchmark.org/downloads/hpcg-3.1.tar.gz",
)


def commands(work: Workplace) -> Iterable[Command]:
    """Yield one call of the wrapper, with the options of HPCG's own setup/Make.Linux_MPI."""
    files = [str(path) for path in sorted((work.top / "src").glob("*.cpp"))]
    options = ["-DHPCG_NO_OPENMP", "-ffast-math", f"-I{work.top / 'src'}"]
    yield mpicc(work.bin / PROGRAM, files, options, description="HPCG", wrapper="mpicxx")


BUILD = Build(
    programs=(PROGRAM,),
    recipes=(Compiled(commands, HPCG, tools=("c++",), compiler="c++"),),
    package="hpcg",
    on_request=True,
)
