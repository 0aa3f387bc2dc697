"""What limits HPL: DGEMM and the FMA peak. Pure functions."""

from __future__ import annotations

from clustergate.benchmarks.limits import (
    Measurement,
    compute_limits,
    compute_limits_of_all_cores,
    limits_of_any,
)
from clustergate.core.model import Limit


def limits(measurement: Measurement) -> tuple[Limit, ...]:
    rate = measurement.sample.metric == "performance_gflops"
    return limits_of_any(measurement, solver_limits(measurement) if rate else ())


def solver_limits(measurement: Measurement, unit: float = 1.0) -> tuple[Limit, ...]:
    """Limit the rate of HPL, alone or in HPCC; ``unit`` is that of the figure per Gflop/s."""
    # HPL spends its time in DGEMM with its block size as k; a larger k is faster still.
    own = measurement.sample.conditions
    sizes = {p.k for p in measurement.peaks if p.k is not None and p.k >= int(own["nb"])}
    dgemm = [p for p in measurement.peaks if p.kind == "dgemm" and p.k == min(sizes, default=None)]
    return (
        *compute_limits(
            dgemm, "dgemm", measurement.cores, measurement.nodes * unit, measurement.on_each_node
        ),
        *compute_limits_of_all_cores(measurement, unit),
    )
