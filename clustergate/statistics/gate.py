"""A run against a baseline of earlier runs, with a known rate of false alarms. Pure functions.

What a run says of a figure is one number: the best of its undisturbed launches (the minimum where
lower is better). Everything here works on the natural logarithm of that number against the centre
of the baseline, turned so that positive is worse: 0.1 is about 10 % worse.

Between unchanged runs such numbers scatter, for two reasons, and a limit must hold against both:

- Runs differ. The next one stays below an upper prediction limit with a probability that is chosen
  (Student's t for the mean of K observations and one more: Hahn and Meeker, Statistical Intervals,
  4.8). See :func:`run_margin`.
- Launches differ, by modes and long tails that no bell curve has. The best of n launches is beyond
  a value only if all n are: if a share p of the baseline's launches lies beyond it, that happens
  with p**n, whatever the distribution. See :func:`launch_margin`.

Over many figures the chance of error is divided among them (Bonferroni). Figures of one group (a
benchmark of one stack, in all its sizes) are also pooled: their weighted mean scatters far less
than each of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

# Of a run in which nothing has changed: the chance that it is called a regression anywhere. It is
# half of what is promised, because real noise has heavier tails than the model.
FALSE_ALARM_RATE = 0.005
# Half of it for single figures, half for groups.
_SHARES = 2
# No figure is called worse for less than that, however well it is known.
TOLERATED = math.log(1.05)
# The slow-down that a run must find or say that it cannot.
WANTED = math.log(1.10)
# Below that a spread is a matter of luck, or of a figure's printed digits.
SMALLEST_SPREAD = 0.002
SMALLEST_BASELINE = 5
# Launches that follow each other are alike: a run of n counts as that share of n independent ones.
# Chosen on recorded launches: with 1 two to four of some 40 unchanged runs of five launches were
# called regressions, by single figures alone; with 0.75 none, and fewer slow-downs are found.
INDEPENDENT_SHARE = 0.75


@dataclass(frozen=True)
class Noise:
    """How much the number of an unchanged run scatters.

    ``spread`` is the standard deviation between runs of its natural logarithm, ``runs`` how many
    runs it was had from, ``launches`` the launches of each.
    """

    spread: float
    runs: int
    launches: int


@dataclass(frozen=True)
class Change:
    """What a run says of a figure or a group: natural logarithms, positive is worse.

    ``worse_by`` lies between ``low`` and ``high``, with the confidence of the whole family;
    ``threshold`` is the smallest change that would be called a regression.
    """

    worse_by: float
    low: float
    high: float
    threshold: float

    @property
    def regressed(self) -> bool:
        """Whether the run is worse beyond doubt, and by more than is tolerated."""
        return self.worse_by > self.threshold

    @property
    def unseen(self) -> bool:
        """Whether the wanted slow-down could hide in the interval of a run that did not regress."""
        return not self.regressed and self.high >= WANTED


def _chance(comparisons: int) -> float:
    if comparisons < 1:
        raise ValueError("there must be something to compare")
    return FALSE_ALARM_RATE / _SHARES / comparisons


def run_margin(noise: Noise, comparisons: int) -> float:
    """Return by how much one more unchanged run can look worse, as runs differ.

    Raises ValueError for a baseline of fewer than two runs or no comparisons.
    """
    if noise.runs < 2:
        raise ValueError("a margin needs at least two runs")
    quantile = float(stats.t.isf(_chance(comparisons), noise.runs - 1))
    spread = max(noise.spread, SMALLEST_SPREAD)
    return quantile * spread * math.sqrt(1.0 + 1.0 / noise.runs)


def launch_margin(residuals: ArrayLike, launches: float, comparisons: int) -> float:
    """Return by how much the best of so many independent unchanged launches can look worse.

    ``residuals`` are those of all of the baseline's launches: logarithms against the centre,
    positive where worse; for a group, of the weighted mean of a launch's figures. That is never
    better than the mean of their bests, which makes up for launches that are alike; of a figure,
    only ``INDEPENDENT_SHARE`` of the launches counts. Of N launches, k + 1 of N + 1 is taken for
    the share beyond the k-th worst, as in conformal prediction (Vovk and others, Algorithmic
    Learning in a Random World, 2.2). Infinite when the baseline has too few launches to tell.
    Raises ValueError without launches or comparisons.
    """
    worst_first = np.sort(np.asarray(residuals, dtype=float))[::-1]
    if launches <= 0 or not len(worst_first):
        raise ValueError("a margin needs launches")
    share = _chance(comparisons) ** (1.0 / launches)
    beyond = math.floor(share * (len(worst_first) + 1)) - 1
    if beyond < 0:
        return math.inf
    return max(float(worst_first[min(beyond, len(worst_first) - 1)]), 0.0)


def change(worse_by: float, margin: float) -> Change:
    """Return what a run says that is ``worse_by`` worse than the centre of its baseline.

    ``margin`` is the larger of :func:`run_margin` and :func:`launch_margin`.
    """
    return Change(worse_by, worse_by - margin, worse_by + margin, max(margin, TOLERATED))


def tolerance(margin: float) -> float:
    """Return the fraction of the reference that a figure must be worse by to have regressed.

    It is what a reference's bound says on the worse side where lower is better; where higher is
    better the same ratio is ``1 - 1 / (1 + tolerance)``.
    """
    return math.expm1(max(margin, TOLERATED))


@dataclass(frozen=True)
class GroupBaseline:
    """How a group's figures count in its mean, and how that scatters."""

    weights: Mapping[str, float]
    noise: Noise


def group_baseline(residuals: Mapping[str, Sequence[float]], launches: int) -> GroupBaseline:
    """Return the weights of a group's figures and the spread of their mean.

    ``residuals`` hold for each figure one number per run, all in the same order: the logarithm of
    the run's number against the centre, positive where worse. A figure counts by the inverse of
    its variance, to which that of the median figure is added: a few runs tell a variance badly.
    Raises ValueError for figures of unequal length, fewer than two runs or no figure.
    """
    names = sorted(residuals)
    table = np.array([residuals[name] for name in names], dtype=float)
    if table.ndim != 2 or table.shape[0] == 0 or table.shape[1] < 2:
        raise ValueError("a group needs a figure, and two runs that have all of its figures")
    variances = np.maximum(table.var(axis=1, ddof=1), SMALLEST_SPREAD**2)
    inverse = 1.0 / (variances + np.median(variances))
    weights = inverse / inverse.sum()
    spread = float((weights @ table).std(ddof=1))
    return GroupBaseline(
        dict(zip(names, weights.tolist(), strict=True)),
        Noise(spread, table.shape[1], launches),
    )


def group_worse_by(weights: Mapping[str, float], worse_by: Mapping[str, float]) -> float:
    """Return the weighted mean of the figures of a group, for :func:`change`.

    Raises KeyError for a figure of the group that the run lacks: a mean over fewer would be
    another figure.
    """
    return sum(weight * worse_by[name] for name, weight in weights.items())


def worse_by(value: float, centre: float, *, higher_is_better: bool) -> float:
    """Return the logarithm of a ratio, positive where ``value`` is worse than ``centre``.

    Raises ValueError where one of the two is not positive: such figures have no ratio.
    """
    if value <= 0.0 or centre <= 0.0:
        raise ValueError(f"{value:g} against {centre:g} has no ratio")
    ratio = math.log(value / centre)
    return -ratio if higher_is_better else ratio


def launches_needed(noise: Noise, comparisons: int, within: float) -> int | None:
    """Return how many launches a run needs so that the wanted slow-down cannot hide.

    ``within`` is the standard deviation between the launches of one run, of the logarithm. What a
    run of n launches scatters by is taken to be ``between**2 + within**2 / n``. None where no
    number is enough: then the runs themselves differ too much, and only a better baseline helps.
    """
    factor = run_margin(noise, comparisons) / max(noise.spread, SMALLEST_SPREAD)
    wanted = (WANTED / 2 / factor) ** 2
    within_now = within**2 / noise.launches
    between = max(noise.spread**2 - within_now, 0.0)
    if between >= wanted:
        return None
    needed = math.ceil(within**2 / (wanted - between))
    return max(needed, noise.launches + 1)
