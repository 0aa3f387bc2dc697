"""What launches say of a derived quantity, and how that stands to what was printed. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import scipy

from clustergate.core.notation import counted, number
from evaluations.derived import DerivedError
from evaluations.evidence import Subject

CONFIDENCE = 0.95
FEWEST = 6
"""Launches whose least and most hold the median of all with :data:`CONFIDENCE`."""


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


def paired_launches(subjects: Sequence[Subject]) -> Iterator[tuple[Subject, ...]]:
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


def sample_quantity(
    quantity: Callable[..., float], subjects: Sequence[Subject], *, mean: bool = False
) -> Sampled:
    """Return a quantity of subjects, launch by launch; raises where no launch has it."""
    values, reasons = [], []
    for launch in paired_launches(subjects):
        try:
            values.append(quantity(*launch))
        except DerivedError as reason:
            reasons.append(reason)
    if not values:
        raise reasons[0]
    without = sum(isinstance(reason, NoneThere) for reason in reasons)
    return sampled_values(values, mean=mean, without=without)
