"""The OSU Micro-Benchmarks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from clustergate.benchmarks.budget import Budget
from clustergate.benchmarks.descriptor import (
    AbCheck,
    Benchmark,
    Check,
    Effort,
    Format,
    Headline,
    Sweep,
)
from clustergate.benchmarks.limits import Measurement, Messages, limits_of_any, message_limits
from clustergate.benchmarks.osu import build
from clustergate.benchmarks.osu.output import TITLE, parse_osu
from clustergate.core.model import MESSAGES, Limit

PT2PT, PAIRS, COLLECTIVE = "OsuPt2PtCheck", "OsuMultiPairCheck", "OsuCollectiveCheck"
TESTS: Mapping[str, tuple[str, ...]] = {
    PT2PT: (*build.OF_TWO, *build.ONE_SIDED),
    PAIRS: build.OF_PAIRS,
    COLLECTIVE: (*build.BLOCKING, *build.NON_BLOCKING),
}
# The buffers of a window are one buffer, sent as often as the window has messages.
_MESSAGES: Mapping[str, Messages] = {
    "osu_bw": Messages(2, 1, 1, pairs=True),
    "osu_bibw": Messages(2, 2, 2, pairs=True),
    "osu_mbw_mr": Messages(2, 1, 1, pairs=True),
}


@dataclass(frozen=True, kw_only=True)
class OsuEffort(Effort):
    """Messages of ``smallest_bytes`` to ``largest_bytes``, ``repetitions`` of each, or windows.

    With 0 repetitions it is OSU's own number.
    """

    smallest_bytes: int = 1
    largest_bytes: int = 1 << 22
    repetitions: int = 0


def limits(one: Measurement) -> tuple[Limit, ...]:
    name, metric = one.sample.benchmark, one.sample.metric
    counted = metric == "bandwidth_mb_s" and name in _MESSAGES
    one_sided = "_put_" in name or "_get_" in name
    return limits_of_any(
        one,
        message_limits(one, _MESSAGES[name]) if counted else (),
        answered=name == "osu_latency",
        # The calls of a window return before anything has moved.
        at_once=one_sided or name == "osu_multi_lat",
    )


BENCHMARK = Benchmark(
    "osu",
    "OSU",
    Format(TITLE, parse_osu),
    checks=tuple(
        Check(
            *(name, title, sweep, {"benchmark": TESTS[name]}, frozenset({"osu"})),
            rows=tuple(f"osu_{test}" for test in TESTS[name]),
        )
        for name, title, sweep in (
            (PT2PT, "OSU Micro-Benchmarks between two processes", Sweep.PLACEMENTS),
            (PAIRS, "OSU Micro-Benchmarks of many pairs at once", Sweep.LAYOUTS),
            (COLLECTIVE, "OSU Micro-Benchmarks of collective calls", Sweep.LAYOUTS),
        )
    ),
    efforts={
        "smoke": OsuEffort(
            budget=Budget(at_least=3, at_most=6, seconds=10.0),
            largest_bytes=1 << 20,
            repetitions=50,
            saves_time_by="50 repetitions of each size",
        ),
        "maintenance": OsuEffort(
            budget=Budget(at_least=10, at_most=20, seconds=60.0, precision=0.02),
            repetitions=200,
        ),
        "acceptance": OsuEffort(
            budget=Budget(at_least=10, at_most=50, seconds=1800.0, precision=0.01),
        ),
    },
    place=4,
    limits=limits,
    kinds=dict.fromkeys((f"osu_{name}" for of in (PT2PT, PAIRS) for name in TESTS[of]), MESSAGES),
    ab=AbCheck(*("AbOsuCheck", (), Sweep.PLACEMENTS), parameters={"benchmark": ("latency", "bw")}),
    # It prints two decimals.
    step=0.01,
    # Launches of a minute, and the node's peaks.
    usual_s=70.0,
    headlines=(
        Headline("osu_latency 8 B", "us", PT2PT, "osu_latency", "latency_us", {"bytes": 8}, min),
        Headline("osu_bw best", "MB/s", PT2PT, "osu_bw", "bandwidth_mb_s"),
        Headline("osu_bibw best", "MB/s", PT2PT, "osu_bibw", "bandwidth_mb_s"),
        Headline("osu_mbw_mr best", "1/s", PAIRS, "osu_mbw_mr", "message_rate_per_s"),
        Headline(
            *("osu_allreduce 8 B", "us", COLLECTIVE, "osu_allreduce", "t_avg_us", {"bytes": 8}, max)
        ),
        Headline("osu_barrier", "us", COLLECTIVE, "osu_barrier", "t_avg_us", pick=max),
    ),
    build=build.BUILD,
)
