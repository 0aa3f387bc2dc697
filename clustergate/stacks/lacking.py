"""What a machine lacks for its stacks: looked for in seconds, before anything is built."""

from __future__ import annotations

import functools
import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from clustergate.core.model import ClustergateError
from clustergate.core.reasons import Words
from clustergate.machine.processes import capture

C, CXX, FORTRAN = "cc", "c++", "gfortran"
# What installs a tool with apt-get, dnf and zypper, where it is not called as the tool itself.
_MANAGERS = ("apt-get", "dnf", "zypper")
_PACKAGES: Mapping[str, tuple[str, str, str]] = {
    C: ("gcc libc6-dev", "gcc glibc-devel", "gcc glibc-devel"),
    CXX: ("g++", "gcc-c++", "gcc-c++"),
    FORTRAN: ("gfortran", "gcc-gfortran", "gcc-fortran"),
    "nm": ("binutils", "binutils", "binutils"),
    "ldd": ("libc-bin", "glibc-common", "glibc"),
    "xz": ("xz-utils", "xz", "xz"),
    "gmake": ("make", "make", "make"),
    "ninja": ("ninja-build", "ninja-build", "ninja"),
    "pkgconf": ("pkg-config", "pkgconf", "pkg-config"),
    "python": ("python3", "python3", "python3"),
}
# By which programs a tool is there that is not called as they are; those are the names by which
# Spack knows build tools, and Debian's compilers carry versions.
_PROGRAMS = {
    C: r"cc|(gcc|clang)(-[\d.]+)?|icx|nvc",
    CXX: r"c\+\+|(g\+\+|clang\+\+)(-[\d.]+)?|icpx|nvc\+\+",
    FORTRAN: r"gfortran(-[\d.]+)?|flang(-new)?(-[\d.]+)?|ifx|ifort|nvfortran",
    "cmake": r"cmake\d*",
    "diffutils": "diff",
    "findutils": "find",
    "gmake": "make",
    "libtool": "g?libtool(ize)?",
    "m4": "g?m4",
    "perl": r"perl(-?\d.*)?",
    "pkgconf": "pkgconf|pkg-config",
    "python": r"python\d?",
}


@dataclass(frozen=True)
class Lack:
    """A tool that is not here, or a source that cannot be had, in words for whoever brings it.

    ``package`` is the key of the package manager's name for it, empty for a source.
    """

    what: str
    package: str = ""


STACK_LACKS = Words("stack.lacks", "{lacks}")


class LackError(ClustergateError):
    """Something that a stack is built with is not here; nothing was built."""

    lacks: Sequence[Lack] = ()

    @classmethod
    def of(cls, lacks: Sequence[Lack]) -> LackError:
        """Return the error that names all of them, and how to bring them."""
        error = cls(STACK_LACKS(lacks=sentence_of(lacks)))
        error.lacks = tuple(lacks)
        return error


def missing_tools(names: Iterable[str], path: str | None = None) -> list[Lack]:
    """Return those of the tools that are not on a PATH, this process's by default."""
    folders = (os.environ.get("PATH", os.defpath) if path is None else path).split(os.pathsep)
    files = [file for folder in filter(None, folders) for file in _files_in(Path(folder))]
    return [Lack(name, name) for name in dict.fromkeys(names) if not _is_there(name, files)]


def _files_in(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _is_there(name: str, files: Sequence[Path]) -> bool:
    programs = re.compile(_PROGRAMS.get(name, re.escape(name)))
    return any(programs.fullmatch(file.name) and os.access(file, os.X_OK) for file in files)


@functools.cache
def broken_compiler() -> tuple[Lack, ...]:
    """Return the C compiler if it cannot make a program: its headers and binutils are packages."""
    if lacks := missing_tools([C]):
        return tuple(lacks)
    compiler = shutil.which("cc") or shutil.which("gcc") or C
    program = '#include <stdio.h>\nint main(void) { return puts("") < 0; }\n'
    ended = capture([compiler, "-x", "c", "-o", os.devnull, "-"], program)
    if ended.returncode == 0:
        return ()
    errors = [line.strip() for line in ended.stderr.splitlines() if "error" in line]
    why = errors[0] if errors else "no reason given"
    return (Lack(f"a working C compiler ({compiler}: {why})", C),)


def install_line(packages: Iterable[str], which: Callable[[str], object] = shutil.which) -> str:
    """Return the line that installs tools with this machine's package manager.

    Where there is none of those that are known, the tools are named as they are.
    """
    names = list(dict.fromkeys(packages))
    manager = next((name for name in _MANAGERS if which(name)), "")
    if not manager:
        return f"install {', '.join(names)}" if names else ""
    at = _MANAGERS.index(manager)
    words = " ".join(_PACKAGES[name][at] if name in _PACKAGES else name for name in names)
    return f"{manager} install {words}" if names else ""


def sentence_of(lacks: Sequence[Lack], which: Callable[[str], object] = shutil.which) -> str:
    """Return in one sentence what a stack lacks, and what to do about it."""
    tools = [lack for lack in lacks if lack.package]
    files = [lack.what for lack in lacks if not lack.package]
    parts = []
    if tools:
        names = ", ".join(dict.fromkeys(lack.what for lack in tools))
        line = install_line((lack.package for lack in tools), which)
        parts.append(f"{names} not found: `{line}`")
    if files:
        parts.append(
            f"no source here or upstream: {', '.join(dict.fromkeys(files))}; check the network, or "
            "put the files in a folder and name it in CLUSTERGATE_SOURCES"
        )
    return "; ".join(parts)


def summary(by_stack: Mapping[str, Sequence[Lack]]) -> list[str]:
    """Return what all stacks lack together, a line for each thing, and how to bring it."""
    stacks: dict[Lack, list[str]] = {}
    for stack, lacks in by_stack.items():
        for lack in lacks:
            stacks.setdefault(lack, []).append(stack)
    lines = [f"missing: {lack.what}, for {', '.join(names)}" for lack, names in stacks.items()]
    if packages := [lack.package for lack in stacks if lack.package]:
        lines.append(f"to install the tools: {install_line(packages)}")
    if any(not lack.package for lack in stacks):
        lines.append("put sources in a folder and name it in CLUSTERGATE_SOURCES")
    return lines
