"""HPCG: conjugate gradients with a multigrid preconditioner, bound by the memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clustergate.benchmarks.budget import Budget
from clustergate.benchmarks.descriptor import AbCheck, Benchmark, Check, Effort, Format, Headline
from clustergate.benchmarks.hpcg.build import BUILD
from clustergate.benchmarks.hpcg.output import TITLE, parse_hpcg
from clustergate.benchmarks.hpcg.problem import OFFICIAL_S, bytes_per_operation
from clustergate.benchmarks.limits import (
    Measurement,
    compute_limits_of_all_cores,
    limits_of_any,
    memory_limits,
)
from clustergate.core.model import MEMORY, Limit


@dataclass(frozen=True, kw_only=True)
class HpcgEffort(Effort):
    """What is rated takes ``seconds`` at least, and a set of iterations ``set_seconds`` at most."""

    seconds: int
    set_seconds: float | None = None


def limits(one: Measurement) -> tuple[Limit, ...]:
    """Limit the rating by the memory, and by the cores."""
    counted = one.sample.metric == "performance_gflops"
    return limits_of_any(one, _measured(one) if counted else ())


def _measured(one: Measurement) -> Iterator[Limit]:
    own = one.sample.conditions
    grid = (int(own["gx"]), int(own["gy"]), int(own["gz"]))
    if one.node.cache_bytes is not None:
        cached = one.nodes * one.node.cache_bytes
        yield from memory_limits(one, bytes_per_operation(grid, cached))
    yield from compute_limits_of_all_cores(one)


BENCHMARK = Benchmark(
    "hpcg",
    "HPCG",
    Format(TITLE, parse_hpcg),
    checks=(
        Check(
            "HpcgCheck",
            "HPCG: conjugate gradients with a multigrid preconditioner, on every core",
            judged={"smoke": ("HPCG.performance_gflops",)},
            tags=frozenset({"hpcg"}),
        ),
    ),
    efforts={
        # HPCG completes sets of 50 iterations, one at least: that is the least that it rates.
        "smoke": HpcgEffort(
            budget=Budget(at_least=3, at_most=3),
            seconds=1,
            set_seconds=3.0,
            memory_fraction=0.4,
            saves_time_by="a single set of HPCG",
        ),
        "maintenance": HpcgEffort(
            budget=Budget(at_least=3, at_most=6, seconds=300.0, precision=0.02),
            seconds=30,
            set_seconds=10.0,
            memory_fraction=0.4,
            saves_time_by="HPCG of half a minute",
        ),
        # Blocks of whole steps fill more than the quarter that is official.
        "acceptance": HpcgEffort(
            budget=Budget(at_least=3, at_most=3), seconds=OFFICIAL_S, memory_fraction=0.4
        ),
    },
    place=5,
    limits=limits,
    headlines=(Headline("HPCG", "Gflop/s", "HpcgCheck", "HPCG", "performance_gflops"),),
    build=BUILD,
    kinds={"HPCG": MEMORY},
    ab=AbCheck("AbHpcgCheck"),
)
