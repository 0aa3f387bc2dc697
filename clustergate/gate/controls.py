"""What the gate rests on where no reference holds. Pure.

Software is judged by a golden build that today's equals, nodes by each other, and what all nodes
share by the raw kernels and links of the screening, against those of earlier days. A figure without
a reference rests on all three or is not judged.
"""

from __future__ import annotations

import datetime
import math
import statistics
from collections.abc import Iterable, Sequence

from clustergate.gate.software import part_of
from clustergate.model import Evidence, Scatter, Verdict
from clustergate.screening.findings import FEWEST, Screening
from clustergate.screening.measures import MEASURES
from clustergate.statistics import gate
from clustergate.verdicts.coverage import Control
from clustergate.wording.notation import counted
from clustergate.wording.reasons import reason


def of_nodes(
    now: Screening, memory: Sequence[tuple[str, datetime.date, Screening]]
) -> tuple[list[Evidence], Control]:
    """Return what is worse than on earlier days, and whether the nodes are as they were then.

    ``memory`` are screenings with their runs and days. What is usual in a screening is one value;
    it passes and is a regression by the rule for runs against a baseline
    (:mod:`clustergate.statistics.gate`) of as many days as that takes, and scatters by what the
    nodes do.
    """
    by_day: dict[tuple[str, str], dict[datetime.date, list[float]]] = {}
    best_of: dict[tuple[str, str], tuple[float, str]] = {}
    for run, day, one in memory:
        for what, level in _centres(one).items():
            by_day.setdefault(what, {}).setdefault(day, []).append(level)
            best_of[what] = min(best_of.get(what, (level, run)), (level, run))
    levels, evidence = _centres(now), []
    nodes = counted(len(now.names), now.what)
    whys = []
    if now.what != "node" or len(now.names) < FEWEST:
        whys.append(f"{nodes} cannot be compared with other nodes")
    seen = {key for key, _ in levels}
    whys += [f"{one.title} was not screened" for key, one in MEASURES.items() if key not in seen]
    fewest_days = min((len(by_day.get(what, ())) for what in levels), default=0)
    for what in sorted(levels):
        measure, days = MEASURES[what[0]], by_day.get(what, {})
        if len(days) < gate.FEWEST_DAYS:
            continue
        runs = [level for day in days.values() for level in day]
        best = math.log(gate.best_level([math.exp(x) for x in runs], higher_is_better=False))
        known = Scatter(
            *(len(runs), 1, len(days), statistics.fmean(runs) - best),
            *(gate.spread_of(list(days.values())), len(days) - 1, len(levels)),
            repeated=False,
        )
        worse_by = levels[what] - best
        doubt = 2 * now.located[what[0]].scale / math.sqrt(len(now.names))
        # Other nodes than then may differ by what sound ones do.
        if worse_by - doubt > max(gate.margin(known, 1), math.log(measure.tolerated)):
            why = reason(
                "screening.worse-than-ever",
                measure=measure.title,
                unit=measure.unit,
                now=measure.value(levels[what]),
                worse_by=math.expm1(worse_by),
                days=len(days),
                what=now.what,
                run=best_of[what][1],
            )
            part = "screening against earlier days"
            evidence.append(Evidence(part, Verdict.REGRESSION, (why,)))
        # Written so that what is not a number does not pass.
        if not worse_by + doubt <= gate.passes_below(known):
            most = math.expm1(worse_by + doubt)
            whys.append(f"{measure.title} may be {most:.0%} worse than on earlier days")
    remedy = ""
    if (more := gate.FEWEST_DAYS - fewest_days) > 0:
        remedy = f"`clustergate screen` on {counted(more, 'more day')}"
        known_of = f"these nodes and links were screened on {counted(fewest_days, 'earlier day')}"
        whys.append(f"{known_of}, and it takes {gate.FEWEST_DAYS}")
    if whys:
        return evidence, Control(why="; ".join(whys), remedy=remedy)
    return evidence, Control(f"{nodes} as fast as each other and as on {fewest_days} earlier days")


def of_all_nodes(controls: Sequence[Control], evidence: Iterable[Evidence]) -> Control:
    """Return one control of all partitions, where their screenings passed with all they say."""
    if any(one.verdict is not Verdict.PASS for one in evidence):
        return Control(why="the screening did not pass")
    lacking = (one for one in controls if not one.by)
    return next(lacking, Control("; ".join(dict.fromkeys(one.by for one in controls))))


def of_software(stack: str, evidence: Iterable[Evidence], today: str) -> Control:
    """Return whether a stack's software is that of an earlier day; ``today`` is that day in UTC."""
    whys = [why for one in evidence if one.part == part_of(stack) for why in one.reasons]
    if not whys:
        pin = f"`clustergate golden pin {stack}`, once it is accepted"
        return Control(why=f"there is no golden build of {stack}", remedy=pin)
    if any(why.code != "software.same" for why in whys):
        # The evidence says what is to be done.
        what = f"today's {stack}, the system's libraries or the settings of its launches"
        return Control(why=f"{what} are not the golden ones")
    pinned = str(whys[0].facts["pinned"])
    if not pinned or pinned >= today:
        return Control(why=f"the golden build of {stack} was pinned today and knows no other day")
    return Control(f"the golden build of {pinned}")


def both(software: Control, nodes: Control) -> Control:
    """Return what stands for references: software and nodes, neither without the other."""
    for one in (software, nodes):
        if not one.by:
            return one
    return Control(f"{software.by}, {nodes.by}")


def _centres(screening: Screening) -> dict[tuple[str, str], float]:
    """Return what is usual, positive where worse, by measure and class of pairs."""
    return {
        (key, name): level
        for key, one in screening.located.items()
        for name, level in one.centres.items()
    }
