"""The folder that travels: what lies where in it, and what its description says.

The description is written last, so a folder without one was not packed to its end.
"""

from __future__ import annotations

import dataclasses
import filecmp
import json
import platform
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import archspec.cpu

from clustergate.files.whole import full_disk, is_full, parse_json
from clustergate.model import ClustergateError
from clustergate.paths import is_clone
from clustergate.stacks.sources import sha256_of
from clustergate.stacks.spack.bootstrap import Pin, Pins
from clustergate.stacks.spack.locks import Host

SCHEMA = 2
DESCRIPTION = "airgap.json"
UNFINISHED = "UNFINISHED"
# Files of a clone that decide what must be in the folder.
DECIDING = (
    *("requirements.txt", "spack-repo/pins.yaml"),
    *("clustergate/stacks/wheels/*.txt", "clustergate/benchmarks/*/*.txt"),
)


def running_python() -> str:
    """Return the version of this Python as wheels are labelled by it, such as ``3.11``."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def require_clone() -> None:
    """Raise :class:`ClustergateError` where there is the installed package alone."""
    if not is_clone():
        raise ClustergateError("airgap.no-clone")


class Layout:
    """What lies where in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.description = folder / DESCRIPTION
        self.clone = folder / "clone"
        # Spack and its packages, as git repositories.
        self.releases = folder / "spack"
        # What Spack builds from, as a source mirror.
        self.mirror = folder / "mirror"
        # Those that the packing machine concretized.
        self.locks = folder / "locks"
        # Of the MPI stacks and of the BLAS.
        self.stack_wheels = folder / "stacks"
        # The archives of the benchmarks that are compiled beside the wheels.
        self.sources = folder / "sources"

    @property
    def python_wheels(self) -> Path:
        """Where the suite's own Python packages lie, those for a machine and Python as this."""
        return self.folder / "python" / f"{platform.machine()}-{running_python()}"

    def release(self, pin: Pin) -> Path:
        """Return the repository of Spack or of its packages."""
        return self.releases / f"{pin.title.lower()}-{pin.version}.git"


@dataclass(frozen=True)
class PackedStack:
    """A stack that Spack builds.

    ``lock`` is the file of its lock, empty where a committed one is used; ``system`` and ``target``
    are what that lock is for.
    """

    name: str
    lock: str
    system: str
    target: str


@dataclass(frozen=True)
class Contents:
    """What a folder holds, as its description says.

    ``absent`` are sentences on what could not be had, ``files`` the checksums (SHA-256) of all
    files outside the clone, by their paths.
    """

    suite: str
    machine: str
    stacks: tuple[PackedStack, ...]
    absent: tuple[str, ...]
    files: Mapping[str, str]


def as_text(contents: Contents) -> str:
    return json.dumps({"schema": SCHEMA, **dataclasses.asdict(contents)}, indent=1) + "\n"


def read_contents(layout: Layout) -> Contents:
    """Read the description of a folder.

    Raises ClustergateError for a folder that was not packed to its end, or is none of ours.
    """
    path = layout.description
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        if (layout.folder / UNFINISHED).exists():
            raise ClustergateError("airgap.interrupted", folder=layout.folder) from None
        raise ClustergateError("airgap.no-folder", path=path, why=error) from None
    return parse_contents(text, str(path))


def parse_contents(text: str, source: str = DESCRIPTION) -> Contents:
    try:
        record: dict[str, Any] = parse_json(text)
        if record.pop("schema") != SCHEMA:
            raise ClustergateError("airgap.other-version", path=source)
        stacks = tuple(PackedStack(**entry) for entry in record.pop("stacks"))
        absent = tuple(record.pop("absent"))
        contents = Contents(**record, absent=absent, stacks=stacks)
        _require_own_paths(contents)
        return contents
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ClustergateError("airgap.damaged", path=source, why=error) from None


def _require_own_paths(contents: Contents) -> None:
    """Raise ValueError for a name that leads out of the folder, or out of where it is copied to."""
    for name in contents.files:
        if name.startswith("/") or ".." in Path(name).parts:
            raise ValueError(f"{name!a} is not a file of the folder")
    for stack in contents.stacks:
        own = Path(stack.lock).name == stack.lock and f"locks/{stack.lock}" in contents.files
        if stack.lock and not own:
            raise ValueError(f"{stack.lock!a} is not a lock of the folder")


def packed_files(folder: Path) -> Iterator[Path]:
    """Yield all files of a folder that its description vouches for, in a fixed order."""
    own = Layout(folder)
    for top in (own.releases, own.mirror, own.locks, own.stack_wheels, own.sources):
        yield from (path for path in sorted(top.rglob("*")) if path.is_file())
    yield from sorted((folder / "python").glob("*/*"))


def checksums(folder: Path) -> dict[str, str]:
    """Return the checksums of all files that a description vouches for."""
    return {str(path.relative_to(folder)): sha256_of(path) for path in packed_files(folder)}


def require_whole(layout: Layout, contents: Contents) -> None:
    """Raise :class:`ClustergateError` that names the first file that is missing or has changed."""
    for name, expected in contents.files.items():
        path = layout.folder / name
        if not path.is_file() or sha256_of(path) != expected:
            is_wrong = "has changed since it was packed" if path.exists() else "is missing"
            raise ClustergateError("airgap.file-changed", path=path, is_wrong=is_wrong)


def unlisted(layout: Layout, contents: Contents) -> list[str]:
    """Return the files of a folder that its description does not vouch for."""
    names = (str(path.relative_to(layout.folder)) for path in packed_files(layout.folder))
    return [name for name in names if name not in contents.files]


def differing(one: Path, other: Path, patterns: Iterable[str] = DECIDING) -> list[str]:
    """Return the files that decide what is in a folder and differ between two clones."""
    names = {
        str(path.relative_to(clone))
        for clone in (one, other)
        for pattern in patterns
        for path in clone.glob(pattern)
    }

    _, changed, missing = filecmp.cmpfiles(one, other, names, shallow=False)
    return sorted(changed + missing)


def objection(stack: PackedStack, here: Host) -> str:
    """Return why what was packed for a stack cannot be used as it is on this machine; else "".

    A lock belongs to an operating system and a processor family.
    """
    if stack.system != here.system:
        return f"it was packed on {stack.system}, and this is {here.system}"
    known = archspec.cpu.TARGETS
    wanted = known.get(stack.target)
    if wanted is None or not any(known[name] >= wanted for name in here.targets if name in known):
        return (
            f"it was packed for {stack.target} processors, and this is a {here.targets[0]}, which "
            "lacks some of their instructions"
        )
    return ""


def releases_of(layout: Layout, pins: Pins) -> dict[str, str]:
    """Return the repositories in a folder as places for :func:`bootstrap.bring`."""
    return {pin.name: str(layout.release(pin)) for pin in pins}


def failure(doing: str, error: OSError, larger: str) -> ClustergateError:
    """Turn an error of the file system into one of ours; ``larger`` says how to get more space."""
    if is_full(error):
        return ClustergateError(full_disk(f"while {doing}", larger))
    where = f" ({error.filename})" if error.filename else ""
    why = f"{error.strerror or error}{where}"
    return ClustergateError("airgap.failed", doing=doing, why=why)
