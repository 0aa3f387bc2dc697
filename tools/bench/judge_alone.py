"""The judge by itself: a baseline's figures go in, the sets that are slower come out. Pure.

What a check does besides (records, a reference file, the verdicts of figures) takes a hundred times
as long. Where this simulates so many runs that rare alarms count, the way of a check
(:mod:`tools.bench.judge`) judges fewer of the same runs.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustergate.figures import name_of
from clustergate.judge.bad_days import bad_days
from clustergate.judge.changes import Judge, Past, slower
from clustergate.judge.confirmation import TIMES
from clustergate.judge.kinds import FigureId
from clustergate.judge.runs import figure_id
from tools.bench.simulated_noise import Array, Machine
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
    def _judge(self) -> Judge:
        days = [run.started.date() for run in self.runs]
        figures = [one for case in self.form.cases for one in _figures(case)]
        past = Past(
            [figures[k] for k in self._kept],
            np.array([sorted(set(days)).index(day) for day in days]),
            np.array([self._values(run) for run in self.runs]),
            np.concatenate([_steps(case) for case in self.form.cases])[self._kept],
            self.machine.exclusive,
        )
        bad = [day for day, _ in bad_days(past)]
        return Judge(past).among(~np.isin(past.days, bad))

    def _values(self, run: SimulatedRun, again: Collection[int] = (), turn: int = 0) -> Array:
        """Return each figure's best launch, those of some cases of a later turn."""
        best = [
            run.again(case.key, turn if k in again else 0).printed.min(axis=0)
            for k, case in enumerate(self.form.cases)
        ]
        return np.asarray(np.concatenate(best)[self._kept])

    def call(self, run: SimulatedRun) -> Called:
        """Judge a run, with what looks slow launched again."""
        slow = {one.hypothesis.places for one in slower(self._judge.changes(self._values(run)))}
        launched = 0
        for turn in range(1, TIMES + 1):
            if not slow:
                break
            again = {int(self._cases[place]) for places in slow for place in places}
            launched += len(again)
            changes = self._judge.changes(self._values(run, again, turn), slow)
            slow &= {one.hypothesis.places for one in changes if one.is_slower}
        sets = [frozenset(int(self._places[place]) for place in places) for places in slow]
        return Called(sets, launched)


def _figures(case: CaseForm) -> list[FigureId]:
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
