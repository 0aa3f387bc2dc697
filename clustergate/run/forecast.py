"""When a run will be done: by how long its cases took before, else by what they usually take."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from clustergate.benchmarks.registry import descriptor_of, title_of
from clustergate.core.model import CaseId
from clustergate.core.notation import counted
from clustergate.core.paths import state_dir
from clustergate.core.texts import clock, duration
from clustergate.judge.history.stored_runs import Taken
from clustergate.sites.description import Site
from clustergate.sites.modes import MAINTENANCE, Mode
from clustergate.stacks.manifest import manifest_path


def usual_seconds(cases: Iterable[CaseId], taken_s: Taken) -> dict[tuple[str, str], float]:
    """Return what each check takes with each stack in the gate's mode: as long as last time.

    What never ran is expected to take what its benchmark says a case usually does.
    """
    counts = Counter((case.check, case.stack) for case in cases)
    return {
        pair: taken_s.get(pair, descriptor_of(pair[0]).usual_s * n) for pair, n in counts.items()
    }


def waiting_s(
    expected: Sequence[CaseId], taken_s: Taken, *, usually: bool = False
) -> dict[tuple[str, str], list[float]]:
    """Return the seconds of each case by check and stack, nothing unless all are known.

    In the gate's mode it is known what cases ``usually`` take that never ran here.
    """
    counts = Counter((case.check, case.stack) for case in expected)
    if usually:
        taken_s = usual_seconds(expected, taken_s)
    if not counts.keys() <= taken_s.keys():
        return {}
    return {pair: [taken_s[pair] / count] * count for pair, count in counts.items()}


def absent_stacks(stacks: Iterable[str]) -> list[str]:
    """Return those stacks that are not on disk yet."""
    return [name for name in stacks if not manifest_path(state_dir(), name).is_file()]


def beyond_forecast(site: Site, stacks: Iterable[str]) -> str:
    """Return what takes time beside what is foreseen of a gate, empty where nothing does."""
    more = [f"the set-up of {', '.join(absent)}"] if (absent := absent_stacks(stacks)) else []
    more += [f"waiting in {one.name}'s queue" for one in site.schedulers if one.is_batch]
    return f", plus {' and '.join(more)}" if more else ""


def plan_of(
    mode: Mode,
    expected: Sequence[CaseId],
    taken_s: Taken,
    now: datetime.datetime,
    to_set_up: Sequence[str] = (),
    *,
    referenced: bool,
    expectations: int = 0,
    disturbed: Collection[tuple[str, str]] = (),
    wait_s: float = 0.0,
    settings: Collection[str] = (),
) -> str:
    """Return in a line what will be run, until when, and what it will be judged by.

    ``to_set_up`` are the stacks that are not on disk yet: how long that takes nobody knows, so no
    time of day is told. ``disturbed`` is what others disturbed last time, ``wait_s`` for how long
    it may wait for this node to be quiet, ``settings`` those by hand, with which nothing takes what
    it usually does. Where nothing is ``referenced``, people may have written ``expectations``.
    """
    checks = ", ".join(dict.fromkeys(title_of(case.check) for case in expected))
    stacks = ", ".join(dict.fromkeys(case.stack for case in expected))
    what = f"{checks} with {stacks}, mode {mode.name}"
    waiting = waiting_s(expected, taken_s)
    by, how_long, when = "", tuple[str, ...](), ""
    if waiting:
        seconds = sum(map(sum, waiting.values()))
        beside = ", beside other programs" * (not waiting.keys().isdisjoint(disturbed))
        by, how_long = f"about {clock(now, seconds)}", (duration(seconds), f"as last time{beside}")
    elif settings:
        when = f"how long it takes with {', '.join(settings)} is not known yet"
    elif mode.name == MAINTENANCE:
        seconds = sum(usual_seconds(expected, taken_s).values())
        why = "as such cases usually take, not all of which ran here before"
        by, how_long = f"about {clock(now, seconds)}", (duration(seconds), why)
    elif mode.minutes is not None:
        by, how_long = clock(now, 60 * mode.minutes), (mode.duration,)
    else:
        when = f"how long it takes here is not known yet ({mode.duration})"
    if by:
        when = ", ".join(how_long) if to_set_up else f"done by {by} ({', '.join(how_long)})"
    if to_set_up:
        when += f", plus the set-up of {', '.join(to_set_up)}"
    if wait_s:
        when += f", plus up to {duration(wait_s)} of waiting for an idle node"
    beside = f"{counted(expectations, 'expectation')} and " if expectations else ""
    bare = f"; no references yet: judged against {beside}physical limits only"
    by = "" if referenced else bare
    return f"{when}: {what}{by}"
