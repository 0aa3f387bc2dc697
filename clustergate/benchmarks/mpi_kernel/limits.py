"""What limits the figures of the suite's own MPI kernels.

Left out, because they are not sound: STREAM from below, and times of flushed messages within a node
(how much a flush leaves in the caches is not known). Pure functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from clustergate.benchmarks.limits import (
    DOUBLE_BYTES,
    Measurement,
    Messages,
    carried_by,
    carrying,
    limits_of_any,
    streaming,
)
from clustergate.model import Limit

_BOTH_DIRECTIONS = Messages(2, 2, 2, pairs=True)
# It is the difference of two times, each with its noise.
_AVAILABILITY = Limit(
    110.0, None, "no processor has more than all of its time for work, but for the noise"
)


def limits(one: Measurement) -> tuple[Limit, ...]:
    """Return the limits of a figure of one of the kernels."""
    return _LIMITS.get(one.check, limits_of_any)(one)


def _of_trials(one: Measurement) -> tuple[Limit, ...]:
    """Limit a figure of mpi_trials."""
    answered = one.sample.benchmark == "ping_pong"
    return limits_of_any(one, _crossing(one) if answered else (), answered=answered)


def _crossing(one: Measurement) -> Iterator[Limit]:
    """Limit the time of half a round trip from below, where the message goes through the network.

    The other tests begin on each rank when it leaves a barrier, which is no common beginning.
    """
    peer, size = int(one.sample.conditions["peer"]), int(one.sample.conditions["bytes"])
    link_mb_s = one.node.link_mb_s
    if one.sample.metric == "time_us" and peer >= one.ranks and link_mb_s is not None:
        yield Limit(None, size / link_mb_s, carried_by(link_mb_s))


def _of_host_overhead(one: Measurement) -> tuple[Limit, ...]:
    """Limit a figure of host_overhead; what a call takes may be next to nothing."""
    return (_AVAILABILITY,) if one.sample.metric == "availability_percent" else ()


def _of_bidirectional_stream(one: Measurement) -> tuple[Limit, ...]:
    """Limit a figure of bidirectional_stream."""
    counted = one.sample.metric == "bandwidth_mb_s"
    return limits_of_any(one, carrying(one, _BOTH_DIRECTIONS) if counted else ())


def _of_stream(one: Measurement) -> tuple[Limit, ...]:
    """Limit a figure of stream, whose ranks wait for each other."""
    array = int(one.sample.conditions["elements"]) * DOUBLE_BYTES * one.ranks
    return limits_of_any(one, streaming(one, array, one.cores))


_LIMITS: Mapping[str, Callable[[Measurement], tuple[Limit, ...]]] = {
    "MpiTrialsCheck": _of_trials,
    "HostOverheadCheck": _of_host_overhead,
    "BidirectionalStreamCheck": _of_bidirectional_stream,
    "StreamCheck": _of_stream,
}
