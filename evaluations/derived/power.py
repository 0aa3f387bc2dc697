"""Performance per watt, with the boundary of what the watts are of named (paper 002, section 8)."""

from __future__ import annotations

from clustergate.machine.power import Power
from evaluations.derived import require_positive


def sockets(processes: int, cores_per_socket: int) -> int:
    """Return the sockets that so many processes occupy: ceil(p / cores per socket)."""
    require_positive(processes=processes, cores_per_socket=cores_per_socket)
    return -(-processes // cores_per_socket)


def per_watt(performance: float, power: Power) -> float:
    """Return performance over watts, in the unit of the performance per watt."""
    require_positive(watts=power.watts)
    return performance / power.watts
