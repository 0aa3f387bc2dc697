"""How the suite's own kernels are compiled: the proof of a run, and what a node can do at most."""

from __future__ import annotations

from collections.abc import Iterable

from clustergate.benchmarks.build import Build, Command, Compiled, Workplace, mpicc
from clustergate.kernels import SOURCES

FILES = ("proof.c", "blas.h", "node_peaks.c", "dgemm.c", "core_distance.c", "pinned.h")
# That of them which computes with the BLAS; none needs MPI.
DGEMM = "dgemm"


def _commands(work: Workplace) -> Iterable[Command]:
    proof, what = [str(SOURCES / "proof.c")], "the proof of the run"
    shared = ["-shared", "-ldl"]
    yield mpicc(work.lib / "libproof.so", proof, ["-fPIC"], shared, what=what)
    threads = ["-pthread"]
    for name, libraries in (("node_peaks", ["-lm"]), ("core_distance", [])):
        yield mpicc(work.bin / name, [str(SOURCES / f"{name}.c")], threads, libraries)
    call = [f"-DCBLAS_DGEMM={work.blas.symbol_prefix}cblas_dgemm", f"-I{work.blas.include}"]
    libraries = [*work.blas.link_options(), "-ldl"]
    yield mpicc(work.bin / DGEMM, [str(SOURCES / "dgemm.c")], [*call, *threads], libraries)


NODE_KERNELS = Build(
    programs=("node_peaks", DGEMM, "core_distance"),
    recipes=(
        Compiled(
            _commands,
            files=tuple(SOURCES / name for name in FILES),
            origin="the suite's own kernel",
        ),
    ),
    package="clustergate-kernels",
)
