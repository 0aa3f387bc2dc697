"""The Intel MPI Benchmarks."""

from clustergate.benchmarks.descriptor import Benchmark, Budget, Check, Format, Sweep
from clustergate.benchmarks.imb.command import MPI1_BENCHMARKS, ImbEffort
from clustergate.benchmarks.imb.limits import limits
from clustergate.benchmarks.imb.output import is_imb, parse_imb

_MORE = frozenset({"imb-more"})

BENCHMARK = Benchmark(
    "imb",
    "IMB",
    Format(is_imb, parse_imb),
    checks=(
        Check(
            "ImbMpi1Check",
            "IMB-MPI1: point-to-point and collective calls",
            Sweep.LAYOUTS,
            judged={"smoke": MPI1_BENCHMARKS},
        ),
        Check("ImbRmaCheck", "IMB-RMA: one-sided calls", Sweep.LAYOUTS, tags=_MORE),
        Check(
            "ImbNbcCheck",
            "IMB-NBC: non-blocking collective calls and their overlap with computation",
            Sweep.LAYOUTS,
            tags=_MORE,
        ),
        Check(
            "ImbP2pCheck",
            "IMB-P2P: point-to-point patterns of all ranks at once",
            Sweep.LAYOUTS,
            tags=_MORE,
        ),
        Check(
            "ImbMtCheck",
            "IMB-MT: several threads of each rank in MPI at once",
            Sweep.LAYOUTS,
            tags=_MORE,
        ),
    ),
    efforts={
        "smoke": ImbEffort(
            budget=Budget(at_least=3, at_most=6, seconds=20.0),
            sizes=(0, 8, 1024, 8192, 65536, 1048576, 4194304),
            repetitions=100,
            volume_mb=8,
            seconds=5.0,
        ),
        "maintenance": ImbEffort(
            budget=Budget(at_least=10, at_most=20, seconds=180.0, precision=0.02),
            repetitions=200,
            volume_mb=8,
            seconds=10.0,
        ),
        "acceptance": ImbEffort(
            budget=Budget(at_least=10, at_most=50, seconds=3600.0, precision=0.01),
            repetitions=10000,
            volume_mb=400,
            seconds=60.0,
        ),
    },
    place=3,
    limits=limits,
)
