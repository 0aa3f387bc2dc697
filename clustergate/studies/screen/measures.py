"""What a screening measures, and what one launch of it left behind. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from clustergate.core.model import METRICS, Better, Row
from clustergate.machine.kernels.peaks import METRICS as PEAK_METRICS
from clustergate.machine.peaks import peaks_of

SMALL_BYTES, LARGE_BYTES = 8, 4 << 20


@dataclass(frozen=True)
class Measure:
    """One figure of a node or a pair.

    ``key`` names it in results, ``title`` for a reader, ``metric`` is that of the vocabulary,
    ``kind`` is what is launched for it: ``hpl``, ``peaks`` or ``pingpong``.
    ``tolerated`` is the factor up to which sound ones may differ.
    """

    key: str
    kind: str
    title: str
    metric: str
    tolerated: float

    @property
    def unit(self) -> str:
        """How the figure is printed."""
        return (METRICS.get(self.metric) or PEAK_METRICS[self.metric]).unit

    @property
    def better(self) -> Better:
        """Which way it improves."""
        return (METRICS.get(self.metric) or PEAK_METRICS[self.metric]).better

    def level(self, value: float) -> float:
        """Return the natural logarithm of a value, turned so that positive is worse."""
        level = math.log(value)
        return level if self.better is Better.LOWER else -level

    def value(self, level: float) -> float:
        """Return the value of a level."""
        return math.exp(level if self.better is Better.LOWER else -level)


# Processors of one kind differ by some percent in their turbo clocks, and so do routes in length.
ALONE = (
    Measure("hpl_gflops", "hpl", "HPL", "performance_gflops", 1.10),
    Measure("fma_peak_gflops", "peaks", "FMA peak", "performance_gflops", 1.10),
    Measure("triad_gb_s", "peaks", "memory bandwidth", "bandwidth_gb_s", 1.10),
)
PAIRS = (
    Measure("pingpong_latency_us", "pingpong", f"latency at {SMALL_BYTES} B", "latency_us", 1.25),
    Measure("pingpong_bandwidth_mb_s", "pingpong", "bandwidth at 4 MiB", "bandwidth_mb_s", 1.10),
)
SHARES = ((PAIRS, 0.8), (ALONE, 0.2))
"""What of the error is for pairs, which take most launches, and what for nodes alone."""
MEASURES: Mapping[str, Measure] = {measure.key: measure for measure in (*ALONE, *PAIRS)}


def shares(measured: Sequence[Measure]) -> dict[str, float]:
    """Return the part of the error that each of these measures has, 1 in all."""
    parts = {
        measure.key: share / len(them)
        for of, share in SHARES
        if (them := [measure for measure in measured if measure in of])
        for measure in them
    }
    return {key: part / sum(parts.values()) for key, part in parts.items()}


@dataclass(frozen=True)
class Result:
    """What one launch of a kind on one node, or on a pair, left behind.

    ``values`` are by the key of their measure; ``failed`` is the sentence why there are none.
    ``turn`` counts the rounds from 0, ``seconds`` is how long it took.
    """

    nodes: tuple[str, ...]
    kind: str
    turn: int
    values: Mapping[str, float] = field(default_factory=dict)
    failed: str = ""
    seconds: float = 0.0


def pingpong_values(rows: Iterable[Row]) -> dict[str, float]:
    """Return the figures of a pair from the rows of an IMB PingPong.

    Raises ValueError that says what is missing.
    """
    values: dict[str, float] = {}
    for row in rows:
        if row.benchmark != "PingPong" or row.status != "ok":
            continue
        if row.conditions.get("bytes") == SMALL_BYTES:
            values["pingpong_latency_us"] = row.values["latency_us"]
        elif row.conditions.get("bytes") == LARGE_BYTES:
            values["pingpong_bandwidth_mb_s"] = row.values["bandwidth_mb_s"]
    return _complete(values, PAIRS)


def peak_values(rows: Sequence[Row]) -> dict[str, float]:
    """Return the figures of a node from its peaks: the median trial on most cores at once.

    Raises ValueError that says what is missing, or that the node's clock cannot be right.
    """
    for peak in peaks_of(rows):
        if peak.low > peak.ceiling:
            raise ValueError(
                f"{peak} exceeds what such cores reach at any clock rate, so the timer runs slow; "
                "check the clock source and preloaded libraries"
            )
    values: dict[str, float] = {}
    for key, kind, value in (
        ("fma_peak_gflops", "fma_peak", "performance_gflops"),
        ("triad_gb_s", "triad", "bandwidth_gb_s"),
    ):
        cores = max((int(r.conditions["cores"]) for r in rows if r.benchmark == kind), default=0)
        trials = sorted(
            row.values[value]
            for row in rows
            if row.benchmark == kind and row.conditions["cores"] == cores
        )
        if trials:
            values[key] = trials[len(trials) // 2]
    return _complete(values, ALONE[1:])


def hpl_values(rows: Iterable[Row]) -> dict[str, float]:
    """Return the figure of a node from HPL's rows.

    Raises ValueError when there is none.
    """
    rates = [r.values["performance_gflops"] for r in rows if "performance_gflops" in r.values]
    return _complete({"hpl_gflops": max(rates)} if rates else {}, ALONE[:1])


def _complete(values: dict[str, float], wanted: Sequence[Measure]) -> dict[str, float]:
    for measure in wanted:
        value = values.get(measure.key)
        if value is None:
            raise ValueError(f"the output has no {measure.title}")
        if not 0 < value < math.inf:
            raise ValueError(f"{measure.title} is {value:g} {measure.unit}, which is impossible")
    return values
