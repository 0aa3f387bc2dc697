"""The course of a screening: every node alone, rounds of pairs, all again where there is too much
noise, then whatever is in doubt.

It knows neither processes nor files: who runs launches, notes results and looks at the clock comes
in from outside.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from clustergate.screening import rounds as pairing
from clustergate.screening.findings import FEWEST, TOO_NOISY, Screening, analyse
from clustergate.screening.further import further_nodes, further_rounds
from clustergate.screening.localisation import Located
from clustergate.screening.measures import ALONE, PAIRS, Result
from clustergate.screening.plan import Order, Plan

# What is kept for doubts of the time that a screening may take.
_FOR_DOUBTS = 0.2
# The noise of a median falls with the square root of the launches: more often it is not worth it.
_MOST_REPEATS = 4


@dataclass(frozen=True)
class Task:
    """One launch: an order on the nodes of these names; ``number`` is unique in the screening."""

    order: Order
    nodes: tuple[str, ...]
    turn: int
    number: int


RunBatch = Callable[[Sequence[Task]], Iterable[Result]]
"""Runs launches that do not disturb each other, and yields their results as they come."""


class Campaign:
    """A screening that goes on from the results that are there.

    ``run_batch`` runs launches, ``note`` is told results and sentences, ``elapsed_s`` how many
    seconds were used.
    """

    def __init__(
        self,
        plan: Plan,
        names: Sequence[str],
        results: Sequence[Result],
        run_batch: RunBatch,
        note: Callable[[str, object], None],
        elapsed_s: Callable[[], float],
    ) -> None:
        self._plan = plan
        self._names = tuple(names)
        self.results = list(results)
        self._run_batch = run_batch
        self._note = note
        self._elapsed_s = elapsed_s
        self._index = {name: k for k, name in enumerate(self._names)}
        self._numbers = itertools.count(len(self.results))
        self._done = Counter((r.turn, frozenset(r.nodes)) for r in results)
        self._longest_s: dict[str, float] = {}

    def run(self) -> Screening:
        """Go through all of it and return what it says."""
        self._alone()
        if self._plan.pair is not None and len(self._names) > 1:
            self._rounds(self._plan.pair)
        self._repeat_the_noisy()
        self._doubts()
        return self._analysed()

    def _analysed(self) -> Screening:
        switches = self._plan.switches
        known = bool(switches) and all(name in switches for name in self._names)
        return analyse(
            self._names,
            self.results,
            {name: switches[name] for name in self._names} if known else None,
            self._plan.what,
        )

    @property
    def _everybody(self) -> list[tuple[str, ...]]:
        return [(name,) for name in self._names]

    def _alone(self) -> None:
        for turn, order in enumerate(self._plan.alone):
            self._batch(turn, order, self._everybody)

    @property
    def _wanted_rounds(self) -> int:
        planned = pairing.number_of_rounds(len(self._names))
        return planned if self._plan.rounds is None else min(self._plan.rounds, planned)

    def _planned_rounds(self) -> Iterator[pairing.Pairs]:
        return pairing.rounds(len(self._names), self._wanted_rounds, self._plan.seed)

    def _rounds(self, order: Order) -> None:
        first = len(self._plan.alone)
        planned, wanted = pairing.number_of_rounds(len(self._names)), self._wanted_rounds
        for turn, members in enumerate(self._planned_rounds(), start=first):
            if not self._has_time(1 - _FOR_DOUBTS, order):
                done = turn - first
                self._note(
                    "note",
                    f"the time was over after {done} of {wanted} rounds; "
                    f"{100 * done / planned:.0f} % of all pairs were measured",
                )
                return
            self._batch(turn, order, self._named(members))

    def _repeat_the_noisy(self) -> None:
        """Measure all again, each thing like the first time, while too little could be seen."""
        if len(self._names) < FEWEST:
            return
        for _ in range(_MOST_REPEATS):
            found = self._analysed().located
            noisy = {key for key, one in found.items() if one.threshold > TOO_NOISY}
            batches = [
                (order, self._everybody)
                for order in self._plan.alone
                if any(m.key in noisy and m.kind == order.kind for m in ALONE)
            ]
            if self._plan.pair is not None and any(m.key in noisy for m in PAIRS):
                pairs = map(self._named, self._planned_rounds())
                batches += [(self._plan.pair, members) for members in pairs]
            if not batches:
                return
            for turn, (order, members) in enumerate(batches, start=self._next_turn()):
                if not self._has_time(1 - _FOR_DOUBTS, order):
                    return
                self._batch(turn, order, members)

    def _next_turn(self) -> int:
        return max((r.turn for r in self.results), default=0) + 1

    def _doubts(self) -> None:
        """Measure again what is in doubt, until it is settled, or time or rounds are used up."""
        turn = self._next_turn()
        for _ in range(self._plan.most_further):
            found = self._analysed().located
            random = np.random.default_rng([self._plan.seed, turn])
            batches = list(self._further(found, random))
            if not batches:
                return
            for order, nodes in batches:
                if not self._has_time(1.0, order):
                    self._note("note", "the time was over before all doubts were settled")
                    return
                self._batch(turn, order, nodes)
                turn += 1

    def _further(
        self, found: Mapping[str, Located], random: np.random.Generator
    ) -> Iterator[tuple[Order, list[tuple[str, ...]]]]:
        for order in self._plan.alone:
            keys = [m.key for m in ALONE if m.key in found and m.kind == order.kind]
            again = further_nodes([found[key] for key in keys], len(self._names), random)
            if again:
                yield order, [(self._names[n],) for n in again]
        if self._plan.pair is not None:
            located = [found[m.key] for m in PAIRS if m.key in found]
            measured = [
                [self._index[n] for n in r.nodes] for r in self.results if len(r.nodes) == 2
            ]
            for members in further_rounds(len(self._names), measured, located, random):
                yield self._plan.pair, self._named(members)

    def _named(self, members: pairing.Pairs) -> list[tuple[str, ...]]:
        return [tuple(self._names[n] for n in pair) for pair in members.tolist()]

    def _has_time(self, share: float, order: Order) -> bool:
        """Tell whether another batch, as long as the longest of its kind, fits into that share."""
        longest_s = self._longest_s.get(order.kind, 0.0)
        return self._elapsed_s() + longest_s <= share * self._plan.seconds

    def _batch(self, turn: int, order: Order, nodes: Sequence[tuple[str, ...]]) -> None:
        """Run one order on disjoint nodes at once, without those that were done before."""
        tasks = [
            Task(order, members, turn, next(self._numbers))
            for members in nodes
            if not self._done[turn, frozenset(members)]
        ]
        if not tasks:
            return
        begun = self._elapsed_s()
        for result in self._run_batch(tasks):
            self.results.append(result)
            self._done[turn, frozenset(result.nodes)] += 1
            self._note("result", result)
        took_s = self._elapsed_s() - begun
        self._longest_s[order.kind] = max(self._longest_s.get(order.kind, 0.0), took_s)
