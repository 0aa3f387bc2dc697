"""Runs marked by ``--trial``: listed with their mark, and no standard of any other."""

import datetime
import json
import shutil
from pathlib import Path

import pytest

from clustergate.cli import build_parser, main
from clustergate.core import store
from clustergate.core.files.whole import read_json
from clustergate.judge.history import listing, stored_runs
from clustergate.run.gate.before import last_run
from clustergate.run.request import Request, read_request, write_request
from clustergate.sites import modes
from tests.builders import CONDITIONS, built, hpl, launches, record

RUNS = [f"2026110{day}T080000Z-r{day}" for day in (1, 2, 3)]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three runs, of which the last is a trial."""
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path))
    for run in RUNS:
        samples = [hpl(90.0 + k, order=k) for k in range(3)]
        conditions = {**CONDITIONS, "mode": "maintenance"}
        kept = record(
            *samples, launches=launches(3), details=built(), conditions=conditions,
            launches_needed=3,
        )  # fmt: skip
        store.write_case(run, kept)
        ended = {"missing_cases": 0, "verdict": "pass", "system": "local"}
        store.write_json(store.run_folder(run) / listing.ENDED, ended)
        mode = modes.mode_named(modes.MAINTENANCE)
        write_request(Request(mode, Path("/x/local.py"), trial=run == RUNS[-1]), run)
    return tmp_path


@pytest.mark.parametrize(("command", "more"), [("check", ()), ("gate", ()), ("ab", ("x", "y"))])
def test_what_measures_takes_the_mark(command, more):
    parser = build_parser([command])
    assert parser.parse_args([command, *more, "--trial"]).trial
    assert not parser.parse_args([command, *more]).trial


def test_a_trial_is_resumed_as_one_and_earlier_requests_are_none(home):
    assert read_request(RUNS[-1]).trial
    path = store.run_folder(RUNS[0]) / stored_runs.ASKED
    old = read_json(path)
    del old["trial"]
    store.write_json(path, old)
    assert not read_request(RUNS[0]).trial
    assert not stored_runs.is_trial(path.parent)


@pytest.mark.parametrize("name", [listing.MADE, listing.GATE])
def test_the_mark_of_each_command_counts(home, name):
    folder = store.run_folder(RUNS[0])
    store.write_json(folder / name, {"kind": "ab", "trial": True})
    assert stored_runs.is_trial(folder)


def test_no_baseline_trend_or_gate_has_it_as_a_standard(home, capsys):
    assert [one.run_id for one in stored_runs.stored_runs()] == RUNS[:2]
    assert [one.run_id for one in stored_runs.stored_runs(newest=1)] == RUNS[1:2]
    assert last_run("local") == RUNS[1]
    assert main(["history", "--json", "--figure", "*"]) == 0
    said = capsys.readouterr()
    measured = {one["run"] for line in said.out.splitlines() for one in json.loads(line)["runs"]}
    assert measured == set(RUNS[:2])
    assert f"{RUNS[2]} is a trial" in said.err


def test_it_is_listed_and_named_with_its_mark(home, capsys):
    assert main(["list", "runs", "--json"]) == 0
    listed = {one["run"]: one["trial"] for one in json.loads(capsys.readouterr().out)}
    assert listed == {RUNS[0]: False, RUNS[1]: False, RUNS[2]: True}
    assert main(["list", "runs"]) == 0
    assert capsys.readouterr().out.splitlines()[0].split()[-1] == "trial"
    assert main(["compare", "previous", "last"]) == 0
    told = capsys.readouterr().out
    assert f"A: {RUNS[1]}; B: {RUNS[2]}" in told
    assert f"{RUNS[2]} is a trial" in told
    assert main(["open", "--all"]) == 0
    page = Path(capsys.readouterr().out.strip()).read_text(encoding="utf-8")
    assert page.count(">trial<") == 1


def test_it_is_not_exported(home, capsys):
    store.write_json(store.run_folder(RUNS[2]) / listing.VERDICTS, {"started": "2026-11-03"})
    assert main(["export", "last"]) == 1
    said = capsys.readouterr()
    assert not said.out
    assert f"{RUNS[2]} is a trial" in said.err


def test_a_list_without_a_trial_has_no_column_of_trials(home, capsys):
    shutil.rmtree(store.run_folder(RUNS[2]))
    assert main(["list", "runs"]) == 0
    assert "trial" not in capsys.readouterr().out


def test_the_last_gate_that_opened_is_no_trial():
    began = stored_runs.point_in_time("20261101T080000Z-r1", datetime.datetime.now())
    runs = [
        listing.StoredRun(run, began, "gate", "local", "", "", "OPEN", 1, trial=run == RUNS[2])
        for run in RUNS[::-1]
    ]
    later = began + datetime.timedelta(days=1)
    why = [one.why.code if one.why else "" for one in listing.what_stays(runs, later, 0, {})]
    assert why == ["", "prune.last-open", ""]
