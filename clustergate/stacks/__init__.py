"""MPI stacks: a provider puts one on disk, a manifest tells the checks what is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from clustergate.core.model import ClustergateError, Say
from clustergate.core.notation import did_you_mean, nearest
from clustergate.core.reasons import Words
from clustergate.stacks import modules, wheels
from clustergate.stacks.builder import SetUp
from clustergate.stacks.integrity import require_as_installed
from clustergate.stacks.lacking import Lack
from clustergate.stacks.manifest import Manifest, write_manifest
from clustergate.stacks.provider import Provider
from clustergate.stacks.sources import named_folders
from clustergate.stacks.spack import provider as spack
from clustergate.stacks.spack.settings import STACK_PREFIX, environments

PROVIDERS: dict[str, Provider] = {
    one.name: one for one in (wheels.PROVIDER, spack.PROVIDER, modules.PROVIDER)
}
"""The providers by name; who names none takes the first."""
DEFAULT = next(iter(PROVIDERS))


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
    :class:`~clustergate.core.model.ClustergateError` in one sentence that says what to do.
    """
    set_up = SetUp(
        request.stack, state, say, request.settings, named_folders(), refresh, applications
    )
    manifest = PROVIDERS[request.provider].provide(set_up)
    require_as_installed(manifest, state)
    write_manifest(state, manifest)
    return manifest


PATH_SEPARATORS = Words(
    "path.separators",
    "the path {path} contains {separators}, which separates folders in PATH",
    remedy="put the suite into another folder, or name one in CLUSTERGATE_HOME",
)


def lacks(
    request: StackRequest,
    state: Path,
    *,
    say: Say = lambda sentence: None,
    refresh: bool = False,
    seen: bool = False,
) -> list[Lack]:
    """Return what a stack is built with and is not here; raises as :func:`provide`.

    Of that as much as is ``seen`` in a second or two, if that is enough.
    """
    if separators := {*":;"} & {*str(state)}:
        raise ClustergateError(
            PATH_SEPARATORS(path=state, separators=" and ".join(sorted(separators)))
        )
    set_up = SetUp(request.stack, state, say, request.settings, named_folders(), refresh)
    provider = PROVIDERS[request.provider]
    return [*((seen and provider.seen_lacking) or provider.lacks)(set_up)]


def planned(request: StackRequest) -> Manifest:
    """Return the manifest that a stack would have, for dry runs: names instead of paths."""
    return PROVIDERS[request.provider].planned(request.stack, request.settings)


def suggestion(name: str, known: Sequence[str], *, detected: bool = False) -> str:
    """Return what may be meant by a stack that a site config does not have, after a semicolon.

    That is one of ``known`` of another provider, or what a provider has and the site does not name.
    A machine that was ``detected`` has no site config of its own to add anything to.
    """
    bare = name.removeprefix(STACK_PREFIX)
    module = f'stack("{bare}", provider="modules", modules={{"load": ["{bare}"]}})'
    of_spack = f"{STACK_PREFIX}{bare}"
    provider = detected and bare in environments() and of_spack not in known
    if provider and not any(one.startswith(STACK_PREFIX) for one in known):
        called = "" if name == of_spack else f" and call it {of_spack}"
        if name == of_spack or bare not in wheels.STACKS:
            return f"; Spack builds it: set CLUSTERGATE_PROVIDER=spack{called}"
    if same := [one for one in known if one.removeprefix(STACK_PREFIX) == bare]:
        return did_you_mean(same[0])
    if bare in wheels.STACKS:
        added = f'it comes as wheels: add stack("{bare}")'
    elif bare in environments():
        added = f'Spack builds it: add stack("{of_spack}", provider="spack")'
    else:
        return did_you_mean(nearest(name, known))
    return f"; {added} to the site config, or {module} where a module loads it"
