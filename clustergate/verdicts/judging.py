"""The one judge: an estimate, a reference and physical limits go in, a verdict comes out.

Pure functions. What ReFrame is told (:func:`reframe_reference`) is derived from the same threshold,
so that its own pass and fail never say anything else.

A reference that was made from runs is the best that they reached, and it is known how far above it
unchanged runs are (:mod:`clustergate.statistics.gate`). Figures of one benchmark are also judged as
one group, which sees smaller changes than each of them, and speaks for none of them.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence

from clustergate.model import (
    Better,
    Estimate,
    Excuse,
    Expectation,
    Expected,
    Group,
    GroupScatter,
    Judgement,
    Limit,
    Reference,
    Scatter,
    Verdict,
)
from clustergate.statistics import gate
from clustergate.wording.reasons import Fact, Reason, reason

NO_REFERENCE = reason("reference.none")
# So many times off, a reference is of another unit, or of something else: no change of a machine or
# of its software makes a figure so much better, and few make it so much worse.
FAR_OFF = 10.0
COMPARED = (Verdict.PASS, Verdict.IMPROVEMENT, Verdict.INCONCLUSIVE, Verdict.REGRESSION)
"""What a comparison with a reference ends in."""
ReframeReference = tuple[float, float | None, float | None, str]
"""ReFrame's own: value, lower and upper bound as fractions, unit."""
WRONG = (Verdict.REGRESSION, Verdict.IMPOSSIBLE, Verdict.INVALID)
"""What is wrong with a figure, and fails it for ReFrame."""
_EXIT_STATUS: Mapping[str, Mapping[Verdict, int]] = {
    "check": {
        Verdict.REGRESSION: 1,
        Verdict.IMPOSSIBLE: 2,
        Verdict.INVALID: 2,
    },
    "gate": {
        Verdict.NO_REFERENCE: 2,
        Verdict.INCONCLUSIVE: 2,
        Verdict.REGRESSION: 1,
        Verdict.IMPOSSIBLE: 2,
        Verdict.INVALID: 2,
    },
}


def exit_status(verdicts: Iterable[Verdict], command: str = "check") -> int:
    """Return the exit status of ``check`` or ``gate``: the worst wins, 1 above 2 above 0."""
    return worst_status(_EXIT_STATUS[command].get(verdict, 0) for verdict in verdicts)


def worst_status(statuses: Iterable[int]) -> int:
    """Return the worst of some exit statuses: 1 above 2 above 0."""
    given = set(statuses)
    return 1 if 1 in given else max(given, default=0)


def tolerated_bound(reference: Reference, better: Better) -> float | None:
    """Return the value beyond which a figure is worse than its reference, None without a bound.

    Only the side that is worse counts: a bound on the better side would fail an improvement.
    """
    side = reference.lower if better is Better.HIGHER else reference.upper
    return None if side is None else _offset(reference.value, side)


def judge(
    estimate: Estimate,
    better: Better,
    unit: str,
    reference: Reference | None = None,
    limits: Sequence[Limit] = (),
    *,
    launches: Sequence[float] = (),
    excuse: Excuse | None = None,
    outdone: float = 0.0,
) -> Judgement:
    """Judge one figure.

    Where the estimate has an interval, a limit or a bound is crossed only when the whole interval
    lies beyond it; a bound inside the interval is "inconclusive". A single sample is compared as
    it is. Where it is known how the reference scattered, the best launch is compared with what
    unchanged runs do, and a figure in which a slow-down of 10 % could hide does not pass: neither
    where neighbours have ``outdone`` their references by more (:func:`gate.outdone_by`). Of the
    undisturbed ``launches`` more than chance explains may not be far worse. With an ``excuse`` a
    figure is a regression only when the disturbances cannot explain it.
    """
    value = estimate.value
    low, high = _ends(estimate)
    # Nothing is beyond an end that is no number.
    if not math.isfinite(value) or math.isnan(low + high):
        return _judged(Verdict.INVALID, reason("figure.no-number", value=str(value)))
    for limit in limits:
        if beyond := _beyond(limit, low, high, value, unit):
            return _judged(Verdict.IMPOSSIBLE, beyond)
    if reference is None:
        return _judged(Verdict.NO_REFERENCE, NO_REFERENCE)
    facts = _facts(reference, unit, value)
    if reference.unit != unit:
        wrong = reason("reference.wrong-unit", **facts, reference_unit=reference.unit)
        return _judged(Verdict.INVALID, wrong)
    if is_far_off(reference, better, value):
        times = math.exp(abs(math.log(value / reference.value)))
        return _judged(Verdict.INVALID, reason("reference.far-off", **facts, times=times))
    if better is Better.LOWER and value <= 0 < reference.value:
        # No limit of physics bounds all that is timed, nor what a site's own benchmark tells.
        return _judged(Verdict.INCONCLUSIVE, reason("figure.nothing", **facts))
    slow = slow_share(launches, better, reference, excuse)
    if slow is not None and slow.verdict is Verdict.REGRESSION:
        return slow
    scatter = reference.scatter
    if scatter is None or better is Better.NEITHER or min(value, reference.value) <= 0:
        judgement = _against(reference, better, unit, estimate)
    else:
        judgement = _against_runs(estimate, better, unit, reference, scatter, outdone)
    doubted = (reference, better, value, limits)
    if judgement.verdict is Verdict.REGRESSION:
        doubtful = _doubtful_reference(*doubted)
        judgement = _judged(judgement.verdict, *judgement.reasons, *doubtful)
    if judgement.verdict in (Verdict.PASS, Verdict.IMPROVEMENT):
        if slow is None:
            return judgement
        return _judged(Verdict.INCONCLUSIVE, *judgement.reasons, *slow.reasons)
    if excuse is None or judgement.verdict not in COMPARED:
        return judgement
    excused = reason("figure.excused", **facts)
    excusing = holding_for(reference, better, estimate.samples, excuse)
    if _against(excusing, better, unit, estimate).verdict is Verdict.REGRESSION:
        by = math.exp(worse_than(reference, estimate, better))
        unexcused = _unexcused(excuse, by)
        return _judged(Verdict.REGRESSION, excused, unexcused, *_doubtful_reference(*doubted))
    return _judged(Verdict.INCONCLUSIVE, excused, excuse.doubt)


# More launches are asked of nobody.
_MOST_LAUNCHES = 50
# Of a floor, by which the best launch may be below it and meet it: units are turned into others.
_ROUNDING = 1e-9


def judge_expected(
    expectation: Expectation,
    estimate: Estimate,
    better: Better,
    excuse: Excuse | None = None,
) -> Expected:
    """Judge a figure by what a person expects of it, which its best launch meets or misses.

    Nothing makes a launch faster than the machine can be, so the others do not matter. It is missed
    by more than the interval of the launches, and by more than disturbances explain (``excuse``);
    between nothing is decided.
    """
    floor, best = expectation.floor, estimate.value
    by = gate.worse_by(best, floor, higher_is_better=better is Better.HIGHER) if best > 0 else 0.0
    low, high = _ends(estimate)
    facts: dict[str, Fact] = {
        "name": expectation.name,
        "value": best * expectation.scale,
        "unit": expectation.unit,
        "expected": expectation.value,
        "ratio": best / floor,
        "source": expectation.source or expectation.where,
        "check": expectation.check,
    }
    verdict = _against_floor(floor, better, estimate)
    if verdict is Verdict.PASS:
        judgement = _judged(verdict, reason("expectation.met", **facts))
    elif excuse is not None:
        explained = floor / excuse.factor if better is Better.HIGHER else floor * excuse.factor
        excused = reason("expectation.excused", **facts)
        judgement = _judged(Verdict.INCONCLUSIVE, excused, excuse.doubt)
        if _against_floor(explained, better, estimate) is Verdict.REGRESSION:
            missed = reason("expectation.missed", **facts)
            judgement = _judged(Verdict.REGRESSION, missed, _unexcused(excuse, math.exp(by)))
    elif verdict is Verdict.REGRESSION:
        judgement = _judged(verdict, reason("expectation.missed", **facts))
    else:
        more = min(max(2 * estimate.samples, gate.FEWEST_LAUNCHES), _MOST_LAUNCHES)
        of: dict[str, Fact] = {"launches": more, "interval": (high - low) / abs(floor)}
        undecided = reason("expectation.undecided", **facts, **of)
        judgement = _judged(verdict, undecided)
    return Expected(expectation, judgement, -by)


def _against_floor(floor: float, better: Better, estimate: Estimate) -> Verdict:
    """Return how the best launch stands to a floor, or to a ceiling where lower is better."""
    low, high = _ends(estimate)
    short = floor - estimate.value if better is Better.HIGHER else estimate.value - floor
    if short <= _ROUNDING * abs(floor):
        return Verdict.PASS
    return Verdict.REGRESSION if short > high - low else Verdict.INCONCLUSIVE


def with_expected(
    judgement: Judgement,
    expected: Sequence[Expected],
    better: Better,
    launches: Sequence[float] = (),
) -> Judgement:
    """Return the worst of a judgement and of how its figure stands to what people expect of it.

    Physical limits stand above all of that. That most of the undisturbed ``launches`` are far worse
    than an expectation leaves the best one as good as it is, and is no pass all the same.
    """
    if judgement.verdict is Verdict.IMPOSSIBLE or not expected:
        return judgement
    given = [one.judgement for one in expected]
    given += filter(None, (slow_against(one.expectation, better, launches) for one in expected))
    if judgement.verdict is not Verdict.NO_REFERENCE:
        given.append(judgement)
    given.sort(key=lambda one: -one.verdict.severity)
    return _judged(given[0].verdict, *dict.fromkeys(why for one in given for why in one.reasons))


def slow_against(
    expectation: Expectation, better: Better, launches: Sequence[float]
) -> Judgement | None:
    """Judge how many launches are far worse than an expectation; see :func:`slow_share`."""
    floor = Reference(expectation.floor, None, None, "", expectation.source)
    return slow_share(launches, better, floor)


def _ends(estimate: Estimate) -> tuple[float, float]:
    value = estimate.value
    low, high = estimate.low, estimate.high
    return value if low is None else low, value if high is None else high


def _judged(verdict: Verdict, *reasons: Reason) -> Judgement:
    return Judgement(verdict, reasons)


def _against_runs(
    estimate: Estimate,
    better: Better,
    unit: str,
    reference: Reference,
    scatter: Scatter,
    outdone: float,
) -> Judgement:
    """Judge the best launch by what unchanged runs do."""
    facts = _facts(reference, unit, estimate.value)
    holding = holding_for(reference, better, estimate.samples)
    bound = tolerated_bound(holding, better)
    if bound is None:
        return _judged(Verdict.NO_REFERENCE, reason("reference.unbounded", **facts))
    worse_by = worse_than(reference, estimate, better)
    beyond = estimate.value < bound if better is Better.HIGHER else estimate.value > bound
    open_reasons = _open(scatter, estimate.samples)
    if beyond:
        regression = reason("figure.regression", **facts, bound=abs(bound))
        return _judged(Verdict.REGRESSION, regression, *open_reasons)
    if math.isinf(gate.margin(scatter, estimate.samples)):
        few = reason("figure.too-few-launches", **facts)
        return _judged(Verdict.INCONCLUSIVE, few, *open_reasons)
    if worse_by > gate.passes_below(scatter):
        return _judged(Verdict.INCONCLUSIVE, reason("figure.unclear", **facts), *open_reasons)
    if worse_by < -gate.WANTED:
        improved = reason("figure.improvement", **facts)
        return _judged(Verdict.IMPROVEMENT, improved, *_provisional(scatter))
    if worse_by + outdone > gate.passes_below(scatter):
        outdone_by = reason("figure.outdone", **facts, outdone=math.expm1(outdone))
        return _judged(Verdict.INCONCLUSIVE, outdone_by, *open_reasons)
    return _judged(Verdict.PASS, reason("figure.as-expected", **facts), *_provisional(scatter))


def _provisional(scatter: Scatter) -> Iterator[Reason]:
    """Yield that a verdict rests on too few days, nothing where it does not."""
    if gate.is_provisional(scatter):
        yield reason("baseline.days", days=scatter.days)


def _open(scatter: Scatter, launches: int) -> list[Reason]:
    """Return what slow-down such runs show, and what would decide where they do not."""
    margin = gate.margin(scatter, launches)
    if math.isinf(margin):
        return [reason("change.undetectable", launches=launches, needed=gate.FEWEST_LAUNCHES)]
    often, surely = (math.expm1(gate.detectable(scatter, margin, p)) for p in gate.POWERS)
    reasons = [reason("change.detectable", often=often, surely=surely, launches=launches)]
    if gate.is_provisional(scatter):
        days = gate.FEWEST_DAYS - scatter.days
        reasons.append(reason("baseline.provisional", days=scatter.days, more=days))
    else:
        reasons.append(reason("baseline.unsteady", runs=scatter.runs, spread=scatter.spread))
    return reasons


# Limits are measured, and a loaded node shows less: a reference beyond twice of one cannot be met.
_BEYOND_A_LIMIT = 2.0


def is_far_off(reference: Reference, better: Better, value: float) -> bool:
    """Tell whether a value is so much better than its reference that this cannot be of it."""
    if min(value, reference.value) <= 0 or better is Better.NEITHER:
        return False
    ratio = value / reference.value
    return (ratio if better is Better.HIGHER else 1 / ratio) >= FAR_OFF


def _doubtful_reference(
    reference: Reference, better: Better, value: float, limits: Sequence[Limit]
) -> Iterator[Reason]:
    """Yield why a regression may be the reference's fault, nothing where nothing says so."""
    where = reference.where or "it"
    for limit in limits:
        at_most = limit.at_most if better is Better.HIGHER else None
        if at_most is not None and reference.value > _BEYOND_A_LIMIT * at_most:
            yield reason("reference.beyond-limit", limit=at_most, why=limit.reason, where=where)
            return
    if min(value, reference.value) > 0 and not (1 / FAR_OFF < value / reference.value < FAR_OFF):
        yield reason("reference.doubtful", where=where)


def worse_than(reference: Reference, estimate: Estimate, better: Better) -> float:
    """Return by how much an estimate is worse than its reference: the logarithm of their ratio.

    Raises ValueError where one of the two is not above zero.
    """
    higher = better is Better.HIGHER
    return gate.worse_by(estimate.value, reference.value, higher_is_better=higher)


def _unexcused(excuse: Excuse, by: float) -> Reason:
    cause = str(excuse.cause)
    return reason("launches.unexcused", cause=cause, explained=excuse.factor, times=by)


def slow_share(
    launches: Sequence[float],
    better: Better,
    reference: Reference,
    excuse: Excuse | None = None,
) -> Judgement | None:
    """Judge how many launches are far worse than the reference; None where as many as usual are.

    The best of them tells what the node can do, and not what it does. ``launches`` are the values
    of the undisturbed ones. Where those are too few for a verdict (``excuse``), what disturbed the
    others may have met them as well, and the answer is "inconclusive" at most.
    """
    if reference.value <= 0 or min(launches, default=0.0) <= 0:
        return None
    higher = better is Better.HIGHER
    worse_by = [gate.worse_by(x, reference.value, higher_is_better=higher) for x in launches]
    return _slow_share(worse_by, reference.scatter, excuse)


def _slow_share(
    worse_by: Sequence[float], scatter: Scatter | None, excuse: Excuse | None
) -> Judgement | None:
    far = gate.slow_launches(worse_by)
    doubtful = bool(far) and gate.is_doubtful_share(len(far), len(worse_by), scatter)
    slow = far if doubtful else gate.mostly_slow(worse_by)
    if not slow:
        return None
    launches, times = len(worse_by), math.exp(statistics.median(slow))
    others = launches - len(slow)
    if not others:
        slow_share = reason("launches.all-slow", launches=launches, times=times)
    else:
        facts = {"slow": len(slow), "launches": launches, "others": others, "times": times}
        slow_share = reason("launches.slow-share", **facts)
    of_runs = scatter is not None and gate.is_slow_share(len(far), len(worse_by), scatter)
    certain = doubtful and of_runs and excuse is None
    return _judged(Verdict.REGRESSION if certain else Verdict.INCONCLUSIVE, slow_share)


def holding_for(
    reference: Reference, better: Better, launches: int, excuse: Excuse | None = None
) -> Reference:
    """Return a reference with the bound that holds for a run of so many launches.

    It is never narrower than the one that stands there, and infinite, or -1 where higher is better,
    when nothing can be told from so few, or when disturbances explain whatever there may be.
    """
    factor = 1.0 if excuse is None else excuse.factor
    lower, upper = reference.lower, reference.upper
    if reference.scatter is not None:
        margin = gate.margin(reference.scatter, launches)
        lower = None if lower is None else min(lower, math.expm1(-margin))
        upper = None if upper is None else max(upper, math.expm1(margin))
    if better is Better.HIGHER and lower is not None:
        return dataclasses.replace(reference, lower=_further(reference, lower, 1.0 / factor))
    if better is Better.LOWER and upper is not None:
        return dataclasses.replace(reference, upper=_further(reference, upper, factor))
    return reference


def _further(reference: Reference, side: float, factor: float) -> float:
    """Return a side of a reference so many times further from zero, or nearer to it."""
    if factor == 1.0:
        return side
    # A reference of zero or less has no ratio: nothing is beyond what a disturbance may explain.
    return (1.0 + side) * factor - 1.0 if reference.value > 0 else math.copysign(math.inf, side)


def judge_group(
    group: GroupScatter,
    worse_by: Mapping[str, float],
    launches: int,
    excuse: Excuse | None = None,
    *,
    means: Sequence[float] = (),
) -> Group:
    """Judge all figures of a benchmark as one.

    ``worse_by`` are the natural logarithms by which each of them is worse than its reference,
    ``means`` those of their weighted mean in each undisturbed launch. ``excuse`` is what
    disturbances explain of the mean, where too few launches are undisturbed.
    """
    scatter = group.scatter
    excused = 0.0 if excuse is None else math.log(excuse.factor)
    threshold = gate.margin(scatter, launches) + excused
    missing = [name for name in group.weights if name not in worse_by]
    if missing:
        mean = None
        judgement = _judged(Verdict.INCONCLUSIVE, reason("group.incomplete", figure=missing[0]))
    else:
        mean = gate.group_worse_by(group.weights, worse_by)
        slow = _slow_share(means, scatter, excuse)
        judgement = _group_judgement(scatter, mean, launches, slow)
        if excuse is not None and judgement.verdict not in (Verdict.PASS, Verdict.IMPROVEMENT):
            by_disturbance = reason("group.excused", ratio=math.exp(mean), runs=scatter.runs)
            judgement = _judged(Verdict.INCONCLUSIVE, by_disturbance, excuse.doubt)
            if mean > threshold:
                unexcused = _unexcused(excuse, math.exp(mean))
                judgement = _judged(Verdict.REGRESSION, by_disturbance, unexcused)
    return Group(group.benchmark, len(group.weights), launches, mean, threshold, judgement)


def _group_judgement(
    scatter: Scatter, worse_by: float, launches: int, slow: Judgement | None
) -> Judgement:
    facts: dict[str, Fact] = {"ratio": math.exp(worse_by), "runs": scatter.runs}
    if slow is not None and slow.verdict is Verdict.REGRESSION:
        return _judged(slow.verdict, reason("group.slow-launches", **facts), *slow.reasons)
    margin, seen = gate.margin(scatter, launches), _open(scatter, launches)
    if worse_by > margin:
        regression = reason("group.regression", **facts, usual=math.exp(margin))
        return _judged(Verdict.REGRESSION, regression, *seen)
    if math.isinf(margin) or worse_by > gate.passes_below(scatter):
        return _judged(Verdict.INCONCLUSIVE, reason("group.inconclusive", **facts), *seen)
    if slow is not None:
        return _judged(Verdict.INCONCLUSIVE, reason("group.inconclusive", **facts), *slow.reasons)
    if worse_by < -gate.WANTED:
        improved = reason("group.improvement", **facts)
        return _judged(Verdict.IMPROVEMENT, improved, *_provisional(scatter))
    return _judged(Verdict.PASS, reason("group.as-expected", **facts), *_provisional(scatter))


def _beyond(limit: Limit, low: float, high: float, value: float, unit: str) -> Reason | None:
    facts: dict[str, Fact] = {"value": value, "unit": unit, "why": limit.reason}
    if limit.at_most is not None and low > limit.at_most:
        return reason("limit.exceeded", **facts, limit=limit.at_most)
    if limit.at_least is not None and high < limit.at_least:
        return reason("limit.not-reached", **facts, limit=limit.at_least)
    return None


def _facts(reference: Reference, unit: str, value: float) -> dict[str, Fact]:
    return {
        "value": value,
        "unit": unit,
        "reference": reference.value,
        "ratio": value / reference.value if reference.value else None,
        "origin": reference.origin,
        "where": reference.where or "it",
    }


def _against(reference: Reference, better: Better, unit: str, estimate: Estimate) -> Judgement:
    bound = tolerated_bound(reference, better)
    low, high = _ends(estimate)
    facts = _facts(reference, unit, estimate.value)
    if bound is None or better is Better.NEITHER:
        return _judged(Verdict.NO_REFERENCE, reason("reference.unbounded", **facts))
    at = abs(bound)
    by_hand = _against_floor(bound, better, estimate) if reference.by_hand else None
    # Seen with higher as better, so that each comparison is written once.
    if better is Better.LOWER:
        low, high, bound, expected = -high, -low, -bound, -reference.value
    else:
        expected = reference.value
    if by_hand is Verdict.REGRESSION or (by_hand is None and high < bound):
        return _judged(Verdict.REGRESSION, reason("figure.regression", **facts, bound=at))
    if by_hand is Verdict.INCONCLUSIVE or (by_hand is None and low < bound):
        facts["confidence"] = estimate.confidence
        return _judged(Verdict.INCONCLUSIVE, reason("figure.inconclusive", **facts, bound=at))
    # As much better as would have been tolerated worse.
    if low > 2 * expected - bound:
        return _judged(Verdict.IMPROVEMENT, reason("figure.improvement", **facts))
    return _judged(Verdict.PASS, reason("figure.as-expected", **facts))


def reframe_expected(expected: Expected, better: Better, unit: str) -> ReframeReference:
    """Return ReFrame's reference tuple of an expectation: nothing worse than it is tolerated."""
    higher = better is Better.HIGHER
    return (expected.expectation.floor, 0.0 if higher else None, None if higher else 0.0, unit)


def reframe_reference(
    reference: Reference, better: Better, launches: int = 1, excuse: Excuse | None = None
) -> ReframeReference:
    """Return ReFrame's reference tuple with the same one-sided threshold as :func:`judge`."""
    holding = holding_for(reference, better, launches, excuse)
    lower = holding.lower if better is Better.HIGHER else None
    upper = holding.upper if better is Better.LOWER else None
    # Nothing is beyond such a bound, and ReFrame's storage holds no infinite number.
    if lower in (-1.0, -math.inf):
        lower = None
    if upper == math.inf:
        upper = None
    return (reference.value, lower, upper, reference.unit)


def as_judged(
    judgement: Judgement, value: float, unit: str, bounds: ReframeReference | None
) -> ReframeReference | None:
    """Return bounds by which ReFrame fails a value exactly where the judge does, None for none.

    They are those of its reference, unless it was judged by something else as well.
    """
    is_beyond = False
    if bounds is not None:
        expected, lower, upper, _ = bounds
        is_beyond = (lower is not None and value < _offset(expected, lower)) or (
            upper is not None and value > _offset(expected, upper)
        )
    if (judgement.verdict in WRONG) == is_beyond:
        return bounds
    return None if is_beyond else (2.0 * abs(value) + 1.0, 0.0, 0.0, unit)


# How a group stands among ReFrame's performance variables: what it costs against the baseline.
_AS_IN_THE_BASELINE = 100.0


def reframe_group(group: Group) -> tuple[str, float, str, ReframeReference | None] | None:
    """Return the name, the value, the unit and the reference of a group, None without a value.

    It is what its figures cost in percent of the baseline, less is better, with the same threshold
    as that of :func:`judge_group`.
    """
    if group.worse_by is None:
        return None
    value = _AS_IN_THE_BASELINE * math.exp(group.worse_by)
    upper = None if math.isinf(group.threshold) else math.expm1(group.threshold)
    bounds = (_AS_IN_THE_BASELINE, None, upper, "%")
    name = f"{group.benchmark}.all.cost_percent"
    return name, value, "%", as_judged(group.judgement, value, "%", bounds)


def _offset(value: float, fraction: float) -> float:
    # To the last digit what ReFrame's reference_bounds does: fractions of the magnitude, absolute
    # where the reference is zero.
    if not value:
        return fraction
    return value * (1 + fraction) if value > 0 else value * (1 - fraction)
