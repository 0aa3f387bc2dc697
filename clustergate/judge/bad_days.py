"""Days on which a baseline's machine was slow: they leave it. Pure.

One such day of five, or of twenty, makes everything scatter so much that nothing slower is slow_on.
So each day is judged against the others, as a run is against its baseline.
"""

from __future__ import annotations

import numpy as np

from clustergate.judge.changes import FALSE_ALARM, Change, Judge, Past, slower
from clustergate.judge.hypotheses import Hypothesis

# So many of the days leave at most: of more nobody can tell which were usual.
_OF_DAYS = 1 / 4
# What is slow as a whole: a launch of one benchmark has tails, and makes no bad day.
_WHOLE, _FEWEST_FIGURES = ("kind", "stack", "kind of a stack"), 3


def bad_days(past: Past) -> list[tuple[int, list[Change]]]:
    """Return the days that leave a baseline, the worst first, each with what was slower on it.

    They leave one at a time, as one bad day hides another. Of fewer than four days none can.
    """
    judge, bad = Judge(past, FALSE_ALARM), []
    for _ in range(int(_OF_DAYS * len(set(past.days.tolist())))):
        slow_on = {}
        for day in sorted(set(judge.past.days.tolist())):
            of_day = judge.past.days == day
            of_run = np.ma.masked_invalid(judge.past.values[of_day]).mean(axis=0).filled(np.nan)
            changes = judge.among(~of_day).changes(of_run)
            if slow := slower([one for one in changes if _is_whole(one.hypothesis)]):
                slow_on[day] = slow
        if not slow_on:
            break
        worst = max(slow_on, key=lambda day: max(one.by / one.bound for one in slow_on[day]))
        bad.append((worst, slow_on[worst]))
        judge = judge.among(judge.past.days != worst)
    return bad


def _is_whole(one: Hypothesis) -> bool:
    return one.level in _WHOLE and len(one.places) >= _FEWEST_FIGURES
