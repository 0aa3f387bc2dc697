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

- What slows launches for a while, such as another machine on the same core, slows all benchmarks of
  a launch. Where the others of a launch were as fast as ever, launches no longer are alike: such
  steady launches count in full, and by what the group's own number does. See :func:`are_steady` and
  :func:`best_tail_of`.

Over many figures the chance of error is divided among them (Bonferroni). Figures of one group (a
benchmark of one stack, in all its sizes) are also pooled: their weighted mean scatters far less
than each of them.

A run may have more or fewer launches than those of its baseline: :func:`margin` is what holds for
it.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from clustergate.model import Scatter

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
# The best of fewer launches of a short benchmark has a tail that no baseline of some 20 runs shows:
# of unchanged runs of one launch 41 % were called regressions by the worst launch of the baseline,
# of two 5 %, of three none of 79.
FEWEST_LAUNCHES = 3
# The shares of a baseline's launches by which it is kept how far the worst of them are off.
TAIL_SHARES = (0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.11, 0.15, 0.2, 0.3, 0.4, 0.5)
# More launches of a run, and more runs of a baseline, than that nobody takes.
_MOST_LAUNCHES = 200
_MOST_RUNS = 60
# Launches that follow each other are alike: a run of n counts as that share of n independent ones.
# Chosen on recorded launches; docs/verdicts.md tells what larger shares came to.
INDEPENDENT_SHARE = 0.5
INDEPENDENT_SHARE_OF_GROUP = 0.75

# A launch is steady when its other groups are worse than in the best launches of the baseline by
# no more than that. Those best are what so small a share of them lies below.
STEADY = math.log(1.15)
_BEST_SHARE = 0.02
# Of fewer steady launches of a baseline no tail is made, and fewer of a run say nothing by it.
FEWEST_STEADY = 30
FEWEST_STEADY_OF_RUN = 5
# A launch is far worse from twice on; where the baseline has launches as bad, beyond all but that
# share of them. docs/verdicts.md tells how rarely half of a figure's unchanged launches are.
FAR_WORSE = math.log(2.0)
_FAR_SHARE = 0.2
# Runs that are drawn from them: 25 lie beyond the chance that the tail is told for.
_DRAWN = 10_000
_SEED = 20_100_401


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


@functools.cache
def _quantile(comparisons: int, freedom: int) -> float:
    return -float(scipy.special.stdtrit(freedom, _chance(comparisons)))


def run_margin(noise: Noise, comparisons: int) -> float:
    """Return by how much one more unchanged run can look worse, as runs differ.

    Raises ValueError for a baseline of fewer than two runs or no comparisons.
    """
    if noise.runs < 2:
        raise ValueError("a margin needs at least two runs")
    quantile = _quantile(comparisons, noise.runs - 1)
    spread = max(noise.spread, SMALLEST_SPREAD)
    return quantile * spread * math.sqrt(1.0 + 1.0 / noise.runs)


def tail_of(residuals: ArrayLike) -> tuple[float, ...]:
    """Return the worst of a baseline's launches, then those that each of the shares lies beyond.

    ``residuals`` are those of all launches: logarithms against the centre, positive where worse;
    for a group, of the weighted mean of a launch's figures. Of N launches, k of N + 1 is taken for
    the share at or beyond the k-th worst, as in conformal prediction (Vovk and others, Algorithmic
    Learning in a Random World, 2.2); where that is not one launch, it is the worst. Raises
    ValueError without launches.
    """
    worst_first = np.sort(np.asarray(residuals, dtype=float))[::-1]
    if not len(worst_first):
        raise ValueError("a tail needs launches")
    ranks = [max(math.floor(share * (len(worst_first) + 1)), 1) for share in TAIL_SHARES]
    return (float(worst_first[0]), *(float(worst_first[rank - 1]) for rank in ranks))


def steady_floor(company: ArrayLike) -> float:
    """Return the mean of the other groups in the best launches of a baseline.

    ``company`` is that mean in each launch, as a logarithm against the centre, positive is worse.
    """
    return float(np.quantile(np.asarray(company, dtype=float), _BEST_SHARE))


def are_steady(company: ArrayLike, floor: float) -> NDArray[np.bool_]:
    """Tell which launches were not slowed, by the means of the groups beside the one judged.

    A library that became slower in all its benchmarks by more than that leaves no launch steady.
    Then, as where a neighbour on the host slows everything, the margin of all launches holds.
    """
    return np.asarray(company, dtype=float) <= floor + STEADY


def far_worse(worse_by: Sequence[float], known: Scatter | None) -> list[float]:
    """Return those launches that are far worse than the reference, and than most of the baseline's.

    ``worse_by`` are logarithms of ratios, positive where worse; ``known`` is None for a reference
    of which no launches are known.
    """
    usual = 0.0 if known is None else known.tail[1 + TAIL_SHARES.index(_FAR_SHARE)]
    return [value for value in worse_by if value > max(FAR_WORSE, usual)]


def best_tail_of(residuals: NDArray[np.float64], weights: NDArray[np.float64]) -> tuple[float, ...]:
    """Return a tail as :func:`tail_of`, of the mean over the bests of a group's figures.

    ``residuals`` of the shape (launches, figures) are logarithms against the centres, positive
    where worse. Each figure has its best in another launch, so that the mean of bests lies far
    below the best mean of a launch. How far follows from runs that are drawn from the launches,
    with replacement (the bootstrap: Efron, Annals of Statistics 7, 1979, 10.1214/aos/1176344552):
    for each of the shares p what the runs exceed with a chance c, of n launches where p**n = c.
    That c is the chance of a single comparison. Of more comparisons, so with a smaller chance, and
    as many more launches, a mean of several figures exceeds less than that. Drawn by a fixed seed.
    Raises ValueError without launches.
    """
    if not len(residuals):
        raise ValueError("a tail needs launches")
    chance = _chance(1)
    taken = [math.log(chance) / math.log(share) for share in TAIL_SHARES]
    lot = np.random.default_rng(_SEED)
    bests = np.full((_DRAWN, residuals.shape[1]), np.inf)
    beyond = []
    for _ in range(math.ceil(max(taken))):
        np.minimum(bests, residuals[lot.integers(0, len(residuals), _DRAWN)], out=bests)
        beyond.append(float(np.quantile(bests @ weights, 1.0 - chance)))
    worst = float((residuals @ weights).max())
    at = np.interp(taken, np.arange(1, len(beyond) + 1), beyond)
    return (worst, *(float(value) for value in at))


def launch_margin(
    tail: Sequence[float], of_launches: int, launches: float, comparisons: int
) -> float:
    """Return by how much the best of so many independent unchanged launches can look worse.

    ``tail`` is what :func:`tail_of` made of ``of_launches``. Between two shares it is interpolated.
    Infinite when the baseline has too few launches to tell. Raises ValueError without launches or
    comparisons.
    """
    if launches <= 0 or of_launches <= 0:
        raise ValueError("a margin needs launches")
    share = _chance(comparisons) ** (1.0 / launches)
    if share * (of_launches + 1) < 1.0:
        return math.inf
    if share < TAIL_SHARES[0]:
        return max(tail[0], 0.0)
    return max(float(np.interp(share, TAIL_SHARES, tail[1:])), 0.0)


def margin(known: Scatter, launches: int, steady: int = 0) -> float:
    """Return by how much an unchanged run of so many launches can look worse than its baseline.

    It is the larger of :func:`run_margin` and :func:`launch_margin`. Where the baseline has too few
    launches to tell what so many comparisons make of their tail, it is the worst of them at least;
    of a run with fewer launches than those of the baseline nothing can be said then: the margin is
    infinite. So it is for a benchmark that can be launched again and was not often enough. One
    that cannot has single samples, and the margin rests on the bell curve of the runs.

    Of the launches of a run a share counts as independent, of a group a larger one: the mean of a
    launch's figures is never better than the mean of their bests, which makes up for some of it.
    Where ``steady`` of them suffice to say less, that holds.
    """
    noise = Noise(known.spread, known.runs, known.launches)
    by_runs = run_margin(noise, known.compared)
    if not known.repeated:
        return max(by_runs, known.tail[0])
    if min(launches, known.launches) < FEWEST_LAUNCHES:
        return math.inf
    independent = launches * (INDEPENDENT_SHARE_OF_GROUP if known.pooled else INDEPENDENT_SHARE)
    of_launches = known.runs * known.launches
    by_launches = launch_margin(known.tail, of_launches, independent, known.compared)
    if math.isinf(by_launches) and launches >= known.launches:
        by_launches = known.tail[0]
    return max(by_runs, min(by_launches, _steady_margin(known, steady)))


def _steady_margin(known: Scatter, steady: int) -> float:
    if known.steady is None or steady < FEWEST_STEADY_OF_RUN:
        return math.inf
    return launch_margin(known.steady.tail, known.steady.launches, steady, known.compared)


def change(worse_by: float, margin: float) -> Change:
    """Return what a run says that is ``worse_by`` worse than the centre of its baseline.

    ``margin`` is that of :func:`margin`.
    """
    return Change(worse_by, worse_by - margin, worse_by + margin, max(margin, TOLERATED))


def tolerance(margin: float) -> float:
    """Return the fraction of the reference that a figure must be worse by to have regressed.

    It is what a reference's bound says on the worse side where lower is better; where higher is
    better the same ratio is ``1 - 1 / (1 + tolerance)``.
    """
    return math.expm1(max(margin, TOLERATED))


def group_weights(spreads: Mapping[str, float]) -> dict[str, float]:
    """Return how each figure of a group counts in its mean, by the figures' spreads between runs.

    A figure counts by the inverse of its variance, to which that of the median figure is added: a
    few runs tell a variance badly. Raises ValueError without figures.
    """
    if not spreads:
        raise ValueError("a group needs a figure")
    variances = np.maximum(np.array(list(spreads.values())), SMALLEST_SPREAD) ** 2
    inverse = 1.0 / (variances + np.median(variances))
    return dict(zip(spreads, (inverse / inverse.sum()).tolist(), strict=True))


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


def more_launches(
    known: Scatter,
    launches: int,
    worse_by: float,
    *,
    steady: int = 0,
    of_baseline_too: bool = False,
) -> int | None:
    """Return how many more launches would probably decide what a run of ``launches`` leaves open.

    It is decided when the run's ``worse_by``, should it stay, is a regression or leaves no room for
    the wanted slow-down. Where the runs of the baseline have as many, too, what runs scatter by is
    taken to come from their launches, so that it falls with the root of those. As many of them
    are taken for ``steady`` as were before. None where no number that anybody takes is enough.
    """
    for more in range(1, _MOST_LAUNCHES if known.repeated else 0):
        taken = launches + more
        spread = known.spread
        if of_baseline_too:
            spread *= math.sqrt(known.launches / max(taken, known.launches))
        other = dataclasses.replace(known, spread=spread)
        outcome = change(worse_by, margin(other, taken, steady * taken // max(launches, 1)))
        if outcome.regressed or not outcome.unseen:
            return more
    return None


def more_runs(known: Scatter, launches: int, worse_by: float, steady: int = 0) -> int | None:
    """Return how many more runs in the baseline would probably decide it; see more_launches."""
    for more in range(1, _MOST_RUNS - known.runs + 1):
        longer = dataclasses.replace(known, runs=known.runs + more)
        outcome = change(worse_by, margin(longer, launches, steady))
        if outcome.regressed or not outcome.unseen:
            return more
    return None
