"""Runs in short, what of them may go, and the commands that show them."""

import datetime
import json
import re
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from clustergate import cli
from clustergate.core import store
from clustergate.judge.history import listing
from clustergate.judge.history.listing import StoredRun, what_stays

REFERENCES = Path(__file__).resolve().parent / "data" / "home" / "references"
NOW = datetime.datetime(2026, 12, 31, 12, tzinfo=datetime.timezone.utc)
DAY = datetime.timedelta(days=1)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path))
    return tmp_path


def make(name: str, **files: object) -> Path:
    folder = store.run_folder(name)
    for key, content in files.items():
        store.write_json(folder / f"{key}.json", content)
    return folder


def asked(**changes: object) -> dict[str, object]:
    return {"mode": "smoke", "site": "/suite/site_configs/alpha.py", "by": "alice", **changes}


VERDICTS = {
    "cases": [
        {
            "state": "ran",
            "figures": [{"verdict": "pass"}, {"verdict": "regression"}],
            "groups": [],
        },
        {"state": "failed", "figures": [], "groups": []},
    ]
}


def test_runs_are_listed_newest_first_with_what_became_of_them(home: Path) -> None:
    ended = {"missing_cases": 0, "verdict": "pass", "system": "alpha"}
    make("20261101T000000Z-r1", asked=asked(), ended=ended)
    make("20261102T000000Z-r2", asked=asked(), ended={"missing_cases": 0})
    make("20261103T000000Z-r3", asked=asked(mode="maintenance"), gate={"word": "STAY CLOSED"})
    make("20261104T000000Z-r4", asked=asked())
    running = make("20261105T000000Z-r5", asked=asked())
    (home / "stage" / "20261105T000000Z-r5").mkdir(parents=True)
    (home / "stage" / "20261105T000000Z-r5" / "core").write_bytes(b"x" * 5000)
    with FileLock(running / listing.LOCK):
        found = listing.listed_runs()
    assert [(one.run[-2:], one.kind, one.verdict) for one in found] == [
        ("r5", "check", "running"),
        ("r4", "check", "unfinished"),
        ("r3", "gate", "STAY CLOSED"),
        ("r2", "check", ""),
        ("r1", "check", "pass"),
    ]
    assert {one.system for one in found} == {"alpha"}
    assert {one.by for one in found} == {"alice"}
    assert found[0].size_bytes > 5000 > found[1].size_bytes


def test_what_is_no_run_of_a_mode_tells_its_command(home: Path) -> None:
    for number, kind in enumerate(("screen", "ab", "tune", "ab", "ab", "screen"), 1):
        listing.keep_made(f"2026110{number}T000000Z-r{number}", kind, "alpha")
    make("20261101T000000Z-r1", ended={"verdict": "faults found", "system": "alpha"})
    (make("20261104T000000Z-r4", ab={}) / listing.SUMMARY).write_text("MIXED: of 12 figures")
    running = make("20261102T000000Z-r2")
    with FileLock(running / listing.LOCK):
        found = listing.listed_runs()
    told = [(one.kind, one.system, one.by, one.verdict) for one in found]
    me = store.user_name()
    assert told == [
        ("screen", "alpha", me, "unfinished"),
        ("ab", "alpha", me, "unfinished"),
        ("ab", "alpha", me, "mixed"),
        ("tune", "alpha", me, ""),
        ("ab", "alpha", me, "running"),
        ("screen", "alpha", me, "faults found"),
    ]


def test_an_ab_ended_with_the_word_that_it_said_first(home: Path) -> None:
    folder = make("20261101T000000Z-r1")
    listing.keep_made(folder.name, "ab", "alpha")
    (folder / "ab.json").write_text("{}")
    (folder / "summary.txt").write_text("\nB IS AHEAD: intel-mpi is better in 5 of 6 figures\n")
    (only,) = listing.listed_runs()
    assert only.verdict == "b is ahead"
    # It is an answer by now, and not what the summary begins with.
    (folder / "ab.json").write_text('{"word": "IT DEPENDS"}')
    (only,) = listing.listed_runs()
    assert only.verdict == "it depends"


def test_gate_without_measurement_tells_system_mode_user(home: Path) -> None:
    facts = {"system": "alpha", "mode": "maintenance", "by": "alice"}
    make("20261101T000000Z-r1", gate={"status": 2, "word": "COULD NOT JUDGE", **facts})
    (only,) = listing.listed_runs()
    assert (only.kind, only.system, only.mode, only.by) == ("gate", *facts.values())


def test_a_run_whose_stacks_could_not_be_set_up_says_so(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make("20261101T000000Z-r1", asked=asked())
    assert cli.main(["show", "last"]) == 1
    told = capsys.readouterr().err
    assert "none of its stacks could be set up, or it was interrupted" in told
    (folder / "reframe.out").touch()
    assert cli.main(["show", "last"]) == 1
    assert "check --resume 20261101T000000Z-r1`" in capsys.readouterr().err


@pytest.mark.parametrize("content", ["", "{", "[]", "null"])
def test_a_damaged_file_hides_no_run(home: Path, content: str) -> None:
    folder = make("20261101T000000Z-r1", asked=asked(), ended={"verdict": "pass"})
    (folder / "ended.json").write_text(content)
    (only,) = listing.listed_runs()
    assert only.verdict == "unfinished"


def stored(days_ago: float, verdict: str = "pass", **changes: str) -> StoredRun:
    facts: Any = {"kind": "check", "system": "alpha", "mode": "smoke", "by": "alice", **changes}
    started = NOW - days_ago * DAY
    return StoredRun(
        f"{started:%Y%m%dT%H%M%SZ}-r1", started, **facts, verdict=verdict, size_bytes=1
    )


def stays(runs: list[StoredRun], **baselines: set[datetime.date]) -> list[str]:
    found = what_stays(runs, NOW - 90 * DAY, 1, baselines)
    return [one.why.code if one.why else "" for one in found]


def test_what_is_young_or_the_newest_of_its_kind_stays() -> None:
    runs = [stored(1), stored(89), stored(91), stored(92, mode="maintenance"), stored(93, by="bob")]
    assert stays(runs) == ["prune.young", "prune.young", "", "prune.newest", ""]


def test_a_run_that_a_baseline_was_made_from_is_never_lost() -> None:
    runs = [stored(1), stored(400), stored(401), stored(410)]
    days = {(NOW - 400 * DAY).date()}
    assert stays(runs, alpha=days)[1:] == ["prune.baseline", "prune.baseline", ""]
    assert stays(runs, beta=days)[1:] == ["", "", ""]
    of_nobody_knows_what = [stored(1), stored(400, system="")]
    assert stays([*of_nobody_knows_what, stored(402, system="")], beta=days)[1] == "prune.baseline"


def test_a_baseline_of_another_operators_clone_keeps_its_runs(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who prunes a shared home may not have the references that were made of its runs."""
    names = [f"2026010{day}T000000Z-r{day}" for day in (1, 2, 3)]
    for name in names:
        make(name, asked=asked())
    listing.keep_for_baseline(names[:1])
    listing.keep_for_baseline(names[1:2])
    options = ["prune", "--keep", "0", "--older-than", "30d", "--yes"]
    assert cli.main(options) == 0
    assert [store.run_folder(name).is_dir() for name in names] == [True, True, False]
    (home / "results" / "baselines.json").write_text("{")
    assert cli.main(options) == 1
    assert "baselines.json is damaged" in capsys.readouterr().err
    assert store.run_folder(names[0]).is_dir()


def test_references_without_a_site_config_keep_their_runs(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Theirs was named by its path."""
    folder = home / "site" / "references"
    folder.mkdir(parents=True)
    monkeypatch.setenv("CLUSTERGATE_SITE_FOLDER", str(folder.parent))
    (folder / "alpha.yaml").write_text(
        (REFERENCES / "local.yaml").read_text().replace("local", "alpha")
    )
    name = "20261122T212341Z-r1"
    make(name, asked=asked())
    assert cli.main(["prune", "--keep", "0", "--older-than", "0d", "--yes"]) == 0
    assert store.run_folder(name).is_dir()


def test_the_last_gate_that_opened_and_what_runs_stay() -> None:
    runs = [
        stored(100, "STAY CLOSED", kind="gate"),
        stored(200, "OPEN", kind="gate"),
        stored(300, "OPEN", kind="gate"),
        stored(400, "running", kind="gate"),
    ]
    assert stays(runs) == ["prune.newest", "prune.last-open", "", "prune.running"]


def test_prune_tells_before_it_removes_and_leaves_golden_builds(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = {"missing_cases": 0, "verdict": "pass", "system": "local"}
    old = [f"20250{month}01T000000Z-r{month}" for month in (1, 2, 3)]
    for name in old:
        make(name, asked=asked(), ended=ended)
    (home / "stage" / old[0]).mkdir(parents=True)
    golden = home / "golden" / "mpich" / "manifest.json"
    store.write_json(golden, {})
    options = ["prune", "--keep", "1", "--older-than", "30d"]
    assert cli.main(options) == 0
    told = capsys.readouterr().out
    assert f"may go: {old[0]}, " in told
    assert "2 runs, 0.0 MB may go; `clustergate prune --yes --keep 1 --older-than 30d`" in told
    assert "kept: 1 run, 0.0 MB: among the newest 1 of their system and mode" in told
    assert f"not touched: {home / 'golden'}, 0.0 MB" in told
    assert all(store.run_folder(name).is_dir() for name in old)
    assert cli.main([*options, "--yes", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["run"] for one in told["runs"] if one["stays"] is None] == [old[1], old[0]]
    assert [store.run_folder(name).is_dir() for name in old] == [False, False, True]
    assert not (home / "stage" / old[0]).exists()
    assert golden.is_file()


def test_a_run_that_cannot_be_removed_is_not_told_as_removed(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["20260101T000000Z-r1", "20260102T000000Z-r1"]
    for name in names:
        make(name, asked=asked())

    def remove(run: str) -> None:
        if run == names[0]:
            raise PermissionError(13, "Permission denied", "HplCheck.json")

    monkeypatch.setattr(listing, "remove", remove)
    assert cli.main(["prune", "--keep", "0", "--older-than", "30d", "--yes"]) == 2
    said = capsys.readouterr()
    assert f"{names[0]} cannot be removed: [Errno 13] Permission denied" in said.err
    assert f"removed: {names[1]}, " in said.out
    assert f"removed: {names[0]}, " not in said.out
    assert "kept: 1 run, 0.0 MB: could not be removed: Permission denied" in said.out
    assert "1 run, 0.0 MB: removed" in said.out


def test_no_fewer_than_no_run_can_stay(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["prune", "--keep", "-1", "--yes"]) == 1
    assert "--keep must not be negative: -1" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["30", "d", "-1d"])
def test_how_old_a_run_must_be_has_a_unit(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["prune", f"--older-than={text}", "--yes"]) == 1
    assert f"'{text}' is no date, time or run" in capsys.readouterr().err


def test_a_run_is_shown_as_it_was_summed_up(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make("20261101T000000Z-r1", asked=asked(), verdicts=VERDICTS)
    store.write_text(folder / listing.SUMMARY, "PASS: alpha\n")
    store.write_text(folder / "report.html", "<p>")
    assert cli.main(["show", "last"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "PASS: alpha",
        str(folder / "report.html"),
        str(folder),
    ]
    assert cli.main(["show", folder.name, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == VERDICTS
    monkeypatch.setenv("COLUMNS", "80")
    store.write_text(folder / listing.SUMMARY, f"  next: {'measure again ' * 20}\nHPL   1.0\n")
    assert cli.main(["show", "last"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert cli.main(["show", "last"]) == 0
    *sentence, table, _, _ = capsys.readouterr().out.splitlines()
    assert len(sentence) > 1
    assert max(map(len, sentence)) <= 80
    assert table == "HPL   1.0"
    make("20261102T000000Z-r2", asked=asked())
    assert cli.main(["show", "last"]) == 1
    assert "`clustergate check --resume 20261102T000000Z-r2`" in capsys.readouterr().err


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_gate_without_an_answer_not_shown_as_pass(
    home: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...]
) -> None:
    """It was interrupted after they had ended, and their summary is there."""
    folder = make("20261101T000000Z-r1", asked=asked(), gate={"status": None})
    store.write_json(folder / listing.VERDICTS, VERDICTS)
    store.write_text(folder / listing.SUMMARY, "PASS: alpha\n")
    assert cli.main(["show", "last", *options]) == 1
    out, err = capsys.readouterr()
    assert "PASS" not in out
    assert "`clustergate gate`" in out + err


def test_a_run_is_named_by_its_number_or_its_beginning(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ids = ["20261126T080000Z-r7", "20261127T010000Z-r8", "20261127T020000Z-r18"]
    for name in ids:
        folder = make(name, asked=asked(), ended={})
        store.write_text(folder / listing.SUMMARY, f"PASS: {name}\n")
    for short, name in [("r8", ids[1]), ("7", ids[0]), ("20261126", ids[0]), (ids[2], ids[2])]:
        assert cli.main(["show", short]) == 0
        assert capsys.readouterr().out.startswith(f"PASS: {name}\n")
    assert cli.main(["show", "20261127"]) == 1
    assert f"20261127 is the beginning of {ids[2]}, {ids[1]}; name one" in capsys.readouterr().err
    assert cli.main(["show", "20261127T010000Z-r9"]) == 1
    assert f"; did you mean '{ids[1]}'?" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["show", "open"])
@pytest.mark.parametrize("taken_back", [False, True])
def test_a_gate_without_an_answer_is_called_again_as_it_was(
    home: Path, capsys: pytest.CaptureFixture[str], command: str, taken_back: bool
) -> None:
    called = [["gate"], ["--site", "alpha"], ["--budget", "20m"]]
    begun = {"status": None} if taken_back else {"status": None, "called": called}
    folder = make("20261101T000000Z-r1", asked=asked(), gate=begun)
    if taken_back:
        listing.keep_made(folder.name, "screen", "alpha", called)
    assert cli.main([command, "last"]) == 1
    assert "run `clustergate gate --site alpha --budget 20m`;" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["show", "open"])
@pytest.mark.parametrize(
    ("holds", "next_step"),
    [("cases", "clustergate history"), ("screening", "clustergate screen --resume")],
)
def test_what_is_said_of_a_run_without_a_summary_can_be_done(
    home: Path, capsys: pytest.CaptureFixture[str], command: str, holds: str, next_step: str
) -> None:
    """No set-up of ``clustergate check`` stands in what ReFrame, or a screening, left behind."""
    folder = make("20261101T000000Z-r1")
    (folder / holds).mkdir(parents=True)
    assert cli.main([command, "last"]) == 1
    said = capsys.readouterr().err
    assert f"`{next_step}" in said
    assert "check --resume" not in said


def test_gate_without_an_answer_has_no_page_of_its_own(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The benchmarks page of a gate without an answer is not opened as its own."""
    folder = make("20261101T000000Z-r1", asked=asked(), gate={"status": None}, ended={})
    assert cli.main(["open"]) == 1
    store.write_text(folder / "report.html", "<p>")
    assert cli.main(["open"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("has no answer: it was interrupted, or it failed; run `clustergate gate`") == 2
    store.write_json(folder / listing.GATE, {"status": 0, "word": "OPEN"})
    store.write_text(folder / "gate.html", "<p>")
    assert listing.page_of(folder) == folder / "gate.html"


@pytest.mark.parametrize("command", ["show", "open"])
def test_who_asks_for_a_run_that_goes_on_is_told_to_wait(
    home: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """Nobody can resume it now."""
    folder = make("20261101T000000Z-r1", asked=asked())
    with FileLock(folder / listing.LOCK):
        assert cli.main([command, "last"]) == 1
    said = capsys.readouterr().err
    assert "it is still running; wait until it has ended" in said
    assert "--resume" not in said


def test_a_page_is_opened_only_where_there_is_a_display(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    folder = make("20261101T000000Z-r1", asked=asked())
    assert cli.main(["open"]) == 1
    assert "has no page" in capsys.readouterr().err
    store.write_text(folder / "report.html", "<p>")
    assert cli.main(["open"]) == 0
    assert opened == []
    monkeypatch.setenv("DISPLAY", ":0")
    assert cli.main(["open", folder.name]) == 0
    assert opened == [(folder / "report.html").as_uri()]
    assert str(folder / "report.html") in capsys.readouterr().out


@pytest.mark.parametrize("what", ["runs", "stacks", "systems", "modes", "checks"])
def test_every_list_is_a_table_and_json(
    what: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make("20261101T000000Z-r1", asked=asked())
    assert cli.main(["list", what, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert cli.main(["list", what]) == 0
    told = capsys.readouterr().out
    first = next(iter(rows[0].values()))
    assert any(line.startswith(first) for line in told.splitlines())


def test_the_many_systems_of_papers_are_listed_on_request(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["list", "systems"]) == 0
    told = capsys.readouterr().out
    assert "local" in told
    assert "cray-t3e600" not in told
    assert re.search(r"^left out: \d+ that are used by name alone \(--all\)$", told, re.MULTILINE)
    for option in ("--all", "--json"):
        assert cli.main(["list", "systems", option]) == 0
        assert "cray-t3e600" in capsys.readouterr().out


def test_what_hard_links_share_is_told_as_such(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """To remove a golden build of 545 MB freed next to nothing."""
    for folder in ("golden", "prefixes", "cache"):
        (home / folder).mkdir(parents=True)
    library = home / "prefixes" / "libmpi.so"
    library.write_bytes(bytes(3_000_000))
    (home / "golden" / "libmpi.so").hardlink_to(library)
    (home / "cache" / "a").write_bytes(bytes(2_000_000))
    (home / "cache" / "b").hardlink_to(home / "cache" / "a")
    assert listing.sizes_bytes(home / "golden") == (3_000_000, 0)
    assert listing.sizes_bytes(home / "cache") == (2_000_000, 2_000_000)
    assert cli.main(["prune"]) == 0
    told = capsys.readouterr().out.splitlines()
    line = f"not touched: {home / 'golden'}, 3.0 MB, of which 3.0 MB are hard links to files"
    assert f"{line} elsewhere" in told
    assert f"not touched: {home / 'cache'}, 2.0 MB" in told
