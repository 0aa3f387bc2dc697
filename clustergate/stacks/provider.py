"""What a provider of MPI stacks says of itself: one :class:`Provider` in a file of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from clustergate.core.model import ClustergateError
from clustergate.stacks.builder import SetUp
from clustergate.stacks.lacking import Lack, broken_compiler
from clustergate.stacks.manifest import Manifest

NO_SETTINGS: Mapping[str, Any] = {"type": "object", "additionalProperties": False}


class TooSlow(ClustergateError):
    """What a provider asks did not answer in the time there was: nothing is known of the stack."""


@dataclass(frozen=True, kw_only=True)
class Provider:
    """Who puts stacks on disk. All its functions raise ClustergateError that says what to do.

    ``name`` is what site configs call it, and the key of its settings there; ``settings`` is their
    JSON schema. What that requires makes the key one that a stack must have. ``names`` are the only
    stacks that it has; None where any name will do.

    ``provide`` puts a stack and its benchmarks on disk and returns its manifest. ``planned`` is
    what that would be, of a name and settings: names where paths would be. ``lacks`` is what is
    not here, before anything is built. At most ``at_once`` stacks are set up at a time.

    ``seen_lacking`` is as much of ``lacks`` as doctor has the time for, by default all;
    ``require_source`` raises within so many seconds for settings by which nothing can be set up any
    more, :class:`TooSlow` where that is not known by then.

    A golden build has a copy of what is ``copied``: all of such a stack lies in the state folder's
    ``prefixes`` and ``builds``. Another one stays where it is, and is held by its hashes.
    ``sets_variables`` tells that a later set-up by the same settings may export others.

    ``site_lines`` are those of a site config for a stack, on nodes with such RDMA devices;
    ``lines_here`` those for all that this machine has already, and remarks on where it looked.
    """

    name: str
    provide: Callable[[SetUp], Manifest]
    planned: Callable[[str, Mapping[str, Any]], Manifest]
    lacks: Callable[[SetUp], Sequence[Lack]] = lambda set_up: broken_compiler()
    at_once: int | None = None
    settings: Mapping[str, Any] = field(default_factory=lambda: NO_SETTINGS)
    names: Sequence[str] | None = None
    seen_lacking: Callable[[SetUp], Sequence[Lack]] | None = None
    require_source: Callable[[Mapping[str, Any], float], object] = lambda settings, limit_s: None
    copied: bool = False
    sets_variables: bool = False
    lines_here: Callable[[], tuple[Sequence[str], Sequence[str]]] = lambda: ((), ())
    site_lines: Callable[[str, Sequence[str]], Sequence[str]] = lambda stack, rdma: [
        f'stack("{stack}"),'
    ]
