"""How HPCC is built: with a part of the suite's own that can leave RandomAccess out."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

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
from clustergate.machine.kernels import SOURCES

HPCC = Source(
    "hpcc",
    "1.5.0",
    "hpcc-1.5.0.tar.gz",
    "0a6fef7ab9f3347e549fed65ebb98234feea9ee18aea0c8f59baefbe3cf7ffb8",
    "https://icl.cs.utk.edu/projectsfiles/hpcc/download/hpcc-1.5.0.tar.gz",
    debian="hpcc",
    # It is the absence that counts: almost everybody has it.
    key=("", "hpcc"),
)
# HPL lies in it, without a program of its own.
HPL_FOLDERS = ("hpl/src", "hpl/testing")
FOLDERS = (*HPL_FOLDERS, "DGEMM", "FFT", "PTRANS", "RandomAccess", "STREAM", "src")
HPL_DRIVER, SELECTION = SOURCES / "hpl_driver.c", SOURCES / "hpcc_select.c"
# Those CBLAS routines that HPL and HPCC call.
CBLAS_ROUTINES = (
    *("dgemm", "dtrsm", "dgemv", "dtrsv", "dger"),
    *("dscal", "dcopy", "daxpy", "dswap", "idamax"),
)


def blas_options(work: Workplace) -> list[str]:
    """Return the options that let HPL call a BLAS by its C interface."""
    return ["-DHPL_CALL_CBLAS", *work.blas.compile_options(CBLAS_ROUTINES)]


def include_options(top: Path) -> list[str]:
    """Return the options that find the headers of HPCC, and of the HPL in it.

    HPL 2.0 calls what MPI 3 removed. Open MPI 4 has it, and declares it on request alone.
    """
    folders = [f"-I{top / 'hpl' / 'include'}", f"-I{top / 'include'}"]
    return ["-DOMPI_OMIT_MPI1_COMPAT_DECLS=0", *folders]


def commands(work: Workplace) -> Iterable[Command]:
    files = [*c_files(work.top, FOLDERS), str(SELECTION)]
    options = [*blas_options(work), *include_options(work.top)]
    libraries = ["-Wl,--wrap=HPCC_Init", *work.blas.link_options()]
    yield mpicc(work.bin / "hpcc", files, options, libraries, description="HPCC")


BUILD = Build(
    programs=("hpcc",),
    recipes=(Compiled(commands, HPCC, files=(HPL_DRIVER, SELECTION)),),
    package="hpcc",
    unit=COMMON_UNIT,
    uses_blas=True,
)
