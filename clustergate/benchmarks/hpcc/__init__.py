"""The HPC Challenge."""

from dataclasses import dataclass

from clustergate.benchmarks.descriptor import Benchmark, Check, Clocks, Format, Headline, Share
from clustergate.benchmarks.hpcc import balance
from clustergate.benchmarks.hpcc.apart import APART
from clustergate.benchmarks.hpcc.build import BUILD
from clustergate.benchmarks.hpcc.limits import limits
from clustergate.benchmarks.hpcc.output import METRICS, TITLE, parse_hpcc
from clustergate.benchmarks.hpl.effort import LinpackEffort


@dataclass(frozen=True, kw_only=True)
class HpccEffort(LinpackEffort):
    """How large HPCC's matrices are; ``random_access`` takes a time of its own."""

    random_access: bool = True


# One process alone sends nothing, and HPCC leaves these out.
_BETWEEN_PROCESSES = (
    *("MaxPingPongLatency_usec", "MinPingPongBandwidth_GBytes"),
    *("RandomlyOrderedRingLatency_usec", "RandomlyOrderedRingBandwidth_GBytes"),
)
_JUDGED = (
    *("HPL_Tflops", "SingleDGEMM_Gflops", "StarDGEMM_Gflops", "PTRANS_GBs", "MPIFFT_Gflops"),
    *("SingleSTREAM_Triad", "StarSTREAM_Triad", *_BETWEEN_PROCESSES),
)
_WITH_RANDOM_ACCESS = (*_JUDGED, "StarRandomAccess_GUPs", "MPIRandomAccess_GUPs")

# A node's bandwidth is shared: what one rank reaches says little.
_OF_TRIAD = Share("of the node's triad", "triad")

BENCHMARK = Benchmark(
    "hpcc",
    "HPCC",
    Format(TITLE, parse_hpcc),
    checks=(
        Check(
            "HpccCheck",
            "HPC Challenge: HPL, DGEMM, PTRANS, RandomAccess, STREAM, FFT and rings in one run",
            judged={"smoke": _JUDGED, "maintenance": _WITH_RANDOM_ACCESS},
            between_processes=frozenset(_BETWEEN_PROCESSES),
        ),
    ),
    efforts={
        "smoke": HpccEffort(
            seconds=3.0,
            memory_fraction=0.2,
            random_access=False,
            leaves_out="no time-bounded RandomAccess",
        ),
        "maintenance": HpccEffort(
            seconds=40.0, memory_fraction=0.2, leaves_out="HPCC on a fifth of the memory"
        ),
        "acceptance": HpccEffort(seconds=600.0, memory_fraction=0.5),
    },
    metrics={**METRICS, **balance.METRICS},
    place=2,
    limits=limits,
    clocks=Clocks(
        dated=r"Current time \((\d{1,12})\) is .*\s*",
        lasted=r"(?:(?:Verification:  )?Real time used +=|Execution time \(wall clock\) +=) *"
        r"(\d{1,12}\.\d{1,9}) sec.*\s*",
        # HPL's own rows have told it.
        repeated=frozenset({"HPL_time"}),
    ),
    matrix="HPL",
    usual_s=150.0,
    apart=APART,
    families={
        # What HPL_Tflops tells in other words.
        "": ("performance_gflops", "HPL_time"),
        "All ranks together": (),
        "Times of all ranks together": ("_time",),
        "Every rank at once": ("Star",),
        "One rank alone": ("Single",),
        "Between ranks": ("PingPong", "OrderedRing"),
    },
    headlines=(
        Headline("HPCC HPL", "Gflop/s", "HpccCheck", "HPL_Tflops", "HPL_Tflops", scale=1000.0),
        *(
            Headline(f"HPCC {title}", unit, "HpccCheck", figure, figure, share=share)
            for title, unit, figure, share in (
                ("StarDGEMM", "Gflop/s", "StarDGEMM_Gflops", None),
                (
                    "StarSTREAM Triad",
                    "GB/s",
                    "StarSTREAM_Triad",
                    _OF_TRIAD,
                ),
                ("MPIFFT", "Gflop/s", "MPIFFT_Gflops", None),
                ("PTRANS", "GB/s", "PTRANS_GBs", None),
            )
        ),
        Headline(
            *("HPCC random ring latency", "us", "HpccCheck"),
            *("RandomlyOrderedRingLatency_usec", "RandomlyOrderedRingLatency_usec"),
            pick=min,
        ),
    ),
    build=BUILD,
)
