"""What a comparison with a golden build is to reach: the gate beside the best that there is. Pure.

On the very launches that the gate takes the sequential likelihood-ratio test is asked, which knows
how they scatter, and the field's rules, for the same time.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

import numpy as np

from tools.bench import field, pairs
from tools.bench.launches import Launch
from tools.bench.pairs import CLOSED, OPEN, UNDECIDED, Decided
from tools.bench.slowdowns import BENCHMARK, NOTHING, SIZE, STACK, Change
from tools.bench.spread import CONFIDENCE, Share

GATE, OPTIMUM = "gate", "likelihood ratio"
ROUNDS = 460
"""Rounds of a comparison; so many fit into the ten minutes that a job of the gate has."""
TIMES = {NOTHING: 3}
"""How many comparisons there are of each stack and recording, one of other changes."""
LOTS = 40
"""How many there are of a size that is just as slow as is to be ruled out, of the gate alone."""
WITHIN = (25, 50, 100, 150, 200, 300, ROUNDS)
"""Rounds within which it is counted what is opened."""
QUIET = 1.05
"""A host is quiet on which the two launches of a round differ by less, in the middle."""
# A rule of the field that calls more of the unchanged slower is of no use as a gate.
_FALSE_ALARMS = 0.01
_DRAWN = 4000

_SIZE, _BENCHMARK = Change(SIZE, 1.10), Change(BENCHMARK, 1.10)
_SLOWER, _FAULT = Change(SIZE, 1.20), Change(STACK, pairs.FIVE_TIMES, 3)
_HALF = Change(STACK, 1.5)


@dataclass(frozen=True)
class Aim:
    """In which share of the comparisons with a change an answer is to be given.

    ``quiet`` tells on which hosts, ``within`` so many rounds, by the end where it is 0. A share
    below a half is not to be exceeded, any other to be reached.
    """

    put: Change
    quiet: bool
    answers: Sequence[str]
    share: float
    within: int = 0

    def __str__(self) -> str:
        """Put it into words."""
        said = (
            "decided"
            if len(self.answers) > 1
            else {CLOSED: "closed", OPEN: "opened"}[self.answers[0]]
        )
        most = " at most" if self.share < 0.5 else ""
        within = f" within {self.within} rounds" if self.within else ""
        host = "quiet" if self.quiet else "busy"
        return f"{self.put}, {host}: {said} in {100 * self.share:.0f}{most}{within}"

    def is_met(self, share: float) -> bool:
        """Tell whether a share of the comparisons is what was aimed at."""
        return share <= self.share if self.share < 0.5 else share >= self.share


# That a size just as slow as is to be ruled out opens in 1 % at most takes more comparisons than
# these: `openings`.
AIMS = (
    Aim(_BENCHMARK, True, [CLOSED], 0.99, 15),
    Aim(_BENCHMARK, False, [CLOSED], 0.90, 30),
    Aim(_SIZE, True, [CLOSED], 0.90, 20),
    Aim(_SLOWER, True, [OPEN], 0.01),
    Aim(_SLOWER, False, [OPEN], 0.01),
    Aim(NOTHING, True, [OPEN, CLOSED], 0.95),
    Aim(NOTHING, False, [OPEN, CLOSED], 0.80),
    Aim(NOTHING, True, [CLOSED], 0.01),
    Aim(NOTHING, False, [CLOSED], 0.01),
    Aim(_FAULT, True, [CLOSED], 0.95, 12),
    Aim(_FAULT, False, [CLOSED], 0.95, 12),
    Aim(_HALF, True, [CLOSED], 1.0, 10),
    Aim(_HALF, False, [CLOSED], 1.0, 10),
)


@dataclass(frozen=True)
class Answered:
    """What is said of a comparison, by rule; of the field by rule and rounds.

    0 stands for as many rounds as the gate took.
    """

    recording: str
    quiet: bool
    put: Change
    said: Mapping[str, Decided]
    by_the_field: Mapping[tuple[str, int], Decided]

    def plain(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {
            **{"recording": self.recording, "quiet": self.quiet, "put": str(self.put)},
            "said": {rule: asdict(one) for rule, one in self.said.items()},
            "by_the_field": [[*key, asdict(one)] for key, one in self.by_the_field.items()],
        }

    @classmethod
    def read(cls, kept: Mapping[str, Any]) -> Answered:
        """Return what was kept as JSON."""
        (put,) = {aim.put for aim in AIMS if str(aim.put) == kept["put"]}
        said = {rule: Decided(**one) for rule, one in kept["said"].items()}
        by_the_field = {(rule, n): Decided(**one) for rule, n, one in kept["by_the_field"]}
        return cls(kept["recording"], kept["quiet"], put, said, by_the_field)

    def gives(self, aim: Aim, rule: str) -> bool:
        """Tell whether a rule gives the answer of an aim, in time."""
        if rule in self.said:
            one = self.said[rule]
            return one.answer in aim.answers and (not aim.within or one.rounds <= aim.within)
        return self.by_the_field[rule, aim.within].answer in aim.answers


def answered(
    recorded: Mapping[str, Sequence[Launch]], say: Callable[[str], None]
) -> Iterator[Answered]:
    """Yield what is said of comparisons of all recordings."""
    quiet = {name: is_quiet(launches) for name, launches in recorded.items()}
    for put in dict.fromkeys(aim.put for aim in AIMS):
        say(f"the gate and the likelihood ratio: {put}")
        budgets = {aim.within for aim in AIMS if aim.put == put} | {0}
        for one in pairs.comparisons(recorded, ROUNDS, TIMES.get(put, 1), [put]):
            gate = pairs.RULES["gate"](one)
            gate = replace(gate, node_seconds=gate.rounds * one.node_seconds)
            said = {GATE: gate, OPTIMUM: pairs.by_likelihoods(one)}
            by_the_field = {
                (name, rounds): pairs.by_the_field(rule, pairs.first(one, rounds or gate.rounds))
                for name, rule in field.RULES.items()
                for rounds in budgets
            }
            yield Answered(one.recording, quiet[one.recording], put, said, by_the_field)


@dataclass(frozen=True)
class Openings:
    """How often a size was called not slower that was, and after how many rounds the gate opened.

    All comparisons are of one stack of a recording.
    """

    recording: str
    quiet: bool
    put: Change
    comparisons: int
    ruled_out: int
    opened: Sequence[int]

    @classmethod
    def read(cls, kept: Mapping[str, Any]) -> Openings:
        """Return what was kept as JSON."""
        return cls(**{**kept, "put": Change(**kept["put"])})


def openings(
    recorded: Mapping[str, Sequence[Launch]], say: Callable[[str], None]
) -> Iterator[Openings]:
    """Yield how often the gate opens although a size is slower by what is to be ruled out."""
    quiet = {name: is_quiet(launches) for name, launches in recorded.items()}
    say(f"how often the gate opens: {_SIZE}, {LOTS} comparisons of each stack")
    made = pairs.comparisons(recorded, ROUNDS, LOTS, [_SIZE])
    for (name, _), of_stack in itertools.groupby(made, lambda one: (one.recording, id(one.noise))):
        some = list(of_stack)
        may = pairs.may_open(some)
        rounds = [one.rounds for one in may if one.answer == OPEN]
        yield Openings(name, quiet[name], _SIZE, len(some), len(may), rounds)


def is_quiet(launches: Sequence[Launch]) -> bool:
    """Tell whether the two launches of a round differ little, of each stack."""
    stacks = {launch.stack for launch in launches}
    logs = [np.log(pairs.recorded_rounds(launches, stack)) for stack in stacks]
    return all(float(np.median(np.abs(x[:, 1] - x[:, 0]))) < np.log(QUIET) for x in logs)


def best_of_the_field(all_of_them: Sequence[Answered], aim: Aim) -> str:
    """Return the rule that fits an aim best, of those that raise next to no false alarm.

    Empty where each raises more.
    """
    false = Aim(NOTHING, aim.quiet, [CLOSED], _FALSE_ALARMS)
    sound = [rule for rule in field.RULES if false.is_met(share(all_of_them, false, rule).share)]
    sign = -1 if aim.share < 0.5 else 1
    return max(sound, key=lambda rule: sign * share(all_of_them, aim, rule).share, default="")


def share(all_of_them: Sequence[Answered], aim: Aim, rule: str) -> Share:
    """Return in how many comparisons of each recording a rule gives the answer of an aim."""
    return Share([(sum(given), len(given)) for given in _given(all_of_them, aim, rule)])


def _given(all_of_them: Sequence[Answered], aim: Aim, rule: str) -> list[list[bool]]:
    by_recording: dict[str, list[bool]] = {}
    for one in all_of_them:
        if (one.put, one.quiet) == (aim.put, aim.quiet):
            by_recording.setdefault(one.recording, []).append(one.gives(aim, rule))
    return list(by_recording.values())


def less(all_of_them: Sequence[Answered], aim: Aim, other: str) -> str:
    """Return by how many percent more the gate gives an answer than another rule, in pairs.

    In parentheses is what 95 % of recordings hold that are drawn with replacement.
    """
    mine, others = (_given(all_of_them, aim, rule) for rule in (GATE, other))
    counts = np.array([(sum(a) - sum(b), len(a)) for a, b in zip(mine, others, strict=True)])
    drawn = counts[np.random.default_rng(1).integers(0, len(counts), (_DRAWN, len(counts)))]
    sums = drawn.sum(axis=1)
    tail = (1.0 - CONFIDENCE) / 2
    low, high = 100 * np.quantile(sums[:, 0] / sums[:, 1], [tail, 1.0 - tail])
    return f"{100 * counts[:, 0].sum() / counts[:, 1].sum():.0f} ({low:.0f} to {high:.0f})"


def rows_of_aims(all_of_them: Sequence[Answered]) -> Iterator[Sequence[str]]:
    """Yield the rows of the table of aims, the heads first."""
    yield (
        *("aim", "comparisons", "gate", OPTIMUM, "best rule of the field"),
        *(f"gate less the {OPTIMUM}", "gate less that rule", ""),
    )
    for aim in AIMS:
        mine, best = (share(all_of_them, aim, rule) for rule in (GATE, OPTIMUM))
        if not mine.counts:
            continue
        rule = best_of_the_field(all_of_them, aim)
        met = "reached" if aim.is_met(mine.share) else ""
        yield (
            *(str(aim), str(sum(of for _, of in mine.counts)), str(mine), str(best)),
            f"{rule}: {share(all_of_them, aim, rule)}" if rule else "each has false alarms",
            less(all_of_them, aim, OPTIMUM),
            less(all_of_them, aim, rule) if rule else "",
            met or ("missed" if aim.is_met(best.share) else "out of reach"),
        )


_Put = TypeVar("_Put", Answered, Openings)


def _by_change_and_host(
    all_of_them: Sequence[_Put],
) -> Iterator[tuple[tuple[Change, str], list[_Put]]]:
    """Yield those of each change on quiet and on busy hosts, where there are any."""
    for put in dict.fromkeys(one.put for one in all_of_them):
        for quiet, host in ((True, "quiet"), (False, "busy")):
            mine = [one for one in all_of_them if (one.put, one.quiet) == (put, quiet)]
            if mine:
                yield (put, host), mine


def rows_of_costs(all_of_them: Sequence[Answered]) -> Iterator[Sequence[str]]:
    """Yield what decisions take, the heads first: all of them, of quiet and of busy hosts."""
    yield (
        *("put into B", "host", "comparisons", OPEN, CLOSED, UNDECIDED),
        *("rounds of the gate", f"of the {OPTIMUM}", "ratio of the medians", "of the means"),
        "node-seconds per decision",
    )
    for (put, host), mine in _by_change_and_host(all_of_them):
        taken = np.array([[one.said[r].rounds for r in (GATE, OPTIMUM)] for one in mine])
        medians, means = np.median(taken, axis=0), taken.mean(axis=0)
        answers = [one.said[GATE].answer for one in mine]
        seconds = sum(one.said[GATE].node_seconds for one in mine)
        yield (
            *(str(put), host, str(len(mine))),
            *(str(answers.count(a)) for a in (OPEN, CLOSED, UNDECIDED)),
            *(f"{m:.0f}, {n:.0f}" for m, n in zip(medians, means, strict=True)),
            *(f"{x[0] / x[1]:.1f}" for x in (medians, means)),
            f"{seconds / max(len(mine) - answers.count(UNDECIDED), 1):.0f}",
        )


def rows_of_rules(all_of_them: Sequence[Answered]) -> Iterator[Sequence[str]]:
    """Yield in how many percent each rule keeps closed, and opens, in the rounds of the gate."""
    yield ("put into B", "host", GATE, OPTIMUM, *field.RULES)
    for (put, host), mine in _by_change_and_host(all_of_them):
        of_rules = [
            *([one.said[rule].answer for one in mine] for rule in (GATE, OPTIMUM)),
            *([one.by_the_field[rule, 0].answer for one in mine] for rule in field.RULES),
        ]
        yield (
            *(str(put), host),
            *(
                ", ".join(f"{100 * said.count(x) / len(said):.0f}" for x in (CLOSED, OPEN))
                for said in of_rules
            ),
        )


def rows_of_opened(all_of_them: Sequence[Answered]) -> Iterator[Sequence[str]]:
    """Yield how many comparisons with nothing put in are opened within some rounds."""
    yield ("host", "comparisons", *map(str, WITHIN))
    for (put, host), mine in _by_change_and_host(all_of_them):
        if put != NOTHING:
            continue
        rounds = [one.said[GATE].rounds for one in mine if one.said[GATE].answer == OPEN]
        counts = [sum(n <= most for n in rounds) for most in WITHIN]
        yield (host, *map(str, (len(mine), *counts)))


def rows_of_openings(all_of_them: Sequence[Openings]) -> Iterator[Sequence[str]]:
    """Yield how often the slowdown of a size is ruled out, and the gate opens, in percent."""
    yield ("put into B", "host", "recordings", "comparisons", "ruled out of the size", OPEN)
    for (put, host), mine in _by_change_and_host(all_of_them):
        names = dict.fromkeys(one.recording for one in mine)
        by_recording = [[one for one in mine if one.recording == name] for name in names]
        of = [sum(one.comparisons for one in some) for some in by_recording]
        ruled_out = [sum(one.ruled_out for one in some) for some in by_recording]
        opened = [sum(len(one.opened) for one in some) for some in by_recording]
        yield (
            *(str(put), host, str(len(names)), str(sum(of))),
            *(_rate(list(zip(counts, of, strict=True))) for counts in (ruled_out, opened)),
        )


def _rate(counts: Sequence[tuple[int, int]]) -> str:
    low, high = (100 * bound for bound in Share(counts).bounds)
    happened = sum(n for n, _ in counts)
    if not happened:
        return f"0 (<{high:.0f})"
    return f"{happened}: {100 * Share(counts).share:.1f} ({low:.1f}-{high:.1f})"


TABLES: Mapping[str, Callable[[Sequence[Answered]], Iterator[Sequence[str]]]] = {
    "aims": rows_of_aims,
    "rounds": rows_of_costs,
    "rules": rows_of_rules,
    "opened": rows_of_opened,
}
"""The tables of what is said of comparisons, by the names that they have in the docs."""
