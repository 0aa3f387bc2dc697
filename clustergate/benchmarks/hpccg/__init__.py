"""HPCCG."""

from clustergate.benchmarks.descriptor import (
    Benchmark,
    Budget,
    Check,
    Effort,
    Format,
    Headline,
    Sweep,
)
from clustergate.benchmarks.hpccg.build import BUILD
from clustergate.benchmarks.hpccg.output import TITLE, parse_hpccg
from clustergate.benchmarks.limits import rate_limits

BENCHMARK = Benchmark(
    "hpccg",
    "HPCCG",
    Format(TITLE, parse_hpccg),
    checks=(
        Check(
            "HpccgCheck",
            "HPCCG: conjugate gradients on a block of 64 x 64 x 64 for each process",
            Sweep.PROCESS_COUNTS,
            tags=frozenset({"published", "published-002"}),
        ),
    ),
    # Martin et al. ran each application three times.
    efforts={"smoke": Effort(budget=Budget(at_least=3, at_most=3))},
    place=21,
    limits=rate_limits("performance_mflops", 1000),
    headlines=(Headline("HPCCG", "Mflop/s", "HpccgCheck", "HPCCG", "performance_mflops"),),
    build=BUILD,
)
