"""What limits the figures of host_overhead. Pure functions."""

from __future__ import annotations

from clustergate.benchmarks.limits import Measurement
from clustergate.model import Limit

# It is the difference of two times, each with its noise.
_AVAILABILITY = Limit(
    110.0, None, "no processor has more than all of its time for work, but for the noise"
)


def limits(one: Measurement) -> tuple[Limit, ...]:
    """Limit a figure of host_overhead; what a call takes may be next to nothing."""
    return (_AVAILABILITY,) if one.sample.metric == "availability_percent" else ()
