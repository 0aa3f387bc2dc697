"""When a job that launches A and B in turn may stop: what is decided needs no further rounds. Pure.

The driver asks after each round, and whoever reads the rounds afterwards looks at the same ones.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from clustergate.benchmarks.registry import descriptor_of
from clustergate.core.model import Sample
from clustergate.stats.comparison import FAMILY_ERROR
from clustergate.stats.rounds import Hypotheses, Rounds, SequentialTest, interim_looks
from clustergate.studies.ab.gathering import Job, tables_of
from clustergate.studies.ab.wholes import Costs, costs_of, is_slower

Side = tuple[Sequence[Sample], Mapping[int, int]]
"""The samples of a contender, and the round of each of its launches by their order."""


class Decider:
    """What the rounds of a job have decided so far.

    ``jobs`` are as many as are compared together. Contenders are compared in pairs, within a
    ``margin`` (a fraction), each figure with a verdict of its own; without one it is asked whether
    B may take the place of A: what is slower decides that it may not, at once.
    """

    def __init__(self, check: str, jobs: int, margin: float | None) -> None:
        known = descriptor_of(check).ab
        self._check, self._pairs = check, dict[tuple[int, int], Decider]()
        self._counted = known.counted if known else {}
        self._jobs, self._margin = jobs, margin
        self.trial: SequentialTest | None = None
        self.without: tuple[str, ...] = ()
        self.enough = False

    def look_at(self, sides: Sequence[Side], turns: Sequence[int]) -> None:
        """Look at the rounds so far, if that many are looked at at all.

        Of more than two contenders each pair is looked at by itself, with its share of the error.
        """
        if len(turns) not in interim_looks(len(turns)):
            return
        if len(sides) > 2:
            pairs = list(itertools.combinations(range(len(sides)), 2))
            for x, y in pairs:
                own = (self._check, self._jobs * len(pairs), self._margin)
                one = self._pairs.setdefault((x, y), Decider(*own))
                one.look_at((sides[x], sides[y]), turns)
            deciders = self._pairs.values()
            self.enough = all(one.enough for one in deciders)
            first, *others = (one.without for one in deciders)
            self.without = tuple(x for x in first if all(x in other for other in others))
        else:
            figures, (a, b) = tables_of(sides, turns, self._counted)
            self.look(Job("", "", {}, figures, a, b, len(turns), 0))

    def look(self, job: Job) -> None:
        """Look at the rounds of a job so far."""
        costs: Costs | None = None
        if self._margin is None:
            costs = costs_of(job)
            rounds, parts, asked = costs.rounds, costs.parts, costs.question(self._jobs)
        else:
            rounds = Rounds(job.a, job.b, [figure.better for figure in job.figures])
            parts = [figure.benchmark for figure in job.figures]
            asked = Hypotheses(self._margin, FAMILY_ERROR / max(self._jobs, 1))
        self.trial = self.trial or SequentialTest(asked)
        self.trial.look(rounds)
        decided = self.trial.decided
        open_ = {part for part, done in zip(parts, decided, strict=True) if not done}
        self.without = tuple(part for part in dict.fromkeys(parts) if part not in open_)
        self.enough = bool(len(parts)) and not open_
        if costs is not None:
            slower = np.any(self.trial.better) and any(map(is_slower, self.trial.comparisons()))
            self.enough = self.enough or bool(slower or costs.faults(self._jobs))
