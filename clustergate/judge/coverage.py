"""What a run should have judged, by what the site config and the references foresee. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Sequence

from clustergate.benchmarks.descriptor import Sweep
from clustergate.benchmarks.registry import benchmark_of, descriptor_of, every_check
from clustergate.core.commands import settings_given
from clustergate.core.figures import matrix_order, name_of
from clustergate.core.model import Case, CaseId, CaseRecord, CaseState, Conditions
from clustergate.core.notation import listed
from clustergate.core.reasons import Facts, Reason, Words
from clustergate.judge.references.lookup import References, effort_key, layout_key, matches
from clustergate.sites.description import Partition
from clustergate.sites.modes import (
    Mode,
    effort_of,
    has_layout,
    scaling_counts,
    sweep,
    used_shape,
)
from clustergate.sites.shape import Shape

UNTUNED = Words(
    "coverage.untuned",
    "{where} is for {foreseen}, but this ran {ran}",
    cause="its tuning is gone from the site config",
    remedy=(
        "write it back, as in docs/hpl-tuning.md, or make references of this effort with "
        "`clustergate baseline`"
    ),
)
TUNED_SINCE = Words(
    "coverage.tuned-since",
    "{where} is for {foreseen}, but this ran {ran}",
    cause=(
        "make references of this effort with `clustergate baseline`, or take the tuning out of "
        "the site config"
    ),
)

_LAYOUT = re.compile(r"(\d+)-ranks-(packed|one-per-node)(?:-(\d+)-cores-each)?(?:-unbound)?")


def uncovered(
    expected: Sequence[CaseId],
    cases: Sequence[Case],
    known: References,
    mode: Mode,
    partitions: Sequence[Partition],
    because: str,
    by_hand: Collection[str],
) -> tuple[tuple[Case, ...], tuple[Reason, ...]]:
    """Return what the references foresee and no case covers: missing cases, else notes.

    The parameters are those of :func:`not_as_foreseen` and :func:`dead_references`.
    """
    lost, smaller = not_as_foreseen(expected, cases, known, mode, partitions, because)
    reported = {(case.check, case.partition, case.stack) for case in lost}
    dead, others = dead_references(cases, known, mode, by_hand, reported)
    return (*lost, *dead), (*smaller, *others)


FEWER_CORES = Words(
    "coverage.fewer-cores",
    "{where} expects {foreseen}, and {ran}",
    cause="{has}",
    remedy=(
        "run it as the references expect, or make references of this launch with `clustergate "
        "baseline`"
    ),
)
ONE_NODE = Words(
    "coverage.one-node",
    (
        "the references expect {foreseen:names}, but the mode {mode} runs it on one node of "
        "{partition}"
    ),
    remedy="`--mode maintenance` runs it on all of them",
)
EXCLUDED_NODES = Words(
    "coverage.excluded-nodes",
    (
        "the references expect {foreseen:names}, but {partition} has {nodes:node|nodes} besides "
        "{excluded:excluded one|excluded ones}"
    ),
)


def not_as_foreseen(
    expected: Iterable[CaseId],
    cases: Sequence[Case],
    known: References,
    mode: Mode,
    partitions: Sequence[Partition],
    because: str = "",
) -> tuple[list[Case], list[Reason]]:
    """Return what references foresee and no case had the ranks, the nodes or the memory for.

    Each check of a partition and a stack of which a layout was not run is a case that is missing,
    and so is one that solved a smaller matrix because there is less memory; where nodes that the
    hostfile excludes with a reason explain it, a note. References of more sizes than this are used
    as they fit: nothing is missed where all cores ran with references of their own. ``because``
    says in words what may be the reason, such as an affinity. A published study is run as large as
    the machine allows, whatever was printed.
    """
    if mode.as_published:
        return [], []
    by_name = {partition.fullname: partition for partition in partitions}
    lost, notes = [], []
    for check, partition, stack in dict.fromkeys((k.check, k.partition, k.stack) for k in expected):
        mine = [c for c in cases if (c.check, c.partition, c.stack) == (check, partition, stack)]
        if any(_is_broken(case) for case in mine):
            # That is told by itself, and nobody knows how it would have been laid out.
            continue
        # Of a case that never ran its layout may be known all the same.
        ran = [conditions for conditions in _laid_out(mine) if "mode" in conditions]
        layouts = known.unmet_layouts(check, partition, stack, ran, mode.name)
        shape = by_name[partition].shape
        used = used_shape(mode.name, check, by_name[partition])
        usual = _usual(check, used, [one.shape for one in partitions])
        if used.ends and usual:
            layouts = [x for x in layouts if not _holds(used, x) or _placed(x) in usual]
        # One node cannot run what references foresee of more.
        beyond = [x for x in layouts if _holds(shape, x) and not _holds(used, x)]
        excused = [
            x for x in layouts if shape.excluded and not _holds(shape, x) and _holds(shape.whole, x)
        ]
        if any(
            _size_of(layout_key(conditions))[1] == shape.cores_per_node * shape.nodes
            and known.figures_of(check, partition, stack, conditions)
            for conditions in ran
        ):
            layouts = [x for x in layouts if not _holds(used, x) or _placed(x) in usual]
            layouts = [x for x in layouts if x not in excused]
            excused = []
        if inexcusable := [x for x in layouts if x not in (*excused, *beyond)]:
            why = FEWER_CORES(
                where=known.line_of(check, partition, stack),
                foreseen=listed(inexcusable),
                ran=_what_ran(mine),
                has=_size(partition, shape, because),
            )
            lost.append(Case(check, stack, CaseState.MISSING, (why,), partition=partition))
        elif beyond:
            facts: Facts = {"foreseen": beyond, "mode": mode.name}
            of_one = ONE_NODE(partition=partition, **facts)
            notes.append(of_one.at(f"{check} with {stack}"))
        elif excused:
            facts = {"foreseen": excused, "excluded": shape.excluded, "nodes": shape.nodes}
            fewer = EXCLUDED_NODES(partition=partition, **facts)
            notes.append(fewer.at(f"{check} with {stack}"))
        lost += _smaller(mine, known, mode, by_name[partition], because)
    return lost, notes


# N may be smaller by so much: it follows the clock that the kernel tells, and what is free.
_SMALLER = 0.9


LESS_MEMORY = Words(
    "coverage.less-memory",
    "{where} is for N={foreseen}, but this run solved N={solved}",
    cause="{partition} has memory for N={held} now{because}",
    remedy=(
        "run it as the references expect, or make references of this launch with `clustergate "
        "baseline`"
    ),
)


def _smaller(
    cases: Sequence[Case], known: References, mode: Mode, partition: Partition, because: str
) -> list[Case]:
    """Return the cases that solved a smaller matrix than their references, for want of memory."""
    smaller = []
    for case in cases:
        solved = matrix_order(case.figures, descriptor_of(case.check).matrix)
        if solved is None:
            continue
        where = (case.check, case.partition, case.stack)
        foreseen = known.matrix_order_of(*where, case.conditions)
        effort = effort_of(mode, benchmark_of(case.check))
        nodes = used_shape(mode.name, case.check, partition).nodes
        held = math.isqrt(int(effort.memory_fraction * partition.memory_bytes_per_node * nodes / 8))
        if foreseen is None or solved >= _SMALLER * foreseen or held >= foreseen:
            continue
        why = LESS_MEMORY(
            where=known.line_of(*where),
            foreseen=foreseen,
            solved=solved,
            held=held,
            partition=partition.fullname,
            because=f"; {because}" if because else "",
        )
        smaller.append(Case(*(case.check, case.stack, CaseState.MISSING, (why,), case.conditions),
                          partition=case.partition))  # fmt: skip
    return smaller


def dead_references(
    cases: Sequence[Case],
    known: References,
    mode: Mode,
    by_hand: Collection[str] = (),
    reported: Collection[tuple[str, str, str]] = (),
) -> tuple[list[Case], list[Reason]]:
    """Return what references foresee of a mode and no case made the effort for.

    Each check of a partition and a stack of which not one figure was compared, though the file
    foresees it as the mode runs it, tuned or not, is a case that is missing; a note where somebody
    set it otherwise, or where the file speaks of other efforts alone. ``by_hand`` are the names of
    the settings that were given (``-S``), ``reported`` are checks with partitions and
    stacks of which it is said already why their references do not hold.
    """
    if mode.as_published:
        return [], []
    lost, notes = [], []
    for of_one in dict.fromkeys((c.check, c.partition, c.stack) for c in cases):
        mine = [c for c in cases if (c.check, c.partition, c.stack) == of_one]
        if of_one in reported or any(case.state is not CaseState.RAN for case in mine):
            continue
        why, is_lost = _dead(mine, known, mode)
        check, partition, stack = of_one
        if why and is_lost:
            lost.append(Case(check, stack, CaseState.MISSING, (why,), partition=partition))
        elif why:
            notes.append(why.at(f"{check} with {stack}"))
    return lost, notes


LACKS_CASE = Words(
    "coverage.lacks-case",
    "{where} expects {what}, which the site config does not have",
    remedy="bring back what is gone, or remove these references",
)
LACKS_FIGURES = Words(
    "coverage.lacks-figures",
    "{where} expects {figures:names}, which {what} did not yield",
    remedy="see why the benchmark left them out, or remove these references",
)


def lacking(
    known: References, mode: Mode, partitions: Sequence[Partition], cases: Sequence[Case]
) -> list[Reason]:
    """Return what the references expect of a mode and nothing of the site, or no case, yields.

    That is a partition or a stack that the site config does not have, and a figure that a case did
    not yield which ran as they expect it. What the site config waives is not missed.
    """
    reasons = []
    for check, partition, stack in known.foreseen(mode.name):
        waived = any(one.waived and matches(partition, one.fullname) for one in partitions)
        has = any(
            known.chosen(check, one.fullname, name) == (check, partition, stack)
            for one in partitions
            for name in one.stacks
        )
        if check in mode.checks and not (has or waived):
            where = known.line_of(check, partition, stack)
            what = f"{check} with {stack} on {partition}"
            reasons.append(LACKS_CASE(where=where, what=what))
    ran = [case for case in cases if case.state is CaseState.RAN]
    for path, lost in known.unmeasured(ran):
        facts: Facts = {"where": known.line_of(*path), "what": "/".join(path[:4])}
        facts["figures"] = [
            *lost[:_NAMED],
            *([f"{len(lost) - _NAMED} more"] * (len(lost) > _NAMED)),
        ]
        reasons.append(LACKS_FIGURES(**facts))
    return reasons


_NAMED = 4


def gone_since(
    records: Iterable[CaseRecord],
    mode: Mode,
    partitions: Sequence[Partition],
    waived: Collection[tuple[str, str]],
) -> list[str]:
    """Return what an earlier run of a mode has and the site config does not have any more.

    That is a stack, a partition, or a layout that is no longer among the stated counts, placements
    and nodes; not what is excluded in the hostfile, nor ``waived``: checks with stacks.
    """
    by_name = {one.fullname: one for one in partitions}
    gone: dict[str, None] = {}
    for one in records:
        partition = by_name.get(one.partition)
        is_waived = (one.check, one.stack) in waived or bool(partition and partition.waived)
        if one.conditions.get("mode") != mode.name or one.check not in mode.checks or is_waived:
            continue
        if partition is None or one.stack not in partition.stacks:
            gone[f"{one.stack} on {one.partition}"] = None
        elif not has_layout(partitions, one.check, one.partition, one.conditions):
            layout = layout_key(one.conditions)
            gone[f"{one.stack} on {one.partition} as {layout}"] = None
    return list(gone)


def settings_by_hand(options: Sequence[str]) -> set[str]:
    """Return the names of the settings that options for ReFrame give, without their checks."""
    return {one.partition("=")[0].rpartition(".")[2] for one in settings_given(options)}


LAYOUT = frozenset({"ranks", "placement", "cores_per_rank"})
"""Settings by which a case is laid out otherwise, with the same effort."""
_TUNED = "tuned"


NO_FIGURE = Words(
    "coverage.no-figure",
    "{where} expects {foreseen}, but the run yielded no such figure",
)
SET_BY_HAND = Words(
    "coverage.set-by-hand",
    "{where} is for {foreseen}, but this ran {ran}, as -S asked for",
)
OTHER_EFFORT = Words("coverage.other-effort", "{where} is for {foreseen}, but this ran {ran}")


def _dead(cases: Sequence[Case], known: References, mode: Mode) -> tuple[Reason | None, bool]:
    """Return why references of these cases do not hold, and whether that is a finding."""
    where = (cases[0].check, cases[0].partition, cases[0].stack)
    entries_of_cases = [known.figures_of(*where, case.conditions) for case in cases]
    met = [entries for entries in entries_of_cases if entries is not None]
    measured = {name_of(figure) for case in cases for figure in case.figures}
    if met and not any(measured.intersection(figures) for _, figures in met):
        line, figures = met[0]
        return NO_FIGURE(where=line, foreseen=listed(list(figures))), True
    made = list(dict.fromkeys(effort_key(case.conditions) for case in cases))
    tuned = f"{mode.name}+{_TUNED}=yes"
    foreseen = known.efforts(*where, [mode.name, tuned])
    others = {
        effort: line
        for effort, line in foreseen.items()
        if not any(matches(effort, one) for one in made)
    }
    own = [effort for effort in others if matches(effort, mode.name) or matches(effort, tuned)]
    lost_tuning = tuned not in made and any(matches(effort, tuned) for effort in own)
    set_by_hand = bool(_settings_of(cases) - {_TUNED})
    if met or len(others) < len(foreseen):
        # What it made has references, and where it has other ranks that is told by itself.
        others = {e: line for e, line in others.items() if matches(e, tuned)}
        if not lost_tuning or set_by_hand:
            return None, False
    if not others:
        return None, False
    first = next(effort for effort in (*own, *others) if effort in others)
    named = listed([first, *(effort for effort in others if effort != first)])
    facts: Facts = {"where": others[first], "foreseen": named, "ran": listed(made)}
    if set_by_hand:
        return SET_BY_HAND(**facts), False
    if not own:
        return OTHER_EFFORT(**facts), False
    return (UNTUNED if lost_tuning else TUNED_SINCE)(**facts), not met


def _settings_of(cases: Sequence[Case]) -> set[str]:
    """Return the names of the settings that cases had other than the mode gives them."""
    words = (str(case.conditions.get("settings", "")).split(",") for case in cases)
    return {word.partition("=")[0] for of_one in words for word in of_one if word}


def _is_broken(case: Case) -> bool:
    is_told = case.state.broken or case.state is CaseState.NOT_LAUNCHED
    return is_told and "placement" not in case.conditions


def _laid_out(cases: Sequence[Case]) -> list[Conditions]:
    here = (case for case in cases if case.state is not CaseState.NOT_AVAILABLE)
    return [case.conditions for case in here if "ranks" in case.conditions]


def _what_ran(cases: Sequence[Case]) -> str:
    ran = dict.fromkeys(map(layout_key, _laid_out(cases)))
    absent = dict.fromkeys(c.reason for c in cases if c.state is CaseState.NOT_AVAILABLE)
    parts = [f"it ran with {listed(list(ran))}"] if ran else ["it did not run"]
    return ", ".join([*parts, *(f"as it is not available here ({reason})" for reason in absent)])


def _size(partition: str, shape: Shape, because: str) -> str:
    nodes = f"{shape.nodes} nodes of " if shape.nodes > 1 else ""
    cores = f"{shape.cores_per_node} core{'s' if shape.cores_per_node > 1 else ''}"
    size = f"{partition} has {nodes}{cores} now"
    return f"{size}; {because}" if because else size


def _usual(check: str, shape: Shape, shapes: Sequence[Shape]) -> set[tuple[int, str]]:
    """Return the ranks and placements over which a check sweeps on a partition."""
    swept = every_check()[check].sweep
    if swept is Sweep.LAYOUTS:
        return set(sweep(shape, shapes))
    counts = scaling_counts(shape, shapes) if swept is Sweep.PROCESS_COUNTS else []
    return {(n, how) for n in counts for how in shape.placements()}


def _placed(layout: str) -> tuple[int, str]:
    match = _LAYOUT.fullmatch(layout)
    return (int(match[1]), match[2]) if match else (0, "")


def _size_of(layout: str) -> tuple[int, int]:
    """Return how many ranks a layout has, and how many cores for all of them."""
    match = _LAYOUT.fullmatch(layout)
    ranks, each = (int(match[1]), int(match[3] or 1)) if match else (0, 0)
    return ranks, ranks * each


def _holds(shape: Shape, layout: str) -> bool:
    match = _LAYOUT.fullmatch(layout)
    return match is not None and shape.holds(int(match[1]), match[2], int(match[3] or 1))
