"""Ten simulated weeks of somebody's ReFrame suite: ``python -m tools.bench.suites``.

What the judge of sessions says of it, beside what ReFrame offers: tolerances that somebody typed
once, and the last session against the mean of the week before (``--performance-compare``).
"""

from __future__ import annotations

import argparse
import datetime
import json
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from clustergate.core.figures import name_of
from clustergate.core.model import LAUNCHED_AGAIN, Run, Verdict
from clustergate.suites.judging import NEWEST, OLDEST, RULE, SUITE_USUAL, judge_session
from clustergate.suites.places import sessions_at
from clustergate.suites.sessions import Result, Session, Value
from clustergate.suites.settings import Settings
from tools.bench.simulated_noise import BARE_METAL, HEAVY, KINDS, Machine, day_of, launches_of

DAYS, WEEKS = 70, 10
_START = datetime.datetime(2026, 1, 5, 3, tzinfo=datetime.timezone.utc)
_MACHINES = (BARE_METAL, HEAVY)
_UNITS = dict(zip(KINDS, ("s", "GB/s", "us", "MB/s", "us"), strict=True))
# Of two hundred tests; collectives have the units of small messages.
_SHARES = (0.4, 0.2, 0.1, 0.15, 0.15)
_TOLERANCES = (0.05, 0.10)
_SLOWER, _WATCHED = "judge: slower, status 1", "judge: not confirmed, status 2"
# Without "as much came and went".
_NEWS = "judge: not confirmed, and news"


@dataclass
class Tally:
    """What a way to judge said: in how many sessions a test that did not change was accused.

    ``found`` are the days from a slow-down until it was told, None for never.
    """

    name: str
    alarms: int = 0
    found: list[int | None] = field(default_factory=list)

    def row(self) -> str:
        known = [day for day in self.found if day is not None]
        median = f"{statistics.median(known):.0f}" if known else "-"
        share = f"{len(known)} of {len(self.found)}"
        return f"| {self.name} | {self.alarms / WEEKS:.1f} | {median} | {share} |"


def kinds_of(tests: int) -> list[str]:
    """Return the kind of each test."""
    bounds = np.cumsum(_SHARES) * tests
    return [KINDS[int(np.searchsorted(bounds, k, side="right"))] for k in range(tests)]


def costs(machine: Machine, tests: int, seed: int) -> NDArray[np.float64]:
    """Return what each test cost each day, as a logarithm, positive is worse."""
    lot, kinds = np.random.default_rng(seed), kinds_of(tests)
    days = [
        day_of(machine, kinds, lot) + launches_of(machine, kinds, 1, lot)[0][0] for _ in range(DAYS)
    ]
    return np.array(days)


def slowed(tests: int, by: float) -> dict[int, tuple[int, float]]:
    """Return which tests become slower, on which day and by how much, as a logarithm."""
    return {k: (15 + 3 * (k % 14), float(np.log1p(by))) for k in range(7, tests, tests // 12)}


def session(day: int, of_day: Sequence[float], kinds: Sequence[str]) -> Session:
    """Return the session of a day."""
    started = _START + datetime.timedelta(days=day)
    results = []
    for test, (cost, kind) in enumerate(zip(of_day, kinds, strict=True)):
        rate = 100.0 * float(np.exp(cost if _UNITS[kind] in ("s", "us") else -cost))
        value = Value("figure", rate, _UNITS[kind])
        at = started.timestamp()
        results.append(
            Result(f"test{test}", "", "sim", "cpu", "gnu", "pass", (value,), ("n1",), completed=at)
        )
    return Session(f"s{day}", started, results, started + datetime.timedelta(hours=2))


def accused(run: Run) -> Iterator[tuple[int, str]]:
    """Yield which tests are slower, each with the row of the table that this is for."""
    for case in run.cases:
        slow = [one for one in case.groups if one.judgement.verdict is Verdict.REGRESSION]
        names = {name for one in slow for name in one.names}
        if any(
            one.judgement.verdict is Verdict.REGRESSION or name_of(one) in names
            for one in case.figures
        ):
            yield int(case.check.removeprefix("test")), _SLOWER
    for one in run.evidence:
        if one.part == LAUNCHED_AGAIN:
            test = int(one.of.partition(" ")[0].removeprefix("test"))
            yield test, _WATCHED
            if one.reasons[0].code != SUITE_USUAL.code:
                yield test, _NEWS


def simulate(machine: Machine, tests: int, by: float, seed: int, say: bool) -> list[Tally]:
    """Return what each way said of ten weeks in which twelve of the tests became slower."""
    kinds, slow = kinds_of(tests), slowed(tests, by)
    every = costs(machine, tests, seed)
    for test, (since, much) in slow.items():
        every[since:, test] += much
    sessions = [session(day, every[day].tolist(), kinds) for day in range(DAYS)]
    judge = [Tally(name) for name in (_SLOWER, _WATCHED, _NEWS)]
    fixed = [Tally(f"typed tolerance of {100 * one:.0f} %") for one in _TOLERANCES]
    weekly = [Tally(f"compared with its week, {100 * one:.0f} %") for one in _TOLERANCES]
    tallies = [*judge, *fixed, *weekly]
    first: dict[tuple[str, int], int] = {}
    for day in range(RULE.fewest_runs, DAYS):
        before = sessions[: day + 1][::-1]
        window = before if len(before) <= NEWEST + OLDEST else before[:NEWEST] + before[-OLDEST:]
        now = sessions[day].started + datetime.timedelta(hours=3)
        run = judge_session(window, Settings(exclusive=True), "run", now).run
        named: dict[str, set[int]] = {one.name: set() for one in judge}
        for test, row in accused(run):
            named[row].add(test)
        typed = every[day] - np.median(every[: RULE.fewest_runs], axis=0)
        moved = every[day] - every[max(0, day - 7) : day].mean(axis=0)
        for some, worse in ((fixed, typed), (weekly, moved)):
            for one, tolerance in zip(some, _TOLERANCES, strict=True):
                beyond = np.flatnonzero(worse > np.log1p(tolerance))
                named[one.name] = {int(test) for test in beyond}
        for tally in tallies:
            innocent = {t for t in named[tally.name] if t not in slow or day < slow[t][0]}
            tally.alarms += bool(innocent)
            for test in named[tally.name] - innocent:
                first.setdefault((tally.name, test), day)
        if say:
            print(day, {name: sorted(some)[:6] for name, some in named.items()}, flush=True)
    for tally in tallies:
        tally.found = [
            first[tally.name, test] - since + 1 if (tally.name, test) in first else None
            for test, (since, _) in slow.items()
        ]
    return tallies


def store(path: Path, sessions: int, tests: int) -> None:
    """Write a results database as ReFrame does, of tests with three figures each.

    The sessions that a judge reads differ, and those between them are one and the same.
    """
    lot, created = np.random.default_rng(1), sqlite3.connect(path)
    created.executescript(
        "CREATE TABLE sessions(uuid TEXT PRIMARY KEY, session_start_unix REAL, "
        "session_end_unix REAL, json_blob TEXT, report_file TEXT);"
        "CREATE INDEX index_sessions_time ON sessions(session_start_unix);"
        "CREATE TABLE metadata(schema_version TEXT); INSERT INTO metadata VALUES('1.0');"
    )
    between = ""
    for number in range(sessions):
        started = _START + datetime.timedelta(hours=6 * (number - sessions))
        is_read = number < OLDEST or number >= sessions - NEWEST
        text = _report(number, started, tests, lot) if is_read or not between else between
        between = between or text
        row = (f"session {number}", started.timestamp(), started.timestamp(), text, "")
        created.execute("INSERT INTO sessions VALUES(?, ?, ?, ?, ?)", row)
    created.commit()
    created.close()


def _report(number: int, started: datetime.datetime, tests: int, lot: np.random.Generator) -> str:
    when = f"{started:%Y%m%dT%H%M%S%z}"
    of_session = {"uuid": f"session {number}", "hostname": "login", "data_version": "4.2"}
    cases = [
        {
            **{"name": f"test{test}", "system": "sim", "partition": "cpu", "environ": "gnu"},
            **{"result": "pass", "fixture": False, "job_nodelist": ["n1"], "num_tasks": 4},
            "exclusive_access": True,
            "perfvalues": {
                f"sim:cpu:figure{k}": [float(rate), 0, None, None, "GB/s", "pass"]
                for k, rate in enumerate(100 * np.exp(lot.normal(0, 0.006, 3)))
            },
        }
        for test in range(tests)
    ]
    info = {**of_session, "time_start": when, "time_end": when}
    return json.dumps({"session_info": info, "runs": [{"testcases": cases}], "restored_cases": []})


def measure(sessions: int, tests: int) -> None:
    """Print how long it takes to read the sessions of a database and to judge the newest."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.db"
        store(path, sessions, tests)
        begun, cpu = time.monotonic(), time.process_time()
        read = sessions_at(path, NEWEST, OLDEST)
        between = time.monotonic() - begun
        run = judge_session(read, Settings(), "run", _START).run
        figures = sum(len(case.figures) for case in run.cases)
        print(
            f"{sessions} sessions of {figures} figures, {path.stat().st_size / 1e9:.1f} GB: "
            f"read in {between:.1f} s, judged in {time.monotonic() - begun:.1f} s in all, "
            f"{time.process_time() - cpu:.1f} s of a processor"
        )


def main() -> None:
    """Print a table for each machine, or how long a large database takes."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.suites", description=__doc__)
    parser.add_argument("--tests", type=int, default=200)
    parser.add_argument("--by", type=float, default=0.10, help="what becomes slower, by so much")
    parser.add_argument("--machine", choices=[one.name for one in _MACHINES], help="of two")
    parser.add_argument("--say", action="store_true", help="tell of each day")
    parser.add_argument("--database", type=int, help="measure a database of so many sessions")
    arguments = parser.parse_args()
    if arguments.database:
        measure(arguments.database, arguments.tests)
        return
    for seed, machine in enumerate(_MACHINES, 1):
        if arguments.machine not in (None, machine.name):
            continue
        print(f"{machine.name}, {arguments.tests} tests, {100 * arguments.by:.0f} % slower\n")
        print("| way | sessions a week that accuse an unchanged test | days | found |")
        print("|---|---|---|---|")
        for tally in simulate(machine, arguments.tests, arguments.by, seed, arguments.say):
            print(tally.row())
        print()


if __name__ == "__main__":
    main()
