"""What limits the figures of the Intel MPI Benchmarks. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Mapping

from clustergate.benchmarks.limits import Measurement, Messages, limits_of_any, message_limits
from clustergate.model import Limit

# Sendrecv counts a message twice and Exchange four times, each as it goes out and comes in.
_MESSAGES: Mapping[str, Messages] = {
    "PingPong": Messages(2, 2, 1),
    "PingPing": Messages(4, 2, 1),
    "Sendrecv": Messages(0, 2, 2),
    "Exchange": Messages(0, 2, 2),
    "Uniband": Messages(2, 1, 1, pairs=True),
    "Biband": Messages(2, 2, 2, pairs=True),
}


def limits(one: Measurement) -> tuple[Limit, ...]:
    """Return the limits of a figure of IMB."""
    # The same names count another way in IMB-P2P, and IMB-RMA returns before anything moved.
    mpi1 = one.check == "ImbMpi1Check"
    name = re.sub("(Specific|Any)Source$", "", one.sample.benchmark)
    counted = mpi1 and one.sample.metric == "bandwidth_mb_s" and name in _MESSAGES
    return limits_of_any(
        one,
        message_limits(one, _MESSAGES[name]) if counted else (),
        answered=mpi1 and name in ("PingPong", "PingPing"),
        at_once=one.check == "ImbRmaCheck",
    )
