"""How ranks lie on the nodes of a partition."""

from __future__ import annotations

from clustergate.core.model import ClustergateError
from clustergate.core.reasons import Words
from clustergate.launch.dialects import Layout
from clustergate.sites.description import Partition

DOES_NOT_FIT = Words(
    "layout.does-not-fit",
    (
        "{ranks} ranks, {placement}, with {cores_per_rank:core|cores} each, do not fit on "
        "{partition}, which has {nodes:node|nodes} of {cores_per_node:core|cores}"
    ),
    remedy="ask for fewer, or check which nodes or cores are missing",
)


def layout_on_partition(
    ranks: int,
    placement: str,
    cores_per_rank: int,
    partition: Partition,
) -> Layout:
    """Return how ranks lie on the nodes of a partition: packed, or one on each.

    Raises :class:`ClustergateError` for ranks that do not fit.
    """
    shape = partition.shape
    fitting = shape.cores_per_node // cores_per_rank
    per_node = min(ranks, fitting) if placement == "packed" else 1
    if ranks < 1 or not shape.holds(ranks, placement, cores_per_rank):
        raise ClustergateError(
            DOES_NOT_FIT(
                ranks=ranks,
                placement=placement,
                cores_per_rank=cores_per_rank,
                partition=partition.fullname,
                nodes=shape.nodes,
                cores_per_node=shape.cores_per_node,
            )
        )
    return Layout(ranks, per_node, cores_per_rank, partition.bind_to_cores)
