"""MPI stacks: a provider puts one on disk, a manifest tells the checks what is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from clustergate.model import ClustergateError
from clustergate.stacks import lacking, wheels
from clustergate.stacks.lacking import Lack
from clustergate.stacks.manifest import Manifest, write_manifest
from clustergate.stacks.sources import named_folders
from clustergate.stacks.spack import provider as spack

PROVIDERS = ("wheels", "spack")


class StackOrder(NamedTuple):
    """One stack of a site config: its name, who provides it, and that provider's settings."""

    stack: str
    provider: str
    settings: Mapping[str, Any] = {}


class UnknownProvider(ClustergateError):
    """A site config names a provider that does not exist."""


class UnusablePath(ClustergateError):
    """Nothing that is built below such a path can be found again."""


def provide(
    provider: str,
    stack: str,
    state: Path,
    *,
    say: Callable[[str], None] = lambda sentence: None,
    refresh: bool = False,
    settings: Mapping[str, Any] | None = None,
    applications: Sequence[str] = (),
) -> Manifest:
    """Put a stack on disk by its provider, write its manifest and return it.

    ``settings`` are what the site config says to this provider; ``applications`` are wanted
    too; those that Spack builds are a setting. Raises a
    :class:`~clustergate.model.ClustergateError` in one sentence that says what to do.
    """
    _require_known(provider, stack, settings)
    folders = named_folders()
    if provider == "spack":
        manifest = spack.provide(
            stack, state, folders, settings, say=say, refresh=refresh, applications=applications
        )
    else:
        manifest = wheels.provide(
            stack, state, folders, say=say, refresh=refresh, applications=applications
        )
    write_manifest(state, manifest)
    return manifest


def lacks(
    provider: str,
    stack: str,
    state: Path,
    *,
    say: Callable[[str], None] = lambda sentence: None,
    settings: Mapping[str, Any] | None = None,
) -> list[Lack]:
    """Return in seconds what a stack is built with and is not here; raises as :func:`provide`."""
    _require_known(provider, stack, settings)
    if found := {*":;"} & {*str(state)}:
        raise UnusablePath(
            f"the path {state} has a {' and a '.join(sorted(found))}, where PATH or "
            "LD_LIBRARY_PATH would end; clone to another folder, or name one in CLUSTERGATE_HOME"
        )
    if provider == "spack":
        return spack.lacks(stack, state, named_folders(), settings, say=say)
    return list(lacking.broken_compiler())


def planned(provider: str, stack: str, settings: Mapping[str, Any] | None = None) -> Manifest:
    """Return the manifest that a stack would have, for dry runs: names instead of paths."""
    _require_known(provider, stack, settings)
    return spack.planned(stack, settings) if provider == "spack" else wheels.planned(stack)


def _require_known(provider: str, stack: str, settings: Mapping[str, Any] | None) -> None:
    if provider not in PROVIDERS:
        known = ", ".join(PROVIDERS)
        raise UnknownProvider(f"the stack {stack} names the provider {provider!r}; known: {known}")
    if settings and provider == "wheels":
        named = ", ".join(settings)
        raise UnknownProvider(f"the stack {stack}: its provider wheels has no settings ({named})")
