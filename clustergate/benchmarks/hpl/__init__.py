"""HPL."""

from clustergate.benchmarks.budget import TWO_LAUNCHES
from clustergate.benchmarks.descriptor import (
    CTIME,
    AbCheck,
    Benchmark,
    Check,
    Clocks,
    Format,
    Headline,
    Share,
)
from clustergate.benchmarks.hpl.build import BUILD
from clustergate.benchmarks.hpl.efficiency import DGEMM, FMA_PEAK, NOMINAL, doubt_of
from clustergate.benchmarks.hpl.effort import LinpackEffort
from clustergate.benchmarks.hpl.limits import limits
from clustergate.benchmarks.hpl.output import TITLE, parse_hpl
from clustergate.benchmarks.hpl.settings import settings_schema, trial
from clustergate.benchmarks.hpl.sizing import rate_of_fewer_ranks
from clustergate.core.texts import SHARE, peak_title

BENCHMARK = Benchmark(
    "hpl",
    "HPL",
    Format(TITLE, parse_hpl),
    checks=(
        Check(
            "HplCheck",
            "HPL: the rate of solving a dense linear system",
            judged={"smoke": ("HPL.performance_gflops",)},
            rows=("HPL",),
        ),
    ),
    efforts={
        "quick": LinpackEffort(seconds=2.0, memory_fraction=0.5, saves_time_by="HPL of 2 s"),
        "smoke": LinpackEffort(seconds=8.0, memory_fraction=0.5, saves_time_by="a small HPL"),
        "maintenance": LinpackEffort(
            budget=TWO_LAUNCHES,
            seconds=120.0,
            saves_time_by="HPL of two minutes instead of one that fills the memory",
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
    usual_s=280.0,
    doubt=doubt_of,
    apart={"HPL": None},
    ab=AbCheck("AbHplCheck"),
    headlines=(
        Headline(
            *("HPL", "Gflop/s", "HplCheck", "HPL", "performance_gflops"),
            first="HPL",
            peak=Share("DGEMM", DGEMM, per_rank=False),
        ),
        *(
            Headline(
                f"HPL of {peak_title(peak)}",
                "%",
                "HplCheck",
                "HPL",
                SHARE,
                {"against": peak},
                above_whole="the cores ran faster than their nominal clock" * (peak == NOMINAL),
            )
            for peak in (FMA_PEAK, DGEMM, NOMINAL)
        ),
    ),
    build=BUILD,
    of_stack=settings_schema(),
    trial=trial,
    of_fewer_ranks=lambda metric, fewer, more: (
        rate_of_fewer_ranks(fewer, more) if metric == "performance_gflops" else None
    ),
)
