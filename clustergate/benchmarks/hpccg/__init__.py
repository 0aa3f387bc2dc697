"""HPCCG, run as by Martin et al. (SiCortex SC072, section 7)."""

from clustergate.benchmarks.budget import Budget
from clustergate.benchmarks.descriptor import (
    Benchmark,
    CannotRun,
    Check,
    Effort,
    Format,
    Headline,
    Sweep,
)
from clustergate.benchmarks.hpccg.build import BUILD
from clustergate.benchmarks.hpccg.output import TITLE, parse_hpccg
from clustergate.benchmarks.limits import rate_limits
from clustergate.core.words import INPUT_TOO_SMALL

HPCCG_EDGE = 64


def hpccg_arguments(edge: int = HPCCG_EDGE) -> list[str]:
    """Return the arguments of HPCCG: the block of each process, so that it always scales weakly."""
    if edge < 2:
        raise CannotRun(INPUT_TOO_SMALL(name="the edge of a block", least=2, value=edge))
    return [str(edge)] * 3


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
