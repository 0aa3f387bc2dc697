"""What is said first, wherever it is read: verdict, causes, what next, headline figures. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import shorten
from typing import Any, NamedTuple

from clustergate.benchmarks.descriptor import Headline, Share
from clustergate.benchmarks.registry import every_benchmark, every_headline, title_of
from clustergate.core.figures import name_of
from clustergate.core.model import (
    CHANGED,
    EXPECTATIONS,
    LAUNCHED_AGAIN,
    NODES,
    REFERENCES,
    RESUMED,
    Better,
    Case,
    CaseId,
    CaseState,
    Evidence,
    Figure,
    Run,
    Standing,
    Verdict,
)
from clustergate.core.notation import counted, rounded
from clustergate.core.reasons import Reason, sentence_of
from clustergate.core.texts import (
    DISTURBED,
    DOUBT,
    DOUBTFUL,
    SHARE,
    UNEXCUSED,
    VARIANT,
    column_of,
    doubts,
    duration,
    group_name,
)
from clustergate.judge.assembly import is_undecided, verdicts, wrong_in
from clustergate.judge.confirmation import unconfirmed
from clustergate.judge.history.series import key_of
from clustergate.judge.judging import exit_status, worst_status
from clustergate.report.answer import (
    BAD,
    GOOD,
    OPEN,
    Trouble,
    absences,
    answer_of,
    own_expectations,
    results,
    troubles,
    where,
    where_of,
)
from clustergate.sites.modes import MAINTENANCE

_GATE_MEANING = "a result has no reference, or its comparison is inconclusive"
BUSY = "busy"
"""What is said of other programs that ran meanwhile, before who they were."""
CAUSES_SHOWN = 5
"""Causes of a verdict that stand beside it; further below, or on the page, stand all of them."""
# A share above the whole is no share: the peak was measured at a worse moment.
ABOVE_PEAK = f"> 100{DOUBTFUL}"
WHY_ABOVE_PEAK = (
    f"{ABOVE_PEAK}: more than the node's own kernels reached right before and after, when "
    "something slowed them, such as others on the node or on its host"
)
_BEST_OF = "each headline figure is the best of {}; the report's cases have those of each"
WHAT_COUNTS = (
    "the run before is no reference: `clustergate compare` says which differences between two runs "
    "are more than noise"
)
_WHOLE, NS_PER_US = 100.0, 1000.0
_BEST = " (best)"
NOT_TOLD_APART = (
    "no variant is the best beyond the scatter of its launches: `-S launches=10` makes more of them"
)
IN_DOUBT = f"no variant is the best: doubtful results ({DOUBTFUL}) tell none apart"
REFERENCE, RUN_BEFORE = "reference", "run before"
# Less is shown as no difference at all.
_EQUAL_PERCENT = 0.05
_WHOLE_FROM = 9.95
# From which change on it is told as a factor.
_FACTOR_FROM = 1.5
_MARKS = re.compile(r"\((?:R|TM|r|tm)\)|\bfor Linux\* OS\b|(?<= MPI) Library\b")


@dataclass(frozen=True)
class Cause:
    """Why a verdict is what it is: of ``where`` there is ``sentence`` to be said.

    ``case`` is the first of the cases that it is said of, none where it is of all; ``what`` is the
    verdict, or what else became of the case. ``short`` leaves out what to do about it. The
    ``codes`` are those of its reasons.
    """

    css: str
    what: str
    where: str
    sentence: str
    short: str
    case: Case | None = None
    codes: Sequence[str] = ()

    def __str__(self) -> str:
        return ": ".join(filter(None, [self.what, self.where, self.sentence]))

    @property
    def briefly(self) -> str:
        """What it says without what to do about it."""
        return ": ".join(filter(None, [self.what, self.where, self.short]))


@dataclass(frozen=True)
class FirstScreen:
    """What a page and the terminal say first: ``look`` is a class of the style sheet.

    ``exits`` are commands with their exit statuses and what these mean, ``next_steps`` sentences
    with a command each, ``beside`` what is to be known of the sentence. On a terminal the answer is
    ``told_by_cause``, where the sentence only says in general what that means.
    """

    look: str
    word: str
    sentence: str
    causes: Sequence[Cause] = ()
    next_steps: Sequence[str] = ()
    exits: Sequence[tuple[str, int, str]] = ()
    beside: Sequence[str] = ()
    told_by_cause: bool = False

    @property
    def mark(self) -> str:
        return _MARK_OF_LOOK.get(self.look, OPEN)

    def lines(self, rest: str = "on the page") -> list[str]:
        """Return what a terminal says first: the answer and its cause, then what to do now."""
        return [self.answer, *self.evidence(rest), *self.steps]

    @property
    def answer(self) -> str:
        """The line with the mark and the word."""
        said = self.sentence
        if self.causes and self.told_by_cause:
            first = self.causes[0]
            said = ": ".join(filter(None, [first.where, first.short]))
        return f" {self.mark} {shorten(f'{self.word}: {said}', _OF_ANSWER, placeholder=' …')}"

    def evidence(self, rest: str = "on the page") -> list[str]:
        """Return the causes that the answer does not name, and what is to be known beside it.

        ``rest`` says where those are that have no room.
        """
        shown = self.causes[self.told_by_cause : CAUSES_ON_TERMINAL]
        more = len(self.causes) - CAUSES_ON_TERMINAL
        return [
            *(f" ! {shorten(each.briefly, _OF_CAUSE, placeholder=' …')}" for each in shown),
            *([f"   and {more} more {rest}"] if more > 0 else []),
            *(f"   {line}" for line in self.beside),
        ]

    @property
    def steps(self) -> list[str]:
        """What to do now, a line each."""
        return [f" {'Next' if k == 0 else '':4}  {step}" for k, step in enumerate(self.next_steps)]

    @property
    def exit_lines(self) -> list[str]:
        """The exit status of each command, and what it means."""
        return [f"{command}: exit status {n}: {means}" for command, n, means in self.exits]


_MARK_OF_LOOK = {"pass": GOOD, "regression": BAD}
CAUSES_ON_TERMINAL = 3
# A sentence takes two lines at most, and what stands beside the answer one.
_OF_ANSWER, _OF_CAUSE = 180, 94


# --- a run ----------------------------------------------------------------------------------------


def first_screen(run: Run) -> FirstScreen:
    """Return what is said first of a run; of ``gate`` in its mode, if it differs."""
    judged = verdicts(run.cases)
    both = [*judged, *(one.verdict for one in run.evidence)]
    check, gate = status_of(run), exit_status(both, "gate")
    exits = [(run.command, check, exit_meaning(run))]
    if run.mode == MAINTENANCE and gate != check:
        exits.append(("clustergate gate", gate, _GATE_MEANING))
    counts = Counter(judged)
    ran = sum(case.state is CaseState.RAN for case in run.cases)
    figures = len(results(run.cases))
    in_words = ", ".join(f"{counts[v]} {v.value}" for v in Verdict if counts[v])
    measured = counted(figures, "result") if figures else "nothing"
    groups = sum(len(case.groups) for case in run.cases)
    measured += f" and {counted(groups, 'group')}" if groups else ""
    whole = (
        f"{', '.join(filter(None, [run.system, run.sharing, f'mode {run.mode}']))}, "
        f"{ran} of {len(run.cases)} benchmarks ran in "
        f"{duration(run.duration_s)}, {measured} measured: {in_words}{_disturbed(run.cases)}"
    )
    stated = expectations(run)
    beside_it = [f"{EXPECTATIONS.upper()}: {stated}", *of_other_runs(run)] if stated else []
    beside_it += _without_expectation(run) if stated else ()
    beside_it += [f"Judged is {run.session}."] * bool(run.session)
    answer = answer_of(run, check)
    return FirstScreen(
        answer.look.name.lower(),
        answer.word,
        answer.sentence,
        # Who used the cores may be told by the answer.
        [x for x in causes(run) if x.what != BUSY or x.short[1:] not in answer.sentence],
        [f"`{command}`: {why}" for why, command in next_steps(run)],
        exits,
        [whole, *beside_it],
    )


_AS_VERDICT = {
    Standing.MET: Verdict.PASS,
    Standing.UNDECIDED: Verdict.INCONCLUSIVE,
    Standing.NOT_COMPARED: Verdict.INVALID,
    Standing.MISSED: Verdict.REGRESSION,
}


def expectations(run: Run) -> str:
    """Return how many expectations of a run are met, and what the worst of the others is.

    Empty where it had none to compare.
    """
    own = own_expectations(run)
    if not own:
        return ""
    met = sum(one.standing is Standing.MET for one in own)
    others = sorted(
        (one for one in own if one.standing is not Standing.MET),
        key=lambda one: -_AS_VERDICT[one.standing].severity,
    )
    text = f"{met} of {len(own)} met"
    if not others:
        return text
    first, more = others[0], len(others) - 1
    of = f", {first.of}" if first.of and first.standing is not Standing.NOT_COMPARED else ""
    called = "" if first.standing is Standing.MISSED else f"{first.standing.value}: "
    return f"{text}. {called}{first.reason.without_remedy}{of}" + (
        f"; and {more} more not met" if more else ""
    )


def of_other_runs(run: Run) -> Iterator[str]:
    """Yield in a line which expectations are of another mode, stack or number of nodes."""
    others = [one for one in run.expectations if one.standing is Standing.ELSEWHERE]
    if others:
        whys = [str(one.reason) for one in others[:CAUSES_SHOWN]]
        more = len(others) - len(whys)
        yield f"{counted(len(others), 'expectation')} not of this run: {'; '.join(whys)}" + (
            f"; and {more} more" if more else ""
        )


def _without_expectation(run: Run) -> Iterator[str]:
    """Yield in a line how many figures nobody expects anything of, nor any reference."""
    figures = [figure for case in run.cases for figure in case.figures if figure.estimate]
    bare = sum(
        not one.expected and one.judgement.verdict is Verdict.NO_REFERENCE for one in figures
    )
    if bare:
        yield (
            f"{counted(bare, 'result')} without an expectation or a reference: judged by physical "
            "limits alone"
        )


def _disturbed(cases: Sequence[Case]) -> str:
    """Return how many launches were disturbed of the cases with references whose verdict it is.

    Where no reference holds the first cause says so.
    """
    whys: dict[CaseId, Reason] = {}
    for case in cases:
        judgements = [*(f.judgement for f in case.figures), *(g.judgement for g in case.groups)]
        for judgement in judgements:
            for why in judgement.reasons:
                if why.code == UNEXCUSED.code:
                    return "; launches were disturbed, which explains only part of it"
                if why.code == DISTURBED.code and judgement.verdict is Verdict.INCONCLUSIVE:
                    whys[case.identity] = why
    counts = (
        sum(int(str(why.facts[n])) for why in whys.values()) for n in ("disturbed", "launches")
    )
    disturbed, launches = counts
    were = "was" if disturbed == 1 else "were"
    return f"; {disturbed} of {counted(launches, 'launch')} {were} disturbed" if whys else ""


def status_of(run: Run) -> int:
    """Return the exit status of a run: the worst of its cases and of what was found beside them."""
    beside = exit_status([one.verdict for one in run.evidence], "gate")
    return worst_status([2 * _fails_as_undecided(run), exit_status(verdicts(run.cases)), beside])


def exit_meaning(run: Run) -> str:
    """Return why a run has its exit status."""
    status, judged = status_of(run), verdicts(run.cases)
    if status == 1:
        return "something is worse than its reference, an expectation or its golden build"
    faults = {
        "a benchmark did not run, or was not proven": Verdict.INVALID in judged,
        "a result exceeds a physical limit": Verdict.IMPOSSIBLE in judged,
        "no result of a benchmark could be judged, and --strict was given": _fails_as_undecided(
            run
        ),
        "results are of another day": any(one.part == RESUMED for one in run.evidence),
        "what looks slow is not confirmed": any(one.part == LAUNCHED_AGAIN for one in run.evidence),
        "an expectation was not compared": any(one.part == EXPECTATIONS for one in run.evidence),
        "a node looks slow, which is not confirmed": any(one.part == NODES for one in run.evidence),
        "a reference was not compared": any(one.part == REFERENCES for one in run.evidence),
        "a figure changed, of which nobody says which way is better": any(
            one.part == CHANGED for one in run.evidence
        ),
        "software could not be compared with its golden build": any(
            exit_status([one.verdict], "gate")
            for one in run.evidence
            if one.part not in (RESUMED, EXPECTATIONS, REFERENCES, LAUNCHED_AGAIN, NODES, CHANGED)
        ),
    }
    return "; ".join(what for what, holds in faults.items() if holds) or "no fault found"


def _fails_as_undecided(run: Run) -> bool:
    return run.strict and any(map(is_undecided, run.cases))


def next_steps(run: Run) -> list[tuple[str, str]]:
    """Return what to do after a run: for what, and the command."""
    if not run.session:
        return next_commands(run.cases, run.run_id, run.mode)
    for case in run.cases:
        if (case.state.broken or wrong_in(case) or unconfirmed(case)) and case.command:
            return [("this test again, then judge", case.command)]
    return []


def next_commands(cases: Sequence[Case], run_id: str, mode: str) -> list[tuple[str, str]]:
    """Return what to do now: for what, and the command; nothing where nothing is left to do."""
    measured_again = f"clustergate check --mode {mode}"
    if any(case.state is CaseState.MISSING for case in cases):
        return [("the missing benchmarks", f"clustergate check --resume {run_id}")]
    for case in cases:
        of = f"--check {case.check} --stack {case.stack}"
        if any(judged.verdict is Verdict.REGRESSION for _, judged in wrong_in(case)):
            return [
                ("since when, and what changed then", f"clustergate history {of}"),
                ("this benchmark again", f"{measured_again} {of}"),
            ]
    for case in cases:
        if case.state is CaseState.FAILED or wrong_in(case):
            of = f"--check {case.check} --stack {case.stack}"
            return [("again, once the cause is mended", f"{measured_again} {of}")]
    is_meant = CaseState.RAN, CaseState.NOT_LAUNCHED
    stacks = list(dict.fromkeys(case.stack for case in cases if case.state in is_meant))
    contest = [f"clustergate ab {stacks[0]} {stacks[1]}"] if len(stacks) > 1 else []
    figures = [figure for case in cases for figure in case.figures]
    if 2 * sum(figure.doubt is not None for figure in figures) > len(figures):
        return [
            *(("works on a busy machine, 3 min", f"{command}{_of_few()}") for command in contest),
            ("when nothing else runs", measured_again),
        ]
    if figures and {f.judgement.verdict for f in figures} == {Verdict.NO_REFERENCE}:
        return [
            *(("which MPI is faster, for sure, 20 s", command) for command in contest),
            ("what this machine should reach", "clustergate expect"),
            ("judge later runs, after 5 over an hour", "clustergate baseline"),
        ]
    if any(map(is_undecided, cases)):
        return [("again, when nothing else runs", measured_again)]
    return []


def _of_few() -> str:
    """Return what lets an A against B end beside eight times as many programs as cores.

    That are ten rounds of one benchmark.
    """
    contests = (one.ab for one in every_benchmark().values() if one.ab)
    names = [name for one in contests for name in one.point_to_point]
    return f" --benchmarks {names[0]} --budget 2m" if names else ""


def causes(run: Run) -> list[Cause]:
    """Return why the verdict is what it is, the worst first; no cause is told twice."""
    return [
        *map(_of_trouble, troubles(run.cases)),
        *(cause_of(one) for one in run.evidence if one.verdict is not Verdict.PASS),
        *_unsure_groups(run.cases),
        *(
            Cause("no_reference", "not judged", "", str(why), str(why), codes=codes_of([why]))
            for why in run.unjudged
        ),
        *_doubts(run),
        *_not_launched(run.cases),
        *(Cause("unavailable", "not available", *of, of[1]) for of in absences(run.cases)),
    ]


def _not_launched(cases: Sequence[Case]) -> list[Cause]:
    """Return in one cause how many cases a busy node was spared."""
    left = [case for case in cases if case.state is CaseState.NOT_LAUNCHED]
    sentence = f"{len(left)} of {counted(len(cases), 'benchmark')}, as others kept this node busy"
    return [Cause("inconclusive", "not run", "", sentence, sentence) for _ in left[:1]]


def _cause(
    verdict: Verdict,
    where: str,
    sentence: str,
    short: str,
    reasons: Sequence[Reason],
    case: Case | None = None,
) -> Cause:
    return Cause(
        verdict.name.lower(), verdict.value, where, sentence, short, case, codes_of(reasons)
    )


def codes_of(reasons: Iterable[Reason]) -> list[str]:
    """Return the codes of reasons, each once; one of before there were codes has none."""
    return [*dict.fromkeys(why.code for why in reasons if why.code)]


def cause_of(one: Evidence) -> Cause:
    """Return a piece of evidence as the cause of a verdict."""
    short = "; ".join(why.without_remedy for why in one.reasons)
    return _cause(one.verdict, where_of(one), "; ".join(map(str, one.reasons)), short, one.reasons)


def _of_trouble(trouble: Trouble) -> Cause:
    case, more = trouble.case, ""
    if trouble.reason:
        called, reasons = case.state.value, case.reasons
    else:
        (called, judgement), *others = trouble.wrong
        reasons = judgement.reasons
        more = f"; and {counted(len(others), 'result')} more" if others else ""
    text = f"{called}: {sentence_of(reasons)}{more}"
    short = f"{called}: {_first(reasons)}{more}"
    return _cause(trouble.verdict, trouble.where, text, short, reasons, case)


def _first(reasons: Sequence[Reason]) -> str:
    """Return the first of the reasons, and what a disturbance explains of it."""
    shown = [*reasons[:1], *(one for one in reasons[1:] if one.code == UNEXCUSED.code)]
    return "; ".join(one.without_remedy for one in shown)


def _unsure_groups(cases: Sequence[Case]) -> Iterator[Cause]:
    """Yield of each case with groups of which nobody can tell the first, and how many there are."""
    several = len({case.partition for case in cases}) > 1
    for case in cases:
        unsure = [g for g in case.groups if g.judgement.verdict is Verdict.INCONCLUSIVE]
        if unsure:
            first, name = unsure[0].judgement, group_name(unsure[0])
            more = f"; and {counted(len(unsure) - 1, 'group')} more" if len(unsure) > 1 else ""
            text, short = (
                f"{name}: {first.sentence}{more}",
                f"{name}: {_first(first.reasons)}{more}",
            )
            place = where(case, [case.partition] * several)
            yield _cause(Verdict.INCONCLUSIVE, place, text, short, first.reasons, case)


def _doubts(run: Run) -> Iterator[Cause]:
    doubtful = doubts(run.cases, title_of)
    for doubt in doubtful:
        yield Cause("inconclusive", DOUBT, "", str(doubt), str(doubt), codes=codes_of([doubt]))
    for sentence in run.beside if doubtful else ():
        yield Cause("inconclusive", BUSY, "", sentence, sentence)


# --- what was measured ---------------------------------------------------------------------------


def machine(state: Mapping[str, Any], *, briefly: bool = False) -> str:
    """Return a node in a line: processor, cores, memory; operating system and kernel, too."""
    groups: Mapping[str, Any] = state.get("fingerprint") or {}
    hardware, software = (groups.get(name) or {} for name in ("hardware", "software"))
    kernel = (groups.get("kernel") or {}).get("release")
    memory, cores = hardware.get("memory_total_gib"), hardware.get("cores")
    parts = [
        _plain(hardware.get("processor") or ""),
        cores and counted(cores, "core"),
        memory and f"{memory:.0f} GiB",
        "virtual" if hardware.get("virtual_machine") else "",
    ]
    if not briefly:
        parts += [software.get("operating_system"), kernel and f"kernel {kernel}"]
    return ", ".join(str(one) for one in parts if one)


def libraries(cases: Sequence[Case]) -> dict[str, str]:
    """Return by stack what its MPI library said of itself in the ranks, without legal marks."""
    said: dict[str, dict[str, None]] = {}
    for case in cases:
        said.setdefault(case.stack, {}).update({_plain(case.library): None} if case.library else {})
    ran = {case.stack for case in cases if case.figures}
    return {
        stack: ", ".join(said[stack]) or ("version unknown" if stack in ran else "not launched")
        for stack in sorted(said)
    }


@dataclass(frozen=True)
class Measured:
    """What stands below the verdict: the node, the stacks by name and library, the headlines.

    ``against`` says what the figures are compared with, ``notes`` what is to be known of them,
    ``alone`` why they stand beside no earlier run's.
    """

    machine: str
    stacks: Mapping[str, str]
    rows: Sequence[HeadlineRow]
    against: Sequence[str]
    notes: Sequence[str]
    alone: str = ""

    @property
    def columns(self) -> dict[str, str]:
        """What the figures stand below, with the library of each: stacks, or their variants."""
        names = dict.fromkeys(name for row in self.rows for name in row.cells)
        of_each = {s: [n for n in names if n.split(" ")[0] == s] or [s] for s in self.stacks}
        return {name: self.stacks[stack] for stack, of in of_each.items() for name in of}


def measured(run: Run) -> Measured:
    """Return what stands below the verdict of a run."""
    by_stack = sorted(run.cases, key=lambda case: case.stack)
    columns = list(dict.fromkeys(map(column_of, by_stack)))
    rows = list(headlines(run, columns))
    cells = [cell for row in rows for cell in row.cells.values()]
    against = [name for name in (REFERENCE, RUN_BEFORE) if any(name in c.gains for c in cells)]
    partitions = dict.fromkeys(case.partition for case in run.cases if case.figures)
    notes = {
        **{f"{row.title} above 100 %: {row.above_whole}": True for row in rows if row.above_whole},
        _BEST_OF.format(", ".join(partitions)): bool(rows) and len(partitions) > 1,
        WHY_ABOVE_PEAK: any(cell.text == ABOVE_PEAK for cell in cells),
        WHAT_COUNTS: against == [RUN_BEFORE],
        why_none_is_best(run): not any(cell.text.endswith(_BEST) for cell in cells),
    }
    return Measured(
        machine(run.machine),
        libraries(run.cases),
        rows,
        against,
        [note for note, applies in notes.items() if note and applies],
        _why_alone(run) if rows and RUN_BEFORE not in against else "",
    )


def why_none_is_best(run: Run) -> str:
    """Return why no variant of a sweep is marked, empty where there was no sweep."""
    swept = [f for case in run.cases if VARIANT in case.conditions for f in case.figures]
    if any(figure.doubt for figure in swept):
        return IN_DOUBT
    return NOT_TOLD_APART if swept else ""


def _why_alone(run: Run) -> str:
    """Return why figures are not compared with an earlier run's: one may have them, disturbed."""
    if any(
        figure.doubt and _value_before(run, case, figure) is not None
        for case in run.cases
        for figure in case.figures
    ):
        return f"Doubtful results ({DOUBTFUL}) are not compared with those of an earlier run"
    return "No earlier run has results without a doubt to compare these with"


def _plain(name: str) -> str:
    return " ".join(_MARKS.sub("", name).split())


# --- headline figures ---------------------------------------------------------------------------


class Gain(NamedTuple):
    """By how many percent a value is better than another, and how many times the larger is more."""

    percent: float
    times: float

    @property
    def is_none(self) -> bool:
        """Whether it is too small to print."""
        return abs(self.percent) < _EQUAL_PERCENT

    @property
    def is_factor(self) -> bool:
        """Whether it is so large that it is told as a factor."""
        return self.times > _FACTOR_FROM

    @property
    def amount(self) -> str:
        """With two digits, as far as it can be trusted; of a time, 190 % less is hard to read."""
        if self.is_factor:
            return f"{self.times:.0f} x" if self.times >= _WHOLE_FROM else f"{self.times:.1f} x"
        percent = abs(self.percent)
        return f"{percent:.0f} %" if percent >= _WHOLE_FROM else f"{percent:.1f} %"


@dataclass(frozen=True)
class HeadlineCell:
    """A figure, and by how much it is better than its reference and than the run before."""

    text: str
    css: str
    gains: Mapping[str, Gain]


@dataclass(frozen=True)
class HeadlineRow:
    """A line of the headline figures, or of their shares, with those stacks that have it.

    ``above_whole`` says how one of its figures can exceed 100 %, where one does.
    """

    title: str
    unit: str
    cells: Mapping[str, HeadlineCell]
    share: bool = False
    above_whole: str = ""


Picked = tuple[Case, Figure, float]


def headlines(run: Run, columns: Sequence[str]) -> Iterator[HeadlineRow]:
    """Yield the lines of headline figures that at least one column has.

    Of the variants of a sweep the best is marked if its launches tell it from all others.
    """
    for headline in every_headline():
        figures = {name: one for name in columns if (one := picked(headline, name, run.cases))}
        if figures:
            best = set() if headline.metric == SHARE else told_apart(figures.values())
            cells = {
                name: HeadlineCell(
                    written(one, headline) + _BEST * (name in best),
                    one[1].judgement.verdict.name.lower(),
                    gains(*one[1:], _value_before(run, *one[:2])),
                )
                for name, one in figures.items()
            }
            exceeds = any(value > _WHOLE for *_, value in figures.values())
            how = headline.above_whole if exceeds else ""
            yield HeadlineRow(headline.title, headline.unit, cells, above_whole=how)
        if share := headline.share:
            shares = {name: share_of(one, share) for name, one in figures.items()}
            cells = {name: HeadlineCell(text, "", {}) for name, text in shares.items() if text}
            if cells:
                yield HeadlineRow(share.title, "%" if share.rate else "", cells, share=True)


def told_apart(figures: Iterable[Picked]) -> set[str]:
    """Return the columns of the best variant of each stack, if its launches tell it apart.

    Its interval must lie beyond those of all other variants; what is doubtful tells nothing.
    """
    by_stack: dict[str, list[tuple[Case, Figure]]] = {}
    for case, figure, _ in figures:
        if VARIANT in case.conditions:
            by_stack.setdefault(case.stack, []).append((case, figure))
    return {best for variants in by_stack.values() if (best := _best_of(variants))}


def _best_of(variants: Sequence[tuple[Case, Figure]]) -> str:
    bounds: list[tuple[float, float, str]] = []
    for case, figure in variants:
        estimate = figure.estimate
        if figure.doubt or not estimate or estimate.low is None or estimate.high is None:
            return ""
        low, high = estimate.low, estimate.high
        ends = {Better.HIGHER: (low, high), Better.LOWER: (-high, -low)}.get(figure.better)
        if ends is None:
            return ""
        bounds.append((*ends, column_of(case)))
    worst_of_best, _, name = max(bounds)
    beyond = all(high < worst_of_best for _, high, other in bounds if other != name)
    return name if beyond and len(bounds) > 1 else ""


def _value_before(run: Run, case: Case, figure: Figure) -> float | None:
    return run.before.get((key_of(case), name_of(figure))) if run.before else None


def gains(figure: Figure, value: float, before: float | None = None) -> dict[str, Gain]:
    """Return how much better a figure is than its reference, and than in the run before."""
    expected = [reason.facts.get("reference") for reason in figure.judgement.reasons]
    reference = next((one for one in expected if isinstance(one, float | int)), None)
    # How far a doubtful figure is from another run's says nothing of either.
    beside = {REFERENCE: reference, RUN_BEFORE: None if figure.doubt else before}
    return {name: gain(value, one, figure.better) for name, one in beside.items() if one}


def gain(value: float, other: float, better: Better) -> Gain:
    """Return by how much a value is better than another; higher where none is better."""
    ratio = value / other
    percent = _WHOLE * (ratio - 1)
    # Nothing is a multiple of a rate of zero, nor of a value of the other sign.
    times = max(ratio, 1 / ratio) if ratio > 0 else 1.0
    return Gain(-percent if better is Better.LOWER else percent, times)


def compared(value: float, other: float, better: Better) -> str:
    """Return by how much a value is better or worse than another, in words."""
    change = gain(value, other, better)
    if better is Better.NEITHER and not change.is_none:
        return f"{change.percent:+.1f} %"
    return gain_text(change)


def gain_text(gain: Gain) -> str:
    """Return a gain as ``2.1 % worse``, a large one as ``2.9 x worse``."""
    return "equal" if gain.is_none else f"{gain.amount} {'worse' if gain.percent < 0 else 'better'}"


def picked(headline: Headline, column: str, cases: Sequence[Case]) -> Picked | None:
    """Return the figure of a column that a headline shows, with its case and its value."""
    candidates = [
        (case, figure, figure.estimate.value)
        for case in cases
        if column_of(case) == column and case.check == headline.check
        for figure in case.figures
        if headline.shows(figure) and figure.estimate is not None
    ]
    if not candidates:
        return None
    values = [value for _, _, value in candidates]
    # What is no number is not even equal to itself.
    best = candidates[values.index(headline.picked(values, candidates[0][1].better))]
    # Of several that are equal, a doubt about one is about all.
    return next((one for one in candidates if one[1].doubt and one[2] == best[2]), best)


def written(picked: Picked | None, headline: Headline) -> str:
    """Return the value of a headline's figure, ``-`` where there is none."""
    if picked is None:
        return "-"
    _, figure, value = picked
    if figure.metric == "efficiency_percent" and figure.doubt and value > _WHOLE:
        return ABOVE_PEAK
    return rounded(value * headline.scale) + (DOUBTFUL if figure.doubt else "")


def percent_of_peak(case: Case, value: float, share: Share) -> float:
    """Return how much of the peak that its job measured a rate is, all ranks of a node together."""
    ranks = float(case.conditions.get("ranks_per_node", 1)) if share.per_rank else 1.0
    return _WHOLE * value * ranks / case.peaks[share.peak]


def share_of(picked: Picked | None, share: Share) -> str:
    """Return what a figure is of its node's peak; empty where that is not known."""
    if picked is None:
        return ""
    case, figure, value = picked
    peak = case.peaks.get(share.peak)
    if not peak or (not share.rate and case.conditions.get("nodes") != 1):
        return ""
    mark = DOUBTFUL if figure.doubt else ""
    if not share.rate:
        return f"{value * NS_PER_US / peak:.0f}{mark}"
    percent = percent_of_peak(case, value, share)
    return ABOVE_PEAK if percent > _WHOLE else f"{rounded(percent)}{mark}"
