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


class StackRequest(NamedTuple):
    """One stack of a site config: its name, who provides it, and that provider's settings."""

    stack: str
    provider: str
    settings: Mapping[str, Any] = {}


def provide(
    request: StackRequest,
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
    folders = named_folders()
    if request.provider == "spack":
        manifest = spack.provide(
            *(request.stack, state, folders, request.settings),
            say=say,
            refresh=refresh,
            applications=applications,
        )
    else:
        manifest = wheels.provide(
            request.stack, state, folders, say=say, refresh=refresh, applications=applications
        )
    write_manifest(state, manifest)
    return manifest


def lacks(request: StackRequest, state: Path, *, say: Say = lambda sentence: None) -> list[Lack]:
    """Return in seconds what a stack is built with and is not here; raises as :func:`provide`."""
    if separators := {*":;"} & {*str(state)}:
        raise ClustergateError(
            "path.separators", path=state, separators=" and ".join(sorted(separators))
        )
    if request.provider == "spack":
        return spack.lacks(request.stack, state, named_folders(), request.settings, say=say)
    return list(lacking.broken_compiler())


def planned(request: StackRequest) -> Manifest:
    """Return the manifest that a stack would have, for dry runs: names instead of paths."""
    if request.provider == "spack":
        return spack.planned(request.stack, request.settings)
    return wheels.planned(request.stack)
