"""Stored runs, each judged by those before it: what was slower, and in how many in a row. Pure.

Nothing of a stored run can be launched again, so that the next runs confirm it: slow in three in a
row is a regression. What was slow in a run is no standard of the next.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from clustergate.core.figures import same_measurement
from clustergate.core.model import BaselineRuns, Better
from clustergate.core.reasons import Reason, Words
from clustergate.judge.changes import Judge, slower
from clustergate.judge.history.series import CaseKey, Point, Series
from clustergate.judge.hypotheses import called
from clustergate.judge.rules import slower_by
from clustergate.judge.runs import past_of

CONFIRMED = 3
"""So many runs in a row in which something is slow are a regression."""
# Of more runs the newest are the standard, and the newest are judged.
_MOST = 30


@dataclass(frozen=True)
class Time:
    """A run in which something was slower by a share; ``usual`` is what others are."""

    run_id: str
    started: datetime.datetime
    by: float
    usual: float


@dataclass
class Slow:
    """A set of figures, with their names, that was slower than before in some runs in a row.

    ``goes_on`` tells whether it was so to the last run.
    """

    name: str
    figures: tuple[str, ...]
    times: list[Time] = field(default_factory=list)
    goes_on: bool = True

    @property
    def is_regression(self) -> bool:
        return len(self.times) >= CONFIRMED


@dataclass(frozen=True)
class Judged:
    """What runs say of those before them: what was slow, and how many of them were judged.

    ``no_standard`` are, by case and name of a figure, the runs in which it was slow.
    """

    slow: Sequence[Slow]
    runs: int
    no_standard: Mapping[tuple[CaseKey, str], Collection[str]] = field(default_factory=dict)


def judged_runs(series: Sequence[Series], exclusive: Collection[str]) -> Judged:
    """Judge the newest runs of each partition and effort, each by those before it.

    ``exclusive`` are the partitions where a job has its nodes for itself.
    """
    together: dict[tuple[str, str], list[Series]] = {}
    known = {(one.case, one.name) for one in series if one.points}
    for one in series:
        again = any((one.case, name) in known for name in same_measurement(one.name))
        usable = one.points and one.better is not Better.NEITHER and not one.is_share
        if usable and not again and all(point.estimate.value > 0 for point in one.points):
            together.setdefault((one.case.partition, one.case.effort), []).append(one)
    each = [
        _judged(some, exclusive=partition in exclusive) for (partition, _), some in together.items()
    ]
    no_standard = {key: runs for one in each for key, runs in one.no_standard.items()}
    slow = [slow for one in each for slow in one.slow]
    return Judged(slow, sum(one.runs for one in each), no_standard)


def _judged(series: Sequence[Series], *, exclusive: bool) -> Judged:
    counting = (replace(one, points=tuple(p for p in one.points if p.counts)) for one in series)
    of = [one for one in counting if one.points]
    known = [(one.figure, _runs(one.points), one.better) for one in of]
    past = past_of(known, exclusive=exclusive)
    started = {point.run_id: point.started for one in of for point in one.points}
    # As in the past that they make.
    runs = sorted(started, key=lambda run: (started[run].date(), run))
    # What was slow is taken out of it, run by run.
    standards = past.values.copy()
    judge = Judge(replace(past, values=standards))
    no_standard: dict[tuple[CaseKey, str], set[str]] = {}
    every: list[Slow] = []
    going_on: dict[tuple[int, ...], Slow] = {}
    judged = 0
    for row, run in enumerate(runs):
        if not row or len(runs) - row > _MOST:
            continue
        before = np.zeros(len(runs), dtype=bool)
        before[max(0, row - _MOST) : row] = True
        changes = judge.among(before).changes(past.values[row])
        judged += any(one.is_judged for one in changes)
        by_places = {one.hypothesis.places: one for one in changes}
        for places, slow in [*going_on.items()]:
            if not (by_places[places].is_slower or math.isnan(by_places[places].by)):
                slow.goes_on = False
                del going_on[places]
        taken = {place for places in going_on for place in places}
        chosen = slower(changes)
        for one in chosen:
            places = one.hypothesis.places
            if taken.isdisjoint(places):
                names = tuple(of[place].name for place in places)
                going_on[places] = Slow(called(one.hypothesis, past.figures), names)
                every.append(going_on[places])
        slow_now = {place for one in chosen for place in one.hypothesis.places}
        for places, slow in going_on.items():
            if by_places[places].is_slower:
                better = [of[place].better for place in places]
                slow.times.append(Time(run, started[run], *slower_by(by_places[places], better)))
                slow_now.update(places)
        for place in slow_now:
            standards[row, place] = np.nan
            no_standard.setdefault((of[place].case, of[place].name), set()).add(run)
    return Judged(every, judged, no_standard)


def _runs(points: Sequence[Point]) -> BaselineRuns:
    return BaselineRuns(
        runs=tuple(point.run_id for point in points),
        days=tuple(point.started.date().isoformat() for point in points),
        values=tuple(point.estimate.value for point in points),
        launches=min(point.estimate.samples for point in points),
        distances=tuple(point.distance for point in points),
    )


# --- in words ---------------------------------------------------------------------------------


NOT_AGAIN = Words(
    "history.not-again",
    "{count:set of figures was|sets of figures were} slower than before, and not in the next runs",
)
NONE_SLOWER = Words(
    "history.none-slower",
    "nothing is slower in {runs:run|runs}, each compared with those before it",
)
HISTORY_UNJUDGED = Words(
    "history.unjudged",
    "no run could be compared with earlier ones",
    cause="these cover too few days to show variation between days",
    remedy="run on three days or more",
)


def told_of(judged: Judged, named: Callable[[str], bool] = lambda name: True) -> list[Reason]:
    """Return what is slower than in the runs before, and how surely, the surest and newest first.

    Only what holds a figure that is ``named`` is told.
    """
    if not judged.runs:
        return [HISTORY_UNJUDGED()]
    said = [one for one in judged.slow if any(map(named, one.figures))]
    shown = sorted(
        (one for one in said if one.goes_on or one.is_regression),
        key=lambda one: (one.goes_on and one.is_regression, one.times[-1].started),
        reverse=True,
    )
    reasons = list(map(_told, shown))
    if once := len(said) - len(shown):
        reasons.append(NOT_AGAIN(count=once))
    if not said:
        reasons.append(NONE_SLOWER(runs=judged.runs))
    return reasons


HISTORY_SLOWER = Words(
    "history.slower",
    (
        "{name}: {by:percent} slower in the last {runs:run|runs}, since {since}, usually within "
        "{usual:percent}"
    ),
    remedy="find what changed since then, or measure the node alone",
)
WAS_SLOWER = Words(
    "history.was-slower",
    (
        "{name}: {by:percent} slower in {runs:run|runs}, from {since} to {until}, usually within "
        "{usual:percent}; not since then"
    ),
)
NOT_CONFIRMED = Words(
    "history.not-confirmed",
    "{name}: {by:percent} slower in the run {until}, usually within {usual:percent}; not confirmed",
    remedy="{left:more run|more runs} tell",
)


def _told(one: Slow) -> Reason:
    first, last = one.times[0], one.times[-1]
    code = HISTORY_SLOWER if one.goes_on else WAS_SLOWER
    if not one.is_regression:
        code = NOT_CONFIRMED
    return code(
        name=one.name,
        by=last.by,
        usual=last.usual,
        runs=len(one.times),
        since=first.run_id,
        until=last.run_id,
        left=CONFIRMED - len(one.times),
    )
