"""The NAS Parallel Benchmarks."""

from clustergate.benchmarks.budget import Budget
from clustergate.benchmarks.descriptor import Benchmark, Check, Effort, Format, Headline
from clustergate.benchmarks.limits import rate_limits
from clustergate.benchmarks.npb.build import BUILD
from clustergate.benchmarks.npb.output import BENCHMARKS, TITLE, parse_npb
from clustergate.benchmarks.npb.rules import NPB_PROCESSES

BENCHMARK = Benchmark(
    "npb",
    "NPB",
    Format(TITLE, parse_npb),
    checks=(
        Check(
            "NpbCheck",
            "NAS Parallel Benchmarks, each on as many processes as its rules allow",
            parameters={"benchmark": sorted(NPB_PROCESSES)},
            tags=frozenset({"published", "published-003"}),
        ),
    ),
    efforts={"smoke": Effort(budget=Budget(at_least=3, at_most=3))},
    place=22,
    limits=rate_limits("total_mop_per_s", 1000),
    headlines=(
        *(
            Headline(f"NPB {name}", "Mop/s", "NpbCheck", f"NPB-{name}", "total_mop_per_s")
            for name in BENCHMARKS
        ),
    ),
    build=BUILD,
)
