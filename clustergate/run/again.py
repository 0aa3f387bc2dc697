"""Cases that look slow, launched again: each alone, by further calls of ReFrame, in the same run.

What they leave is in folders of their own below the run's, ``again-1`` and ``again-2``, so that
nobody takes them for cases of the run.
"""

from __future__ import annotations

import datetime
import os
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from clustergate.benchmarks.registry import title_of
from clustergate.core import store
from clustergate.core.commands import sweeps_given
from clustergate.core.model import CaseId, CaseRecord, ClustergateError, Say
from clustergate.core.notation import counted, listed
from clustergate.core.reasons import Reason, Words
from clustergate.core.texts import clock
from clustergate.judge.assembly import Outcome
from clustergate.judge.confirmation import TIMES, Confirming, Launched
from clustergate.judge.history.stored_runs import seconds_of_case
from clustergate.judge.kinds import FigureId
from clustergate.run import resuming
from clustergate.run.collect import Collected, Relaunches, without_overlaps
from clustergate.run.execute import execute
from clustergate.run.forecast import waiting_s
from clustergate.run.judge import assembled, compared
from clustergate.run.prepare import Prepared
from clustergate.run.reframe import (
    Call,
    call_for,
    ended_cases,
    read_log,
    read_outcomes,
    with_cases,
    with_checks,
    with_settings,
    with_stacks,
)
from clustergate.run.timetable import jobs_of
from clustergate.sites.exclusions import WITHOUT_NODES, nodes_left_out
from clustergate.sites.modes import used_shape
from clustergate.sites.schedulers import scheduler_of

_NAMED = 3
# The end of the job of Slurm that this process is in, in seconds since the epoch.
_JOB_END = "SLURM_JOB_END_TIME"


def folder_of(run_id: str, attempt: int) -> str:
    """Return the id below which the records of a further time are kept, as of a run."""
    return f"{run_id}/again-{attempt}"


def confirm(prepared: Prepared, collected: Collected, say: Say) -> Relaunches:
    """Launch again what looks slow, and return the cases judged by all launches of them."""
    beside = compared(prepared, collected.records)
    cases = assembled(
        *(prepared, collected, collected.outcomes, collected.records), prepared.expected, beside
    )
    hosts = _hosts(collected.outcomes, collected.records)
    run = [Launched(one, hosts.get(one.identity, ())) for one in cases]
    wholes = {partition: tuple(some) for partition, some in beside.wholes.items()}
    confirming = Confirming(run, wholes, prepared.request.promises)
    done = _Attempts(prepared, collected, say, confirming, beside.suspected)
    for attempt in range(1, TIMES + 1):
        if left := confirming.left:
            _attempt(done, left, attempt)
    decided = confirming.decided(prepared.request.mode.name)
    return Relaunches(decided, done.records, beside.detectable, beside.sets, confirming.wholes)


@dataclass
class _Attempts:
    """What a run launches again; ``records`` is what it left, time by time."""

    prepared: Prepared
    collected: Collected
    say: Say
    confirming: Confirming
    watched: Collection[frozenset[FigureId]]
    records: list[list[CaseRecord]] = field(default_factory=list)


NO_TIME = Words(
    "again.no-time",
    "launching it again takes about {needed_s:.0f} s, and {left_s:.0f} s are left",
)
AGAIN_QUEUED = Words("again.queued", "its job did not start within --confirm-wait {wait_s:.0f}s")
AGAIN_FAILED = Words("again.failed", "launched again, it failed: {why}")


def _attempt(done: _Attempts, slow: Mapping[CaseId, str], attempt: int) -> None:
    prepared, collected, whys = done.prepared, done.collected, done.confirming.why
    for identity in slow:
        if why := _not_asked(prepared, identity):
            whys[identity] = why
    slow = {identity: said for identity, said in slow.items() if identity not in whys}
    left_s = _seconds_left(prepared.request.confirm_until)
    needed_s = sum(_seconds_of(collected, slow))
    if left_s is not None and needed_s > left_s:
        no_time = NO_TIME(needed_s=needed_s, left_s=max(left_s, 0.0))
        whys.update(dict.fromkeys(slow, no_time))
        return
    if not slow:
        return
    of = attempt, done.confirming.times(slow)
    records = launch_again(prepared, collected, slow, of, done.say, done.records)
    done.records.append(records)
    # By their names they are cases of the run, and judged beside the others of it.
    names = {record.name for record in records}
    others = [one for one in collected.records if one.name not in names]
    beside = compared(prepared, [*records, *others], done.watched)
    outcomes = [
        Outcome(
            *(one.name, one.check, one.stack, "pass"),
            partition=one.partition,
            parameters=one.parameters,
        )
        for one in collected.outcomes
        if one.identity in slow and one.name in names
    ]
    hosts = _hosts(outcomes, records)
    cases = assembled(prepared, collected, outcomes, records, (), beside)
    launched = {one.identity: one for one in cases}
    ran = {identity for identity, case in launched.items() if not case.state.broken}
    again = [Launched(launched[identity], hosts[identity]) for identity in ran]
    done.confirming.add(again, beside.wholes)
    for identity, why in _absences(prepared, slow.keys() - ran, attempt).items():
        case = launched.get(identity)
        if case and why.code != AGAIN_QUEUED.code:
            why = AGAIN_FAILED(why=case.reason)
        whys[identity] = why


def launch_again(
    prepared: Prepared,
    collected: Collected,
    slow: Mapping[CaseId, str],
    of: tuple[int, int],
    say: Say,
    before: Sequence[Sequence[CaseRecord]] = (),
) -> list[CaseRecord]:
    """Launch cases again, one after the other, and return what they left.

    ``slow`` says how slow each of them is. It is the attempt of the first number ``of`` so many.
    What an earlier one of this number left, before the run was killed, is kept; ``before`` is what
    those of lower numbers left.
    """
    attempt, times = of
    wanted = {one.key: one for one in collected.outcomes if one.identity in slow}
    run_id = folder_of(prepared.run_id, attempt)
    call = _call(prepared, collected, wanted, run_id, before if attempt > 1 else ())
    kept = _kept(call, wanted, collected.records)
    if kept < set(wanted):
        others = {one.key for one in collected.outcomes} - set(wanted)
        store.write_json(store.run_folder(run_id) / resuming.DONE, sorted(others | kept))
        seconds = _seconds_of(collected, slow)
        end = clock(datetime.datetime.now(), (times - attempt + 1) * sum(seconds))
        say(_sentence(slow, of, end))
        jobs = jobs_of(prepared.request.mode, [*slow], seconds, ())
        execute(call, say, waiting_s(jobs))
    return without_overlaps(
        [one for one in store.read_cases(run_id) if one.name in {o.name for o in wanted.values()}]
    )


def _sentence(slow: Mapping[CaseId, str], of: tuple[int, int], end: str) -> str:
    each = [f"{title_of(one.check)} with {one.stack}" for one in slow]
    which = f"again ({of[0]} of {of[1]})"
    if len(slow) == 1:
        what, said = f"launching {each[0]} {which}", next(iter(slow.values()))
    else:
        what = f"launching {counted(len(slow), 'case')} {which}"
        said = listed([f"{a}, {b}" for a, b in zip(each, slow.values(), strict=True)], _NAMED)
    return f"{what}: {said}; done by about {end}"


def _call(
    prepared: Prepared,
    collected: Collected,
    wanted: Mapping[str, Outcome],
    run_id: str,
    before: Sequence[Sequence[CaseRecord]],
) -> Call:
    request = prepared.request
    stacks = [one.stack for one in wanted.values()]
    settings: dict[str, object] = {"mode": request.mode.name}
    if any(_waits(prepared, one.partition) for one in wanted.values()):
        settings["max_pending_time"] = f"{request.confirm_wait_s:.0f}s"
    # ReFrame names the variants of a sweep (-P) only once it has chosen by name.
    checks = {one.check for one in wanted.values()}
    names = with_checks(checks) if sweeps_given(request.options) else with_cases(wanted)
    options = [*names, *with_settings(settings), *with_stacks(stacks)]
    call = call_for(
        *(run_id, request.site, [*options, *request.options]),
        process_counts=request.process_counts,
        set_up=dict.fromkeys(stacks),
    )
    store.make_folder(call.report.parent)
    call.report.unlink(missing_ok=True)
    resuming.end_processes_of(run_id)
    if before and (elsewhere := _elsewhere(prepared, collected, wanted, before)):
        environment = {**call.environment, WITHOUT_NODES: ",".join(elsewhere)}
        call = Call(call.run_id, call.command, environment, call.report, call.schedulers)
    return call


def _elsewhere(
    prepared: Prepared,
    collected: Collected,
    wanted: Mapping[str, Outcome],
    before: Sequence[Sequence[CaseRecord]],
) -> list[str]:
    """Return the nodes to keep out so that cases are launched on others; none where there are none.

    Only where one node is measured of several: else the cases would be others.
    """
    names = {one.name for one in wanted.values()}
    records = [
        one for of_one in (collected.records, *before) for one in of_one if one.name in names
    ]
    were = dict.fromkeys(host.partition(".")[0] for one in records for host in one.hosts)
    mode, counts = prepared.request.mode.name, prepared.request.process_counts
    for partition in prepared.partitions:
        checks = {one.check for one in wanted.values() if one.partition == partition.fullname}
        shapes = [used_shape(mode, check, partition, counts) for check in checks]
        if any(shape.nodes > 1 for shape in shapes):
            return []
        if checks and partition.shape.nodes <= len(were):
            return []
    return [*dict.fromkeys([*nodes_left_out(), *were])] if were else []


def _kept(call: Call, wanted: Mapping[str, Outcome], first: Sequence[CaseRecord]) -> set[str]:
    """Return the keys of the cases that ended before the run was killed, and remove what is older.

    What was measured again since the run was resumed is launched again, too.
    """
    ended = {one.key for one in ended_cases(read_log(call.log))}
    last = {one.name: _ended_s(one) for one in first}
    records = {one.name: one for one in store.read_cases(call.run_id)}
    kept = set()
    for key, outcome in wanted.items():
        record = records.get(outcome.name)
        if record is None:
            continue
        since = min((one.started for one in record.launches), default=0.0)
        if key in ended and since >= last.get(outcome.name, 0.0) and not record.complaints:
            kept.add(key)
        else:
            store.case_file(call.run_id, outcome.name).unlink()
    return kept


def _ended_s(record: CaseRecord) -> float:
    return max((one.started + one.seconds for one in record.launches), default=0.0)


LEFT_OUT = Words("again.left-out", "ReFrame did not launch it again; its output is in {log}")


def _absences(prepared: Prepared, slow: Collection[CaseId], attempt: int) -> dict[CaseId, Reason]:
    """Return why cases have no figures of this time, as far as ReFrame tells."""
    folder = store.run_folder(folder_of(prepared.run_id, attempt))
    report = folder / "reframe.json"
    whys = dict.fromkeys(slow, LEFT_OUT(log=report.with_suffix(".out")))
    if not whys:
        return {}
    try:
        outcomes = read_outcomes(report, 1)
    except ClustergateError as error:
        return dict.fromkeys(slow, AGAIN_FAILED(why=str(error)))
    wait_s = prepared.request.confirm_wait_s
    for one in outcomes:
        if one.identity in whys and one.result != "skip":
            whys[one.identity] = AGAIN_FAILED(why=one.reason or one.result)
            names_it = "pending time" in one.reason
            cancelled = "CANCELLED" in one.reason and one.duration_s >= wait_s
            if _waits(prepared, one.partition) and (names_it or cancelled):
                whys[one.identity] = AGAIN_QUEUED(wait_s=wait_s)
    return whys


def _waits(prepared: Prepared, partition: str) -> bool:
    """Tell whether jobs of a partition wait in a queue."""
    return any(
        p.fullname == partition and scheduler_of(p.scheduler).is_batch for p in prepared.partitions
    )


NOT_ASKED = Words("again.not-asked", "--no-confirm was given")
NO_WAIT = Words("again.no-wait", "--confirm-wait 0s lets no job wait in a queue")


def _not_asked(prepared: Prepared, identity: CaseId) -> Reason | None:
    request = prepared.request
    if not request.confirm:
        return NOT_ASKED()
    if not request.confirm_wait_s and _waits(prepared, identity.partition):
        return NO_WAIT()
    return None


def _seconds_left(until: float | None) -> float | None:
    """Return the seconds until the end of a budget or of the job this is in, None without one."""
    ends = [] if until is None else [until]
    if (end := os.environ.get(_JOB_END, "")).isdigit():
        ends.append(float(end))
    return min(ends) - time.time() if ends else None


def _seconds_of(collected: Collected, slow: Iterable[CaseId]) -> list[float]:
    names = {one.identity: one.name for one in collected.outcomes}
    records = {one.name: one for one in collected.records}
    known = (records.get(names.get(identity, "")) for identity in slow)
    return [seconds_of_case(one) if one else 0.0 for one in known]


def _hosts(
    outcomes: Sequence[Outcome], records: Sequence[CaseRecord]
) -> dict[CaseId, tuple[str, ...]]:
    by_name = {one.name: one.hosts for one in records}
    return {one.identity: by_name[one.name] for one in outcomes if one.name in by_name}
