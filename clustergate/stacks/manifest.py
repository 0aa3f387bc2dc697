"""The manifest of a stack: what its provider put on disk, for checks that only run things.

A check reads the manifest by the stack's name and never asks who provided it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clustergate.core.files.stored import decode, encode
from clustergate.core.files.whole import parse_json, write_whole
from clustergate.core.model import ClustergateError, require_name
from clustergate.core.reasons import Words
from clustergate.core.words import FILE_UNREADABLE

SCHEMA = 1
SET_UP = "CLUSTERGATE_SET_UP"
"""The variable that names the stacks which a run has on disk already, for its build fixture."""


class ManifestError(ClustergateError):
    """A manifest is missing or cannot be read."""


@dataclass(frozen=True)
class Program:
    """One executable: where it is, which version, and where it came from; or why it is absent.

    ``remark`` tells why it is not the version one would expect.
    """

    path: str = ""
    version: str = ""
    origin: str = ""
    remark: str = ""
    unavailable: str = ""


@dataclass(frozen=True)
class Blas:
    """The BLAS that a stack's programs are linked with; ``library`` is the shared object."""

    name: str
    version: str
    library: str
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Manifest:
    """A stack on disk.

    ``dialect`` names how its launcher wants to be told (see :mod:`clustergate.launch.dialects`),
    ``library_pattern`` is a regular expression that ``MPI_Get_library_version`` must match,
    ``mpi_library`` the shared object that must be mapped. ``environment`` is what a job exports
    before it launches; ``PATH`` and ``LD_LIBRARY_PATH`` in it are put in front of what is there.
    ``lock`` says what pins the versions of everything in it, and where that came from.
    ``unavailable`` says why the whole stack cannot be had here, and is empty when it can.
    """

    stack: str
    provider: str
    mpi_name: str = ""
    mpi_version: str = ""
    library_pattern: str = ""
    mpi_prefix: str = ""
    mpi_library: str = ""
    launcher: str = ""
    dialect: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    blas: Blas | None = None
    programs: Mapping[str, Program] = field(default_factory=dict)
    proof_library: str = ""
    build_key: str = ""
    lock: str = ""
    unavailable: str = ""

    def program(self, name: str) -> Program:
        """Return a program of the stack; one nobody built is said to be unavailable."""
        if self.unavailable:
            return Program(unavailable=self.unavailable)
        return self.programs.get(
            name, Program(unavailable=f"the provider {self.provider} does not build {name}")
        )

    def command(self, name: str) -> list[str]:
        """Return the command line of a program, empty where there is none."""
        program = self.program(name)
        return [] if program.unavailable else [program.path]


def manifest_path(state: Path, stack: str) -> Path:
    """Return where the manifest of a stack lies; raises BadRequest for what is no name."""
    return state / "manifests" / f"{require_name('stack', stack)}.json"


def write_manifest(state: Path, manifest: Manifest) -> Path:
    """Write a manifest so that a reader sees the old one or the new one, never half of one."""
    path = manifest_path(state, manifest.stack)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_manifest_file(path, manifest)
    return path


def write_manifest_file(path: Path, manifest: Manifest) -> None:
    write_whole(path, as_text(manifest))


def as_text(manifest: Manifest) -> str:
    return json.dumps({"schema": SCHEMA, **encode(manifest)}, indent=2) + "\n"


NOT_SET_UP = Words(
    "stack.not-set-up",
    "the stack {stack} is not set up ({path} is missing)",
    remedy="run `clustergate setup`",
)


def read_manifest(state: Path, stack: str) -> Manifest:
    """Read the manifest of a stack.

    Raises :class:`ManifestError` when there is none or it is damaged.
    """
    path = manifest_path(state, stack)
    if not path.exists():
        raise ManifestError(NOT_SET_UP(stack=stack, path=path))
    return read_manifest_file(path)


def read_manifest_file(path: Path) -> Manifest:
    """Read a manifest wherever it lies.

    Raises :class:`ManifestError` when there is none or it is damaged.
    """
    try:
        return parse_manifest(path.read_text(encoding="utf-8", errors="replace"), path)
    except OSError as error:
        raise ManifestError(FILE_UNREADABLE(path=path, why=error)) from None


OTHER_VERSION = Words(
    "manifest.other-version",
    "{path}: another version wrote it",
    remedy="run `clustergate setup`",
)
MANIFEST_DAMAGED = Words(
    "manifest.damaged",
    "{path} is damaged ({why})",
    remedy="run `clustergate setup`",
)


def parse_manifest(text: str, path: Path) -> Manifest:
    """Return the manifest that :func:`as_text` wrote; raises as :func:`read_manifest_file`."""
    try:
        record: dict[str, Any] = parse_json(text)
        if record.pop("schema") != SCHEMA:
            raise ManifestError(OTHER_VERSION(path=path))
        return decode(record, Manifest, always=("blas", "programs"))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ManifestError(MANIFEST_DAMAGED(path=path, why=error)) from None
