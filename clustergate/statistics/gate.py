"""A figure against what was measured at another hour, without its neighbours. Pure functions.

:mod:`clustergate.judge` sees a run as a whole. What is here serves where there is none: two stored
runs, a screening's measures against earlier ones, what one day's baseline tells of a figure alone.

What a run says of a figure is one number: the best of its undisturbed launches. The reference is
the best level that the baseline reached (:func:`best_level`). Everything here works on the natural
logarithm of their ratio, turned so that positive is worse: 0.1 is about 10 % worse.

Others slow a launch down and never speed it up. So the two questions have two answers:

- Is it as good as it was? A run that comes near to the best that was ever seen is, whatever the
  hour is like: the best of some hundred launches stays the same within a few percent from one hour
  and day to the next, where medians move by a third. See :func:`passes_below`.
- Is it worse? Only what exceeds by how much unchanged runs are above that best
  (:func:`margin`). That differs from day to day: what the runs of one day scatter by says nothing
  of the next. Until a baseline spans :data:`FEWEST_DAYS`, what unchanged machines were seen to do
  between hours stands in for it (:data:`SHIFTS`), and the verdict is provisional.

What lies between is inconclusive. A fault that comes and goes leaves the best launches as they are:
the share of launches that are far worse has a test of its own (:func:`chance_of_slow`).

Over many figures the chance of error is divided among them (Bonferroni).
"""

from __future__ import annotations

import functools
import itertools
import math
import statistics
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from clustergate.model import Scatter
from clustergate.one_thread import scipy

# Of a run in which nothing has changed: the chance that it is called a regression anywhere. It is
# half of what is promised, because real noise has heavier tails than the model.
FALSE_ALARM_RATE = 0.005
# A quarter of it each for figures and for groups, for their best launches and their slow ones.
_SHARES = 4
# No figure is called worse for less than that, however well it is known.
TOLERATED = math.log(1.05)
# The slow-down that a run must find or say that it cannot.
WANTED = math.log(1.10)
# Below that a spread is a matter of luck, or of a figure's printed digits.
SMALLEST_SPREAD = 0.002
SMALLEST_BASELINE = 5
_FEWEST_OF_A_FAMILY = 3
# By so little do the variances of a family differ no more than by chance.
_NO_EXCESS = 1e-6
# The best of fewer launches of a short benchmark has a tail that no baseline of some 20 runs shows:
# of unchanged runs of one launch 41 % were called regressions by the worst launch of the baseline,
# of two 5 %, of three none of 79.
FEWEST_LAUNCHES = 3
# From so many days on the days themselves tell how days differ.
FEWEST_DAYS = 5
# How far the best of a baseline may be from the best that the machine can do; and that of one day
# with few launches in each run.
_DOUBT, _DOUBT_OF_FEW = math.log(1.05), math.log(1.078)
# By how much unchanged runs were above the best of another hour's baseline, rounded up; of figures
# and of groups, with many launches and with few (docs/verdicts-measured.md).
_MANY_LAUNCHES = 10
SHIFTS = {True: (math.log(2.0), math.log(1.6)), False: (math.log(2.5), math.log(2.0))}
# Ranks that compute apart meet others in caches and memory alone: a third of DGEMM's rate was lost
# for seconds on a virtual machine whose cores stayed its own.
_SHIFT_APART = math.log(1.5)
# A launch is far worse from three times on. So many of the unchanged ones were, of figures and of
# groups; what a baseline has beyond that is taken twice.
FAR_WORSE = math.log(3.0)
_SLOW_SHARES = (0.03, 0.01)
_TWICE = math.log(2.0)
# Slow launches that are less likely than that do not pass. Nor do so many that a fault in a third
# of the launches, beside what is usual, would show no more in one run of four: 1 of 6 or fewer.
_DOUBTFUL = 0.1
_FAULTY_SHARE, _AS_FEW = 1 / 3, 0.25
# A best launch stands for a level when another comes so near to it.
_CONFIRMED = math.log(1.10)


def _chance(comparisons: int) -> float:
    if comparisons < 1:
        raise ValueError("there must be something to compare")
    return FALSE_ALARM_RATE / _SHARES / comparisons


@functools.cache
def _quantile(comparisons: int, freedom: float) -> float:
    chance = _chance(comparisons)
    if math.isinf(freedom):
        return -float(scipy.special.ndtri(chance))
    return -float(scipy.special.stdtrit(freedom, chance))


def best_level(values: Sequence[float], *, higher_is_better: bool) -> float:
    """Return the best of some launches to which another comes near, else the best.

    The values are above zero.
    """
    ordered = sorted(values, reverse=higher_is_better)
    for one, following in itertools.pairwise(ordered):
        if abs(math.log(following / one)) <= _CONFIRMED:
            return one
    return ordered[0]


def spread_of(levels: Sequence[Sequence[float]]) -> float:
    """Return the standard deviation of one more run, from the levels of the runs of each day.

    The variance between days and that within them are added (one-way random effects: Searle,
    Casella and McCulloch, Variance components, 3.6; for benchmarks Kalibera and Jones, Rigorous
    benchmarking in reasonable time, 2013). Raises StatisticsError for fewer than two runs.
    """
    runs = [level for day in levels for level in day]
    within_freedom = len(runs) - len(levels)
    if len(levels) < 2 or not within_freedom:
        return statistics.stdev(runs)
    squares = sum(len(day) * statistics.pvariance(day) for day in levels)
    within = squares / within_freedom
    each = statistics.harmonic_mean([len(day) for day in levels])
    between = statistics.variance(map(statistics.fmean, levels)) - within / each
    return math.sqrt(max(between, 0.0) + within)


def pooled(spreads: Mapping[str, float], runs: int, days: int) -> dict[str, tuple[float, float]]:
    """Return spreads that borrow from each other, each with its degrees of freedom.

    The variances of a family are known from so many runs (:func:`lent`). Where ``days`` tell how
    days differ there are no more degrees of freedom than those: what a day adds is alike for the
    whole family.
    """
    known = days >= FEWEST_DAYS
    freedom = (days if known else runs) - 1
    variances = np.maximum(np.array(list(spreads.values())), SMALLEST_SPREAD) ** 2
    variances, prior = lent(variances, freedom)
    of_each = float(freedom if known else freedom + prior)
    return {
        name: (math.sqrt(variance), of_each)
        for name, variance in zip(spreads, variances.tolist(), strict=True)
    }


def lent(variances: NDArray[np.float64], freedom: float) -> tuple[NDArray[np.float64], float]:
    """Return variances that a family lends to each other, and the degrees of freedom that it adds.

    They are taken for draws of one distribution, whose scatter says how much each is worth by
    itself (Smyth, Linear models and empirical Bayes methods, Statistical Applications in Genetics
    and Molecular Biology 3, 2004, section 6.2). Fewer than three are left as they are.
    """
    if len(variances) < _FEWEST_OF_A_FAMILY:
        return variances, 0.0
    prior, centre = _prior(variances, freedom)
    if math.isinf(prior):
        return np.full_like(variances, centre), prior
    return (prior * centre + freedom * variances) / (prior + freedom), prior


def _prior(variances: NDArray[np.float64], freedom: float) -> tuple[float, float]:
    """Return the degrees of freedom of what a family knows of its variances, and their centre."""
    half = freedom / 2
    logs = np.log(variances) - scipy.special.digamma(half) + math.log(half)
    centre = float(logs.mean())
    excess = float(logs.var(ddof=1) - scipy.special.polygamma(1, half))
    if excess <= _NO_EXCESS:
        return math.inf, math.exp(centre)
    half = float(scipy.optimize.brentq(lambda x: scipy.special.polygamma(1, x) - excess, 1e-6, 1e7))
    return 2.0 * half, math.exp(centre + float(scipy.special.digamma(half)) - math.log(half))


def is_provisional(known: Scatter) -> bool:
    """Tell whether a baseline is of too few days to know by how much days differ."""
    return known.days < FEWEST_DAYS


def margin(known: Scatter, launches: int) -> float:
    """Return by how much an unchanged run of so many launches can be worse than its reference.

    It is the upper prediction limit of one more run (Student's t: Hahn and Meeker, Statistical
    Intervals, 4.8). Where days are not known, or the run has fewer launches than those of the
    baseline, it is no less than what unchanged machines do from one hour to another. Of a
    benchmark that can be launched again and was not often enough nothing can be said: infinite.
    """
    if known.repeated and min(launches, known.launches) < FEWEST_LAUNCHES:
        return math.inf
    limit = max(known.usual + _quantile(known.compared, known.freedom) * _scatter(known), TOLERATED)
    if is_provisional(known) or launches < known.launches:
        limit = max(limit, shift_of(launches, apart=known.apart, pooled=known.pooled))
    return limit


def within_a_day(spread: float, runs: int, compared: int) -> float:
    """Return by how much a run of the same day as a baseline's may be worse than their mean.

    ``spread`` is the standard deviation of a run. Runs have more degrees of freedom together.
    """
    chance = FALSE_ALARM_RATE / max(compared, 1)
    quantile = -float(scipy.special.stdtrit(max(runs - 1.0, 10.0), chance))
    return quantile * spread * math.sqrt(1 + 1 / runs)


def shift_of(launches: int, *, apart: bool, pooled: bool = False) -> float:
    """Return how far unchanged runs of so many launches were seen above those of another hour.

    It is the logarithm of a ratio: of ranks that compute ``apart``, else of messages; of a figure,
    or of the mean over those of a benchmark (``pooled``).
    """
    if apart:
        return _SHIFT_APART
    return SHIFTS[launches >= _MANY_LAUNCHES][pooled]


def _scatter(known: Scatter) -> float:
    return max(known.spread, SMALLEST_SPREAD) * math.sqrt(1.0 + 1.0 / known.runs)


def passes_below(known: Scatter) -> float:
    """Return how much worse than its reference a run may be in which no slow-down hides.

    What is wanted, 10 %, less the doubt whether the baseline reached what the machine can do.
    """
    few = known.repeated and known.days == 1 and known.launches < _MANY_LAUNCHES
    return WANTED - (_DOUBT_OF_FEW if few else _DOUBT)


def slow_launches(worse_by: Sequence[float]) -> list[float]:
    """Return those launches that are far worse than the reference."""
    return [value for value in worse_by if value > FAR_WORSE]


def mostly_slow(worse_by: Sequence[float]) -> list[float]:
    """Return the launches twice as slow as the reference, where they are most of three or more."""
    slow = [value for value in worse_by if value > _TWICE]
    return slow if 2 * len(slow) > len(worse_by) >= FEWEST_LAUNCHES else []


def chance_of_slow(slow: int, launches: int, usual: float) -> float:
    """Return how likely an unchanged run has so many slow launches or more (binomial)."""
    return float(scipy.special.bdtrc(slow - 1, launches, usual)) if slow else 1.0


def usual_share(known: float | None, together: bool = False) -> float:
    """Return the share of launches that are slow on an unchanged machine.

    ``known`` is that of a baseline, None where there is none; of a figure, or of all figures of a
    benchmark ``together``.
    """
    return max(_SLOW_SHARES[together], min(2.0 * (known or 0.0), 1.0))


def is_slow_share(slow: int, launches: int, usual: float, compared: int) -> bool:
    """Tell whether a run that compares so many figures has more slow launches than is usual."""
    return chance_of_slow(slow, launches, usual) < _chance(compared)


def is_doubtful_share(slow: int, launches: int, usual: float) -> bool:
    """Tell whether a run does not pass by its slow launches, of which there are some.

    They are too many for an unchanged machine, or too many to rule out a fault now and then.
    """
    faulty = min(usual + _FAULTY_SHARE, 1.0)
    rare = chance_of_slow(slow, launches, usual) < _DOUBTFUL
    return rare or bool(scipy.special.bdtr(slow, launches, faulty) > _AS_FEW)


def tolerance(margin: float) -> float:
    """Return the fraction of the reference that a figure must be worse by to have regressed.

    It is what a reference's bound says on the worse side where lower is better; where higher is
    better the same ratio is ``1 - 1 / (1 + tolerance)``.
    """
    return math.expm1(max(margin, TOLERATED))


def worse_by(value: float, centre: float, *, higher_is_better: bool) -> float:
    """Return the logarithm of a ratio, positive where ``value`` is worse than ``centre``.

    Raises ValueError where one of the two is not positive: such figures have no ratio.
    """
    if value <= 0.0 or centre <= 0.0:
        raise ValueError(f"{value:g} against {centre:g} has no ratio")
    ratio = math.log(value / centre)
    return -ratio if higher_is_better else ratio
