"""What looks slow is launched again, twice, before anybody is told that it is slower. Pure.

Slow all three times is a regression, slow once and not again is counted, and what could not be
launched again is not confirmed. Neither the mean nor the best of the launches decides: the mean
keeps half of a spike, and the best hides what comes and goes.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from clustergate.benchmarks.registry import descriptor_of
from clustergate.core.figures import name_of
from clustergate.core.model import (
    MEASURED,
    Better,
    Case,
    CaseId,
    Figure,
    Group,
    Judgement,
    Promise,
    Verdict,
)
from clustergate.core.notation import counted, listed
from clustergate.core.reasons import Reason, Words
from clustergate.core.texts import UNEXCUSED
from clustergate.judge.promises import to_launch_again, with_kept
from clustergate.judge.rules import (
    BASELINE_UNKNOWN,
    CHANGE_CREPT,
    CHANGE_SLOWER,
    CHANGE_SLOWER_THAN_BEFORE,
    EXPECTATION_MET,
    EXPECTATION_TOLERATED,
    FIGURE_AS_EXPECTED,
    FIGURE_BETWEEN,
    FIGURE_BEYOND_TOLERANCE,
    FIGURE_EXCUSED,
    FIGURE_IMPROVEMENT,
    FIGURE_OUTDONE,
    FIGURE_PART,
    FIGURE_REGRESSION,
    FIGURE_UNCLEAR,
    GROUP_AS_EXPECTED,
    GROUP_IMPROVEMENT,
    GROUP_INCONCLUSIVE,
    LAUNCHES_ALL_SLOW,
    LAUNCHES_SLOW_SHARE,
)

TIMES = 2
"""How often a case that looks slow is launched again; once where its job launched it twice."""
AGAIN = Words("change.again", "slow three times in a row ({each:list})")
AGAIN_EACH = Words("change.again-each", "slow in each of {launches} launches ({each:list})")
NOT_AGAIN = Words("change.not-again", "slow once, and not when launched again ({each:list})")
ON_NODES = Words(
    "change.on-nodes",
    "slow on {nodes:names} each time, and not on {others:names} ({each:list})",
    remedy="`clustergate screen` compares the nodes",
)
NOT_CONFIRMED = Words(
    "change.not-confirmed",
    "looks slow ({each:list}), which is not confirmed",
    cause="{why}",
    remedy="`clustergate check --mode {mode} --check {check} --stack {stack}` launches it again",
)
SESSION_NOT_CONFIRMED = Words(
    "change.session-not-confirmed",
    "slower ({each:list}), not confirmed",
    cause="{why}",
    remedy="`{command}` launches it again, then `clustergate judge --last`",
)
_NAMED = 2
_OPEN = (NOT_CONFIRMED.code, SESSION_NOT_CONFIRMED.code, ON_NODES.code)
_DECIDED = (AGAIN.code, AGAIN_EACH.code, NOT_AGAIN.code, *_OPEN)
FIGURE_SAME_MEASUREMENT = Words(
    "figure.same-measurement",
    "the same measurement as {other}, which is compared",
)
_SAME = FIGURE_SAME_MEASUREMENT.code
# By these reasons alone a regression is one against references that were measured.
_AGAINST_RUNS = {
    *(CHANGE_SLOWER.code, CHANGE_SLOWER_THAN_BEFORE.code, CHANGE_CREPT.code),
    *(LAUNCHES_SLOW_SHARE.code, LAUNCHES_ALL_SLOW.code, UNEXCUSED.code),
    FIGURE_BEYOND_TOLERANCE.code,
}
_BEYOND_BOUND, _PART = FIGURE_REGRESSION.code, FIGURE_PART.code
# Within the bound, if none of the others is said beside it.
_WITHIN = {
    *(FIGURE_AS_EXPECTED.code, FIGURE_IMPROVEMENT.code, FIGURE_UNCLEAR.code, FIGURE_OUTDONE.code),
    *(FIGURE_BETWEEN.code, BASELINE_UNKNOWN.code),
    *(GROUP_AS_EXPECTED.code, GROUP_IMPROVEMENT.code, GROUP_INCONCLUSIVE.code),
    *(EXPECTATION_MET.code, EXPECTATION_TOLERATED.code),
}
_UNTOLD = {LAUNCHES_SLOW_SHARE.code, LAUNCHES_ALL_SLOW.code, FIGURE_EXCUSED.code}


@dataclass(frozen=True)
class Look:
    """What one launching of a case says of a figure, or of a benchmark as a whole.

    It was ``worse_by`` this fraction of its reference, None where there is no value. Whether it
    ``is_slow`` is None where nobody can tell, as of disturbed launches. It ``passes`` where this
    launching alone is a pass. It stands for so many ``times`` that it was launched.
    """

    worse_by: float | None
    is_slow: bool | None
    nodes: tuple[str, ...] = ()
    passes: bool = False
    times: int = 1


class Answer(enum.Enum):
    """What all launchings of something that looked slow come to."""

    SLOW = "slow each time"
    FAST = "slow once, and not again"
    ON_NODES = "slow on some nodes each time, and not on others"
    OPEN = "not confirmed"


def answer_of(looks: Sequence[Look]) -> Answer:
    """Return what some launchings say, the first of which looked slow."""
    slow = [one for one in looks if one.is_slow]
    fast = [one for one in looks if one.is_slow is False]
    if fast:
        of_slow, of_fast = ({node for one in some for node in one.nodes} for some in (slow, fast))
        elsewhere = bool(of_slow and of_fast) and of_slow.isdisjoint(of_fast)
        return Answer.ON_NODES if elsewhere and len(slow) > 1 else Answer.FAST
    return Answer.SLOW if sum(one.times for one in slow) > TIMES else Answer.OPEN


@dataclass(frozen=True)
class Launched:
    """A case as one launching of it was judged, and the nodes that it was on."""

    case: Case
    nodes: tuple[str, ...] = ()

    @property
    def times(self) -> int:
        """How many launchings its best one stands for: of what takes minutes two, if it made two.

        However many a job made, another job has to confirm it.
        """
        if descriptor_of(self.case.check).repeated:
            return 1
        return min([TIMES, *(one.estimate.samples for one in self.case.figures if one.estimate)])


def suspicious(cases: Sequence[Case]) -> dict[CaseId, str]:
    """Return what looks slow against references that were measured, by case, in words."""
    said = {}
    for case in cases:
        groups = [(one.benchmark, _worse_by(one)) for one in case.groups if _looks_slow(one)]
        slower = {name for one in case.groups if _looks_slow(one) for name in one.names}
        figures = [
            (one.benchmark, _worse_by(one))
            for one in case.figures
            if _looks_slow(one) and name_of(one) not in slower
        ]
        if both := sorted(groups + figures, key=lambda one: -(one[1] or 0.0)):
            (name, by), more = both[0], len(both) - 1
            said[case.identity] = f"{name} {'' if by is None else _percent(by) + ' '}slower" + (
                f", and {more} more" if more else ""
            )
    return said


def is_open(first: Launched, again: Sequence[Launched]) -> bool:
    """Tell whether anything of a case that looked slow may still be found slow every time."""
    return any(answer_of(looks) is Answer.OPEN for looks in _looks(first, again).values())


def decided(first: Launched, again: Sequence[Launched], mode: str, why: Reason | None) -> Case:
    """Return a case judged by all its launchings; ``why`` is the reason why there are no more."""
    looks = _looks(first, again)
    case = first.case

    def of(name: str, judgement: Judgement) -> Judgement:
        return _judgement(judgement, looks[name], case, mode, why)

    groups = tuple(
        dataclasses.replace(one, judgement=of(one.benchmark, one.judgement))
        if _looks_slow(one)
        else one
        for one in case.groups
    )
    figures = {
        name_of(one): _with_expected(one, of(name_of(one), one.judgement), again)
        if _looks_slow(one)
        else one
        for one in case.figures
    }
    wholes = {one.benchmark: one.judgement for one in groups}
    for name, one in figures.items():
        why_not = one.judgement.reasons[0]
        whole = wholes.get(str(why_not.facts.get("name"))) if why_not.code == _PART else None
        if whole is not None and whole.verdict is not Verdict.REGRESSION:
            figures[name] = dataclasses.replace(one, judgement=whole)
    for name, one in figures.items():
        other = figures.get(str(one.judgement.reasons[0].facts.get("other")))
        if one.judgement.reasons[0].code == _SAME and other is not None:
            decided_by = (why for why in other.judgement.reasons if why.code in _DECIDED)
            given = (*one.judgement.reasons, *decided_by)
            judgement = Judgement(other.judgement.verdict, given)
            # What the average cannot tell stays open.
            if one.judgement.verdict is Verdict.REGRESSION:
                figures[name] = dataclasses.replace(one, judgement=judgement)
    return dataclasses.replace(case, groups=groups, figures=tuple(figures.values()))


@dataclass
class Confirming:
    """A run of which some cases are launched again: ``run`` are its cases as it launched them.

    ``wholes`` is what its partitions promise by now; for that, too, cases are launched again where
    ``promises`` are asked for. ``why`` tells of cases why they are launched no more.
    """

    run: Sequence[Launched]
    wholes: dict[str, tuple[Promise, ...]]
    promises: bool
    why: dict[CaseId, Reason | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._first = {one.case.identity: one for one in self.run}
        self._cases = {identity: one.case for identity, one in self._first.items()}
        self._slow = suspicious([*self._cases.values()])
        self._again: dict[CaseId, list[Launched]] = {identity: [] for identity in self._first}

    @property
    def left(self) -> dict[CaseId, str]:
        """The cases to be launched once more, each with what is slow there, in words."""
        broken = to_launch_again([*self._cases.values()], self.wholes) if self.promises else {}
        return {
            one: said
            for one, said in {**broken, **self._slow}.items()
            if one not in self.why and self._is_open(one)
        }

    def times(self, identities: Iterable[CaseId]) -> int:
        """Return how often some cases are launched again at most, with what was done already."""
        most = 0
        for one in identities:
            first, again = self._first[one], self._again[one]
            left = TIMES + 1 - sum(each.times for each in (first, *again))
            most = max(most, len(again) + math.ceil(max(left, 1) / first.times))
        return most

    def _is_open(self, identity: CaseId) -> bool:
        first, again = self._first[identity], self._again[identity]
        if identity in self._slow:
            return is_open(first, again)
        return sum(one.times for one in (first, *again)) <= TIMES

    def add(self, again: Sequence[Launched], wholes: Mapping[str, Sequence[Promise]]) -> None:
        """Take what was launched again, and ``wholes`` as partitions promise them beside it."""
        for launched in again:
            case = self._cases[launched.case.identity]
            self._again[case.identity].append(launched)
            kept = with_kept(case.promises, launched.case.promises)
            self._cases[case.identity] = dataclasses.replace(case, promises=kept)
        for of in {launched.case.partition for launched in again}:
            self.wholes[of] = with_kept(self.wholes.get(of, ()), wholes.get(of, ()))

    def decided(self, mode: str) -> tuple[Case, ...]:
        """Return the cases of the run, judged by all launchings of them."""
        cases = []
        for one in self.run:
            case, identity = one.case, one.case.identity
            if identity in self._slow:
                again, why = self._again[identity], self.why.get(identity)
                case = decided(self._first[identity], again, mode, why)
            kept = self._cases[identity].promises
            cases.append(dataclasses.replace(case, promises=kept))
        return tuple(cases)


def _with_expected(figure: Figure, judgement: Judgement, again: Sequence[Launched]) -> Figure:
    """Return a figure as decided, which what people expect of it met in any of the launchings."""
    met = {
        one.expectation: one
        for launched in again
        for other in launched.case.figures
        for one in other.expected
        if one.judgement.verdict is Verdict.PASS
    }
    expected = tuple(
        one
        if one.judgement.verdict is not Verdict.REGRESSION
        else met.get(one.expectation, dataclasses.replace(one, judgement=judgement))
        for one in figure.expected
    )
    return dataclasses.replace(figure, judgement=judgement, expected=expected)


def only_slow(case: Case, like: Case) -> Case:
    """Return a case with what is slow in it and in another one ``like`` it, and nothing else.

    An earlier session confirms as long as a figure was slow in each; one in which it was not says
    nothing of the next.
    """
    names = {one.benchmark for one in like.groups if _look(one, ()).is_slow}
    names |= {name_of(one) for one in like.figures if _look(one, ()).is_slow}

    def kept(name: str, one: Figure | Group) -> bool:
        return name in names and bool(_look(one, ()).is_slow)

    return dataclasses.replace(
        case,
        groups=tuple(one for one in case.groups if kept(one.benchmark, one)),
        figures=tuple(one for one in case.figures if kept(name_of(one), one)),
    )


def unconfirmed(case: Case) -> Reason | None:
    """Return why it is open whether a case is slower, None where it is not."""
    for judgement in _judgements(case):
        for why in judgement.reasons:
            if why.code in _OPEN:
                return why
    return None


def not_again(case: Case) -> int:
    """Return how many figures and benchmarks of a case were slow once, and not again."""
    return sum(
        any(why.code == NOT_AGAIN.code for why in judgement.reasons)
        for judgement in _judgements(case)
    )


def with_passes(case: Case) -> Case:
    """Return a case in which a pass is what was slow once and passed when it was launched again."""

    def passed(judgement: Judgement) -> Judgement:
        kept = any(why.code == NOT_AGAIN.code and why.facts["passed"] for why in judgement.reasons)
        return Judgement(Verdict.PASS, judgement.reasons[:1]) if kept else judgement

    groups = [dataclasses.replace(one, judgement=passed(one.judgement)) for one in case.groups]
    figures = [dataclasses.replace(one, judgement=passed(one.judgement)) for one in case.figures]
    return dataclasses.replace(case, groups=tuple(groups), figures=tuple(figures))


def _judgements(case: Case) -> Iterator[Judgement]:
    yield from (one.judgement for one in case.groups)
    yield from (one.judgement for one in case.figures)


def _looks_slow(one: Figure | Group) -> bool:
    if one.judgement.verdict is not Verdict.REGRESSION:
        return False
    if isinstance(one, Group):
        return True
    # What misses an expectation is told by that one; without a tolerance its best launch decides.
    missed = [x for x in one.expected if x.judgement.verdict is Verdict.REGRESSION]
    if missed:
        return all(each.expectation.tolerance is not None for each in missed)
    return any(
        why.code in _AGAINST_RUNS
        or (why.code == _BEYOND_BOUND and str(why.facts.get("origin")).startswith(MEASURED))
        for why in one.judgement.reasons
    )


def _looks(first: Launched, again: Sequence[Launched]) -> dict[str, list[Look]]:
    """Return the looks at all that looked slow first: benchmarks, and figures by their names."""
    looks: dict[str, list[Look]] = {}
    for launched in (first, *again):
        case = launched.case
        seen: Mapping[str, Figure | Group] = {
            **{one.benchmark: one for one in case.groups},
            **{name_of(one): one for one in case.figures},
        }
        if launched is first:
            looks = {name: [] for name, one in seen.items() if _looks_slow(one)}
        # Of several figures that a name means, another one may be the best now.
        met = {x.expectation: one for one in case.figures for x in one.expected}
        meant = {
            name_of(one): met[x.expectation]
            for one in first.case.figures
            for x in one.expected
            if x.expectation in met
        }
        for name, of_one in looks.items():
            if one := meant.get(name, seen.get(name)):
                of_one.append(dataclasses.replace(_look(one, launched.nodes), times=launched.times))
    return looks


def _look(one: Figure | Group, nodes: tuple[str, ...]) -> Look:
    judgement, codes = one.judgement, {why.code for why in one.judgement.reasons}
    is_slow: bool | None = None
    if _looks_slow(one) or _PART in codes:
        is_slow = True
    elif codes & _WITHIN and not codes & _UNTOLD and not getattr(one, "doubt", None):
        is_slow = False
    passes = judgement.verdict in (Verdict.PASS, Verdict.IMPROVEMENT)
    return Look(_worse_by(one), is_slow, nodes, passes)


def _worse_by(one: Figure | Group) -> float | None:
    """Return by what fraction of its reference something is worse, None where that is unknown."""
    for why in one.judgement.reasons:
        if isinstance(one, Figure) and isinstance(ratio := why.facts.get("ratio"), float):
            return 1.0 - ratio if one.better is Better.HIGHER else ratio - 1.0
        for fact in ("worse_by", "by"):
            if isinstance(by := why.facts.get(fact), float):
                return by
    if isinstance(one, Group):
        return None if one.worse_by is None else math.expm1(one.worse_by)
    times = [why.facts.get("times") for why in one.judgement.reasons]
    return next((each - 1.0 for each in times if isinstance(each, float)), None)


def _percent(fraction: float) -> str:
    # Not "-0 %".
    return f"{round(100 * fraction) + 0} %"


SESSIONS_LEFT = Words(
    "again.sessions-left",
    "it takes three launches or sessions in a row, and there were {count}",
)
AGAIN_UNTOLD = Words("again.untold", "launched again {times}, it was too disturbed to tell")


def _judgement(
    first: Judgement, looks: Sequence[Look], case: Case, mode: str, why: Reason | None
) -> Judgement:
    answer = answer_of(looks)
    nodes = list(dict.fromkeys(one.nodes for one in looks))
    each = [
        ("?" if one.worse_by is None else _percent(one.worse_by))
        + (f" on {listed(one.nodes, _NAMED)}" if len(nodes) > 1 and one.nodes else "")
        for one in looks
    ]
    if answer is Answer.SLOW:
        launches = sum(one.times for one in looks)
        if launches == len(looks):
            return Judgement(first.verdict, (*first.reasons, AGAIN(each=each)))
        slow = AGAIN_EACH(launches=launches, each=each)
        return Judgement(first.verdict, (*first.reasons, slow))
    if answer is Answer.FAST:
        passed = any(one.passes for one in looks)
        said = NOT_AGAIN(each=each, passed=passed)
    elif answer is Answer.ON_NODES:
        of_slow, of_fast = (
            [*dict.fromkeys(n for one in looks if one.is_slow is slow for n in one.nodes)]
            for slow in (True, False)
        )
        said = ON_NODES(each=each, nodes=of_slow, others=of_fast)
    else:
        made = len(looks) - 1
        untold = AGAIN_UNTOLD(times=counted(made, "time"))
        of = {"mode": mode, "check": case.check, "stack": case.stack}
        said = NOT_CONFIRMED(each=each, why=str(why or untold), **of)
        if why is not None and why.code == SESSIONS_LEFT.code:
            said = SESSION_NOT_CONFIRMED(each=each, why=str(why), command=case.command)
    return Judgement(Verdict.INCONCLUSIVE, (said, *first.reasons))
