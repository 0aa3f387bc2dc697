"""The search for the fastest way to run HPL: it asks for measurements and is told the results.

Nothing is run here. :func:`search` is a generator: it yields a :class:`Request`, is sent what was
:class:`Measured`, and returns an :class:`Outcome`. So it can be tried on simulated machines.

How it saves time beside a full sweep: the choices are made one after the other, the weightiest
first; a choice is made on a problem far smaller than the one it is made for, since the time grows
with N^3; and candidates that are clearly worse are dropped early. The candidates of a choice are
measured in turn, round after round, and compared within each round, so that a disturbance that
lasts longer than a round cancels out and a shorter one is an outlier that does not count. What the
small problem cannot tell (a larger NB, more threads gain with N) is decided on a larger one between
the few that come near the best. For NB there is more to know: DGEMM at k = NB is what HPL comes to
as N grows, so that a rate on a small problem predicts that on a large one, and what is compared is
predicted. At the end each departure from HPL's defaults must prove its worth: the best is measured
beside itself with that one choice taken back.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

from clustergate.benchmarks.hpl.sizing import hpl_problem_size_for_time, predict_hpl_seconds
from clustergate.model import ClustergateError, Estimate
from clustergate.tuning.contests import (
    CONFIDENCE,
    DOUBT,
    FIRST_SPREAD,
    TIE,
    Contest,
    RatePrediction,
)
from clustergate.tuning.space import (
    FREED_MEMORY,
    HUGE_PAGES,
    KERNELS,
    LAYOUT,
    NB,
    NB_FINE,
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

NEAR = 0.03
"""What comes this near to the best on a small problem, as a fraction, may be the best on a larger
one."""

FINE_SHARE = 0.25
FINALISTS = 3
LARGER = 1.2
"""A larger problem that is not larger by this factor tells nothing new."""

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
_END_OF_WEIGHTY = {KERNELS: 0.11, HUGE_PAGES: 0.19, LAYOUT: 0.36, NB: 0.54, FREED_MEMORY: 0.60}
_END_OF_OPTIONS = 0.70
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
        """Return the time of a request."""
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


def _worth(choice: Choice, contest: Contest, one: Configuration, other: Configuration) -> Worth:
    """Return what a contest says of one configuration's value of a choice over another's."""
    gain = contest.gain(one, other)
    names = choice.name, choice.label(one), choice.label(other)
    return Worth(*names, gain, contest.predicted_n, predicted=contest.predicted_n > contest.n)


class _Gain(NamedTuple):
    """The logarithm of a ratio of rates, and its standard error."""

    log: float
    error: float


def _combined_gain(contests: Sequence[Contest], one: Configuration, other: Configuration) -> _Gain:
    """Return what contests of rising order tell of a gain.

    The last one's word is taken as it is, that of the earlier ones with a doubt.
    """
    return _mean_gain(
        _Gain(
            math.log1p(contest.gain(one, other).value),
            math.hypot(contest.standard_error(one, other), 0 if contest is contests[-1] else DOUBT),
        )
        for contest in contests
        if contest.have_met(one, other)
    )


def _mean_gain(gains: Iterable[_Gain]) -> _Gain:
    """Return the mean of several gains, weighted by how exact they are."""
    weighted = [(1 / one.error**2, one.log) for one in gains]
    weights = sum(weight for weight, _ in weighted)
    return _Gain(sum(w * gain for w, gain in weighted) / weights, 1 / math.sqrt(weights))


def _estimate(gain: _Gain, samples: int) -> Estimate:
    """Return a gain as a fraction, with its normal interval."""
    half = statistics.NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * gain.error
    low, high = math.expm1(gain.log - half), math.expm1(gain.log + half)
    return Estimate(math.expm1(gain.log), low, high, CONFIDENCE, samples)


class _Search:
    """One search: the best so far, and what has been learned on the way."""

    def __init__(self, space: Space, limits: Limits) -> None:
        self.space = space
        self.limits = limits
        self.clock = _Clock(limits.gflops)
        self.best = space.start
        self.spread = FIRST_SPREAD
        self.rates: dict[int, float] = {}
        self.departures: dict[str, _Gain] = {}
        self.worths: dict[str, list[Worth]] = {}
        self.total: Worth | None = None
        self.refused: dict[str, None] = {}
        self.not_tried: list[str] = []

    def run(self) -> Search:
        """Make the choices in their order, prove them, and measure ever larger problems."""
        yield from self.calibrate()
        for choice in self.space.choices:
            if end := _END_OF_WEIGHTY.get(choice.name):
                yield from self.choose_weighty(choice, end * self.limits.seconds)
        options = [choice for choice in self.space.choices if choice.name not in _END_OF_WEIGHTY]
        while options := [choice for choice in options if choice.matters(self.best)]:
            left = _END_OF_OPTIONS * self.limits.seconds - self.clock.spent
            yield from self.choose(options[0], self.clock.spent + left / len(options))
            options = options[1:]
        yield from self.prove()
        yield from self.grow()
        return Outcome(
            best=self.best,
            rates=dict(sorted(self.rates.items())),
            total=self.total,
            worths=tuple(worth for worths in self.worths.values() for worth in worths),
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
        candidates = self.affordable(choice, choice.variants(self.best), seconds)
        if len(candidates) < 2:
            return
        n = self.order_for(candidates, seconds)
        contest = Contest(n, self.spread)
        yield from self.race(choice, contest, candidates, end)
        self.settle(choice, [contest])

    def choose_weighty(self, choice: Choice, end: float) -> _Asking[None]:
        """Make a choice on a small problem, and between those near the best on a larger one.

        Of NB the coarse values come first, then those about the best of them.
        """
        begin, seconds = self.clock.spent, end - self.clock.spent
        share = FINE_SHARE if choice.name == NB else 0.5
        running = self.affordable(choice, choice.variants(self.best), share * seconds)
        if len(running) < 2:
            return
        prediction = self.prediction() if choice.name == NB else None
        contest = Contest(self.order_for(running, share * seconds), self.spread, prediction)
        contests = [contest]
        running = yield from self.race(choice, contest, running, begin + share * seconds)
        if choice.name == NB and len(finer := self.about(choice, contest)) > 1:
            contest = Contest(contest.n, self.spread, prediction)
            contests.append(contest)
            running = yield from self.race(choice, contest, finer, begin + 2 * share * seconds)
        finalists = contest.near(NEAR)[:FINALISTS]
        while len(finalists) > 1:
            left = end - self.clock.spent
            larger = self.order_for(finalists, left)
            if larger > LARGER * contest.n and self.fits(finalists, larger, FIRST_ROUNDS, left):
                contests.append(Contest(larger, self.spread, prediction))
                yield from self.race(choice, contests[-1], finalists, end)
                break
            finalists.pop()
        else:
            # The time for another round is not the time for a larger problem.
            if len(running) > 1 and self.fits(
                running, contest.n, MORE_ROUNDS, end - self.clock.spent
            ):
                yield from self.race(choice, contest, running, end)
        self.settle(choice, contests)

    def about(self, choice: Choice, contest: Contest) -> list[Configuration]:
        """Return the best of the coarse values of NB, its near rivals, and what lies about it."""
        near = contest.near(NEAR)
        measured = sorted(c.nb for c in contest.configurations)
        place = measured.index(near[0].nb)
        below = measured[place - 1] if place > 0 else 0
        above = measured[place + 1] if place + 1 < len(measured) else math.inf
        finer = [nb for nb in NB_FINE if below < nb < above and nb not in measured]
        finest = [choice.with_value(near[0], (nb,)) for nb in finer]
        affordable = [c for c in finest if self.smallest_order([c]) <= contest.n]
        return [*near[:FINALISTS], *affordable] if affordable else []

    def race(
        self, choice: Choice, contest: Contest, running: Sequence[Configuration], end: float
    ) -> _Asking[list[Configuration]]:
        """Measure candidates round after round, fewer and fewer, until it is decided or late.

        Returns those that may still be the best.
        """
        running = list(running)
        while True:
            rounds = MORE_ROUNDS if contest.count else FIRST_ROUNDS
            answer = yield from self.ask(running, contest.n, rounds, choice.name)
            running = [c for c in running if c in answer.gflops]
            if not running:
                why = "; ".join(answer.refused.values()) or "it printed no result"
                raise ClustergateError("tuning.fails-now", why=why)
            contest.add(answer.gflops)
            running = contest.undecided(running)
            if contest.prediction is None:
                self.spread = contest.spread
            in_time = self.fits(running, contest.n, MORE_ROUNDS, end - self.clock.spent)
            if not in_time or len(running) == 1 or contest.count >= MOST_ROUNDS:
                return running

    def settle(self, choice: Choice, contests: Sequence[Contest]) -> None:
        """Take the winner of the last contest and note what it gains over the others."""
        ranked = contests[-1].near(0.0)
        finalists = [*ranked, *(c for c in contests[-1].configurations if c not in ranked)]
        incumbent, reference = self.best, finalists[0]
        leader = max(
            finalists,
            key=lambda c: _combined_gain(contests, c, reference).log if c != reference else 0.0,
        )
        if leader != incumbent and any(c.have_met(leader, incumbent) for c in contests):
            gain = _combined_gain(contests, leader, incumbent)
            self.departures[choice.name] = _Gain(gain.log, math.hypot(gain.error, DOUBT))
            chance = CHANCE if choice.name in _END_OF_WEIGHTY else CHANCE_OF_OPTIONS
            if gain.log <= max(TIE, chance * gain.error):
                leader = incumbent
        self.best = leader
        gains: dict[Configuration, Worth] = {}
        for contest in contests:
            for other in contest.configurations:
                if leader != other and contest.have_met(leader, other):
                    gains[other] = _worth(choice, contest, leader, other)
        by_gain = sorted(gains.values(), key=lambda worth: worth.gain.value)
        self.worths[choice.name] = list(dict.fromkeys([*by_gain[:1], *by_gain[-1:]]))

    def prove(self) -> _Asking[None]:
        """Measure the best beside itself with each departure taken back, and beside the start."""
        start, best = self.space.start, self.best
        departures = [c for c in self.space.choices if c.value(best) != c.value(start)]
        without = {c.name: c.with_value(best, c.value(start)) for c in departures}
        candidates = list(dict.fromkeys([best, start, *without.values()]))
        seconds = _END_OF_PROOF * self.limits.seconds - self.clock.spent
        n = self.order_for(candidates, seconds)
        rounds = next((r for r in self.rounds_wanted if self.fits(candidates, n, r, seconds)), 0)
        if not departures:
            return
        self.rates = {}
        if not rounds:
            return
        answer = yield from self.ask(candidates, n, rounds, "proof")
        contest = Contest(n, self.spread)
        contest.add(answer.gflops)
        predicted = Contest(n, self.spread, self.prediction())
        predicted.add(answer.gflops)
        for choice in departures:
            other = without[choice.name]
            judge = predicted if choice.name == NB else contest
            if contest.have_met(best, other):
                worth = _worth(choice, judge, best, other)
                earlier = [w for w in self.worths[choice.name] if w.against != worth.against]
                gains = [_Gain(math.log1p(worth.gain.value), judge.standard_error(best, other))]
                if before := self.departures.get(choice.name):
                    gains.append(before)
                if _mean_gain(gains).log > 0:
                    proven = replace(worth, gain=_estimate(_mean_gain(gains), worth.gain.samples))
                    self.worths[choice.name] = [proven, *earlier]
                else:
                    self.best = choice.with_value(self.best, choice.value(start))
                    self.worths[choice.name] = [_worth(choice, judge, other, best)]
        if self.best in contest.configurations:
            best = self.best
            self.rates = {n: contest.rate(best)}
        if best != start and contest.have_met(best, start):
            # What was taken back gained nothing, so the gain without it is the same.
            self.total = Worth(TOGETHER, "the best", "HPL's defaults", contest.gain(best, start), n)

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
