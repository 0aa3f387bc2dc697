"""How the suite's own kernels are compiled: the proof of a run, and what a node can do at most."""

from __future__ import annotations

from collections.abc import Iterable

from clustergate.benchmarks.build import Build, Command, Compiled, Workplace, mpicc
from clustergate.machine.kernels import SOURCES

_PROOF = ("proof.c", "progress.c")
PROOF_FILES = tuple(SOURCES / name for name in _PROOF)
FILES = (*_PROOF, "progress.h", "blas.h", "node_peaks.c", "dgemm.c", "core_distance.c", "pinned.h")
# That of them which computes with the BLAS; none needs MPI.
DGEMM = "dgemm"


def _commands(work: Workplace) -> Iterable[Command]:
    threads = ["-pthread"]
    proof = [*map(str, PROOF_FILES)]
    shared, what = ["-shared", "-ldl"], "the proof of the run"
    yield mpicc(work.lib / "libproof.so", proof, ["-fPIC", *threads], shared, description=what)
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
