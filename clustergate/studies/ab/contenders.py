"""Who is compared: a stack by its name or by a manifest's path, and variables of its own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from clustergate.core.model import BadRequest, require_name
from clustergate.core.reasons import Reason, Words
from clustergate.launch.dialects import env_words
from clustergate.launch.plan import IN_FRONT, preloading
from clustergate.stacks import suggestion
from clustergate.stacks.golden import builds as golden
from clustergate.stacks.manifest import Manifest, read_manifest, read_manifest_file

SYNTAX = (
    "STACK, STACK:VARIABLE=VALUE, or in the place of STACK golden:STACK, or the path of a manifest "
    "(…/manifests/mpich.json); further variables follow after a colon each"
)
SIDES = "ABCDEFGH"
"""By these letters records tell the contenders of a job apart, at most so many."""
PRELOAD = "LD_PRELOAD"
GOLDEN = "golden:"
# A colon within a value is its own (I_MPI_FABRICS=shm:ofi): only one before NAME= parts.
_PARTS = re.compile(r":(?=[A-Za-z_][A-Za-z0-9_]*=)")
# What UCX and Intel MPI print of variables that they do not know, and ld.so of a missing object.
# UCX guesses in brackets which one was meant.
_UNUSED = re.compile(r"unused env(?:ironment)? variables?: *([^(\n]*)")
_UNSUPPORTED = re.compile(r"\b(I_MPI_\w+) environment variable is not supported")
_NOT_PRELOADED = re.compile(
    r"object '([^']*)' from LD_PRELOAD cannot be preloaded(?: \(([^)]*)\))?"
)
# By these the driver knows the ranks of a launch.
_OURS = "CLUSTERGATE_PROOF"


@dataclass(frozen=True)
class Named:
    """A contender as it was named: ``stack`` is a name, or the path of a manifest.

    ``golden`` tells whether the stack's golden build is meant.
    """

    text: str
    stack: str
    variables: Mapping[str, str] = field(default_factory=dict)
    golden: bool = False

    @property
    def is_path(self) -> bool:
        """Whether the stack is named by its manifest's path."""
        return "/" in self.stack or self.stack.endswith(".json")


NO_STACK = Words("contender.no-stack", "{text!r} names no stack", remedy="write {syntax}")
NO_VARIABLE = Words(
    "contender.no-variable",
    "{text!r}: {rest!r} is not VARIABLE=VALUE",
    remedy="write {syntax}",
)
SET_TWICE = Words("contender.set-twice", "{text!r} sets {name} twice")
OWN_VARIABLE = Words("contender.own-variable", "{text!r}: the suite itself sets {name}")


def parse_contender(text: str) -> Named:
    """Return a contender from its text; raises :class:`BadRequest` for what is none."""
    stack, *settings = _PARTS.split(text.strip())
    pinned = stack.startswith(GOLDEN)
    stack = stack.removeprefix(GOLDEN)
    if not stack or "=" in stack:
        raise BadRequest(NO_STACK(text=text, syntax=SYNTAX))
    if ":" in stack:
        _, _, rest = stack.partition(":")
        raise BadRequest(NO_VARIABLE(text=text, rest=rest, syntax=SYNTAX))
    if pinned:
        require_name("stack", stack)
    variables: dict[str, str] = {}
    for setting in settings:
        name, _, value = setting.partition("=")
        if name in variables:
            raise BadRequest(SET_TWICE(text=text, name=name))
        if name.startswith(_OURS):
            raise BadRequest(OWN_VARIABLE(text=text, name=name))
        variables[name] = value
    return Named(text.strip(), stack, variables, pinned)


UNKNOWN_STACK = Words(
    "contender.unknown-stack",
    "the site config names no stack {name!r}",
    remedy="known: {known:list}{meant}; or name the path of a manifest",
)


def require_known(named: Named, known: Iterable[str]) -> None:
    """Refuse a stack that the site config does not name.

    A manifest's path is taken as it is, and so is a golden build.
    """
    known = sorted(known)
    if not (named.is_path or named.golden or named.stack in known):
        meant = suggestion(named.stack, known)
        raise BadRequest(UNKNOWN_STACK(name=named.stack, known=known, meant=meant))


def manifest_of(named: Named, state: Path) -> Manifest:
    """Read what a contender's provider put on disk.

    Raises :class:`~clustergate.stacks.manifest.ManifestError` when that was nothing, and
    :class:`BadRequest` for a golden build that is not what was pinned.
    """
    if named.golden:
        return golden.launchable(state, named.stack)
    if named.is_path:
        return read_manifest_file(Path(named.stack))
    return read_manifest(state, named.stack)


def in_environment(named: Named, exports: Mapping[str, str]) -> dict[str, str]:
    """Return what the launcher sees: a contender's own variables win.

    What goes in front of the node's own value goes in front of the stack's, too.
    """
    environment = dict(exports)
    for name, value in named.variables.items():
        if name == PRELOAD:
            continue
        behind = environment.get(name, "") if name in IN_FRONT else ""
        environment[name] = f"{value}:{behind}" if behind else value
    return environment


def in_ranks(named: Named, proof_library: str) -> list[str]:
    """Return the words that give each rank the variables, whatever its launcher passes on.

    A library to preload stands behind the one that proves the launch.
    """
    own = {k: v for k, v in named.variables.items() if k not in IN_FRONT}
    preloaded = preloading(proof_library, own) if PRELOAD in own else []
    return env_words({k: v for k, v in own.items() if k != PRELOAD}, preloaded)


UNUSED_VARIABLE = Words(
    "contender.unused-variable",
    "{name} had no effect: the MPI library does not know or use it",
    remedy="correct its name, or leave it out",
)
NOT_PRELOADED = Words(
    "contender.not-preloaded",
    "{path} of LD_PRELOAD was not loaded",
    cause="{why}",
    remedy="name a library that every node has",
)


def without_effect(named: Named, lines: Iterable[str]) -> list[Reason]:
    """Return which of a contender's variables changed nothing, as its launch printed it.

    Else a misspelt one would compare a stack with itself. What others set is no matter here.
    """
    preloaded = re.split("[: ]", named.variables.get(PRELOAD, ""))
    reasons: dict[Reason, None] = {}
    for line in lines:
        unused = [name for part in _UNUSED.findall(line) for name in re.findall(r"\w+", part)]
        for name in [*unused, *_UNSUPPORTED.findall(line)]:
            if name in named.variables:
                reasons[UNUSED_VARIABLE(name=name)] = None
        for path, why in _NOT_PRELOADED.findall(line):
            if path in preloaded:
                reasons[NOT_PRELOADED(path=path, why=why or "ld.so")] = None
    return [*reasons]
