"""A stack against itself, on recorded launches: what is decided, in how many rounds, how wrongly?

Two launches of a stack that follow each other make a round, and a lot decides which of them is A's.
A comparison takes rounds that follow each other, from a place chosen by lot, and into B's launches
a change is put. It is looked at as ``clustergate ab`` and the gate look at theirs, and stops when
it is decided. Pure.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from clustergate.ab.deciding import Decider
from clustergate.ab.gathering import Job
from clustergate.ab.wholes import (
    TOLERATED,
    costs,
    faults,
)
from clustergate.model import Better, Sample
from clustergate.statistics.comparison import Relation
from clustergate.statistics.rounds import Question, Rounds, Trial, looks
from tools.bench.launches import Launch
from tools.bench.slowdowns import BENCHMARK, NOTHING, SIZE, STACK, Change

FIVE_TIMES = 5.0
# Errors of the likelihood-ratio test to which the others are held.
_LIKELIHOOD_ERROR = 0.01
_NOISE_POINTS = 400


CHANGES = (
    NOTHING,
    *(Change(SIZE, by) for by in (1.05, 1.10, 1.20)),
    *(Change(BENCHMARK, by) for by in (1.10, 1.20)),
    Change(STACK, FIVE_TIMES, 3),
)


@dataclass(frozen=True)
class Decided:
    """What a comparison came to: the answer, after so many rounds."""

    answer: str
    rounds: int


def recorded_rounds(launches: Sequence[Launch], stack: str) -> NDArray[np.float64]:
    """Return all launches of a stack in pairs, disturbed or not, in us: (rounds, 2, figures)."""
    mine = [launch.microseconds for launch in launches if launch.stack == stack]
    figures = [[one[name] for name in sorted(one)] for one in mine[: len(mine) // 2 * 2]]
    return np.array(figures, dtype=float).reshape(len(figures) // 2, 2, -1)


def drawn(
    held: NDArray[np.float64], rounds: int, lot: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return A's and B's launches of a comparison, of the shape (rounds, figures).

    Raises ValueError when fewer rounds than that were recorded.
    """
    if len(held) < rounds:
        raise ValueError(f"{len(held)} rounds were recorded, and {rounds} are asked for")
    start = int(lot.integers(0, len(held) - rounds + 1))
    part, first, places = (
        held[start : start + rounds],
        lot.integers(0, 2, rounds),
        np.arange(rounds),
    )
    return part[places, first], part[places, 1 - first]


def changed(
    b: NDArray[np.float64], names: Sequence[str], change: Change, lot: np.random.Generator
) -> tuple[NDArray[np.float64], list[int]]:
    """Return B's launches with a change in them, and the figures that it is in."""
    hit = str(lot.choice(list(names)))
    places = [names.index(name) for name in change.figures(names, hit)]
    slower = b.copy()
    first = int(lot.integers(0, change.every))
    slower[first :: change.every, places] *= change.factor
    return slower, places


def compared(a: NDArray[np.float64], b: NDArray[np.float64], places: Sequence[int]) -> Decided:
    """Return what ``clustergate ab`` says of the figures in ``places``, of all where there is none.

    ``found``: A is better in one of them, and B in no figure; ``wrong``: another is better, or B.
    """
    trial = Trial(Question())
    better = [Better.LOWER] * a.shape[1]
    rounds = 0
    wanted = list(places) or list(range(a.shape[1]))
    for rounds in looks(len(a)):
        trial.look(Rounds(a[:rounds], b[:rounds], better))
        if trial.decided[wanted].all() or trial.better[wanted].any():
            break
    said = [one.verdict for one in trial.comparisons()]
    mine = {said[k] for k in wanted}
    others = {verdict for k, verdict in enumerate(said) if k not in wanted}
    if Relation.B_BETTER in said or Relation.A_BETTER in others:
        return Decided("wrong", rounds)
    if Relation.A_BETTER in mine:
        return Decided("found", rounds)
    return Decided("equivalent" if mine == {Relation.EQUIVALENT} else "undecided", rounds)


def at_the_gate(names: Sequence[str], a: NDArray[np.float64], b: NDArray[np.float64]) -> Decided:
    """Return what the gate says of a stack whose golden build is A."""
    figures = [
        Sample(benchmark, "latency_us", "us", Better.LOWER, {"bytes": int(size or 0)}, 1.0)
        for benchmark, _, size in (name.partition("/") for name in names)
    ]
    decider = Decider("AbImbCheck", 1, None)
    rounds = 0
    for rounds in looks(len(a)):
        decider.look(Job("", "", {}, figures, a[:rounds], b[:rounds], rounds, 0))
        if decider.enough:
            break
    job = Job("", "", {}, figures, a[:rounds], b[:rounds], rounds, 0)
    found = [one.comparison for one in costs([job])]
    slower = [one for one in found if one.verdict is Relation.A_BETTER]
    if faults([job]) or any((one.ratio or 0.0) > 1.0 + TOLERATED for one in slower):
        return Decided("STAY CLOSED", rounds)
    if all(one.verdict is Relation.EQUIVALENT for one in found):
        return Decided("OPEN", rounds)
    return Decided("undecided", rounds)


def by_likelihood(
    held: NDArray[np.float64], b: NDArray[np.float64], place: int, factor: float
) -> Decided:
    """Return what a sequential test of likelihood ratios says that knows everything.

    It knows which figure may be slower, by how much, and how the recording's launches of it are
    distributed (Wald, Sequential tests of statistical hypotheses, 1945): no rule without that
    knowledge needs fewer launches at its errors.
    """
    logs = np.log(held[:, :, place]).ravel()
    density = scipy.stats.gaussian_kde(logs, 0.1)
    grid = np.linspace(logs.min() - 1.0, logs.max() + 2.0, _NOISE_POINTS)
    heights = np.log(np.maximum(density(grid), 1e-4))
    times = np.log(b[:, place])
    steps = np.interp(times - math.log(factor), grid, heights) - np.interp(times, grid, heights)
    bound = math.log((1 - _LIKELIHOOD_ERROR) / _LIKELIHOOD_ERROR)
    sums = np.cumsum(steps)
    ends = np.flatnonzero(np.abs(sums) >= bound)
    if not len(ends):
        return Decided("undecided", len(b))
    return Decided("found" if sums[ends[0]] > 0 else "equivalent", int(ends[0]) + 1)


def replayed(
    recorded: Mapping[str, Sequence[Launch]], most: int, times: int, how: str
) -> Iterator[tuple[str, Change, Decided]]:
    """Yield what each comparison came to, with its recording and what was put into it.

    ``how`` is ``ab``, ``gate`` or ``likelihood``; of each stack in each recording and each change
    there are so many ``times``, of ``most`` rounds or as many as there are.
    """
    for number, (name, launches) in enumerate(recorded.items()):
        names = sorted(launches[0].microseconds)
        for stack in sorted({launch.stack for launch in launches}):
            held = recorded_rounds(launches, stack)
            for place, change in enumerate(CHANGES):
                if how == "likelihood" and change.where != SIZE:
                    continue
                lot = np.random.default_rng([number, len(stack), place])
                for _ in range(times):
                    a, plain = drawn(held, min(most, len(held)), lot)
                    b, places = changed(plain, names, change, lot)
                    if how == "ab":
                        found = compared(a, b, places)
                    elif how == "gate":
                        found = at_the_gate(names, a, b)
                    else:
                        found = by_likelihood(held, b, places[0], change.factor)
                    yield name, change, found


def counted(
    found: Sequence[tuple[str, Change, Decided]], change: Change
) -> tuple[Counter[str], float]:
    """Return how often each answer was given to a change, and the mean rounds of the decided."""
    mine = [decided for _, of, decided in found if of == change]
    rounds = [one.rounds for one in mine if one.answer != "undecided"]
    return Counter(one.answer for one in mine), float(np.mean(rounds)) if rounds else math.nan
