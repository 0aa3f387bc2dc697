"""By how much contrasts differ from run to run while nothing changes, and how well that is known.

Pure. Everything is on natural logarithms. Runs of one day are alike more than those of different
days, so a contrast's variance has two parts (one-way random effects: Searle, Casella and McCulloch,
Variance components, 1992, 3.6). One contrast over five runs tells its variance badly; those of a
level and a kind lend each other degrees of freedom (:func:`lent`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clustergate.core.model import BANDWIDTH, COLLECTIVE, COMPUTE, LATENCY, MEMORY
from clustergate.stats.one_thread import scipy

Floats = NDArray[np.float64]

# Fewer days do not tell by how much days differ.
FEWEST_DAYS = 3
# How a day's part compares with the variance of a single figure within a day, where days do not
# tell: of a difference to neighbours, and of a change without them.
_DAY_OF_CONTROLLED, _DAY_OF_PLAIN = 1.0, 1.5**2
# What borrowing adds to the degrees of freedom at most, as real noise has heavier tails than a
# family; and on exclusive nodes, where launching again twice leaves little of a tail.
_MOST_FREEDOM, _OF_EXCLUSIVE = 10.0, 20.0
# Standard deviation of a figure between jobs whose nodes are theirs alone, seen on ten public
# clusters. Elsewhere days are expected to differ by as much as single figures do within a day, and
# all figures of a set alike.
EXCLUSIVE: Mapping[str, float] = {
    COMPUTE: 0.006,
    MEMORY: 0.010,
    LATENCY: 0.016,
    BANDWIDTH: 0.008,
    COLLECTIVE: 0.032,
}
# The widest that it is: between sessions of machines that others use, too.
WIDEST: Mapping[str, float] = {
    COMPUTE: 0.058,
    MEMORY: 0.071,
    LATENCY: 0.156,
    BANDWIDTH: 0.156,
    COLLECTIVE: 0.224,
}
_FREEDOM_OF_PRIOR = 4.0


@dataclass(frozen=True)
class Prior:
    """By what standard deviation figures of a kind vary from job to job, as is known from elsewhere
    (on logarithms), and for how many degrees of freedom that counts.

    ``together`` tells whether all figures of a set may vary alike.
    """

    deviations: Mapping[str, float]
    freedom: float = _FREEDOM_OF_PRIOR
    together: bool = False


EXCLUSIVE_NODES = Prior(EXCLUSIVE)
# Of a set of figures the day's part is shared, so that it shrinks by less than their number.
_SHARED, _SINGLE = 0.36, 0.64
# Below that a spread is a matter of luck, or of a figure's printed digits.
SMALLEST = 0.002**2
_FEWEST_OF_A_FAMILY = 3
# By so little do the variances of a family differ no more than by chance.
_NO_EXCESS = 1e-6


@dataclass(frozen=True)
class Scatter:
    """Of each contrast: its mean in the baseline, the standard deviation of one more run around
    that, and the degrees of freedom of this, 0 for unknown.

    ``lent`` are those that its family has lent, of which ``freedom`` is no more than heavy tails
    leave, and ``spread_lent`` is the same standard deviation, known with as many.
    """

    mean: Floats
    spread: Floats
    freedom: Floats
    lent: Floats
    spread_lent: Floats


def widest_between(chance: float, kind: str = COLLECTIVE) -> float:
    """Return by how much two sessions of an unchanged machine differ with such a chance at most.

    It is the logarithm of a ratio, of whatever machine, that others may use, too.
    """
    return -float(scipy.special.ndtri(chance)) * math.sqrt(2.0) * WIDEST[kind]


def shrunk(squares: Floats) -> Floats:
    """Return what variance of a single figure the mean of several has; see :data:`_SHARED`."""
    return _SHARED + _SINGLE * squares


def scatter(
    series: Floats,
    days: NDArray[np.int_],
    families: Sequence[tuple[str, str]],
    single: Floats,
    usual: Floats,
    prior: Floats | None,
    controlled: NDArray[np.bool_],
    least: Floats,
    lost: Floats,
    of_prior: float = _FREEDOM_OF_PRIOR,
) -> Scatter:
    """Return how contrasts scatter, from what they were in each run (rows) of each day.

    ``families``, each a level and a kind, lend each other degrees of freedom. ``single`` is the
    variance within a day of a single figure as in the contrast, shrunk to its number of figures
    where days share nothing else; ``usual`` that of usual figures of their kinds, in units of which
    a family is alike; ``prior`` the variance that such contrasts have on exclusive nodes, None
    elsewhere; ``least`` that of printed digits, where runs that print the same tell nothing;
    ``lost`` the degrees of freedom that further means have cost, and ``of_prior`` those that
    ``prior`` counts for. Missing values are nan.
    """
    parts = components(series, days)
    runs, of_days = np.maximum(parts.runs, 1), np.maximum(parts.days, 1)
    few = parts.days < FEWEST_DAYS
    of_kinds = prior is not None
    # Elsewhere a prior has what too few days lack.
    by_runs = few & of_kinds
    known = parts.within * (1.0 + 1.0 / (np.maximum(parts.each, 1.0) * of_days))
    known += parts.between * (1.0 + 1.0 / of_days)
    own = np.maximum(np.where(by_runs, parts.runs - parts.days, parts.days - 1), 0).astype(float)
    least = np.maximum(least, SMALLEST)
    left = np.maximum(own - lost, 0.0)
    fewer = np.where(left > 0, own / np.maximum(left, 1.0), 1.0)
    own = left
    variance = np.maximum(np.where(by_runs, parts.within, known) * fewer, least)
    variance, freedom = pooled(variance / usual, own, families, controlled)
    variance *= usual
    # Where days are few, a day's part is guessed: it is worth what neighbours know, no more.
    guess = single * np.where(controlled, _DAY_OF_CONTROLLED, _DAY_OF_PLAIN) * (1.0 + 1.0 / of_days)
    variance = np.where(by_runs, variance * (1.0 + 1.0 / runs) + guess, variance)
    freedom = np.where(by_runs, freedom - own, freedom)
    whole = np.where((few & ~controlled) | (parts.runs < 2), 0.0, freedom)
    most = np.maximum(_OF_EXCLUSIVE if of_kinds else _MOST_FREEDOM, of_days - 1.0)
    freedom = np.minimum(whole, most)
    if prior is None:
        prior = np.maximum(parts.within, least) * (1.0 + 1.0 / runs) + guess
        more = np.where((controlled | few) & (parts.runs > 1), _FREEDOM_OF_PRIOR, 0.0)
    else:
        # Against a single run that run's own part counts as well.
        prior = prior * np.where(parts.runs > 1, 1.0, 2.0)
        more = np.full(len(prior), of_prior)
    both = freedom + more
    spread, spread_lent = (
        np.sqrt(np.maximum(variance + part * (prior - variance), least))
        for part in (more / np.maximum(of, 1.0) for of in (both, whole + more))
    )
    known_of = (parts.runs > 0) & (of_kinds | controlled | ~few)
    freedom = np.where(known_of, np.minimum(both, np.maximum(most, more)), 0.0)
    lent = np.where(known_of, whole + more, 0.0)
    return Scatter(parts.mean, spread, freedom, lent, spread_lent)


def trend(
    series: Floats,
    days: NDArray[np.int_],
    families: Sequence[tuple[str, str]],
    controlled: NDArray[np.bool_],
) -> Scatter:
    """Return by how much contrasts rose from the first to the last of some days, as ``mean``.

    It is that of a straight line (least squares), from which single days scatter; two of them are
    spent on the line.
    """
    since = days - days.mean()
    squares, span = float(since @ since), float(since.max() - since.min())
    slopes = since @ series / squares
    left = series - series.mean(axis=0) - np.outer(since, slopes)
    freedom = np.where(np.isnan(slopes), 0.0, len(days) - 2.0)
    variance = np.maximum((left**2).sum(axis=0) / (len(days) - 2.0), SMALLEST)
    variance, freedom = pooled(variance, freedom, families, controlled)
    most = np.minimum(freedom, max(_MOST_FREEDOM, len(days) - 2.0))
    spread = np.sqrt(variance / squares) * span
    return Scatter(slopes * span, spread, most, freedom, spread)


class Components(NamedTuple):
    """The variance of some series in two parts, within and between days, of which ``each`` had so
    many runs (harmonic mean). Without two runs on a day, ``within`` is 0.
    """

    mean: Floats
    within: Floats
    between: Floats
    runs: NDArray[np.int_]
    days: NDArray[np.int_]
    each: Floats


def components(series: Floats, days: NDArray[np.int_]) -> Components:
    """Return the parts of the variance of series, in columns, of runs on some days."""
    valid = ~np.isnan(series)
    distinct, of_run = np.unique(days, return_inverse=True)
    of_day = (of_run[None, :] == np.arange(len(distinct))[:, None]).astype(float)
    counts = of_day @ valid
    has = counts > 0
    means = of_day @ np.where(valid, series, 0.0) / np.maximum(counts, 1.0)
    runs, of_days = valid.sum(axis=0), has.sum(axis=0)
    mean = means.sum(axis=0) / np.maximum(of_days, 1)
    squares = (np.where(valid, series - means[of_run], 0.0) ** 2).sum(axis=0)
    within = np.where(runs > of_days, squares / np.maximum(runs - of_days, 1), 0.0)
    each = of_days / np.maximum(np.where(has, 1.0 / np.maximum(counts, 1.0), 0.0).sum(axis=0), 1e-9)
    of_means = (np.where(has, means - mean, 0.0) ** 2).sum(axis=0) / np.maximum(of_days - 1, 1)
    between = np.where(of_days > 1, of_means - within / np.maximum(each, 1.0), 0.0)
    return Components(mean, within, np.maximum(between, 0.0), runs, of_days, each)


def pooled(
    variances: Floats,
    freedoms: Floats,
    families: Sequence[tuple[str, str]],
    controlled: NDArray[np.bool_],
) -> tuple[Floats, Floats]:
    """Return variances that a family lends to each other, with their degrees of freedom.

    What has no control moves with the whole machine: its like are no independent witnesses.
    """
    variances, freedoms = variances.copy(), freedoms.copy()
    members: dict[tuple[tuple[str, str] | str, float], list[int]] = {}
    for place, of in enumerate(families):
        if controlled[place] and freedoms[place] > 0:
            members.setdefault((of, float(freedoms[place])), []).append(place)
    small = list(members.items())
    for (family, own), places in small:
        if len(places) < _FEWEST_OF_A_FAMILY and isinstance(family, tuple):
            # Sets of other kinds are better witnesses than none.
            members.setdefault((family[0], own), []).extend(places)
    for (_, own), places in members.items():
        if len(places) >= _FEWEST_OF_A_FAMILY:
            variances[places], more = lent(variances[places], own)
            freedoms[places] = own + more
    return variances, freedoms


def lent(variances: Floats, freedom: float) -> tuple[Floats, float]:
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


def _prior(variances: Floats, freedom: float) -> tuple[float, float]:
    """Return the degrees of freedom of what a family knows of its variances, and their centre."""
    half = freedom / 2
    logs = np.log(variances) - scipy.special.digamma(half) + math.log(half)
    centre = float(logs.mean())
    excess = float(logs.var(ddof=1) - scipy.special.polygamma(1, half))
    if excess <= _NO_EXCESS:
        return math.inf, math.exp(centre)
    half = float(scipy.optimize.brentq(lambda x: scipy.special.polygamma(1, x) - excess, 1e-6, 1e7))
    return 2.0 * half, math.exp(centre + float(scipy.special.digamma(half)) - math.log(half))
