"""The environment that Spack is given: the committed one, with the site's choices around it.

What is composed lies in ``<state>/spack/environments/<stack>``: a ``spack.yaml`` that includes the
site's scopes, the choices and a scope of our own, the strongest first, and nothing else of this
machine's configuration.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from clustergate.benchmarks.registry import every_benchmark
from clustergate.core.files.marked_yaml import read_document
from clustergate.core.files.whole import write_whole
from clustergate.core.model import ClustergateError
from clustergate.core.reasons import Words
from clustergate.stacks import builder, prefixes, wheels
from clustergate.stacks.spack import bootstrap
from clustergate.stacks.spack.externals import LAYOUT, External
from clustergate.stacks.spack.libraries import MpiPackage, mpi_of, package_name
from clustergate.stacks.spack.settings import (
    SpackSettings,
    choice_files,
    environment_file,
    read_settings,
    spack_repo,
)

OWN_SCOPE = "scope.yaml"
DATABASE_SECONDS = 600
# A mirror changes where something comes from, not what is built.
_NO_INPUT = "mirrors.yaml"
# What a site writes into these, a committed lock would pass over.
_DECIDING = ("packages", "concretizer", "toolchains", "repos", "compilers")

UNPROVEN_FORTRAN = "the Fortran interface of {} calls PMPI_Init, which bypasses the proof of a run"


@dataclass(frozen=True)
class SpackRequest:
    """One stack as a site asks for it.

    ``committed`` is the environment as it stands in the clone, ``mpi_root`` that of its specs which
    is the MPI library. ``applications`` are those that the site names and this library can have,
    with what they add to the environment. ``inputs`` identifies all that a concretization depends
    on, whatever the folders are called.
    """

    stack: str
    state: Path
    settings: SpackSettings
    repository: Path
    committed: Mapping[str, Any]
    mpi: MpiPackage
    mpi_root: str
    applications: Mapping[str, Mapping[str, Any]]
    inputs: str

    @property
    def specs(self) -> list[str]:
        """Return the root specs of the environment, and those of the applications."""
        added = [spec for entry in self.applications.values() for spec in entry["specs"]]
        return [*self.committed["spack"]["specs"], *added]

    @property
    def folder(self) -> Path:
        return self.state / "spack" / "environments" / self.stack

    @property
    def log(self) -> Path:
        """Return the file that keeps Spack's output."""
        return self.state / "spack" / "logs" / f"{self.stack}.log"

    @property
    def store(self) -> Path:
        named = self.settings.store
        return Path(named).expanduser().absolute() if named else self.state / "spack" / "store"

    @property
    def scopes(self) -> list[str]:
        """Return the site's scopes, then those that lie in the state folder, strongest first."""
        named = [s if "$" in s else str(Path(s).absolute()) for s in self.settings.scopes]
        return named + [str(path) for path in sorted((self.state / "spack" / "scopes").glob("*"))]

    def may_use_committed_lock(self) -> bool:
        """Tell whether nothing that the site says decides otherwise than the committed lock."""
        settings = self.settings
        free = not (settings.fabric or self.applications)
        return free and not any(_decides(Path(scope)) for scope in settings.scopes)


def read_spack_request(
    stack: str, state: Path, given: Mapping[str, Any], repository: Path | None = None
) -> SpackRequest:
    """Read what a site asks for; raises a ClustergateError for what is not there."""
    folder = repository or spack_repo()
    settings = read_settings(stack, given, folder)
    path = environment_file(settings, folder)
    text = path.read_text(encoding="utf-8")
    committed = _environment(text, path)
    mpi_root, mpi = mpi_of(committed["spack"]["specs"], path)
    names = [name for name in settings.applications if not obstacle(name, mpi, settings)]
    added = [folder / "applications" / f"{name}.yaml" for name in names]
    return SpackRequest(
        stack=stack,
        state=state,
        settings=settings,
        repository=folder,
        committed=committed,
        mpi=mpi,
        mpi_root=mpi_root,
        applications={
            file.stem: _environment(file.read_text(encoding="utf-8"), file)["spack"]
            for file in added
        },
        inputs=_digest(_inputs(settings, mpi, folder, added)),
    )


def obstacle(application: str, mpi: MpiPackage, settings: SpackSettings) -> str:
    """Return why a stack does not have an application; empty when it does."""
    known = every_benchmark()[application]
    if application not in settings.applications:
        return (
            f"{known.title} is built on request: name {application!r} in the stack's setting "
            "'applications'"
        )
    if not (known.build and known.build.fortran):
        return ""
    if not mpi.proves_fortran:
        return UNPROVEN_FORTRAN.format(mpi.title)
    if settings.externals and mpi.wheel and not wheels.STACKS[mpi.wheel].fortran:
        return f"{wheels.NO_FORTRAN.format(mpi.title)}; leave 'externals' out"
    return ""


NO_SPECS = Words("spack.no-specs", "it needs 'spack:' with a list of 'specs:', each a string")


def _environment(text: str, path: Path) -> Mapping[str, Any]:
    document = read_document(text)
    for complaint in document.complaints:
        raise ClustergateError(complaint.reason.at(f"{path}:{complaint.line}"))
    data: Any = document.data
    try:
        specs = data["spack"]["specs"]
    except (KeyError, TypeError):
        specs = None
    if not isinstance(specs, list) or not all(isinstance(spec, str) for spec in specs):
        raise ClustergateError(NO_SPECS(at=f"{path}:1"))
    environment: Mapping[str, Any] = data
    return environment


def _inputs(
    settings: SpackSettings, mpi: MpiPackage, repository: Path, added: Sequence[Path]
) -> Iterable[bytes]:
    pins = bootstrap.read_pins(repository / "pins.yaml")
    chosen = [settings.blas, settings.fabric, settings.target, settings.externals]
    yield json.dumps([pins.packages.commit, *chosen]).encode()
    if settings.externals:
        yield LAYOUT.encode()
        names = [builder.OPENBLAS, *([f"{mpi.wheel}.txt"] if mpi.wheel else [])]
        yield from ((prefixes.REQUIREMENTS / name).read_bytes() for name in names)
    own = [environment_file(settings, repository), *choice_files(settings, repository), *added]
    own += sorted((repository / "spack_repo").rglob("*.py"))
    for scope in settings.scopes:
        own += [path for path in scope_files(Path(scope)) if path.name != _NO_INPUT]
    for path in own:
        yield path.name.encode() + b"\0" + path.read_bytes()


def _digest(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()[:12]


def builtin(state: Path) -> Path:
    """Return Spack's own package repository, as the pinned release has it."""
    return state / "spack" / "packages" / bootstrap.BUILTIN


def scope_files(scope: Path) -> list[Path]:
    """Return the configuration files of a scope, which is a folder of them or one file."""
    return sorted(scope.glob("*.yaml")) if scope.is_dir() else [scope] if scope.is_file() else []


def _decides(scope: Path) -> bool:
    files = scope_files(scope)
    if "$" in str(scope):
        return True
    if scope.is_dir():
        return any(path.stem in (*_DECIDING, "include") for path in files)
    return any(
        f"{name}:" in path.read_text(encoding="utf-8") for path in files for name in _DECIDING
    )


def compose(
    request: SpackRequest,
    externals: Sequence[External] = (),
    tools: Mapping[str, Any] | None = None,
    sources: Path | None = None,
) -> Path:
    """Write the environment that Spack is to build and return its folder.

    An external takes the place of the MPI that is pinned. ``tools`` are further entries of
    ``packages.yaml``, ``sources`` is a source mirror of our own.
    """
    choices = choice_files(request.settings, request.repository)
    includes = [*request.scopes, *map(str, choices), str(request.folder / OWN_SCOPE)]
    request.folder.mkdir(parents=True, exist_ok=True)
    scope = own_scope(request, externals, tools or {}, sources)
    write_whole(request.folder / OWN_SCOPE, yaml.safe_dump(scope, sort_keys=False))
    # The two colons shut out what the machine's other configuration says.
    given = {external.package: external.spec for external in externals}
    specs = [given.get(package_name(spec), spec) for spec in request.specs]
    inside = {key: value for key, value in request.committed["spack"].items() if key != "specs"}
    config = {**inside.pop("config", {}), "install_tree": {"root": str(request.store)}}
    environment = {"include:": includes, "specs": specs, "config": config, **inside}
    text = yaml.safe_dump({"spack": environment}, sort_keys=False)
    write_whole(request.folder / "spack.yaml", text)
    return request.folder


def own_scope(
    request: SpackRequest,
    externals: Sequence[External],
    tools: Mapping[str, Any],
    sources: Path | None,
) -> dict[str, Any]:
    """Return the weakest scope: what holds unless the site says otherwise."""
    own = request.repository / "spack_repo" / "clustergate"
    scope: dict[str, Any] = {
        "repos": {"clustergate": str(own), "builtin": str(builtin(request.state))},
        # clingo comes with the suite's own Python.
        "bootstrap": {"enable": True, "sources:": []},
        "config": {
            "source_cache": str(request.state / "spack" / "source-cache"),
            # Two stacks install into one store; on a slow file system each writes for long.
            "db_lock_timeout": DATABASE_SECONDS,
        },
        # What happens to lie in the store must not decide what a stack is.
        "concretizer": {"reuse": False},
    }
    packages = {**tools, **{external.package: external.entry() for external in externals}}
    if request.settings.target:
        packages["all"] = {"require": [f"target={request.settings.target}"]}
    for added in request.applications.values():
        for package, entry in added.get("packages", {}).items():
            packages[package] = {**packages.get(package, {}), **entry}
    if packages:
        scope["packages"] = packages
    if sources is not None:
        url = sources.as_uri()
        scope["mirrors"] = {"clustergate": {"url": url, "source": True, "binary": False}}
    return scope
