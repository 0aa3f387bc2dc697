"""The search for the fastest way to run HPL: it asks for measurements and is told the results.

Nothing is run here. :func:`search` is a generator: it yields a :class:`Request`, is sent what was
:class:`Measured`, and returns an :class:`Outcome`. So it can be tried on simulated machines.

The choices are made one after the other, the weightiest first, each on a problem far smaller than
the one it is made for, since the time grows with N^3. The candidates of a choice are measured in
turn, round after round, and compared within each round, so that a disturbance that lasts longer
than a round cancels out and a shorter one is an outlier that does not count; what is clearly worse
is dropped early. For NB there is more to know: DGEMM at k = NB is what HPL comes to as N grows, so
that a rate on a small problem predicts that on a large one, and what is compared is predicted. At
the end the best must prove itself beside the start, on the largest problem that the time allows.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from clustergate.benchmarks.hpl.sizing import hpl_problem_size_for_time, predict_hpl_seconds
from clustergate.model import ClustergateError, Estimate
from clustergate.tuning.contests import FIRST_SPREAD, TIE, Contest, RatePrediction
from clustergate.tuning.space import (
    FREED_MEMORY,
    HUGE_PAGES,
    KERNELS,
    LAYOUT,
    NB,
    Choice,
    Configuration,
    Space,
    batches,
)

FIRST_ROUNDS = 3
"""The fewest of which one can be told to be an outlier."""

MORE_ROUNDS = 2
MOST_ROUNDS = 20
ENOUGH_ROUNDS = 16
"""However noisy the machine is, a problem is not made smaller for the sake of more rounds."""

EXACT = 0.005
"""Standard error to aim at, as a fraction: it makes a wrong choice cost less than 1 %."""

CHANCE = 0.5
CHANCE_OF_OPTIONS = 1.0
"""Standard errors that a departure from HPL's default must gain at least: more for HPL's options,
which are many and worth little, so that one of them always seems to gain."""

LARGEST_SOLVE = 0.12
"""Share of the time budget that the largest single solve may take."""

BLOCKS = 4
"""A problem with fewer blocks for each row and column of a square grid says nothing of others."""

DECENT = 1.5
"""Times the smallest order: below it, a larger problem is worth more than more rounds."""

PREDICTED_SECONDS = 60.0
"""The rates that are predicted are those of problems that take so long to solve."""

STEP = 768
"""Orders are multiples of this and so of 96, 128, 192, 256 and 384: few blocks are cut short."""

SMALLEST_STEPS = 2

TOGETHER = "all together"

# What each part of the search may have taken of the budget when it ends.
_END_OF_FIRST_LOOK = 0.05
_END_OF_WEIGHTY = {KERNELS: 0.12, HUGE_PAGES: 0.19, LAYOUT: 0.36, NB: 0.56, FREED_MEMORY: 0.62}
_END_OF_OPTIONS = 0.75
_END_OF_PROOF = 0.85


@dataclass(frozen=True)
class Request:
    """What to measure: each configuration once in every round, round after round."""

    configurations: tuple[Configuration, ...]
    n: int
    rounds: int
    purpose: str


@dataclass(frozen=True)
class Measured:
    """What came out.

    ``gflops`` holds one value per round for each configuration that ran, ``refused`` the reason why
    another did not. ``seconds`` is the time it all took, of which ``launches`` starts of the
    program.
    """

    gflops: Mapping[Configuration, tuple[float, ...]]
    seconds: float
    launches: int = 1
    refused: Mapping[Configuration, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Worth:
    """What a choice is worth: the chosen value's gain over another, as a fraction.

    ``gain`` is that of the rate at order ``n``, all else being equal, with its interval; when it is
    ``predicted``, it was measured at a smaller order.
    """

    choice: str
    chosen: str
    against: str
    gain: Estimate
    n: int
    predicted: bool = False


@dataclass(frozen=True)
class Outcome:
    """What the search found.

    ``rates`` are Gflop/s by order of the best configuration, ascending. ``total`` is the gain over
    the start. ``refused`` tells what did not run and why, ``not_tried`` the choices for which the
    time was too short. ``spread`` is by how much two runs of the same differ, as a fraction.
    """

    best: Configuration
    rates: Mapping[int, float]
    total: Worth | None
    worths: tuple[Worth, ...]
    refused: tuple[str, ...]
    not_tried: tuple[str, ...]
    seconds: float
    spread: float

    @property
    def n(self) -> int:
        """The largest order that was measured."""
        return max(self.rates)

    @property
    def gflops(self) -> float:
        """The rate at the largest order."""
        return self.rates[self.n]


@dataclass(frozen=True)
class Limits:
    """What the search must keep to.

    ``seconds`` of measuring in all, matrices of order ``n_max`` at most; ``gflops`` is a first
    guess of the rate.
    """

    seconds: float
    n_max: int
    gflops: float


Search = Generator[Request, Measured, Outcome]
_Result = TypeVar("_Result")
_Asking = Generator[Request, Measured, _Result]


def search(space: Space, limits: Limits) -> Search:
    """Search the space; see the module. Raises ClustergateError when the start does not run."""
    return _Search(space, limits).run()


@dataclass
class _Clock:
    """Predicts how long a measurement takes, and learns from how long they took."""

    gflops: float
    launch_seconds: float = 1.0
    seconds_per_element: float = 2e-8
    spent: float = 0.0

    def solve_seconds(self, n: int) -> float:
        """Return the time of one solve with the set-up and the check of its matrix."""
        return predict_hpl_seconds(n, self.gflops) + self.seconds_per_element * n * n

    def seconds(self, configurations: Sequence[Configuration], n: int, rounds: int) -> float:
        groups = len(batches(configurations))
        launches = 1 if groups == 1 else groups * rounds
        solves = len(configurations) * rounds
        return launches * self.launch_seconds + solves * self.solve_seconds(n)

    def learn(self, n: int, answer: Measured) -> None:
        """Take the rate, and what a solve takes besides the solving."""
        self.spent += answer.seconds
        if rates := _all_rates(answer):
            rest = answer.seconds - _solving(n, rates) - answer.launches * self.launch_seconds
            self.seconds_per_element = max(2e-9, rest / len(rates) / n**2)
            self.gflops = statistics.median(rates)

    def learn_launch(self, n: int, answer: Measured) -> None:
        """Take what a start of the program takes, from a problem that takes little itself."""
        rates = _all_rates(answer)
        besides = _solving(n, rates) + len(rates) * self.seconds_per_element * n**2
        self.launch_seconds = max(0.05, (answer.seconds - besides) / answer.launches)


def _all_rates(answer: Measured) -> list[float]:
    return [rate for rates in answer.gflops.values() for rate in rates]


def _solving(n: int, rates: Iterable[float]) -> float:
    return sum(predict_hpl_seconds(n, rate) for rate in rates)


class _Search:
    """One search: the best so far, and what has been learned on the way."""

    def __init__(self, space: Space, limits: Limits) -> None:
        self.space = space
        self.limits = limits
        self.clock = _Clock(limits.gflops)
        self.best = space.start
        self.spread = FIRST_SPREAD
        self.rates: dict[int, float] = {}
        self.worths: list[Worth] = []
        self.total: Worth | None = None
        self.refused: dict[str, None] = {}
        self.not_tried: list[str] = []

    def run(self) -> Search:
        """Make the choices in their order, prove the best, and measure ever larger problems."""
        yield from self.calibrate()
        budget = self.limits.seconds
        for choice in self.space.choices:
            if end := _END_OF_WEIGHTY.get(choice.name):
                yield from self.choose(choice, end * budget)
        options = [choice for choice in self.space.choices if choice.name not in _END_OF_WEIGHTY]
        while options := [choice for choice in options if choice.matters(self.best)]:
            left = _END_OF_OPTIONS * budget - self.clock.spent
            yield from self.choose(options[0], self.clock.spent + left / len(options))
            options = options[1:]
        yield from self.prove()
        yield from self.grow()
        return Outcome(
            best=self.best,
            rates=dict(sorted(self.rates.items())),
            total=self.total,
            worths=tuple(self.worths),
            refused=tuple(self.refused),
            not_tried=tuple(self.not_tried),
            seconds=self.clock.spent,
            spread=self.spread,
        )

    # --- the steps

    def calibrate(self) -> _Asking[None]:
        """Learn how long a start of the program takes, then how fast the machine is."""
        smallest = min(self.smallest_order([self.best]), self.limits.n_max)
        for n, rounds in ((smallest, 1), (min(2 * smallest, self.limits.n_max), FIRST_ROUNDS)):
            answer = yield from self.ask([self.best], n, rounds, "first look")
            if self.best not in answer.gflops:
                why = answer.refused.get(self.best, "it printed no result")
                raise ClustergateError("tuning.defaults-fail", why=why)
            self.rates = {n: max(answer.gflops[self.best])}
            if n == smallest:
                self.clock.learn_launch(n, answer)
            following = self.clock.seconds([self.best], 2 * n, FIRST_ROUNDS)
            if self.clock.spent + following > _END_OF_FIRST_LOOK * self.limits.seconds:
                return

    def choose(self, choice: Choice, end: float) -> _Asking[None]:
        """Make a choice on a small problem, until ``end`` seconds are spent."""
        seconds = end - self.clock.spent
        running = self.affordable(choice, choice.variants(self.best), seconds)
        if len(running) < 2:
            return
        prediction = self.prediction() if choice.name == NB else None
        contest = Contest(self.order_for(running, seconds), self.spread, prediction)
        in_time = True
        while in_time and len(running) > 1 and contest.count < MOST_ROUNDS:
            running = yield from self.race(contest, running, choice.name)
            in_time = self.fits(running, contest.n, MORE_ROUNDS, end - self.clock.spent)
        self.settle(choice, contest)

    def race(
        self, contest: Contest, running: Sequence[Configuration], purpose: str
    ) -> _Asking[list[Configuration]]:
        """Measure candidates for some rounds, and return those that may still be the best."""
        rounds = MORE_ROUNDS if contest.count else FIRST_ROUNDS
        answer = yield from self.ask(running, contest.n, rounds, purpose)
        running = [c for c in running if c in answer.gflops]
        if not running:
            why = "; ".join(answer.refused.values()) or "it printed no result"
            raise ClustergateError("tuning.fails-now", why=why)
        contest.add(answer.gflops)
        if contest.prediction is None:
            self.spread = contest.spread
        return contest.undecided(running)

    def settle(self, choice: Choice, contest: Contest) -> None:
        """Take the winner of a contest and note what it gains over the start, and over the next."""
        incumbent, leader = self.best, contest.ranked()[0]
        chance = CHANCE if choice.name in _END_OF_WEIGHTY else CHANCE_OF_OPTIONS
        if contest.have_met(leader, incumbent):
            gain = math.log1p(contest.gain(leader, incumbent).value)
            if gain <= max(TIE, chance * contest.standard_error(leader, incumbent)):
                leader = incumbent
        self.best = leader
        others = [c for c in contest.ranked() if c != leader and contest.have_met(leader, c)]
        against = dict.fromkeys([c for c in others if c == incumbent] + others[:1] + others[-1:])
        self.worths += [
            Worth(
                choice.name,
                choice.label(leader),
                choice.label(other),
                contest.gain(leader, other),
                contest.predicted_n,
                predicted=contest.predicted_n > contest.n,
            )
            for other in against
        ]

    def prove(self) -> _Asking[None]:
        """Measure the best beside the start, which it must beat on a larger problem as well."""
        start, candidates = self.space.start, [self.best, self.space.start]
        end = _END_OF_PROOF * self.limits.seconds
        seconds = end - self.clock.spent
        n = self.order_for(candidates, seconds)
        if self.best == start or not self.fits(candidates, n, FIRST_ROUNDS, seconds):
            return
        contest = Contest(n, self.spread)
        while not contest.count or (
            contest.count < ENOUGH_ROUNDS
            and self.fits(candidates, n, MORE_ROUNDS, end - self.clock.spent)
        ):
            yield from self.race(contest, candidates, "proof")
        if not contest.have_met(self.best, start):
            return
        gain = contest.gain(self.best, start)
        if gain.value <= 0:
            self.best, self.worths = start, []
        else:
            self.total = Worth(TOGETHER, "the best", "HPL's defaults", gain, n)
        self.rates = {n: contest.rate(self.best)}

    def grow(self) -> _Asking[None]:
        """Measure the best on ever larger problems, the last as large as the budget allows."""
        for share in (0.2, 0.85):
            seconds = share * (self.limits.seconds - self.clock.spent)
            n = self.largest_order([self.best], 1, seconds) or 0
            if not self.rates:
                n = max(n, min(self.smallest_order([self.best]), self.limits.n_max))
            if n > max(self.rates, default=0):
                answer = yield from self.ask([self.best], n, 1, "N")
                if self.best in answer.gflops:
                    self.rates[n] = answer.gflops[self.best][0]

    # --- what the steps use

    def prediction(self) -> RatePrediction | None:
        """Return what predicts the rates of large problems, where DGEMM was measured."""
        if not self.space.dgemm_gflops:
            return None
        n = hpl_problem_size_for_time(PREDICTED_SECONDS, self.clock.gflops, STEP, self.limits.n_max)
        return RatePrediction(n, self.space.dgemm_gflops)

    @property
    def rounds_wanted(self) -> range:
        """The rounds that tell candidates apart on a machine as noisy as this one, down to few."""
        wanted = math.ceil((self.spread / EXACT) ** 2)
        return range(min(max(FIRST_ROUNDS, wanted), ENOUGH_ROUNDS), FIRST_ROUNDS - 1, -1)

    def ask(
        self, configurations: Sequence[Configuration], n: int, rounds: int, purpose: str
    ) -> _Asking[Measured]:
        """Ask for a measurement and learn from the answer."""
        answer = yield Request(tuple(configurations), n, rounds, purpose)
        self.clock.learn(n, answer)
        self.refused.update(dict.fromkeys(answer.refused.values()))
        return answer

    def smallest_order(self, candidates: Sequence[Configuration]) -> int:
        """Return the smallest order at which all of the candidates have enough blocks."""
        needed = max(
            c.nb * max(BLOCKS * math.sqrt(c.ranks), 1.5 * max(c.p, c.q)) for c in candidates
        )
        return max(SMALLEST_STEPS, math.ceil(needed / STEP)) * STEP

    def order_for(self, candidates: Sequence[Configuration], seconds: float) -> int:
        """Return the order for comparing candidates in some time.

        Rather fewer rounds than a problem that is hardly one; in the end the smallest there is.
        """
        smallest = self.smallest_order(candidates)
        for rounds in self.rounds_wanted:
            largest = self.largest_order(candidates, rounds, seconds)
            if largest is not None and (largest >= DECENT * smallest or rounds == FIRST_ROUNDS):
                return largest
        return smallest

    def largest_order(
        self, candidates: Sequence[Configuration], rounds: int, seconds: float
    ) -> int | None:
        """Return the largest order whose rounds end in time, None where not even the smallest."""
        smallest = self.smallest_order(candidates)
        step = max(1, smallest // 8 // STEP) * STEP
        largest = None
        for n in range(smallest, self.limits.n_max + 1, step):
            too_long = self.clock.solve_seconds(n) > LARGEST_SOLVE * self.limits.seconds
            if too_long or not self.fits(candidates, n, rounds, seconds):
                break
            largest = n
        return largest

    def fits(
        self, candidates: Sequence[Configuration], n: int, rounds: int, seconds: float
    ) -> bool:
        """Tell whether some rounds end in time."""
        return self.clock.seconds(candidates, n, rounds) <= seconds

    def affordable(
        self, choice: Choice, candidates: Sequence[Configuration], seconds: float
    ) -> list[Configuration]:
        """Return what can be compared in time: without those that need the largest problems."""
        kept = list(candidates)
        while len(kept) > 1 and self.largest_order(kept, FIRST_ROUNDS, seconds) is None:
            kept.remove(max(kept[1:], key=lambda c: (self.smallest_order([c]), kept.index(c))))
        left_out = [choice.label(c) for c in candidates if c not in kept]
        if left_out:
            self.not_tried.append(f"{choice.name} ({', '.join(left_out)})")
        return kept
