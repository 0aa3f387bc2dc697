"""What a figure measures, and by how much such figures of an unchanged machine differ. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from clustergate.core.model import BANDWIDTH, COLLECTIVE, COMPUTE, LATENCY, MEMORY

# From that size on a message's time is that of its bytes, not of its start.
LATENCY_BELOW_BYTES = 64 << 10
_OF_MESSAGES = ("_us", "_mb_s", "message_rate_per_s")


@dataclass(frozen=True, order=True)
class FigureId:
    """A figure: the keys of its case in a reference file, its name, and what it measures.

    ``case`` is check, partition, stack, layout and effort. ``kind`` is one of
    :data:`clustergate.core.model.KINDS`, ``size_bytes`` that of its messages, -1 where it has none.
    It is ``unplaced`` where it depends on how far nodes are from each other, which nobody knows.
    """

    case: tuple[str, ...]
    name: str
    benchmark: str
    metric: str
    kind: str
    size_bytes: int = -1
    unplaced: bool = False

    @property
    def stack(self) -> str:
        return self.case[2]


def kind_of(metric: str, size_bytes: object) -> str:
    """Return the kind of a figure whose benchmark does not say it."""
    if metric.startswith("t_"):
        return COLLECTIVE
    if metric.endswith(_OF_MESSAGES):
        return kind_of_messages(size_bytes)
    return MEMORY if metric.endswith("_gb_s") else COMPUTE


def kind_of_messages(size_bytes: object) -> str:
    """Return the kind of messages between pairs of ranks, which their size decides."""
    small = not isinstance(size_bytes, int) or size_bytes < LATENCY_BELOW_BYTES
    return LATENCY if small else BANDWIDTH
