"""The judge by itself: a baseline's figures go in, the sets that are slower come out. Pure.

What a check does besides (records, a reference file, the verdicts of figures) takes a hundred times
as long. Where this simulates so many runs that rare alarms count, the way of a check
(:mod:`tools.bench.judge`) judges fewer of the same runs.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from clustergate.core.figures import name_of
from clustergate.judge.bad_days import bad_days
from clustergate.judge.changes import Judge, Past, slower
from clustergate.judge.confirmation import TIMES
from clustergate.judge.kinds import FigureId
from clustergate.judge.runs import figure_id
from tools.bench.simulated_noise import LATENCY, Array, Machine
from tools.bench.simulated_runs import CaseForm, Form, SimulatedRun


@dataclass(frozen=True)
class Called:
    """Which sets of measurements are slower each time, and how many cases were launched again."""

    sets: Collection[frozenset[int]]
    launched_again: int


@dataclass(frozen=True, eq=False)
class Alone:
    """A judge by the runs of a baseline."""

    form: Form
    machine: Machine
    runs: Sequence[SimulatedRun]
    _judges: dict[int, Judge] = field(default_factory=dict)

    @functools.cached_property
    def _kept(self) -> NDArray[np.int_]:
        """The compared figures of all cases that are not always zero."""
        usual = np.concatenate([case.usual[case.compared] for case in self.form.cases])
        return np.flatnonzero(usual > 0)

    @functools.cached_property
    def _places(self) -> NDArray[np.int_]:
        """Of each figure the place of its measurement."""
        places = [case.places[case.compared] for case in self.form.cases]
        return np.concatenate(places)[self._kept]

    @functools.cached_property
    def _cases(self) -> NDArray[np.int_]:
        """Of each figure the place of its case."""
        return np.repeat(
            np.arange(len(self.form.cases)), [len(case.compared) for case in self.form.cases]
        )[self._kept]

    @functools.cached_property
    def _figures(self) -> list[FigureId]:
        figures = [one for case in self.form.cases for one in figures_of(case)]
        return [figures[k] for k in self._kept]

    @functools.cached_property
    def _moves(self) -> NDArray[np.bool_]:
        """Which figures depend on where the nodes of a run lie."""
        small = np.array([one.kind == LATENCY for one in self._figures])
        return small & (self.form.setting.nodes > 1)

    @functools.cached_property
    def _by_level(self) -> Mapping[int, Array]:
        """By how much each figure is worse in runs on nodes of a level, of those that there were.

        On one node nothing has levels.
        """
        levels = np.array([run.level for run in self.runs])
        values = np.array([self._values(run) for run in self.runs])
        usual = values.mean(axis=0)
        return {
            level: np.where(self._moves, values[levels == level].mean(axis=0) - usual, 0.0)
            for level in set(levels.tolist())
        }

    def _judge(self, level: int) -> Judge:
        """Return the judge of a run on nodes of a level."""
        if level not in self._judges:
            days = [run.started.date() for run in self.runs]
            own = max(sum(run.level == level for run in self.runs), 1)
            rarer = (1.0 + 1.0 / own) / (1.0 + 1.0 / len(self.runs))
            past = Past(
                self._figures,
                np.array([sorted(set(days)).index(day) for day in days]),
                np.array([self._values(run) - self._by_level[run.level] for run in self.runs]),
                np.concatenate([_steps(case) for case in self.form.cases])[self._kept],
                self.machine.exclusive,
                means=np.where(self._moves, len(self._by_level), 1),
                rarer=np.where(self._moves, rarer, 1.0),
            )
            bad = [day for day, _ in bad_days(past)]
            self._judges[level] = Judge(past).among(~np.isin(past.days, bad))
        return self._judges[level]

    def _placed(self, run: SimulatedRun, values: Array) -> Array:
        """Return values less what the level of a run's nodes adds; nan for one never seen."""
        if run.level in self._by_level:
            return values - self._by_level[run.level]
        return np.where(self._moves, np.nan, values)

    def _values(self, run: SimulatedRun, again: Collection[int] = (), turn: int = 0) -> Array:
        """Return each figure's best launch, those of some cases of a later turn."""
        best = [
            run.again(case.key, turn if k in again else 0).printed.min(axis=0)
            for k, case in enumerate(self.form.cases)
        ]
        return np.asarray(np.concatenate(best)[self._kept])

    def call(self, run: SimulatedRun) -> Called:
        """Judge a run, with what looks slow launched again."""
        judge = self._judge(run.level if self.form.setting.nodes > 1 else 0)
        first = judge.changes(self._placed(run, self._values(run)))
        slow = {one.hypothesis.places for one in slower(first)}
        launched = 0
        for turn in range(1, TIMES + 1):
            if not slow:
                break
            again = {int(self._cases[place]) for places in slow for place in places}
            launched += len(again)
            changes = judge.changes(self._placed(run, self._values(run, again, turn)), slow)
            slow &= {one.hypothesis.places for one in changes if one.is_slower}
        sets = [frozenset(int(self._places[place]) for place in places) for places in slow]
        return Called(sets, launched)


def figures_of(case: CaseForm) -> list[FigureId]:
    """Return what the judge knows the compared figures of a case by."""
    key = case.key
    keys = (key.check, key.partition, key.stack, "", "")
    samples = [case.samples[k] for k in case.compared]
    return [
        figure_id(keys, name_of(one), one.benchmark, one.metric, one.conditions.get("bytes"))
        for one in samples
    ]


def _steps(case: CaseForm) -> Array:
    """Return the part of each figure that its last printed digit is, 0 for a fine one."""
    decimals, usual = case.decimals[case.compared], case.usual[case.compared]
    with np.errstate(divide="ignore"):
        return np.asarray(np.where(decimals > 0, 10.0**-decimals / usual, 0.0))
