"""When a run will be done: by how long its cases took before, else by what they usually take."""

from __future__ import annotations

import datetime
import statistics
from collections.abc import Collection, Iterable, Sequence

from clustergate.benchmarks.registry import descriptor_of, title_of
from clustergate.core.model import CaseId
from clustergate.core.notation import counted
from clustergate.core.paths import state_dir
from clustergate.core.texts import clock, duration
from clustergate.judge.history.stored_runs import Taken
from clustergate.run.timetable import Job, jobs_of, timetable
from clustergate.sites.description import Partition, Site
from clustergate.sites.modes import MAINTENANCE, NODE_USAGE, PROCESS_COUNT, Mode
from clustergate.stacks.manifest import manifest_path


def usual_seconds(cases: Iterable[CaseId], taken_s: Taken) -> list[float]:
    """Return what each case takes in the gate's mode: as long as last time.

    What never ran is expected to take what its benchmark says a case usually does.
    """
    return [_seconds_of(one, taken_s) or descriptor_of(one.check).usual_s for one in cases]


def _seconds_of(case: CaseId, taken_s: Taken) -> float:
    """Return what a case took, 0 where nobody knows.

    A layout that never ran takes as long as others of its check with its stack.
    """
    of_check = taken_s.get((case.check, case.stack), {})
    asked = dict(case.parameters)
    alike = [
        seconds
        for (partition, ranks, how), took in of_check.items()
        if partition == case.partition
        and asked.get(PROCESS_COUNT, str(ranks)) == str(ranks)
        and asked.get(NODE_USAGE, how) == how
        for seconds in took
    ]
    known = alike or [seconds for took in of_check.values() for seconds in took]
    return statistics.fmean(known) if known else 0.0


def waiting_s(jobs: Iterable[Job]) -> dict[tuple[str, str], list[float]]:
    """Return the seconds of cases by check and stack, the last first, of those that take any."""
    by_pair: dict[tuple[str, str], list[float]] = {}
    for one in jobs:
        if one.seconds:
            by_pair.setdefault((one.case.check, one.case.stack), []).insert(0, one.seconds)
    return by_pair


def seconds_of(cases: Sequence[CaseId], taken_s: Taken) -> list[float]:
    """Return what each case took last time, nothing unless that is known of all."""
    known = [_seconds_of(one, taken_s) for one in cases]
    return known if all(known) else []


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
    partitions: Sequence[Partition] = (),
) -> str:
    """Return in a line what will be run, until when, and what it will be judged by.

    ``to_set_up`` are the stacks that are not on disk yet: how long that takes nobody knows, so no
    time of day is told. ``disturbed`` is what others disturbed last time, ``wait_s`` for how long
    it may wait for this node to be quiet, ``settings`` those by hand, with which nothing takes what
    it usually does, ``partitions`` where the cases run. Where nothing is ``referenced``, people may
    have written ``expectations``.
    """
    checks = ", ".join(dict.fromkeys(title_of(case.check) for case in expected))
    stacks = ", ".join(dict.fromkeys(case.stack for case in expected))
    what = f"{checks} with {stacks}, mode {mode.name}"
    known = seconds_of(expected, taken_s)
    by, how_long, when = "", tuple[str, ...](), ""
    if known:
        seconds = timetable(jobs_of(mode, expected, known, partitions), partitions).seconds
        pairs = {(case.check, case.stack) for case in expected}
        beside = ", beside other programs" * (not pairs.isdisjoint(disturbed))
        by, how_long = f"about {clock(now, seconds)}", (duration(seconds), f"as last time{beside}")
    elif settings:
        when = f"how long it takes with {', '.join(settings)} is not known yet"
    elif mode.name == MAINTENANCE:
        usual = usual_seconds(expected, taken_s)
        seconds = timetable(jobs_of(mode, expected, usual, partitions), partitions).seconds
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
