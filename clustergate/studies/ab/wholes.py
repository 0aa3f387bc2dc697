"""Is B slower than A? Benchmarks as a whole beside their single sizes, and faults now and then.

Pure. It is what a golden build (A) is asked of today's (B): whether anything became slower, and
else whether a slowdown by 10 % is ruled out of each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustergate.core.model import Better, Sample
from clustergate.stats.comparison import FAMILY_ERROR, Comparison, Relation
from clustergate.stats.rounds import Hypotheses, Rounds, answers
from clustergate.stats.slow_launches import is_fault, slow_counts
from clustergate.studies.ab.gathering import Job
from clustergate.studies.ab.results import layout_of

Column = tuple[NDArray[np.float64], NDArray[np.float64]]
"""The times of a figure, or of a whole, in the rounds of A and of B."""

TOLERATED = 0.05
RULED_OUT = 0.10
"""The slowdown that must be ruled out of each single size, and of each benchmark as a whole."""
RULING_OUT_ERROR = 0.01


def is_slower(comparison: Comparison) -> bool:
    """Tell whether B is surely slower, and by more than is tolerated in the estimate."""
    return comparison.verdict is Relation.A_BETTER and (comparison.ratio or 0.0) > 1.0 + TOLERATED


@dataclass(frozen=True)
class Cost:
    """How much longer B takes than A, of a single figure or of a benchmark as a ``whole``.

    The comparison's ratio is B/A of the time, or of what stands for it: above 1 B is slower.
    *Equivalent* is a B of which a slowdown by :data:`RULED_OUT` is ruled out.
    ``node_seconds`` are those of the launches until it was decided; ``needed_s`` is how long all
    jobs would probably take, of which each has as much time as the one that decides it, None where
    it is decided, or nobody can say.
    """

    name: str
    comparison: Comparison
    whole: bool
    node_seconds: float
    needed_s: float | None = None


@dataclass(frozen=True)
class Fault:
    """Of a benchmark's launches in so many rounds these took many times as long as usual."""

    name: str
    slow_a: int
    slow_b: int
    rounds: int


@dataclass(frozen=True)
class Costs:
    """The times of a job: a column for each figure and, behind them, each benchmark as a whole.

    ``names`` say of each column what it is, and whether it is a whole, ``parts`` of which benchmark
    it is; ``members`` are the columns of each benchmark, by its name and metric.
    """

    rounds: Rounds
    names: Sequence[tuple[str, bool]]
    parts: Sequence[str]
    members: Mapping[str, Sequence[int]]

    def question(self, jobs: int) -> Hypotheses:
        """Return what is asked of them, beside so many jobs at all."""
        return Hypotheses(RULED_OUT, FAMILY_ERROR / max(jobs, 1), RULING_OUT_ERROR, TOLERATED)

    def faults(self, jobs: int) -> list[Fault]:
        """Return of which benchmarks B has more slow launches than A, and than is usual."""
        seen = []
        with np.errstate(invalid="ignore"):
            a, b = (
                np.log(np.where(np.isnan(side), np.inf, side))
                for side in (np.asarray(self.rounds.a), np.asarray(self.rounds.b))
            )
        for name, columns in self.members.items():
            # A round without it was made after it had been decided.
            known = [k for k in columns if (np.isfinite(a[:, k]) & np.isfinite(b[:, k])).any()]
            made = (np.isfinite(a[:, known]) | np.isfinite(b[:, known])).any(axis=1)
            slow = slow_counts(a[made][:, known], b[made][:, known])
            rounds = int(made.sum())
            if is_fault(*slow, rounds, len(self.members) * max(jobs, 1)):
                seen.append(Fault(name.rpartition(", ")[0], *slow, rounds))
        return seen


def costs_and_faults(jobs: Sequence[Job], family: int = 1) -> tuple[list[Cost], list[Fault]]:
    """Return how much longer all B take, and which of their faults come and go.

    ``family`` counts the comparisons of as many jobs that are read together, for the chance that
    any of them calls anything slower although nothing differs.
    """
    compared: list[Cost] = []
    seen: list[Fault] = []
    together = len(jobs) * family
    for job in jobs:
        measured = costs_of(job)
        seen += measured.faults(together)
        spent = np.cumsum([0.0, *job.node_seconds])
        asked = measured.question(together)
        for (name, whole), one in zip(measured.names, answers(measured.rounds, asked), strict=True):
            seconds = float(spent[min(one.samples_a, len(spent) - 1)])
            more = one.further_launches
            needed_s = None if more is None else len(jobs) * (len(job.a) + more) * job.round_s
            compared.append(Cost(name, one, whole, seconds, needed_s))
    return compared, seen


def costs_of(job: Job) -> Costs:
    """Return the times of a job's figures and wholes.

    The whole of a benchmark is the geometric mean of its figures in a launch, of those that every
    launch of both has: a mean over others would change with what is missing. A whole of a single
    figure is that figure. A round in which neither has any of a benchmark counts for none of it.
    """
    columns: list[Column] = []
    sums: dict[int, list[int]] = {}
    names: list[tuple[str, bool]] = []
    parts: list[str] = []
    groups: dict[str, list[int]] = {}
    rounds = len(job.a)
    for k, figure in enumerate(job.figures):
        if figure.better is Better.NEITHER:
            continue
        benchmark = f"{figure.benchmark} of {layout_of(job)}"
        groups.setdefault(f"{benchmark}, {figure.metric}", []).append(len(columns))
        columns.append((_time(job.a[:, k], figure), _time(job.b[:, k], figure)))
        parts.append(figure.benchmark)
        size = figure.conditions.get("bytes")
        names.append((benchmark + ("" if size is None else f", {size} bytes"), False))
    members = {}
    for name, of_group in groups.items():
        name_of_whole = name.rpartition(", ")[0]
        members[name] = list(of_group)
        if len(of_group) > 1:
            held = [k for k in of_group if _held(columns[k], [columns[j] for j in of_group])]
            sums[len(columns)] = held or [len(columns)]
            columns.append(_whole([columns[k] for k in held], rounds))
            names.append((f"{name_of_whole} as a whole", True))
            parts.append(parts[of_group[0]])
        else:
            names[of_group[0]] = (name_of_whole, True)
    a, b = (np.array([c[side] for c in columns]).reshape(-1, rounds).T for side in (0, 1))
    return Costs(Rounds(a, b, [Better.LOWER] * len(columns), sums), names, parts, members)


def _time(values: NDArray[np.float64], figure: Sample) -> NDArray[np.float64]:
    if figure.better is Better.LOWER:
        return values
    # A rate of nothing is no time at all: it has no ratio, and is told so.
    with np.errstate(divide="ignore"):
        return np.where(values > 0.0, 1.0 / values, np.where(np.isnan(values), np.nan, 0.0))


def _held(column: Column, group: Sequence[Column]) -> bool:
    """Tell whether a figure has a time in each launch of both that has any of its benchmark."""
    made = ~np.isnan(np.concatenate(group)).all(axis=0)
    return bool(made.any() and all((side[made] > 0.0).all() for side in column))


def _whole(columns: Sequence[Column], rounds: int) -> Column:
    """Return the geometric means of some columns in each launch; nothing of no columns."""
    if not columns:
        return np.full(rounds, np.nan), np.full(rounds, np.nan)
    first, second = (np.exp(np.log([one[side] for one in columns]).mean(axis=0)) for side in (0, 1))
    return first, second
