"""Whether jobs have their nodes for themselves: as somebody says, else as it was seen. Pure.

It chooses how much is known beforehand of how figures scatter, and no verdict by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from clustergate.core.model import CaseRecord, NodeFacts
from clustergate.core.reasons import Facts, Reason, Words
from clustergate.machine.peaks import peaks_of

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


STATED_EXCLUSIVE = Words(
    "nodes.stated-exclusive",
    "exclusive nodes: the site config or --exclusive says so of {partition}",
)
STATED_SHARED = Words(
    "nodes.stated-shared",
    "shared machine: the site config says so of {partition}",
)
NODES_VIRTUAL = Words(
    "nodes.virtual",
    "shared machine: {partition} is virtual, and does not show who else is on its hosts",
    remedy="state exclusive: True in the site config where jobs have their nodes for themselves",
)
NODES_UNSEEN = Words(
    "nodes.unseen",
    "shared machine: too little was seen of {partition} to call its nodes exclusive",
    remedy="state exclusive: True in the site config where jobs have their nodes for themselves",
)
WITH_OTHERS = Words(
    "nodes.with-others",
    (
        "shared machine: others used more than 2 % in {busy} of {launches:launch|launches} on "
        "{partition}"
    ),
    remedy="state exclusive: True in the site config where jobs have their nodes for themselves",
)
NODES_UNSTEADY = Words(
    "nodes.unsteady",
    "shared machine: the kernels of {partition} differ by {scatter:percent}",
    remedy="state exclusive: True in the site config where jobs have their nodes for themselves",
)
NODES_ALONE = Words(
    "nodes.alone",
    (
        "exclusive nodes: others used less than 2 % in {launches:launch|launches} on "
        "{partition}, and its kernels agree within {scatter:percent}"
    ),
    remedy="state exclusive: False in the site config where other jobs may run beside",
)


def sharing_of(partition: str, stated: bool | None, records: Sequence[CaseRecord]) -> Sharing:
    """Return whether jobs of a partition have their nodes for themselves.

    ``stated`` is what the site config or the scheduler's options say, None for nothing.
    """
    if stated is not None:
        code = STATED_EXCLUSIVE if stated else STATED_SHARED
        return Sharing(stated, code(partition=partition))
    others = [
        launch.others_share
        for record in records
        for launch in record.launches
        if launch.others_share is not None
    ]
    busy = sum(share > _OTHERS for share in others)
    peaks = [peak for record in records for peak in peaks_of(record.peaks)]
    scatter = max((one.high / one.low - 1 for one in peaks if one.low), default=1.0)
    of: Facts = {"partition": partition, "launches": len(others)}
    if any(peak.virtual for peak in peaks):
        return Sharing(False, NODES_VIRTUAL(partition=partition))
    if not peaks or len(others) < _FEWEST:
        return Sharing(False, NODES_UNSEEN(partition=partition))
    if busy > _LAUNCHES * len(others):
        return Sharing(False, WITH_OTHERS(busy=busy, **of))
    if scatter > _SCATTER:
        return Sharing(False, NODES_UNSTEADY(scatter=scatter, partition=partition))
    return Sharing(True, NODES_ALONE(scatter=scatter, **of))


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
