"""What a run should have judged, by what the site config and the references foresee. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from clustergate.model import Case, CaseKey, CaseState, Figure, Verdict
from clustergate.modes import BETWEEN_PROCESSES, Mode, Partition, Shape
from clustergate.references import References, layout_key

_LAYOUT = re.compile(r"(\d+)-ranks-(packed|one-per-node)(?:-(\d+)-cores-each)?(?:-unbound)?")
_NAMED = 4


def not_as_foreseen(
    expected: Iterable[CaseKey],
    cases: Sequence[Case],
    known: References,
    mode: Mode,
    partitions: Sequence[Partition],
    restriction: str = "",
) -> tuple[list[Case], list[str]]:
    """Return what references foresee and no case had the ranks or the nodes for.

    Each check of a partition and a stack of which a layout was not run is a case that is missing;
    where nodes that the hostfile excludes with a reason explain it, a note. ``restriction`` says in
    words what keeps this process from some of its node's cores. The evaluations of papers are run
    as large as the machine allows, whatever was printed.
    """
    if mode.paper:
        return [], []
    by_name = {partition.name: partition for partition in partitions}
    lost, notes = [], []
    for check, partition, stack in dict.fromkeys((k.check, k.partition, k.stack) for k in expected):
        mine = [c for c in cases if (c.check, c.partition, c.stack) == (check, partition, stack)]
        if any(_is_broken(case) for case in mine):
            # That is told by itself, and nobody knows how it would have been laid out.
            continue
        ran = [case.conditions for case in mine if "ranks" in case.conditions]
        layouts = known.unmet_layouts(check, partition, stack, ran, mode.name)
        shape = by_name[partition].shape
        excused = [layout for layout in layouts if _is_excused(layout, shape)]
        if inexcusable := [layout for layout in layouts if layout not in excused]:
            where = known.line_of(check, partition, stack)
            reason = f"{where} foresees {_listed(inexcusable)}, and {_what_ran(mine)}: "
            reason += f"{_size(partition, shape, restriction)}; run it as foreseen, or make "
            reason += "references of this launch with `clustergate baseline`"
            lost.append(Case(check, stack, CaseState.MISSING, reason, partition=partition))
        elif excused:
            notes.append(
                f"not judged: {check} with {stack}: the references foresee {_listed(excused)}, and "
                f"without the excluded nodes ({shape.excluded}) {partition} has {shape.nodes}"
            )
    return lost, notes


def _is_broken(case: Case) -> bool:
    broken = (CaseState.FAILED, CaseState.MISSING)
    return case.state in broken and "placement" not in case.conditions


def _what_ran(cases: Sequence[Case]) -> str:
    ran = dict.fromkeys(layout_key(case.conditions) for case in cases if "ranks" in case.conditions)
    absent = dict.fromkeys(c.reason for c in cases if c.state is CaseState.NOT_AVAILABLE)
    told = [f"it ran with {_listed(list(ran))}"] if ran else ["it did not run"]
    return ", ".join([*told, *(f"as it is not available here ({reason})" for reason in absent)])


def _size(partition: str, shape: Shape, restriction: str) -> str:
    nodes = f"{shape.nodes} nodes of " if shape.nodes > 1 else ""
    cores = f"{shape.cores_per_node} core{'s' if shape.cores_per_node > 1 else ''}"
    told = f"{partition} has {nodes}{cores} now"
    return f"{told}, as {restriction}" if restriction else told


def _is_excused(layout: str, shape: Shape) -> bool:
    """Tell whether a layout fits the partition, but for the nodes that are excluded."""
    match = _LAYOUT.fullmatch(layout)
    if match is None or not shape.excluded:
        return False
    ranks, placement, cores = int(match[1]), match[2], int(match[3] or 1)
    return not shape.holds(ranks, placement, cores) and shape.whole.holds(ranks, placement, cores)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


# --- what a mode must see judged ----------------------------------------------------------------

BY_REFERENCE = "its references"
_JUDGED = (Verdict.PASS, Verdict.IMPROVEMENT, Verdict.REGRESSION)
# Settings that a mode makes by itself.
_OWN_SETTINGS = ("", "tuned=yes")


@dataclass(frozen=True)
class Item:
    """One thing that a mode must see judged: ``what`` it is, and the control ``by`` which it was.

    Where it was not, ``why`` says so, and ``remedy`` what would decide it: empty where that is told
    beside the figures or the case themselves. ``group`` names what shares reason and remedy.
    """

    what: str
    by: str = ""
    why: str = ""
    remedy: str = ""
    group: str = ""

    @property
    def judged(self) -> bool:
        """Tell whether a control decided it."""
        return not self.why


def items(
    mode: Mode,
    required: Iterable[CaseKey],
    cases: Sequence[Case],
    left_out: Mapping[tuple[str, str], tuple[str, str]],
) -> list[Item]:
    """Return what became of each case that a mode must see judged.

    ``left_out`` says of a check and a stack why it was not run, and what would run it.
    """
    found = {case.key: case for case in cases}
    told = []
    for key in required:
        group = f"{key.check} with {key.stack}"
        what = f"{group} on {key.where}"
        case = found.get(key)
        if pair := left_out.get((key.check, key.stack)):
            told.append(Item(what, why=pair[0], remedy=pair[1], group=group))
        elif case is None or case.state in (CaseState.FAILED, CaseState.MISSING):
            told.append(Item(what, why="it failed" if case else "it did not run", group=group))
        elif case.state is CaseState.NOT_AVAILABLE:
            why = f"not available here: {case.reason}"
            told.append(Item(what, why=why, remedy=_PROVIDE, group=group))
        else:
            why, remedy = _undecided(mode, case)
            told.append(Item(what, "" if why else BY_REFERENCE, why, remedy, group))
    return told


_PROVIDE = "provide what is missing, or let the site config waive it with the reason"


def _undecided(mode: Mode, case: Case) -> tuple[str, str]:
    """Return why a case that ran was not judged, and what would decide it."""
    settings = str(case.conditions.get("settings", ""))
    if settings not in _OWN_SETTINGS:
        why = f"it ran with {settings}, which the mode {mode.name} does not set"
        return why, "run the gate without that setting"
    alone = case.conditions.get("ranks") == 1
    wanted = [
        name
        for name in mode.judged.get(case.check, ())
        if not (alone and name in BETWEEN_PROCESSES)
    ]
    if absent := [name for name in wanted if not any(_is_of(f, name) for f in case.figures)]:
        return f"it left no figure of {_listed(absent)}", "see which option or build left it out"
    found = [f.judgement.verdict for f in case.figures]
    found += [g.judgement.verdict for g in case.groups]
    if undecided := sum(verdict not in _JUDGED for verdict in found):
        return f"{undecided} of {len(found)} figures have no verdict", ""
    return "", ""


def _is_of(figure: Figure, name: str) -> bool:
    benchmark, _, metric = name.partition(".")
    return figure.benchmark == benchmark and metric in ("", figure.metric)


def sentences(found: Iterable[Item]) -> list[str]:
    """Return what was not judged, all that shares a reason and a remedy in one sentence."""
    together: dict[tuple[str, str], dict[str, None]] = {}
    for item in found:
        if item.remedy:
            together.setdefault((item.why, item.remedy), {})[item.group or item.what] = None
    return [f"{'; '.join(names)}: {why}; {remedy}" for (why, remedy), names in together.items()]
