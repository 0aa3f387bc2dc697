"""May the machine go back to its users? From what was found to one answer. Pure.

What speaks for and against comes in as evidence, each with a verdict; the exit status is that of
``gate`` in :mod:`clustergate.verdicts.judging`: 1 above 2 above 0.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from clustergate.gate.contract import NO_CONTROL, Control, Item, reasons_of
from clustergate.model import (
    EXPECTATIONS,
    Better,
    Case,
    Evidence,
    ExpectationStanding,
    Standing,
    Verdict,
)
from clustergate.schedulers import NO_ANSWER
from clustergate.screening.findings import FEWEST, Screening
from clustergate.screening.measures import MEASURES
from clustergate.session.software_evidence import worse_ones
from clustergate.statistics.slow_share import FAR_WORSE
from clustergate.verdicts import judging
from clustergate.verdicts.assembly import verdicts, wrong_in
from clustergate.verdicts.standings import not_compared
from clustergate.wording.reasons import Fact, Reason, reason
from clustergate.wording.texts import DOUBT, doubts, figure_name

OPEN, CLOSED, UNJUDGED = 0, 1, 2
WORDS = {OPEN: "OPEN", CLOSED: "STAY CLOSED", UNJUDGED: "COULD NOT JUDGE"}
MEANINGS = {
    OPEN: "everything is as it was and as it should be",
    CLOSED: "something is slower than the others, than before, or than its reference",
    UNJUDGED: "not everything could be judged, which is not a yes",
}

_COUNTED = {
    Verdict.INCONCLUSIVE: "gate.inconclusive",
    Verdict.NO_REFERENCE: "gate.no-reference",
}
_NAMED = 12
# What is worse by so many times the noise of a screening, or whatever that is by so much, is no
# pass. In simulated screenings of unchanged nodes with recorded noise the former met 0 to 2 % of
# the measures of four nodes, and none of eight (docs/screening.md).
_IN_DOUBT, _DOUBT_AT_MOST = 2.0, math.log(2.0)
_SURELY = 4.0


@dataclass(frozen=True)
class Decision:
    """The answer: the exit status, its word, and the evidence that it follows from."""

    status: int
    evidence: tuple[Evidence, ...]

    @property
    def because(self) -> tuple[str, ...]:
        """Return the sentences that it follows from."""
        return tuple(f"{one.part}: {one.sentence}" for one in self.evidence)

    @property
    def word(self) -> str:
        """Return the answer in one or two words."""
        return WORDS[self.status]

    @property
    def sentence(self) -> str:
        """Return the answer with its first reason."""
        first = self.because[0] if self.because else MEANINGS[OPEN]
        more = len(self.because) - 1
        return f"{self.word}: {first}" + (f"; and {more} more" if more > 0 else "")


def decide(evidence: Sequence[Evidence]) -> Decision:
    """Return whether to open; without any evidence it could not be judged.

    The reasons are those of the status that wins, then those of the other.
    """
    if not evidence:
        nothing = Evidence("benchmarks", Verdict.INVALID, (reason("run.empty"),))
        return Decision(UNJUDGED, (nothing,))
    against = [one for wanted in (CLOSED, UNJUDGED) for one in evidence if status_of(one) == wanted]
    return Decision(judging.exit_status([o.verdict for o in evidence], "gate"), tuple(against))


def status_of(one: Evidence) -> int:
    """Return the answer that a piece of evidence alone would give."""
    return judging.exit_status([one.verdict], "gate")


# --- what a screening says --------------------------------------------------------------------


def of_screening(screening: Screening, *, ended: bool) -> list[Evidence]:
    """Return what a screening says for and against opening.

    Whoever is to blame is a regression, what is in doubt cannot be told. Of fewer than three nodes
    it says nothing, and the benchmarks must.
    """
    part = "screening"
    evidence = [
        Evidence(part, Verdict.REGRESSION, (reason("screening.finding", sentence=one.sentence),))
        for one in screening.findings
    ]
    for one in screening.astray:
        why = reason("screening.astray", sentence=one)
        evidence.append(Evidence(part, Verdict.INCONCLUSIVE, (why,)))
    for doubt in screening.doubts:
        code = "screening.incomplete" if doubt in screening.more_doubts else "screening.doubt"
        evidence.append(Evidence(part, Verdict.INCONCLUSIVE, (reason(code, sentence=doubt),)))
    unmeasured = {n for located in screening.located.values() for n in located.unmeasured}
    if unmeasured:
        names = [screening.names[n] for n in sorted(unmeasured)[:_NAMED]]
        why = reason("screening.unmeasured", names=names, what=screening.what)
        evidence.append(Evidence(part, Verdict.INVALID, (why,)))
    if not ended:
        evidence.append(Evidence(part, Verdict.INVALID, (reason("screening.not-ended"),)))
    if not evidence:
        code = "screening.too-few" if len(screening.names) < FEWEST else "screening.no-faults"
        why = reason(code, nodes=len(screening.names), what=screening.what)
        evidence.append(Evidence(part, Verdict.PASS, (why,)))
    return evidence


def against_screening(
    now: Screening, earlier: Sequence[tuple[str, str, Screening]]
) -> list[Evidence]:
    """Return where what is usual became worse since ``earlier`` screenings, the newest first.

    Each has its run and when that was. A slow-down that all nodes share is to be seen only so. Each
    measure is compared with the last one that has it, without too much noise if any is: a short one
    has no HPL. A measure must be worse by more than sound nodes may differ, and by more than its
    noise in either screening; one that is worse by half of that noise cannot be told. What none of
    them has is told.
    """
    part, evidence, alone = "screening against the last one", [], []
    for key, measure in MEASURES.items():
        having = [x for x in earlier if x[2].centre(key) is not None]
        steady = [x for x in having if not x[2].located[key].too_noisy]
        run, when, before = [*steady, *having, ("", "", now)][0]
        old, new = before.centre(key), now.centre(key)
        if old is None or new is None:
            continue
        if before is now:
            alone.append(measure.title)
            continue
        worse_by = measure.level(new) - measure.level(old)
        noise = max(s.located[key].scale for s in (now, before))
        tolerated = math.log(measure.tolerated)
        if {*now.names} != {*before.names}:
            when += f" with other {now.what}s ({len(before.names)} then, {len(now.names)} now)"
        # A single launch of a single pair shows no noise.
        known = noise > 0 or len(now.names) >= FEWEST
        verdict, code = Verdict.PASS, "screening.as-last"
        if known and worse_by > max(tolerated, _SURELY * noise):
            verdict, code = Verdict.REGRESSION, "screening.worse-than-last"
        elif worse_by > max(tolerated, min(_IN_DOUBT * noise, _DOUBT_AT_MOST)):
            verdict, code = Verdict.INCONCLUSIVE, "screening.worse-in-noise"
        change = reason(
            code,
            measure=measure.title,
            unit=measure.unit,
            now=new,
            before=old,
            when=when,
            worse_by=math.expm1(worse_by),
            what=now.what,
            run=run,
        )
        evidence.append(Evidence(part, verdict, (change,)))
    if alone:
        why = reason("screening.none-before", measures=alone, what=now.what)
        evidence.append(Evidence(part, Verdict.PASS, (why,)))
    return evidence


# --- what the benchmarks say ------------------------------------------------------------------


def of_cases(
    cases: Sequence[Case], control_of: Callable[[str], Control] = lambda stack: NO_CONTROL
) -> list[Evidence]:
    """Return what the benchmarks say: each that is wrong, and how many were not compared.

    ``control_of`` tells of a stack what stands for references that are not there. What they leave
    open beside that, :func:`of_coverage` says.
    """
    part = "benchmarks"
    evidence = []
    for case in cases:
        where = f"{case.check} with {case.stack}"
        if case.state.broken:
            evidence.append(Evidence(part, Verdict.INVALID, case.reasons, where))
        evidence += [
            Evidence(part, judgement.verdict, judgement.reasons, f"{where}: {name}")
            for name, judgement in wrong_in(case)
        ]
    judged = sum(len(case.figures) + len(case.groups) for case in cases)
    by_control: dict[str, list[Case]] = {}
    for case in cases:
        by_control.setdefault(control_of(case.stack).by, []).append(case)
    rest = 0
    for verdict, code in _COUNTED.items():
        lacks = verdict is Verdict.NO_REFERENCE
        for by, alike in by_control.items() if lacks else (("", cases),):
            if count := Counter(verdicts(alike))[verdict]:
                facts: dict[str, Fact] = {"count": count, "of": judged}
                facts["where"] = _where_of(alike, verdict)
                if by:
                    rest += count
                    why = reason("gate.by-control", **facts, by=by)
                    evidence.append(Evidence(part, Verdict.PASS, (why,)))
                else:
                    evidence.append(Evidence(part, verdict, (reason(code, **facts),)))
    evidence += [Evidence(part, Verdict.INCONCLUSIVE, (doubt,), DOUBT) for doubt in doubts(cases)]
    evidence += _farthest_undecided(part, cases)
    if not judged and not evidence:
        evidence.append(Evidence(part, Verdict.INVALID, (reason("run.empty"),)))
    if judged > rest and all(one.verdict is Verdict.PASS for one in evidence):
        why = reason("gate.as-expected", figures=judged - rest)
        evidence.insert(0, Evidence(part, Verdict.PASS, (why,)))
    return evidence


def _farthest_undecided(part: str, cases: Sequence[Case]) -> list[Evidence]:
    """Return why that figure is undecided which is worst against its reference, of any."""
    undecided = [
        (ratio if figure.better is Better.HIGHER else 1.0 / ratio, case, figure)
        for case in cases
        for figure in case.figures
        if figure.judgement.verdict is Verdict.INCONCLUSIVE and not figure.doubt
        for why in figure.judgement.reasons[:1]
        if isinstance(ratio := why.facts.get("ratio"), float) and ratio > 0.0
    ]
    if not undecided:
        return []
    _, case, figure = min(undecided, key=lambda one: one[0])
    where = f"{case.check} with {case.stack}: {figure_name(figure)}"
    return [Evidence(part, Verdict.INCONCLUSIVE, figure.judgement.reasons, where)]


def of_expectations(expectations: Sequence[ExpectationStanding]) -> list[Evidence]:
    """Return how many expectations are met, and which were not decided or not compared.

    What is missed, its figure tells.
    """
    evidence = not_compared(expectations, in_gate=True)
    evidence += [
        Evidence(EXPECTATIONS, Verdict.INCONCLUSIVE, (one.reason,), one.of)
        for one in expectations
        if one.standing is Standing.UNDECIDED
    ]
    own = [one for one in expectations if one.standing is not Standing.ELSEWHERE]
    if own:
        met = sum(one.standing is Standing.MET for one in own)
        why = reason("gate.expectations", met=met, of=len(own))
        evidence.append(Evidence(EXPECTATIONS, Verdict.PASS, (why,)))
    return evidence


def _where_of(cases: Sequence[Case], verdict: Verdict) -> str:
    counts: Counter[str] = Counter()
    for case in cases:
        judgements = [*(f.judgement for f in case.figures), *(g.judgement for g in case.groups)]
        if count := sum(judgement.verdict is verdict for judgement in judgements):
            counts[f"{case.check} with {case.stack}"] += count
    return ", ".join(f"{name}: {count}" for name, count in counts.items())


def of_coverage(items: Sequence[Item]) -> list[Evidence]:
    """Return how much was not judged of all that must be, and why, or that all of it was.

    The reasons that figures and cases tell by themselves are not told again.
    """
    part = "what must be judged"
    judged = sum(item.judged for item in items)
    if judged == len(items) > 0:
        return [Evidence(part, Verdict.PASS, (reason("gate.all-judged", cases=judged),))]
    reasons = [
        reason("gate.not-judged", missing=len(items) - judged, cases=len(items)),
        *reasons_of(items),
    ]
    return [Evidence(part, Verdict.INCONCLUSIVE, (one,)) for one in reasons]


def of_nodes(before: Sequence[Reason], after: Sequence[Reason]) -> list[Evidence]:
    """Return what spoke against the nodes before anything was measured, and what does after it.

    A node that one of them names was not judged, or not for sure. That Slurm did not answer
    ``before`` is settled where it did later.
    """
    known = [why for why in before if why.code != NO_ANSWER]
    return [
        Evidence("nodes", Verdict.INCONCLUSIVE, (why,)) for why in dict.fromkeys((*after, *known))
    ]


@dataclass(frozen=True)
class Changed:
    """What is worse than in the last run by a fraction of it; ``usual`` is what others are."""

    name: str
    worse_by: float
    usual: float = 0.0


def against_run(
    slower: Iterable[Changed], judged: int, run: str, undecided: Iterable[Changed] = ()
) -> list[Evidence]:
    """Return which sets of the figures that were ``judged`` are slower than in an earlier run.

    Of the ``undecided`` figures none passes what is far worse.
    """
    part = f"against the run {run}"
    worst = sorted(slower, key=lambda one: -one.worse_by)
    evidence = list(
        worse_ones(
            part,
            [
                reason("gate.worse-than-last", figure=x.name, worse_by=x.worse_by, usual=x.usual)
                for x in worst
            ],
        )
    )
    far = [one for one in undecided if one.worse_by > math.expm1(FAR_WORSE)]
    if far:
        one = max(far, key=lambda one: one.worse_by)
        doubt = reason("gate.far-worse", figures=len(far), figure=one.name, times=1 + one.worse_by)
        evidence.append(Evidence(part, Verdict.INCONCLUSIVE, (doubt,)))
    if judged and not evidence:
        evidence.append(Evidence(part, Verdict.PASS, (reason("gate.as-last", figures=judged),)))
    return evidence
