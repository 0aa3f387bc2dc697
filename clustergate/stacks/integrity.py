"""What a stack launches is held by its digests: what is put in its place later is not launched.

A file whose size, inode and times are as they were is not read again.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from clustergate.core.files.whole import read_json, write_whole
from clustergate.core.model import ClustergateError
from clustergate.core.reasons import Words
from clustergate.core.words import FILE_UNREADABLE
from clustergate.stacks.manifest import Manifest
from clustergate.stacks.sources import sha256_of

# Among the files of a folder: the folder itself.
_FOLDER = "."


PREFIX_CHANGED = Words(
    "stack.prefix-changed",
    "{files:names} in {folder} is not what was installed there",
    cause="something was put in its place",
    remedy="see what it is; `{remove}` and `clustergate setup` install it anew",
)


def require_as_installed(manifest: Manifest, state: Path) -> None:
    """Raise :class:`ClustergateError` where what a stack launches is not what was installed.

    That is what the suite installed, from wheels or with Spack: the machine's own MPI libraries may
    be updated. What is installed anew is held from then on.
    """
    libraries = [manifest.mpi_library, manifest.blas.library if manifest.blas else ""]
    programs = [one.path for one in manifest.programs.values()]
    named = [Path(one) for one in (manifest.launcher, *libraries, *programs) if one]
    for folder in dict.fromkeys(one for path in named if (one := _prefix_of(path, state))):
        files = [*(path for path in named if folder in path.parents), *(folder / "bin").rglob("*")]
        if changed := changed_files(folder, state, files, installed=True):
            remove = f"rm -r {folder}"
            if (folder / ".spack").is_dir():
                remove = f"spack uninstall --dependents /{folder.name[-7:]}"
            raise ClustergateError(PREFIX_CHANGED(folder=folder, files=changed, remove=remove))


def _prefix_of(path: Path, state: Path) -> Path | None:
    """Return the prefix that the suite installed a file in, None for any other file."""
    wheels = (state / "prefixes", (state / "prefixes").resolve())
    for folder in path.parents:
        if folder.parent in wheels or (folder / ".spack").is_dir():
            return folder
    return None


def record_digests(folder: Path, state: Path, files: Iterable[Path]) -> None:
    """Keep the digests of files in a folder that was made just now, where this user may."""
    _write(_record(folder, state), _seen(folder, files, {}))


def changed_files(
    folder: Path, state: Path, files: Iterable[Path], *, installed: bool = False
) -> list[str]:
    """Return which files in a folder are not those that are held, by their names in it.

    Without a record, as of an earlier version or of another home, they are held from now on. In
    one that is ``installed``, so are further files, and all where it is another folder than it was.
    Raises :class:`ClustergateError` for a damaged record.
    """
    path = _record(folder, state)
    try:
        then = read_json(path)
        if not isinstance(then, dict):
            raise ValueError("it is no mapping")
    except FileNotFoundError:
        then = {}
    except (OSError, ValueError) as error:
        raise ClustergateError(FILE_UNREADABLE(path=path, why=error)) from None
    now = _seen(folder, files, then)
    if not then or (installed and then.get(_FOLDER) != now[_FOLDER]):
        _write(path, now)
        return []
    gone = [name for name in then if name not in now and not (folder / name).is_file()]
    further = [name for name in now if name not in then and not installed]
    differ = [name for name in then.keys() & now if _digest(then[name]) != _digest(now[name])]
    changed = {*gone, *further, *differ} - {_FOLDER}
    if not changed and now != then:
        _write(path, {**then, **now})
    return sorted(changed)


def _record(folder: Path, state: Path) -> Path:
    # Not in the folder: golden builds have every file of that.
    return state / "manifests" / "built" / f"{folder.name}.json"


def _seen(folder: Path, files: Iterable[Path], then: Mapping[str, Any]) -> dict[str, Any]:
    """Return the SHA-256 of files, with what tells that they were not touched since."""
    # A folder may get the inode of the one before, which of wheels has the same files. Of Spack's
    # the time of its record tells.
    installed = [
        path.stat().st_mtime_ns for path in [folder / ".spack" / "spec.json"] if path.exists()
    ]
    seen: dict[str, Any] = {_FOLDER: [folder.stat().st_ino, *installed]}
    for path in sorted(path for path in {*files} if path.is_file()):
        name, status = str(path.relative_to(folder)), path.stat()
        of_file = [status.st_size, status.st_ino, status.st_mtime_ns, status.st_ctime_ns]
        before = then.get(name)
        if not (isinstance(before, list) and before[1:] == of_file):
            before = [sha256_of(path), *of_file]
        seen[name] = before
    return seen


def _digest(held: object) -> object:
    # Earlier versions kept nothing else.
    return held[0] if isinstance(held, list) and held else held


def _write(path: Path, seen: Mapping[str, Any]) -> None:
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(seen, indent=1) + "\n")
