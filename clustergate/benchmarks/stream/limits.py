"""What limits the figures of stream; from below nothing that is sound does. Pure functions."""

from __future__ import annotations

from clustergate.benchmarks.limits import DOUBLE_BYTES, Measurement, limits_of_any, stream_limits
from clustergate.model import Limit


def limits(one: Measurement) -> tuple[Limit, ...]:
    """Limit a figure of stream, whose ranks wait for each other."""
    array = int(one.sample.conditions["elements"]) * DOUBLE_BYTES * one.ranks
    return limits_of_any(one, stream_limits(one, array, one.cores))
