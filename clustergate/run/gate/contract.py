"""What must be judged before the gate opens, and what of it fits into a budget."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from clustergate.benchmarks.registry import every_check
from clustergate.core.figures import name_of
from clustergate.core.model import (
    OF_MORE_RANKS,
    BadRequest,
    Case,
    CaseId,
    CaseState,
    ClustergateError,
    Figure,
    Judgement,
    Promise,
    Verdict,
)
from clustergate.core.notation import counted, listed
from clustergate.core.quantities import parse_duration
from clustergate.core.reasons import Reason, Words
from clustergate.core.texts import figure_name
from clustergate.core.words import OPTION_NOT_POSITIVE
from clustergate.judge.confirmation import FIGURE_SAME_MEASUREMENT, NOT_CONFIRMED, ON_NODES
from clustergate.judge.disproof import REFERENCE_OUTGROWN
from clustergate.judge.history.stored_runs import Taken
from clustergate.judge.judging import REFERENCE_NONE
from clustergate.judge.promises import why_open
from clustergate.judge.rules import LAUNCHES_ALL_SLOW, LAUNCHES_SLOW_SHARE
from clustergate.run.forecast import usual_seconds
from clustergate.run.software_evidence import Builds
from clustergate.run.timetable import jobs_of, timetable
from clustergate.sites import modes
from clustergate.sites.description import Partition, Site
from clustergate.sites.modes import MAINTENANCE, Mode, judged_figures
from clustergate.sites.schedulers import scheduler_of
from clustergate.studies.screen.findings import FEWEST

BY_REFERENCE = "its references"


@dataclass(frozen=True)
class Control:
    """What stands for references that are not there: ``by`` says what, empty where nothing does.

    Then ``why`` tells the reason, and ``remedy`` what would be a control.
    """

    by: str = ""
    why: str = ""
    remedy: str = ""


NO_CONTROL = Control()
ControlOf = Callable[[str], Control]
"""What stands for references of a stack that say nothing."""
_JUDGED = (Verdict.PASS, Verdict.IMPROVEMENT, Verdict.REGRESSION)
# Settings that a mode makes by itself.
_OWN_SETTINGS = ("", "tuned=yes")


def no_control(stack: str) -> Control:
    """Return that nothing stands for the references of a stack."""
    return NO_CONTROL


@dataclass(frozen=True)
class Requirement:
    """A case or a whole (its ``name``) that must be judged, and ``by`` which control it was.

    Where it was not judged, ``why`` says so, and ``remedy`` what would decide it: empty where
    that is told beside the figures or the case themselves. It is of a ``check`` with a ``stack``,
    and ``unknown`` where there is nothing at all to compare it with.
    """

    check: str
    stack: str
    name: str
    by: str = ""
    why: str = ""
    remedy: str = ""
    unknown: bool = False

    @property
    def judged(self) -> bool:
        """Tell whether a control decided it."""
        return not self.why


def case_requirements(
    mode: Mode,
    required: Iterable[CaseId],
    cases: Sequence[Case],
    left_out: Mapping[tuple[str, str], tuple[str, str]],
    control_of: ControlOf = no_control,
) -> list[Requirement]:
    """Return what became of each case that a mode must see judged.

    ``left_out`` says of a check and a stack why it was not run, and what would run it,
    ``control_of`` of a stack what judges what its references do not.
    """
    by_identity = {case.identity: case for case in cases}
    items = []
    for key in required:
        item = Requirement(key.check, key.stack, f"{key.check} with {key.stack} on {key.where}")
        case = by_identity.get(key)
        if pair := left_out.get((key.check, key.stack)):
            item = dataclasses.replace(item, why=pair[0], remedy=pair[1])
        elif case is not None and case.state is CaseState.NOT_AVAILABLE:
            why = f"not available here: {case.reason}"
            item = dataclasses.replace(item, why=why, remedy=_PROVIDE)
        elif case is not None and case.state is CaseState.FAILED:
            item = dataclasses.replace(item, why="it failed")
        elif case is not None and case.state is CaseState.RAN:
            item = _judged(item, mode, case, control_of(key.stack))
        else:
            item = dataclasses.replace(item, why="it did not run")
        items.append(item)
    return items


def promise_requirements(
    promises: Mapping[str, Sequence[Promise]], control_of: ControlOf = no_control
) -> list[Requirement]:
    """Return what became of stacks and of kinds of figures in each partition, as wholes."""
    items = []
    for partition, some in promises.items():
        for one in some:
            name = f"{one.level} {one.name} on {partition}"
            item = Requirement("all cases", ", ".join(one.of), name)
            bys = {control_of(stack).by for stack in one.of}
            if (left := why_open(one)) is None:
                item = dataclasses.replace(item, by=BY_REFERENCE)
            elif all(bys):
                item = dataclasses.replace(item, by="; ".join(sorted(bys)))
            else:
                item = dataclasses.replace(item, why=left.without_remedy, remedy=left.remedy)
            items.append(item)
    return items


_SEE = "see which option or build left it out"
_PROVIDE = "provide what is missing, or let the site config waive it with the reason"
_MAKE_REFERENCES = "make references with `clustergate baseline`"


def _judged(item: Requirement, mode: Mode, case: Case, control: Control) -> Requirement:
    """Return what judged a case that ran, or else why nothing did, and what would decide it."""
    settings = str(case.conditions.get("settings", ""))
    if settings not in _OWN_SETTINGS:
        why = f"it ran with {settings}, which the mode {mode.name} does not set"
        return dataclasses.replace(item, why=why, remedy="run the gate without that setting")
    alone = case.conditions.get("ranks") == 1
    check = every_check()[case.check]
    # Of a check that names none, all that it measured.
    wanted = [
        name
        for name in judged_figures(mode, check) or dict.fromkeys(f.benchmark for f in case.figures)
        if not (alone and name in check.between_processes)
    ]
    if absent := [name for name in wanted if not any(_is_of(f, name) for f in case.figures)]:
        why = f"it left no figure of {listed(absent)}"
        return dataclasses.replace(item, why=why, remedy=_SEE)
    open_names = {name: left for name in wanted if (left := _why_open(case, name))}
    figures = [f for f in case.figures if any(_is_of(f, name) for name in wanted)]
    by_reference = next(filter(None, map(_of_more_ranks, figures)), BY_REFERENCE)
    if not open_names:
        return dataclasses.replace(item, by=by_reference)
    if control.by and not any(map(_is_open_in_itself, figures)):
        partly = "" if len(open_names) == len(wanted) else f"{by_reference}; "
        return dataclasses.replace(item, by=partly + control.by)
    known = [one for one in open_names.values() if one is not NOTHING_THERE]
    if known:
        more = f"; and {len(known) - 1} more" * (len(known) > 1)
        why = known[0].without_remedy + more
        return dataclasses.replace(item, why=why, remedy=known[0].remedy)
    why = f"{len(open_names)} of {counted(len(wanted), 'figure')} have no reference"
    why += f", and no control: {control.why}" * bool(control.why)
    remedy = control.remedy or _MAKE_REFERENCES
    return dataclasses.replace(item, why=why, remedy=remedy, unknown=True)


def _of_more_ranks(figure: Figure) -> str:
    """Return by what a figure was judged that has no references of its own ranks, else nothing."""
    for why in figure.judgement.reasons:
        if ranks := why.facts.get("more_ranks"):
            return f"{BY_REFERENCE} {OF_MORE_RANKS.format(ranks=ranks)}"
    return ""


FASTER = Words(
    "gate.faster",
    "{gain:percent} faster than its reference, which it outgrew",
    remedy="take a new baseline, which shows what becomes slower from here on",
)
# Beyond that rather the reference is wrong than the software faster.
_MOST_GAINED = 1.5


def accept_gains(
    cases: Iterable[Case], promises: Mapping[str, Sequence[Promise]] = MappingProxyType({})
) -> list[Case]:
    """Return cases of which figures that outgrew their reference are called faster, no fault.

    So they are where another stack is in this run what it was: the machine is as it was when the
    references were made, and one stack became faster. Where no other stack tells that, the
    references may be of slow days: they count as if there were none. Whatever gained half of it all
    stays what it was called.
    """
    return [_with_gains(case, promises.get(case.partition, ())) for case in cases]


def _with_gains(case: Case, wholes: Sequence[Promise]) -> Case:
    others = any(one.level == "stack" and one.kept and case.stack not in one.of for one in wholes)
    verdict = Verdict.IMPROVEMENT if others else Verdict.NO_REFERENCE

    def called(figure: Figure) -> Figure:
        of = figure.judgement
        why = next((one for one in of.reasons if one.code == REFERENCE_OUTGROWN.code), None)
        if of.verdict is not Verdict.INVALID or why is None:
            return figure
        ratio = why.facts.get("ratio")
        if not isinstance(ratio, float) or not 1 / _MOST_GAINED <= ratio <= _MOST_GAINED:
            return figure
        gain = max(ratio, 1 / ratio)
        faster = Judgement(verdict, (FASTER(gain=gain - 1),))
        return dataclasses.replace(figure, judgement=faster)

    return dataclasses.replace(case, figures=tuple(map(called, case.figures)))


def gain_over_reference(figure: Figure) -> float:
    """Return by what share a figure outgrew its reference, 0 for one that did not."""
    gains = [why.facts["gain"] for why in figure.judgement.reasons if why.code == FASTER.code]
    return max((one for one in gains if isinstance(one, float)), default=0.0)


NOTHING_THERE = REFERENCE_NONE()
# So large a part of a benchmark's sizes may lack a reference.
_FEW = 1 / 3
# Several launches may be slow, and the best of them is as it was.
_SLOW_AT_TIMES = {LAUNCHES_SLOW_SHARE.code, LAUNCHES_ALL_SLOW.code}
_OPEN_IN_ITSELF = {*_SLOW_AT_TIMES, NOT_CONFIRMED.code, ON_NODES.code}


def _is_open_in_itself(figure: Figure) -> bool:
    """Tell whether no control can stand for the verdict that a figure lacks."""
    verdict, reasons = figure.judgement.verdict, figure.judgement.reasons
    doubtful = figure.doubt is not None or any(why.code in _OPEN_IN_ITSELF for why in reasons)
    return verdict in (Verdict.IMPOSSIBLE, Verdict.INVALID) or (doubtful and verdict not in _JUDGED)


def _why_open(case: Case, name: str) -> Reason | None:
    """Return why references do not judge what must be judged of a case, None where they do.

    Of a benchmark they must do so as a whole, and of each of its figures that is not in that; of a
    few sizes there may be none, such as of those that scatter too much.
    """
    figures = [one for one in case.figures if _is_of(one, name)]
    promise = next((one for one in case.promises if one.name == name), None)
    within, bare = set(promise.figures) if promise else set(), 0
    for figure in figures:
        verdict, reasons = figure.judgement.verdict, figure.judgement.reasons
        codes = {why.code for why in reasons}
        if verdict in _JUDGED or FIGURE_SAME_MEASUREMENT.code in codes:
            continue
        if figure.doubt is not None:
            return figure.doubt.at(figure_name(figure))
        if verdict is Verdict.NO_REFERENCE:
            bare += 1
            continue
        if name_of(figure) not in within or codes & _SLOW_AT_TIMES:
            return reasons[0].at(figure_name(figure)) if reasons else NOTHING_THERE
    if bare and (promise is None or bare > _FEW * len(figures)):
        return NOTHING_THERE
    for group in case.groups:
        slow = {why.code for why in group.judgement.reasons} & _SLOW_AT_TIMES
        if group.benchmark == name.partition(".")[0] and slow:
            return group.judgement.reasons[0].at(group.benchmark)
    if promise is not None and not all(one.judgement.verdict in _JUDGED for one in figures):
        return why_open(promise)
    return None


def _is_of(figure: Figure, name: str) -> bool:
    benchmark, _, metric = name.partition(".")
    return figure.benchmark == benchmark and metric in ("", figure.metric)


LEFT_OUT = Words("gate.left-out", "{cases}", cause="{why}", remedy="{remedy}")


def open_reasons(items: Iterable[Requirement]) -> list[Reason]:
    """Return what was not judged, all that shares a cause and a remedy together."""
    together: dict[tuple[str, str], dict[str, dict[str, None]]] = {}
    for item in items:
        if item.remedy:
            by_stack = together.setdefault((item.why, item.remedy), {})
            by_stack.setdefault(item.stack, {})[item.check] = None
    return [
        LEFT_OUT(cases=_by_stacks(by_stack), why=why, remedy=remedy)
        for (why, remedy), by_stack in together.items()
    ]


def _by_stacks(by_stack: Mapping[str, Iterable[str]]) -> str:
    alike: dict[tuple[str, ...], list[str]] = {}
    for stack, checks in by_stack.items():
        alike.setdefault(tuple(checks), []).append(stack)
    return "; ".join(
        f"{', '.join(checks)} with {', '.join(stacks)}" for checks, stacks in alike.items()
    )


# --- the contract -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Contract:
    """What must be judged before the gate opens, and what of it is run.

    ``stacks`` are those of which something may be run. ``left_out`` says of a check and a stack why
    it is not run, and what would run it; ``seconds`` is about how long the rest takes, and
    ``needed_s`` all of it, with ``golden_s`` for golden builds.
    """

    required: Sequence[CaseId]
    stacks: Sequence[str]
    left_out: Mapping[tuple[str, str], tuple[str, str]]
    allotted: Allotment
    seconds: float
    needed_s: float
    golden_s: float
    notes: Sequence[str]

    @property
    def is_short_of_time(self) -> bool:
        """Tell whether the budget leaves something out."""
        return self.seconds < self.needed_s

    def left_after_screening_s(self) -> float:
        """Return how long what comes after the screening takes, if all of it is as foreseen."""
        return max(0.0, self.seconds - self.allotted.screening_s)

    def judged_by(
        self,
        cases: Sequence[Case],
        control_of: ControlOf = no_control,
        promises: Mapping[str, Sequence[Promise]] = MappingProxyType({}),
    ) -> list[Requirement]:
        """Return what became of all that must be judged: cases, and ``promises`` on wholes."""
        mode = modes.mode_named(MAINTENANCE)
        items = case_requirements(mode, self.required, cases, self.left_out, control_of)
        return items + promise_requirements(promises, control_of)

    def with_nothing_judged(self, why: str, remedy: str) -> Contract:
        """Return a contract that finds faults, but by which the gate does not open, and why."""
        pairs = {(key.check, key.stack) for key in self.required}
        return dataclasses.replace(self, left_out=dict.fromkeys(pairs, (why, remedy)))

    def deciding_software(self, seconds: float, used_s: float) -> Contract:
        """Return a contract in whose budget golden builds are launched for so many seconds.

        ``used_s`` passed before they were.
        """
        others_s = max(self.needed_s - self.golden_s, used_s)
        needed_s = max(self.needed_s, 60.0 * math.ceil((others_s + seconds) / 60.0))
        was, now = _covers(self.needed_s, self.golden_s), _covers(needed_s, seconds)
        left_out = {
            pair: (why, now if to == was else to) for pair, (why, to) in self.left_out.items()
        }
        return dataclasses.replace(self, left_out=left_out, needed_s=needed_s, golden_s=seconds)


def _notes_on_partitions(site: Site) -> Iterator[str]:
    """Yield what the site config leaves out of the partitions, in words for the answer."""
    for one in site.partitions:
        if one.waived:
            yield f"waived by the site config: partition {one.name}: {one.waived}"
        elif not one.stacks and not scheduler_of(one.scheduler).is_batch:
            yield f"not judged: partition {one.name}, to which no stack belongs"
        elif one.reserved_cores_per_node:
            cores = counted(one.reserved_cores_per_node, "core")
            yield f"not judged: {cores} of each node of {one.name}, which no job gets"
        if one.process_counts:
            counts = ", ".join(map(str, one.process_counts))
            yield f"partition {one.name} is judged with {counts} processes alone (`process_counts`)"
        if one.placements:
            how = ", ".join(one.placements)
            yield f"partition {one.name} is judged with ranks {how} alone (`placements`)"
    # Of the mode's own choice, behind what the site chose.
    for one in site.partitions:
        if not one.process_counts and (between := _between_the_ends(one)):
            yield f"not judged: {counted(between, 'layout')} between the ends on {one.name}"


def _between_the_ends(partition: Partition) -> int:
    """Return how many process counts and placements of a partition the mode passes over."""
    shape = partition.shape
    ends = modes.sweep(dataclasses.replace(shape, ends=True), [shape])
    return len(modes.sweep(shape, [shape])) - len(ends)


def _covers(needed_s: float, golden_s: float) -> str:
    budget = f"{needed_s / 60:.0f}m"
    also = ", golden builds included" if golden_s else ""
    return f"a budget of {budget} covers everything{also} (`clustergate gate --budget {budget}`)"


_NOT_NAMED = ("left out by --stack", "run `clustergate gate` without --stack")


ALL_WAIVED = Words(
    "gate.all-waived",
    "the site config waives every case, so there is nothing to judge",
)


def make_contract(
    site: Site,
    named: Sequence[str],
    budget: str | None,
    took_before: Taken,
    builds: Builds = Builds.OTHER,
    golden_s: float = 0.0,
    referenced: Collection[str] | None = None,
) -> Contract:
    """Return what must be judged: every case of the mode that the site config does not waive.

    Of checks that the site config chose beside the mode's own, only those ``referenced`` must:
    others run, and are told until they have references, as long as something must. None stands for
    all.
    ``named`` stacks alone are run, where there are some, and what fits into a ``budget``, beside
    golden builds, which take ``golden_s`` at most. Raises :class:`ClustergateError` where nothing
    of it must be judged.
    """
    mode = modes.mode_named(MAINTENANCE, site.checks)
    checks = mode.checks
    waived = {(check, s.name): why for s in site.stacks for check, why in s.waivers.items()}
    judged = [one for one in site.partitions if not one.waived]
    required = [
        key
        for key in modes.expected_cases(checks, judged, mode)
        if (key.check, key.stack) not in waived
    ]
    stacks = [
        stack.name
        for stack in site.stacks_named(named)
        if any(key.stack == stack.name for key in required)
    ]
    if not stacks:
        raise ClustergateError(ALL_WAIVED())
    added = [check for check in checks if check not in mode.own_checks]
    unreferenced = [c for c in added if referenced is not None and c not in referenced]
    # What is waived with every stack is not run; with some of them it runs beside the others.
    run = [check for check in checks if any(key.check == check for key in required)]
    cases = modes.expected_cases(run, site.partitions, mode)
    jobs = jobs_of(mode, cases, usual_seconds(cases, took_before), site.partitions)

    def seconds_for(checks: Sequence[str], stacks: Sequence[str]) -> float:
        some = [one for one in jobs if one.case.check in checks and one.case.stack in stacks]
        return timetable(some, site.partitions).seconds

    nodes = max(partition.shape.nodes for partition in site.partitions)
    needed_s = budget_for(seconds_for(run, stacks), nodes, golden_s)
    budget_s = parse_duration(budget) if budget else needed_s
    if budget and not budget_s:
        raise BadRequest(OPTION_NOT_POSITIVE(options="--budget"))
    allotted = allot(budget_s, nodes, run, stacks, seconds_for, builds, golden_s)
    too_little = (f"left out, because the budget is {budget}", _covers(needed_s, golden_s))
    left_out = {
        **{(key.check, key.stack): _NOT_NAMED for key in required if key.stack not in stacks},
        **dict.fromkeys(allotted.left_out, too_little),
    }
    notes = [
        f"waived by the site config: {check} with {stack}: {reason}"
        for (check, stack), reason in waived.items()
        if check in checks
    ]
    notes += _notes_on_partitions(site)
    granted_s = min(budget_s, needed_s)
    notes += [
        f"left out by the site config: {check}" for check in mode.own_checks if check not in checks
    ]
    if judged_now := [key for key in required if key.check not in unreferenced]:
        required = judged_now
        notes += [
            f"not judged until it has references: {check} (`clustergate baseline --check {check}`)"
            for check in unreferenced
        ]
    return Contract(required, stacks, left_out, allotted, granted_s, needed_s, golden_s, notes)


# --- what fits into the budget ----------------------------------------------------------------

SecondsFor = Callable[[Sequence[str], Sequence[str]], float]
"""How long some checks take with some stacks."""
# The least that screening and the benchmarks are given of a budget.
_SCREENING_SHARE = 0.4
_LONGEST_SCREENING_S = 1200.0
_ALONE_S = 60.0
# Of so many launches that are slow one time in ten, one is with 77 %; of the seven that a node has
# at least, with 52 %.
_LAUNCHES = 14


@dataclass(frozen=True)
class Allotment:
    """What a budget is spent on, in seconds; ``left_out`` are checks with stacks that do not fit.

    ``hpl_s`` is for HPL on each node alone, a part of ``screening_s``. Every one of ``checks`` runs
    with every one of ``stacks``. ``launches`` are the fewest of each node's raw kernels and with
    others in the screening, 0 for what it takes.
    """

    screening_s: float
    hpl_s: float
    checks: tuple[str, ...]
    stacks: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...]
    launches: int = 0


def allot(
    budget_s: float,
    nodes: int,
    checks: Sequence[str],
    stacks: Sequence[str],
    seconds_for: SecondsFor,
    builds: Builds = Builds.OTHER,
    golden_s: float = 0.0,
) -> Allotment:
    """Return what to do within a budget, what finds most first.

    First the screening, because one bad node or link is the commonest fault and no benchmark names
    it: HPL alone only where it leaves most of the screening to the pairs. Then the benchmarks, in
    their order, with the first stack; then other stacks, where all fits. ``seconds_for`` is how
    long checks take with stacks, side by side where they may, ``golden_s`` what golden builds take
    at most: where all of it fits they may, and else half of what nothing else needs is theirs.
    ``builds`` that are equal leave nodes and links as what may have changed, of which more launches
    are made. Raises
    ValueError for no budget, and without stacks.
    """
    if budget_s <= 0:
        raise ValueError(f"a budget is a time above 0, not {budget_s:g} s")
    if not stacks:
        raise ValueError("there is no stack to run anything with")
    fits = budget_for(seconds_for(checks, stacks), nodes, golden_s) <= budget_s
    budget_s -= golden_s if fits else 0.0
    screening_s = min(_SCREENING_SHARE * budget_s, _longest_screening_s(nodes))
    left_s = budget_s - screening_s
    chosen: list[str] = []
    for check in checks:
        if seconds_for([*chosen, check], stacks[:1]) <= left_s:
            chosen.append(check)
    with_stacks = [stacks[0]] if chosen else []
    for stack in stacks[1:]:
        if chosen and seconds_for(chosen, [*with_stacks, stack]) <= left_s:
            with_stacks.append(stack)
    left_s -= seconds_for(chosen, with_stacks)
    # Of what nothing else needs, half is for doubts and half for golden builds that have no share.
    for_doubts_s = left_s / 2 if golden_s and not fits else left_s
    screening_s = min(screening_s + for_doubts_s, _longest_screening_s(nodes))
    hpl_s = _ALONE_S if screening_s >= 4 * _ALONE_S else 0.0
    left_out = [
        (check, stack)
        for stack in stacks
        for check in checks
        if check not in chosen or stack not in with_stacks
    ]
    launches = _LAUNCHES if builds is Builds.EQUAL else 0
    run = tuple(chosen), tuple(with_stacks), tuple(left_out)
    return Allotment(screening_s, hpl_s, *run, launches)


def budget_for(benchmarks_s: float, nodes: int, golden_s: float = 0.0) -> float:
    """Return the smallest budget in whole minutes, in seconds, that leaves nothing out.

    ``golden_s`` is what golden builds take beside the benchmarks.
    """
    whole_s = min(benchmarks_s / (1 - _SCREENING_SHARE), benchmarks_s + _longest_screening_s(nodes))
    return 60.0 * math.ceil((whole_s + golden_s) / 60.0)


def _longest_screening_s(nodes: int) -> float:
    return 2 * _ALONE_S if nodes < FEWEST else _LONGEST_SCREENING_S
