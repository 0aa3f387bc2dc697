"""A stack against itself, on recorded launches: what is decided, in how many rounds, how wrongly?

Two launches of a stack that follow each other make a round, and a lot decides which of them is A's.
A comparison takes rounds that follow each other, from a place chosen by lot and round the recording
as often as it takes, and into B's launches a change is put. It is looked at as ``clustergate ab``
and the gate look at theirs, and stops when it is decided. Pure.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import scipy
from numpy.typing import NDArray

from clustergate.core.model import Better, Sample
from clustergate.stats import comparison
from clustergate.stats.comparison import FAMILY_ERROR, Relation
from clustergate.stats.rounds import Hypotheses, Rounds, SequentialTest, interim_looks
from clustergate.studies.ab.deciding import Decider
from clustergate.studies.ab.gathering import Job
from clustergate.studies.ab.wholes import (
    RULED_OUT,
    RULING_OUT_ERROR,
    TOLERATED,
    costs_of,
    is_slower,
)
from tools.bench import field, otava
from tools.bench.launches import Launch
from tools.bench.slowdowns import BENCHMARK, NOTHING, SIZE, STACK, Change

FIVE_TIMES = 5.0
FOUND, OPEN, CLOSED, UNDECIDED = "found", "OPEN", "STAY CLOSED", "undecided"
# Errors of the likelihood-ratio tests to which the others are held.
_LIKELIHOOD_ERROR = 0.01
# Their density: its points, how much it is smoothed, in quartile distances and at least, and the
# least that it is taken to be, for what was never recorded.
_NOISE_POINTS, _SMOOTHED, _FINEST, _RAREST = 800, 0.15, 0.002, 1e-3
# In units of the noise, what is bet on a difference, and the largest difference that counts.
_BETS = (0.125, 0.25, 0.5, 1.0, 2.0)
_FURTHEST = 3.0


CHANGES = (
    NOTHING,
    *(Change(SIZE, by) for by in (1.05, 1.10, 1.20)),
    *(Change(BENCHMARK, by) for by in (1.10, 1.20)),
    Change(STACK, FIVE_TIMES, 3),
    Change(STACK, 1.5),
)


@dataclass(frozen=True)
class Decided:
    """What a comparison came to: the answer, after so many rounds, which took so long."""

    answer: str
    rounds: int
    node_seconds: float = 0.0


def recorded_rounds(launches: Sequence[Launch], stack: str) -> NDArray[np.float64]:
    """Return all launches of a stack in pairs, disturbed or not, in us: (rounds, 2, figures)."""
    mine = [launch.microseconds for launch in launches if launch.stack == stack]
    figures = [[one[name] for name in sorted(one)] for one in mine[: len(mine) // 2 * 2]]
    return np.array(figures, dtype=float).reshape(len(figures) // 2, 2, -1)


def drawn(
    held: NDArray[np.float64], rounds: int, lot: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return A's and B's launches of a comparison, of the shape (rounds, figures).

    Behind its last round a recording goes on with its first, and with lots of its own.
    """
    places = np.arange(rounds)
    part, first = held[(lot.integers(len(held)) + places) % len(held)], lot.integers(0, 2, rounds)
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
    trial = SequentialTest(Hypotheses())
    better = [Better.LOWER] * a.shape[1]
    rounds = 0
    wanted = list(places) or list(range(a.shape[1]))
    for rounds in interim_looks(len(a)):
        trial.look(Rounds(a[:rounds], b[:rounds], better))
        if trial.decided[wanted].all() or trial.better[wanted].any():
            break
    return _answer(trial.comparisons(), wanted, rounds)


def _answer(said: Sequence[comparison.Comparison], wanted: Sequence[int], rounds: int) -> Decided:
    mine = {said[k].verdict for k in wanted}
    others = {one.verdict for k, one in enumerate(said) if k not in wanted}
    if Relation.B_BETTER in {*mine, *others} or Relation.A_BETTER in others:
        return Decided("wrong", rounds)
    if Relation.A_BETTER in mine:
        return Decided(FOUND, rounds)
    return Decided("equivalent" if mine == {Relation.EQUIVALENT} else UNDECIDED, rounds)


def at_the_gate(names: Sequence[str], a: NDArray[np.float64], b: NDArray[np.float64]) -> Decided:
    """Return what the gate says of a stack whose golden build is A."""
    figures = [
        Sample(benchmark, "latency_us", "us", Better.LOWER, {"bytes": int(size or 0)}, 1.0)
        for benchmark, _, size in (name.partition("/") for name in names)
    ]
    decider = Decider("AbImbCheck", 1, None)
    for rounds in interim_looks(len(a)):
        job = Job("", "", {}, figures, a[:rounds], b[:rounds], rounds, 0)
        decider.look(job)
        if decider.enough:
            break
    if decider.trial is None:
        return Decided(UNDECIDED, len(a))
    said = decider.trial.comparisons()
    if any(map(is_slower, said)) or costs_of(job).faults(1):
        return Decided(CLOSED, rounds)
    if all(one.verdict is Relation.EQUIVALENT for one in said):
        return Decided(OPEN, rounds)
    return Decided(UNDECIDED, rounds)


class Noise:
    """How each figure is distributed: logarithms of the shape (launches or rounds, figures)."""

    def __init__(self, logs: NDArray[np.float64]) -> None:
        self._grids, self._heights = [], []
        for values in logs.T:
            grid = np.linspace(values.min() - 1.0, values.max() + 1.0, _NOISE_POINTS)
            low, high = np.quantile(values, [0.25, 0.75])
            width = max(_SMOOTHED * (high - low), _FINEST) / values.std()
            density = scipy.stats.gaussian_kde(values, width)(grid)
            self._grids.append(grid)
            self._heights.append(np.log(np.maximum(density, _RAREST)))

    def heights(self, place: int, logs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the logarithm of the density of a figure at some values."""
        return np.asarray(np.interp(logs, self._grids[place], self._heights[place]))

    def likelihoods(
        self, place: int, logs: NDArray[np.float64], slower: float, share: float = 1.0
    ) -> NDArray[np.float64]:
        """Return after each one the logarithm of how much likelier one is slower by a fraction.

        That may be so in a share of the launches alone.
        """
        moved, usual = (self.heights(place, x) for x in (logs - math.log1p(slower), logs))
        if share < 1.0:
            moved = np.logaddexp(moved + math.log(share), usual + math.log1p(-share))
        return np.asarray(np.cumsum(moved - usual))


def by_likelihood(one: Comparison) -> Decided:
    """Return what a sequential test of likelihood ratios says that knows everything.

    It knows which figure may be slower, by how much, and how the recording's launches of it are
    distributed (Wald, Sequential tests of statistical hypotheses, 1945): no rule without that
    knowledge needs fewer launches at its errors.
    """
    (place,) = one.places
    sums = one.noise.likelihoods(place, np.log(one.b[:, place]), one.change.factor - 1.0)
    bound = math.log((1 - _LIKELIHOOD_ERROR) / _LIKELIHOOD_ERROR)
    return _first(len(sums), sums >= bound, sums <= -bound)


def by_likelihoods(one: Comparison) -> Decided:
    """Return what such tests say that are asked what the gate is, and know no more of the hour.

    They know how launches of a round differ, and neither which figure may be slower nor how fast
    the machine is by now. They open when the slowdown that is to be ruled out of each size, and of
    each benchmark, is, and keep closed when it or twice as large a one is shown (by the mean of
    both ratios), at the error divided among all. Of what is slow now and then they know how often,
    and by how much.
    """
    apart = np.log(with_wholes(one.names, one.b) / with_wholes(one.names, one.a))
    sums, larger = (
        np.array([one.differences.likelihoods(k, apart[:, k], by) for k in range(apart.shape[1])])
        for by in (RULED_OUT, 2 * RULED_OUT)
    )
    either = np.logaddexp(sums, larger) - math.log(2)
    if one.change.every > 1:
        fault = one.change.factor - 1.0, 1 / one.change.every
        each = [one.differences.likelihoods(k, x, *fault) for k, x in enumerate(apart.T)]
        either = np.array(each)
    slower = either >= math.log(len(sums) / _LIKELIHOOD_ERROR)
    within = np.logical_or.accumulate(sums <= math.log(_LIKELIHOOD_ERROR), axis=1)
    return _first(len(apart), np.asarray(slower.any(axis=0)), np.asarray(within.all(axis=0)))


def _first(rounds: int, slower: NDArray[np.bool_], within: NDArray[np.bool_]) -> Decided:
    """Return the first decision, where it says after each round which there would be."""
    ends = np.flatnonzero(slower | within)
    if not len(ends):
        return Decided(UNDECIDED, rounds)
    return Decided(CLOSED if slower[ends[0]] else OPEN, int(ends[0]) + 1)


def with_wholes(names: Sequence[str], times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the times of all figures, and behind them the geometric mean of each benchmark's."""
    benchmarks = [name.partition("/")[0] for name in names]
    wholes = [
        np.exp(np.log(times[..., [one == name for one in benchmarks]]).mean(axis=-1))
        for name in dict.fromkeys(benchmarks)
    ]
    return np.concatenate([times, np.stack(wholes, axis=-1)], axis=-1)


def by_e_values(names: Sequence[str], a: NDArray[np.float64], b: NDArray[np.float64]) -> Decided:
    """Return what bets on the lots say: e-values, which hold at every look whatever the last is.

    A lot makes the sign of a difference a fair coin. Who stakes more on "B is slower" the larger a
    difference is, in units of the middle one so far, has his stake multiplied by exp(x) / cosh(x)
    (de la Pena, A general class of exponential inequalities for martingales, 1999), here of several
    stakes at once; a gain of one over the error is that unlikely (Ville). Gains on several figures
    may be averaged (Vovk and Wang, E-values: calibration, combination and applications, 2021).
    What such a test does not reject is a confidence sequence (Howard, Ramdas et al., 2021). Faults
    now and then are not ruled out, which spares it rounds that the gate takes.
    """
    apart = np.log(with_wholes(names, b) / with_wholes(names, a))
    slower = _gains(apart).mean(axis=1) >= 1.0 / (FAMILY_ERROR / 2)
    middle = np.array([np.median(apart[: n + 1], axis=0).max() for n in range(len(apart))])
    margin = math.log1p(RULED_OUT)
    within = np.logical_or.accumulate(_gains(margin - apart) >= 1.0 / RULING_OUT_ERROR, axis=0)
    closed = np.logical_or.accumulate(slower) & (middle > math.log1p(TOLERATED))
    return _first(len(a), closed, np.asarray(within.all(axis=1)))


def _gains(apart: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what a stake of one has become after each round, of the bet that all are positive."""
    sizes = [np.median(np.abs(apart[: n + 1]), axis=0) for n in range(len(apart))]
    scaled = np.clip(apart / np.maximum(sizes, 1e-9), -_FURTHEST, _FURTHEST)
    bets = np.array(_BETS)[:, None, None] * scaled
    return np.asarray(np.exp(np.cumsum(bets - np.log(np.cosh(bets)), axis=1)).mean(axis=0))


@dataclass(frozen=True)
class Comparison:
    """Launches of a stack's recording as those of A and B, with a ``change`` in B's ``places``.

    ``noise`` is that of all recorded launches, ``differences`` are those of the launches of a
    round, which took ``node_seconds``.
    """

    recording: str
    names: Sequence[str]
    change: Change
    places: Sequence[int]
    noise: Noise
    differences: Noise
    a: NDArray[np.float64]
    b: NDArray[np.float64]
    node_seconds: float


def comparisons(
    recorded: Mapping[str, Sequence[Launch]],
    most: int,
    times: int,
    changes: Sequence[Change] = CHANGES,
) -> Iterator[Comparison]:
    """Yield so many comparisons of each stack, recording and change, of ``most`` rounds each."""
    for number, (name, launches) in enumerate(recorded.items()):
        names = sorted(launches[0].microseconds)
        for stack in sorted({launch.stack for launch in launches}):
            held = recorded_rounds(launches, stack)
            logs = np.log(with_wholes(names, held))
            apart = logs[:, 1] - logs[:, 0]
            noise = Noise(logs.reshape(-1, logs.shape[-1]))
            differences = Noise(np.concatenate([apart, -apart]))
            seconds = [launch.noted.seconds for launch in launches if launch.stack == stack]
            for change in changes:
                lot = np.random.default_rng([number, len(stack), CHANGES.index(change)])
                for _ in range(times):
                    a, plain = drawn(held, most, lot)
                    b, places = changed(plain, names, change, lot)
                    each_s = 2 * float(np.mean(seconds))
                    yield Comparison(name, names, change, places, noise, differences, a, b, each_s)


def may_open(some: Sequence[Comparison]) -> list[Decided]:
    """Return what the gate says of those comparisons of a slower size that it may open.

    Those are the ones in which the slowdown is ruled out of that size by itself. Asking that of
    all of them at once, a column each, takes as long as asking it of one.
    """
    a, b = (
        np.stack([times[:, one.places[0]] for one, times in zip(some, side, strict=True)], axis=1)
        for side in ([one.a for one in some], [one.b for one in some])
    )
    trial = SequentialTest(Hypotheses(RULED_OUT, 0.0, RULING_OUT_ERROR, TOLERATED))
    for rounds in interim_looks(len(a)):
        trial.look(Rounds(a[:rounds], b[:rounds], [Better.LOWER] * len(some)))
    within = zip(some, trial.within[0], strict=True)
    return [at_the_gate(one.names, one.a, one.b) for one, rounds in within if rounds]


def by_the_field(slower: field.Rule, one: Comparison) -> Decided:
    """Return what a rule of the field says, that takes A's launches for what is known."""
    known = field.Known(list(one.a[:, None, :]), len(one.names))
    return Decided(CLOSED if slower(known, one.b).any() else OPEN, len(one.a))


def first(one: Comparison, rounds: int) -> Comparison:
    """Return the first rounds of a comparison."""
    return replace(one, a=one.a[:rounds], b=one.b[:rounds])


RULES: Mapping[str, Callable[[Comparison], Decided]] = {
    "ab": lambda one: compared(one.a, one.b, one.places),
    "gate": lambda one: at_the_gate(one.names, one.a, one.b),
    "e-values": lambda one: by_e_values(one.names, one.a, one.b),
    "likelihood of the size": by_likelihood,
    "likelihood of differences": by_likelihoods,
    **{name: functools.partial(by_the_field, rule) for name, rule in field.RULES.items()},
}
"""What is asked of a comparison; the likelihood of the size knows which one may be slower."""

Found = tuple[str, Change, Decided]
"""The recording, what was put into it, and what was said."""


def replayed(
    recorded: Mapping[str, Sequence[Launch]], most: int, times: int, how: str
) -> Iterator[Found]:
    """Yield what one of :data:`RULES` says of each of the :func:`comparisons`."""
    for one in comparisons(recorded, most, times):
        if how != "likelihood of the size" or one.change.where == SIZE:
            said = RULES[how](one)
            took = said.rounds * one.node_seconds
            yield one.recording, one.change, replace(said, node_seconds=took)


def by_e_divisive(
    recorded: Mapping[str, Sequence[Launch]], rounds: int, times: int, python: Path
) -> Iterator[Found]:
    """Yield what Otava says, where B's launches come behind A's; raises NoOtava."""
    made = list(comparisons(recorded, rounds, times))
    series = [
        (column, len(one.a)) for one in made for column in np.concatenate([one.a, one.b]).T.tolist()
    ]
    said = iter(otava.slower(python, series))
    for one in made:
        slower = any(list(itertools.islice(said, len(one.names))))
        took = len(one.a) * one.node_seconds
        yield one.recording, one.change, Decided(CLOSED if slower else OPEN, len(one.a), took)


def counted(found: Sequence[Found], change: Change) -> tuple[Counter[str], float, float]:
    """Return how often each answer was given to a change.

    The others are the mean rounds of the decided, and all node-seconds per decision.
    """
    mine = [decided for _, of, decided in found if of == change]
    rounds = [one.rounds for one in mine if one.answer != UNDECIDED]
    if not rounds:
        return Counter(one.answer for one in mine), math.nan, math.nan
    each_s = sum(one.node_seconds for one in mine) / len(rounds)
    return Counter(one.answer for one in mine), float(np.mean(rounds)), each_s
