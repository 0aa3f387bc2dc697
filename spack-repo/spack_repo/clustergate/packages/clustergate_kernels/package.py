"""The suite's own kernels."""

from spack.package import Executable, InstallError, depends_on, mkdirp, variant, version
from spack_repo.builtin.build_systems.generic import Package
from spack_repo.clustergate.suite_sources import FOLDER, complaint

SOURCES = (
    *("blas.h", "core_distance.c", "dgemm.c", "node_peaks.c", "pinned.h"),
    *("progress.c", "progress.h", "proof.c"),
    *("mpi_kernel.h", "bidirectional_stream.c", "host_overhead.c", "mpi_trials.c", "stream.c"),
)


class ClustergateKernels(Package):
    """The kernels of the clustergate suite.

    They measure what a node can do at most (multiply-adds, memory bandwidth, DGEMM, the distances
    between cores) and what published evaluations did of MPI calls and memory, and prove a launch by
    a library that is preloaded into it. They are in no other repository, since the suite itself
    brings the sources.
    """

    has_code = False

    version("1.0")

    variant(
        "sources",
        default="d68df9b8589a",
        values=("d68df9b8589a",),
        description="Digest of the C sources; another source is another build",
    )

    depends_on("c", type="build")
    depends_on("mpi")
    depends_on("blas")

    def install(self, spec, prefix):
        """Compile every kernel with the stack's own wrapper, as the suite's other providers do."""
        if reason := complaint(SOURCES, spec.variants["sources"].value):
            raise InstallError(reason)
        mkdirp(prefix.bin, prefix.lib)
        mpicc = Executable(spec["mpi"].mpicc)

        def compiled(source, output, *options):
            mpicc("-O3", "-pthread", str(FOLDER / source), "-o", output, *options, "-ldl", "-lm")

        proof = (str(FOLDER / "progress.c"), "-fPIC", "-shared")
        compiled("proof.c", prefix.lib.join("libproof.so"), *proof)
        compiled("node_peaks.c", prefix.bin.node_peaks)
        compiled("core_distance.c", prefix.bin.core_distance)
        for name in ("bidirectional_stream", "host_overhead", "mpi_trials", "stream"):
            compiled(f"{name}.c", prefix.bin.join(name))
        compiled("dgemm.c", prefix.bin.dgemm, *spec["blas"].libs.ld_flags.split())
