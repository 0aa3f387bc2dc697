"""HPCC with a part that can be left out."""

from spack.package import Executable, InstallError, join_path, variant
from spack_repo.builtin.packages.hpcc.package import Hpcc as BuiltinHpcc
from spack_repo.clustergate.suite_sources import FOLDER, complaint

SOURCES = ("hpcc_select.c",)


class Hpcc(BuiltinHpcc):
    """HPCC as the builtin recipe makes it, but able to leave out its RandomAccess.

    The six parts of RandomAccess are bounded by time, up to 60 s each, and HPCC has no setting for
    that: a check of a few minutes cannot have them. One more object file is linked; the sources of
    HPCC stay as they are.
    """

    variant(
        "sources",
        default="18434752227f",
        values=("18434752227f",),
        description="Digest of the suite's own C source; another source is another build",
    )

    def edit(self, spec, prefix):
        """Have the builtin recipe link the suite's object file."""
        if reason := complaint(SOURCES, spec.variants["sources"].value):
            raise InstallError(reason)
        selection = join_path(self.stage.source_path, "hpcc_select.o")
        # The builtin recipe keeps its settings in one dictionary for all instances.
        self.config = {**self.config, "@LINKFLAGS@": f"-Wl,--wrap=HPCC_Init {selection}"}
        super().edit(spec, prefix)

    def build(self, spec, prefix):
        """Compile the suite's object file, then HPCC."""
        mpicc = Executable(spec["mpi"].mpicc)
        includes = ("-Iinclude", "-Ihpl/include")
        mpicc("-O3", *includes, "-c", str(FOLDER / "hpcc_select.c"), "-o", "hpcc_select.o")
        super().build(spec, prefix)
