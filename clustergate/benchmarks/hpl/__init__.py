"""HPL."""

from clustergate.benchmarks.descriptor import Benchmark, Check, Format
from clustergate.benchmarks.hpl.effort import LinpackEffort
from clustergate.benchmarks.hpl.limits import limits
from clustergate.benchmarks.hpl.output import is_hpl, parse_hpl

BENCHMARK = Benchmark(
    "hpl",
    "HPL",
    Format(is_hpl, parse_hpl),
    checks=(
        Check(
            "HplCheck",
            "HPL: the rate of solving a dense linear system",
            judged={"smoke": ("HPL.performance_gflops",)},
        ),
    ),
    efforts={
        "smoke": LinpackEffort(seconds=8.0, memory_fraction=0.5),
        "maintenance": LinpackEffort(seconds=120.0),
        "acceptance": LinpackEffort(seconds=None),
    },
    place=1,
    limits=limits,
)
