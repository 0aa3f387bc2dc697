"""What limits the figures of mpi_trials.

Left out, because they are not sound: times of flushed messages within a node (how much a flush
leaves in the caches is not known). Pure functions.
"""

from __future__ import annotations

from collections.abc import Iterator

from clustergate.benchmarks.limits import Measurement, limits_of_any, link_reason
from clustergate.model import Limit


def limits(one: Measurement) -> tuple[Limit, ...]:
    """Limit a figure of mpi_trials."""
    answered = one.sample.benchmark == "ping_pong"
    return limits_of_any(one, _crossing(one) if answered else (), answered=answered)


def _crossing(one: Measurement) -> Iterator[Limit]:
    """Limit the time of half a round trip from below, where the message goes through the network.

    The other tests begin on each rank when it leaves a barrier, which is no common beginning.
    """
    peer, size = int(one.sample.conditions["peer"]), int(one.sample.conditions["bytes"])
    link_mb_s = one.node.link_mb_s
    if peer >= one.ranks and link_mb_s is not None:
        yield Limit(None, size / link_mb_s, link_reason(link_mb_s))
