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

from clustergate.launching.disturbance import are_far
from clustergate.model import Scatter, Steady
from clustergate.statistics import gate
from tools.bench.launches import Launch

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
    return bool(launch.noted.disturbed) or are_far(launch.core_distance_ns, nearest_ns)


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
class Pooled:
    """A group in a baseline: the weights of its figures, how it scatters, and its company.

    ``company`` are the weights of all figures of the stack in the mean of the other groups.
    """

    weights: NDArray[np.float64]
    scatter: Scatter
    company: NDArray[np.float64]


@dataclass(frozen=True)
class Gate:
    """What a baseline made of some runs of a stack says of others.

    Those come as their ``numbers``, of the shape (runs, figures), and their undisturbed
    ``launches``, of the shape (runs, launches, figures).
    """

    centre: NDArray[np.float64]
    margins: NDArray[np.float64]
    groups: Mapping[Group, Pooled]

    def regressions(
        self, numbers: NDArray[np.float64], launches: NDArray[np.float64]
    ) -> NDArray[np.bool_]:
        """Tell which runs have a regression anywhere."""
        worse = numbers - self.centre
        found = (worse > np.maximum(self.margins, gate.TOLERATED)).any(axis=1)
        for group in self.groups:
            found |= self.pooled(numbers, group) > self.thresholds(launches, group)
        return np.asarray(found, dtype=bool)

    def pooled(self, numbers: NDArray[np.float64], group: Group) -> NDArray[np.float64]:
        """Return by how much the group is worse in each run, as the mean of its figures."""
        worse = (numbers - self.centre)[:, list(group.columns)]
        return np.asarray(worse @ self.groups[group].weights, dtype=float)

    def group_margins(self, launches: NDArray[np.float64], group: Group) -> NDArray[np.float64]:
        """Return by how much the group can look worse in each run."""
        known = self.groups[group].scatter
        steady = np.zeros(len(launches), dtype=int)
        if known.steady is not None:
            company = (launches - self.centre) @ self.groups[group].company
            steady = gate.are_steady(company, known.steady.floor).sum(axis=1)
        return np.array([gate.margin(known, launches.shape[1], int(count)) for count in steady])

    def thresholds(self, launches: NDArray[np.float64], group: Group) -> NDArray[np.float64]:
        """Return the smallest change of the group's mean that is found in each run."""
        return np.maximum(self.group_margins(launches, group), gate.TOLERATED)

    def group_verdicts(
        self, numbers: NDArray[np.float64], launches: NDArray[np.float64], group: Group
    ) -> NDArray[np.str_]:
        """Return found, unseen or passed for the group in each run, by its mean or a figure."""
        worse = numbers - self.centre
        columns = list(group.columns)
        halves = np.maximum(self.margins[columns], gate.TOLERATED)
        by_figure = (worse[:, columns] > halves).any(axis=1)
        pooled = self.pooled(numbers, group)
        found = by_figure | (pooled > self.thresholds(launches, group))
        passed = pooled + self.group_margins(launches, group) < gate.WANTED
        return np.where(found, "found", np.where(passed, "passed", "inconclusive"))


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
    spreads = residuals.std(axis=0, ddof=1)
    margins = np.array(
        [
            gate.margin(
                Scatter(len(rows), per_run, float(spread), gate.tail_of(of_figure), figures), judged
            )
            for spread, of_figure in zip(spreads, launches.T, strict=True)
        ]
    )
    mine = [group for group in groups if group.stack == runs.stack]
    weights = {
        group: np.array(list(gate.group_weights(_named(spreads, group)).values())) for group in mine
    }
    made = {}
    for group in mine:
        others = [other for other in mine if other != group]
        company = np.zeros(len(centre))
        for other in others:
            company[list(other.columns)] = weights[other] / len(others)
        of_group = launches[:, list(group.columns)]
        scatter = Scatter(
            runs=len(rows),
            launches=per_run,
            spread=float((residuals[:, list(group.columns)] @ weights[group]).std(ddof=1)),
            tail=gate.tail_of(of_group @ weights[group]),
            compared=len(groups),
            pooled=True,
            steady=_steady(of_group, weights[group], launches @ company) if others else None,
        )
        made[group] = Pooled(weights[group], scatter, company)
    return Gate(centre, margins, made)


def _named(spreads: NDArray[np.float64], group: Group) -> dict[str, float]:
    return {str(k): float(spreads[k]) for k in group.columns}


def _steady(
    launches: NDArray[np.float64], weights: NDArray[np.float64], company: NDArray[np.float64]
) -> Steady | None:
    floor = gate.steady_floor(company)
    steady = launches[gate.are_steady(company, floor)]
    if len(steady) < gate.FEWEST_STEADY:
        return None
    # The weights of the company stand beside it, by column.
    return Steady(len(steady), floor, gate.best_tail_of(steady, weights), {})


def single_run_alarms(runs: Sequence[Runs], tolerance: float, baseline: int) -> Share:
    """Return how often a single launch against the median of ten first ones raises an alarm."""
    count = min(len(one.first) for one in runs) - baseline
    alarms = np.zeros(max(count, 0), dtype=bool)
    for one in runs:
        reference = np.median(one.first[:baseline], axis=0)
        later = one.first[baseline : baseline + count]
        alarms |= (later - reference > math.log1p(tolerance)).any(axis=1)
    return Share(int(alarms.sum()), len(alarms))


def gates_of(runs: Sequence[Runs], baseline: int) -> list[Gate]:
    """Return the gate of each stack that its first ``baseline`` runs make."""
    groups = groups_of(runs)
    return [gate_of(one, np.arange(baseline), groups) for one in runs]


def false_alarms(runs: Sequence[Runs], gates: Sequence[Gate], baseline: int) -> Share:
    """Return how often an unchanged run of all stacks is called a regression.

    ``gates`` were made of the first ``baseline`` runs; each later one counts once.
    """
    count = min(len(one.best) for one in runs) - baseline
    alarms = np.zeros(max(count, 0), dtype=bool)
    for one, made in zip(runs, gates, strict=True):
        later = slice(baseline, baseline + count)
        alarms |= made.regressions(one.best[later], one.undisturbed[later])
    return Share(int(alarms.sum()), len(alarms))


def detections(
    runs: Sequence[Runs], gates: Sequence[Gate], slow_down: float, baseline: int
) -> Mapping[Group, Mapping[str, int]]:
    """Return what is said when every launch of one group is slower by ``slow_down`` (0.1: 10 %)."""
    told = {}
    for one, made in zip(runs, gates, strict=True):
        for group in made.groups:
            changed = one.best[baseline:].copy()
            changed[:, list(group.columns)] += math.log1p(slow_down)
            # The launches tell of the group's company alone, which is not slower.
            verdicts = made.group_verdicts(changed, one.undisturbed[baseline:], group)
            told[group] = {
                verdict: int((verdicts == verdict).sum())
                for verdict in ("found", "inconclusive", "passed")
            }
    return told
