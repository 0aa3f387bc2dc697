"""What a site says of a stack that Spack builds: pure data, checked before anything is started."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clustergate.benchmarks.registry import builds_on_request
from clustergate.core.model import ClustergateError
from clustergate.core.paths import suite_folder
from clustergate.core.reasons import Words

STACK_PREFIX = "spack-"
EXTERNALS = ("", "wheels")
LISTS = ("scopes", "applications")


@dataclass(frozen=True)
class SpackSettings:
    """The settings of one stack, as ``sites.stack(name, provider="spack", spack={...})`` has them.

    ``environment`` names a folder of ``spack-repo/environments``, ``blas`` and ``fabric`` a file of
    ``spack-repo/choices``; an empty ``fabric`` leaves it to the environment. ``target`` pins the
    processor family that is compiled for. ``store`` is where Spack installs to, ``scopes`` are the
    site's own folders of Spack configuration, the first the strongest. ``applications`` are files
    of ``spack-repo/applications``: what only some checks need. ``externals`` "wheels" takes
    MPI and OpenBLAS from the wheels instead of building them. ``spack_root`` is the Spack to use.
    Empty stands for the default each time.
    """

    environment: str
    blas: str = "openblas"
    fabric: str = ""
    target: str = ""
    store: str = ""
    scopes: tuple[str, ...] = ()
    applications: tuple[str, ...] = ()
    externals: str = ""
    spack_root: str = ""


UNKNOWN_SETTING = Words(
    "spack.unknown-setting",
    "the stack {stack}: Spack has no setting {name!r}",
    remedy="known: {known:list}",
)
SPACK_EXTERNALS = Words(
    "spack.externals",
    "the stack {stack}: the setting 'externals' is {value!r}",
    remedy=(
        "it is 'wheels' or left out (a site's own externals are a folder with packages.yaml in "
        "'scopes')"
    ),
)
SPACK_TARGET = Words(
    "spack.target",
    "the stack {stack}: the target {target!r} is not a processor family such as x86_64_v4",
)
SPACK_SCOPE = Words(
    "spack.scope",
    "the stack {stack}: 'scopes' names {scope}, which does not exist",
    remedy="a scope is a folder with Spack's packages.yaml, mirrors.yaml and the like",
)


def read_settings(
    stack: str, given: Mapping[str, Any], repository: Path | None = None
) -> SpackSettings:
    """Complete the settings that a site config gives a stack; its schema has held their form.

    ``repository`` is by default ``spack-repo`` of the suite. Raises ClustergateError with the
    choices there are for what is not among them.
    """
    folder = repository or spack_repo()
    known = [*SpackSettings.__dataclass_fields__]
    for name in given:
        if name not in known:
            raise ClustergateError(UNKNOWN_SETTING(stack=stack, name=name, known=known))
    texts = {name: str(value) for name, value in given.items() if name not in LISTS}
    settings = SpackSettings(
        **{"environment": stack.removeprefix(STACK_PREFIX), **texts},
        scopes=tuple(str(scope) for scope in given.get("scopes", ())),
        applications=tuple(sorted({str(name) for name in given.get("applications", ())})),
    )
    choices, known = folder / "choices", environments(folder)
    where = folder / "environments"
    _require_one_of(stack, "environment", settings.environment, known, where)
    _require_one_of(stack, "blas", settings.blas, *_choices(choices / "blas"))
    if settings.fabric:
        _require_one_of(stack, "fabric", settings.fabric, *_choices(choices / "fabrics"))
    for name in settings.applications:
        there = applications_of(folder)
        _require_one_of(stack, "application", name, there, folder / "applications")
    if settings.externals not in EXTERNALS:
        raise ClustergateError(SPACK_EXTERNALS(stack=stack, value=settings.externals))
    if settings.target and not re.fullmatch(r"[a-z0-9_]+", settings.target):
        raise ClustergateError(SPACK_TARGET(stack=stack, target=settings.target))
    for scope in settings.scopes:
        if "$" not in scope and not Path(scope).exists():
            raise ClustergateError(SPACK_SCOPE(stack=stack, scope=scope))
    return settings


def spack_repo() -> Path:
    """Return the package repository, environments and choices of the suite."""
    return suite_folder("spack-repo")


def environments(repository: Path | None = None) -> list[str]:
    """Return the names of the MPI libraries that can be built with Spack."""
    folder = (repository or spack_repo()) / "environments"
    return [path.parent.name for path in folder.glob("*/spack.yaml")]


def environment_file(settings: SpackSettings, repository: Path) -> Path:
    return repository / "environments" / settings.environment / "spack.yaml"


def choice_files(settings: SpackSettings, repository: Path) -> list[Path]:
    """Return the files of the choices that a site made, fabric before BLAS."""
    choices = repository / "choices"
    fabric = [choices / "fabrics" / f"{settings.fabric}.yaml"] if settings.fabric else []
    return [*fabric, choices / "blas" / f"{settings.blas}.yaml"]


def applications_of(repository: Path | None = None) -> list[str]:
    """Return the names of the applications that can be had with Spack."""
    names, _ = _choices((repository or spack_repo()) / "applications")
    return sorted({*names} & {*builds_on_request()})


def _choices(folder: Path) -> tuple[list[str], Path]:
    return [path.stem for path in folder.glob("*.yaml")], folder


UNKNOWN_CHOICE = Words(
    "spack.unknown-choice",
    "the stack {stack}: unknown {kind} {name!r}",
    remedy="{folder} holds {known:list}",
)


def _require_one_of(stack: str, kind: str, name: str, known: Sequence[str], folder: Path) -> None:
    if name not in known:
        facts = {"stack": stack, "kind": kind, "name": name, "folder": str(folder)}
        raise ClustergateError(UNKNOWN_CHOICE(known=sorted(known) or ["none"], **facts))
