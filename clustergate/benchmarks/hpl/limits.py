"""What limits HPL: DGEMM and the FMA peak. Pure functions."""

from __future__ import annotations

from clustergate.benchmarks.limits import (
    Measurement,
    compute_limits,
    compute_limits_of_all_cores,
    limits_of_any,
)
from clustergate.core.model import Limit


def limits(one: Measurement) -> tuple[Limit, ...]:
    rate = one.sample.metric == "performance_gflops"
    return limits_of_any(one, of_solving(one) if rate else ())


def of_solving(one: Measurement, unit: float = 1.0) -> tuple[Limit, ...]:
    """Limit the rate of HPL, alone or in HPCC; ``unit`` is that of the figure per Gflop/s."""
    # HPL spends its time in DGEMM with its block size as k; a larger k is faster still.
    own = one.sample.conditions
    sizes = {p.k for p in one.peaks if p.k is not None and p.k >= int(own["nb"])}
    dgemm = [p for p in one.peaks if p.kind == "dgemm" and p.k == min(sizes, default=None)]
    return (
        *compute_limits(dgemm, "dgemm", one.cores, one.nodes * unit, one.on_each_node),
        *compute_limits_of_all_cores(one, unit),
    )
