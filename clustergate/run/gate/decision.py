"""May the machine go back to its users? From what was found to one answer. Pure.

What speaks for and against comes in as evidence, each with a verdict; the exit status is that of
``gate`` in :mod:`clustergate.judge.judging`: 1 above 2 above 0.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from clustergate.core.model import (
    EXPECTATIONS,
    Case,
    Evidence,
    ExpectationStanding,
    Standing,
    Verdict,
)
from clustergate.core.reasons import Reason, Words
from clustergate.core.texts import DOUBT, doubts
from clustergate.core.words import RUN_EMPTY
from clustergate.judge import judging
from clustergate.judge.assembly import verdicts, wrong_in
from clustergate.judge.standings import not_compared
from clustergate.run.gate.contract import Requirement, gain_over_reference, open_reasons
from clustergate.run.software_evidence import more_worse
from clustergate.sites.schedulers import NO_ANSWERS
from clustergate.stats.slow_share import FAR_WORSE
from clustergate.studies.screen.findings import FEWEST, Screening
from clustergate.studies.screen.measures import MEASURES

OPEN, CLOSED, UNJUDGED = 0, 1, 2
WORDS = {OPEN: "OPEN", CLOSED: "STAY CLOSED", UNJUDGED: "COULD NOT JUDGE"}
MEANINGS = {
    OPEN: "everything is as it was and as it should be",
    CLOSED: "something is slower than the others, than before, or than its reference",
    UNJUDGED: "not everything could be judged, which is not a yes",
}
NOTHING_KNOWN = "NO FAULT FOUND, NOTHING TO COMPARE WITH"
YOU_DECIDE = "you decide: what became slower everywhere and alike, nobody can see tonight"

GATE_INCONCLUSIVE = Words(
    "gate.inconclusive",
    "{count} of {of} figures cannot be told from slower by themselves ({where})",
)
NO_REFERENCE = Words(
    "gate.no-reference",
    "{count} of {of} figures have nothing to compare with ({where})",
)
_COUNTED = {
    Verdict.INCONCLUSIVE: GATE_INCONCLUSIVE,
    Verdict.NO_REFERENCE: NO_REFERENCE,
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
    def nothing_known(self) -> bool:
        """Tell whether nothing speaks against opening but that there is nothing to compare with."""
        return self.status == UNJUDGED and all(
            one.verdict is Verdict.NO_REFERENCE for one in self.evidence
        )

    @property
    def code(self) -> str:
        """Return the answer as a code, which tells this of what could not be judged otherwise."""
        return "nothing-to-compare" if self.nothing_known else self.word.lower().replace(" ", "-")

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
        nothing = Evidence("benchmarks", Verdict.INVALID, (RUN_EMPTY(),))
        return Decision(UNJUDGED, (nothing,))
    against = [one for wanted in (CLOSED, UNJUDGED) for one in evidence if status_of(one) == wanted]
    return Decision(judging.exit_status([o.verdict for o in evidence], "gate"), tuple(against))


def status_of(one: Evidence) -> int:
    """Return the answer that a piece of evidence alone would give."""
    return judging.exit_status([one.verdict], "gate")


# --- what a screening says --------------------------------------------------------------------


SCREENING_FINDING = Words(
    "screening.finding",
    "{sentence}",
    cause="it is significantly slower than the others",
    remedy="repair or exclude it",
)
SCREENING_DOUBT = Words(
    "screening.doubt",
    "{sentence}",
    cause="too noisy, or measured too seldom",
    remedy="give `clustergate gate` a larger --budget, with less running beside it",
)
SCREENING_INCOMPLETE = Words("screening.incomplete", "{sentence}")
SCREENING_ASTRAY = Words(
    "screening.astray",
    "{sentence}",
    remedy="put that right, or exclude those nodes in the hostfile",
)
SCREENING_UNMEASURED = Words("screening.unmeasured", "some {what}s were not measured: {names:list}")
NOT_ENDED = Words(
    "screening.not-ended",
    "it did not finish",
    remedy="`clustergate gate` screens again; reframe.out in the run's folder says why it ended",
)
NO_FAULTS = Words("screening.no-faults", "{nodes} {what}s, no faults found")
TOO_FEW = Words(
    "screening.too-few",
    (
        "fewer than three {what}s (here {nodes}) do not show which is slow; the benchmarks are "
        "what counts"
    ),
)


def screening_evidence(screening: Screening, *, ended: bool) -> list[Evidence]:
    """Return what a screening says for and against opening.

    Whoever is to blame is a regression, what is in doubt cannot be told. Of fewer than three nodes
    it says nothing, and the benchmarks must.
    """
    part = "screening"
    evidence = [
        Evidence(part, Verdict.REGRESSION, (SCREENING_FINDING(sentence=one.sentence),))
        for one in screening.findings
    ]
    for one in screening.astray:
        why = SCREENING_ASTRAY(sentence=one)
        evidence.append(Evidence(part, Verdict.INCONCLUSIVE, (why,)))
    for doubt in screening.doubts:
        code = SCREENING_INCOMPLETE if doubt in screening.more_doubts else SCREENING_DOUBT
        evidence.append(Evidence(part, Verdict.INCONCLUSIVE, (code(sentence=doubt),)))
    unmeasured = {n for located in screening.located.values() for n in located.unmeasured}
    if unmeasured:
        names = [screening.names[n] for n in sorted(unmeasured)[:_NAMED]]
        why = SCREENING_UNMEASURED(names=names, what=screening.what)
        evidence.append(Evidence(part, Verdict.INVALID, (why,)))
    if not ended:
        evidence.append(Evidence(part, Verdict.INVALID, (NOT_ENDED(),)))
    if not evidence:
        words = TOO_FEW if len(screening.names) < FEWEST else NO_FAULTS
        why = words(nodes=len(screening.names), what=screening.what)
        evidence.append(Evidence(part, Verdict.PASS, (why,)))
    return evidence


NONE_BEFORE = Words(
    "screening.none-before",
    "no earlier screening of these {what}s has {measures:and}",
    cause="what slowed all of them down alike shows in the benchmarks' references alone",
    remedy="`clustergate screen` before the next maintenance gives its gate one to compare with",
)
SCREENING_AS_LAST = Words(
    "screening.as-last",
    "{measure} is typically {now:number} {unit}, and was {before:number} on {when}",
)
SCREENING_WORSE_THAN_LAST = Words(
    "screening.worse-than-last",
    (
        "{measure} is typically {now:number} {unit}, and was {before:number} on {when}: "
        "{worse_by:whole_percent} worse on all {what}s alike"
    ),
)
WORSE_IN_NOISE = Words(
    "screening.worse-in-noise",
    (
        "{measure} is typically {now:number} {unit}, and was {before:number} on {when}: "
        "{worse_by:whole_percent} worse on all {what}s alike"
    ),
    cause="that is much, and yet within what launches of a pair or {what} scatter by",
    remedy=(
        "`clustergate gate` again while nothing else runs, with a larger `--budget`: more launches"
    ),
)


def evidence_against_screenings(
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
        verdict, code = Verdict.PASS, SCREENING_AS_LAST
        if known and worse_by > max(tolerated, _SURELY * noise):
            verdict, code = Verdict.REGRESSION, SCREENING_WORSE_THAN_LAST
        elif worse_by > max(tolerated, min(_IN_DOUBT * noise, _DOUBT_AT_MOST)):
            verdict, code = Verdict.INCONCLUSIVE, WORSE_IN_NOISE
        change = code(
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
        why = NONE_BEFORE(measures=alone, what=now.what)
        evidence.append(Evidence(part, Verdict.PASS, (why,)))
    return evidence


# --- what the benchmarks say ------------------------------------------------------------------


AS_EXPECTED = Words("gate.as-expected", "{figures:figure is|figures are} as expected")


GAINED = Words(
    "gate.gained",
    (
        "{count:figure is|figures are} faster than unchanged machines become ({where}), up to "
        "{most:percent}"
    ),
    cause="their references are outgrown",
    remedy="`clustergate baseline --accept-better`, after five new runs",
)


def benchmark_evidence(cases: Sequence[Case], items: Sequence[Requirement] = ()) -> list[Evidence]:
    """Return what the benchmarks say: each that is wrong, and how many were not compared.

    What must be judged of them, and was not, :func:`coverage_evidence` tells of ``items``: a figure
    alone keeps no gate closed that cannot be told from slower.
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
    given: Counter[Verdict] = Counter(verdicts(cases))
    given.pop(Verdict.INVALID, None)
    if not given and not evidence:
        evidence.append(Evidence(part, Verdict.INVALID, (RUN_EMPTY(),)))
    good = given[Verdict.PASS] + given[Verdict.IMPROVEMENT]
    if good and not evidence:
        evidence.append(Evidence(part, Verdict.PASS, (AS_EXPECTED(figures=good),)))
    for verdict, code in _COUNTED.items():
        if count := given[verdict]:
            why = code(count=count, of=given.total(), where=_where_of(cases, verdict))
            evidence.append(Evidence(part, Verdict.PASS, (why,)))
    gains = {
        (case.check, case.stack): [
            gain for figure in case.figures if (gain := gain_over_reference(figure))
        ]
        for case in cases
    }
    if most := max((max(some) for some in gains.values() if some), default=0.0):
        where = ", ".join(f"{check} with {stack}" for (check, stack), some in gains.items() if some)
        gained = GAINED(count=sum(map(len, gains.values())), where=where, most=most)
        evidence.append(Evidence(part, Verdict.PASS, (gained,)))
    is_open = not all(item.judged for item in items)
    doubted = Verdict.INCONCLUSIVE if is_open else Verdict.PASS
    return evidence + [Evidence(part, doubted, (doubt,), DOUBT) for doubt in doubts(cases)]


GATE_EXPECTATIONS = Words("gate.expectations", "{met} of {of:expectation|expectations} met")


def expectation_evidence(expectations: Sequence[ExpectationStanding]) -> list[Evidence]:
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
        why = GATE_EXPECTATIONS(met=met, of=len(own))
        evidence.append(Evidence(EXPECTATIONS, Verdict.PASS, (why,)))
    return evidence


def _where_of(cases: Sequence[Case], verdict: Verdict) -> str:
    counts: Counter[str] = Counter()
    for case in cases:
        judgements = [*(f.judgement for f in case.figures), *(g.judgement for g in case.groups)]
        if count := sum(judgement.verdict is verdict for judgement in judgements):
            counts[f"{case.check} with {case.stack}"] += count
    return ", ".join(f"{name}: {count}" for name, count in counts.items())


ALL_JUDGED = Words("gate.all-judged", "all {cases} that must be judged were, by {by:and}")
NOT_JUDGED = Words(
    "gate.not-judged",
    "{missing} of {cases} that must be judged {missing:~was|were} not",
)
NOTHING_TO_COMPARE = Words(
    "gate.nothing-known",
    "{missing} of {cases} that must be judged have nothing to compare with",
)


def coverage_evidence(items: Sequence[Requirement]) -> list[Evidence]:
    """Return how much was not judged of all that must be, and why, or that all of it was.

    The reasons that figures and cases tell by themselves are not told again.
    """
    part = "what must be judged"
    left = [item for item in items if not item.judged]
    if items and not left:
        # What only in part has references rests on them and on more.
        by = list(dict.fromkeys(one for item in items for one in item.by.split("; ")))
        return [Evidence(part, Verdict.PASS, (ALL_JUDGED(cases=len(items), by=by),))]
    unknown = bool(left) and all(item.unknown for item in left)
    words = NOTHING_TO_COMPARE if unknown else NOT_JUDGED
    # Why stands before how much.
    reasons = [*open_reasons(items), words(missing=len(left), cases=len(items))]
    verdict = Verdict.NO_REFERENCE if unknown else Verdict.INCONCLUSIVE
    return [Evidence(part, verdict, (one,)) for one in reasons]


def node_evidence(before: Sequence[Reason], after: Sequence[Reason]) -> list[Evidence]:
    """Return what spoke against the nodes before anything was measured, and what does after it.

    A node that one of them names was not judged, or not for sure. That a scheduler did not answer
    ``before`` is settled where it did later.
    """
    known = [why for why in before if why.code not in NO_ANSWERS]
    return [
        Evidence("nodes", Verdict.INCONCLUSIVE, (why,)) for why in dict.fromkeys((*after, *known))
    ]


@dataclass(frozen=True)
class Slowdown:
    """What is worse than in the last run by a fraction of it; ``usual`` is what others are."""

    name: str
    worse_by: float
    usual: float = 0.0


GATE_WORSE_THAN_LAST = Words(
    "gate.worse-than-last",
    "{figure} is {worse_by:percent} slower, usually within {usual:percent}",
    remedy="find what changed since then, or measure the node alone",
)
GATE_FAR_WORSE = Words(
    "gate.far-worse",
    "{figures:figure|figures} may be far worse: {figure} is {times:number} times worse",
    cause="two runs do not tell by how much runs differ here",
    remedy=(
        "`clustergate gate` again while nothing else runs, with more launches of that check (`-- "
        "-S CHECK.launches=10`)"
    ),
)
GATE_AS_LAST = Words(
    "gate.as-last",
    "none of {figures:figure|figures} is slower than unchanged machines are",
)


def evidence_against_run(
    slower: Iterable[Slowdown], judged: int, run: str, undecided: Iterable[Slowdown] = ()
) -> list[Evidence]:
    """Return which sets of the figures that were ``judged`` are slower than in an earlier run.

    Of the ``undecided`` figures none passes what is far worse.
    """
    part = f"against the run {run}"
    worst = sorted(slower, key=lambda one: -one.worse_by)
    evidence = list(
        more_worse(
            part,
            [
                GATE_WORSE_THAN_LAST(figure=x.name, worse_by=x.worse_by, usual=x.usual)
                for x in worst
            ],
        )
    )
    far = [one for one in undecided if one.worse_by > math.expm1(FAR_WORSE)]
    if far:
        one = max(far, key=lambda one: one.worse_by)
        doubt = GATE_FAR_WORSE(figures=len(far), figure=one.name, times=1 + one.worse_by)
        evidence.append(Evidence(part, Verdict.INCONCLUSIVE, (doubt,)))
    if judged and not evidence:
        evidence.append(Evidence(part, Verdict.PASS, (GATE_AS_LAST(figures=judged),)))
    return evidence
