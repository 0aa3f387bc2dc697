"""The few figures that stand for all in a summary."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from clustergate.benchmarks.npb.output import BENCHMARKS
from clustergate.model import ConditionValue, Figure
from clustergate.verdicts.efficiency import DGEMM, FMA_PEAK


@dataclass(frozen=True)
class Headline:
    """One line of the summary's table: which figures it shows and which of several it picks."""

    title: str
    unit: str
    check: str
    benchmark: str
    metric: str
    conditions: Mapping[str, ConditionValue] = field(default_factory=dict)
    pick: Callable[[Iterable[float]], float] = max
    scale: float = 1.0

    def shows(self, figure: Figure) -> bool:
        """Tell whether a figure belongs on this line."""
        return (
            figure.benchmark == self.benchmark
            and figure.metric == self.metric
            and all(figure.conditions.get(key) == value for key, value in self.conditions.items())
        )


_IMB = "ImbMpi1Check"
_HPCC = "HpccCheck"
_EFFICIENCY = "efficiency_percent"

HEADLINES = (
    Headline("HPL", "Gflop/s", "HplCheck", "HPL", "performance_gflops"),
    Headline(
        "HPL of measured FMA peak", "%", "HplCheck", "HPL", _EFFICIENCY, {"against": FMA_PEAK}
    ),
    Headline("HPL of DGEMM", "%", "HplCheck", "HPL", _EFFICIENCY, {"against": DGEMM}),
    Headline("HPCC HPL", "Gflop/s", _HPCC, "HPL_Tflops", "HPL_Tflops", scale=1000.0),
    Headline("HPCC StarDGEMM", "Gflop/s", _HPCC, "StarDGEMM_Gflops", "StarDGEMM_Gflops"),
    Headline("HPCC StarSTREAM Triad", "GB/s", _HPCC, "StarSTREAM_Triad", "StarSTREAM_Triad"),
    Headline("HPCC MPIFFT", "Gflop/s", _HPCC, "MPIFFT_Gflops", "MPIFFT_Gflops"),
    Headline("HPCC PTRANS", "GB/s", _HPCC, "PTRANS_GBs", "PTRANS_GBs"),
    Headline(
        "HPCC random ring latency",
        "us",
        _HPCC,
        "RandomlyOrderedRingLatency_usec",
        "RandomlyOrderedRingLatency_usec",
        pick=min,
    ),
    Headline("PingPong 8 B", "us", _IMB, "PingPong", "latency_us", {"bytes": 8}, min),
    Headline("PingPong best", "MB/s", _IMB, "PingPong", "bandwidth_mb_s"),
    Headline("Exchange best", "MB/s", _IMB, "Exchange", "bandwidth_mb_s"),
    Headline("Allreduce 8 B", "us", _IMB, "Allreduce", "t_avg_us", {"bytes": 8}),
    Headline("Allreduce 1 MB", "us", _IMB, "Allreduce", "t_avg_us", {"bytes": 1 << 20}),
    Headline("Alltoall 1 MB", "us", _IMB, "Alltoall", "t_avg_us", {"bytes": 1 << 20}),
    Headline("Barrier", "us", _IMB, "Barrier", "t_avg_us"),
    *(
        Headline(
            f"flushed {test} {told}".strip(),
            "us",
            "MpiTrialsCheck",
            test,
            "time_us",
            {"bytes": size},
        )
        for test, size, told in (
            *(("bcast", 8, "8 B"), ("bcast", 1_000_000, "1 MB"), ("allreduce", 8, "8 B")),
            *(("alltoall", 10_000, "10 kB"), ("barrier", 0, "")),
        )
    ),
    Headline(
        *("availability at most, Isend", "%", "HostOverheadCheck", "host_overhead"),
        *("availability_percent", {"call": "isend"}),
    ),
    Headline(
        *("stream in both directions best", "MB/s", "BidirectionalStreamCheck"),
        *("bidirectional_stream", "bandwidth_mb_s"),
    ),
    Headline(
        "STREAM triad", "GB/s", "StreamCheck", "STREAM", "bandwidth_gb_s", {"kernel": "triad"}
    ),
    Headline("HPCCG", "Mflop/s", "HpccgCheck", "HPCCG", "performance_mflops"),
    *(
        Headline(
            f"LAMMPS {model}, {scaling}: atoms x steps",
            "1/s",
            "LammpsCheck",
            f"LAMMPS-{model}-{scaling}",
            "atom_steps_per_s",
        )
        for model in ("lj", "rhodo")
        for scaling in ("strong", "weak")
    ),
    *(
        Headline(f"NPB {name}", "Mop/s", "NpbCheck", f"NPB-{name}", "total_mop_per_s")
        for name in BENCHMARKS
    ),
)
