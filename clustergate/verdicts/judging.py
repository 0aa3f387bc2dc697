"""The one judge: an estimate, a reference and physical limits go in, a verdict comes out.

Pure functions. What ReFrame is told (:func:`reframe_reference`) is derived from the same threshold,
so that its own pass and fail never say anything else.

Of a reference that was made from runs it is known how they scattered, and so by how much an
unchanged run of so many launches can look worse (:mod:`clustergate.statistics.gate`). Figures of
one benchmark are also judged as one group, which sees smaller changes than each of them.
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

# The worst last, for a summary that names one; the exit status of a run follows from the sets.
SEVERITY: Sequence[Verdict] = (
    Verdict.PASS,
    Verdict.IMPROVEMENT,
    Verdict.NO_REFERENCE,
    Verdict.INCONCLUSIVE,
    Verdict.INVALID,
    Verdict.IMPOSSIBLE,
    Verdict.REGRESSION,
)
# So many times off, a reference is of another unit, or of something else: no change of a machine or
# of its software makes a figure so much better, and few make it so much worse.
FAR_OFF = 100.0
# Compared with a bound: what could have been seen is to be told.
_MEASURED = (Verdict.PASS, Verdict.IMPROVEMENT, Verdict.INCONCLUSIVE, Verdict.REGRESSION)
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
    statuses = {_EXIT_STATUS[command].get(verdict, 0) for verdict in verdicts}
    return 1 if 1 in statuses else max(statuses, default=0)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict that a whole run is known by: no verdict at all is invalid."""
    return max(verdicts, key=SEVERITY.index, default=Verdict.INVALID)


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
    group_passed: bool = False,
    slow: Reason | None = None,
    excuse: Excuse | None = None,
) -> Judgement:
    """Judge one figure.

    Where the estimate has an interval, a limit or a bound is crossed only when the whole interval
    lies beyond it; a bound inside the interval is "inconclusive". A single sample is compared as
    it is. Where it is known how the reference scattered, a figure in which a slow-down of 10 %
    could hide passes only when its group did (``group_passed``). One of which most launches are
    ``slow`` (:func:`mostly_slow`) does not pass. With an ``excuse`` a figure is a regression only
    when the disturbances cannot explain it.
    """
    value = estimate.value
    if not math.isfinite(value):
        return _judged(Verdict.INVALID, reason("figure.no-number", value=str(value)))
    low = value if estimate.low is None else estimate.low
    high = value if estimate.high is None else estimate.high
    for limit in limits:
        if beyond := _beyond(limit, low, high, value, unit):
            return _judged(Verdict.IMPOSSIBLE, beyond)
    if reference is None:
        return _judged(Verdict.NO_REFERENCE, reason("reference.none"))
    facts = _facts(reference, unit, value)
    if reference.unit != unit:
        wrong = reason("reference.wrong-unit", **facts, reference_unit=reference.unit)
        return _judged(Verdict.INVALID, wrong)
    if is_far_off(reference, better, value):
        times = math.exp(abs(math.log(value / reference.value)))
        return _judged(Verdict.INVALID, reason("reference.far-off", **facts, times=times))
    judgement = _compared(
        estimate, better, unit, reference, limits, low, high, group_passed=group_passed
    )
    if judgement.verdict in (Verdict.PASS, Verdict.IMPROVEMENT):
        return _judged(Verdict.INCONCLUSIVE, *judgement.reasons, slow) if slow else judgement
    if excuse is None or judgement.verdict not in _MEASURED:
        return judgement
    excused = reason("figure.excused", **facts)
    excusing = holding_for(reference, better, estimate.samples, excuse)
    if _against(excusing, better, unit, value, low, high).verdict is Verdict.REGRESSION:
        by = math.exp(worse_than(reference, estimate, better))
        doubtful = _doubtful_reference(reference, better, value, limits)
        return _judged(Verdict.REGRESSION, excused, _unexcused(excuse, by), *doubtful)
    return _judged(Verdict.INCONCLUSIVE, excused, excuse.doubt)


def _judged(verdict: Verdict, *reasons: Reason) -> Judgement:
    return Judgement(verdict, reasons)


def _compared(
    estimate: Estimate,
    better: Better,
    unit: str,
    reference: Reference,
    limits: Sequence[Limit],
    low: float,
    high: float,
    *,
    group_passed: bool,
) -> Judgement:
    """Judge a figure against its reference as if nothing had disturbed it."""
    holding = holding_for(reference, better, estimate.samples)
    judgement = _against(holding, better, unit, estimate.value, low, high)
    if judgement.verdict is Verdict.REGRESSION:
        doubtful = _doubtful_reference(reference, better, estimate.value, limits)
        judgement = _judged(judgement.verdict, *judgement.reasons, *doubtful)
    if judgement.verdict not in _MEASURED or min(estimate.value, reference.value) <= 0:
        return judgement
    reasons = (*judgement.reasons, _seen(holding, better, estimate.samples))
    if reference.scatter is None or judgement.verdict is Verdict.REGRESSION:
        return _judged(judgement.verdict, *reasons)
    margin = gate.margin(reference.scatter, estimate.samples)
    change = gate.change(worse_than(reference, estimate, better), margin)
    if judgement.verdict is Verdict.INCONCLUSIVE or not change.unseen or group_passed:
        return _judged(judgement.verdict, *reasons)
    would = _what_would_help(reference.scatter, estimate.samples, change.worse_by)
    return _judged(Verdict.INCONCLUSIVE, *reasons, would)


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
    """Return that disturbances do not explain what is ``by`` times worse."""
    cause = str(excuse.cause)
    return reason("launches.unexcused", cause=cause, explained=excuse.factor, times=by)


def mostly_slow(launches: Sequence[float], better: Better, reference: Reference) -> Reason | None:
    """Return that at least half of the launches are far worse than the reference, else None.

    The best of them tells what the node can do, and not what it does. ``launches`` are the values
    of the undisturbed ones.
    """
    if reference.value <= 0 or min(launches, default=0.0) <= 0:
        return None
    higher = better is Better.HIGHER
    worse_by = [gate.worse_by(x, reference.value, higher_is_better=higher) for x in launches]
    return _mostly_slow(worse_by, reference.scatter)


def _mostly_slow(worse_by: Sequence[float], scatter: Scatter | None) -> Reason | None:
    slow = gate.far_worse(worse_by, scatter)
    if not slow or 2 * len(slow) < len(worse_by):
        return None
    return reason(
        "launches.mostly-slow",
        slow=len(slow),
        launches=len(worse_by),
        others=len(worse_by) - len(slow),
        times=math.exp(statistics.median(slow)),
    )


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
        margin = max(gate.margin(reference.scatter, launches), gate.TOLERATED)
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


def _seen(holding: Reference, better: Better, launches: int) -> Reason:
    side = (holding.lower if better is Better.HIGHER else holding.upper) or 0.0
    return _told_seen(math.inf if side <= -1.0 else abs(side), launches)


def _told_seen(fraction: float, launches: int) -> Reason:
    if math.isinf(fraction):
        return reason("change.undetectable", launches=launches)
    return reason("change.detectable", change=fraction, launches=launches)


def _what_would_help(scatter: Scatter, launches: int, worse_by: float, steady: int = 0) -> Reason:
    wanted = math.expm1(gate.WANTED)
    for of_baseline_too in (False, True):
        more = gate.more_launches(
            scatter, launches, worse_by, steady=steady, of_baseline_too=of_baseline_too
        )
        if more is not None:
            where = "-each" if of_baseline_too else ""
            return reason(f"baseline.more-launches{where}", wanted=wanted, more=more)
    runs = gate.more_runs(scatter, launches, worse_by, steady)
    if runs is not None:
        return reason("baseline.more-runs", wanted=wanted, more=runs)
    spread = scatter.spread
    return reason("baseline.unsteady", wanted=wanted, runs=scatter.runs, spread=spread)


def judge_group(
    group: GroupScatter,
    worse_by: Mapping[str, float],
    launches: int,
    excuse: Excuse | None = None,
    *,
    steady: int = 0,
    means: Sequence[float] = (),
) -> Group:
    """Judge all figures of a benchmark as one.

    ``worse_by`` are the natural logarithms by which each of them is worse than its reference,
    ``means`` those of their weighted mean in each undisturbed launch. ``excuse`` is what
    disturbances explain of the mean, where too few launches are undisturbed. ``steady`` of the
    launches were so by the group's company.
    """
    margin = gate.margin(group.scatter, launches, steady)
    excused = 0.0 if excuse is None else math.log(excuse.factor)
    threshold = max(margin, gate.TOLERATED) + excused
    missing = [name for name in group.weights if name not in worse_by]
    if missing:
        mean = None
        judgement = _judged(Verdict.INCONCLUSIVE, reason("group.incomplete", figure=missing[0]))
    else:
        mean = gate.group_worse_by(group.weights, worse_by)
        judgement = _group_judgement(group.scatter, mean, margin, launches, steady, means)
        if excuse is not None and judgement.verdict not in (Verdict.PASS, Verdict.IMPROVEMENT):
            by_disturbance = reason("group.excused", ratio=math.exp(mean), runs=group.scatter.runs)
            judgement = _judged(Verdict.INCONCLUSIVE, by_disturbance, excuse.doubt)
            if mean > threshold:
                unexcused = _unexcused(excuse, math.exp(mean))
                judgement = _judged(Verdict.REGRESSION, by_disturbance, unexcused)
    return Group(group.benchmark, len(group.weights), launches, mean, threshold, judgement)


def _group_judgement(
    scatter: Scatter,
    worse_by: float,
    margin: float,
    launches: int,
    steady: int,
    means: Sequence[float],
) -> Judgement:
    change = gate.change(worse_by, margin)
    facts: dict[str, Fact] = {"ratio": math.exp(worse_by), "runs": scatter.runs}
    seen = _told_seen(math.expm1(change.threshold), launches)
    if change.regressed:
        ends = {"low": math.exp(change.low), "high": math.exp(change.high)}
        return _judged(Verdict.REGRESSION, reason("group.regression", **facts, **ends), seen)
    if change.unseen:
        would = _what_would_help(scatter, launches, worse_by, steady)
        return _judged(Verdict.INCONCLUSIVE, reason("group.inconclusive", **facts), seen, would)
    if slow := _mostly_slow(means, scatter):
        return _judged(Verdict.INCONCLUSIVE, reason("group.inconclusive", **facts), slow)
    if worse_by < -change.threshold:
        return _judged(Verdict.IMPROVEMENT, reason("group.improvement", **facts), seen)
    return _judged(Verdict.PASS, reason("group.as-expected", **facts), seen)


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


def _against(
    reference: Reference, better: Better, unit: str, value: float, low: float, high: float
) -> Judgement:
    bound = tolerated_bound(reference, better)
    facts = _facts(reference, unit, value)
    if bound is None or better is Better.NEITHER:
        return _judged(Verdict.NO_REFERENCE, reason("reference.unbounded", **facts))
    at = abs(bound)
    # Seen with higher as better, so that each comparison is written once.
    if better is Better.LOWER:
        low, high, bound, expected = -high, -low, -bound, -reference.value
    else:
        expected = reference.value
    if high < bound:
        return _judged(Verdict.REGRESSION, reason("figure.regression", **facts, bound=at))
    if low < bound:
        return _judged(Verdict.INCONCLUSIVE, reason("figure.inconclusive", **facts, bound=at))
    # As much better as would have been tolerated worse.
    if low > 2 * expected - bound:
        return _judged(Verdict.IMPROVEMENT, reason("figure.improvement", **facts))
    return _judged(Verdict.PASS, reason("figure.as-expected", **facts))


def reframe_reference(
    reference: Reference, better: Better, launches: int = 1, excuse: Excuse | None = None
) -> tuple[float, float | None, float | None, str]:
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


def reframe_limit(limit: Limit, unit: str) -> tuple[float, float | None, float | None, str]:
    """Return ReFrame's reference tuple of a physical limit, which tolerates nothing beyond it."""
    if limit.at_most is not None:
        return (limit.at_most, None, 0.0, unit)
    return (limit.at_least or 0.0, 0.0, None, unit)


# How a group stands among ReFrame's performance variables: what it costs against the baseline.
_AS_IN_THE_BASELINE = 100.0


def reframe_group(
    group: Group,
) -> tuple[str, float, tuple[float, float | None, float | None, str]] | None:
    """Return the name, the value and the reference of a group for ReFrame, None without a value.

    It is what its figures cost in percent of the baseline, less is better, with the same threshold
    as that of :func:`judge_group`.
    """
    if group.worse_by is None:
        return None
    value = _AS_IN_THE_BASELINE * math.exp(group.worse_by)
    upper = None if math.isinf(group.threshold) else math.expm1(group.threshold)
    return f"{group.benchmark}.all.cost_percent", value, (_AS_IN_THE_BASELINE, None, upper, "%")


def _offset(value: float, fraction: float) -> float:
    # To the last digit what ReFrame's reference_bounds does: fractions of the magnitude, absolute
    # where the reference is zero.
    if not value:
        return fraction
    return value * (1 + fraction) if value > 0 else value * (1 - fraction)
