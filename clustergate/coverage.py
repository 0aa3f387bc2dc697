"""What a run should have judged, by what the site config and the references foresee. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from clustergate.model import Case, CaseKey, CaseState
from clustergate.modes import Mode, Partition, Shape
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
