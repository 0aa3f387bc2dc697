"""Resume an interrupted run: which cases were completed, and what is left of the rest.

ReFrame writes its report at its very end, and one that was killed never does. What it printed of
each case, which is kept as it comes, tells which were completed; what those left behind is kept,
good or bad, and only the others run again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from filelock import Timeout

from clustergate.core import store
from clustergate.core.files.shared import locked, mount_of
from clustergate.core.files.whole import read_json
from clustergate.core.model import (
    A_DAY_S,
    CaseId,
    CaseRecord,
    CaseState,
    ClustergateError,
    Run,
    worst,
)
from clustergate.core.paths import HOME, state_dir
from clustergate.core.reasons import Reason, Words
from clustergate.judge.assembly import Outcome, verdicts
from clustergate.judge.history.listing import ENDED, LOCK, VERDICTS, locks_of
from clustergate.judge.history.trends import day_and_time
from clustergate.machine.fingerprint import parse_state, processor_of, read_node_state
from clustergate.machine.processes import end_processes_with
from clustergate.run.reframe import Call, case_key, ended_cases, read_log, step_of
from clustergate.stacks.manifest import ManifestError, read_manifest

DONE = "done.json"
HASH = "reframe_hash"
"""Among the details of a record: the word by which ReFrame's output names its test."""
SKIPPED = "it ran before the run was resumed"
"""The reason with which a check skips a completed case."""
_FAILED_BEFORE = "it failed before the run was resumed; reframe.out in the run's folder says why"


def earlier_outcomes(ended: Sequence[Outcome], records: Sequence[CaseRecord]) -> dict[str, Outcome]:
    """Return the outcomes of the cases that need not run again, by their keys.

    A case that passed and whose record is not there is not among them: its figures are lost.
    """
    by_key = {
        case_key(str(record.details.get(HASH)), record.partition, record.stack): record
        for record in records
    }
    outcomes = {}
    for one in ended:
        if record := by_key.get(one.key):
            seconds = sum(launch.seconds for launch in record.launches)
            one = dataclasses.replace(one, name=record.name, duration_s=seconds)
        if one.result == "fail":
            outcomes[one.key] = dataclasses.replace(one, reason=_FAILED_BEFORE)
        elif record:
            outcomes[one.key] = one
    return outcomes


def merge_outcomes(earlier: Mapping[str, Outcome], outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return the outcomes of a resumed run: those of before, and those that ran now."""
    if not earlier:
        return list(outcomes)
    # Those were left out now. ReFrame's report does not say why a case was skipped.
    return [*earlier.values(), *(one for one in outcomes if one.key not in earlier)]


def is_all_kept(
    lines: Sequence[str],
    earlier: Mapping[str, Outcome],
    stacks: Collection[str],
    side_by_side: Iterable[CaseId] = (),
) -> bool:
    """Tell whether a run that is resumed with these stacks has no case left to measure.

    ``lines`` are what ReFrame printed until then, ``earlier`` the outcomes that are kept. The cases
    ``side_by_side`` are of a second call, of which the first knows nothing at its end.
    """
    kept = {one.identity for one in earlier.values()}
    if any(case.stack in stacks and case not in kept for case in side_by_side):
        return False
    steps = [one for one in map(step_of, lines) if one and one.word in ("OK", "FAIL", "SKIP")]
    return (
        bool(steps)
        and not steps[-1].left
        and {one.stack for one in steps} >= set(stacks)
        and all(one.key in earlier for one in ended_cases(lines))
    )


RESUME_OLD = Words(
    "resume.old",
    "{old} of {cases:case|cases} were measured on {when}, {days:day|days} before the others",
    cause="the run was resumed, so its figures may be from two states of the machine",
    remedy="for a verdict of one day, start a new run: `clustergate check`",
)


def measured_long_before(records: Sequence[CaseRecord]) -> Reason | None:
    """Return which cases of a run are of more than a day before its last one, None for none."""
    last: dict[str, float] = {}
    for one in records:
        moments = [x.started for x in one.launches]
        # Of one that was launched again, the first time counts.
        if moments and one.name not in last:
            last[one.name] = max(moments)
    newest = max((x.started for one in records for x in one.launches), default=0.0)
    old = [moment for moment in last.values() if newest - moment > A_DAY_S]
    if not old:
        return None
    when = datetime.datetime.fromtimestamp(min(old), datetime.timezone.utc)
    days = round((newest - min(old)) / A_DAY_S)
    return RESUME_OLD(old=len(old), cases=len(last), when=day_and_time(when), days=days)


# --- on disk ----------------------------------------------------------------------------------


def write_ended(run: Run) -> None:
    """Keep that a run came to its end, how, and how many of its cases are still to be run."""
    left = sum(case.state is CaseState.MISSING for case in run.cases)
    verdict = worst([*verdicts(run.cases), *(one.verdict for one in run.evidence)]).value
    content = {"missing_cases": left, "verdict": verdict, "system": run.system}
    store.write_json(store.run_folder(run.run_id) / ENDED, content)


RUN_COMPLETE = Words(
    "run.complete",
    "the run {run} is complete; its report is {report}",
    remedy="to measure again, start a new run",
)


def require_unfinished(run_id: str) -> None:
    """Raise :class:`ClustergateError` where no case of a run is left to run or to be reported."""
    if not (store.run_folder(run_id) / VERDICTS).exists():
        # It was ended while it wrote its reports, of which this is the last.
        return
    try:
        ended = read_json(store.run_folder(run_id) / ENDED)
        left = int(ended["missing_cases"])
    except (OSError, ValueError, KeyError, TypeError):
        return
    if not left:
        report = store.run_folder(run_id) / "report.html"
        raise ClustergateError(RUN_COMPLETE(run=run_id, report=report))


def set_reports_aside(run_id: str) -> None:
    """Rename the reports of a run that is resumed, by the number of the attempt."""
    for path in (
        store.run_folder(run_id) / name for name in ("report.html", "junit.xml", "verdicts.json")
    ):
        if path.is_file():
            number = len(list(path.parent.glob(f"{path.stem}.*{path.suffix}"))) + 1
            path.rename(path.with_suffix(f".{number}{path.suffix}"))


STILL_RUNNING = Words(
    "run.still-running",
    "the run {run} is still running",
    remedy="wait until it has ended; `clustergate show {run}` then sums it up",
)


@contextlib.contextmanager
def lock_run(run_id: str) -> Iterator[list[str]]:
    """Hold the lock of a run; raises :class:`ClustergateError` when another process holds it.

    Removes what jobs of earlier runs left in their stage folders, and yields a sentence that names
    the other runs of this home.
    """
    folder = store.run_folder(run_id)
    store.make_folder(folder)
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(locked(folder / LOCK, wait=False))
        except Timeout:
            raise ClustergateError(STILL_RUNNING(run=run_id)) from None
        try:
            yield _other_runs(run_id)
        except BaseException:
            if [one.name for one in folder.iterdir()] == [LOCK]:
                # What is refused before it begins is no run.
                shutil.rmtree(folder, ignore_errors=True)
            raise


def _other_runs(run_id: str) -> list[str]:
    others = []
    stages = store.stage_folder("")
    for stage in sorted(stages.glob("*Z-*")):
        folder = store.run_folder(stage.name)
        if stage.name == run_id.partition("/")[0] or not folder.is_dir():
            continue
        try:
            with contextlib.ExitStack() as held:
                for lock in locks_of(folder):
                    held.enter_context(locked(lock, wait=False))
                # Where locks are the node's own, another node may be at work there.
                if not mount_of(stages).locks_locally:
                    shutil.rmtree(stage, ignore_errors=True)
        except Timeout:
            others.append(stage.name)
    if not others:
        return []
    verb = "is" if len(others) == 1 else "are"
    return [
        f"{', '.join(others)} {verb} running in this home, too: runs on the same node disturb each "
        "other; run them one after the other, or on different nodes"
    ]


def end_processes_of(run_id: str) -> None:
    """End what is left of a run on this node.

    A run of another home that began in the same second may have the same name.
    """
    end_processes_with(store.RUN_ID, run_id, beside={HOME: str(state_dir())})


def restart(
    run_id: str,
    call: Call,
    here: Collection[str] = (),
    otherwise: Collection[str] = (),
    *,
    changed: bool = False,
) -> dict[str, Outcome]:
    """Return the outcomes that a run has already, and let its checks skip those cases.

    What another build measured than there is now is not kept, nor, of partitions that are this node
    (``here``), what another node or processor did, or this one before it ``changed``, nor what was
    measured of stacks that are launched ``otherwise`` now. What is left of its processes is ended,
    and its reports are put aside.
    """
    set_reports_aside(run_id)
    ended = ended_cases(read_log(call.log))
    end_processes_of(run_id)
    records = store.read_cases(run_id)
    processor = processor_of(parse_state(read_node_state())) if here else ""
    of_now = [
        one
        for one in records
        if one.stack not in otherwise
        and not (changed and one.partition in here)
        and _is_of_now(one, here, processor)
    ]
    earlier = earlier_outcomes(ended, of_now)
    # Nobody judged what lies there of the others, and it must not pass for what they leave now.
    kept = {outcome.name for outcome in earlier.values()}
    for record in records:
        if record.name not in kept:
            store.case_file(run_id, record.name).unlink()
    call.report.unlink(missing_ok=True)
    store.write_json(store.run_folder(run_id) / DONE, sorted(earlier))
    return earlier


def _is_of_now(record: CaseRecord, here: Collection[str], processor: str) -> bool:
    proof: Any = record.details.get("proof") or {}
    this = [os.uname().nodename]
    if record.partition in here and proof.get("hosts", this) != this:
        return False
    # Many virtual machines have one name.
    if record.partition in here and processor and record.processors not in ((), (processor,)):
        return False
    program: Any = record.details.get("program") or {}
    with contextlib.suppress(ManifestError):
        manifest = read_manifest(state_dir(), record.stack)
        paths = {one.path for one in manifest.programs.values()}
        of_stack = record.details.get("build_key", manifest.build_key) == manifest.build_key
        return of_stack and program.get("path", "") in {"", *paths}
    return not record.details.get("build_key")


def completed(run_id: str) -> frozenset[str]:
    """Return the keys of the cases that were completed before their run was resumed."""
    path = store.run_folder(run_id) / DONE
    return frozenset(read_json(path) if path.is_file() else ())


def is_completed(run_id: str, key: str) -> bool:
    """Tell whether a case was completed before its run was resumed."""
    return key in completed(run_id)
