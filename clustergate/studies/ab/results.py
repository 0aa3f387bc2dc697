"""What rounds say of two contenders and of all, figure by figure and curve by curve. Pure."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clustergate.core.model import (
    BadRequest,
    Better,
    CaseRecord,
    ClustergateError,
    Metric,
    Sample,
)
from clustergate.core.reasons import Words
from clustergate.stats.comparison import FAMILY_ERROR, MARGIN, Comparison, Relation
from clustergate.stats.one_thread import scipy
from clustergate.stats.rounds import Rounds, compare_rounds
from clustergate.studies.ab.comparisons import record_of
from clustergate.studies.ab.contenders import parse_contender
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
from clustergate.studies.ab.gathering import Job, is_contender, jobs_of

CONFIDENCE = 0.95
Pair = tuple[int, int]
"""Two contenders by their places, the first of them in front."""
_VERSION = re.compile(r" \d\S*$")
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
    """What is said of two contenders; ``a`` and ``b`` are what they are called.

    ``rounds`` are those of each job, ``disturbed`` those of them that something disturbed;
    ``round_s`` is how long a round of the slowest job took.
    """

    a: str
    b: str
    curves: Sequence[Curve]
    rounds: Sequence[int] = ()
    disturbed: Sequence[int] = ()
    disturbance: str = ""
    round_s: float = 0.0

    @property
    def figures(self) -> list[Compared]:
        """All figures, in the order of their curves."""
        return [figure for curve in self.curves for figure in curve.figures]


def beating(x: int, y: int) -> tuple[Pair, Relation]:
    """Return the pair of two contenders, and by which verdict on it the first is better."""
    return (min(x, y), max(x, y)), Relation.A_BETTER if x < y else Relation.B_BETTER


@dataclass(frozen=True)
class Contested:
    """One figure of all contenders, by pairs; ``layout`` and ``size`` (bytes) are as in a curve."""

    layout: str
    benchmark: str
    metric: Metric
    size: int | None
    pairs: Mapping[Pair, Compared]

    def level(self, k: int) -> Level | None:
        """Return the median launch of a contender."""
        sides = ((one.a if pair[0] == k else one.b, pair) for pair, one in self.pairs.items())
        return next((level for level, pair in sides if level is not None and k in pair), None)

    def beats(self, x: int, y: int) -> bool:
        """Tell whether one contender is better than another."""
        pair, wins = beating(x, y)
        return pair in self.pairs and self.pairs[pair].comparison.verdict is wins

    def lead(self, contenders: Collection[int]) -> tuple[Relation, float | None, int]:
        """Return whether one is better than all others, how many times as good at least, and who.

        ``A_BETTER`` stands for that one; else it is told whether all are equivalent.
        """
        for k in contenders:
            if all(self.beats(k, other) for other in contenders if other != k):
                gains = [gain_of(one) for pair, one in self.pairs.items() if k in pair]
                return Relation.A_BETTER, min(filter(None, gains), default=None), k
        verdicts = {one.comparison.verdict for one in self.pairs.values()}
        same = verdicts == {Relation.EQUIVALENT}
        return (Relation.EQUIVALENT if same else Relation.INCONCLUSIVE), None, -1


@dataclass(frozen=True)
class Standings:
    """All that is said of the contenders of a run; ``margin`` and ``family_error`` are fractions.

    ``names`` are what people read, ``texts`` how they were named. All pairs are one family: that
    anything is called better anywhere, although nothing differs, has the ``family_error``.
    """

    names: Sequence[str]
    texts: Sequence[str]
    pairs: Mapping[Pair, Result]
    margin: float = MARGIN
    family_error: float = FAMILY_ERROR

    def count(self, verdict: Relation) -> int:
        """Return how many figures of all pairs have a verdict."""
        return sum(figure.comparison.verdict is verdict for figure in self.figures)

    @property
    def figures(self) -> list[Compared]:
        """All figures of all pairs."""
        return [figure for result in self.pairs.values() for figure in result.figures]

    @property
    def curves(self) -> list[list[Contested]]:
        """Each figure once, of all pairs, by what are curves over message sizes."""
        of: dict[object, dict[object, tuple[Curve, Compared, dict[Pair, Compared]]]] = {}
        for pair, result in self.pairs.items():
            for curve in result.curves:
                for figure in curve.figures:
                    same = {k: v for k, v in figure.conditions.items() if k != "bytes"}
                    key = curve.layout, curve.metric.name, *sorted(same.items())
                    at = of.setdefault(key, {}).setdefault(figure.size, (curve, figure, {}))
                    at[2][pair] = figure
        return [
            [
                Contested(curve.layout, curve.benchmark, curve.metric, figure.size, pairs)
                for curve, figure, pairs in by_size.values()
            ]
            for by_size in of.values()
        ]

    @property
    def contested(self) -> list[Contested]:
        """Each figure once, of all pairs."""
        return [one for curve in self.curves for one in curve]


def ranked(count: int, beats: Callable[[int, int], bool]) -> list[list[int]]:
    """Return contenders in groups, each of which beats all that stand behind it, member by member.

    Who is not told apart from a member of a group, or beats one, belongs to it: the smallest
    dominant sets (Smith, Aggregation of preferences with variable electorate, 1973).
    """
    left, groups = list(range(count)), []
    while left:
        ahead = {x: sum(beats(x, y) - beats(y, x) for y in left) for x in left}
        group = [max(left, key=lambda x: ahead[x])]
        for member in group:
            group += [y for y in left if y not in group and not beats(member, y)]
        groups.append(sorted(group))
        left = [x for x in left if x not in group]
    return groups


def judge_jobs(
    names: Sequence[str],
    jobs: Mapping[Pair, Sequence[Job]],
    *,
    texts: Sequence[str] = (),
    margin: float = MARGIN,
) -> Standings:
    """Compare all jobs of all pairs as one family; ``names`` are what contenders are called."""
    flat = [job for of_pair in jobs.values() for job in of_pair]
    judged = compare_rounds(
        [Rounds(job.a, job.b, [figure.better for figure in job.figures]) for job in flat],
        margin=margin,
    )
    each = iter(judged)
    several = len({job.partition for job in flat}) > 1
    pairs = {
        (x, y): Result(
            a=names[x],
            b=names[y],
            curves=[
                curve
                for job in of_pair
                for curve in _curves(job, next(each), f", {job.partition}" if several else "")
            ],
            rounds=[len(job.a) for job in of_pair],
            disturbed=[job.disturbed for job in of_pair],
            disturbance=next((job.disturbance for job in of_pair if job.disturbance), ""),
            round_s=max((job.round_s for job in of_pair), default=0.0),
        )
        for (x, y), of_pair in jobs.items()
    }
    return Standings(names, texts or names, pairs, margin)


def display_names(texts: Sequence[str], libraries: Sequence[str]) -> list[str]:
    """Return what contenders are called: their ``libraries`` (name and version), as far as needed.

    That is the name, with the version where that tells them apart, or as they were named; equals
    are numbered.
    """
    bare = [_VERSION.sub("", one) for one in libraries]
    for way in (bare, libraries):
        alike = len(set(way)) == 1
        called = [_with_settings(*one, alike=alike) for one in zip(way, texts, strict=True)]
        if all(way) and len(set(called)) == len(called):
            return called
    if len(set(texts)) == len(texts):
        return list(texts)
    first = bare if all(bare) and len(set(texts)) == 1 else texts
    return [f"{one} #{k}" for k, one in enumerate(first, 1)]


def _with_settings(name: str, text: str, *, alike: bool) -> str:
    """Return a library with what is set for it, which alone tells contenders apart ``alike``."""
    try:
        named = parse_contender(text)
    except BadRequest:
        return name
    settings = " ".join(f"{key}={value}" for key, value in named.variables.items())
    if alike and settings and not named.golden:
        return settings
    return f"{'golden ' * named.golden}{name}{f' with {settings}' if settings else ''}"


def records_of(standings: Standings) -> list[dict[str, Any]]:
    """Return an object per figure of each pair, as ``clustergate compare --json`` has them."""
    return [
        {
            **record_of(f.metric.name, f.conditions, f.comparison),
            "a": standings.texts[x],
            "b": standings.texts[y],
        }
        for (x, y), result in standings.pairs.items()
        for f in result.figures
    ]


def as_record(standings: Standings, **said: Any) -> dict[str, Any]:
    """Return everything as JSON holds it, with what else is ``said``."""
    first, second = next(iter(standings.pairs), (0, 1))
    result = standings.pairs.get((first, second))
    return {
        "a": standings.texts[first],
        "b": standings.texts[second],
        "contenders": [
            {"named": text, "name": name}
            for text, name in zip(standings.texts, standings.names, strict=True)
        ],
        "margin": standings.margin,
        "family_error": standings.family_error,
        "rounds": list(result.rounds) if result else [],
        "disturbed_rounds": list(result.disturbed) if result else [],
        "verdicts": {one.value: standings.count(one) for one in Relation},
        **said,
        "curves": [
            {
                "a": standings.texts[x],
                "b": standings.texts[y],
                "benchmark": curve.benchmark,
                "metric": curve.metric.name,
                "layout": curve.layout,
                "leads": list(map(_plain, curve.leads)),
                "crossovers": list(map(_plain, curve.crossovers)),
                "dips_of_a": list(map(_plain, curve.dips_a)),
                "dips_of_b": list(map(_plain, curve.dips_b)),
            }
            for (x, y), pair in standings.pairs.items()
            for curve in pair.curves
        ],
        "figures": records_of(standings),
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
) -> Standings:
    """Return what the records of a run say of its contenders.

    Raises :class:`ClustergateError` with what failed where there are no two.
    """
    sides = {str(r.details["contender"]): r for r in records if is_contender(r)}
    jobs = {
        (x, y): of_pair
        for x, y in itertools.combinations(sorted(sides), 2)
        if (of_pair := jobs_of(records, (x, y)))
    }
    if not jobs:
        reasons = [*failures, *absences(records)]
        more = f"; and {len(reasons) - 2} more" if len(reasons) > 2 else ""
        cause = (
            "; ".join(reasons[:2]) + more
            or "no launch of both is in it; `clustergate ab` makes one"
        )
        raise ClustergateError(NO_COMPARISON(run=run_id, why=cause))
    # Whom nothing was compared with is told among what failed.
    place = {side: k for k, side in enumerate(sorted({side for pair in jobs for side in pair}))}
    texts = [str(sides[side].details.get("named")) for side in place]
    libraries = [str(sides[side].details.get("mpi") or "") for side in place]
    by_place = {(place[x], place[y]): of for (x, y), of in jobs.items()}
    return judge_jobs(display_names(texts, libraries), by_place, texts=texts, margin=margin)


def absences(records: Sequence[CaseRecord]) -> list[str]:
    """Return what could not be compared because one of them cannot run it."""
    absent = [f"not compared: {r.check}: {r.unavailable}" for r in records if r.unavailable]
    return list(dict.fromkeys(absent))
