"""What the gate rests on where no reference holds. Pure.

Software is judged by a golden build that today's equals, nodes by each other, and what all nodes
share by the raw kernels and links of the screening, against those of earlier days. A figure without
a reference rests on all three or is not judged.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Sequence

import numpy as np

from clustergate.core.model import Evidence, Verdict
from clustergate.core.notation import counted
from clustergate.core.reasons import Words
from clustergate.judge.changes import FALSE_ALARM, HIDDEN, Judge, Past, by_place, slower
from clustergate.judge.kinds import FigureId, kind_of
from clustergate.judge.rules import NEAR_THE_BEST, USUAL
from clustergate.judge.scatter import FEWEST_DAYS
from clustergate.run.gate.contract import Control
from clustergate.run.software_evidence import SOFTWARE_SAME, part_of
from clustergate.studies.screen.findings import FEWEST, Screening
from clustergate.studies.screen.measures import LARGE_BYTES, MEASURES, SMALL_BYTES

WORSE_THAN_EVER = Words(
    "screening.worse-than-ever",
    (
        "{measure} is typically {now:number} {unit}: {worse_by:whole_percent} worse on all "
        "{what}s alike than on {days:earlier day|earlier days}, usually within {usual:percent}"
    ),
)


def nodes_control(
    now: Screening,
    memory: Sequence[tuple[str, datetime.date, Screening]],
    *,
    exclusive: bool,
) -> tuple[list[Evidence], Control]:
    """Return what is worse than on earlier days, and whether the nodes are as they were then.

    ``memory`` are screenings with their runs and days. What is usual in a screening is one figure,
    and the screenings are the runs of a baseline, which the judge compares today's with
    (:mod:`clustergate.judge`). ``exclusive`` tells whether a job had its nodes for itself.
    """
    levels = _centres(now)
    whats = sorted(levels)
    nodes = counted(len(now.names), now.what)
    whys = []
    if now.what != "node" or len(now.names) < FEWEST:
        whys.append(f"{nodes} cannot be compared with other nodes")
    seen = {key for key, _ in levels}
    whys += [f"{one.title} was not screened" for key, one in MEASURES.items() if key not in seen]
    past = _past(whats, memory, exclusive=exclusive)
    known_days = [len({*past.days[~np.isnan(of_measure)].tolist()}) for of_measure in past.values.T]
    fewest_days = min(known_days, default=0)
    evidence = []
    if fewest_days:
        changes = Judge(past, FALSE_ALARM).changes(np.array([levels[what] for what in whats]))
        # Other nodes than then may differ by what sound ones do.
        doubts = np.array([2 * now.located[key].scale for key, _ in whats])
        doubts /= math.sqrt(len(now.names))
        slow = [
            one
            for one in slower(changes)
            if one.by - doubts[list(one.hypothesis.places)].max() > one.bound
        ]
        own = {change.hypothesis.places: change.own for change in changes}
        for change, place in ((x, p) for x in slow for p in x.hypothesis.places):
            measure = MEASURES[whats[place][0]]
            why = WORSE_THAN_EVER(
                measure=measure.title,
                unit=measure.unit,
                now=measure.value(levels[whats[place]]),
                worse_by=math.expm1(own[place,]),
                usual=math.expm1(USUAL * change.spread),
                days=known_days[place],
                what=now.what,
            )
            part = "screening against earlier days"
            evidence.append(Evidence(part, Verdict.REGRESSION, (why,)))
        of_place = by_place(changes, len(whats))
        for place, (key, _) in enumerate(whats):
            holding = of_place[place]
            most = max(x.at_most if x.is_judged else math.inf for x in holding)
            if not any(one.is_slower for one in holding):
                # As near to the best of them nothing hides, whatever days scatter by.
                above = levels[whats[place]] - np.nanmin(past.values[:, place])
                most = min(most, above + HIDDEN - NEAR_THE_BEST)
            most += doubts[place]
            # Written so that what is not a number does not pass.
            if known_days[place] >= FEWEST_DAYS and not most < HIDDEN:
                may_be = f"may be {math.expm1(most):.0%} worse than on earlier days"
                whys.append(f"{MEASURES[key].title} {may_be}")
    remedy = ""
    if (more := FEWEST_DAYS - fewest_days) > 0:
        remedy = f"`clustergate screen` on {counted(more, 'more day')}"
        known_of = f"these nodes and links were screened on {counted(fewest_days, 'earlier day')}"
        whys.append(f"{known_of}, and it takes {FEWEST_DAYS}")
    if whys:
        return evidence, Control(why="; ".join(whys), remedy=remedy)
    return evidence, Control(f"{nodes} as fast as each other and as on {fewest_days} earlier days")


def _past(
    whats: Sequence[tuple[str, str]],
    memory: Sequence[tuple[str, datetime.date, Screening]],
    *,
    exclusive: bool,
) -> Past:
    """Return earlier screenings as the runs of a baseline, their measures as its figures."""
    figures = [
        FigureId(("screening", "", "", of), key, key, measure.metric, kind_of(measure.metric, size))
        for key, of in whats
        for measure in (MEASURES[key],)
        for size in (SMALL_BYTES if measure.metric == "latency_us" else LARGE_BYTES,)
    ]
    then = [_centres(one) for *_, one in memory]
    values = np.array([[of.get(what, math.nan) for what in whats] for of in then])
    return Past(
        figures,
        np.array([day.toordinal() for _, day, _ in memory], dtype=int),
        values.reshape(len(then), len(whats)),
        exclusive=exclusive,
    )


def all_nodes_control(controls: Sequence[Control], evidence: Iterable[Evidence]) -> Control:
    """Return one control of all partitions, where their screenings passed with all they say."""
    if any(one.verdict is not Verdict.PASS for one in evidence):
        return Control(why="the screening did not pass")
    lacking = (one for one in controls if not one.by)
    return next(lacking, Control("; ".join(dict.fromkeys(one.by for one in controls))))


def software_control(stack: str, evidence: Iterable[Evidence], today: str) -> Control:
    """Return whether a stack's software is that of an earlier day; ``today`` is that day in UTC."""
    whys = [why for one in evidence if one.part == part_of(stack) for why in one.reasons]
    if not whys:
        pin = f"`clustergate golden pin {stack}`, once it is accepted"
        return Control(why=f"there is no golden build of {stack}", remedy=pin)
    if any(why.code != SOFTWARE_SAME.code for why in whys):
        # The evidence says what is to be done.
        what = f"today's {stack}, the system's libraries or the settings of its launches"
        return Control(why=f"{what} are not the golden ones")
    pinned = str(whys[0].facts["pinned"])
    if not pinned or pinned >= today:
        return Control(why=f"the golden build of {stack} was pinned today and knows no other day")
    return Control(f"the golden build of {pinned}")


def joint_control(software: Control, nodes: Control) -> Control:
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
