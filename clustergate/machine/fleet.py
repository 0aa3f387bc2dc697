"""Nodes beside each other: what each has that most of its kind have not. Pure."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from clustergate.machine.changes import Difference, changes_of_nodes, describe_one, shown
from clustergate.machine.fingerprint import Fingerprint, Value

_OF_A_KIND = ("architecture", "processor", "system_product")
_SIZE = "memory_total_gib"
FEWEST_OF_A_KIND = 3
"""Nodes from which on they tell which of them is unlike the rest."""
# Another size of memory makes a kind where so many have it, and else a node that lost some.
_SHARE = 0.10
_SAME_SIZE = 0.01


@dataclass(frozen=True)
class Kind:
    """Nodes that should be alike: of one processor and product, with as much memory.

    ``usual`` is what most of them have, ``share_of`` the share that have it, by dotted names.
    """

    title: str
    nodes: tuple[str, ...]
    usual: Fingerprint
    share_of: Mapping[str, float]


@dataclass(frozen=True)
class Deviation:
    """A value that some nodes of a kind have (``change.after``), and what they should have.

    ``share`` of the kind have what they should; None where that is a golden node's.
    """

    kind: Kind
    change: Difference
    nodes: tuple[str, ...]
    share: float | None


def kinds_of(states: Mapping[str, Fingerprint]) -> list[Kind]:
    """Return the kinds of nodes that there are, the largest first."""
    alike: dict[tuple[Value, ...], list[str]] = defaultdict(list)
    for node, state in states.items():
        alike[product_of(state)].append(node)
    kinds = [
        _kind(nodes, {node: states[node] for node in nodes})
        for group in alike.values()
        for nodes in _by_size(group, states)
    ]
    return sorted(kinds, key=lambda kind: (-len(kind.nodes), kind.title, kind.nodes))


def deviations(
    kinds: Sequence[Kind], states: Mapping[str, Fingerprint], golden: Fingerprint | None = None
) -> list[Deviation]:
    """Return what nodes have that most of their kind have not, or not the ``golden`` node.

    Of each kind the likeliest cause of a slowdown comes first. A golden node speaks for the nodes
    of its own processor and product.
    """
    odd: list[Deviation] = []
    for kind in kinds:
        own = {node: states[node] for node in kind.nodes}
        for change, nodes in changes_of_nodes(dict.fromkeys(own, kind.usual), own):
            odd.append(Deviation(kind, change, tuple(nodes), _share(kind, change.name)))
        if golden is not None and product_of(golden) == product_of(kind.usual):
            known = {repr(one.change) for one in odd if one.kind is kind}
            for change, nodes in changes_of_nodes(dict.fromkeys(own, golden), own):
                if repr(change) not in known:
                    odd.append(Deviation(kind, change, tuple(nodes), None))
    return odd


def deviations_by_node(states: Mapping[str, Fingerprint]) -> dict[str, list[str]]:
    """Return in words what each node has that most of its kind have not, the likeliest cause first.

    Two nodes do not tell which of them is right.
    """
    unlike: dict[str, list[str]] = {}
    kinds = [kind for kind in kinds_of(states) if len(kind.nodes) >= FEWEST_OF_A_KIND]
    for one in deviations(kinds, states):
        for node in one.nodes:
            unlike.setdefault(node, []).append(describe_one(one.change))
    return unlike


def _share(kind: Kind, name: str) -> float:
    """Return the share of a kind that have the usual value, of a device as a whole the least."""
    shares = [s for n, s in kind.share_of.items() if n == name or n.startswith(f"{name}.")]
    return min(shares, default=1.0)


def product_of(state: Fingerprint) -> tuple[Value, ...]:
    """Return what nodes of one product share: architecture, processor and the system's name."""
    return tuple(map(state.get("hardware", {}).get, _OF_A_KIND))


def _by_size(nodes: Sequence[str], states: Mapping[str, Fingerprint]) -> Iterator[list[str]]:
    """Yield nodes of one product by the sizes of memory that enough of them have.

    Those of a size that few have are with the largest group, in which they will be odd.
    """

    def size(node: str) -> float:
        total = states[node].get("hardware", {}).get(_SIZE)
        return float(total) if isinstance(total, int | float) else 0.0

    groups: list[list[str]] = []
    for node in sorted(nodes, key=size):
        if groups and size(node) <= size(groups[-1][0]) * (1 + _SAME_SIZE):
            groups[-1].append(node)
        else:
            groups.append([node])
    enough = max(FEWEST_OF_A_KIND, _SHARE * len(nodes))
    large = [group for group in groups if len(group) >= enough] or [max(groups, key=len)]
    largest = max(large, key=len)
    few = [node for group in groups if group not in large for node in group]
    for group in large:
        yield group + few if group is largest else group


def _kind(nodes: Sequence[str], states: Mapping[str, Fingerprint]) -> Kind:
    # Nodes with the same state share it: each is looked at once.
    counts = Counter(id(state) for state in states.values())
    distinct = {id(state): state for state in states.values()}
    votes: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for key, state in distinct.items():
        for group, values in state.items():
            for name, value in values.items():
                votes[group, name][json.dumps(value)] += counts[key]
    usual: Fingerprint = {}
    share_of = {}
    for (group, name), vote in votes.items():
        ((text, _),) = vote.most_common(1)
        lacking = len(nodes) - sum(vote.values())
        value = json.loads(text)
        if isinstance(value, float):
            value = _median(vote)
        same = sum(n for t, n in vote.items() if _same(json.loads(t), value))
        # What most nodes do not even have is nothing usual.
        if lacking <= same:
            usual.setdefault(group, {})[name] = value
            share_of[f"{group}.{name}"] = same / len(nodes)
    hardware = usual.get("hardware", {})
    said = [
        str(hardware.get("system_product") or ""),
        str(hardware.get("processor") or "unknown processor"),
        shown(f"hardware.{_SIZE}", hardware.get(_SIZE)) if hardware.get(_SIZE) else "",
    ]
    return Kind(", ".join(filter(None, said)), tuple(sorted(nodes)), usual, share_of)


def _same(one: Value, other: Value) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= _SAME_SIZE * max(one, other)
    return one == other


def _median(vote: Counter[str]) -> float:
    values = sorted(
        value
        for text, count in vote.items()
        for value in [json.loads(text)] * count
        if isinstance(value, float)
    )
    return float(values[len(values) // 2])
