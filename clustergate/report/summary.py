"""What is said first of a run, wherever it is read: verdict, causes, headline figures, what next.

Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from clustergate.benchmarks.registry import every_headline
from clustergate.model import Better, Case, Figure, Judgement, Run, Verdict
from clustergate.report.terminal import picked, share_of, written, wrong_in
from clustergate.verdicts.judging import SEVERITY, worst
from clustergate.wording.notation import counted
from clustergate.wording.reasons import Reason, sentence_of
from clustergate.wording.texts import DOUBT, absences, doubts, group_name, shape


@dataclass(frozen=True)
class Cause:
    """Why a run's verdict is what it is: of ``where`` there is ``sentence`` to be said.

    ``case`` is the first of the cases that it is said of, none where it is of all; ``what`` is the
    verdict, or what else became of the case. ``short`` leaves out what to do about it.
    """

    css: str
    what: str
    where: str
    sentence: str
    short: str
    case: Case | None = None


@dataclass(frozen=True)
class Trouble:
    """What is wrong with a case: ``reason`` is why it does not count, ``wrong`` its wrong figures.

    ``cases`` counts the cases of which exactly the same is to be said.
    """

    case: Case
    verdict: Verdict
    reason: str
    wrong: Sequence[tuple[str, Judgement]]
    cases: int = 1


def troubles(cases: Sequence[Case]) -> list[Trouble]:
    """Return the cases in which something is wrong, the worst first, each with its figures."""
    found: dict[object, Trouble] = {}
    for index, case in enumerate(cases):
        wrong = sorted(wrong_in(case), key=lambda pair: -SEVERITY.index(pair[1].verdict))
        broken = case.state.broken
        if not wrong and not broken:
            continue
        alike = index if wrong else (case.check, case.stack, shape(case), case.state, case.reason)
        if alike in found:
            found[alike] = replace(found[alike], cases=found[alike].cases + 1)
            continue
        verdicts_here = [judgement.verdict for _, judgement in wrong]
        found[alike] = Trouble(
            case=case,
            verdict=worst(verdicts_here + [Verdict.INVALID] * broken),
            reason=case.reason if broken else "",
            wrong=wrong,
        )
    return sorted(found.values(), key=lambda trouble: -SEVERITY.index(trouble.verdict))


def causes(run: Run) -> list[Cause]:
    """Return why the verdict is what it is, the worst first; no cause is told twice."""
    return [
        *map(_of_trouble, troubles(run.cases)),
        *_unsure_groups(run.cases),
        *(_cause(Verdict.NO_REFERENCE, run.system, told, told) for told in run.unjudged),
        *_doubts(run),
        *(Cause("unavailable", "not available", *of, of[1]) for of in absences(run.cases)),
    ]


def _cause(
    verdict: Verdict, where: str, sentence: str, short: str, case: Case | None = None
) -> Cause:
    return Cause(verdict.name.lower(), verdict.value, where, sentence, short, case)


def where(case: Case) -> str:
    """Return how a case is called in a sentence."""
    return ", ".join(filter(None, [f"{case.check} with {case.stack}", shape(case)]))


def _of_trouble(trouble: Trouble) -> Cause:
    case, more = trouble.case, ""
    if trouble.reason:
        called, reasons = case.state.value, case.reasons
    else:
        (called, judgement), *others = trouble.wrong
        reasons = judgement.reasons
        more = f"; and {counted(len(others), 'figure')} more" if others else ""
    alike = f", {counted(trouble.cases, 'case')}" if trouble.cases > 1 else ""
    told = f"{called}: {sentence_of(reasons)}{more}"
    short = f"{called}: {_first(reasons)}{more}"
    return _cause(trouble.verdict, where(case) + alike, told, short, case)


def _first(reasons: Sequence[Reason]) -> str:
    return reasons[0].without_remedy if reasons else ""


def _unsure_groups(cases: Sequence[Case]) -> Iterator[Cause]:
    """Yield of each case with groups of which nobody can tell the first, and how many there are."""
    for case in cases:
        unsure = [g for g in case.groups if g.judgement.verdict is Verdict.INCONCLUSIVE]
        if unsure:
            first, name = unsure[0].judgement, group_name(unsure[0])
            more = f"; and {counted(len(unsure) - 1, 'group')} more" if len(unsure) > 1 else ""
            told, short = (
                f"{name}: {first.sentence}{more}",
                f"{name}: {_first(first.reasons)}{more}",
            )
            yield _cause(Verdict.INCONCLUSIVE, where(case), told, short, case)


def _doubts(run: Run) -> Iterator[Cause]:
    doubtful = doubts(run.cases)
    for sentence in doubtful:
        yield Cause("inconclusive", DOUBT, "", sentence, sentence)
    for sentence in run.beside if doubtful else ():
        yield Cause("inconclusive", "disturbed", "", sentence, sentence)


# --- headline figures ---------------------------------------------------------------------------


@dataclass(frozen=True)
class HeadlineCell:
    """A figure against its reference and against the run before, as they are told."""

    text: str
    css: str
    against: Mapping[str, str]


@dataclass(frozen=True)
class HeadlineRow:
    """A line of the headline figures, or of their shares, with those stacks that have it."""

    title: str
    unit: str
    cells: Mapping[str, HeadlineCell]
    share: bool = False


ValueBefore = Callable[[Case, Figure], float | None]
"""What a figure was in the newest run before that has it, None where nobody knows."""


def headlines(
    cases: Sequence[Case], stacks: Sequence[str], value_before: ValueBefore
) -> Iterator[HeadlineRow]:
    """Yield the lines of headline figures that at least one stack has, as the terminal has them."""
    for headline in every_headline():
        found = {stack: one for stack in stacks if (one := picked(headline, stack, cases))}
        if found:
            cells = {
                stack: _headline_cell(written(one, headline), *one, value_before(*one[:2]))
                for stack, one in found.items()
            }
            yield HeadlineRow(headline.title, headline.unit, cells)
        if share := headline.share:
            shares = {stack: share_of(one, share) for stack, one in found.items()}
            told = {stack: HeadlineCell(text, "", {}) for stack, text in shares.items() if text}
            if told:
                yield HeadlineRow(share.title, "%" if share.rate else "", told, share=True)


def _headline_cell(
    text: str, case: Case, figure: Figure, value: float, before: float | None
) -> HeadlineCell:
    expected = [reason.facts.get("reference") for reason in figure.judgement.reasons]
    reference = next((one for one in expected if isinstance(one, float | int)), None)
    told = {"reference": reference, "run before": before}
    return HeadlineCell(
        text,
        figure.judgement.verdict.name.lower(),
        {name: compared(value, one, figure.better) for name, one in told.items() if one},
    )


def compared(value: float, other: float, better: Better) -> str:
    """Return by how much a value is better or worse than another, in words."""
    percent = 100 * (value / other - 1)
    if abs(percent) < 0.05:
        return "equal"
    if better is Better.NEITHER:
        return f"{percent:+.1f} %"
    is_worse = (percent < 0) == (better is Better.HIGHER)
    return f"{abs(percent):.1f} % {'worse' if is_worse else 'better'}"
