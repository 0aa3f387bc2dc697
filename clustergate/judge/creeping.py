"""Whether a machine crept away from its first accepted baseline, as newer ones tell. Pure.

Weekly baselines of a machine that loses 1 % a week each accept a little more. So a run is judged
against the first one, too (the anchor), and baselines are by a straight line through their means.
Not against the best ever seen: that alarms on machines that did not change.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from clustergate.judge.changes import FALSE_ALARM, Change, Judge, Past, slower
from clustergate.judge.kinds import FigureId
from clustergate.judge.runs import SMALLEST_BASELINE, mean, past_of, with_common_runs
from clustergate.model import Anchor, BaselineRuns, Better

# Fewer baselines make no line; of more the newest tell.
_FEWEST, _MOST = 5, 24


@dataclass(frozen=True)
class Accepted:
    """A figure whose ``newest`` baseline is to be accepted after others."""

    figure: FigureId
    better: Better
    anchor: Anchor
    newest: BaselineRuns

    @property
    def means(self) -> dict[str, float]:
        """The mean of the first baseline and of what is new in each later one, by the last day."""
        first = self.anchor.baseline
        of_later = accepted_after(self.anchor, self.newest).later
        return {max(first.days): mean(first), **dict(of_later)}

    def worse(self, value: float) -> float:
        return (-1.0 if self.better is Better.HIGHER else 1.0) * math.log(value)


def accepted_after(anchor: Anchor, baseline: BaselineRuns) -> Anchor:
    """Return an anchor with the mean of those runs of a later baseline that are newer than all.

    Where there are fewer than a baseline needs, they wait for the next one.
    """
    last = max([max(anchor.baseline.days), *(day for day, _ in anchor.later)])
    new = [place for place, day in enumerate(baseline.days) if day > last]
    if len(new) < SMALLEST_BASELINE:
        return anchor
    days = tuple(baseline.days[place] for place in new)
    values = tuple(baseline.values[place] for place in new)
    of_new = float(f"{mean(replace(baseline, days=days, values=values)):.5g}")
    return replace(anchor, later=(*anchor.later, (max(days), of_new))[-_MOST:])


def crept(figures: Sequence[Accepted], *, exclusive: bool) -> list[Change]:
    """Return the sets of figures that became slower since their first accepted baseline."""
    said: list[Change] = []
    for places in with_common_runs([one.anchor.baseline for one in figures]):
        some = [figures[place] for place in places]
        known = [(one.figure, one.anchor.baseline, one.better) for one in some]
        judge = Judge(past_of(known, exclusive=exclusive), FALSE_ALARM)
        newest = judge.changes(np.array([one.worse([*one.means.values()][-1]) for one in some]))
        since = min(min(one.anchor.baseline.days) for one in some)
        said += [one.moved(places, since) for one in slower(newest)]
    by_days: dict[tuple[str, ...], list[int]] = {}
    for place, figure in enumerate(figures):
        by_days.setdefault(tuple(figure.means), []).append(place)
    for days, places in by_days.items():
        if len(days) >= _FEWEST:
            some = [figures[place] for place in places]
            numbers = [datetime.date.fromisoformat(day).toordinal() for day in days]
            values = np.array([[x.worse(value) for value in x.means.values()] for x in some]).T
            past = Past([x.figure for x in some], np.array(numbers), values, exclusive=exclusive)
            trends = slower(Judge(past, FALSE_ALARM).trends())
            said += [one.moved(places, days[0]) for one in trends]
    return said
