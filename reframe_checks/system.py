"""What the system at hand gives the checks as parameters: process counts and placements."""

from __future__ import annotations

import os
from typing import Any

from reframe.core.exceptions import ReframeFatalError
from reframe.core.runtime import runtime

from clustergate import modes, sites


def shape_of(partition: Any) -> modes.Shape:
    """Return the size of a ReFrame partition, from the extras of its site config."""
    return sites.shape_of(partition.extras)


def rank_counts() -> list[int]:
    """Return the process counts to measure on the system at hand.

    ``CLUSTERGATE_PROCESS_COUNTS`` names others, such as ``3,5,7``.
    """
    named = os.environ.get("CLUSTERGATE_PROCESS_COUNTS", "")
    return sorted({count for shape in _shapes() for count in shape.rank_counts(named)})


def placements() -> list[str]:
    """Return how ranks can lie on the nodes of the system at hand."""
    return sorted({placement for shape in _shapes() for placement in shape.placements()})


def stack_names() -> list[str]:
    """Return the MPI stacks of the system at hand, in the order of its site config."""
    try:
        partitions = runtime().system.partitions
    except ReframeFatalError:
        return []
    found = [e.name for p in partitions for e in p.environs if "mpi-stack" in e.features]
    return list(dict.fromkeys(found))


def _shapes() -> list[modes.Shape]:
    try:
        return [shape_of(partition) for partition in runtime().system.partitions]
    except ReframeFatalError:
        # A site config imports the checks to see that they load, before there is a system.
        return [modes.Shape(cores_per_node=2, nodes=1)]
