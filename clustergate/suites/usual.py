"""Whether a test that is slow once is so as others of its suite often are. Pure.

Of two hundred tests some have a spike in each session, where launches have them, and no threshold
of one figure tells such a session from others. The suite's past does: where in more than
:data:`ALPHA` of the sessions another test was as slow, and was not in the next, it is no news.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.special
from numpy.typing import NDArray

from clustergate.judge.history.series import CaseKey, Series

ALPHA = 0.05
FEWEST_SESSIONS = 10
"""So many sessions tell what comes and goes."""
_MEDIAN_DEVIATION = 1.4826
_Array = NDArray[np.float64]


@dataclass(frozen=True)
class Coming:
    """In how many sessions another test was as slow as this one is, and was not in the next."""

    came: int
    sessions: int

    @property
    def is_usual(self) -> bool:
        """Whether that is no news of a session."""
        return self.sessions >= FEWEST_SESSIONS and self.came > max(1.0, ALPHA * self.sessions)


def comings(over: Sequence[Series], sessions: Sequence[str]) -> dict[CaseKey, Coming]:
    """Return how usual it is to be as slow as each case is in the newest of ``sessions``.

    These are ids in their order. A case that was as slow in the session before is held to those
    that were so in two, which come rarer: the less usual of both counts. How slow is in units of
    how much each case itself scatters: what plain noise explains beside so many others is no spike,
    and not usual however often it is.
    """
    slowness = dict(_slowness(over, sessions))
    if len(sessions) < FEWEST_SESSIONS or not slowness:
        return {}
    each = np.array([*slowness.values()])
    counts = []
    for times in (1, 2):
        # As slow in each of so many sessions, up to this one.
        in_row = np.min([each[:, times - 1 - k : each.shape[1] - k] for k in range(times)], axis=0)
        before, after = in_row[:, :-1], each[:, times:]
        went = np.where(after < before / 2, before, -np.inf)
        counts.append([_seen(went, case, now) for case, now in enumerate(in_row[:, -1])])
    least = -float(scipy.special.ndtri(ALPHA / len(slowness)))
    return {
        case: min(pair, key=lambda one: one.came)
        for case, pair in zip(slowness, zip(*counts, strict=True), strict=True)
        if slowness[case][-1] >= least
    }


def _seen(went: _Array, case: int, now: float) -> Coming:
    others = np.delete(went >= now, case, axis=0)
    return Coming(int(others.any(axis=0).sum()), others.shape[1])


def _slowness(over: Sequence[Series], sessions: Sequence[str]) -> Iterator[tuple[CaseKey, _Array]]:
    place = {session: k for k, session in enumerate(sessions)}
    cases: dict[CaseKey, list[_Array]] = {}
    for one in over:
        costs = np.full(len(sessions), np.nan)
        for point in one.points:
            if point.run_id in place and point.counts and point.estimate.value > 0:
                costs[place[point.run_id]] = one.better.worse_by(point.estimate.value, 1.0)
        if np.isfinite(costs[:-1]).sum() >= FEWEST_SESSIONS:
            cases.setdefault(one.case, []).append(costs - np.nanmedian(costs[:-1]))
    for case, some in cases.items():
        every = np.array(some)
        known = np.isfinite(every).any(axis=0)
        mean = np.full(len(sessions), np.nan)
        mean[known] = np.nanmean(every[:, known], axis=0)
        scatter = _MEDIAN_DEVIATION * float(np.nanmedian(np.abs(mean[:-1])))
        if scatter > 0:
            yield case, mean / scatter
