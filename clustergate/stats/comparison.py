"""What two contenders say of each other in one figure: the words for it. Pure.

Everything is told of the ratio B/A. How it is found out stands elsewhere: by rounds in turn in
:mod:`clustergate.stats.rounds`, by the judge in :mod:`clustergate.judge.two_runs`.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clustergate.core.model import BadRequest
from clustergate.core.reasons import Words
from clustergate.stats.ranks import kth_differences, rank_sum_bound

MARGIN = 0.05
FAMILY_ERROR = 0.01
"""Chance that anywhere in a suite something is called better although nothing differs."""
EQUIVALENCE_ERROR = 0.025
"""Chance of calling two sets equivalent that differ by the margin, for each comparison."""
ENDLESS = 50.0
"""Logarithm of a ratio beyond which an interval says nothing."""

_DIGITS = 9
# Chance of error of an interval that tells where a ratio rather is.
_RATHER = 0.5

Floats = NDArray[np.float64]


class Relation(enum.Enum):
    """What can be said of A and B."""

    A_BETTER = "A better"
    B_BETTER = "B better"
    EQUIVALENT = "equivalent"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True)
class Comparison:
    """What two sets say of each other; ``ratio`` is B/A.

    The interval from ``low`` to ``high`` has the ``confidence`` (0 to 1) for this comparison alone
    and is the one the verdict rests on; None for an end that launches do not give, both where there
    are too few of them for a verdict.
    ``further_launches`` are those of each side that would probably decide, None where it is
    decided or no number would.
    """

    verdict: Relation
    ratio: float | None
    low: float | None
    high: float | None
    confidence: float
    samples_a: int
    samples_b: int
    further_launches: int | None = None
    remark: str = ""


COMPARE_CHANCES = Words(
    "compare.chances", "the margin and the error probability must lie between 0 and 1"
)


def unless_contradicted(
    comparison: Comparison, everything: tuple[ArrayLike, ArrayLike], margin: float = MARGIN
) -> Comparison:
    """Return a comparison of the launches that count, undecided if all launches rather deny it.

    Disturbed launches are left out of each set by itself: whoever is disturbed by what itself does
    would be spared. ``everything`` holds those launches, too. They deny what is better when their
    ratio is on the other side of 1, and what is equivalent when it is beyond the margin: all of an
    interval that misses the truth as often as not, that of the ranks (Hodges and Lehmann, 1963).
    """
    a, b = (np.sort(_values(side)) for side in everything)
    left_out = [len(a) - comparison.samples_a, len(b) - comparison.samples_b]
    for side, count, n in zip(
        "AB", (comparison.samples_a, comparison.samples_b), left_out, strict=True
    ):
        if n and not count:
            which = f"all {n} launches of {side} were" if n > 1 else f"the launch of {side} was"
            return dataclasses.replace(comparison, remark=f"{which} disturbed")
    if comparison.verdict is Relation.INCONCLUSIVE or comparison.ratio is None or not any(left_out):
        return comparison
    bound = rank_sum_bound(_RATHER, len(a), len(b))
    if bound is None or min(a[0], b[0]) <= 0.0:
        return comparison
    a, b = np.log(a), np.log(b)
    pairs = len(a) * len(b)
    low, middle, high = kth_differences(a, b, (bound, pairs // 2, pairs - 1 - bound))
    edge = math.log1p(margin)
    if comparison.verdict is Relation.EQUIVALENT:
        denied = low > edge or high < -edge
    else:
        denied = high < 0.0 if comparison.ratio > 1.0 else low > 0.0
    if not denied:
        return comparison
    remark = (
        f"{comparison.verdict.value} without the {sum(left_out)} disturbed launches, but with "
        f"them B/A is {math.exp(middle):.3g}"
    )
    return dataclasses.replace(comparison, verdict=Relation.INCONCLUSIVE, remark=remark)


COMPARE_NOT_FINITE = Words(
    "compare.not-finite",
    "a value is not finite",
    remedy="leave that launch out or measure it again",
)


def _values(values: ArrayLike) -> Floats:
    checked = np.asarray(values, dtype=float).ravel()
    if not np.isfinite(checked).all():
        raise BadRequest(COMPARE_NOT_FINITE())
    return checked


def without_ratio(
    n: int, m: int, remark: str = "a value of zero or less has no ratio"
) -> Comparison:
    """Return what n launches of A and m of B say where no ratio can be formed, and why."""
    if not n or not m:
        remark = f"measured in {'A only' if n else 'B only' if m else 'neither'}"
    return Comparison(Relation.INCONCLUSIVE, None, None, None, 0.0, n, m, None, remark)


def from_logarithms(
    verdict: Relation,
    ratio: float,
    interval: tuple[float, float],
    confidence: float,
    samples: tuple[int, int],
    further: int | None,
    remark: str,
) -> Comparison:
    """Return a comparison from logarithms; an end of the interval that is endless is left out.

    What is undecided has none then, nor a ratio, where rounds without a value are all that makes
    it.
    """
    undecided = verdict is Relation.INCONCLUSIVE
    known = None if undecided and abs(ratio) >= ENDLESS else math.exp(ratio)
    low, high = (math.exp(end) if abs(end) < ENDLESS else None for end in interval)
    if undecided and None in (low, high):
        low = high = None
    if low is None and high is None:
        confidence = 0.0
    return Comparison(verdict, known, low, high, confidence, *samples, further, remark)


def printed_steps(a: Floats, b: Floats) -> Floats:
    """Return for each row how far rounding may move the logarithm of the ratio.

    Half of the last printed digit of either value, if the noise is smaller than that: otherwise it
    carries the values over the steps, and their mean is right (Widrow and Kollár, Quantization
    noise, 2008). Equal whole numbers are taken to be exact.
    """
    both = np.concatenate([a, b], axis=1)
    unit = np.zeros(len(both))
    for digits in range(_DIGITS, -1, -1):
        whole = (np.abs(both - np.round(both, digits)) <= 1e-12 * both).all(axis=1)
        unit[whole] = 10.0**-digits
    constant = both.max(axis=1) == both.min(axis=1)
    unit[constant & (unit == 1.0)] = 0.0
    hidden = np.minimum(a.std(axis=1), b.std(axis=1)) < unit / 2
    reach = unit / 2 / np.median(a, axis=1) + unit / 2 / np.median(b, axis=1)
    return np.where(hidden, reach, 0.0)
