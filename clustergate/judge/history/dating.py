"""When runs were made, by more than one witness, and which of them disagree. Pure.

A run is dated by its name, as the clock of its node said. Its number in the home says which came
first, its files when they were written, its launches when they began. A clock that was wrong once,
or a run that was copied from another home, makes one of them contradict the others: such a run is
told, and left out of whatever is compared with a past.
"""

from __future__ import annotations

import bisect
import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clustergate.core.model import CaseRecord, number_of_run, order_of_run
from clustergate.core.reasons import Reason, Words

# Several nodes share a home, and their clocks are not the same to the second.
_APART = datetime.timedelta(hours=1)
_A_DAY = datetime.timedelta(days=1)
# A run may be resumed, and its files copied without their times.
_A_MONTH, _A_YEAR = datetime.timedelta(days=31), datetime.timedelta(days=365)
_UTC = datetime.timezone.utc
# Nobody had the suite before: clocks without a battery begin in 1970, 2000, 2015, 2020.
_FIRST = datetime.datetime(2024, 1, 1, tzinfo=_UTC)
# A clock that was never set counts from 1970.
_SET_S = 1e9
# What was written when it was made is more of a witness than what was brought.
_MADE_HERE = 1000


@dataclass(frozen=True)
class Dated:
    """A stored run with its witnesses, each with a zone.

    ``started`` is the date in its name. Its files were ``first_written`` and ``last_written`` as
    they say, which a copy may keep, and ``changed`` as the file system says, which none does.
    One that was ``merged`` has its number from another home, which tells nothing of this one's.
    """

    run_id: str
    started: datetime.datetime
    first_written: datetime.datetime
    last_written: datetime.datetime
    changed: datetime.datetime
    merged: bool = False

    @property
    def number(self) -> int:
        return 0 if self.merged else number_of_run(self.run_id)


DATED_AHEAD = Words(
    "run.dated-ahead",
    "{run} is dated after today",
    cause="a clock was wrong",
    remedy="it is left out; where you know its date, name its folder by that",
)
DATED_EARLY = Words(
    "run.dated-early",
    "{run} is dated before the suite was made",
    cause="a clock was wrong",
    remedy="it is left out; where you know its date, name its folder by that",
)
WRITTEN_ELSEWHEN = Words(
    "run.written-elsewhen",
    "{run} is dated {named}, and its files {written}",
    cause="a clock was wrong, or a copy lost the times of its files",
    remedy="it is left out; where you know its date, name its folder by that",
)


def doubts(runs: Sequence[Dated], now: datetime.datetime) -> dict[str, Reason]:
    """Return of the runs whose witnesses disagree why, by their ids."""
    doubted: dict[str, Reason] = {}
    apart = [abs(run.first_written - run.started) for run in runs]
    # After a copy of all runs no file has its time any more.
    files_tell = 2 * sum(one < _A_MONTH for one in apart) > len(runs) > 1
    for run, by in zip(runs, apart, strict=True):
        named = f"{run.started:%Y-%m-%d}"
        if run.started > now + _A_DAY:
            doubted[run.run_id] = DATED_AHEAD(run=run.run_id)
        elif run.started < _FIRST:
            doubted[run.run_id] = DATED_EARLY(run=run.run_id)
        elif run.last_written < run.started - _A_DAY or (files_tell and by > _A_YEAR):
            when = f"{run.first_written:%Y-%m-%d}"
            doubted[run.run_id] = WRITTEN_ELSEWHEN(run=run.run_id, named=named, written=when)
    return doubted | _out_of_order([run for run in runs if run.run_id not in doubted])


TOO_LATE = Words(
    "run.too-late",
    "{run} is dated after {other}, whose number is higher",
    cause="a clock was wrong, or one was copied from another home",
    remedy=(
        "it is left out; where its date is right, rename its folder so that it ends in -1 "
        "instead of its number"
    ),
)
TOO_EARLY = Words(
    "run.too-early",
    "{run} is dated before {other}, whose number is lower",
    cause="a clock was wrong, or one was copied from another home",
    remedy=(
        "it is left out; where its date is right, rename its folder so that it ends in -1 "
        "instead of its number"
    ),
)


def _out_of_order(runs: Sequence[Dated]) -> dict[str, Reason]:
    """Return the fewest runs without which dates rise with numbers, as those that disagree."""
    numbered = sorted(
        (run for run in runs if run.number),
        key=lambda run: (run.number, run.started),
    )
    kept = _rising(numbered)
    numbers = [run.number for run in kept]
    rising, doubted = {run.run_id for run in kept}, {}
    for run in numbered:
        if run.run_id in rising:
            continue
        place = bisect.bisect_left(numbers, run.number)
        if place < len(kept) and run.started > kept[place].started + _APART:
            doubted[run.run_id] = TOO_LATE(run=run.run_id, other=kept[place].run_id)
        elif place and run.started < kept[place - 1].started - _APART:
            other = kept[place - 1].run_id
            doubted[run.run_id] = TOO_EARLY(run=run.run_id, other=other)
    return doubted


def _rising(runs: Sequence[Dated]) -> list[Dated]:
    """Return those of some runs that weigh most together and whose dates rise with their numbers.

    Of equals the newest are taken (heaviest increasing subsequence).
    """
    dates = sorted({run.started for run in runs})
    # The heaviest chain that ends at one of the first so many dates, and the run where it ends.
    best: list[tuple[int, int]] = [(0, -1)] * (len(dates) + 1)
    before: list[int] = []
    for place, run in enumerate(runs):
        rank = bisect.bisect_left(dates, run.started) + 1
        weight, previous = (0, -1)
        upto = rank
        while upto:
            weight, previous = max((weight, previous), best[upto])
            upto -= upto & -upto
        before.append(previous)
        made_here = abs(run.changed - run.started) < _A_MONTH
        chain = (weight + (_MADE_HERE if made_here else 1), place)
        while rank <= len(dates):
            best[rank] = max(best[rank], chain)
            rank += rank & -rank
    _, place = max(best)
    kept = []
    while place >= 0:
        kept.append(runs[place])
        place = before[place]
    return kept[::-1]


def in_order(runs: Sequence[Dated], doubted: Mapping[str, Reason]) -> list[Dated]:
    """Return runs in the order in which they were made.

    Of one whose witnesses disagree the earlier place counts: it is nobody's newest.
    """
    # Nothing was made after what has a higher number.
    latest: dict[str, datetime.datetime] = {}
    before = datetime.datetime.max.replace(tzinfo=_UTC)
    for run in sorted(runs, key=lambda run: run.number, reverse=True):
        latest[run.run_id] = min(run.started, before)
        if run.run_id not in doubted:
            before = latest[run.run_id]
    return sorted(
        runs,
        key=lambda run: order_of_run(run.run_id, latest[run.run_id] if run.number else run.started),
    )


LAUNCHED_ELSEWHEN = Words(
    "run.launched-elsewhen",
    "{run} is dated {named}, and its launches {launched}",
    cause="the clock of one of its nodes was wrong",
    remedy="it is left out; where you know its date, name its folder by that",
)


def launched_elsewhen(
    run_id: str, started: datetime.datetime, records: Sequence[CaseRecord]
) -> Reason | None:
    """Return that the launches of a run began at another time than it did, None where they agree.

    A run that was resumed has launches of later days.
    """
    began = [launch.started for one in records for launch in one.launches]
    began = [moment for moment in began if moment > _SET_S]
    if not began:
        return None
    first = datetime.datetime.fromtimestamp(min(began), _UTC)
    if started - _A_DAY <= first <= started + _A_MONTH:
        return None
    named, launched = f"{started:%Y-%m-%d}", f"{first:%Y-%m-%d}"
    return LAUNCHED_ELSEWHEN(run=run_id, named=named, launched=launched)
