"""Reading what sessions of other people's ReFrame suites left."""

import datetime
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from jsonschema import Draft202012Validator

from clustergate import cli
from clustergate.core.model import BANDWIDTH, COMPUTE, LATENCY, MEMORY, BadRequest, Better
from clustergate.judge.history.stored_runs import stored_runs
from clustergate.suites import perflogs, reports, results_db
from clustergate.suites.places import default_place, sessions_at
from clustergate.suites.sessions import SuiteError, Value, named
from clustergate.suites.settings import better_of, read_settings
from clustergate.suites.units import better_by_bounds, better_by_unit, kind_by_unit
from tests.conftest import PATIENCE_S

DATA = Path(__file__).parent / "data" / "reframe"
VERSIONS = ("4.6.3", "4.7.4", "4.8.4", "4.9.3", "4.10.4")
REFRAME = Path(sys.executable).parent / "reframe"


@pytest.fixture(scope="session")
def suite(tmp_path_factory):
    """Two sessions of three small tests, run for real: reports, logs and the database."""
    home = tmp_path_factory.mktemp("suite")
    shutil.copytree(DATA / "checks", home / "checks")
    own = {k: v for k, v in os.environ.items() if not k.startswith(("RFM_", "CLUSTERGATE"))}
    environment = {**own, "HOME": str(home), "RFM_ENABLE_RESULTS_STORAGE": "1"}
    for _ in range(2):
        subprocess.run(
            [REFRAME, f"--prefix={home}/out", "-c", "checks/small.py", "-r"],
            cwd=home,
            env=environment,
            check=True,
            capture_output=True,
            timeout=PATIENCE_S,
        )
    return home


def key(result):
    return (result.test, result.parameters, result.system, result.partition, result.environ)


EVERY = [
    ("copy_loop", "", "generic", "default", "builtin"),
    ("sort_numbers", "size=20000", "generic", "default", "builtin"),
    ("sort_numbers", "size=40000", "generic", "default", "builtin"),
]


# ------------------------------------------------------------------------------------- the forms


@pytest.mark.parametrize("version", VERSIONS)
def test_a_report_of_each_version_tells_its_tests(version):
    session = reports.read_report(DATA / f"report-{version}.json")
    assert sorted(map(key, session.results)) == EVERY
    copy = next(one for one in session.results if one.test == "copy_loop")
    assert [(one.name, one.unit, one.lower, one.upper) for one in copy.values] == [
        ("Copy", "GB/s", -0.9, None),
        ("Items", "items/s", None, None),
    ]
    assert 1 < copy.values[0].value < 1000
    assert copy.nodes == ("vm",)
    assert (copy.result, copy.tasks, len(copy.hash)) == ("pass", 1, 8)
    assert session.started.utcoffset() is not None
    assert session.ended is not None
    assert session.started < session.ended


@pytest.mark.parametrize("version", ["4.6.3", "4.10.4"])
def test_repetitions_and_pinned_nodes_are_known(version):
    repeated = reports.read_report(DATA / f"repeated-{version}.json").results
    of_copy = [one for one in repeated if one.test == "copy_loop"]
    assert {(one.parameters, one.repeat) for one in of_copy} == {("", 0), ("", 1)}
    (distributed,) = reports.read_report(DATA / f"distributed-{version}.json").results
    assert distributed.node == "vm"
    assert distributed.nodes == ("vm",)


@pytest.mark.parametrize("log", ["copy_loop-4.6.3.log", "sort_numbers-4.10.4.log"])
def test_a_log_tells_sessions_by_tests_that_end_again(log):
    first, second = perflogs.sessions_in([DATA / log])
    assert sorted(map(key, first.results)) == sorted(map(key, second.results))
    assert first.started < second.started
    assert all(one.values and one.nodes == ("vm",) for one in first.results)


def test_all_forms_of_the_same_sessions_say_the_same(suite):
    by_form = [
        sessions_at(suite / ".reframe" / "reports" / "results.db"),
        [*map(reports.read_report, sorted(suite.glob(".reframe/reports/run-*"), reverse=True))],
        sessions_at(suite / "out" / "perflogs"),
    ]
    values = [
        [sorted((*key(r), r.values) for r in session.results) for session in sessions]
        for sessions in by_form
    ]
    assert len(values[0]) == 2
    assert values[0] == values[1] == values[2]
    # The database and the report files of a folder hold the same sessions, once.
    assert sessions_at(suite / ".reframe" / "reports") == by_form[0]


def test_nothing_of_the_user_is_written(suite):
    folder = suite / ".reframe" / "reports"

    def state():
        return {one.name: (one.stat().st_mtime_ns, one.read_bytes()) for one in folder.iterdir()}

    before = state()
    folder.chmod(0o500)
    try:
        assert len(sessions_at(folder)) == 2
    finally:
        folder.chmod(0o700)
    assert state() == before


def test_a_beginning_that_several_sessions_have_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path / "home"))
    path = str(database(tmp_path, [report(k) for k in range(12)]))
    for words in (["judge", "--session"], ["compare", "last"]):
        # What is a whole name is no beginning.
        cli.main([*words, "s1", "--reframe", path])
        assert "begin with" not in capsys.readouterr().err
        assert cli.main([*words, "s", "--reframe", path]) in (1, 2)
        said = capsys.readouterr().err
        assert f"12 sessions in {path} begin with s: s11, s10, s9" in said


def test_the_newest_and_the_oldest_sessions_alone_are_read(tmp_path):
    path = database(tmp_path, [report(k) for k in range(50)])
    assert [one.session_id for one in sessions_at(path, 3, 2)] == ["s49", "s48", "s47", "s1", "s0"]
    assert len(sessions_at(path)) == 50
    folder = tmp_path / "files"
    folder.mkdir()
    for k in range(50):
        file = folder / f"run-report-{k}.json"
        file.write_text(json.dumps(report(k)))
        os.utime(file, (k, k))
    assert sessions_at(folder, 3, 2) == sessions_at(path, 3, 2)


def test_of_several_suites_in_one_place_enough_of_the_newest_are_read(tmp_path):
    of = [report(k, name="stream" if k % 4 == 3 else f"other{k % 4}") for k in range(60)]
    path = database(tmp_path, of)
    read = sessions_at(path, 5, 2)
    own = [one.session_id for one in read if one.results[0].test == "stream"]
    assert own == ["s59", "s55", "s51", "s47", "s43", "s7", "s3"]


def test_report_files_that_were_copied_are_in_the_order_of_their_sessions(tmp_path):
    for k in range(20):
        file = tmp_path / f"run-report-{k}.json"
        file.write_text(json.dumps(report(k)))
        os.utime(file, (20 - k, 20 - k))
    assert [one.session_id for one in sessions_at(tmp_path, 2)] == ["s19", "s18"]


def test_a_session_that_is_named_is_read_however_old_it_is(tmp_path):
    path = database(tmp_path, [report(k) for k in range(50)])
    read = sessions_at(path, 3, named={"s40", "s2"})
    assert [one.session_id for one in read] == ["s40", "s39", "s38", "s2"]


def test_reframes_own_places_are_known(monkeypatch, tmp_path):
    for name in ("RFM_REPORT_FILE", "RFM_SQLITE_DB_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_place() == tmp_path / ".reframe" / "reports"
    monkeypatch.setenv("RFM_REPORT_FILE", "$HOME/mine/run-{sessionid}.json")
    assert default_place() == tmp_path / "mine"


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("stream", ("stream", "", 0, "")),
        ("stream %threads=4 %mode=a b", ("stream", "threads=4 mode=a b", 0, "")),
        ("stream %threads=4 %.repeat_no=2", ("stream", "threads=4", 2, "")),
        ("t %.nid=['n017'] %.part=a:b", ("t", "", 0, "n017")),
        ("t %$nid=n017 %$part=a:b %size=100%", ("t", "size=100%", 0, "n017")),
    ],
)
def test_a_name_tells_parameters_repetition_and_node(name, parts):
    assert named(name) == parts


# ------------------------------------------------------------------------------------- bad input


def report(number, **changes):
    """Return a report as ReFrame writes it, of one test."""
    start = 1.7e9 + 86400 * number
    moment = datetime.datetime.fromtimestamp(start, datetime.timezone.utc)
    info = {
        "data_version": "4.2",
        "hostname": "login",
        "uuid": f"s{number}",
        "time_start": f"{moment:%Y%m%dT%H%M%S%z}",
        "time_start_unix": start,
        "time_end": f"{moment:%Y%m%dT%H%M%S%z}",
        "time_end_unix": start,
    }
    case = {
        "name": "stream",
        "system": "sys",
        "partition": "cpu",
        "environ": "gnu",
        "result": "pass",
        "fixture": False,
        "perfvalues": {"sys:cpu:Triad": [100.0 + number, 0, None, None, "GB/s", "pass"]},
        "filename": "/suite/stream.py",
        **changes,
    }
    return {"session_info": info, "runs": [{"testcases": [case]}], "restored_cases": []}


def database(folder, of, version="1.0"):
    path = folder / "results.db"
    with sqlite3.connect(path) as written:
        written.executescript(
            "CREATE TABLE sessions(uuid TEXT PRIMARY KEY, session_start_unix REAL, "
            "session_end_unix REAL, json_blob TEXT, report_file TEXT);"
            "CREATE TABLE metadata(schema_version TEXT);"
        )
        written.execute("INSERT INTO metadata VALUES(?)", (version,))
        for one in of:
            info = one["session_info"]
            row = (info["uuid"], info["time_start_unix"], 0.0, json.dumps(one), "")
            written.execute("INSERT INTO sessions VALUES(?, ?, ?, ?, ?)", row)
    return path


def refusal(path):
    with pytest.raises(SuiteError) as refused:
        sessions_at(path)
    said = str(refused.value)
    assert "\n" not in said
    return said


def test_another_version_is_named(tmp_path):
    assert "version 2.0 of a results database, and known are 1.0" in refusal(
        database(tmp_path, [report(0)], version="2.0")
    )
    later = report(0)
    later["session_info"]["data_version"] = "5.0"
    file = tmp_path / "run.json"
    file.write_text(json.dumps(later))
    assert "version 5.0 of a report file, and known are 3.x and 4.x" in refusal(file)


def test_what_is_half_written_is_refused(tmp_path):
    file = tmp_path / "run.json"
    file.write_text(json.dumps(report(0))[:-40])
    assert f"{file} cannot be read as a report file" in refusal(file)
    path = database(tmp_path, [report(k) for k in range(40)])
    path.write_bytes(path.read_bytes()[:3000])
    assert f"{path} cannot be read as a results database" in refusal(path)
    path.write_bytes(b"")
    assert f"{path} cannot be read as a results database" in refusal(path)


def test_other_peoples_json_beside_reports_is_passed_over(tmp_path):
    (tmp_path / "run-report-0.json").write_text(json.dumps(report(0)))
    for name, text in (("package.json", '{"a": 1}'), ("list.json", "[1]")):
        (tmp_path / name).write_text(text)
        assert "it has no session_info" in refusal(tmp_path / name)
    assert len(sessions_at(tmp_path)) == 1
    # One that is cut off may be the newest session: without it an older one would be judged.
    (tmp_path / "run-report-1.json").write_text(json.dumps(report(1))[:-30])
    assert "run-report-1.json cannot be read" in refusal(tmp_path)


@pytest.mark.parametrize("text", ["", "[" * 100_000, '{"session_info": {"data_version"', "\udc80"])
def test_what_is_no_json_is_refused_in_a_sentence(tmp_path, text):
    path = tmp_path / "run-report-0.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert "cannot be read as a report file of ReFrame" in refusal(path)
    folder = tmp_path / "database"
    folder.mkdir()
    database(folder, [report(0)])
    with sqlite3.connect(folder / "results.db") as written:
        written.execute("UPDATE sessions SET json_blob = ?", (path.read_bytes() or None,))
    assert "its report is no JSON" in refusal(folder / "results.db")


def test_pipes_and_folders_that_are_called_as_reports_are_passed_over(tmp_path):
    os.mkfifo(tmp_path / "a.json")
    (tmp_path / "b.json").mkdir()
    (tmp_path / "c.db").mkdir()
    (tmp_path / "run-report-0.json").write_text(json.dumps(report(0)))
    assert len(sessions_at(tmp_path)) == 1


def test_a_locked_database_is_told_and_left(tmp_path, monkeypatch):
    monkeypatch.setattr(results_db, "_WAIT_S", 0.1)
    path = database(tmp_path, [report(0)])
    with sqlite3.connect(path, isolation_level=None) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        assert "is being written by another process" in refusal(path)
        writer.execute("ROLLBACK")
    writer.close()
    assert len(sessions_at(path)) == 1


def test_another_database_and_nothing_are_told(tmp_path):
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as written:
        written.execute("CREATE TABLE t(x)")
    assert "no such table: metadata" in refusal(other)
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "holds no session of ReFrame" in refusal(empty)
    assert "RFM_ENABLE_RESULTS_STORAGE=1" in refusal(empty)
    assert "is not there" in refusal(tmp_path / "gone")


def test_a_number_that_no_float_holds_is_left_out(tmp_path):
    values = {"sys:cpu:huge": [10**400, 0, None, None, "GB/s", "pass"]}
    (session,) = sessions_at(database(tmp_path, [report(0, perfvalues=values)]))
    assert session.results[0].values == ()


def test_numbers_that_are_none_are_left_out(tmp_path):
    values = {
        "sys:cpu:good": [1.5, 0, None, None, "s"],
        "sys:cpu:nan": [float("nan"), 0, None, None, "s"],
        "sys:cpu:none": [None, 0, None, None, "s"],
        "sys:cpu:text": ["fast", 0, None, None, "s"],
        "sys:cpu:inf": [2.5, 0, float("-inf"), float("inf"), "s"],
    }
    path = database(tmp_path, [report(0, perfvalues=values)])
    (session,) = sessions_at(path)
    names = [(one.name, one.lower, one.upper) for one in session.results[0].values]
    assert names == [("good", None, None), ("inf", None, None)]


def test_a_log_without_what_is_needed_names_the_column(tmp_path):
    log = tmp_path / "a.log"
    log.write_text("result|name|perf_value\npass|a|1\n")
    assert "lacks the columns system, partition, environ, job_completion_time" in refusal(log)


# Lines that ReFrame wrote with such a separator in its format; it leaves out spaces at their ends.
COLUMNS = ("job_completion_time", "name", "system", "partition", "environ", "t_value", "t_unit")


@pytest.mark.parametrize(
    ("separator", "end"), [(",", ""), (", ", ","), (";", ""), ("\t", ""), ("|", "|")]
)
def test_a_log_of_another_separator_is_read(tmp_path, separator, end):
    log = tmp_path / "sort.log"
    values = ("2026-12-01T03:18:25", "sort %size=40000", "s", "p", "e", "0.018", "s")
    log.write_text(f"{separator.join(COLUMNS)}\n{separator.join(values)}{end}\n")
    (only,) = sessions_at(log)[0].results
    assert (only.test, only.parameters) == ("sort", "size=40000")
    assert only.values == (Value("t", 0.018, "s"),)


@pytest.mark.parametrize(
    ("values", "why"),
    [
        (("2026-12-01T03:18:25", "sort, fast", "s", "p", "e", "1", "s"), "has ',' in it; read rep"),
        (("01.12.2026 03:19", "sort", "s", "p", "e", "1", "s"), "no date of ISO 8601 but '01.12"),
    ],
)
def test_a_log_whose_lines_do_not_tell_their_columns_is_refused(tmp_path, values, why):
    log = tmp_path / "sort.log"
    log.write_text(f"{','.join(COLUMNS)}\n{','.join(values)}\n")
    assert why in refusal(log)
    assert "line 2 of" in refusal(log)


def test_a_last_line_that_is_cut_off_is_left_out(tmp_path):
    whole = (DATA / "copy_loop-4.6.3.log").read_text()
    log = tmp_path / "copy_loop.log"
    log.write_text(whole[:-60])
    (session,) = sessions_at(log)
    assert len(session.results) == 1
    head, first, *_ = whole.split("\n")
    log.write_text(f"{head}\n{first[:50]}\n{first}\n")
    assert "line 2 of" in refusal(log)


def test_a_log_of_one_line_for_each_variable_is_read(tmp_path):
    log = tmp_path / "t.log"
    log.write_text(
        "job_completion_time,name,system,partition,environ,perf_var,perf_value,perf_unit\n"
        "2026-03-01T10:00:00,t,s,p,e,Copy,10.5,GB/s\n"
        "2026-03-01T10:00:00,t,s,p,e,Add,9.5,GB/s\n"
    )
    (session,) = sessions_at(log)
    assert [(v.name, v.value) for one in session.results for v in one.values] == [
        ("Copy", 10.5),
        ("Add", 9.5),
    ]


# ------------------------------------------------------------------------------------ directions


@pytest.mark.parametrize(
    ("unit", "better"),
    [
        *((unit, Better.LOWER) for unit in ("s", "us", "ms", "seconds", "s/step", "ms/iter")),
        *((unit, Better.HIGHER) for unit in ("GB/s", "MB/s", "Gflop/s", "GFLOPS", "Gb/s")),
        *((unit, Better.HIGHER) for unit in ("ns/day", "items/s", "GiB/s", "Mop/s", "MLUPS")),
        *((unit, None) for unit in ("", "%", "W", "count", "C", "GiB", "J")),
    ],
)
def test_units_tell_directions(unit, better):
    assert better_by_unit(unit) is better


def test_bounds_of_a_reference_tell_directions():
    assert better_by_bounds(-0.1, None) is Better.HIGHER
    assert better_by_bounds(None, 0.1) is Better.LOWER
    assert better_by_bounds(-0.1, 0.1) is None
    assert better_by_bounds(None, None) is None


def test_units_tell_kinds():
    kinds = [kind_by_unit(unit) for unit in ("us", "GB/s", "MB/s", "s", "Gflop/s", "")]
    assert kinds == [LATENCY, MEMORY, BANDWIDTH, COMPUTE, COMPUTE, COMPUTE]


def test_people_say_directions(tmp_path):
    assert better_of(["Copy=higher", "a.b=c.wait=lower"]) == {
        "Copy": Better.HIGHER,
        "a.b=c.wait": Better.LOWER,
    }
    with pytest.raises(BadRequest, match="tells no direction"):
        better_of(["Copy=up"])
    file = tmp_path / "judge.yaml"
    file.write_text("better: {wait: lower}\nexclusive: true\nrenamed: {old: new}\n")
    settings = read_settings(file)
    assert settings.direction("mytest", "wait") is Better.LOWER
    assert settings.direction("mytest", "rate") is None
    assert settings.exclusive is True
    assert settings.renamed == {"old": "new"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("betr: {a: lower}", "'betr' is no key of it; did you mean 'better'?"),
        ("better: {a: up}", "a is 'up', and may be lower or higher"),
        ("better: [a]", "better is to be NAME: lower"),
        ("exclusive: perhaps", "exclusive is to be true or false"),
        ("[", "judge.yaml"),
        ("- a", "it holds no keys"),
    ],
)
def test_what_is_wrong_with_judge_yaml_is_one_sentence(tmp_path, text, why):
    file = tmp_path / "judge.yaml"
    file.write_text(text)
    with pytest.raises(SuiteError) as refused:
        read_settings(file)
    said = str(refused.value)
    assert why in said
    assert str(file) in said
    assert "\n" not in said


# ------------------------------------------------------------------------------------ the command


def test_the_command_judges_a_session_that_reframe_left(suite, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(suite))
    monkeypatch.chdir(tmp_path)
    assert cli.main(["judge", "--last"]) == 0
    printed = capsys.readouterr().out
    assert "4 results of the session" in printed
    assert f"in {suite}/.reframe/reports, beside 1 earlier session" in printed
    assert "clustergate judge: exit status 0" in printed
    (folder,) = (tmp_path / "home" / "results" / "runs").glob("*/")
    page = (folder / "report.html").read_text()
    assert "copy_loop" in page
    assert f"{suite}/.reframe/reports" in page
    assert ElementTree.parse(folder / "junit.xml").getroot().get("tests") == "3"
    # It is in the index of runs, and no run of the suite's own checks.
    assert cli.main(["list", "runs"]) == 0
    assert "judge" in capsys.readouterr().out
    assert [*stored_runs()] == []
    assert cli.main(["show", "last", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    schema = json.loads(Path(cli.__file__).with_name("outputs.schema.json").read_text())
    held_to = Draft202012Validator({"$ref": "#/$defs/show", "$defs": schema["$defs"]})
    assert [error.message for error in held_to.iter_errors(document)] == []


def test_history_comparison_and_references_are_of_the_suite_of_the_session(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    path = str(database(tmp_path, [report(k, name="own" if k % 2 else "alien") for k in range(20)]))

    def said(*words):
        cli.main([*words, "--reframe", path, "--exclusive"])
        told = capsys.readouterr()
        assert " sessions of other suites left out" in told.err
        return told.out

    for words, test, other in (((), "own", "alien"), (("--session", "s18"), "alien", "own")):
        for command in (("history", "--all", "--json"), ("baseline",)):
            out = said(*command, *words)
            assert test in out
            assert other not in out
    for words, ratio in ((("previous", "last"), 119 / 117), (("s16", "s18"), 118 / 116)):
        compared = json.loads(said("compare", *words, "--json"))
        assert compared["ratio"] == pytest.approx(ratio)


def test_the_command_names_the_session_that_is_asked_for(suite, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    path = suite / ".reframe" / "reports" / "results.db"
    older = sessions_at(path)[1].session_id
    assert cli.main(["judge", "--reframe", str(path), "--session", older[:8]]) == 0
    assert f"the session {older}" in capsys.readouterr().out
    assert cli.main(["judge", "--reframe", str(path), "--session", "nothing"]) == 2
    assert "is called nothing" in capsys.readouterr().err
    assert cli.main(["judge", "--reframe", str(path), "--since", "2100-01-01"]) == 2
    assert "began since 2100-01-01 00:00; name an earlier day" in capsys.readouterr().err
    assert cli.main(["judge", "--reframe", str(path), "--session", "previous"]) == 0
    assert f"the session {older}" in capsys.readouterr().out
    assert cli.main(["judge"]) == 2
    assert "`clustergate judge --last`" in capsys.readouterr().err
