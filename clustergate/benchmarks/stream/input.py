"""What stream is asked to do, from a node and the settings. Pure."""

from __future__ import annotations

from clustergate.benchmarks.descriptor import CannotRun
from clustergate.benchmarks.mpi_kernel import DOUBLE_BYTES
from clustergate.benchmarks.stream.output import STREAM_KERNELS
from clustergate.core.reasons import Words

# STREAM's own rule: each array at least four times the last-level caches.
STREAM_CACHES = 4
STREAM_ARRAYS = 3
_LARGEST_MEMORY_SHARE = 0.8
# An array of so much of the memory leaves the caches of every machine: they are smaller by far.
_CACHES_UNKNOWN_SHARE = 0.1


IN_THE_CACHES = Words(
    "sizing.in-the-caches",
    "{elements} elements for each of {ranks} ranks may not leave the caches",
    remedy="take {fewest} at least",
)
BEYOND_MEMORY = Words(
    "sizing.beyond-memory",
    (
        "three arrays of {elements} elements for each of {ranks} ranks take {needed} bytes, more "
        "than {share:whole_percent} of the node's memory"
    ),
)


def stream_elements(
    asked: int, cache_bytes_per_node: int | None, memory_bytes_per_node: int, ranks_per_node: int
) -> int:
    """Return the length of each rank's three arrays, in doubles.

    One array of all ranks of a node together is at least four times the node's caches, as STREAM
    demands, or a tenth of the memory where the caches are not known; a smaller one that is asked
    for is refused. Raises :class:`CannotRun` also where the memory does not hold three such
    arrays.
    """
    least_bytes = int(_CACHES_UNKNOWN_SHARE * memory_bytes_per_node)
    if cache_bytes_per_node is not None:
        least_bytes = STREAM_CACHES * cache_bytes_per_node
    fewest = -(-least_bytes // (DOUBLE_BYTES * ranks_per_node))
    elements = asked or fewest
    if elements < fewest:
        facts = {"elements": elements, "ranks": ranks_per_node, "fewest": fewest}
        raise CannotRun(IN_THE_CACHES(**facts))
    needed = STREAM_ARRAYS * DOUBLE_BYTES * elements * ranks_per_node
    if needed > _LARGEST_MEMORY_SHARE * memory_bytes_per_node:
        facts = {"elements": elements, "ranks": ranks_per_node, "needed": needed}
        raise CannotRun(BEYOND_MEMORY(**facts, share=_LARGEST_MEMORY_SHARE))
    return elements


def stream_measured() -> frozenset[tuple[str, int]]:
    return frozenset((kernel, 0) for kernel in STREAM_KERNELS)
