"""Whether jobs have their nodes for themselves: as somebody says, else as it was seen. Pure.

It chooses how much is known beforehand of how figures scatter, and no verdict by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from clustergate.machine.peaks import peaks_of
from clustergate.model import CaseRecord, NodeFacts
from clustergate.wording.reasons import Fact, Reason, reason

# What others may use of a launch, of how many launches, and by what share the trials of a kernel
# may differ: the interval of an undisturbed peak spans a tenth at most.
_OTHERS, _LAUNCHES, _SCATTER = 0.02, 0.05, 0.10
_FEWEST = 3


@dataclass(frozen=True)
class Sharing:
    """Whether the nodes of a partition are ``exclusive``, and where that is known from."""

    exclusive: bool
    why: Reason

    @property
    def words(self) -> str:
        return "exclusive nodes" if self.exclusive else "shared machine"


def sharing_of(partition: str, stated: bool | None, records: Sequence[CaseRecord]) -> Sharing:
    """Return whether jobs of a partition have their nodes for themselves.

    ``stated`` is what the site config or the scheduler's options say, None for nothing.
    """
    if stated is not None:
        code = "nodes.stated-exclusive" if stated else "nodes.stated-shared"
        return Sharing(stated, reason(code, partition=partition))
    others = [
        launch.others_share
        for record in records
        for launch in record.launches
        if launch.others_share is not None
    ]
    busy = sum(share > _OTHERS for share in others)
    peaks = [peak for record in records for peak in peaks_of(record.peaks)]
    scatter = max((one.high / one.low - 1 for one in peaks if one.low), default=1.0)
    of: dict[str, Fact] = {"partition": partition, "launches": len(others)}
    if any(peak.virtual for peak in peaks):
        return Sharing(False, reason("nodes.virtual", partition=partition))
    if not peaks or len(others) < _FEWEST:
        return Sharing(False, reason("nodes.unseen", partition=partition))
    if busy > _LAUNCHES * len(others):
        return Sharing(False, reason("nodes.with-others", busy=busy, **of))
    if scatter > _SCATTER:
        return Sharing(False, reason("nodes.unsteady", scatter=scatter, partition=partition))
    return Sharing(True, reason("nodes.alone", scatter=scatter, **of))


def sharings(records: Iterable[CaseRecord], nodes: Mapping[str, NodeFacts]) -> dict[str, Sharing]:
    """Return by partition, also of those without a record, what its nodes were.

    ``nodes`` is as stated.
    """
    by_partition: dict[str, list[CaseRecord]] = {partition: [] for partition in nodes}
    for record in records:
        by_partition.setdefault(record.partition, []).append(record)
    return {
        partition: sharing_of(partition, nodes.get(partition, NodeFacts()).exclusive, some)
        for partition, some in by_partition.items()
    }


def exclusive_partitions(records: Iterable[CaseRecord], nodes: Mapping[str, NodeFacts]) -> set[str]:
    """Return the partitions whose nodes were exclusive; ``nodes`` is as stated."""
    return {name for name, one in sharings(records, nodes).items() if one.exclusive}


def in_words(sharings: Iterable[Sharing]) -> str:
    """Return in two words what the partitions of a run are, empty for none."""
    words = {one.words for one in sharings}
    return words.pop() if len(words) == 1 else "exclusive nodes and shared ones" if words else ""
