import dataclasses
import datetime
import os
import sqlite3

import pytest

from clustergate.core import store
from clustergate.core.model import BadRequest, CaseRecord, Launch
from clustergate.judge.history.dating import Dated, doubts
from clustergate.judge.history.stored_runs import (
    doubted_runs,
    in_order,
    left_out,
    point_in_time,
    started_of,
    stored_runs,
)
from clustergate.run.reframe import run_of_session

UTC = datetime.timezone.utc
NOW = datetime.datetime(2026, 11, 8, 12, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
RECORD = CaseRecord("case", "HplCheck", "mpich", "alpha:node", {"mode": "smoke"})
RUNS = ("20261103T140000Z-7", "20261101T080000Z-9", "20261105T000000Z-1")


@pytest.fixture
def state(tmp_path):
    for run_id in RUNS:
        store.write_case(run_id, RECORD, tmp_path)
    return tmp_path


def test_runs_come_in_the_order_of_their_start_with_their_records(state):
    found = list(stored_runs(state=state))
    assert [run.run_id for run in found] == [RUNS[1], RUNS[0], RUNS[2]]
    assert found[0].started == datetime.datetime(2026, 11, 1, 8, tzinfo=UTC)
    assert [record.name for record in found[0].records] == ["case"]


def test_runs_since_a_moment_and_the_newest_of_them(state):
    since = datetime.datetime(2026, 11, 3, 14, tzinfo=UTC)
    assert [run.run_id for run in stored_runs(since, state)] == [RUNS[0], RUNS[2]]
    assert [run.run_id for run in stored_runs(state=state, newest=1)] == [RUNS[2]]


def test_without_runs_there_are_none(tmp_path):
    (tmp_path / "results" / "runs" / "20261101T080000Z-9").mkdir(parents=True)
    assert list(stored_runs(state=tmp_path)) == []


def test_named_run_starts_with_its_oldest_file(tmp_path):
    path = store.write_case("nightly", RECORD, tmp_path)
    started = datetime.datetime(2026, 11, 2, 3, 4, 5, tzinfo=UTC)
    for entry in (path, path.parent, path.parent.parent):
        os.utime(entry, (started.timestamp(), started.timestamp()))
    (run,) = stored_runs(state=tmp_path)
    assert (run.run_id, run.started) == ("nightly", started)
    assert started_of(path.parent.parent) == started


def made(tmp_path, *names):
    for name in names:
        store.write_case(name, RECORD, tmp_path)
    return [folder.name for _, folder in in_order(state=tmp_path)], doubted_runs(tmp_path)


OWN = tuple(f"202611{day:02}T080000Z-r{day}" for day in range(1, 9))


def test_a_run_whose_clock_ran_ahead_is_told_and_is_not_the_newest(tmp_path):
    wrong = "20270301T080000Z-r9"
    order, doubted = made(tmp_path, *OWN, wrong, "20261110T080000Z-r10")
    assert order == [*OWN, wrong, "20261110T080000Z-r10"]
    assert doubted.keys() == {wrong}


def test_numbers_of_past_runs_tell_which_clock_ran_ahead(tmp_path):
    wrong = "20261125T080000Z-r9"
    order, doubted = made(tmp_path, *OWN, wrong, "20261110T080000Z-r10", "20261111T080000Z-r11")
    assert order[-3:] == [wrong, "20261110T080000Z-r10", "20261111T080000Z-r11"]
    assert doubted[wrong].code == "run.too-late"


def test_a_run_that_was_copied_from_another_home_is_not_the_newest(tmp_path):
    copied = "20250601T080000Z-r40"
    order, doubted = made(tmp_path, *OWN, copied)
    assert order == [copied, *OWN]
    assert copied in doubted
    # Without the number of that home it counts by its date.
    where = store.run_folder(copied, tmp_path)
    where = where.rename(where.with_name("20250601T080000Z-1"))
    then = datetime.datetime(2025, 6, 1, 9, tzinfo=UTC).timestamp()
    for entry in (*where.glob("cases/*"), where / "cases", where):
        os.utime(entry, (then, then))
    assert made(tmp_path) == (["20250601T080000Z-1", *OWN], {})


def test_many_runs_of_another_home_do_not_outvote_those_made_here():
    """A copy may keep the times of files; when the file system had them it does not tell."""
    days = [
        datetime.datetime(2026, 3, 1, tzinfo=UTC) + datetime.timedelta(days=k) for k in range(90)
    ]
    copied = [
        Dated(f"{day:%Y%m%dT%H%M%SZ}-r{500 + k}", day, day, day, NOW) for k, day in enumerate(days)
    ]
    own = [
        Dated(f"{day:%Y%m%dT%H%M%SZ}-r{k}", day, day, day, day)
        for k, day in enumerate((day + datetime.timedelta(days=200) for day in days[:9]), 1)
    ]
    assert doubts([*own, *copied], NOW).keys() == {one.run_id for one in copied}


def test_clocks_a_minute_apart_are_no_contradiction(tmp_path):
    names = ("20261101T080100Z-r1", "20261101T080000Z-r2", "20261101T080200Z-r3")
    assert made(tmp_path, *names) == ([*names], {})


def test_what_is_dated_before_there_was_a_suite_is_told(tmp_path):
    early = "20150101T000000Z-r1"
    order, doubted = made(tmp_path, early, *OWN[1:])
    assert order == [early, *OWN[1:]]
    assert doubted.keys() == {early}


def test_files_tell_of_a_clock_that_was_years_behind():
    """As where a node has no battery and the file server keeps the time."""
    wrong = NOW - datetime.timedelta(days=800)
    now = [NOW - datetime.timedelta(minutes=k) for k in range(4, 0, -1)]
    runs = [Dated(f"run{k}", when, when, when, when) for k, when in enumerate(now)]
    runs.append(Dated("behind", wrong, now[0], now[0], now[0]))
    assert doubts(runs, NOW).keys() == {"behind"}
    # Where no run has its times, as after a copy of all of them, they tell nothing.
    copied = [Dated(f"run{k}", wrong, NOW, NOW, NOW) for k in range(4)]
    assert doubts(copied, NOW) == {}


def test_launches_at_another_time_than_their_run_are_told(tmp_path):
    launch = Launch(0, datetime.datetime(2019, 11, 2, tzinfo=UTC).timestamp(), 10.0)
    store.write_case(OWN[0], dataclasses.replace(RECORD, launches=[launch]), tmp_path)
    (run,) = stored_runs(state=tmp_path)
    assert run.doubt is not None
    assert run.doubt.code == "run.launched-elsewhen"
    (said,) = left_out([run.doubt, None])
    assert f"{OWN[0]} is dated 2026-11-01, and its launches 2019-11-02" in said


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-03", datetime.datetime(2026, 11, 2, 22, tzinfo=UTC)),
        ("2026-11-03T14:00", datetime.datetime(2026, 11, 3, 12, tzinfo=UTC)),
        ("2026-11-03T14:00+00:00", datetime.datetime(2026, 11, 3, 14, tzinfo=UTC)),
        ("20261103T140000Z-7", datetime.datetime(2026, 11, 3, 14, tzinfo=UTC)),
        ("12h", datetime.datetime(2026, 11, 7, 22, tzinfo=UTC)),
        ("7d", datetime.datetime(2026, 11, 1, 10, tzinfo=UTC)),
    ],
)
def test_a_point_in_time_is_a_day_a_run_or_some_time_ago(text, expected):
    assert point_in_time(text, NOW) == expected


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2026-13-01", "7w", "20261103T999999Z-7", "9" * 30 + "d"]
)
def test_what_is_no_point_in_time_is_one_sentence(text):
    with pytest.raises(BadRequest, match="is no date, time or run"):
        point_in_time(text, NOW)


def storage(state, *sessions):
    """Write what ReFrame 4.10.4 stores of its sessions, as far as it is read."""
    with sqlite3.connect(state / "results" / "results.db") as database:
        database.execute(
            "CREATE TABLE sessions(uuid TEXT PRIMARY KEY, session_start_unix REAL, "
            "session_end_unix REAL, json_blob TEXT, report_file TEXT)"
        )
        database.executemany("INSERT INTO sessions VALUES(?, ?, ?, '', ?)", sessions)


def test_a_session_is_found_by_its_report_or_by_its_time(state):
    began = datetime.datetime(2026, 11, 3, 14, tzinfo=UTC).timestamp()
    report = str(store.run_folder(RUNS[1], state) / "reframe.json")
    storage(
        state,
        ("11111111-aaaa", 0.0, 1.0, report),
        ("55555555-eeee", 0.0, 1.0, report.replace("reframe.json", "again-1/reframe.json")),
        ("22222222-bbbb", began - 0.3, began + 60, "/elsewhere/run-1.json"),
        ("33333333-cccc", 5.0, 6.0, "/elsewhere/run-2.json"),
        ("33333333-dddd", 5.0, 6.0, "/elsewhere/run-3.json"),
    )
    assert run_of_session("11111111", state) == RUNS[1]
    assert run_of_session("55555555", state) == RUNS[1]
    assert run_of_session("22222222-bbbb", state) == RUNS[0]
    for nobody in ("33333333-cccc", "33333333", "44444444", "2222", "", "%", "last"):
        assert run_of_session(nobody, state) is None


def test_no_session_without_a_sound_storage(state):
    assert run_of_session("11111111", state) is None
    (state / "results" / "results.db").write_text("no database")
    assert run_of_session("11111111", state) is None
