"""Compile the benchmarks and the suite's own kernels with a stack's compiler wrapper."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from clustergate.machine.environment import clean_environment
from clustergate.model import ClustergateError

# Binaries are made on the machine they run on; the kernels of HPCC outside BLAS (STREAM, FFT,
# RandomAccess) are as good as the compiler's vectors.
OPTIMISATION = ("-O3", "-march=native")
# HPL and HPCC are older than the warnings of today's compilers.
QUIET = ("-w",)
HPL_FOLDERS = ("hpl/src", "hpl/testing")
HPCC_FOLDERS = (*HPL_FOLDERS, "DGEMM", "FFT", "PTRANS", "RandomAccess", "STREAM", "src")
# Those that HPL and HPCC call.
CBLAS_ROUTINES = (
    *("dgemm", "dtrsm", "dgemv", "dtrsv", "dger"),
    *("dscal", "dcopy", "daxpy", "dswap", "idamax"),
)


class CompilationError(ClustergateError):
    """A compiler is missing or failed; the sentence names the log."""


@dataclass(frozen=True)
class BlasLinkage:
    """How programs are compiled against a BLAS: folders, the library's file and a name prefix."""

    include: Path
    library: Path
    symbol_prefix: str = ""

    def compile_options(self) -> list[str]:
        """Return the options that rename the CBLAS routines to those of this library."""
        renames = [
            f"-Dcblas_{routine}={self.symbol_prefix}cblas_{routine}"
            for routine in CBLAS_ROUTINES
            if self.symbol_prefix
        ]
        return [*renames, f"-I{self.include}"]

    def link_options(self) -> list[str]:
        """Return the options that link this library and find it again at run time."""
        return [str(self.library), f"-Wl,-rpath,{self.library.parent}", "-lm"]


def compiler_identity(named: str = "cc") -> str:
    """Return the first line of ``cc --version``, or of another compiler's.

    Raises :class:`CompilationError` when there is no C compiler.
    """
    compiler = shutil.which(named) or shutil.which("gcc")
    if compiler is None:
        raise CompilationError(
            "there is no C compiler (cc or gcc) on PATH; install one (Debian: apt install gcc "
            "libc6-dev, Red Hat: dnf install gcc) and run the command again"
        )
    ended = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False)
    return ended.stdout.partition("\n")[0].strip()


def build_key(ingredients: Sequence[str], files: Sequence[Path]) -> str:
    """Return a short key of all that a build depends on: equal keys, equal builds."""
    digest = hashlib.sha256()
    digest.update(json.dumps([platform.machine(), *ingredients]).encode())
    for path in files:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def c_files(top: Path, folders: Sequence[str]) -> list[str]:
    """Return every C file below the named folders, in a fixed order."""
    return [str(path) for folder in folders for path in sorted((top / folder).rglob("*.c"))]


def npb_settings(programs: Sequence[str], binaries: Path) -> dict[str, str]:
    """Return the two files that NPB's make reads, for programs such as ``bt.C.x``."""
    options = " ".join([*OPTIMISATION, *QUIET])
    # Its calls of MPI disagree in their types, which compilers of today refuse.
    fortran = f"{options} -std=legacy"
    variables = {
        **dict.fromkeys(("MPIFC", "FLINK"), "mpifc"),
        **dict.fromkeys(("MPICC", "CLINK"), "mpicc"),
        **dict.fromkeys(("FMPI_LIB", "FMPI_INC", "CMPI_LIB", "CMPI_INC"), ""),
        **dict.fromkeys(("FFLAGS", "FLINKFLAGS"), fortran),
        **dict.fromkeys(("CFLAGS", "CLINKFLAGS"), options),
        **{"CC": "cc", "UCC": "cc", "BINDIR": str(binaries), "RAND": "randi8"},
    }
    suite = [program.split(".")[:2] for program in programs]
    return {
        "make.def": "".join(f"{name} = {value}\n" for name, value in variables.items()),
        "suite.def": "".join(f"{name}\t{letter}\n" for name, letter in suite),
    }


def plain_wrapper(compiler: str, prefix: Path) -> str:
    """Return a script that compiles as MPICH's own wrapper does, whatever its prefix is called."""
    include, libraries = shlex.quote(str(prefix / "include")), shlex.quote(str(prefix / "lib"))
    find = f"-L{libraries} -Wl,-rpath,{libraries} -Wl,--enable-new-dtags -lmpi"
    return f'#!/bin/sh\nexec {compiler} -DMPICH_SKIP_MPICXX "$@" -I{include} {find}\n'


def run_compiler(command: Sequence[str], environment: dict[str, str], log: Path) -> None:
    """Run a compiler, its output in ``log``; a failure is one sentence that names the log."""
    with log.open("a", encoding="utf-8") as file:
        file.write(f"$ {' '.join(command)}\n")
        file.flush()
        try:
            ended = subprocess.run(
                command,
                env={**clean_environment(os.environ).environment, **environment},
                stdout=file,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                check=False,
            )
        except OSError as error:
            raise CompilationError(
                f"{command[0]} cannot be started: {error.strerror}; see {log}"
            ) from None
    if ended.returncode:
        raise CompilationError(f"{_complaint(log)}; the compiler's output is in {log}")


def _complaint(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    for line in lines:
        if "No space left on device" in line:
            return f"the disk is full ({line.strip()})"
    for line in lines:
        if "error:" in line or "cannot find" in line or "not found" in line:
            return f"compiling failed: {line.strip()}"
    return "compiling failed"
