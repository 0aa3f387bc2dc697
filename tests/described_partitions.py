"""Partitions as a loaded site config describes them, for tests that need their size alone."""

from clustergate.sites.description import Partition
from clustergate.sites.shape import Shape


def described(
    fullname: str, shape: Shape, *stacks: str, memory_bytes_per_node: int = 2**50
) -> Partition:
    """Return a partition of a size, with MPICH unless stacks are named."""
    system, _, name = fullname.partition(":")
    return Partition(
        name=name,
        scheduler="local",
        environs=stacks or ("mpich",),
        cores_per_node=shape.cores_per_node,
        memory_bytes_per_node=memory_bytes_per_node,
        nominal_gflops_per_core=10.0,
        nodes=shape.nodes,
        process_counts=shape.counts,
        placements=shape.placed,
        system=system,
        excluded_nodes=shape.excluded,
    )
