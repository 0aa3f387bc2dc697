"""What limits the figures of bidirectional_stream. Pure functions."""

from __future__ import annotations

from clustergate.benchmarks.limits import Measurement, Messages, limits_of_any, message_limits
from clustergate.model import Limit

_BOTH_DIRECTIONS = Messages(2, 2, 2, pairs=True)


def limits(one: Measurement) -> tuple[Limit, ...]:
    """Limit a figure of bidirectional_stream."""
    counted = one.sample.metric == "bandwidth_mb_s"
    return limits_of_any(one, message_limits(one, _BOTH_DIRECTIONS) if counted else ())
