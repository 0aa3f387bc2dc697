"""Verdicts on recorded launches: false alarms when nothing changed, slow-downs found. Pure.

A run is made of the next launches in the recorded order, so that runs share no launch. A baseline
is made of consecutive runs, and judges the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from clustergate.bench.launches import Launch
from clustergate.model import Scatter
from clustergate.statistics import gate

# Others may take this much of a core before a launch does not count: ticks of 10 ms are the
# kernel's resolution, and a launch lasts 300 ms or more.
DISTURBED_CORES = 0.08
# Cores that are so much farther from each other than at best have been moved by the hypervisor.
MOVED = 1.5
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Runs:
    """The numbers of one stack's runs.

    ``best`` and ``first`` have the shape (runs, figures): the natural logarithm of the best of a
    run's undisturbed launches, and of its first launch, disturbed or not. ``undisturbed`` are all
    that count, of the shape (runs, launches, figures); ``cost`` counts the launches that each run
    needed.
    """

    stack: str
    names: Sequence[str]
    best: NDArray[np.float64]
    first: NDArray[np.float64]
    undisturbed: NDArray[np.float64]
    cost: NDArray[np.int64]


@dataclass(frozen=True)
class Group:
    """A benchmark of one stack in all its sizes: where its figures stand in :class:`Runs`."""

    stack: str
    benchmark: str
    columns: tuple[int, ...]


@dataclass(frozen=True)
class Share:
    """How often something happened, with the upper bound (Clopper and Pearson, 1934)."""

    happened: int
    of: int

    @property
    def share(self) -> float:
        """The share, 0 where there was nothing to count."""
        return self.happened / self.of if self.of else 0.0

    @property
    def upper_bound(self) -> float:
        """The one-sided upper bound of the probability, of 95 %."""
        if self.happened >= self.of:
            return 1.0
        return float(stats.beta.ppf(CONFIDENCE, self.happened + 1, self.of - self.happened))


def is_disturbed(launch: Launch, nearest_ns: float) -> bool:
    """Tell whether others used the node during a launch, or its cores had been moved.

    ``nearest_ns`` is the smallest round trip between the cores that was seen.
    """
    moved = launch.core_distance_ns > MOVED * nearest_ns
    return moved or launch.disturbance_cores > DISTURBED_CORES


def runs_of(
    launches: Sequence[Launch], stack: str, per_run: int, nearest_ns: float | None = None
) -> Runs:
    """Return the runs of a stack with so many undisturbed launches each, in recorded order.

    ``nearest_ns`` is the smallest round trip between the cores, None for that of the launches.
    Raises ValueError when the stack has no launches.
    """
    mine = [launch for launch in launches if launch.stack == stack]
    if not mine:
        raise ValueError(f"no launches of {stack} were recorded")
    nearest = nearest_ns or min(launch.core_distance_ns for launch in mine)
    names = sorted(mine[0].microseconds)
    first, undisturbed, cost = [], [], []
    held: list[list[float]] = []
    taken = 0
    opening: list[float] = []
    for launch in mine:
        values = [math.log(launch.microseconds[name]) for name in names]
        if not taken:
            opening = values
        taken += 1
        if not is_disturbed(launch, nearest):
            held.append(values)
        if len(held) == per_run:
            undisturbed.append(held)
            first.append(opening)
            cost.append(taken)
            held, taken = [], 0
    counted = np.array(undisturbed, dtype=float).reshape(-1, per_run, len(names))
    return Runs(
        stack,
        names,
        counted.min(axis=1),
        np.array(first, dtype=float).reshape(-1, len(names)),
        counted,
        np.array(cost, dtype=int),
    )


def groups_of(runs: Iterable[Runs]) -> list[Group]:
    """Return the groups of figures: one for each stack and benchmark."""
    found = []
    for one in runs:
        for benchmark in sorted({name.partition("/")[0] for name in one.names}):
            columns = tuple(
                k for k, name in enumerate(one.names) if name.startswith(f"{benchmark}/")
            )
            found.append(Group(one.stack, benchmark, columns))
    return found


@dataclass(frozen=True)
class Gate:
    """What a baseline made of some runs of a stack says of others."""

    centre: NDArray[np.float64]
    margins: NDArray[np.float64]
    groups: Sequence[tuple[Group, NDArray[np.float64], float]]

    def regressions(self, numbers: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Tell which runs, of the shape (runs, figures), have a regression anywhere."""
        worse = numbers - self.centre
        found = (worse > np.maximum(self.margins, gate.TOLERATED)).any(axis=1)
        for group, weights, half in self.groups:
            pooled = worse[:, group.columns] @ weights
            found |= pooled > max(half, gate.TOLERATED)
        return np.asarray(found, dtype=bool)

    def pooled(self, numbers: NDArray[np.float64], group: Group) -> NDArray[np.float64]:
        """Return by how much the group is worse in each run, as the mean of its figures."""
        weights = next(w for g, w, _ in self.groups if g == group)
        worse = (numbers - self.centre)[:, list(group.columns)]
        return np.asarray(worse @ weights, dtype=float)

    def threshold(self, group: Group) -> float:
        """Return the smallest change of the group's mean that is found."""
        half = next(h for g, _, h in self.groups if g == group)
        return max(half, gate.TOLERATED)

    def group_verdicts(self, numbers: NDArray[np.float64], group: Group) -> NDArray[np.str_]:
        """Return found, unseen or passed for the group in each run, by its mean or a figure."""
        worse = numbers - self.centre
        columns = list(group.columns)
        halves = np.maximum(self.margins[columns], gate.TOLERATED)
        by_figure = (worse[:, columns] > halves).any(axis=1)
        half = next(h for g, _, h in self.groups if g == group)
        pooled = self.pooled(numbers, group)
        found = by_figure | (pooled > max(half, gate.TOLERATED))
        passed = pooled + half < gate.WANTED
        return np.where(found, "found", np.where(passed, "passed", "cannot tell"))


def gate_of(
    runs: Runs, rows: NDArray[np.int64], groups: Sequence[Group], judged: int | None = None
) -> Gate:
    """Return the gate that the given runs of a stack make; ``groups`` are those of all stacks.

    ``judged`` is how many launches a run has that is to be judged, None for as many as those.
    """
    per_run = runs.undisturbed.shape[1]
    judged = per_run if judged is None else judged
    numbers = runs.best[rows]
    centre = np.median(numbers, axis=0)
    residuals = numbers - centre
    launches = (runs.undisturbed[rows] - centre).reshape(-1, len(centre))
    figures = sum(len(group.columns) for group in groups)

    def margin(
        spread: float, residuals: NDArray[np.float64], compared: int, *, pooled: bool = False
    ) -> float:
        tail = gate.tail_of(residuals)
        return gate.margin(Scatter(len(rows), per_run, spread, tail, compared, pooled), judged)

    spreads = residuals.std(axis=0, ddof=1)
    margins = np.array([margin(float(s), launches[:, k], figures) for k, s in enumerate(spreads)])
    made = []
    for group in groups:
        if group.stack != runs.stack:
            continue
        columns = list(group.columns)
        of_figures = gate.group_weights({str(k): float(spreads[k]) for k in columns})
        weights = np.array([of_figures[str(k)] for k in columns])
        pooled = launches[:, columns] @ weights
        spread = float((residuals[:, columns] @ weights).std(ddof=1))
        half = margin(spread, pooled, len(groups), pooled=True)
        made.append((group, weights, half))
    return Gate(centre, margins, made)


def single_run_alarms(runs: Sequence[Runs], tolerance: float, baseline: int) -> Share:
    """Return how often a single launch against the median of ten first ones raises an alarm."""
    count = min(len(one.first) for one in runs) - baseline
    alarms = np.zeros(max(count, 0), dtype=bool)
    for one in runs:
        reference = np.median(one.first[:baseline], axis=0)
        later = one.first[baseline : baseline + count]
        alarms |= (later - reference > math.log1p(tolerance)).any(axis=1)
    return Share(int(alarms.sum()), len(alarms))


def false_alarms(runs: Sequence[Runs], baseline: int) -> Share:
    """Return how often an unchanged run of all stacks is called a regression.

    The baseline is the first ``baseline`` runs; each later one counts once.
    """
    groups = groups_of(runs)
    count = min(len(one.best) for one in runs) - baseline
    alarms = np.zeros(max(count, 0), dtype=bool)
    for one in runs:
        made = gate_of(one, np.arange(baseline), groups)
        alarms |= made.regressions(one.best[baseline : baseline + count])
    return Share(int(alarms.sum()), len(alarms))


def detections(
    runs: Sequence[Runs], slow_down: float, baseline: int
) -> Mapping[Group, Mapping[str, int]]:
    """Return what is said when every launch of one group is slower by ``slow_down`` (0.1: 10 %)."""
    groups = groups_of(runs)
    told = {}
    for one in runs:
        made = gate_of(one, np.arange(baseline), groups)
        for group in groups:
            if group.stack != one.stack:
                continue
            changed = one.best[baseline:].copy()
            changed[:, list(group.columns)] += math.log1p(slow_down)
            verdicts = made.group_verdicts(changed, group)
            told[group] = {
                verdict: int((verdicts == verdict).sum())
                for verdict in ("found", "cannot tell", "passed")
            }
    return told
