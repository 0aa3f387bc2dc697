"""MPI stacks: a provider puts one on disk, a manifest tells the checks what is there."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from clustergate.model import ClustergateError
from clustergate.stacks import wheels
from clustergate.stacks.manifest import Manifest, write_manifest

PROVIDERS: Mapping[str, Callable[..., Manifest]] = {"wheels": wheels.provide}
PLANNERS: Mapping[str, Callable[[str], Manifest]] = {"wheels": wheels.planned}


class UnknownProvider(ClustergateError):
    """A site config names a provider that does not exist."""


def provide(
    provider: str,
    stack: str,
    state: Path,
    *,
    say: Callable[[str], None] = lambda sentence: None,
    refresh: bool = False,
) -> Manifest:
    """Put a stack on disk by its provider, write its manifest and return it.

    Raises a :class:`~clustergate.model.ClustergateError` in one sentence that says what to do.
    """
    _require_known(provider, stack)
    folders = [Path(f) for f in os.environ.get("CLUSTERGATE_SOURCES", "").split(os.pathsep) if f]
    manifest = PROVIDERS[provider](stack, state, folders, say=say, refresh=refresh)
    write_manifest(state, manifest)
    return manifest


def planned(provider: str, stack: str) -> Manifest:
    """Return the manifest that a stack would have, for dry runs: names instead of paths."""
    _require_known(provider, stack)
    return PLANNERS[provider](stack)


def _require_known(provider: str, stack: str) -> None:
    if provider not in PROVIDERS:
        known = ", ".join(PROVIDERS)
        raise UnknownProvider(f"the stack {stack} names the provider {provider!r}; known: {known}")
