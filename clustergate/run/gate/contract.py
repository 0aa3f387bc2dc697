"""What must be judged before the gate opens, and what of it fits into a budget."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from clustergate.benchmarks.registry import every_check
from clustergate.core.model import (
    BadRequest,
    Case,
    CaseId,
    CaseState,
    ClustergateError,
    Figure,
    Verdict,
)
from clustergate.core.notation import counted, listed
from clustergate.core.quantities import parse_duration
from clustergate.core.reasons import Reason, Words
from clustergate.core.words import OPTION_NOT_POSITIVE
from clustergate.judge.history.stored_runs import Taken
from clustergate.run.forecast import usual_seconds
from clustergate.run.software_evidence import Builds
from clustergate.sites import modes
from clustergate.sites.description import Site
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
_JUDGED = (Verdict.PASS, Verdict.IMPROVEMENT, Verdict.REGRESSION)
# Settings that a mode makes by itself.
_OWN_SETTINGS = ("", "tuned=yes")


@dataclass(frozen=True)
class Item:
    """One thing that a mode must see judged: ``what`` it is, and the control ``by`` which it was.

    Where it was not, ``why`` says so, and ``remedy`` what would decide it: empty where that is told
    beside the figures or the case themselves. It is of a ``check`` with a ``stack``.
    """

    check: str
    stack: str
    what: str
    by: str = ""
    why: str = ""
    remedy: str = ""

    @property
    def judged(self) -> bool:
        """Tell whether a control decided it."""
        return not self.why


def items_of(
    mode: Mode,
    required: Iterable[CaseId],
    cases: Sequence[Case],
    left_out: Mapping[tuple[str, str], tuple[str, str]],
    control_of: Callable[[str], Control] = lambda stack: NO_CONTROL,
) -> list[Item]:
    """Return what became of each case that a mode must see judged.

    ``left_out`` says of a check and a stack why it was not run, and what would run it,
    ``control_of`` of a stack what judges its figures that have no reference.
    """
    by_identity = {case.identity: case for case in cases}
    uncovered_items = []
    for key in required:
        by, why, remedy = "", "it did not run", ""
        case = by_identity.get(key)
        if pair := left_out.get((key.check, key.stack)):
            why, remedy = pair
        elif case is not None and case.state is CaseState.NOT_AVAILABLE:
            why, remedy = f"not available here: {case.reason}", _PROVIDE
        elif case is not None and case.state is CaseState.FAILED:
            why = "it failed"
        elif case is not None and case.state is CaseState.RAN:
            by, why, remedy = _judged_by(mode, case, control_of(key.stack))
        what = f"{key.check} with {key.stack} on {key.where}"
        uncovered_items.append(Item(key.check, key.stack, what, by, why, remedy))
    return uncovered_items


_SEE = "see which option or build left it out"
_PROVIDE = "provide what is missing, or let the site config waive it with the reason"


def _judged_by(mode: Mode, case: Case, control: Control) -> tuple[str, str, str]:
    """Return what judged a case that ran, or else why nothing did, and what would decide it."""
    settings = str(case.conditions.get("settings", ""))
    if settings not in _OWN_SETTINGS:
        why = f"it ran with {settings}, which the mode {mode.name} does not set"
        return "", why, "run the gate without that setting"
    alone = case.conditions.get("ranks") == 1
    check = every_check()[case.check]
    wanted = [
        name
        for name in judged_figures(mode, check)
        if not (alone and name in check.between_processes)
    ]
    if absent := [name for name in wanted if not any(_is_of(f, name) for f in case.figures)]:
        return "", f"it left no figure of {listed(absent)}", _SEE
    given = [f.judgement.verdict for f in case.figures]
    given += [g.judgement.verdict for g in case.groups]
    undecided = [verdict for verdict in given if verdict not in _JUDGED]
    if not undecided:
        return BY_REFERENCE, "", ""
    said = f"{len(undecided)} of {len(given)} figures have no"
    # What a reference leaves open speaks against the figure: no control closes that.
    if {*undecided} != {Verdict.NO_REFERENCE}:
        return "", f"{said} verdict", ""
    if control.by:
        partly = "" if len(undecided) == len(given) else f"{BY_REFERENCE}; "
        return partly + control.by, "", ""
    if not control.why:
        return "", f"{said} verdict", ""
    remedy = control.remedy or "make references with `clustergate baseline`"
    return "", f"{said} reference, and no control: {control.why}", remedy


def _is_of(figure: Figure, name: str) -> bool:
    benchmark, _, metric = name.partition(".")
    return figure.benchmark == benchmark and metric in ("", figure.metric)


LEFT_OUT = Words("gate.left-out", "{cases}", cause="{why}", remedy="{remedy}")


def reasons_of(items: Iterable[Item]) -> list[Reason]:
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
        control_of: Callable[[str], Control] = lambda stack: NO_CONTROL,
    ) -> list[Item]:
        """Return what became of all that must be judged."""
        mode = modes.mode_named(MAINTENANCE)
        return items_of(mode, self.required, cases, self.left_out, control_of)

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


def _covers(needed_s: float, golden_s: float) -> str:
    budget = f"{needed_s / 60:.0f}m"
    also = ", golden builds included" if golden_s else ""
    return f"a budget of {budget} covers everything{also} (`clustergate gate --budget {budget}`)"


_NOT_NAMED = ("left out by --stack", "run `clustergate gate` without --stack")


ALL_WAIVED = Words(
    "gate.all-waived",
    "the site config waives every case, so there is nothing to judge",
)


def contract_of(
    site: Site,
    named: Sequence[str],
    budget: str | None,
    took_before: Taken,
    builds: Builds = Builds.OTHER,
    golden_s: float = 0.0,
) -> Contract:
    """Return what must be judged: every case of the mode that the site config does not waive.

    ``named`` stacks alone are run, where there are some, and what fits into a ``budget``, beside
    golden builds, which take ``golden_s`` at most. Raises :class:`ClustergateError` where nothing
    of it must be judged.
    """
    mode = modes.mode_named(MAINTENANCE)
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
    seconds = {**took_before, **usual_seconds(required, took_before)}
    # What is waived with every stack is not run; with some of them it runs beside the others.
    run = [check for check in checks if any(key.check == check for key in required)]
    pairs = {pair: seconds.get(pair, 0.0) for pair in itertools.product(run, stacks)}
    nodes = max(partition.shape.nodes for partition in site.partitions)
    needed_s = budget_for(pairs.values(), nodes, golden_s)
    budget_s = parse_duration(budget) if budget else needed_s
    if budget and not budget_s:
        raise BadRequest(OPTION_NOT_POSITIVE(options="--budget"))
    allotted = allot(budget_s, nodes, run, stacks, pairs, builds, golden_s)
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
    return Contract(required, stacks, left_out, allotted, granted_s, needed_s, golden_s, notes)


# --- what fits into the budget ----------------------------------------------------------------

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
    seconds_of: Mapping[tuple[str, str], float],
    builds: Builds = Builds.OTHER,
    golden_s: float = 0.0,
) -> Allotment:
    """Return what to do within a budget, what finds most first.

    First the screening, because one bad node or link is the commonest fault and no benchmark names
    it: HPL alone only where it leaves most of the screening to the pairs. Then the benchmarks, in
    their order, with the first stack; then other stacks, where all fits. ``seconds_of`` is what to
    expect of a check with a stack, ``golden_s`` what golden builds take at most: where all of it
    fits they may, and else half of what nothing else needs is theirs. ``builds`` that are equal
    leave nodes and links as what may have changed, of which more launches are made. Raises
    ValueError for no budget, and without stacks.
    """
    if budget_s <= 0:
        raise ValueError(f"a budget is a time above 0, not {budget_s:g} s")
    if not stacks:
        raise ValueError("there is no stack to run anything with")
    needed = (seconds_of[check, stack] for check in checks for stack in stacks)
    fits = budget_for(needed, nodes, golden_s) <= budget_s
    budget_s -= golden_s if fits else 0.0
    screening_s = min(_SCREENING_SHARE * budget_s, _longest_screening_s(nodes))
    hpl_s = _ALONE_S if screening_s >= 4 * _ALONE_S else 0.0
    left_s = budget_s - screening_s
    chosen = []
    for check in checks:
        check_s = seconds_of[check, stacks[0]]
        if check_s <= left_s:
            chosen.append(check)
            left_s -= check_s
    with_stacks = [stacks[0]] if chosen else []
    for stack in stacks[1:]:
        stack_s = sum(seconds_of[check, stack] for check in chosen)
        if chosen and stack_s <= left_s:
            with_stacks.append(stack)
            left_s -= stack_s
    # Of what nothing else needs, half is for doubts and half for golden builds that have no share.
    for_doubts_s = left_s / 2 if golden_s and not fits else left_s
    screening_s = min(screening_s + for_doubts_s, _longest_screening_s(nodes))
    left_out = [
        (check, stack)
        for stack in stacks
        for check in checks
        if check not in chosen or stack not in with_stacks
    ]
    launches = _LAUNCHES if builds is Builds.EQUAL else 0
    run = tuple(chosen), tuple(with_stacks), tuple(left_out)
    return Allotment(screening_s, hpl_s, *run, launches)


def budget_for(seconds: Iterable[float], nodes: int, golden_s: float = 0.0) -> float:
    """Return the smallest budget in whole minutes, in seconds, that leaves nothing out.

    ``seconds`` are what each check takes with each stack, ``golden_s`` what golden builds do.
    """
    benchmarks_s = sum(seconds)
    whole_s = min(benchmarks_s / (1 - _SCREENING_SHARE), benchmarks_s + _longest_screening_s(nodes))
    return 60.0 * math.ceil((whole_s + golden_s) / 60.0)


def _longest_screening_s(nodes: int) -> float:
    return 2 * _ALONE_S if nodes < FEWEST else _LONGEST_SCREENING_S
