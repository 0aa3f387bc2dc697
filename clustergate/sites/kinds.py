"""The partitions of a site config from a scheduler's queues: one for each kind of node. Pure.

The same nodes are often in several queues, which Slurm calls partitions, and one queue often has
nodes of several kinds. Each kind becomes a partition, by the queue that reaches most of its nodes;
a feature, or else a list of the others, keeps other kinds out of its jobs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from clustergate.sites.schedulers.scanned import ScannedNode, ScannedQueue
from clustergate.sites.schedulers.scheduler import Scheduler

# Firmware keeps a little memory, not the same on each node: such nodes are of one kind.
_MEMORY_ALIKE = 1.05
# Of one kernel: slurmctld takes the time that a node is up from its own when it has come to the
# message, which on a busy machine was up to 4 s later.
_BOOTED_ALIKE_S = 5.0
# Features that one constraint joins.
_MOST_FEATURES = 3


@dataclass(frozen=True)
class NodeKind:
    """Nodes of one kind, and the queue by which jobs get there.

    ``choosing`` is the option that keeps nodes of other kinds out, empty where the queue has none
    or the scheduler no such option; ``feature`` is the one that tells them apart, if one does.
    ``foreign`` are those other nodes, ``others`` the queues that reach some of its nodes too.
    """

    name: str
    queue: ScannedQueue
    nodes: tuple[ScannedNode, ...]
    choosing: str = ""
    feature: str = ""
    foreign: tuple[str, ...] = ()
    others: tuple[ScannedQueue, ...] = ()

    @property
    def cores(self) -> int:
        """What jobs may use of each node."""
        return self.nodes[0].cores

    @property
    def memory_bytes(self) -> int:
        """What jobs may use of every node, 0 where the scheduler was not told."""
        return min(node.memory_bytes for node in self.nodes)

    def shares_machine(self, here_s: float | None = None) -> bool:
        """Tell whether its nodes are on one machine, whose cores and network they share.

        A scheduler may say so of daemons that share a host. Else they do where all booted at the
        same moment as this machine (``here_s``), or at the same moment and with one load: nodes
        that somebody switched on together are idle, or differ in it.
        """
        hosts = [node.host for node in self.nodes if node.host]
        if len(hosts) > len({*hosts}):
            return True
        booted = [node.booted_s for node in self.nodes if node.booted_s is not None]
        if not 1 < len(self.nodes) == len(booted):
            return False
        loads = {node.load for node in self.nodes}
        one_load = len(loads) == 1 and loads.isdisjoint((None, 0.0))
        moments = [*booted, *([] if one_load or here_s is None else [here_s])]
        together = max(moments) - min(moments) <= _BOOTED_ALIKE_S
        return together and (one_load or here_s is not None)

    @property
    def features_of_some(self) -> dict[str, list[str]]:
        """The nodes that have a feature which others of them lack, by the feature."""
        features = frozenset().union(*(node.features for node in self.nodes))
        common = frozenset.intersection(*(node.features for node in self.nodes))
        return {
            one: [node.name for node in self.nodes if one in node.features]
            for one in sorted(features - common)
        }


def node_kinds(
    nodes: Mapping[str, ScannedNode],
    queues: Sequence[ScannedQueue],
    scheduler: Scheduler,
    groups: Iterable[str] | None = None,
) -> tuple[list[NodeKind], dict[str, list[str]]]:
    """Return the partitions, and the nodes in none of them by the reason.

    ``groups`` are those of the user, who gets nothing from a queue of other groups; None where they
    are not known.
    """
    reached = {name for queue in queues for name in queue.nodes}
    of, command = scheduler.name, " ".join(scheduler.scans[0])
    left_out = {
        f"in no {scheduler.queue_word} of {of}": [name for name in nodes if name not in reached],
        f"{of} does not say how many cores": [n.name for n in nodes.values() if not n.cores],
        f"not in the output of `{command}`": sorted(reached - nodes.keys()),
    }
    known = [node for node in nodes.values() if node.cores and node.name in reached]
    kinds = []
    for alike in _alike(known):
        left = {node.name: node for node in alike}
        while left:
            queue = max(queues, key=lambda one: _rank(one, left, groups))
            taken = [left.pop(name) for name in queue.nodes if name in left]
            others = [q for q in queues if q is not queue and _overlap(q, taken)]
            features, foreign = _telling_apart(queue, alike, nodes)
            choosing = scheduler.choosing(features, foreign) if foreign else ""
            feature = features[0] if len(features) == 1 else ""
            of_kind = choosing, feature, tuple(foreign), tuple(others)
            kinds.append(NodeKind(queue.name, queue, tuple(taken), *of_kind))
    kinds.sort(key=lambda one: (queues.index(one.queue), -len(one.nodes)))
    return _named(kinds), {why: names for why, names in left_out.items() if names}


def _alike(nodes: Iterable[ScannedNode]) -> list[list[ScannedNode]]:
    """Return the nodes by what jobs get of them; little differences of memory make no kind."""
    by_cores: dict[tuple[int, int], list[ScannedNode]] = {}
    for node in nodes:
        by_cores.setdefault((node.cores, node.hardware_cores), []).append(node)
    groups: list[list[ScannedNode]] = []
    for group in by_cores.values():
        least = -1.0
        for node in sorted(group, key=lambda one: one.memory_bytes):
            if least <= 0 < node.memory_bytes or node.memory_bytes > least * _MEMORY_ALIKE:
                least = float(node.memory_bytes)
                groups.append([])
            groups[-1].append(node)
    return groups


def _overlap(queue: ScannedQueue, nodes: Iterable[ScannedNode]) -> bool:
    return not {node.name for node in nodes}.isdisjoint(queue.nodes)


def _rank(
    queue: ScannedQueue, left: Mapping[str, ScannedNode], groups: Iterable[str] | None
) -> tuple[float, ...]:
    reaches = sum(name in left for name in queue.nodes)
    refused = groups is not None and queue.groups and queue.groups.isdisjoint(groups)
    at_once = min(reaches, queue.most or reaches)
    usable = reaches > 0 and queue.is_up and not refused
    return (reaches > 0, usable, reaches, queue.is_open, at_once, queue.is_default)


def _telling_apart(
    queue: ScannedQueue, kind: Iterable[ScannedNode], nodes: Mapping[str, ScannedNode]
) -> tuple[list[str], list[str]]:
    """Return features that nodes of the kind alone have in a queue, if any, and its other nodes."""
    own = {node.name: node for node in kind}
    foreign = [nodes[n] for n in queue.nodes if n in nodes and n not in own]
    common = frozenset.intersection(*(own[n].features for n in queue.nodes if n in own))
    # Most kinds that a feature tells apart are told apart by one.
    for size in range(1, _MOST_FEATURES + 1):
        for chosen in combinations(sorted(common), size):
            if not any(node.features.issuperset(chosen) for node in foreign):
                return [*chosen], [node.name for node in foreign]
    return [], [node.name for node in foreign]


def _named(kinds: Sequence[NodeKind]) -> list[NodeKind]:
    """Return them with names that ReFrame takes, each another; that of the queue where it can."""
    queues = [kind.queue.name for kind in kinds]
    taken: set[str] = set()
    named = []
    for kind in kinds:
        words = [kind.queue.name]
        if queues.count(kind.queue.name) > 1:
            gib = round(kind.memory_bytes / 2**30)
            words.append(kind.feature or f"{kind.cores}c-{gib}g")
        # ReFrame's names begin with a letter, and have no other signs than these.
        name = re.sub(r"[^A-Za-z0-9_-]", "-", "-".join(words))
        name = name if name[0].isalpha() else f"p-{name}"
        number = 1
        while (unique := name if number == 1 else f"{name}-{number}") in taken:
            number += 1
        taken.add(unique)
        named.append(replace(kind, name=unique))
    return named
