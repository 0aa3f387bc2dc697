"""What the system at hand gives the checks as parameters: process counts and placements."""

from __future__ import annotations

import os
from typing import Any

from reframe.core.exceptions import ReframeFatalError
from reframe.core.runtime import runtime

from clustergate.sites import modes


def shape_of(partition: Any) -> modes.Shape:
    """Return the size of a ReFrame partition, from the extras of its site config."""
    return modes.Shape.of(partition.extras)


def rank_counts() -> list[int]:
    """Return the process counts to measure on the system at hand, in any of its partitions.

    ``CLUSTERGATE_PROCESS_COUNTS`` names others, such as ``3,5,7``.
    """
    return sorted({count for swept in _sweeps().values() for count, _ in swept})


def placements() -> list[str]:
    """Return how ranks can lie on the nodes of the system at hand, in any of its partitions."""
    return sorted({how for shape in _shapes().values() for how in shape.placements()})


def partitions_that_measure(count: int, placement: str) -> list[str]:
    """Return the partitions in whose sweep a process count is, placed so."""
    return [name for name, swept in _sweeps().items() if (count, placement) in swept]


def partitions_that_place(placement: str) -> list[str]:
    """Return the partitions in which ranks are placed so."""
    return [name for name, shape in _shapes().items() if placement in shape.placements()]


def partitions_that_scale_to(count: int) -> list[str]:
    """Return the partitions in which an application runs on so many processes."""
    shapes, named = _shapes(), _named_counts()
    return [
        name
        for name, shape in shapes.items()
        if count in modes.scaling_counts(shape, list(shapes.values()), named)
    ]


def stack_names() -> list[str]:
    """Return the MPI stacks of the system at hand, in the order of its site config."""
    try:
        partitions = runtime().system.partitions
    except ReframeFatalError:
        return []
    found = [e.name for p in partitions for e in p.environs if "mpi-stack" in e.features]
    return list(dict.fromkeys(found))


def _named_counts() -> str:
    return os.environ.get("CLUSTERGATE_PROCESS_COUNTS", "")


def _sweeps() -> dict[str, list[tuple[int, str]]]:
    shapes, named = _shapes(), _named_counts()
    of_all = list(shapes.values())
    return {name: modes.sweep(shape, of_all, named) for name, shape in shapes.items()}


def _shapes() -> dict[str, modes.Shape]:
    try:
        return {part.fullname: shape_of(part) for part in runtime().system.partitions}
    except ReframeFatalError:
        # A site config imports the checks to see that they load, before there is a system.
        return {"": modes.Shape(cores_per_node=2, nodes=1)}
