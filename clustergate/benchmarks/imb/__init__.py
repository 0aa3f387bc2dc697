"""The Intel MPI Benchmarks."""

from __future__ import annotations

from collections.abc import Mapping

from clustergate.benchmarks.budget import Budget
from clustergate.benchmarks.descriptor import (
    CTIME,
    AbCheck,
    Benchmark,
    Check,
    Clocks,
    Format,
    Headline,
    Share,
    Sweep,
)
from clustergate.benchmarks.imb.build import BUILD
from clustergate.benchmarks.imb.command import (
    BY_DEFAULT,
    COUNTED,
    MPI1_BENCHMARKS,
    ImbEffort,
    measures_size,
)
from clustergate.benchmarks.imb.header import TITLE
from clustergate.benchmarks.imb.output import parse_imb
from clustergate.benchmarks.limits import Measurement, Messages, limits_of_any, message_limits
from clustergate.core.model import MESSAGES, Conditions, Limit

# Sendrecv counts a message twice and Exchange four times, each as it goes out and comes in.
_MESSAGES: Mapping[str, Messages] = {
    "PingPong": Messages(2, 2, 1),
    "PingPing": Messages(4, 2, 1),
    "Sendrecv": Messages(0, 2, 2),
    "Exchange": Messages(0, 2, 2),
    "Uniband": Messages(2, 1, 1, pairs=True),
    "Biband": Messages(2, 2, 2, pairs=True),
}


def limits(measurement: Measurement) -> tuple[Limit, ...]:
    # The same names count another way in IMB-P2P, and IMB-RMA returns before anything moved.
    mpi1 = measurement.check == "ImbMpi1Check"
    name = measurement.sample.benchmark.removesuffix("SpecificSource").removesuffix("AnySource")
    counted = mpi1 and measurement.sample.metric == "bandwidth_mb_s" and name in _MESSAGES
    return limits_of_any(
        measurement,
        message_limits(measurement, _MESSAGES[name]) if counted else (),
        answered=mpi1 and name in ("PingPong", "PingPing"),
        at_once=measurement.check == "ImbRmaCheck",
    )


_MPI1 = "ImbMpi1Check"
_QUICK = ("PingPong", "Allreduce")
_MORE = {
    "ImbRmaCheck": "IMB-RMA: one-sided calls",
    "ImbNbcCheck": "IMB-NBC: non-blocking collective calls and their overlap with computation",
    "ImbP2pCheck": "IMB-P2P: point-to-point patterns of all ranks at once",
    "ImbMtCheck": "IMB-MT: several threads of each rank in MPI at once",
}


def _measures(check: str, row: str, conditions: Conditions, effort: ImbEffort | None) -> bool:
    of_mode = effort.benchmarks if effort and check == _MPI1 else ()
    if of_mode and row not in of_mode:
        return False
    return "bytes" not in conditions or measures_size(row, conditions["bytes"], effort)


def _options(check: str, row: str, conditions: Conditions) -> str:
    """Return what measures a row with a size that no mode has: of it alone, since others cost."""
    largest = f"-S {check}.largest_bytes={conditions['bytes']}" if conditions.get("bytes") else ""
    return " ".join(filter(None, [f"-S {check}.benchmarks={row}", largest]))


BENCHMARK = Benchmark(
    "imb",
    "IMB",
    Format(TITLE, parse_imb),
    checks=(
        Check(
            _MPI1,
            "IMB-MPI1: point-to-point and collective calls",
            Sweep.LAYOUTS,
            judged={"quick": _QUICK, "smoke": MPI1_BENCHMARKS},
            rows=MPI1_BENCHMARKS,
        ),
        *(
            Check(
                *(name, title, Sweep.LAYOUTS),
                tags=frozenset({"imb-more"}),
                rows=BY_DEFAULT[title.partition(":")[0]],
            )
            for name, title in _MORE.items()
        ),
    ),
    efforts={
        "quick": ImbEffort(
            budget=Budget(at_least=2, at_most=4, seconds=6.0),
            benchmarks=_QUICK,
            sizes=(8, 1048576),
            repetitions=100,
            volume_mb=8,
            seconds=5.0,
            saves_time_by="PingPong and Allreduce of two sizes",
        ),
        "smoke": ImbEffort(
            budget=Budget(at_least=3, at_most=6, seconds=20.0),
            sizes=(0, 8, 1024, 8192, 65536, 1048576, 4194304),
            repetitions=100,
            volume_mb=8,
            seconds=5.0,
            saves_time_by="few message sizes, short samples",
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
    # The second one: the first messages, which start the library, do not count any more.
    revision=2,
    limits=limits,
    # Without bytes they have times alone, as collectives do.
    kinds=dict.fromkeys(_MESSAGES, MESSAGES),
    clocks=Clocks(dated_here=rf"# Date +: {CTIME}\s*"),
    ab=AbCheck(
        "AbImbCheck",
        MPI1_BENCHMARKS,
        Sweep.LAYOUTS,
        # All else that IMB-MPI1 has is a collective.
        ("PingPong", "PingPing", "Sendrecv", "Exchange", "Uniband", "Biband"),
        COUNTED,
    ),
    # It prints two decimals: a time of 0.15 us goes in steps of 6 %.
    step=0.01,
    measures=_measures,
    options=_options,
    usual_s=200.0,
    headlines=(
        Headline(
            *("PingPong 8 B", "us", _MPI1, "PingPong", "latency_us"),
            {"bytes": 8},
            min,
            share=Share("core-to-core trips", "core_distance", rate=False),
            first="PingPong 8 B",
        ),
        Headline(
            *("PingPong best", "MB/s", _MPI1, "PingPong", "bandwidth_mb_s"), first="PingPong best"
        ),
        Headline("Exchange best", "MB/s", _MPI1, "Exchange", "bandwidth_mb_s"),
        Headline(
            *("Allreduce 8 B", "us", _MPI1, "Allreduce", "t_avg_us", {"bytes": 8}, max),
            first="Allreduce 8 B",
        ),
        Headline("Allreduce 1 MB", "us", _MPI1, "Allreduce", "t_avg_us", {"bytes": 1 << 20}, max),
        Headline("Alltoall 1 MB", "us", _MPI1, "Alltoall", "t_avg_us", {"bytes": 1 << 20}, max),
        Headline("Barrier", "us", _MPI1, "Barrier", "t_avg_us", pick=max),
    ),
    build=BUILD,
)
