"""What mpi_trials is asked to do, from a node and the settings. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from clustergate.benchmarks.descriptor import CannotRun
from clustergate.benchmarks.mpi_kernel import DOUBLE_BYTES
from clustergate.benchmarks.mpi_trials.output import TEST_BYTES
from clustergate.core.reasons import Words
from clustergate.core.words import INPUT_TOO_SMALL, INPUT_UNKNOWN_NAME

CACHES_UNKNOWN = Words(
    "sizing.caches-unknown",
    "the cache size of the node is unknown, and so is how many bytes flush it",
    remedy="state cache_bytes_per_node in the site config, or flush_bytes for each rank",
)


def flush_bytes(
    asked: int, stated: int | None, cache_bytes_per_node: int | None, ranks_per_node: int
) -> int:
    """Return how many bytes each rank goes through before a trial.

    ``asked`` wins if it is not negative (0: no flush), then what the site config states as
    ``flush_bytes`` for each rank; else the ranks of a node share its caches, so that all of them
    together go through as much as these hold. Raises :class:`CannotRun` where nothing says.
    """
    if asked >= 0:
        return asked
    if stated is not None:
        return stated
    if cache_bytes_per_node is None:
        raise CannotRun(CACHES_UNKNOWN())
    return -(-cache_bytes_per_node // (ranks_per_node * DOUBLE_BYTES)) * DOUBLE_BYTES


def trials_arguments(tests: Sequence[str], trials: int, flushed: int) -> list[str]:
    """Return the arguments of mpi_trials; raises :class:`CannotRun` for unknown tests."""
    unknown = [name for name in tests if name not in TEST_BYTES]
    if unknown or not tests:
        name = ", ".join(unknown)
        raise CannotRun(INPUT_UNKNOWN_NAME(kind="test", name=name, known=list(TEST_BYTES)))
    if trials < 2:
        # The first one never counts.
        raise CannotRun(INPUT_TOO_SMALL(name="trials", least=2, value=trials))
    numbers = ["--flush-bytes", str(flushed), "--trials", str(trials)]
    return [*numbers, "--tests", ",".join(tests)]


def trials_measured(tests: Sequence[str]) -> frozenset[tuple[str, int]]:
    """Return the tests and sizes in bytes that mpi_trials then measures."""
    return frozenset((test, size) for test in tests for size in TEST_BYTES[test])
