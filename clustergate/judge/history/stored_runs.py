"""The runs on disk, in the order of their start, and how long their cases took."""

from __future__ import annotations

import contextlib
import datetime
import itertools
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clustergate.core import store
from clustergate.core.commands import settings_given
from clustergate.core.files.whole import read_json
from clustergate.core.model import BadRequest, CaseRecord, Say
from clustergate.core.notation import counted
from clustergate.core.reasons import Reason, Words
from clustergate.judge.history import dating
from clustergate.judge.history.dating import Dated, doubts, launched_elsewhen

RECENT = {"last": 1, "previous": 2}
"""What may be said instead of an id: how many runs from the newest on, with that."""
ASKED = "asked.json"
"""What a run of a mode was asked for."""
MADE = "made.json"
"""What ``keep_made`` of the listing noted of a run that is not one of a mode."""
GATE, MERGED = "gate.json", "merged.json"
"""``MERGED`` is in a run that was brought from another home: from where, by whom and when."""
_UTC = datetime.timezone.utc
_STARTED = re.compile(r"(\d{8}T\d{6}Z)-r?\d+")
_LONG_S = 300 * 86400.0
_TOLD = 6
_AGO = re.compile(r"(\d+)([hd])")


@dataclass(frozen=True)
class PastRun:
    """A stored run: ``started`` has a zone; ``doubt`` is why that is not to be believed."""

    run_id: str
    started: datetime.datetime
    records: Sequence[CaseRecord]
    doubt: Reason | None = None


def stored_runs(
    since: datetime.datetime | None = None,
    state: Path | None = None,
    newest: int | None = None,
    *,
    tell: Say = lambda sentence: None,
) -> Iterator[PastRun]:
    """Yield the runs that started since then, the newest so many of them, the oldest first.

    Trials are none of them: ``tell`` is told of each. Raises :class:`store.StoreError` when a
    record is damaged.
    """
    known, doubted = _dated(state)
    runs = []
    for run in known:
        folder = store.run_folder(run.run_id, state)
        if not (folder / "cases").exists() or (since and run.started < since):
            continue
        if is_trial(folder):
            tell(str(TRIAL(run=run.run_id)))
        else:
            runs.append(run)
    for run in runs if newest is None else runs[-newest:]:
        records = store.read_cases(run.run_id, state)
        doubt = doubted.get(run.run_id) or launched_elsewhen(run.run_id, run.started, records)
        yield PastRun(run.run_id, run.started, records, doubt)


def in_order(
    holding: str = "", state: Path | None = None, *, trials: bool = False
) -> list[tuple[datetime.datetime, Path]]:
    """Return when each run that holds a file of this name started, with its folder; oldest first.

    Whatever a clock was set to meanwhile: see :func:`clustergate.judge.history.dating.in_order`.
    Who lists runs, or names them, takes ``trials`` as well: they are no standard of others.
    """
    known, _ = _dated(state)
    folders = [(run.started, store.run_folder(run.run_id, state)) for run in known]
    return [
        (started, folder)
        for started, folder in folders
        if (folder / holding).exists() and (trials or not is_trial(folder))
    ]


TRIAL = Words(
    "run.trial",
    "{run} is a trial",
    cause="it was measured with --trial, so no baseline, trend, reference or export uses it",
    remedy="if it is to count, measure again without --trial",
)


def is_trial(folder: Path) -> bool:
    """Tell whether a run was marked as a trial: it is listed, and no standard of any other."""
    return any(noted(folder / name).get("trial") is True for name in (MADE, ASKED, GATE))


def trial_note(folder: Path) -> list[str]:
    """Return that a run is a trial in a sentence, nothing of another."""
    return [str(TRIAL(run=folder.name))] if is_trial(folder) else []


def refuse_trial(folder: Path) -> None:
    """Raise :class:`BadRequest` for a run that is a trial."""
    if is_trial(folder):
        raise BadRequest(TRIAL(run=folder.name))


def noted(path: Path) -> Mapping[str, Any]:
    """Return what a file of a run says; nothing where it is absent or damaged."""
    with contextlib.suppress(OSError, ValueError):
        content = read_json(path)
        return content if isinstance(content, dict) else {}
    return {}


def doubted_runs(state: Path | None = None) -> dict[str, Reason]:
    """Return why the dates of some runs are not to be believed, by their ids."""
    return _dated(state)[1]


def left_out(why: Iterable[Reason | None]) -> list[str]:
    """Return which runs are dated wrongly and why, in sentences."""
    sentences = [str(one) for one in why if one]
    more = len(sentences) - _TOLD
    return sentences[:_TOLD] + ([f"and {counted(more, 'run')} more like these"] if more > 0 else [])


def _dated(state: Path | None) -> tuple[Sequence[Dated], dict[str, Reason]]:
    """Return the runs of a home, the oldest first, and which of them are dated wrongly."""
    runs = [_witnesses(f) for f in store.runs_folder(state).glob("*") if f.is_dir()]
    doubted = doubts(runs, datetime.datetime.now(_UTC))
    for run in runs:
        path = store.run_folder(run.run_id, state) / MERGED
        if run.merged and (why := noted(path).get("doubt")):
            doubted[run.run_id] = DOUBTED_THERE(run=run.run_id, why=str(why))
    return dating.in_order(runs, doubted), doubted


DOUBTED_THERE = Words(
    "run.doubted-there",
    "{run} was left out where it was merged from",
    cause="{why}",
    remedy="mend it there, remove it here, and merge again",
)


def _witnesses(folder: Path) -> Dated:
    began = started_of(folder)
    states = []
    for path in (folder, folder / "cases"):
        with contextlib.suppress(OSError):
            states.append(path.stat())
    last = max((state.st_mtime for state in states), default=0.0)
    changed = max((state.st_ctime for state in states), default=0.0)
    first = last
    if abs(last - began.timestamp()) > _LONG_S:
        # Whoever mends a run later leaves its other files as they were.
        first = _oldest_s(folder)
    times = [datetime.datetime.fromtimestamp(one, _UTC) for one in (first, last, changed)]
    merged = (folder / MERGED).exists()
    return Dated(folder.name, began, times[0], times[1], times[2], merged)


def started_of(folder: Path) -> datetime.datetime:
    """Return when the run in a folder started.

    Its name says it, unless somebody else chose the name: then the folder's oldest file does.
    """
    if started := _named(folder.name):
        return started
    return datetime.datetime.fromtimestamp(_oldest_s(folder), _UTC)


def _oldest_s(folder: Path) -> float:
    return min(path.stat().st_mtime for path in (folder, *folder.rglob("*")))


def is_named_as_run(name: str) -> bool:
    """Tell whether a name is one that the suite gives a run."""
    return _named(name) is not None


def _named(run_id: str) -> datetime.datetime | None:
    match = _STARTED.fullmatch(run_id)
    try:
        return datetime.datetime.strptime(match[1], "%Y%m%dT%H%M%S%z") if match else None
    except ValueError:
        return None


INPUT_SINCE = Words(
    "input.since",
    "{text!r} is no date, time or run",
    remedy=(
        "write a day (2026-11-03), a time (2026-11-03T14:00), a run (last, or its id), or an age "
        "(12h, 7d)"
    ),
)


def point_in_time(text: str, now: datetime.datetime) -> datetime.datetime:
    """Return what ``--since`` means: a day, a day and a time, a run, or ``12h`` or ``7d`` ago.

    A day or time without a zone is that of ``now``. Raises :class:`BadRequest`.
    """
    try:
        if match := _AGO.fullmatch(text):
            unit = {"h": "hours", "d": "days"}[match[2]]
            return now - datetime.timedelta(**{unit: int(match[1])})
        moment = _named(text) or datetime.datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise BadRequest(INPUT_SINCE(text=text)) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo)


Place = tuple[str, int, str]
"""The partition, the ranks and the placement of a case."""
Taken = Mapping[tuple[str, str], Mapping[Place, Sequence[float]]]
"""The seconds that each case of a check with a stack took, those that were laid out alike."""
_LAUNCHING_S, _SUBMISSION_S = 5.0, 2.0
# To read a run with a million samples takes seconds.
_NEWEST_RUNS = 3
_MOST = 0.5


def seconds_taken(records: Sequence[CaseRecord]) -> Taken:
    """Return the seconds that each case of each check took with each stack."""
    taken_s: dict[tuple[str, str], dict[Place, list[float]]] = defaultdict(dict)
    for record in records:
        ranks, how = record.conditions.get("ranks", 1), record.conditions.get("placement", "packed")
        place = record.partition, int(ranks), str(how)
        of_check = taken_s[record.check, record.stack]
        of_check.setdefault(place, []).append(seconds_of_case(record))
    return dict(taken_s)


def seconds_of_case(record: CaseRecord) -> float:
    """Return the seconds that a case took.

    That is its job from the driver's start until it was read, and its submission. Earlier versions
    noted its launches, what measured the node's peaks beside them, and waits.
    """
    if job_s := record.spent_s("job_s"):
        return job_s + _SUBMISSION_S
    launches_s = sum(launch.seconds for launch in record.launches)
    return launches_s + record.spent_s("peaks_s", "waited_s") + _LAUNCHING_S


def last_time(
    system: str, mode: str, options: Sequence[str] = ()
) -> tuple[Taken, Collection[tuple[str, str]]]:
    """Return what each case took with each stack in the newest run of a mode that measured it.

    It counts only with the same settings as the ``options`` for ReFrame give: they change much.
    Behind it: in which most launches were disturbed. Those took longer than they need, or there
    were more of them.
    """
    taken_s: dict[tuple[str, str], Mapping[Place, Sequence[float]]] = {}
    disturbed: dict[tuple[str, str], float] = {}
    settings = settings_given(options)
    alike = (run for _, run in reversed(in_order("cases")) if _settings_of(run) == settings)
    for folder in reversed([*itertools.islice(alike, _NEWEST_RUNS)]):
        # What is damaged there is no reason not to measure.
        with contextlib.suppress(store.StoreError):
            records = [
                record
                for record in store.read_cases(folder.name, samples=False)
                if record.partition.startswith(f"{system}:")
                and record.conditions.get("mode") == mode
                and not record.not_launched
            ]
            taken_s |= seconds_taken(records)
            disturbed |= _shares_disturbed(records)
    return taken_s, {pair for pair, share in disturbed.items() if share > _MOST}


def _settings_of(run: Path) -> list[str]:
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        return settings_given(read_json(run / ASKED)["options"])
    return []


def _shares_disturbed(records: Sequence[CaseRecord]) -> Mapping[tuple[str, str], float]:
    launches: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for record in records:
        launches[record.check, record.stack] += [
            one.disturbed is not None for one in record.launches
        ]
    return {pair: sum(each) / len(each) for pair, each in launches.items() if each}
