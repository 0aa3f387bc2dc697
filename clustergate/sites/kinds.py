"""The partitions of a site config from Slurm's: one for each kind of node. Pure.

The same nodes are often in several partitions of Slurm, here called queues, and one queue often has
nodes of several kinds. Each kind becomes a partition, by the queue that reaches most of its nodes;
a feature, or else a list of the others, keeps other kinds out of its jobs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from clustergate.launch.hostfiles import fold
from clustergate.sites.scontrol import SlurmNode, SlurmPartition

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

    ``choosing`` is the option of sbatch that keeps nodes of other kinds out, empty where the queue
    has none; ``others`` are the queues that reach some of the nodes too.
    """

    name: str
    queue: SlurmPartition
    nodes: tuple[SlurmNode, ...]
    choosing: str = ""
    others: tuple[SlurmPartition, ...] = ()

    @property
    def cores(self) -> int:
        """What jobs may use of each node."""
        return self.nodes[0].cores

    @property
    def memory_bytes(self) -> int:
        """What jobs may use of every node, 0 where Slurm was not told."""
        return min(node.memory_bytes for node in self.nodes)

    def shares_machine(self, here_s: float | None = None) -> bool:
        """Tell whether its nodes are on one machine, whose cores and network they share.

        Slurm says so of daemons that share a host. Else they do where all booted at the same moment
        as this machine (``here_s``), or at the same moment and with one load: nodes that somebody
        switched on together are idle, or differ in it.
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
    nodes: Mapping[str, SlurmNode],
    queues: Sequence[SlurmPartition],
    groups: Iterable[str] | None = None,
) -> tuple[list[NodeKind], dict[str, list[str]]]:
    """Return the partitions, and the nodes in none of them by the reason.

    ``groups`` are those of the user, who gets nothing from a queue of other groups; None where they
    are not known.
    """
    reached = {name for queue in queues for name in queue.nodes}
    left_out = {
        "in no partition of Slurm": [name for name in nodes if name not in reached],
        "Slurm does not say how many cores": [n.name for n in nodes.values() if not n.cores],
        "not in the output of `scontrol show node`": sorted(reached - nodes.keys()),
    }
    known = [node for node in nodes.values() if node.cores and node.name in reached]
    kinds = []
    for alike in _alike(known):
        left = {node.name: node for node in alike}
        while left:
            queue = max(queues, key=lambda one: _rank(one, left, groups))
            taken = [left.pop(name) for name in queue.nodes if name in left]
            others = [q for q in queues if q is not queue and _overlap(q, taken)]
            choosing = _choosing(queue, alike, nodes)
            kinds.append(NodeKind(queue.name, queue, tuple(taken), choosing, tuple(others)))
    kinds.sort(key=lambda one: (queues.index(one.queue), -len(one.nodes)))
    return _named(kinds), {why: names for why, names in left_out.items() if names}


def _alike(nodes: Iterable[SlurmNode]) -> list[list[SlurmNode]]:
    """Return the nodes by what jobs get of them; little differences of memory make no kind."""
    by_cores: dict[tuple[int, int], list[SlurmNode]] = {}
    for node in nodes:
        by_cores.setdefault((node.cores, node.hardware_cores), []).append(node)
    groups: list[list[SlurmNode]] = []
    for group in by_cores.values():
        least = -1.0
        for node in sorted(group, key=lambda one: one.memory_bytes):
            if least <= 0 < node.memory_bytes or node.memory_bytes > least * _MEMORY_ALIKE:
                least = float(node.memory_bytes)
                groups.append([])
            groups[-1].append(node)
    return groups


def _overlap(queue: SlurmPartition, nodes: Iterable[SlurmNode]) -> bool:
    return not {node.name for node in nodes}.isdisjoint(queue.nodes)


def _rank(
    queue: SlurmPartition, left: Mapping[str, SlurmNode], groups: Iterable[str] | None
) -> tuple[float, ...]:
    reaches = sum(name in left for name in queue.nodes)
    refused = groups is not None and queue.groups and queue.groups.isdisjoint(groups)
    at_once = min(reaches, queue.most or reaches)
    usable = reaches > 0 and queue.is_up and not refused
    return (reaches > 0, usable, reaches, queue.is_open, at_once, queue.is_default)


def _choosing(
    queue: SlurmPartition, kind: Iterable[SlurmNode], nodes: Mapping[str, SlurmNode]
) -> str:
    """Return the option by which jobs in a queue get no node of another kind."""
    own = {node.name: node for node in kind}
    foreign = [nodes[n] for n in queue.nodes if n in nodes and n not in own]
    if not foreign:
        return ""
    common = frozenset.intersection(*(own[n].features for n in queue.nodes if n in own))
    # Most kinds that a feature tells apart are told apart by one.
    for size in range(1, _MOST_FEATURES + 1):
        for chosen in combinations(sorted(common), size):
            if not any(node.features.issuperset(chosen) for node in foreign):
                return f"--constraint={'&'.join(chosen)}"
    return f"--exclude={fold(node.name for node in foreign)}"


def _named(kinds: Sequence[NodeKind]) -> list[NodeKind]:
    """Return them with names that ReFrame takes, each another; that of the queue where it can."""
    queues = [kind.queue.name for kind in kinds]
    taken: set[str] = set()
    named = []
    for kind in kinds:
        words = [kind.queue.name]
        if queues.count(kind.queue.name) > 1:
            constraint = re.fullmatch(r"--constraint=([\w.+@-]+)", kind.choosing)
            gib = round(kind.memory_bytes / 2**30)
            words.append(constraint[1] if constraint else f"{kind.cores}c-{gib}g")
        # ReFrame's names begin with a letter, and have no other signs than these.
        name = re.sub(r"[^A-Za-z0-9_-]", "-", "-".join(words))
        name = name if name[0].isalpha() else f"p-{name}"
        number = 1
        while (unique := name if number == 1 else f"{name}-{number}") in taken:
            number += 1
        taken.add(unique)
        named.append(replace(kind, name=unique))
    return named
