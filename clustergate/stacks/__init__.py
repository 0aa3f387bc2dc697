"""MPI stacks: a provider puts one on disk, a manifest tells the checks what is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from clustergate.model import ClustergateError, Say
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
    order: StackOrder,
    state: Path,
    *,
    say: Say = lambda sentence: None,
    refresh: bool = False,
    applications: Sequence[str] = (),
) -> Manifest:
    """Put a stack on disk by its provider, write its manifest and return it.

    ``applications`` are wanted too; those that Spack builds are a setting. Raises a
    :class:`~clustergate.model.ClustergateError` in one sentence that says what to do.
    """
    _require_known(order)
    folders = named_folders()
    if order.provider == "spack":
        manifest = spack.provide(
            *(order.stack, state, folders, order.settings),
            say=say,
            refresh=refresh,
            applications=applications,
        )
    else:
        manifest = wheels.provide(
            order.stack, state, folders, say=say, refresh=refresh, applications=applications
        )
    write_manifest(state, manifest)
    return manifest


def lacks(order: StackOrder, state: Path, *, say: Say = lambda sentence: None) -> list[Lack]:
    """Return in seconds what a stack is built with and is not here; raises as :func:`provide`."""
    _require_known(order)
    if separators := {*":;"} & {*str(state)}:
        raise UnusablePath(
            "path.separators", path=state, separators=" and ".join(sorted(separators))
        )
    if order.provider == "spack":
        return spack.lacks(order.stack, state, named_folders(), order.settings, say=say)
    return list(lacking.broken_compiler())


def planned(order: StackOrder) -> Manifest:
    """Return the manifest that a stack would have, for dry runs: names instead of paths."""
    _require_known(order)
    if order.provider == "spack":
        return spack.planned(order.stack, order.settings)
    return wheels.planned(order.stack)


def _require_known(order: StackOrder) -> None:
    stack, provider, settings = order
    if provider not in PROVIDERS:
        known = list(PROVIDERS)
        raise UnknownProvider("stack.unknown-provider", stack=stack, name=provider, known=known)
    if settings and provider == "wheels":
        raise UnknownProvider("stack.wheels-settings", stack=stack, named=list(settings))
