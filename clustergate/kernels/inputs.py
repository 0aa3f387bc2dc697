"""What the suite's own MPI kernels are asked to do, from a node and the settings. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clustergate.kernels.outputs import STREAM_KERNELS, TEST_BYTES
from clustergate.model import ClustergateError

DOUBLE_BYTES = 8
# STREAM's own rule: each array at least four times the last-level caches.
STREAM_CACHES = 4
STREAM_ARRAYS = 3
_LARGEST_MEMORY_SHARE = 0.8
# An array of so much of the memory leaves the caches of every machine: they are smaller by far.
_CACHES_UNKNOWN_SHARE = 0.1


class KernelInputError(ClustergateError):
    """A kernel cannot be run as asked, or the site config lacks what its input follows from."""


def flush_bytes(
    asked: int, stated: int | None, cache_bytes_per_node: int | None, ranks_per_node: int
) -> int:
    """Return how many bytes each rank goes through before a trial.

    ``asked`` wins if it is not negative (0: no flush), then what the site config states as
    ``flush_bytes`` for each rank; else the ranks of a node share its caches, so that all of them
    together go through as much as these hold. Raises :class:`KernelInputError` where nothing says.
    """
    if asked >= 0:
        return asked
    if stated is not None:
        return stated
    if cache_bytes_per_node is None:
        raise KernelInputError(
            "how many bytes flush the caches is not known; state cache_bytes_per_node in the site "
            "config, or flush_bytes for each rank"
        )
    return -(-cache_bytes_per_node // (ranks_per_node * DOUBLE_BYTES)) * DOUBLE_BYTES


def trials_arguments(tests: Sequence[str], trials: int, flushed: int) -> list[str]:
    """Return the arguments of mpi_trials; raises :class:`KernelInputError` for unknown tests."""
    unknown = [name for name in tests if name not in TEST_BYTES]
    if unknown or not tests:
        raise KernelInputError(
            f"there is no test {', '.join(unknown) or '(none named)'}; the tests are "
            f"{', '.join(TEST_BYTES)}"
        )
    if trials < 2:
        raise KernelInputError("trials must be at least 2, since the first one never counts")
    numbers = ["--flush-bytes", str(flushed), "--trials", str(trials)]
    return [*numbers, "--tests", ",".join(tests)]


def trials_measured(tests: Sequence[str]) -> frozenset[tuple[str, int]]:
    """Return the tests and sizes in bytes that mpi_trials then measures."""
    return frozenset((test, size) for test in tests for size in TEST_BYTES[test])


def doubling_bytes(largest_bytes: int) -> tuple[int, ...]:
    """Return 1, 2, 4, … bytes up to the largest."""
    if largest_bytes < 1:
        raise KernelInputError(f"the largest message must have a byte at least: {largest_bytes}")
    return tuple(1 << k for k in range(largest_bytes.bit_length()))


def stream_elements(
    asked: int, cache_bytes_per_node: int | None, memory_bytes_per_node: int, ranks_per_node: int
) -> int:
    """Return the length of each rank's three arrays, in doubles.

    One array of all ranks of a node together is at least four times the node's caches, as STREAM
    demands, or a tenth of the memory where the caches are not known; a smaller one that is asked
    for is refused. Raises :class:`KernelInputError` also where the memory does not hold three such
    arrays.
    """
    least_bytes = int(_CACHES_UNKNOWN_SHARE * memory_bytes_per_node)
    if cache_bytes_per_node is not None:
        least_bytes = STREAM_CACHES * cache_bytes_per_node
    fewest = -(-least_bytes // (DOUBLE_BYTES * ranks_per_node))
    elements = asked or fewest
    if elements < fewest:
        raise KernelInputError(
            f"{elements} elements for each of {ranks_per_node} ranks may not leave the caches; "
            f"take {fewest} at least"
        )
    needed = STREAM_ARRAYS * DOUBLE_BYTES * elements * ranks_per_node
    if needed > _LARGEST_MEMORY_SHARE * memory_bytes_per_node:
        raise KernelInputError(
            f"three arrays of {elements} elements for each of {ranks_per_node} ranks take {needed} "
            f"bytes, more than {_LARGEST_MEMORY_SHARE:.0%} of the node's memory"
        )
    return elements


def stream_measured() -> frozenset[tuple[str, int]]:
    """Return what stream measures."""
    return frozenset((kernel, 0) for kernel in STREAM_KERNELS)


def arguments(settings: Mapping[str, float]) -> list[str]:
    """Return numbers as options: ``{"trials": 5}`` becomes ``--trials 5``."""
    named = [(f"--{name.replace('_', '-')}", f"{value:.15g}") for name, value in settings.items()]
    return [word for pair in named for word in pair]
