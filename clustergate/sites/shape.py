"""The size of a partition: nodes, cores, and the ranks and placements that follow. Pure."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

from clustergate.core.model import ClustergateError
from clustergate.core.reasons import Words


def process_counts(maximum: int) -> tuple[int, ...]:
    """Return the process counts of a scaling series: 2, 4, 8, … and ``maximum`` itself."""
    powers = (2**k for k in range(1, maximum.bit_length()))
    return (*(power for power in powers if power < maximum), maximum)


PROCESS_COUNTS = Words(
    "input.process-counts",
    "CLUSTERGATE_PROCESS_COUNTS is a list such as 2,3,5",
    remedy="this is not: {named!r}",
)


@dataclass(frozen=True)
class Shape:
    """The size of a partition, as its site config states it.

    ``counts`` and ``placed`` replace the process counts and placements that follow from the size.
    ``excluded`` nodes are left out, by the hostfile or for this run, and not among ``nodes``. A
    node has so many NUMA ``domains``. Where nobody states counts, only the ``ends`` of the series
    are measured: two ranks, the most on a node, and the most of all.
    """

    cores_per_node: int
    nodes: int
    counts: tuple[int, ...] = ()
    placed: tuple[str, ...] = ()
    excluded: int = 0
    domains: int = 1
    ends: bool = False

    def rank_counts(self, named: str = "") -> tuple[int, ...]:
        """Return the process counts to measure: 2, 4, … up to every core, or the named ones.

        ``named`` is a list such as ``3,5,7``; raises :class:`ClustergateError` when it is not.
        """
        if not named:
            return self.counts or process_counts(self.cores_per_node * self.nodes)
        if not re.fullmatch(r"[1-9]\d{0,6}(,[1-9]\d{0,6})*", named):
            raise ClustergateError(PROCESS_COUNTS(named=named))
        return tuple(sorted({int(count) for count in named.split(",")}))

    def placements(self) -> tuple[str, ...]:
        """Return how ranks can lie: packed on as few nodes as hold them, or one on each node.

        On nodes of one core both are the same.
        """
        differ = self.nodes > 1 and self.cores_per_node > 1
        return self.placed or (("packed", "one-per-node") if differ else ("packed",))

    def layouts(self, count: int, named: str = "") -> tuple[str, ...]:
        """Return the placements in which so many ranks are measured, none where they do not fit."""
        return tuple(
            how
            for how in self.placements()
            if self.holds(count, how)
            and (named or self.counts or not self.ends or count in self._ends(how))
        )

    def _ends(self, placement: str) -> tuple[int, ...]:
        held = [
            n for n in process_counts(self.cores_per_node * self.nodes) if self.holds(n, placement)
        ]
        within = [n for n in held if placement == "packed" and n <= self.cores_per_node]
        return (*held[:1], *within[-1:], *held[-1:])

    def holds(self, ranks: int, placement: str, cores_per_rank: int = 1) -> bool:
        """Tell whether so many ranks, with so many cores for each, fit so."""
        return ranks <= self._on_a_node(placement, cores_per_rank) * self.nodes

    def nodes_for(self, ranks: int, placement: str, cores_per_rank: int = 1) -> int:
        """Return on how many nodes so many ranks lie; on all of them where they do not fit."""
        on_a_node = max(self._on_a_node(placement, cores_per_rank), 1)
        return min(math.ceil(ranks / on_a_node), self.nodes)

    def _on_a_node(self, placement: str, cores_per_rank: int) -> int:
        fitting = self.cores_per_node // cores_per_rank
        return fitting if placement == "packed" else min(fitting, 1)

    @property
    def one_node(self) -> Shape:
        """One node of the partition: of the stated counts those that fit on it, if any does.

        What fits nowhere stays among them, so that it fails.
        """
        here = [n for n in self.counts if n <= self.cores_per_node]
        nowhere = [n for n in self.counts if not self.holds(n, "packed")]
        counts = (*here, *nowhere)
        return replace(self, nodes=1, counts=counts, placed=("packed",), excluded=0)

    @property
    def domain_counts(self) -> tuple[int, ...]:
        """The processes of one node: one alone, and one in each of several NUMA domains."""
        return tuple(sorted({1, self.domains}))

    @property
    def whole(self) -> Shape:
        """The partition with the nodes that are excluded."""
        return replace(self, nodes=self.nodes + self.excluded, excluded=0)
