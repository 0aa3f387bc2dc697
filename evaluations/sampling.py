"""What launches say of a derived quantity, and how that stands to what was printed. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import scipy

from clustergate.core.model import Better
from clustergate.core.notation import counted, number
from evaluations.derived import DerivedError
from evaluations.evidence import Subject
from evaluations.facts import PrintedValue

CONFIDENCE = 0.95
FEWEST = 6
"""Launches whose least and most hold the median of all with :data:`CONFIDENCE`."""

# By the qualifier of a value, how much worse than it is tolerated, as a fraction of it. A bound
# holds as it is; the suite tolerates 5 % elsewhere, and an approximate number is no better known.
TOLERANCE = {
    **{"": 0.05, "up to": 0.05, "about": 0.10, "a little above": 0.10, "a little below": 0.10},
    **dict.fromkeys(("below", "above", "at least"), 0.0),
}


class NoneThere(DerivedError):
    """What was measured has no such place: a curve without a dip, two that never cross."""


def plain(value: float) -> str:
    """Return a number with four significant digits, a whole one without decimals."""
    return f"{value:.0f}" if float(value).is_integer() else number(value)


@dataclass(frozen=True)
class Sampled:
    """The median of launches with its interval, which few launches do not have.

    Of what was printed as a ``mean`` it is that, with the least and the most. Of ``without`` more
    launches it is none.
    """

    value: float
    low: float | None
    high: float | None
    launches: int
    mean: bool = False
    without: int = 0

    @property
    def remark(self) -> str:
        """Return of how many launches it is, and its interval or why it has none."""
        told = "one launch, no interval"
        if self.launches > 1:
            ends = ""
            if self.low is not None and self.high is not None:
                ends = f", {plain(self.low)} to {plain(self.high)}"
            few = "" if ends else f", no interval below {FEWEST}"
            told = f"{'mean' if self.mean else 'median'} of {self.launches}{ends}{few}"
        return f"{told}; none in {counted(self.without, 'launch')}" if self.without else told


def sampled_values(
    values: Sequence[float],
    *,
    mean: bool = False,
    without: int = 0,
    confidence: float = CONFIDENCE,
) -> Sampled:
    """Return the median of the values of launches, or their mean."""
    if mean:
        average = statistics.fmean(values)
        return Sampled(average, min(values), max(values), len(values), mean, without)
    interval = scipy.stats.quantile_test(values, p=0.5).confidence_interval(confidence)
    known = all(map(math.isfinite, interval))
    low, high = (float(interval.low), float(interval.high)) if known else (None, None)
    return Sampled(statistics.median(values), low, high, len(values), without=without)


def launches_of(subjects: Sequence[Subject]) -> Iterator[tuple[Subject, ...]]:
    """Yield the subjects with the figures of one launch each, while all have one more.

    Of several that were launched in rounds they are of the same round; what was not follows.
    """
    rounds = frozenset.intersection(*(one.rounds for one in subjects))
    if len(subjects) > 1 and rounds:
        yield from (tuple(one.in_rounds({run}) for one in subjects) for run in sorted(rounds))
        subjects = [one.outside_rounds for one in subjects]
        if not all(one.figures for one in subjects):
            return
    yield from zip(*(one.by_launch for one in subjects), strict=False)


def sampled_of(
    quantity: Callable[..., float], subjects: Sequence[Subject], *, mean: bool = False
) -> Sampled:
    """Return a quantity of subjects, launch by launch; raises where no launch has it."""
    values, reasons = [], []
    for launch in launches_of(subjects):
        try:
            values.append(quantity(*launch))
        except DerivedError as reason:
            reasons.append(reason)
    if not values:
        raise reasons[0]
    without = sum(isinstance(reason, NoneThere) for reason in reasons)
    return sampled_values(values, mean=mean, without=without)


def beside_printed(value: PrintedValue, here: Sampled) -> str:
    """Return whether what was measured is as printed, within what the print and chance leave open.

    To be asked of who plays the printed system, and of the printed launch.
    """
    if here.without:
        return "not in every launch"
    if here.low is None or here.high is None or here.launches < FEWEST:
        return "too few launches to tell whether as printed"
    ends = (value.low, value.high) if value.value is None else (value.value, value.value)
    assert ends[0] is not None
    assert ends[1] is not None
    part = TOLERANCE[value.qualifier]
    least, most = ends[0] - part * abs(ends[0]), ends[1] + part * abs(ends[1])
    if value.qualifier in ("above", "at least"):
        most = math.inf
    if value.qualifier == "below":
        least = -math.inf
    if least <= here.low and here.high <= most:
        return "as printed"
    if here.low <= most and here.high >= least:
        return "more launches would tell whether as printed"
    if value.better is Better.NEITHER:
        return "not as printed"
    is_higher = here.low > most
    return (
        "better than printed"
        if is_higher is (value.better is Better.HIGHER)
        else "worse than printed"
    )
