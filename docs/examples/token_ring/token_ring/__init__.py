"""A token passed around all ranks: all that clustergate needs to know of this benchmark."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from clustergate.benchmarks.build import Build, own_programs
from clustergate.benchmarks.descriptor import (
    AbCheck,
    Benchmark,
    Budget,
    Check,
    Effort,
    Format,
    Headline,
    Sweep,
)
from clustergate.core.model import Better, Metric
from token_ring.output import TITLE, parse_token_ring

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True, kw_only=True)
class RingEffort(Effort):
    """How often the token goes around in a launch."""

    rounds: int


BENCHMARK = Benchmark(
    "token_ring",
    "token ring",
    Format(TITLE, parse_token_ring),
    checks=(
        Check(
            "TokenRingCheck",
            "A token of 8 bytes passed around all ranks",
            Sweep.LAYOUTS,
            judged={"smoke": ("TokenRing.round_us",)},
        ),
    ),
    # The mode "acceptance" spends what "maintenance" does.
    efforts={
        "smoke": RingEffort(budget=Budget(at_least=3, at_most=6, seconds=10.0), rounds=10_000),
        "maintenance": RingEffort(
            budget=Budget(at_least=10, at_most=20, seconds=60.0, precision=0.02), rounds=100_000
        ),
    },
    metrics={"round_us": Metric("round_us", "us", Better.LOWER)},
    headlines=(Headline("token ring", "us", "TokenRingCheck", "TokenRing", "round_us"),),
    ab=AbCheck("AbTokenRingCheck", sweep=Sweep.LAYOUTS),
    build=Build(programs=("token_ring",), recipes=(own_programs(HERE, ("token_ring",)),)),
    tests=str(HERE / "check.py"),
)
