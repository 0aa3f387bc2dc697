"""What the system at hand gives the checks as parameters: process counts and placements."""

from __future__ import annotations

import os
from typing import Any

from reframe.core.exceptions import ReframeFatalError
from reframe.core.runtime import runtime

from clustergate.sites import modes
from clustergate.sites.configs import preparation
from clustergate.sites.description import MPI_STACK, Partition, Stack
from clustergate.sites.shape import Shape

MAINTAINERS = ["the clustergate authors"]


def begin_clean(job: Any) -> None:
    """Let a job of the suite's begin with a clean environment, before the partition's commands.

    The site config would put it into the jobs of all tests.
    """
    prepare = job.prepare

    def prepare_clean(
        commands: Any, environs: Any = None, of_site: Any = None, *rest: Any, **more: Any
    ) -> None:
        prepare(
            commands, environs, [*preparation(job.sched_access), *(of_site or ())], *rest, **more
        )

    job.prepare = prepare_clean


def partition_of(test: Any) -> Partition:
    """Return the partition in which a test runs, as its site config describes it."""
    return _described(test.current_partition)


def partitions_here() -> list[Partition]:
    """Return all partitions of the system at hand, as its site config describes them."""
    try:
        return list(map(_described, runtime().system.partitions))
    except ReframeFatalError:
        # A site config imports the checks to see that they load, before there is a system.
        return [Partition(name="", scheduler="local", cores_per_node=2)]


def stack_of(test: Any) -> Stack:
    """Return the stack with which a test runs, as its site config describes it."""
    environ = test.current_environ
    return Stack.of({key: getattr(environ, key) for key in ("name", "features", "extras")})


def _described(partition: Any) -> Partition:
    scheduler, launcher = partition.scheduler.registered_name, partition.launcher_type
    said = {
        "name": partition.name,
        "scheduler": scheduler,
        "launcher": launcher.registered_name,
        "access": partition.access,
        "environs": [environ.name for environ in partition.environs],
        "extras": partition.extras,
    }
    return Partition.of(said, partition.fullname.partition(":")[0])


def used_shape(test: Any) -> Shape:
    """Return how much of its partition a test uses, where no ranks are set by hand."""
    return modes.used_shape(test.mode, type(test).__name__, partition_of(test))


def rank_counts() -> list[int]:
    """Return the process counts to measure on the system at hand, in any mode and partition.

    ``CLUSTERGATE_PROCESS_COUNTS`` names others, such as ``3,5,7``.
    """
    whole = list(_shapes().values())
    parts = [*whole, *(shape.one_node for shape in whole if not _named_counts())]
    return sorted({n for part in parts for n, _ in modes.sweep(part, whole, _named_counts())})


def placements() -> list[str]:
    """Return how ranks can lie on nodes of the system at hand, in any mode and partition."""
    parts = [part for shape in _shapes().values() for part in (shape, shape.one_node)]
    return sorted({how for part in parts for how in part.placements()})


def partitions_that_measure(test: Any, count: int, placement: str) -> list[str]:
    """Return the partitions in whose sweep a process count is, placed so, as a test runs."""
    whole, named = list(_shapes().values()), _named_counts()
    return [
        name
        for name, used in _used(test).items()
        if (count, placement) in modes.sweep(used, whole, named)
    ]


def partitions_that_place(test: Any, placement: str) -> list[str]:
    """Return the partitions in which ranks are placed so, as a test runs."""
    return [name for name, used in _used(test).items() if placement in used.placements()]


def partitions_that_scale_to(test: Any, count: int) -> list[str]:
    """Return the partitions in which an application runs on so many processes."""
    whole, named = list(_shapes().values()), _named_counts()
    return [
        name
        for name, used in _used(test).items()
        if count in modes.scaling_counts(used, whole, named)
    ]


def domain_counts() -> list[int]:
    """Return how many processes measure a node, or its NUMA domains, in any partition."""
    return sorted({count for shape in _shapes().values() for count in shape.domain_counts})


def partitions_with_domains(count: int) -> list[str]:
    """Return the partitions whose nodes so many processes measure by their NUMA domains."""
    return [name for name, shape in _shapes().items() if count in shape.domain_counts]


def stack_names() -> list[str]:
    """Return the MPI stacks of the system at hand, in the order of its site config."""
    try:
        partitions = runtime().system.partitions
    except ReframeFatalError:
        return []
    names = [e.name for p in partitions for e in p.environs if MPI_STACK in e.features]
    return list(dict.fromkeys(names))


def _named_counts() -> str:
    return os.environ.get("CLUSTERGATE_PROCESS_COUNTS", "")


def _used(test: Any) -> dict[str, Shape]:
    named = _named_counts()
    return {
        part.fullname: modes.used_shape(test.mode, type(test).__name__, part, named)
        for part in partitions_here()
    }


def _shapes() -> dict[str, Shape]:
    return {part.fullname: part.shape for part in partitions_here()}
