"""Spack's lock of an environment: what it pins, and which lock is the right one on a machine.

A committed lock belongs to an operating system and a processor family, which its name states:
``debian12-x86_64_v4.lock`` for the environment's own BLAS, ``debian12-x86_64_v4-amdblis.lock`` for
another. Where none fits, the first run concretizes and keeps its lock with the site.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import archspec.cpu

from clustergate.core.files.whole import parse_json
from clustergate.core.model import ClustergateError
from clustergate.core.notation import listed
from clustergate.core.reasons import Words

DEFAULT_BLAS = "openblas"
# What packages took to build, in minutes of two busy cores; others take one or less.
MINUTES = {
    **{"mpich": 24, "openmpi": 19, "mvapich2": 30, "amdblis": 11},
    **{"mvapich2 fabrics=nemesis": 11},
    **dict.fromkeys(("compiler-wrapper", "gcc-runtime"), 0),
}


@dataclass(frozen=True)
class Host:
    """What a lock is proven on: Spack's name of the operating system, and processor families.

    ``targets`` holds the processor's own name and that of its generic family.
    """

    system: str
    targets: tuple[str, ...]


@dataclass(frozen=True)
class LockedSpec:
    """One concrete package of a lock.

    ``dependencies`` are (hash, virtuals that it provides here) pairs; ``external`` is the prefix of
    something that Spack did not build, ``compilers`` are the programs that such a package names by
    language. ``fabric`` is the choice of an MPI library that has one.
    """

    name: str
    version: str
    hash: str
    system: str
    target: str
    external: str = ""
    compilers: Mapping[str, str] = field(default_factory=dict)
    fabric: str = ""
    dependencies: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def __str__(self) -> str:
        return f"{self.name}@{self.version}/{self.hash[:7]}"


LOCK_LACKS = Words(
    "lock.lacks",
    "{lock} holds no {package}",
    cause="the environment does not list it, or the lock belongs to another environment",
    remedy="remove the lock, so that the environment is concretized again",
)
NO_PROVIDER = Words(
    "lock.no-provider",
    "{package} needs {virtual}, and no package of the lock provides it",
)


@dataclass(frozen=True)
class Lock:
    """A whole lock: ``roots`` are the specs asked for and the hashes they became."""

    source: str
    digest: str
    roots: tuple[tuple[str, str], ...]
    specs: Mapping[str, LockedSpec]

    def root(self, package: str) -> LockedSpec:
        """Return the root of a package; raises :class:`ClustergateError` when there is none."""
        for _, key in self.roots:
            if self.specs[key].name == package:
                return self.specs[key]
        raise ClustergateError(LOCK_LACKS(lock=self.source, package=package))

    def provider(self, package: str, virtual: str) -> LockedSpec:
        """Return what provides ``virtual`` ("mpi" or "blas") to a root package."""
        for key, virtuals in self.root(package).dependencies:
            if virtual in virtuals:
                return self.specs[key]
        facts = {"at": self.source, "virtual": virtual, "package": package}
        raise ClustergateError(NO_PROVIDER(**facts))

    def work(self, installed: Collection[str] = ()) -> str:
        """Return what is compiled, in about how many minutes, and what is taken as it is.

        ``installed`` are the packages that the store has.
        """
        made = [s for s in self.specs.values() if not (s.external or s.name in installed)]
        made.sort(key=_minutes, reverse=True)
        minutes = sum(map(_minutes, made))
        parts = {
            f"compiles in about {minutes} min on two cores": made,
            "has in the store": [s for s in self.specs.values() if s.name in installed],
            "takes as it is": [s for s in self.specs.values() if s.external],
        }
        texts = {
            do: listed([f"{s.name} {s.version}" for s in them], 9) for do, them in parts.items()
        }
        return "; ".join(f"{do} {them}" for do, them in texts.items() if them)

    def needed_files(self) -> list[str]:
        """Return prefixes and compilers outside the store that this lock takes for granted."""
        external = {spec.external for spec in self.specs.values() if spec.external}
        return sorted(external | {*self.compilers().values()})

    def compilers(self) -> dict[str, str]:
        """Return the compilers that what is built calls, by language: c, cxx, fortran.

        A package may name others that nothing calls.
        """
        edges = [
            (self.specs[key], virtuals)
            for spec in self.specs.values()
            if not spec.external
            for key, virtuals in spec.dependencies
        ]
        return {
            language: one.compilers[language]
            for one, virtuals in edges
            for language in virtuals
            if language in one.compilers
        }


def _minutes(spec: LockedSpec) -> int:
    return MINUTES.get(f"{spec.name} fabrics={spec.fabric}", MINUTES.get(spec.name, 1))


LOCK_DAMAGED = Words(
    "lock.damaged",
    "{path} is not a Spack lock ({why})",
    remedy="remove it, so that the environment is concretized again",
)


def parse_lock(text: str, source: str = "spack.lock") -> Lock:
    """Read a lock; raises :class:`ClustergateError` for a text that is none."""
    try:
        record = parse_json(text)
        specs = {key: _locked_spec(key, entry) for key, entry in record["concrete_specs"].items()}
        roots = tuple((str(root["spec"]), str(root["hash"])) for root in record["roots"])
        lock = Lock(source, hashlib.sha256(text.encode()).hexdigest(), roots, specs)
        named = [key for _, key in roots]
        named += [key for spec in specs.values() for key, _ in spec.dependencies]
        if missing := [key for key in named if key not in specs]:
            raise KeyError(missing[0])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ClustergateError(LOCK_DAMAGED(path=source, why=error)) from None
    return lock


def _locked_spec(key: str, entry: Mapping[str, Any]) -> LockedSpec:
    external = entry.get("external") or {}
    compilers = (external.get("extra_attributes") or {}).get("compilers") or {}
    target = entry["arch"]["target"]
    return LockedSpec(
        name=entry["name"],
        version=str(entry["version"]),
        hash=key,
        system=entry["arch"]["platform_os"],
        target=target if isinstance(target, str) else target["name"],
        external=str(external.get("path") or ""),
        compilers={str(language): str(path) for language, path in compilers.items()},
        fabric=str((entry.get("parameters") or {}).get("fabrics", "")),
        dependencies=tuple(
            (edge["hash"], tuple(edge["parameters"].get("virtuals", ())))
            for edge in entry.get("dependencies", ())
        ),
    )


def host() -> Host:
    """Return this machine as Spack names it."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        release = {}
    processor = archspec.cpu.host()
    return Host(system_name(release), (processor.name, processor.generic.name))


def system_name(release: Mapping[str, str]) -> str:
    """Return Spack's name of a Linux from its os-release(5), such as "debian12"."""
    name = release.get("ID", "linux")
    version = release.get("VERSION_ID", "")
    # Ubuntu's point releases differ in libc, those of the others do not.
    return f"{name}{version if name == 'ubuntu' else version.partition('.')[0]}"


def committed_lock(
    folder: Path, machine: Host, *, blas: str = DEFAULT_BLAS, target: str = ""
) -> Path | None:
    """Return the committed lock of an operating system, a processor family and a BLAS, or None."""
    targets = (target,) if target else machine.targets
    suffixes = (f"-{blas}", "") if blas == DEFAULT_BLAS else (f"-{blas}",)
    for family in targets:
        for suffix in suffixes:
            path = folder / f"{machine.system}-{family}{suffix}.lock"
            if path.is_file():
                return path
    return None


def disagreement(lock: Lock, specs: Sequence[str]) -> str:
    """Return how a lock's roots differ from the specs of an environment; empty when they do not.

    Spack itself would concretize the difference without a word.
    """
    locked = {" ".join(root.split()) for root, _ in lock.roots}
    asked = {" ".join(spec.split()) for spec in specs}
    more = [f"lacks {spec!r}" for spec in sorted(asked - locked)]
    more += [f"holds {spec!r} beside" for spec in sorted(locked - asked)]
    return ", ".join(more)
