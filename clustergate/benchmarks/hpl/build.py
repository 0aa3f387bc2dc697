"""How HPL is built: from its own archive, or where that cannot be had, from the one of HPCC."""

from __future__ import annotations

from collections.abc import Iterable

from clustergate.benchmarks.build import (
    COMMON_UNIT,
    Build,
    Command,
    Compiled,
    Source,
    Workplace,
    c_files,
    mpicc,
)
from clustergate.benchmarks.hpcc.build import (
    HPCC,
    HPL_DRIVER,
    HPL_FOLDERS,
    blas_options,
    include_options,
)

HPL = Source(
    "hpl",
    "2.3",
    "hpl-2.3.tar.gz",
    # Spack's own recipe checks for the same.
    "32c5c17d22330e6f2337b681aded51637fb6008d3f0eb7c277b163fadd612830",
    "https://www.netlib.org/benchmark/hpl/hpl-2.3.tar.gz",
    key=("hpl", ""),
)


def _upstream(work: Workplace) -> Iterable[Command]:
    files = c_files(work.top, ("src", "testing"))
    yield _compiled(work, files, [f"-I{work.top / 'include'}"])


def _inside_hpcc(work: Workplace) -> Iterable[Command]:
    files = [*c_files(work.top, HPL_FOLDERS), str(HPL_DRIVER)]
    yield _compiled(work, files, include_options(work.top))


def _compiled(work: Workplace, files: list[str], includes: list[str]) -> Command:
    options, libraries = [*blas_options(work), *includes], work.blas.link_options()
    return mpicc(work.bin / "xhpl", files, options, libraries, description="HPL")


BUILD = Build(
    programs=("xhpl",),
    recipes=(
        Compiled(_upstream, HPL),
        Compiled(
            _inside_hpcc,
            HPCC,
            files=(HPL_DRIVER,),
            version="2.0",
            origin=f"the copy inside HPCC {HPCC.version}, compiled here",
        ),
    ),
    package="hpl",
    unit=COMMON_UNIT,
    uses_blas=True,
)
