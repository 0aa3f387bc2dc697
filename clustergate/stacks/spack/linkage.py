"""What a program is linked with, by the text of ``ldd``, held to what its lock pins. Pure.

The loader's answer holds before a program runs; the proof of each run asks the ranks again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath

_ENTRY = re.compile(r"^\s+(?:(?P<name>\S+) => )?(?P<path>not found|/.*?)(?: \(0x[0-9a-f]+\))?$")
MPI_LIBRARY = re.compile(r"libmpi(ch)?\.so(\.|$)")
BLAS_LIBRARY = re.compile(
    r"lib(openblas|blis|mkl_(rt|intel|gf|core|sequential|def)|blas|cblas|flexiblas|[st]?atlas"
    r"|armpl|nvpl_blas|sci_|essl|ssl2)[\w.-]*\.so"
)

Resolve = Callable[[str], str]


def loaded_libraries(text: str) -> dict[str, str]:
    """Return the libraries that ``ldd`` names, with their files; empty for one that is not found.

    The kernel's page has no file and is left out.
    """
    libraries = {}
    for line in text.splitlines():
        if match := _ENTRY.match(line):
            path = "" if match["path"] == "not found" else match["path"]
            libraries[match["name"] or PurePosixPath(path).name] = path
    return libraries


def complaints(
    program: str,
    text: str,
    *,
    mpi: str | None,
    blas: str | None,
    resolve: Resolve = os.path.realpath,
) -> list[str]:
    """Return what speaks against a program being linked as its lock says; nothing when it is.

    ``text`` is what ``ldd`` printed; ``mpi`` and ``blas`` are prefixes or files, None for a program
    that needs none.
    """
    loaded = loaded_libraries(text)
    if not loaded:
        last = text.strip().splitlines()[-1:] or ["it printed nothing"]
        return [f"ldd cannot tell what {program} is linked with ({last[0].strip()})"]
    faults = [
        f"{program} needs {name}, which the loader does not find"
        for name, path in loaded.items()
        if not path
    ]
    for what, pattern, prefix in (("MPI", MPI_LIBRARY, mpi), ("BLAS", BLAS_LIBRARY, blas)):
        if prefix is None:
            continue
        files = [path for name, path in loaded.items() if pattern.match(name) and path]
        inside = within(files, prefix, resolve)
        if not inside:
            elsewhere = f"takes {', '.join(files)}" if files else "takes none"
            faults.append(f"{program} should take its {what} library from {prefix} and {elsewhere}")
        elif what == "MPI" and len(inside) < len(files):
            both = ", ".join(files)
            faults.append(f"{program} is linked with more than one {what} library: {both}")
    return faults


def within(paths: Iterable[str], prefix: str, resolve: Resolve = os.path.realpath) -> list[str]:
    """Return those paths that lie below a prefix as they stand, or with links followed."""
    places = {Path(prefix), Path(resolve(prefix))}
    return [
        path
        for path in paths
        if any(Path(p).is_relative_to(place) for p in (path, resolve(path)) for place in places)
    ]


def library_file(
    text: str, pattern: re.Pattern[str], prefix: str, resolve: Resolve = os.path.realpath
) -> str:
    """Return the file, links followed, of the library of a kind that a program takes from a prefix.

    With several of them (MKL comes in parts) it is the prefix, with links followed as well.
    """
    files = [path for name, path in loaded_libraries(text).items() if pattern.match(name) and path]
    inside = {resolve(path) for path in within(files, prefix, resolve)}
    return inside.pop() if len(inside) == 1 else resolve(prefix)
