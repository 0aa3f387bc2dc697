"""HPL."""

from clustergate.benchmarks.descriptor import (
    CTIME,
    AbCheck,
    Benchmark,
    Check,
    Clocks,
    Format,
    Headline,
)
from clustergate.benchmarks.hpl.build import BUILD
from clustergate.benchmarks.hpl.efficiency import DGEMM, FMA_PEAK, NOMINAL, doubt_of
from clustergate.benchmarks.hpl.effort import LinpackEffort
from clustergate.benchmarks.hpl.limits import limits
from clustergate.benchmarks.hpl.output import TITLE, parse_hpl

BENCHMARK = Benchmark(
    "hpl",
    "HPL",
    Format(TITLE, parse_hpl),
    checks=(
        Check(
            "HplCheck",
            "HPL: the rate of solving a dense linear system",
            judged={"smoke": ("HPL.performance_gflops",)},
        ),
    ),
    efforts={
        "smoke": LinpackEffort(seconds=8.0, memory_fraction=0.5, saves_time_by="a small HPL"),
        "maintenance": LinpackEffort(
            seconds=120.0, saves_time_by="HPL of two minutes instead of one that fills the memory"
        ),
        "acceptance": LinpackEffort(seconds=None),
    },
    place=1,
    limits=limits,
    clocks=Clocks(
        dated_here=rf"HPL_pdgesv\(\) (?:start|end) time +{CTIME}\s*",
        stamped=rf"HPL_pdgesv\(\) (start|end) time +{CTIME}\s*",
    ),
    matrix="HPL",
    usual_s=150.0,
    doubt=doubt_of,
    apart={"HPL": None},
    ab=AbCheck("AbHplCheck"),
    headlines=(
        Headline("HPL", "Gflop/s", "HplCheck", "HPL", "performance_gflops"),
        Headline(
            *("HPL of measured FMA peak", "%", "HplCheck", "HPL", "efficiency_percent"),
            {"against": FMA_PEAK},
        ),
        Headline("HPL of DGEMM", "%", "HplCheck", "HPL", "efficiency_percent", {"against": DGEMM}),
        Headline(
            *("HPL of nominal peak", "%", "HplCheck", "HPL", "efficiency_percent"),
            {"against": NOMINAL},
        ),
    ),
    build=BUILD,
)
