"""The one judge: an estimate, a reference and physical limits go in, a verdict comes out.

Pure functions. What ReFrame is told (:func:`reframe_reference`) is derived from the same threshold,
so that its own pass and fail never say anything else.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from clustergate.model import Better, Estimate, Judgement, Limit, Reference, Verdict
from clustergate.notation import number

# The worst last, for a summary that names one; the exit status of a run follows from the sets.
SEVERITY: Sequence[Verdict] = (
    Verdict.PASS,
    Verdict.IMPROVEMENT,
    Verdict.NO_REFERENCE,
    Verdict.CANNOT_TELL,
    Verdict.INVALID,
    Verdict.IMPOSSIBLE,
    Verdict.REGRESSION,
)
_EXIT_STATUS: Mapping[str, Mapping[Verdict, int]] = {
    "check": {
        Verdict.REGRESSION: 1,
        Verdict.IMPOSSIBLE: 2,
        Verdict.INVALID: 2,
    },
    "gate": {
        Verdict.NO_REFERENCE: 2,
        Verdict.CANNOT_TELL: 2,
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
) -> Judgement:
    """Judge one figure.

    Where the estimate has an interval, a limit or a bound is crossed only when the whole interval
    lies beyond it; a bound inside the interval is "cannot tell". A single sample is compared as
    it is.
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
    return _against(reference, better, unit, estimate.value, low, high)


def _beyond(limit: Limit, low: float, high: float) -> str | None:
    if limit.at_most is not None and low > limit.at_most:
        return (
            f"more than the {number(limit.at_most)} there can be; {limit.reason}; do not trust "
            "this figure, look at clocks, timers and what else ran on the node"
        )
    if limit.at_least is not None and high < limit.at_least:
        return f"less than the {number(limit.at_least)} there must be; {limit.reason}"
    return None


def _against(
    reference: Reference, better: Better, unit: str, value: float, low: float, high: float
) -> Judgement:
    bound = tolerated_bound(reference, better)
    change = _change(value, reference.value)
    expected_value = f"{number(reference.value)} ({reference.origin})"
    told = f"{number(value)} {unit}, {change} the reference {expected_value}"
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
            Verdict.CANNOT_TELL,
            f"{told}, with {number(abs(bound))} inside its interval; take more launches",
        )
    # As much better as would have been tolerated worse.
    if low > 2 * expected - bound:
        return Judgement(Verdict.IMPROVEMENT, f"{told}; if it stays, take a new baseline")
    return Judgement(Verdict.PASS, told)


def reframe_reference(
    reference: Reference, better: Better
) -> tuple[float, float | None, float | None, str]:
    """Return ReFrame's reference tuple with the same one-sided threshold as :func:`judge`."""
    lower = reference.lower if better is Better.HIGHER else None
    upper = reference.upper if better is Better.LOWER else None
    return (reference.value, lower, upper, reference.unit)


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
