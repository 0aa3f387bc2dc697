"""Whether a machine crept away from its first accepted baseline, as newer ones tell. Pure.

Weekly baselines of a machine that loses 1 % a week each accept a little more. So a run is judged
against the first one, too (the anchor), and baselines are by a straight line through their medians.
Not against the best ever seen: that alarms on machines that did not change. Nobody launches a
baseline again, so that its median speaks for it, which one slow launch does not move.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from clustergate.core.model import Anchor, BaselineRuns, Better
from clustergate.judge.changes import FALSE_ALARM, Change, Judge, Past, slower
from clustergate.judge.kinds import FigureId
from clustergate.judge.runs import SMALLEST_BASELINE, median, past_of, with_common_runs

# Fewer baselines make no line; of more the newest tell.
_FEWEST, _MOST = 5, 24


# One new run may be slow by chance.
_FEWEST_RUNS = 2


@dataclass(frozen=True)
class Accepted:
    """A figure whose ``newest`` baseline is to be accepted after the one ``before``."""

    figure: FigureId
    better: Better
    anchor: Anchor
    before: BaselineRuns
    newest: BaselineRuns

    @property
    def medians(self) -> dict[str, float]:
        """The median of the first baseline and of what is new in later ones, by the last day."""
        first = self.anchor.baseline
        of_later = accepted_after(self.anchor, self.newest).later
        return {max(first.days): median(first), **dict(of_later)}

    @property
    def new_median(self) -> float:
        """The median of the runs that the baseline before had not, nan where they are too few."""
        new = [place for place, run in enumerate(self.newest.runs) if run not in self.before.runs]
        return _median_of(self.newest, new) if len(new) >= _FEWEST_RUNS else math.nan


def _median_of(baseline: BaselineRuns, places: Sequence[int]) -> float:
    days = tuple(baseline.days[place] for place in places)
    values = tuple(baseline.values[place] for place in places)
    return median(replace(baseline, days=days, values=values))


def accepted_after(anchor: Anchor, baseline: BaselineRuns) -> Anchor:
    """Return an anchor with the median of those runs of a later baseline that are newer than all.

    Where there are fewer than a baseline needs, they wait for the next one.
    """
    last = max([max(anchor.baseline.days), *(day for day, _ in anchor.later)])
    new = [place for place, day in enumerate(baseline.days) if day > last]
    if len(new) < SMALLEST_BASELINE:
        return anchor
    of_new = max(baseline.days), float(f"{_median_of(baseline, new):.5g}")
    return replace(anchor, later=(*anchor.later, of_new)[-_MOST:])


def slower_than_before(
    figures: Sequence[Accepted], *, exclusive: bool
) -> tuple[list[Change], set[int]]:
    """Return the sets of figures of which new runs are slower than the baseline before.

    Behind them the places of figures that nobody can judge so.
    """
    before = [one.before for one in figures]
    changes = _changes(figures, before, [one.new_median for one in figures], exclusive=exclusive)
    unjudged = {
        x for some in changes for one in some if not one.is_judged for x in one.hypothesis.places
    }
    return [one for some in changes for one in slower(some)], unjudged


def crept(figures: Sequence[Accepted], *, exclusive: bool) -> list[Change]:
    """Return the sets of figures that became slower since their first accepted baseline."""
    first = [one.anchor.baseline for one in figures]
    newest = [[*one.medians.values()][-1] for one in figures]
    changes = _changes(figures, first, newest, exclusive=exclusive)
    said = [one for some in changes for one in slower(some)]
    by_days: dict[tuple[str, ...], list[int]] = {}
    for place, figure in enumerate(figures):
        by_days.setdefault(tuple(figure.medians), []).append(place)
    for days, places in by_days.items():
        if len(days) >= _FEWEST:
            some = [figures[place] for place in places]
            numbers = [datetime.date.fromisoformat(day).toordinal() for day in days]
            values = np.array(
                [[x.better.worse_by(value, 1.0) for value in x.medians.values()] for x in some]
            ).T
            past = Past([x.figure for x in some], np.array(numbers), values, exclusive=exclusive)
            # Each of so many baselines was looked at.
            chance = FALSE_ALARM / (len(days) - _FEWEST + 1)
            trends = slower(Judge(past, chance).trends())
            said += [one.moved(places, days[0]) for one in trends]
    return said


def _changes(
    figures: Sequence[Accepted],
    baselines: Sequence[BaselineRuns],
    values: Sequence[float],
    *,
    exclusive: bool,
) -> list[list[Change]]:
    """Return what values say of sets of figures against their baselines, which were made apart."""
    said = []
    for places in with_common_runs(baselines):
        some = [figures[place] for place in places]
        known = [(figures[x].figure, baselines[x], figures[x].better) for x in places]
        judge = Judge(past_of(known, exclusive=exclusive), FALSE_ALARM)
        since = min(min(baselines[place].days) for place in places)
        of_run = [
            one.better.worse_by(values[place], 1.0) for one, place in zip(some, places, strict=True)
        ]
        said.append([one.moved(places, since) for one in judge.changes(np.array(of_run))])
    return said
