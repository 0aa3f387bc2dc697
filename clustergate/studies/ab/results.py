"""What the rounds of A and B say, figure by figure and curve by curve. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clustergate.core.model import Better, CaseRecord, ClustergateError, Metric, Sample
from clustergate.core.reasons import Words
from clustergate.stats.comparison import FAMILY_ERROR, MARGIN, Comparison, Relation
from clustergate.stats.one_thread import scipy
from clustergate.stats.rounds import Rounds, compare_rounds
from clustergate.studies.ab.comparisons import record_of
from clustergate.studies.ab.curves import (
    Crossover,
    Dip,
    Lead,
    SizeVerdict,
    Speed,
    crossovers,
    dips,
    leads,
)
from clustergate.studies.ab.gathering import A, B, Job, jobs_of

CONFIDENCE = 0.95
_LAYOUT = ("ranks", "nodes", "ranks_per_node", "placement", "cores_per_rank", "bound")


@dataclass(frozen=True)
class Level:
    """The median launch of a contender, with an interval where there are launches enough."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Compared:
    """One figure: ``size`` is the message in bytes, None where there is none."""

    metric: Metric
    benchmark: str
    size: int | None
    conditions: Mapping[str, str]
    comparison: Comparison
    a: Level | None
    b: Level | None


@dataclass(frozen=True)
class Curve:
    """A benchmark of one job over its message sizes, or its single figure."""

    benchmark: str
    metric: Metric
    layout: str
    figures: Sequence[Compared]
    leads: Sequence[Lead] = ()
    crossovers: Sequence[Crossover] = ()
    dips_a: Sequence[Dip] = ()
    dips_b: Sequence[Dip] = ()


@dataclass(frozen=True)
class Result:
    """All that is said of A and B; ``margin`` and ``family_error`` are fractions.

    ``rounds`` are those of each job, ``disturbed`` those of them that something disturbed;
    ``round_s`` is how long a round of the slowest job took.
    """

    a: str
    b: str
    margin: float
    family_error: float
    curves: Sequence[Curve]
    rounds: Sequence[int]
    disturbed: Sequence[int]
    disturbance: str
    round_s: float = 0.0

    @property
    def figures(self) -> list[Compared]:
        """All figures, in the order of their curves."""
        return [figure for curve in self.curves for figure in curve.figures]

    def count(self, verdict: Relation) -> int:
        """Return how many figures have a verdict."""
        return sum(figure.comparison.verdict is verdict for figure in self.figures)


def judge_jobs(a: str, b: str, jobs: Sequence[Job], *, margin: float = MARGIN) -> Result:
    """Compare all jobs as one family; ``a`` and ``b`` are what the contenders are called."""
    per_job = compare_rounds(
        [Rounds(job.a, job.b, [figure.better for figure in job.figures]) for job in jobs],
        margin=margin,
    )
    several = len({job.partition for job in jobs}) > 1
    curves = [
        curve
        for job, comparisons in zip(jobs, per_job, strict=True)
        for curve in _curves(job, comparisons, f", {job.partition}" if several else "")
    ]
    return Result(
        a=a,
        b=b,
        margin=margin,
        family_error=FAMILY_ERROR,
        curves=curves,
        rounds=[len(job.a) for job in jobs],
        disturbed=[job.disturbed for job in jobs],
        disturbance=next((job.disturbance for job in jobs if job.disturbance), ""),
        round_s=max((job.round_s for job in jobs), default=0.0),
    )


def records_of(result: Result) -> list[dict[str, Any]]:
    """Return an object per figure, as ``clustergate compare --json`` has them."""
    return [record_of(f.metric.name, f.conditions, f.comparison) for f in result.figures]


def as_record(result: Result, paragraph: str, next_steps: Sequence[str] = ()) -> dict[str, Any]:
    """Return everything as JSON holds it."""
    return {
        "a": result.a,
        "b": result.b,
        "margin": result.margin,
        "family_error": result.family_error,
        "rounds": list(result.rounds),
        "disturbed_rounds": list(result.disturbed),
        "verdicts": {one.value: result.count(one) for one in Relation},
        "paragraph": paragraph,
        "next": list(next_steps),
        "curves": [
            {
                "benchmark": curve.benchmark,
                "metric": curve.metric.name,
                "layout": curve.layout,
                "leads": list(map(_plain, curve.leads)),
                "crossovers": list(map(_plain, curve.crossovers)),
                "dips_of_a": list(map(_plain, curve.dips_a)),
                "dips_of_b": list(map(_plain, curve.dips_b)),
            }
            for curve in result.curves
        ],
        "figures": records_of(result),
    }


def _plain(one: Lead | Crossover | Dip) -> dict[str, Any]:
    return {k: v.value if isinstance(v, Relation) else v for k, v in vars(one).items()}


def layout_of(job: Job) -> str:
    """Return how the ranks of a job lay, in words."""
    conditions = job.conditions
    nodes = int(conditions.get("nodes", 1))
    where = "on 1 node" if nodes == 1 else f"on {nodes} nodes, {conditions.get('placement')}"
    return f"{conditions.get('ranks')} processes {where}"


def _curves(job: Job, comparisons: Sequence[Comparison], partition: str) -> list[Curve]:
    groups: dict[object, list[Compared]] = {}
    for k, (sample, comparison) in enumerate(zip(job.figures, comparisons, strict=True)):
        size = sample.conditions.get("bytes")
        figure = Compared(
            metric=Metric(sample.metric, sample.unit, sample.better),
            benchmark=sample.benchmark,
            size=None if size is None else int(size),
            conditions=_conditions(job, sample),
            comparison=comparison,
            a=_level(job.a[:, k]),
            b=_level(job.b[:, k]),
        )
        others = tuple(sorted((n, v) for n, v in figure.conditions.items() if n != "bytes"))
        groups.setdefault((sample.metric, others), []).append(figure)
    return [_curve(layout_of(job) + partition, figures) for figures in groups.values()]


def _conditions(job: Job, sample: Sample) -> dict[str, str]:
    shared = {name: job.conditions[name] for name in _LAYOUT if name in job.conditions}
    own = {name: value for name, value in sample.conditions.items() if name != "repetitions"}
    conditions = {**shared, **own, "check": job.check, "partition": job.partition}
    return {**{k: str(v) for k, v in conditions.items()}, "benchmark": sample.benchmark}


def _curve(layout: str, figures: Sequence[Compared]) -> Curve:
    first = figures[0]
    sized = sorted((f for f in figures if f.size is not None), key=lambda f: f.size or 0)
    if len(sized) < 2:
        return Curve(first.benchmark, first.metric, layout, figures)
    verdicts = [SizeVerdict(f.size or 0, f.comparison.verdict, gain_of(f)) for f in sized]
    return Curve(
        first.benchmark,
        first.metric,
        layout,
        sized,
        leads(verdicts),
        crossovers(verdicts),
        dips(_speeds([(f.size or 0, f.a) for f in sized], first.metric)),
        dips(_speeds([(f.size or 0, f.b) for f in sized], first.metric)),
    )


def gain_of(figure: Compared) -> float | None:
    """Return how many times as good the better one is, None where there is no ratio."""
    ratio = figure.comparison.ratio
    return None if ratio is None else max(ratio, 1.0 / ratio)


def ahead_so_far(figure: Compared) -> str:
    """Return ``A`` or ``B``, whose estimate is better; empty where a metric has no better side."""
    ratio, better = figure.comparison.ratio, figure.metric.better
    if ratio is None or better is Better.NEITHER:
        return ""
    return "A" if (ratio > 1.0) == (better is Better.LOWER) else "B"


def _speeds(levels: Sequence[tuple[int, Level | None]], metric: Metric) -> list[Speed]:
    """Return how much is moved per second: bytes over time, or the bandwidth itself."""
    speeds = []
    for size, level in levels:
        if level is None or size == 0 or metric.better is Better.NEITHER:
            continue
        if metric.better is Better.HIGHER:
            speeds.append(Speed(size, level.value, level.low, level.high))
        elif level.value > 0.0:
            low, high = (size / x if x else None for x in (level.high, level.low))
            speeds.append(Speed(size, size / level.value, low, high))
    return speeds


def _level(values: NDArray[np.float64]) -> Level | None:
    """Return the median with the interval of the order statistics (David and Nagaraja, 7.1)."""
    held = values[~np.isnan(values)]
    if not len(held):
        return None
    interval = scipy.stats.quantile_test(held, p=0.5).confidence_interval(CONFIDENCE)
    low, high = (None if math.isnan(x) else float(x) for x in interval)
    middle = float(np.median(held))
    if low is None or high is None:
        return Level(middle, None, None)
    return Level(middle, low, high)


NO_COMPARISON = Words("compare.no-comparison", "the run {run} holds no comparison", cause="{why}")


def judge_records(
    records: Sequence[CaseRecord], margin: float, run_id: str, failures: Sequence[str]
) -> Result:
    """Return what the records of a run say of its two contenders.

    Raises :class:`ClustergateError` with what failed where there are no two.
    """
    names = {str(r.details.get("contender")): str(r.details.get("named")) for r in records}
    jobs = jobs_of(records)
    if not jobs or A not in names or B not in names:
        reasons = [*failures, *absences(records)]
        cause = "; ".join(reasons) or "no launch of both is in it; `clustergate ab` makes one"
        raise ClustergateError(NO_COMPARISON(run=run_id, why=cause))
    return judge_jobs(names[A], names[B], jobs, margin=margin)


def absences(records: Sequence[CaseRecord]) -> list[str]:
    """Return what could not be compared because one of them cannot run it."""
    absent = [f"not compared: {r.check}: {r.unavailable}" for r in records if r.unavailable]
    return list(dict.fromkeys(absent))
