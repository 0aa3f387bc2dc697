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
from collections.abc import Iterable, Mapping, Sequence

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
from clustergate.wording.notation import number

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
    slow: str = "",
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
    if not math.isfinite(estimate.value):
        return Judgement(Verdict.INVALID, f"the value is {estimate.value}; look at the output")
    low = estimate.value if estimate.low is None else estimate.low
    high = estimate.value if estimate.high is None else estimate.high
    for limit in limits:
        beyond = _beyond(limit, low, high)
        if beyond is not None:
            return Judgement(Verdict.IMPOSSIBLE, f"{number(estimate.value)} {unit} is {beyond}")
    if reference is None:
        return Judgement(Verdict.NO_REFERENCE, "nothing to compare with; its limits hold")
    if reference.unit != unit:
        return Judgement(
            Verdict.INVALID,
            f"the figure is in {unit!r} and its reference in {reference.unit!r} "
            f"({reference.origin}); correct the reference",
        )
    if is_far_off(reference, better, estimate.value):
        times = number(math.exp(abs(math.log(estimate.value / reference.value))))
        return Judgement(
            Verdict.INVALID,
            f"{number(estimate.value)} {unit} is {times} times better than the reference "
            f"{number(reference.value)} {unit} ({reference.origin}): {_OTHER_UNIT}; correct "
            f"{reference.where or 'it'}",
        )
    judgement = _compared(
        estimate, better, unit, reference, limits, low, high, group_passed=group_passed
    )
    if judgement.verdict in (Verdict.PASS, Verdict.IMPROVEMENT):
        told = f"{judgement.sentence}; but {slow}"
        return Judgement(Verdict.INCONCLUSIVE, told) if slow else judgement
    if excuse is None or judgement.verdict not in _MEASURED:
        return judgement
    value = estimate.value
    told = _told(reference, unit, value)
    excusing = holding_for(reference, better, estimate.samples, excuse)
    if _against(excusing, better, unit, value, low, high).verdict is Verdict.REGRESSION:
        by = math.exp(worse_than(reference, estimate, better))
        said = (told, _unexcused(excuse, by), _doubtful_reference(reference, better, value, limits))
        return Judgement(Verdict.REGRESSION, "; ".join(filter(None, said)))
    return Judgement(Verdict.INCONCLUSIVE, f"{told}; {excuse.doubt}")


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
    if judgement.verdict is Verdict.REGRESSION and (
        doubt := _doubtful_reference(reference, better, estimate.value, limits)
    ):
        judgement = Judgement(judgement.verdict, f"{judgement.sentence}; {doubt}")
    if judgement.verdict not in _MEASURED or min(estimate.value, reference.value) <= 0:
        return judgement
    told = f"{judgement.sentence}; {_seen(holding, better, estimate.samples)}"
    if reference.scatter is None or judgement.verdict is Verdict.REGRESSION:
        return Judgement(judgement.verdict, told)
    margin = gate.margin(reference.scatter, estimate.samples)
    change = gate.change(worse_than(reference, estimate, better), margin)
    if judgement.verdict is Verdict.INCONCLUSIVE or not change.unseen or group_passed:
        return Judgement(judgement.verdict, told)
    would = _what_would_help(reference.scatter, estimate.samples, change.worse_by)
    return Judgement(Verdict.INCONCLUSIVE, f"{told}; {would}")


_OTHER_UNIT = "is it of another unit, as Tflop/s under Gflop/s, of another machine or problem?"
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
) -> str:
    """Return why a regression may be the reference's fault, empty where nothing says so."""
    for limit in limits:
        at_most = limit.at_most if better is Better.HIGHER else None
        if at_most is not None and reference.value > _BEYOND_A_LIMIT * at_most:
            return (
                f"the reference itself is beyond the {number(at_most)} there can be "
                f"({limit.reason}): {_OTHER_UNIT} see {reference.where or 'it'}"
            )
    if min(value, reference.value) > 0 and not (1 / FAR_OFF < value / reference.value < FAR_OFF):
        return f"so far off, look at the reference too: {_OTHER_UNIT} see {reference.where or 'it'}"
    return ""


def worse_than(reference: Reference, estimate: Estimate, better: Better) -> float:
    """Return by how much an estimate is worse than its reference: the logarithm of their ratio.

    Raises ValueError where one of the two is not above zero.
    """
    higher = better is Better.HIGHER
    return gate.worse_by(estimate.value, reference.value, higher_is_better=higher)


def _unexcused(excuse: Excuse, by: float) -> str:
    """Return that disturbances do not explain what is ``by`` times worse."""
    return (
        f"{excuse.cause}, which explains at most {excuse.factor:.1f} x; this is {by:.1f} x; find "
        "what changed since then, or measure the node alone"
    )


def mostly_slow(launches: Sequence[float], better: Better, reference: Reference) -> str:
    """Return that at least half of the launches are far worse than the reference, else nothing.

    The best of them tells what the node can do, and not what it does. ``launches`` are the values
    of the undisturbed ones.
    """
    if reference.value <= 0 or min(launches, default=0.0) <= 0:
        return ""
    higher = better is Better.HIGHER
    worse_by = [gate.worse_by(x, reference.value, higher_is_better=higher) for x in launches]
    return _mostly_slow(worse_by, reference.scatter)


def _mostly_slow(worse_by: Sequence[float], scatter: Scatter | None) -> str:
    slow = gate.far_worse(worse_by, scatter)
    if not slow or 2 * len(slow) < len(worse_by):
        return ""
    by, others = math.exp(statistics.median(slow)), len(worse_by) - len(slow)
    return (
        f"{len(slow)} of {len(worse_by)} launches are {by:.1f} x worse than the reference, and "
        f"{others} {'is' if others == 1 else 'are'} not: something slows most launches, and the "
        "best is not to be trusted; see in the raw samples which are slow, and what differs: the "
        "cores and memory they were bound to, nodes, links, clocks"
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


def _seen(holding: Reference, better: Better, launches: int) -> str:
    side = (holding.lower if better is Better.HIGHER else holding.upper) or 0.0
    return _told_seen(math.inf if side <= -1.0 else abs(side), launches)


def _told_seen(fraction: float, launches: int) -> str:
    by = _counted(launches, "launch", "es")
    if math.isinf(fraction):
        return f"so few launches show no change at all ({by})"
    return f"a change of {100 * fraction:.1f} % would have been seen by {by}"


def _what_would_help(scatter: Scatter, launches: int, worse_by: float, steady: int = 0) -> str:
    wanted = f"{100 * math.expm1(gate.WANTED):.0f} %"
    hidden = f"a slow-down of {wanted} could hide"
    for of_baseline_too in (False, True):
        more = gate.more_launches(
            scatter, launches, worse_by, steady=steady, of_baseline_too=of_baseline_too
        )
        if more is not None:
            where = " in each run, those of the baseline too" if of_baseline_too else ""
            return f"{hidden}, this would need {_counted(more, 'more launch', 'es')}{where}"
    runs = gate.more_runs(scatter, launches, worse_by, steady)
    if runs is not None:
        return f"{hidden}, this would need {_counted(runs, 'more run')} in the baseline"
    return (
        f"{hidden}, as the {scatter.runs} runs of the baseline differ by {100 * scatter.spread:.1f}"
        " % from each other; find what disturbs them"
    )


def _counted(count: int, noun: str, plural: str = "s") -> str:
    return f"{count} {noun}{'' if count == 1 else plural}"


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
        doubt = f"{missing[0]} is missing, of which its baseline is made; see why"
        judgement = Judgement(Verdict.INCONCLUSIVE, doubt)
    else:
        mean = gate.group_worse_by(group.weights, worse_by)
        judgement = _group_judgement(group.scatter, mean, margin, launches, steady, means)
        if excuse is not None and judgement.verdict not in (Verdict.PASS, Verdict.IMPROVEMENT):
            told = _told_group(group.scatter, mean)
            judgement = Judgement(Verdict.INCONCLUSIVE, f"{told}; {excuse.doubt}")
            if mean > threshold:
                unexcused = f"{told}; {_unexcused(excuse, math.exp(mean))}"
                judgement = Judgement(Verdict.REGRESSION, unexcused)
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
    told = _told_group(scatter, worse_by)
    seen = _told_seen(math.expm1(change.threshold), launches)
    if change.regressed:
        low, high = (_percent(end) for end in (change.low, change.high))
        return Judgement(
            Verdict.REGRESSION,
            f"{told}, between {low} and {high}; {seen}; "
            "find what changed since then, or measure the node alone",
        )
    if change.unseen:
        would = _what_would_help(scatter, launches, worse_by, steady)
        return Judgement(Verdict.INCONCLUSIVE, f"{told}; {seen}; {would}")
    if slow := _mostly_slow(means, scatter):
        return Judgement(Verdict.INCONCLUSIVE, f"{told}; but {slow}")
    if worse_by < -change.threshold:
        return Judgement(Verdict.IMPROVEMENT, f"{told}; {seen}; if it stays, take a new baseline")
    return Judgement(Verdict.PASS, f"{told}; {seen}")


def _told_group(scatter: Scatter, worse_by: float) -> str:
    word = "slower" if worse_by > 0 else "faster"
    return f"{_percent(abs(worse_by))} {word} than the {scatter.runs} runs of the baseline"


def _percent(logarithm: float) -> str:
    return f"{100 * math.expm1(logarithm):.1f} %"


def _beyond(limit: Limit, low: float, high: float) -> str | None:
    if limit.at_most is not None and low > limit.at_most:
        return (
            f"more than the {number(limit.at_most)} there can be; {limit.reason}; do not trust "
            "this figure, look at clocks, timers and what else ran on the node"
        )
    if limit.at_least is not None and high < limit.at_least:
        return f"less than the {number(limit.at_least)} there must be; {limit.reason}"
    return None


def _told(reference: Reference, unit: str, value: float) -> str:
    change = _change(value, reference.value)
    expected = f"{number(reference.value)} ({reference.origin})"
    return f"{number(value)} {unit}, {change} the reference {expected}"


def _against(
    reference: Reference, better: Better, unit: str, value: float, low: float, high: float
) -> Judgement:
    bound = tolerated_bound(reference, better)
    told = _told(reference, unit, value)
    if bound is None or better is Better.NEITHER:
        return Judgement(
            Verdict.NO_REFERENCE, f"{told}, which bounds nothing; give it a bound on the worse side"
        )
    # Seen with higher as better, so that each comparison is written once.
    if better is Better.LOWER:
        low, high, bound, expected = -high, -low, -bound, -reference.value
    else:
        expected = reference.value
    if high < bound:
        return Judgement(
            Verdict.REGRESSION,
            f"{told}, beyond the tolerated {number(abs(bound))}; find what changed since then, "
            "or measure the node alone",
        )
    if low < bound:
        return Judgement(
            Verdict.INCONCLUSIVE,
            f"{told}, with {number(abs(bound))} inside its interval; take more launches",
        )
    # As much better as would have been tolerated worse.
    if low > 2 * expected - bound:
        return Judgement(Verdict.IMPROVEMENT, f"{told}; if it stays, take a new baseline")
    return Judgement(Verdict.PASS, told)


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


def _change(value: float, reference: float) -> str:
    if not reference:
        return "against"
    percent = 100 * (value / reference - 1)
    if abs(percent) < 0.05:
        return "equal to"
    return f"{abs(percent):.1f} % {'above' if percent > 0 else 'below'}"
