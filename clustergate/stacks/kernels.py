"""How the suite's own kernels are compiled: the proof of a run, and what a node can do at most."""

from __future__ import annotations

from collections.abc import Iterable

from clustergate.benchmarks.build import Build, Command, Compiled, Workplace, mpicc
from clustergate.kernels import SOURCES

FILES = ("proof.c", "blas.h", "node_peaks.c", "dgemm.c", "core_distance.c", "pinned.h")
# That of them which computes with the BLAS; none needs MPI.
DGEMM = "dgemm"


def _commands(work: Workplace) -> Iterable[Command]:
    proof = [str(SOURCES / "proof.c"), "-o", str(work.lib / "libproof.so"), "-ldl"]
    yield mpicc("the proof of the run", ["-fPIC", "-shared", *proof])
    for name, libraries in (("node_peaks", ["-lm"]), ("core_distance", [])):
        source = [str(SOURCES / f"{name}.c"), "-pthread", "-o", str(work.bin / name)]
        yield mpicc(name, [*source, *libraries])
    call = [f"-DCBLAS_DGEMM={work.blas.symbol_prefix}cblas_dgemm", f"-I{work.blas.include}"]
    output = ["-pthread", "-o", str(work.bin / DGEMM), *work.blas.link_options(), "-ldl"]
    yield mpicc(DGEMM, [*call, str(SOURCES / "dgemm.c"), *output])


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
