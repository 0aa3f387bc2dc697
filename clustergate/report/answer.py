"""The answer of a run: what is wrong, or that nothing is, in one sentence. Pure.

What is impossible or unproven comes before what is slower or misses what somebody expects, that
before what nobody could judge, and that before what is as it was.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from clustergate.benchmarks.registry import title_of
from clustergate.core.model import (
    CHANGED,
    EXPECTATIONS,
    REFERENCES,
    Case,
    CaseState,
    Evidence,
    ExpectationStanding,
    Figure,
    Judgement,
    Run,
    Standing,
    Verdict,
    worst,
)
from clustergate.core.notation import counted, listed, number
from clustergate.core.reasons import Reason
from clustergate.core.texts import DISTURBED, figure_name, group_name, on_partitions, shape
from clustergate.judge.assembly import is_undecided, wrong_in
from clustergate.judge.confirmation import AGAIN, AGAIN_EACH
from clustergate.judge.judging import exit_status

GOOD, OPEN, BAD = "✓", "~", "✗"
_LONG = 60
_DETAILS = re.compile(r" \([^()]*\)|; .*", re.DOTALL)


@dataclass(frozen=True)
class Answer:
    """What a run comes to: a ``mark``, a ``word`` in capitals, and a ``sentence``.

    ``look`` names the verdict whose colour it has. It may tell a cause: of the place ``tells``.
    """

    mark: str
    word: str
    sentence: str
    look: Verdict
    tells: str = ""

    def __str__(self) -> str:
        return f"{self.mark} {self.word}{': ' if self.mark == BAD else '. '}{self.sentence}"


def answer_of(run: Run, status: int) -> Answer:
    """Return the answer of a run that ends with this exit status: ``GOOD`` only if it is 0.

    A busy machine, or an expectation that is not decided, leaves it ``OPEN``, whatever the status.
    """
    steps = (_impossible, _unproven, _missed, _slower, _beside, _undecided, _too_busy)
    for step in steps:
        if answer := step(run):
            return answer
    if not results(run.cases):
        sentence = "No benchmark of this run has a result."
        return Answer(OPEN, "NOTHING MEASURED", sentence, Verdict.INVALID)
    if status:
        open_ones = filter(is_undecided, run.cases)
        whys = " and ".join(sorted({title_of(case.check) for case in open_ones}))
        sentence = f"{whys or 'It'} could not be judged, which --strict does not let pass."
        return Answer(OPEN, "NOT JUDGED", sentence, Verdict.INCONCLUSIVE)
    return _met(run) or _good(run)


def briefly(sentence: str) -> str:
    """Return a sentence that is long without what it has in brackets, and without its remedy."""
    return _DETAILS.sub("", sentence) if len(sentence) > _LONG else sentence


def own_expectations(run: Run) -> list[ExpectationStanding]:
    """Return the expectations that a run had to compare."""
    return [one for one in run.expectations if one.standing is not Standing.ELSEWHERE]


def results(cases: Sequence[Case]) -> list[tuple[Case, Figure]]:
    """Return the figures that have a value, each with its case."""
    return [(case, one) for case in cases for one in case.figures if one.estimate]


def where(case: Case, partitions: Sequence[str] = ()) -> str:
    """Return how a case is called, with its partition where it is given."""
    what = f"{title_of(case.check)} with {case.stack}{on_partitions(partitions)}"
    return ", ".join(filter(None, [what, shape(case)]))


@dataclass(frozen=True)
class Trouble:
    """What is wrong with a case: ``reason`` is why it does not count, ``wrong`` its wrong figures.

    ``cases`` are those of one stack of which exactly the same is to be said, ``on`` the partitions
    of these where the run has several.
    """

    cases: Sequence[Case]
    verdict: Verdict
    wrong: Sequence[tuple[str, Judgement]]
    on: Sequence[str] = ()

    @property
    def case(self) -> Case:
        return self.cases[0]

    @property
    def reason(self) -> str:
        """Why it does not count, empty where it does."""
        return self.case.reason if self.case.state.broken else ""

    @property
    def where(self) -> str:
        if len(self.cases) == 1:
            return where(self.case, self.on)
        counts = Counter(title_of(case.check) for case in self.cases)
        checks = (f"{name} ({n} times)" if n > 1 else name for name, n in counts.items())
        return ", ".join([*checks]) + f" with {self.case.stack}" + on_partitions(self.on)


def troubles(cases: Sequence[Case]) -> list[Trouble]:
    """Return the cases in which something is wrong, the worst first, each with its figures.

    What ran and failed is told before what did not run.
    """
    troubles: list[Trouble] = []
    several = len({case.partition for case in cases}) > 1
    broken: dict[object, list[Case]] = {}
    for case in cases:
        wrong = sorted(wrong_in(case), key=lambda pair: -pair[1].verdict.severity)
        if wrong:
            given = [judgement.verdict for _, judgement in wrong]
            given += [Verdict.INVALID] * case.state.broken
            troubles.append(Trouble([case], worst(given), wrong, [case.partition] * several))
        elif case.state.broken:
            broken.setdefault((case.stack, case.state, case.reason), []).append(case)
    for alike in broken.values():
        on = list(dict.fromkeys(case.partition for case in alike if several))
        troubles.append(Trouble(alike, Verdict.INVALID, (), on))
    return sorted(
        troubles, key=lambda one: (-one.verdict.severity, one.case.state is CaseState.MISSING)
    )


def absences(cases: Sequence[Case]) -> list[tuple[str, str]]:
    """Return which benchmarks are not available with which stacks, and why.

    With them stand the partitions, where the run has several and not all lack it.
    """
    lacking: dict[tuple[str, str], dict[str, dict[str, None]]] = {}
    for case in cases:
        if case.state is CaseState.NOT_AVAILABLE:
            of_why = lacking.setdefault((case.check, case.reason), {})
            of_why.setdefault(case.partition, {})[case.stack] = None
    alike: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for (check, why), by_partition in lacking.items():
        for partition, stacks in by_partition.items():
            alike.setdefault((check, why, (*stacks,)), []).append(partition)
    every = {case.partition for case in cases}
    return [
        (f"{title_of(check)} with {listed(stacks)}{_in_some(where, every)}", why)
        for (check, why, stacks), where in alike.items()
    ]


def _in_some(partitions: Sequence[str], every: Collection[str]) -> str:
    return on_partitions(partitions) if {*partitions} < {*every} else ""


def _of_all(count: int, run: Run) -> str:
    return f"{count} of {counted(len(results(run.cases)), 'result')}"


def _count(run: Run, verdict: Verdict) -> str:
    return _of_all(sum(x.judgement.verdict is verdict for _, x in results(run.cases)), run)


def _impossible(run: Run) -> Answer | None:
    wrong = [one for one in troubles(run.cases) if one.verdict is Verdict.IMPOSSIBLE]
    return _wrong("IMPOSSIBLE", _count(run, Verdict.IMPOSSIBLE), wrong)


def _unproven(run: Run) -> Answer | None:
    """Return which cases failed, are missing, or are not what was asked for."""
    broken = [one for one in troubles(run.cases) if one.reason]
    if broken:
        word = "FAILED" if broken[0].case.state is CaseState.FAILED else "DID NOT RUN"
        count = sum(case.state.broken for case in run.cases)
        return _wrong(word, f"{count} of {counted(len(run.cases), 'benchmark')}", broken)
    wrong = [one for one in troubles(run.cases) if one.verdict is Verdict.INVALID]
    return _wrong("NOT PROVEN", _count(run, Verdict.INVALID), wrong)


def _wrong(word: str, count: str, of: Sequence[Trouble]) -> Answer | None:
    """Return the first of what is wrong as the answer."""
    if not of:
        return None
    first = of[0]
    said = f"{first.where}: {first.reason}"
    if not first.reason:
        name, judgement = first.wrong[0]
        said = f"{name}, {first.where}: {told_of(judgement)}"
    return Answer(BAD, word, f"{count}. {said}", first.verdict, first.where)


def _missed(run: Run) -> Answer | None:
    own = own_expectations(run)
    missed = [one for one in own if one.standing is Standing.MISSED]
    if not missed:
        return None
    first = missed[0]
    of = f", {first.of}" if first.of else ""
    sentence = f"{len(missed)} of {counted(len(own), 'expectation')}. "
    return Answer(
        BAD, "MISSED", sentence + f"{first.reason.without_remedy}{of}", Verdict.REGRESSION
    )


def _slower(run: Run) -> Answer | None:
    slower = [one for one in troubles(run.cases) if one.verdict is Verdict.REGRESSION]
    judged = [of for one in slower for _, of in one.wrong if of.verdict is Verdict.REGRESSION]
    again = any(why.code in (AGAIN.code, AGAIN_EACH.code) for of in judged for why in of.reasons)
    count = _count(run, Verdict.REGRESSION)
    return _wrong("SLOWER", f"{count}{', three times' * again}", slower)


def told_of(judgement: Judgement) -> str:
    """Return by how much something is slower, such as ``6120 MB/s, was 10185: -40 %``."""
    first = judgement.reasons[0]
    facts = first.facts
    value, reference = facts.get("value"), facts.get("reference")
    if not (isinstance(value, int | float) and isinstance(reference, int | float) and reference):
        return str(first)
    change = f"{100 * (value / reference - 1):+.0f} %"
    bound = facts.get("bound")
    usual = ""
    if isinstance(bound, int | float) and bound:
        usual = f" (tolerated: {100 * (bound / reference - 1):+.0f} %)"
    return f"{number(value)} {facts.get('unit', '')}, was {number(reference)}: {change}{usual}"


def _beside(run: Run) -> Answer | None:
    """Return what was found beside the cases, and fails the run as a gate would."""
    faults = [one for one in run.evidence if exit_status([one.verdict], "gate")]
    if not faults:
        return None
    verdict = worst(one.verdict for one in faults)
    first = next(one for one in faults if one.verdict is verdict)
    more = len(faults) - 1
    sentence = f"{_said(first)}{f'; and {more} more' if more else ''}"
    if verdict is Verdict.REGRESSION:
        word = "CHANGED" if first.part == CHANGED else "SLOWER"
        return Answer(BAD, word, sentence, verdict, where_of(first))
    word = "NOT COMPARED" if first.part in (EXPECTATIONS, REFERENCES) else "NOT CONFIRMED"
    return Answer(OPEN, word, sentence, verdict, where_of(first))


def where_of(one: Evidence) -> str:
    """Return what a piece of evidence is about."""
    return ": ".join(filter(None, [one.part, one.of]))


def _said(one: Evidence) -> str:
    # What to do about it is told at once: nothing else on the screen does.
    return ": ".join(filter(None, [one.of or one.part, *map(str, one.reasons[:1])]))


def _undecided(run: Run) -> Answer | None:
    open_ones = [one for one in run.expectations if one.standing is Standing.UNDECIDED]
    if not open_ones:
        return None
    own = own_expectations(run)
    met = sum(one.standing is Standing.MET for one in own)
    first = open_ones[0]
    sentence = f"{met} of {counted(len(own), 'expectation')} met. {first.reason.without_remedy}"
    return Answer(OPEN, "NOT DECIDED", sentence, Verdict.INCONCLUSIVE)


def is_bound(figure: Figure) -> bool:
    """Tell whether a figure is a bound: launches that others disturb are slower, never faster."""
    return figure.doubt is not None and figure.doubt.code == DISTURBED.code


def is_too_busy(cases: Sequence[Case]) -> bool:
    """Tell whether others disturbed most results: neither a reference nor a person judges them."""
    of = results(cases)
    return 2 * sum(is_bound(figure) for _, figure in of) > len(of)


def _too_busy(run: Run) -> Answer | None:
    if not is_too_busy(run.cases):
        return None
    others = next(iter(run.beside), "")
    why = others or "most results were disturbed, though no other program was seen"
    sentence = f"{why[0].upper()}{why[1:]}. The machine is at least this fast:"
    return Answer(OPEN, "TOO BUSY TO JUDGE", sentence, Verdict.INCONCLUSIVE)


def _met(run: Run) -> Answer | None:
    own = own_expectations(run)
    if not own or any(one.standing is not Standing.MET for one in own):
        return None
    sentence = f"{counted(len(own), 'expectation')}: {listed([one.name for one in own], 3)}."
    return Answer(GOOD, "MET", " ".join([sentence, *_as_before(run)]), Verdict.PASS)


def _as_before(run: Run) -> Iterator[str]:
    """Yield in a sentence how many results are as before, where any was compared."""
    judged = [figure.judgement.verdict for _, figure in results(run.cases)]
    groups = [group for case in run.cases for group in case.groups]
    alike = judged.count(Verdict.PASS) + judged.count(Verdict.IMPROVEMENT)
    if not alike and not any(one.judgement.verdict is Verdict.PASS for one in groups):
        return
    better = judged.count(Verdict.IMPROVEMENT)
    parts = [f"{alike} of {counted(len(judged), 'result')} as before"]
    parts += [f"{better} of them better"] * bool(better)
    if unsure := judged.count(Verdict.INCONCLUSIVE):
        parts.append(f"{unsure} too scattered to tell")
    if bare := judged.count(Verdict.NO_REFERENCE):
        parts.append(f"{bare} without a baseline")
    yield f"{', '.join(parts)}."


def _good(run: Run) -> Answer:
    if as_before := next(_as_before(run), ""):
        return Answer(GOOD, "AS BEFORE", as_before, Verdict.PASS)
    unsure = [f for _, f in results(run.cases) if f.judgement.verdict is Verdict.INCONCLUSIVE]
    groups = [
        (group_name(group), group.judgement)
        for case in run.cases
        for group in case.groups
        if group.judgement.verdict is Verdict.INCONCLUSIVE
    ]
    if unsure or groups:
        first: Reason = (groups[0][1] if groups else unsure[0].judgement).reasons[0]
        name = groups[0][0] if groups else figure_name(unsure[0])
        sentence = f"{len(unsure) or len(groups)} could not be told from slower. {name}: "
        return Answer(OPEN, "NOT JUDGED", sentence + first.without_remedy, Verdict.INCONCLUSIVE)
    first_run = "No earlier run: nothing" if not run.before else "No baseline yet: nothing"
    sentence = f"{first_run} to compare with."
    return Answer(GOOD, "NOTHING WRONG FOUND", sentence, Verdict.NO_REFERENCE)
