"""The one judge: an estimate, a reference and physical limits go in, a verdict comes out.

Pure functions. What ReFrame is told (:func:`reframe_reference`) is derived from the same threshold,
so that its own pass and fail never say anything else.

Beside the other figures of its run a figure is judged in :mod:`clustergate.judge`: what is here is
what holds of it alone.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence

from clustergate.core.model import (
    BaselineRuns,
    Better,
    Estimate,
    Excuse,
    Expectation,
    Expected,
    Judgement,
    Limit,
    Reference,
    Verdict,
)
from clustergate.core.reasons import Facts, Reason, Words
from clustergate.core.texts import UNEXCUSED
from clustergate.judge.case import MeasuredFigure
from clustergate.judge.disproof import WORSE
from clustergate.judge.rules import (
    EXPECTATION_MET,
    EXPECTATION_TOLERATED,
    FIGURE_AS_EXPECTED,
    FIGURE_BETWEEN,
    FIGURE_EXCUSED,
    FIGURE_IMPROVEMENT,
    FIGURE_REGRESSION,
    LAUNCHES_ALL_SLOW,
    LAUNCHES_SLOW_SHARE,
    NEAR_THE_BEST,
    facts_of,
)
from clustergate.stats.slow_share import (
    FEWEST_LAUNCHES,
    is_doubtful_share,
    is_slow_share,
    mostly_slow,
    slow_launches,
    usual_share,
)

REFERENCE_NONE = Words("reference.none", "no reference; checked against physical limits only")
NO_REFERENCE = REFERENCE_NONE()
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
    side = reference.side(better)
    return None if side is None else _offset(reference.value, side)


NO_NUMBER = Words("figure.no-number", "the value is {value}", remedy="look at the output")
FIGURE_NOTHING = Words(
    "figure.nothing",
    "{value:number} {unit} has no ratio to the reference {reference:number} {unit} ({origin})",
    remedy="look at the output: did the benchmark do its work, and does its clock resolve it?",
)
WRONG_UNIT = Words(
    "reference.wrong-unit",
    "the figure is in {unit!r} and its reference in {reference_unit!r} ({origin})",
    remedy="correct the reference",
)
REFERENCE_FAR_OFF = Words(
    "reference.far-off",
    (
        "{value:number} {unit} is {times:number} times better than the reference "
        "{reference:number} {unit} ({origin})"
    ),
    cause="is it in another unit, Tflop/s for Gflop/s, or from another machine or problem size?",
    remedy="correct {where}",
)


def judge(
    estimate: Estimate,
    better: Better,
    unit: str,
    reference: Reference | None = None,
    limits: Sequence[Limit] = (),
    *,
    launches: Sequence[float] = (),
    excuse: Excuse | None = None,
    beside: Judgement | None = None,
) -> Judgement:
    """Judge one figure.

    Where the estimate has an interval, a limit or a bound is crossed only when the whole interval
    lies beyond it; a bound inside the interval is "inconclusive". A single sample is compared as
    it is. Of a reference that was made from runs the best launch is compared, as ReFrame does; what
    it is called ``beside`` the other figures of its run (:mod:`clustergate.judge.rules`) counts
    instead, where that is known. Of the undisturbed ``launches`` more than chance explains may not
    be far worse. With an ``excuse`` a figure is a regression only when the disturbances cannot
    explain it.
    """
    value = estimate.value
    low, high = _ends(estimate)
    # Nothing is beyond an end that is no number.
    if endless := [one for one in (value, low, high) if not math.isfinite(one)]:
        return _judged(Verdict.INVALID, NO_NUMBER(value=str(endless[0])))
    for limit in limits:
        if beyond := _beyond(limit, low, high, value, unit):
            return _judged(Verdict.IMPOSSIBLE, beyond)
    if reference is None:
        return _judged(Verdict.NO_REFERENCE, NO_REFERENCE)
    facts = facts_of(reference, unit, value)
    if reference.unit != unit:
        wrong = WRONG_UNIT(**facts, reference_unit=reference.unit)
        return _judged(Verdict.INVALID, wrong)
    if is_far_off(reference, better, value):
        times = math.exp(abs(math.log(value / reference.value)))
        return _judged(Verdict.INVALID, REFERENCE_FAR_OFF(**facts, times=times))
    if better is Better.LOWER and value <= 0 < reference.value:
        # No limit of physics bounds all that is timed, nor what a site's own benchmark tells.
        return _judged(Verdict.INCONCLUSIVE, FIGURE_NOTHING(**facts))
    is_ratio = min(value, reference.value) > 0
    by = better.worse_by(value, reference.value) if is_ratio else 0.0
    slow = slow_share(launches, better, reference, excuse)
    if slow is not None and slow.verdict is Verdict.REGRESSION:
        return slow
    by_runs = reference.baseline is not None and better is not Better.NEITHER
    if beside is not None:
        judgement = beside
    elif by_runs and is_ratio:
        judgement = _alone(reference, better, unit, estimate, by)
    else:
        judgement = _against(reference, better, unit, estimate)
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
    excused = FIGURE_EXCUSED(**facts)
    excusing = holding_for(reference, better, excuse)
    if (
        _against(excusing, better, unit, _best(estimate) if by_runs else estimate).verdict
        is Verdict.REGRESSION
    ):
        unexcused = _unexcused(excuse, math.exp(by))
        return _judged(Verdict.REGRESSION, excused, unexcused, *_doubtful_reference(*doubted))
    return _judged(Verdict.INCONCLUSIVE, excused, excuse.doubt)


def judge_figure(
    measured: MeasuredFigure, beside: Judgement | None = None
) -> tuple[Judgement, list[Expected]]:
    """Return a figure's judgement with how it stands to what people expect of it, and to each."""
    better, estimate, reference = measured.sample.better, measured.estimate, measured.reference
    launches, expectations = list(measured.launches.values()), measured.expectations
    judgement = impossible(measured)
    if judgement is None:
        judgement = judge(
            estimate,
            better,
            measured.sample.unit,
            reference,
            measured.limits,
            launches=launches,
            excuse=measured.excuse,
            beside=beside,
        )
        doubted = _with_doubt(judgement, reference.doubt if reference else None)
        judgement = _with_wrong_reference(doubted, measured.wrong)
    if judgement.verdict is Verdict.IMPOSSIBLE or not math.isfinite(estimate.value):
        return judgement, [Expected(one, judgement, 0.0) for one in expectations]
    expected = [judge_expected(one, estimate, better, measured.excuse) for one in expectations]
    return with_expected(judgement, expected, better, launches), expected


def impossible(one: MeasuredFigure) -> Judgement | None:
    """Judge the best launch alone: what it cannot be is not made possible by the others."""
    if not one.limits:
        return None
    best = dataclasses.replace(one.estimate, low=None, high=None)
    judgement = judge(best, one.sample.better, one.sample.unit, limits=one.limits)
    return judgement if judgement.verdict is Verdict.IMPOSSIBLE else None


def _with_wrong_reference(judgement: Judgement, wrong: Reason | None) -> Judgement:
    if wrong is None or judgement.verdict is Verdict.IMPOSSIBLE:
        return judgement
    if judgement.verdict is Verdict.REGRESSION or wrong.facts.get("how") == WORSE:
        slipped = judgement.verdict is Verdict.REGRESSION and "how" in wrong.facts
        return Judgement(judgement.verdict, (*judgement.reasons, *([wrong] if slipped else [])))
    said = judgement.reasons if judgement.verdict is Verdict.INVALID else ()
    return Judgement(Verdict.INVALID, (*said, wrong))


def _with_doubt(judgement: Judgement, doubt: Reason | None) -> Judgement:
    """Let a reference that is in doubt accuse, with the doubt, and let nothing pass by it."""
    if doubt is None or judgement.verdict not in COMPARED:
        return judgement
    if judgement.verdict is Verdict.REGRESSION:
        return Judgement(judgement.verdict, (*judgement.reasons, doubt))
    return Judgement(Verdict.INCONCLUSIVE, (doubt, *judgement.reasons))


def is_too_few(reference: Reference, launches: int) -> bool:
    """Tell whether so many launches of a short benchmark tell nothing against its baseline."""
    known = reference.baseline
    return known is not None and known.repeated and launches < FEWEST_LAUNCHES


# More launches are asked of nobody.
_MOST_LAUNCHES = 50
# Of a floor, by which the best launch may be below it and meet it: units are turned into others.
_ROUNDING = 1e-9


EXPECTATION_MISSED = Words(
    "expectation.missed",
    "{name} {value:number} {unit} is {ratio:compared} {expected:number} ({source})",
    remedy=(
        "measure the node alone; `clustergate history --check {check}` shows whether it ever was"
    ),
)
EXPECTATION_UNDECIDED = Words(
    "expectation.undecided",
    (
        "{name} {value:number} {unit} is {ratio:compared} {expected:number} ({source}), less "
        "than its launches differ by ({interval:percent})"
    ),
    remedy="more launches decide, with -- -S {check}.launches={launches}",
)
EXPECTATION_EXCUSED = Words(
    "expectation.excused",
    "{name} {value:number} {unit} is {ratio:compared} {expected:number} ({source})",
)


def judge_expected(
    expectation: Expectation,
    estimate: Estimate,
    better: Better,
    excuse: Excuse | None = None,
) -> Expected:
    """Judge a figure by what a person expects of it, which its best launch meets or misses.

    Nothing makes a launch faster than the machine can be, so the others do not matter. It is missed
    by more than its tolerance, else by more than the interval of the launches, and by more than
    disturbances explain (``excuse``); between nothing is decided.
    """
    floor, best = expectation.floor, estimate.value
    by = better.worse_by(best, floor) if best > 0 else 0.0
    low, high = _ends(estimate)
    facts: Facts = {
        "name": expectation.name,
        "value": best * expectation.scale,
        "unit": expectation.unit,
        "expected": expectation.value,
        "ratio": best / floor,
        "source": expectation.source or expectation.where,
        "check": expectation.check,
    }
    tolerance = expectation.tolerance
    verdict = _against_floor(floor, better, estimate, tolerance)
    if verdict is Verdict.PASS and by > _ROUNDING:
        judgement = _judged(verdict, EXPECTATION_TOLERATED(**facts, tolerance=tolerance or 0.0))
    elif verdict is Verdict.PASS:
        judgement = _judged(verdict, EXPECTATION_MET(**facts))
    elif excuse is not None:
        explained = floor / excuse.factor if better is Better.HIGHER else floor * excuse.factor
        excused = EXPECTATION_EXCUSED(**facts)
        judgement = _judged(Verdict.INCONCLUSIVE, excused, excuse.doubt)
        if _against_floor(explained, better, estimate, tolerance) is Verdict.REGRESSION:
            missed = EXPECTATION_MISSED(**facts)
            judgement = _judged(Verdict.REGRESSION, missed, _unexcused(excuse, math.exp(by)))
    elif verdict is Verdict.REGRESSION:
        judgement = _judged(verdict, EXPECTATION_MISSED(**facts))
    else:
        more = min(max(2 * estimate.samples, FEWEST_LAUNCHES), _MOST_LAUNCHES)
        of: Facts = {"launches": more, "interval": (high - low) / abs(floor)}
        undecided = EXPECTATION_UNDECIDED(**facts, **of)
        judgement = _judged(verdict, undecided)
    return Expected(expectation, judgement, -by)


def _against_floor(
    floor: float, better: Better, estimate: Estimate, tolerance: float | None = None
) -> Verdict:
    """Return how the best launch stands to a floor, or to a ceiling where lower is better.

    A ``tolerance``, a fraction, takes the place of the interval of the launches.
    """
    low, high = _ends(estimate)
    short = floor - estimate.value if better is Better.HIGHER else estimate.value - floor
    if short <= ((tolerance or 0.0) + _ROUNDING) * abs(floor):
        return Verdict.PASS
    return (
        Verdict.REGRESSION if tolerance is not None or short > high - low else Verdict.INCONCLUSIVE
    )


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


TOO_FEW_LAUNCHES = Words(
    "figure.too-few-launches",
    (
        "{value:number} {unit}, {ratio:compared} the reference {reference:number} ({origin}), of "
        "too few launches"
    ),
    remedy="take more launches",
)


def _alone(
    reference: Reference, better: Better, unit: str, estimate: Estimate, by: float
) -> Judgement:
    """Judge the best launch by a reference that was made from runs, seen by itself.

    It is worse ``by`` so much, as a logarithm. Nothing hides in what comes near to the best that
    was ever seen, and else nothing is known.
    """
    facts = facts_of(reference, unit, estimate.value)
    if is_too_few(reference, estimate.samples):
        return _judged(Verdict.INCONCLUSIVE, TOO_FEW_LAUNCHES(**facts))
    judgement = _against(reference, better, unit, _best(estimate))
    within = reference.tolerance is not None or by <= NEAR_THE_BEST
    if judgement.verdict is Verdict.REGRESSION or within:
        return judgement
    return _judged(Verdict.INCONCLUSIVE, FIGURE_BETWEEN(**facts))


def _best(estimate: Estimate) -> Estimate:
    return dataclasses.replace(estimate, low=None, high=None)


def _ends(estimate: Estimate) -> tuple[float, float]:
    value = estimate.value
    low, high = estimate.low, estimate.high
    return value if low is None else low, value if high is None else high


def _judged(verdict: Verdict, *reasons: Reason) -> Judgement:
    return Judgement(verdict, reasons)


# Limits are measured, and a loaded node shows less: a reference beyond twice of one cannot be met.
_BEYOND_A_LIMIT = 2.0


def is_far_off(reference: Reference, better: Better, value: float) -> bool:
    """Tell whether a value is so much better than its reference that this cannot be of it."""
    if min(value, reference.value) <= 0 or better is Better.NEITHER:
        return False
    ratio = value / reference.value
    return (ratio if better is Better.HIGHER else 1 / ratio) >= FAR_OFF


BEYOND_LIMIT = Words(
    "reference.beyond-limit",
    "the reference itself exceeds the physical limit of {limit:number} ({why})",
    cause="is it in another unit, Tflop/s for Gflop/s, or from another machine or problem size?",
    remedy="see {where}",
)
REFERENCE_DOUBTFUL = Words(
    "reference.doubtful",
    "this far off, suspect the reference too",
    cause="is it in another unit, Tflop/s for Gflop/s, or from another machine or problem size?",
    remedy="see {where}",
)


def _doubtful_reference(
    reference: Reference, better: Better, value: float, limits: Sequence[Limit]
) -> Iterator[Reason]:
    """Yield why a regression may be the reference's fault, nothing where nothing says so."""
    where = reference.where or "it"
    for limit in limits:
        at_most = limit.at_most if better is Better.HIGHER else None
        if at_most is not None and reference.value > _BEYOND_A_LIMIT * at_most:
            yield BEYOND_LIMIT(limit=at_most, why=limit.reason, where=where)
            return
    if min(value, reference.value) > 0 and not (1 / FAR_OFF < value / reference.value < FAR_OFF):
        yield REFERENCE_DOUBTFUL(where=where)


def _unexcused(excuse: Excuse, by: float) -> Reason:
    cause = str(excuse.cause)
    return UNEXCUSED(cause=cause, explained=excuse.factor, times=by)


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
    worse_by = [better.worse_by(x, reference.value) for x in launches]
    return _slow_share(worse_by, reference.baseline, excuse)


def slow_together(
    launches: Sequence[float], known: BaselineRuns, excuse: Excuse | None = None
) -> Judgement | None:
    """Judge how many launches have all figures of a benchmark far worse; see :func:`slow_share`.

    ``launches`` are the means over its figures, as logarithms, positive is worse.
    """
    return _slow_share(launches, known, excuse, together=True)


def _slow_share(
    worse_by: Sequence[float],
    known: BaselineRuns | None,
    excuse: Excuse | None,
    *,
    together: bool = False,
) -> Judgement | None:
    far = slow_launches(worse_by)
    share = None
    if known is not None:
        share = known.slow_together if together else known.slow
    usual = usual_share(share, together)
    doubtful = bool(far) and is_doubtful_share(len(far), len(worse_by), usual)
    slow = far if doubtful else mostly_slow(worse_by)
    if not slow:
        return None
    launches, times = len(worse_by), math.exp(statistics.median(slow))
    others = launches - len(slow)
    if not others:
        slow_share = LAUNCHES_ALL_SLOW(launches=launches, times=times)
    else:
        slow_share = LAUNCHES_SLOW_SHARE(
            slow=len(slow), launches=launches, others=others, times=times
        )
    of_runs = (
        known is not None
        and known.repeated
        and is_slow_share(len(far), len(worse_by), usual, known.compared)
    )
    certain = doubtful and of_runs and excuse is None
    return _judged(Verdict.REGRESSION if certain else Verdict.INCONCLUSIVE, slow_share)


def holding_for(reference: Reference, better: Better, excuse: Excuse | None = None) -> Reference:
    """Return a reference with the bound that holds where disturbances explain so much.

    It is infinite, or -1 where higher is better, when they explain whatever there may be.
    """
    factor = 1.0 if excuse is None else excuse.factor
    lower, upper = reference.lower, reference.upper
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


LIMIT_EXCEEDED = Words(
    "limit.exceeded",
    "{value:number} {unit} exceeds the physical limit of {limit:number}; {why}",
    remedy="do not trust this figure; check clocks, timers and what else ran on the node",
)
NOT_REACHED = Words(
    "limit.not-reached",
    "{value:number} {unit} is below the physical limit of {limit:number}; {why}",
)


def _beyond(limit: Limit, low: float, high: float, value: float, unit: str) -> Reason | None:
    facts: Facts = {"value": value, "unit": unit, "why": limit.reason}
    if limit.at_most is not None and low > limit.at_most:
        return LIMIT_EXCEEDED(**facts, limit=limit.at_most)
    if limit.at_least is not None and high < limit.at_least:
        return NOT_REACHED(**facts, limit=limit.at_least)
    return None


REFERENCE_UNBOUNDED = Words(
    "reference.unbounded",
    (
        "{value:number} {unit}, {ratio:compared} the reference {reference:number} ({origin}), "
        "which sets no bound on the worse side"
    ),
    remedy="add one",
)
FIGURE_INCONCLUSIVE = Words(
    "figure.inconclusive",
    (
        "{value:number} {unit}, {ratio:compared} the reference {reference:number} ({origin}), "
        "with {bound:number} inside its {confidence:percent} interval"
    ),
    remedy="take more launches",
)


def _against(reference: Reference, better: Better, unit: str, estimate: Estimate) -> Judgement:
    bound = tolerated_bound(reference, better)
    low, high = _ends(estimate)
    facts = facts_of(reference, unit, estimate.value)
    if bound is None or better is Better.NEITHER:
        return _judged(Verdict.NO_REFERENCE, REFERENCE_UNBOUNDED(**facts))
    at = abs(bound)
    by_hand = _against_floor(bound, better, estimate) if reference.by_hand else None
    # Seen with higher as better, so that each comparison is written once.
    if better is Better.LOWER:
        low, high, bound, expected = -high, -low, -bound, -reference.value
    else:
        expected = reference.value
    if by_hand is Verdict.REGRESSION or (by_hand is None and high < bound):
        return _judged(Verdict.REGRESSION, FIGURE_REGRESSION(**facts, bound=at))
    if by_hand is Verdict.INCONCLUSIVE or (by_hand is None and low < bound):
        facts["confidence"] = estimate.confidence
        return _judged(Verdict.INCONCLUSIVE, FIGURE_INCONCLUSIVE(**facts, bound=at))
    # As much better as would have been tolerated worse.
    if low > 2 * expected - bound:
        return _judged(Verdict.IMPROVEMENT, FIGURE_IMPROVEMENT(**facts))
    return _judged(Verdict.PASS, FIGURE_AS_EXPECTED(**facts))


def reframe_expected(expected: Expected, better: Better, unit: str) -> ReframeReference:
    """Return ReFrame's reference tuple of an expectation: what is worse than it tolerates fails."""
    floor, tolerance = expected.expectation.floor, expected.expectation.tolerance or 0.0
    higher = better is Better.HIGHER
    return (floor, -tolerance if higher else None, None if higher else tolerance, unit)


def reframe_reference(
    reference: Reference, better: Better, excuse: Excuse | None = None
) -> ReframeReference:
    """Return ReFrame's reference tuple with the same one-sided threshold as :func:`judge`."""
    holding = holding_for(reference, better, excuse)
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


def _offset(value: float, fraction: float) -> float:
    # To the last digit what ReFrame's reference_bounds does: fractions of the magnitude, absolute
    # where the reference is zero.
    if not value:
        return fraction
    return value * (1 + fraction) if value > 0 else value * (1 - fraction)
