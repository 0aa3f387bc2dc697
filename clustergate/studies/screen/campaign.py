"""The course of a screening: every node alone, rounds of pairs, then whatever is in doubt again,
and all of it where there is too much noise.

It knows neither processes nor files: who runs launches, notes results and looks at the clock comes
in from outside.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from clustergate.launch.plan import Contender
from clustergate.studies.screen import rounds as pairing
from clustergate.studies.screen.findings import FEWEST, Screening, analyse
from clustergate.studies.screen.further import (
    further_nodes,
    further_rounds,
    room_for_more,
    settle,
    should_repeat,
)
from clustergate.studies.screen.localisation import Located
from clustergate.studies.screen.measures import ALONE, MEASURES, PAIRS, Measure, Result
from clustergate.studies.screen.plan import EACH, Plan

# What is kept for doubts of the time that a screening may take.
_FOR_DOUBTS = 0.2
# Of seven launches that are slow one time in three, one is with 94 %.
_FEWEST_OF_A_NODE = 7
# While pairs are in doubt, nodes alone are measured again each third time: by then pairs have
# accused whom they can.
_NODES_TOO = 3
# In such a part of a repetition it is looked whether it was enough.
_LOOKS = 4

Batch = tuple[Contender, list[tuple[str, ...]]]


@dataclass(frozen=True)
class Task:
    """One launch on the nodes of these names; ``number`` is unique in the screening."""

    contender: Contender
    nodes: tuple[str, ...]
    turn: int
    number: int


RunBatch = Callable[[Sequence[Task]], Iterable[Result]]
"""Runs launches that do not disturb each other, and yields their results as they come."""


class Campaign:
    """A screening that goes on from the results that are there.

    ``run_batch`` runs launches and notes them, ``note`` is told sentences, ``elapsed_s`` how many
    seconds were used.
    """

    def __init__(
        self,
        plan: Plan,
        names: Sequence[str],
        results: Sequence[Result],
        run_batch: RunBatch,
        note: Callable[[str], None],
        elapsed_s: Callable[[], float],
    ) -> None:
        self._plan = plan
        self._each, self._pair = plan.launched(EACH), plan.pair
        self._names = tuple(names)
        self.results = list(results)
        self._run_batch = run_batch
        self._note = note
        self._elapsed_s = elapsed_s
        self._index = {name: k for k, name in enumerate(self._names)}
        self._numbers = itertools.count(len(self.results))
        self._done = Counter((r.turn, frozenset(r.nodes)) for r in results)
        self._longest_s: dict[str, float] = {}
        self._analysed: tuple[int, Screening] | None = None

    def run(self) -> Screening:
        """Go through all of it and return what it says."""
        planned, wanted = pairing.number_of_rounds(len(self._names)), self._wanted_rounds
        for turn, (contender, nodes) in enumerate(self._all()):
            if contender is self._pair and not self._has_time(1 - _FOR_DOUBTS, contender):
                done = turn - len(self._each)
                self._note(
                    f"the time budget ran out after {done} of {wanted} rounds; "
                    f"{min(100 * done / planned, 100):.0f} % of all pairs were measured"
                )
                break
            self._run_missing(turn, contender, nodes)
        return self._analyse() if self._plan.quick else self._settle_doubts()

    def _analyse(self) -> Screening:
        if self._analysed is None or self._analysed[0] != len(self.results):
            switch_of = self._plan.switch_of(self._names)
            screening = analyse(self._names, self.results, switch_of, self._plan.what)
            self._analysed = len(self.results), screening
        return self._analysed[1]

    @property
    def _wanted_rounds(self) -> int:
        planned = pairing.number_of_rounds(len(self._names))
        return planned if self._plan.rounds is None or not planned else self._plan.rounds

    def _all(self) -> Iterator[Batch]:
        """Yield every node alone, then the rounds of pairs, again where more are wanted."""
        alone: list[tuple[str, ...]] = [(name,) for name in self._names]
        yield from ((contender, alone) for contender in self._each)
        if self._pair is not None:
            tournaments = (
                pairing.rounds(len(self._names), seed=self._plan.seed + k)
                for k in itertools.count()
            )
            every = itertools.chain.from_iterable(tournaments)
            for members in itertools.islice(every, self._wanted_rounds):
                yield self._pair, self._named(members)

    def _settle_doubts(self) -> Screening:
        """Measure again until it is settled, or time or rounds are used up; return what it says.

        First what is in doubt. Then all, each thing like the first time, while too little could be
        seen, and while there may be another bad node: fewer than half are.
        """
        turn = max((r.turn for r in self.results), default=0) + 1
        looks = 0
        repeats = itertools.chain.from_iterable(self._all() for _ in itertools.count())
        while True:
            screening = self._analyse()
            share, batches = 1.0, []
            if looks < self._plan.most_further:
                batches = self._further(screening, turn, nodes_too=looks % _NODES_TOO == 2)
            looks += bool(batches)
            if not batches:
                share, batches = 1 - _FOR_DOUBTS, self._of_the_noisy(screening, repeats)
            if not batches:
                return screening
            for contender, nodes in batches:
                if not self._has_time(share, contender):
                    if share == 1.0:
                        self._note("the time budget ran out before all doubts were settled")
                    return self._analyse()
                self._run_missing(turn, contender, nodes)
                turn += 1
                if contender is self._pair and self._is_settled(turn):
                    break

    def _is_settled(self, turn: int) -> bool:
        """Tell whether somebody is accused, and no pair is in doubt any more."""
        screening = self._analyse()
        wanted = self._further(screening, turn, nodes_too=False)
        return bool(screening.findings) and self._pair not in [one for one, _ in wanted]

    def _of_the_noisy(self, screening: Screening, repeats: Iterator[Batch]) -> list[Batch]:
        if len(self._names) < FEWEST:
            return []
        accused = bool(screening.findings)
        room = room_for_more(screening.located, len(self._names))
        noisy = {
            MEASURES[key].kind
            for key, one in screening.located.items()
            if should_repeat(one, len(self._names), accused, room)
            or (not accused and self._may_have_missed(one, MEASURES[key]))
        }
        if not noisy:
            return []
        wanted = (batch for batch in repeats if batch[0].name in noisy)
        return list(itertools.islice(wanted, max(self._wanted_rounds // _LOOKS, 1)))

    def _may_have_missed(self, located: Located, measure: Measure) -> bool:
        """Tell whether a node was launched so seldom that what comes and goes may not have shown.

        Of few nodes all pairs are that few, unless fewer rounds were asked for.
        """
        if not located.centres:
            # Where nothing works, more launches show nothing.
            return False
        if measure.kind == "peaks":
            return located.launches < self._plan.launches
        of_a_node = located.launches * (len(self._names) - 1)
        is_wanted = measure in PAIRS and self._plan.rounds is None
        return is_wanted and of_a_node < max(_FEWEST_OF_A_NODE, self._plan.launches)

    def _further(self, screening: Screening, turn: int, *, nodes_too: bool) -> list[Batch]:
        """Return what settles doubts: first of pairs, with nodes alone or, if none is, those."""
        located = settle(screening.located, len(self._names))
        random = np.random.default_rng([self._plan.seed, turn])
        batches: list[Batch] = []
        if self._pair is not None:
            paired = [located[m.key] for m in PAIRS if m.key in located]
            measured = [
                [self._index[n] for n in r.nodes] for r in self.results if len(r.nodes) == 2
            ]
            for members in further_rounds(len(self._names), measured, paired, random):
                batches.append((self._pair, self._named(members)))
        for contender in self._each if nodes_too or not batches else ():
            alone = [located[m.key] for m in ALONE if m.key in located and m.kind == contender.name]
            again = further_nodes(alone, len(self._names), random)
            if again:
                batches.append((contender, [(self._names[n],) for n in again]))
        return batches

    def _named(self, members: pairing.Pairs) -> list[tuple[str, ...]]:
        return [tuple(self._names[n] for n in pair) for pair in members.tolist()]

    def _has_time(self, share: float, contender: Contender) -> bool:
        """Tell whether another batch, as long as the longest of its kind, fits into that share."""
        longest_s = self._longest_s.get(contender.name, 0.0)
        return self._elapsed_s() + longest_s <= share * self._plan.budget.seconds

    def _run_missing(
        self, turn: int, contender: Contender, nodes: Sequence[tuple[str, ...]]
    ) -> None:
        """Run one contender on disjoint nodes at once, without those that were done before."""
        tasks = [
            Task(contender, members, turn, next(self._numbers))
            for members in nodes
            if not self._done[turn, frozenset(members)]
        ]
        if not tasks:
            return
        begun = self._elapsed_s()
        for result in self._run_batch(tasks):
            self.results.append(result)
            self._done[turn, frozenset(result.nodes)] += 1
        took_s = self._elapsed_s() - begun
        self._longest_s[contender.name] = max(self._longest_s.get(contender.name, 0.0), took_s)
