"""What a golden build consists of: files by their SHA-256, and where they lie."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from clustergate.machine.processes import capture
from clustergate.stacks import PROVIDERS
from clustergate.stacks.manifest import Manifest, as_text, parse_manifest

# What is copied lies in folders of these, whose names end with a key.
_HOMES = ("prefixes", "builds")
_KEY = re.compile(r"-[0-9a-f]{12}(?=[/:]|$)")
# What pip and the suite note of their own work is no part of the software.
_NOTES = re.compile(r"\.dist-info/|/\.state-folder$")
_SHARED_OBJECT = re.compile(r"\.so(\.|$)")
# Who knows of which package of the operating system a file is, and what else that has.
_PACKAGES = (
    (("dpkg-query", "-S"), ("dpkg-query", "-L")),
    (("rpm", "-qf", "--qf", "%{NAME}: \n"), ("rpm", "-ql")),
)
_ASKING_S = 30.0
_HASHED_AT_ONCE = 4
# Files named in a sentence, at most.
NAMED = 3
_DIGITS = 12
LINK = "-> "
"""Before the target of a link, in the place of a SHA-256."""


def roots_of(manifest: Manifest, state: Path) -> list[str]:
    """Return the folders, relative to the state, that a manifest names files of."""
    text, roots = _in_home(manifest, state), _roots(state)
    return sorted({f"{roots[base]}/{name}" for base, name in _named(roots).findall(text)})


def relocated(manifest: Manifest, state: Path, below: str) -> Manifest:
    """Return a manifest whose files lie in the folder ``below``, relative to the state.

    The BLAS, which programs find by their RUNPATH, is found there by LD_LIBRARY_PATH, which the
    loader reads first.
    """
    roots, start = _roots(state), _in_json(state / below)
    text = _in_home(manifest, state)
    moved = parse_manifest(
        _named(roots).sub(lambda m: f"{start}/{roots[m[1]]}/{m[2]}", text), state
    )
    if moved.blas is None:
        return moved
    before = moved.environment.get("LD_LIBRARY_PATH", "")
    folders = [*filter(None, [before]), str(Path(moved.blas.library).parent)]
    environment = {**moved.environment, "LD_LIBRARY_PATH": ":".join(folders)}
    return dataclasses.replace(moved, environment=environment)


def files_of(manifest: Manifest) -> list[str]:
    """Return the files that a manifest names."""
    named = [manifest.launcher, manifest.mpi_library, manifest.proof_library]
    named += [one.path for one in manifest.programs.values() if not one.unavailable]
    named += [manifest.blas.library] if manifest.blas else []
    return [name for name in dict.fromkeys(named) if name]


def package_files(path: str) -> set[str]:
    """Return the files of the operating system's package that has this one, none of no package."""
    for asking, listing in _PACKAGES:
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            asked = capture([*asking, path], timeout=_ASKING_S)
            package, colon, _ = asked.stdout.partition(": ")
            if asked.returncode == 0 and colon:
                listed = capture([*listing, package], timeout=_ASKING_S).stdout
                return set(map(os.path.realpath, listed.splitlines()))
    return set()


def tree(top: Path, roots: Iterable[str]) -> Iterator[Path]:
    """Yield the files and links of some folders below ``top``, in order."""
    for root in roots:
        for folder, folders, files in os.walk(top / root):
            folders.sort()
            links = [name for name in folders if (Path(folder) / name).is_symlink()]
            yield from (Path(folder) / name for name in sorted([*files, *links]))


def shared_objects(top: Path, roots: Iterable[str]) -> list[Path]:
    """Return the libraries in some folders below ``top``, and what they load while they run."""
    files = (path for path in tree(top, roots) if not path.is_symlink())
    return [path for path in files if _SHARED_OBJECT.search(path.name)]


def hashes(
    files: Iterable[Path], known: Mapping[tuple[int, int], str] | None = None
) -> dict[str, str]:
    """Return the SHA-256 of each file, ``-> target`` of a link, nothing of one that is not there.

    ``known`` are those of files by device and inode. Raises OSError for one that cannot be read.
    """
    paths = list(files)
    with ThreadPoolExecutor(_HASHED_AT_ONCE) as pool:
        hashed = pool.map(lambda path: _hash(path, known or {}), paths)
        return {str(p): sha256 for p, sha256 in zip(paths, hashed, strict=True) if sha256}


def changes(then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return the names whose contents differ, or that only one of both has."""
    return sorted(name for name in {*then, *now} if then.get(name) != now.get(name))


def hashes_by_role(files: Mapping[str, str]) -> dict[str, str]:
    """Return hashes by names that tell a file's role: without build keys and pip's notes."""
    return {_KEY.sub("", name): sha256 for name, sha256 in files.items() if not _NOTES.search(name)}


def settings_of(manifest: Manifest) -> dict[str, str]:
    """Return by name what a manifest says of how its programs are launched, without build keys."""
    blas = manifest.blas
    named: dict[str, Any] = {
        "dialect": manifest.dialect,
        "launcher": manifest.launcher,
        "MPI library": manifest.mpi_library,
        "BLAS": (blas.name, blas.library) if blas else "",
        **{f"program {k}": one.path for k, one in manifest.programs.items()},
        **{f"variable {k}": value for k, value in manifest.environment.items()},
        **{f"variable {k}": value for k, value in (blas.environment if blas else {}).items()},
    }
    return {name: _KEY.sub("", str(value)) for name, value in named.items()}


def software_of(manifest: Manifest) -> dict[str, list[str] | str]:
    """Return by role the files that a stack launches, with the first digits of their SHA-256.

    With them come the variables, where its provider may come to set others.
    """
    launcher = Path(manifest.launcher)
    # What mpirun starts in turn, of Hydra and of PRRTE.
    further = [path for kind in ("*hydra*", "prte*") for path in launcher.parent.glob(kind)]
    programs = [Path(one.path) for one in manifest.programs.values() if one.path]
    provider = PROVIDERS.get(manifest.provider)
    variables = manifest.environment if provider and provider.sets_variables else {}
    roles: dict[str, list[str] | str] = {
        "launcher": _told([launcher, *further] if launcher.is_absolute() else []),
        "library": _told([Path(manifest.mpi_library)]),
        "BLAS": _told([Path(manifest.blas.library)] if manifest.blas else []),
        "benchmark_programs": _told(programs),
        "variables": [f"{name}={_KEY.sub('', variables[name])}" for name in sorted(variables)],
    }
    return {f"{role}_of_{manifest.stack}": files for role, files in roles.items() if files}


def _told(files: Iterable[Path]) -> list[str]:
    there = {path.resolve() for path in files if path.is_file()}
    return sorted(f"{Path(name).name} {sha256[:_DIGITS]}" for name, sha256 in hashes(there).items())


def digest(text: str) -> str:
    """Return the SHA-256 of a text, shortened."""
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def _in_home(manifest: Manifest, state: Path) -> str:
    """Return the text of a manifest with the home's names of folders that are links elsewhere."""
    text = as_text(manifest)
    for folder in (one for name in _HOMES for one in (state / name).glob("*") if one.is_symlink()):
        text = text.replace(f"{_in_json(folder.resolve())}/", f"{_in_json(folder)}/")
    return text


def _roots(state: Path) -> dict[str, str]:
    """Return the kinds of folders that are copied, by their paths in a manifest."""
    # Some paths of a manifest have their links followed: the home's, or one to a larger disk.
    written = ((name, state / name, state.resolve() / name) for name in _HOMES)
    return {_in_json(p): name for name, *paths in written for p in (*paths, paths[0].resolve())}


def _named(roots: Iterable[str]) -> re.Pattern[str]:
    longest_first = sorted(roots, key=len, reverse=True)
    return re.compile(f'({"|".join(map(re.escape, longest_first))})/([^/:"]+)')


def _in_json(path: Path | str) -> str:
    return json.dumps(str(path))[1:-1]


def _hash(path: Path, known: Mapping[tuple[int, int], str]) -> str:
    if path.is_symlink():
        return f"{LINK}{os.readlink(path)}"
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            if sha256 := known.get((status.st_dev, status.st_ino)):
                return sha256
            digest = hashlib.sha256()
            while block := file.read(1 << 20):
                digest.update(block)
            return digest.hexdigest()
    except FileNotFoundError:
        return ""
