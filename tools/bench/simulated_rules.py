"""What is said of the runs of a simulated cluster beside the judge: the field, and the limit. Pure.

Class tolerances are those that operators write by hand, held against the median of the baseline,
with a second launch of what exceeds them. The likelihood ratio knows how the machine scatters,
which launches had a spike, which day of the baseline was bad, and where the nodes lay; only what
became slower, and by how much, it does not know. Nothing that sees the same launches finds more at
the same rate of false alarms.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from clustergate.core.model import CaseId
from clustergate.judge.hypotheses import hypotheses
from tools.bench import field as others
from tools.bench.judge_alone import figures_of
from tools.bench.simulated_noise import (
    BANDWIDTH,
    COLLECTIVE,
    COMPUTE,
    KINDS,
    LATENCY,
    MEMORY,
    Array,
    Machine,
)
from tools.bench.simulated_runs import Form, SimulatedRun, Taken

TOLERANCES = {COMPUTE: 0.03, MEMORY: 0.05, LATENCY: 0.10, BANDWIDTH: 0.05, COLLECTIVE: 0.20}
ALARMS = 0.01
"""Of unchanged runs, for the likelihood ratio and for tolerances that are widened."""
_DRAWN = 2000


@dataclass(frozen=True)
class ByHand:
    """What class tolerances say of a run.

    ``affected`` and ``others`` are the worst of the figures that a change affects and of all
    others, in units of their tolerance: beyond 1 they exceed it, in the second launch as well.
    """

    affected: float
    others: float
    launches: int
    node_seconds: float


@dataclass(eq=False)
class Beside:
    """The rules beside the judge, of one baseline."""

    form: Form
    machine: Machine
    runs: Sequence[SimulatedRun]
    _ranked: dict[int, tuple[Taken, NDArray[np.bool_]]] = field(default_factory=dict)

    @functools.cached_property
    def _usual(self) -> Mapping[CaseId, Array]:
        """The median over runs of each figure's best launch."""
        return {
            case.key: np.median([_best(run.taken[case.key]) for run in self.runs], axis=0)
            for case in self.form.cases
        }

    def by_hand(self, run: SimulatedRun, affected: NDArray[np.bool_]) -> ByHand:
        """Hold a run against class tolerances, and launch again what exceeds them."""
        worst = [0.0, 0.0]
        launches, seconds = 0, 0.0
        for case in self.form.cases:
            places = case.places[case.compared]
            tolerated = np.log1p([TOLERANCES[self.form.kinds[place]] for place in places])
            beyond = (_best(run.taken[case.key]) - self._usual[case.key]) / tolerated
            if (beyond > 1.0).any():
                second = run.again(case.key)
                launches += second.launches
                seconds += second.node_seconds
                beyond = np.minimum(beyond, (_best(second) - self._usual[case.key]) / tolerated)
            for k, of in enumerate((affected[places], ~affected[places])):
                worst[k] = max(worst[k], float(beyond[of].max(initial=0.0)))
        return ByHand(worst[0], worst[1], launches, seconds)

    def mann_whitney(self, run: SimulatedRun, affected: NDArray[np.bool_]) -> tuple[bool, bool]:
        """Tell whether ranks call a figure slower that a change affects, and another one."""
        called = [False, False]
        figures = sum(len(case.compared) for case in self.form.cases)
        for case in self.form.cases:
            taken = run.taken[case.key]
            if id(taken) not in self._ranked:
                known = others.Known(self._known[case.key], figures)
                said = others.mann_whitney(known, np.exp(taken.printed))
                if len(self._ranked) >= len(self.form.cases) * 4:
                    self._ranked.clear()
                self._ranked[id(taken)] = taken, said
            _, said = self._ranked[id(taken)]
            of = affected[case.places[case.compared]]
            called = [called[0] or bool(said[of].any()), called[1] or bool(said[~of].any())]
        return called[0], called[1]

    @functools.cached_property
    def _known(self) -> Mapping[CaseId, Sequence[Array]]:
        return {
            case.key: [np.exp(run.taken[case.key].printed) for run in self.runs]
            for case in self.form.cases
        }

    # --- the likelihood ratio -----------------------------------------------------------------

    def likelihood_ratio(self, run: SimulatedRun, affected: NDArray[np.bool_]) -> bool:
        """Tell whether the best explanation by a slowdown holds a figure that a change affects."""
        mean, launches = _mean([run], self.form)
        places = _places(self.form)
        change, of_launches = self._before
        sd, _ = self._sd
        with np.errstate(divide="ignore"):
            variance = sd**2 / launches + of_launches
        score = self._scores((mean - change)[None, :], variance)[0]
        holds = self._sets @ affected[places] > 0
        return bool((score[holds] > self.threshold).any())

    def ruled_out(self, run: SimulatedRun, affected: NDArray[np.bool_]) -> int:
        """Return of how many figures that no change affects a slowdown of 10 % is ruled out.

        It is by the estimate of each alone, with the known covariance (99 %): what the best test
        lets pass.
        """
        mean, launches = _mean([run], self.form)
        change, of_launches = self._before
        sd, day = self._sd
        with np.errstate(divide="ignore"):
            variance = sd**2 / launches + of_launches
        weights = np.where(np.isfinite(variance), 1.0 / variance, 0.0)
        shared = np.array([(day[of > 0] ** 2).max(initial=0.0) for of in self._of_kinds])
        shared *= self.machine.shared * (1.0 + 1.0 / len(self._days))
        of_kind = self._of_kinds * weights
        less = shared / (1.0 + shared * of_kind.sum(axis=1))
        by = mean - change
        inner = by * weights - (by @ of_kind.T * less) @ of_kind
        norms = np.maximum(weights - less @ of_kind**2, 1e-300)
        passes = inner / norms + NormalDist().inv_cdf(0.99) / np.sqrt(norms) < math.log(1.10)
        return int(passes[~affected[_places(self.form)]].sum())

    @functools.cached_property
    def _sd(self) -> tuple[Array, Array]:
        kinds = [self.form.kinds[place] for place in _places(self.form)]
        return self.machine.sd(kinds)

    @functools.cached_property
    def _days(self) -> Sequence[Sequence[SimulatedRun]]:
        by_day = itertools.groupby(self.runs, key=lambda run: run.started.date())
        days = (list(some) for _, some in by_day)
        return [some for some in days if not some[0].on_bad_day]

    @functools.cached_property
    def _before(self) -> tuple[Array, Array]:
        """The mean of the days, and its variance but for what days share."""
        sd, day = self._sd
        means, counts = zip(*(_mean(some, self.form) for some in self._days), strict=True)
        there = np.array(counts) > 0
        days = np.maximum(there.sum(axis=0), 1)
        each = np.where(there, sd**2 / np.maximum(counts, 1), 0.0).sum(axis=0) / days**2
        mean = np.where(there, means, 0.0).sum(axis=0) / days
        own = day**2 * (1.0 - self.machine.shared) * (1.0 + 1.0 / days)
        return mean, np.where(there.any(axis=0), each + own, np.inf)

    @functools.cached_property
    def _sets(self) -> Any:
        return _sets(self.form)

    @functools.cached_property
    def _of_kinds(self) -> Array:
        kinds = [self.form.kinds[place] for place in _places(self.form)]
        return np.array([[float(kind == one) for kind in kinds] for one in KINDS])

    def _scores(self, changes: Array, variance: Array) -> Array:
        """Return how surely each set of figures is slower, in standard deviations.

        With the covariance D + sum of t 1 1' over kinds, whose inverse Sherman and Morrison give.
        """
        weights = np.where(np.isfinite(variance), 1.0 / variance, 0.0)
        _, day = self._sd
        shared = np.array([(day[of > 0] ** 2).max(initial=0.0) for of in self._of_kinds])
        shared *= self.machine.shared * (1.0 + 1.0 / len(self._days))
        of_kind = self._of_kinds * weights
        less = shared / (1.0 + shared * of_kind.sum(axis=1))
        inner = changes * weights - (changes @ of_kind.T * less) @ of_kind
        held = self._sets @ of_kind.T
        norms = self._sets @ weights - held**2 @ less
        return np.asarray((self._sets @ inner.T).T / np.sqrt(np.maximum(norms, 1e-300)))

    @functools.cached_property
    def _usual_variance(self) -> Array:
        """That of a run without spikes, but for what the figures of a kind share."""
        sd, day = self._sd
        first, days = self.runs[0].taken, len(self._days)
        counts = np.array(
            [first[case.key].launches for case in self.form.cases for _ in case.compared]
        )
        own = day**2 * (1.0 - self.machine.shared) * (1.0 + 1.0 / days)
        runs = sum(map(len, self._days))
        return np.asarray(sd**2 / counts * (1.0 + 1.0 / runs) + own)

    def found_in_80(self, affected: NDArray[np.bool_]) -> float:
        """Return the slowdown of some figures that the likelihood ratio finds in 80 % of runs."""
        change = affected[_places(self.form)].astype(float)
        weights = 1.0 / self._usual_variance
        _, day = self._sd
        held = self._of_kinds @ (weights * change)
        shared = np.array([(day[of > 0] ** 2).max(initial=0.0) for of in self._of_kinds])
        shared *= self.machine.shared * (1.0 + 1.0 / len(self._days))
        less = shared / (1.0 + shared * (self._of_kinds @ weights))
        norm = float(weights @ change - held**2 @ less)
        return math.expm1((self.threshold + NormalDist().inv_cdf(0.8)) / math.sqrt(norm))

    @functools.cached_property
    def threshold(self) -> float:
        """What the best explanation of an unchanged run exceeds in 1 % of them."""
        lot = np.random.default_rng(1)
        sd, day = self._sd
        days, variance = len(self._days), self._usual_variance
        shared = np.sqrt(self.machine.shared * (1.0 + 1.0 / days)) * day
        drawn = lot.normal(size=(_DRAWN, len(sd))) * np.sqrt(variance)
        drawn += lot.normal(size=(_DRAWN, len(KINDS))) @ self._of_kinds * shared
        return float(np.quantile(self._scores(drawn, variance).max(axis=1), 1.0 - ALARMS))


def _best(taken: Taken) -> Array:
    return np.asarray(taken.printed.min(axis=0))


def _places(form: Form) -> NDArray[np.int64]:
    return np.concatenate([case.places[case.compared] for case in form.cases])


def _mean(runs: Sequence[SimulatedRun], form: Form) -> tuple[Array, NDArray[np.int64]]:
    """Return the mean of the launches without a spike of each figure, and how many those are."""
    means, counts = [], []
    for case in form.cases:
        all_of = [run.taken[case.key] for run in runs]
        logs = np.concatenate([one.true for one in all_of])
        kept = ~np.concatenate([one.spiked for one in all_of])
        counts.append(kept.sum(axis=0))
        means.append(np.where(kept, logs, 0.0).sum(axis=0) / np.maximum(counts[-1], 1))
    return np.concatenate(means), np.concatenate(counts)


@functools.lru_cache(maxsize=4)
def _sets(form: Form) -> Any:
    """Return the sets of figures that may be slower together, one a line, as the judge knows them.

    It is a sparse matrix of ones.
    """
    figures = [one for case in form.cases for one in figures_of(case)]
    sets = [one.places for one in hypotheses(figures)]
    columns, ends = np.concatenate(sets), np.cumsum([0, *map(len, sets)])
    return sparse.csr_matrix((np.ones(len(columns)), columns, ends), (len(sets), len(figures)))
