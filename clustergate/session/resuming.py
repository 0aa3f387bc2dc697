"""Take up a run that was stopped: what was asked for, and which cases came to their end.

ReFrame writes its report at its very end, and one that was killed never does. What it printed of
each case, which is kept as it comes, tells which came to their end; what those left behind is kept,
good or bad, and only the others run again.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from clustergate import store
from clustergate.machine.processes import end_processes_with
from clustergate.model import Case, CaseRecord, CaseState, ClustergateError
from clustergate.session.reframe import Call, Ended, case_key, ended_cases, read_log
from clustergate.verdicts.assembly import Outcome

ASKED, DONE, ENDED = "asked.json", "done.json", "ended.json"
HASH = "reframe_hash"
"""Among the details of a record: the word by which ReFrame's output names its test."""
SKIPPED = "it ran before the run was resumed"
"""The reason with which a check leaves out a case that came to its end."""


class ResumeError(ClustergateError):
    """A run cannot be taken up again."""


def earlier_outcomes(ended: Sequence[Ended], records: Sequence[CaseRecord]) -> dict[str, Outcome]:
    """Return the outcomes of the cases that need not run again, by their keys.

    A case that passed and whose record is not there is not among them: its figures are lost.
    """
    by_key = {
        case_key(str(record.details.get(HASH)), record.partition, record.stack): record
        for record in records
    }
    found = {}
    for one in ended:
        record = by_key.get(one.key)
        if record is None and one.passed:
            continue
        found[one.key] = Outcome(
            name=record.name if record else one.key,
            check=one.check,
            stack=one.stack,
            result="pass" if one.passed else "fail",
            phase=one.phase,
            reason=""
            if one.passed
            else "it failed before the run was resumed; reframe.out in the run's folder says why",
            duration_s=sum(launch.seconds for launch in record.launches) if record else 0.0,
            key=one.key,
            partition=one.partition,
            parameters=one.parameters,
        )
    return found


def together(earlier: Mapping[str, Outcome], outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return the outcomes of a resumed run: those of before, and those that ran now."""
    if not earlier:
        return list(outcomes)
    # Those were left out now. ReFrame's report does not say why a case was skipped.
    return [*earlier.values(), *(one for one in outcomes if one.key not in earlier)]


# --- on disk ----------------------------------------------------------------------------------


def write_asked(run_id: str, asked: Mapping[str, object]) -> None:
    """Keep what a run was asked for."""
    store.write_json(store.run_folder(run_id) / ASKED, asked)


def read_asked(run_id: str) -> dict[str, Any]:
    """Return what a run was asked for; raises :class:`ResumeError` where nobody can tell."""
    path = store.run_folder(run_id) / ASKED
    if not path.parent.is_dir():
        raise ResumeError(f"there is no run {run_id} in {store.runs_folder()}")
    try:
        asked = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ResumeError(
            f"what the run {run_id} was asked for is not known, so it cannot be resumed; run again"
        ) from None
    except (OSError, ValueError) as error:
        raise ResumeError(f"{path} cannot be read ({error}); run again") from None
    if not isinstance(asked, dict):
        raise ResumeError(f"{path} is damaged; run again")
    return asked


def write_ended(run_id: str, cases: Sequence[Case]) -> None:
    """Keep that a run came to its end, and how many of its cases are still to be run."""
    left = sum(case.state is CaseState.MISSING for case in cases)
    store.write_json(store.run_folder(run_id) / ENDED, {"missing_cases": left})


def require_unfinished(run_id: str) -> None:
    """Raise :class:`ResumeError` where nothing of a run is left to be run."""
    try:
        ended = json.loads((store.run_folder(run_id) / ENDED).read_text(encoding="utf-8"))
        left = int(ended["missing_cases"])
    except (OSError, ValueError, KeyError, TypeError):
        return
    if not left:
        raise ResumeError(
            f"the run {run_id} came to its end, and all of its cases ran; its report is "
            f"{store.run_folder(run_id) / 'report.html'}; to measure again, start a new run"
        )


def keep_reports(run_id: str) -> None:
    """Put the reports of a run that is resumed aside, under the number of the attempt."""
    for path in (
        store.run_folder(run_id) / name for name in ("report.html", "junit.xml", "verdicts.json")
    ):
        if path.is_file():
            number = len(list(path.parent.glob(f"{path.stem}.*{path.suffix}"))) + 1
            path.rename(path.with_suffix(f".{number}{path.suffix}"))


@contextlib.contextmanager
def under_way(run_id: str) -> Iterator[list[str]]:
    """Let nobody else work on a run meanwhile; raises :class:`ResumeError` when somebody does.

    Removes what jobs of earlier runs left where they worked, and yields in a sentence which other
    runs of this home are under way.
    """
    folder = store.run_folder(run_id)
    store.make_folder(folder)
    lock = FileLock(folder / "lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise ResumeError(f"the run {run_id} is still under way") from None
    try:
        yield _beside(run_id)
    finally:
        lock.release()


def _beside(run_id: str) -> list[str]:
    others = []
    for stage in sorted(store.stage_folder("").glob("*Z-*")):
        lock = FileLock(store.run_folder(stage.name) / "lock")
        if stage.name == run_id or not Path(lock.lock_file).parent.is_dir():
            continue
        try:
            with lock.acquire(timeout=0):
                shutil.rmtree(stage, ignore_errors=True)
        except Timeout:
            others.append(stage.name)
    if not others:
        return []
    verb = "is" if len(others) == 1 else "are"
    return [
        f"{', '.join(others)} {verb} under way in this home, too: where both use a node, each "
        "disturbs the other; measure one after the other, or on other nodes"
    ]


def begin_again(run_id: str, call: Call) -> dict[str, Outcome]:
    """Return the outcomes that a run has already, and tell its checks to leave those cases out.

    What is left of its processes is ended, and its reports are put aside.
    """
    keep_reports(run_id)
    ended = ended_cases(read_log(call.log))
    end_processes_with(store.RUN_ID, run_id)
    records = store.read_cases(run_id)
    earlier = earlier_outcomes(ended, records)
    # Nobody judged what lies there of the others, and it must not pass for what they leave now.
    kept = {outcome.name for outcome in earlier.values()}
    for record in records:
        if record.name not in kept:
            store.case_file(run_id, record.name).unlink()
    call.report.unlink(missing_ok=True)
    store.write_json(store.run_folder(run_id) / DONE, sorted(earlier))
    return earlier


def is_done(run_id: str, key: str) -> bool:
    """Tell whether a case came to its end before its run was resumed."""
    path = store.run_folder(run_id) / DONE
    return path.is_file() and key in json.loads(path.read_text(encoding="utf-8"))
