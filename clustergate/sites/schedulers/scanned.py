"""Nodes and queues in a form that ``site scan`` reads of every scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from clustergate.core.notation import counted


@dataclass(frozen=True)
class ScannedNode:
    """One node as its scheduler knows it.

    ``cores`` and ``memory_bytes`` are what jobs may use of it, 0 where it was not told;
    ``hardware_cores`` are all that it has. ``host`` is the machine that it is on, ``booted_s`` when
    its kernel began, in seconds since the epoch, ``load`` what that kernel said of its load; None
    where the scheduler was not told.
    """

    name: str
    cores: int
    memory_bytes: int
    hardware_cores: int = 0
    features: frozenset[str] = frozenset()
    host: str = ""
    booted_s: float | None = None
    # Slurm's text says it in units, its JSON in hundredths; only one load is held to another.
    load: float | None = field(default=None, compare=False)


@dataclass(frozen=True)
class ScannedQueue:
    """One queue, which Slurm calls a partition, and the names of its nodes.

    ``most`` is how many a job gets at most, None where nothing limits it; ``groups`` and
    ``accounts`` are those that may use it, empty for everybody.
    """

    name: str
    nodes: tuple[str, ...]
    most: int | None = None
    groups: frozenset[str] = frozenset()
    accounts: frozenset[str] = frozenset()
    is_up: bool = True
    is_default: bool = False
    is_hidden: bool = False
    root_only: bool = False

    @property
    def is_open(self) -> bool:
        """Whether everybody may use it."""
        return not (self.groups or self.accounts or self.is_hidden or self.root_only)

    @property
    def terms(self) -> list[str]:
        """What limits the jobs in it."""
        return [
            *([] if self.is_up else ["not up"]),
            *([f"at most {counted(self.most, 'node')} a job"] if self.most else []),
            *([f"groups {','.join(sorted(self.groups))}"] if self.groups else []),
            *(["some accounts"] if self.accounts else []),
            *(["root only"] if self.root_only else []),
            *(["hidden"] if self.is_hidden else []),
        ]


Scanned = tuple[Mapping[str, ScannedNode], list[ScannedQueue]]
"""All nodes by their names, and all queues."""
