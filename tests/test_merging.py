"""Runs of several homes in one: copied whole or not at all, and never changed."""

import datetime
import errno
import itertools
import multiprocessing
import os
import shutil
import signal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustergate.cli import main
from clustergate.core import store
from clustergate.core.model import BadRequest
from clustergate.judge.history import listing, merging, packages, stored_runs
from clustergate.judge.history.stored_runs import MERGED
from tests.builders import hpl, record

NOW = datetime.datetime(2026, 12, 1, tzinfo=datetime.timezone.utc)
ENDED = {"missing_cases": 0, "verdict": "pass", "system": "alpha"}


def make(home: Path, run: str, value: float = 90.0, **files: object) -> Path:
    folder = store.run_folder(run, home)
    store.write_case(run, record(hpl(value)), home)
    for name, content in {"ended": ENDED, "asked": {"site": "alpha.py"}, **files}.items():
        store.write_json(folder / f"{name}.json", content)
    (folder / "report.html").write_text("<p>", encoding="utf-8")
    return folder


def data_of(home: Path) -> dict[str, dict[str, bytes]]:
    """Return the data of all runs of a home."""
    runs = store.runs_folder(home)
    return {one.name: dict(packages.read_run(one).files) for one in runs.glob("*")}


def merge(source: Path, home: Path) -> list[str]:
    """Return what became of each run, of one that was refused the code."""
    told = []
    for one in merging.runs_in(source, lambda package: {}):
        try:
            if isinstance(one, BadRequest):
                raise one
            runs = store.runs_folder(home)
            told.append(merging.merge_run(one, runs, runs.with_name("incoming"), "eva", NOW))
        except BadRequest as error:
            told.append(error.reason.code)
    return told


@pytest.fixture
def homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    here, other = tmp_path / "here", tmp_path / "other"
    monkeypatch.setenv("CLUSTERGATE_HOME", str(here))
    make(here, "20261101T080000Z-r1")
    for day in (2, 3):
        make(other, f"2026110{day}T080000Z-r{day - 1}", 90.0 + day)
    return here, other


RUNS = st.dictionaries(st.integers(1, 4), st.integers(0, 2), max_size=4)


@given(st.lists(RUNS, min_size=3, max_size=3))
@settings(max_examples=25, deadline=None)
def test_merging_is_a_union_of_sets(tmp_path_factory, contents):
    """Of runs whose names are those of their content; other content of a name is refused."""
    base = tmp_path_factory.mktemp("homes")
    sources = [base / "abc"[k] for k in range(3)]
    for home, runs in zip(sources, contents, strict=True):
        for number, kind in runs.items():
            make(home, f"20261101T0{kind}0000Z-r{number}", float(kind + 1))
        store.runs_folder(home).mkdir(parents=True, exist_ok=True)
    before = [data_of(home) for home in sources]
    union = {name: files for one in before for name, files in one.items()}
    for number, order in enumerate(itertools.permutations(range(3))):
        # (a + b) + c, and each order of it; a home in between makes it a + (b + c).
        first, second = base / f"first{number}", base / f"second{number}"
        for k in order[1:]:
            if before[k]:
                merge(sources[k], first)
        for source in (sources[order[0]], first, first):
            if source.exists() and data_of(source):
                merge(source, second)
        assert data_of(second) == union
    assert [data_of(home) for home in sources] == before


def test_merging_twice_changes_nothing(homes):
    here, other = homes
    assert merge(other, here) == [merging.NEW] * 2
    files = {path: path.stat().st_mtime_ns for path in here.rglob("*") if path.is_file()}
    assert merge(other, here) == [merging.THERE] * 2
    assert {path: path.stat().st_mtime_ns for path in here.rglob("*") if path.is_file()} == files
    # Nor does a run come back as another's.
    assert merge(here, other) == [merging.NEW, merging.THERE, merging.THERE]
    assert not (store.run_folder("20261102T080000Z-r1", other) / MERGED).exists()


def test_another_run_of_its_name_is_refused_and_both_stay(homes, capsys):
    here, other = homes
    make(here, "20261102T080000Z-r1", 50.0)
    before = data_of(here)
    assert main(["merge", str(other)]) == 1
    said = capsys.readouterr()
    assert f"20261102T080000Z-r1 of {other}" in said.err
    assert "cases/HplCheck-node-mpich.json differs" in said.err
    assert said.out == f"{other}: 1 new, 0 there already, 1 not merged\n"
    after = data_of(here)
    assert {name: after[name] for name in before} == before
    assert len(after) == 3


def test_merged_runs_are_ordered_by_their_dates(homes):
    """Their numbers are those of another home, which say nothing here."""
    here, other = homes
    make(here, "20261105T080000Z-r2")
    for path in other.rglob("*"):
        os.utime(path, (NOW.timestamp(), NOW.timestamp()))
    merge(other, here)
    assert not stored_runs.doubted_runs()
    days = [folder.name[:8] for _, folder in stored_runs.in_order()]
    assert days == ["20261101", "20261102", "20261103", "20261105"]


def test_what_was_dated_wrongly_there_is_here_as_well(homes):
    here, other = homes
    make(other, "20190101T080000Z-r9")
    make(other, "20261103T090000Z-r1", 1.0)
    doubted = stored_runs.doubted_runs(other)
    assert len(doubted) > 1
    merge(other, here)
    assert stored_runs.doubted_runs().keys() == doubted.keys()


def test_what_has_not_ended_or_holds_a_link_is_left_out_by_name(homes):
    here, other = homes
    begun = make(other, "20261104T080000Z-r3")
    (begun / "ended.json").unlink()
    linked = make(other, "20261105T080000Z-r4")
    (linked / "x.json").symlink_to("/etc/passwd")
    assert merge(other, here) == [merging.NEW] * 2 + ["run.not-ended", "run.link"]
    assert not (store.run_folder(linked.name, here)).exists()


@pytest.mark.parametrize("failing", ["write", "rename"])
def test_a_full_disk_leaves_the_home_as_it_was(homes, monkeypatch, capsys, failing):
    here, other = homes
    before = data_of(here)

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "rename" if failing == "rename" else "fsync", full)
        assert main(["merge", str(other)]) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert data_of(here) == before
    assert main(["merge", str(other)]) == 0


def _killed(other: Path, here: Path, after: int) -> None:
    """Merge, and die as the node would after so many files."""
    written = itertools.count()
    plain = os.fsync

    def die(descriptor: int) -> None:
        plain(descriptor)
        if next(written) == after:
            os.kill(os.getpid(), signal.SIGKILL)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "fsync", die)
        merge(other, here)


@pytest.mark.parametrize("after", [0, 2, 5])
def test_a_merge_that_is_killed_leaves_whole_runs(homes, after):
    here, other = homes
    of_other = data_of(other)
    process = multiprocessing.get_context("fork").Process(target=_killed, args=(other, here, after))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    for name, files in data_of(here).items():
        assert name.endswith("01T080000Z-r1") or files == of_other[name]
    left = [*(here / "results" / "incoming").iterdir()]
    assert left
    os.utime(left[0], (0, 0))
    merge(other, here)
    assert data_of(here).keys() == {"20261101T080000Z-r1", *of_other}
    assert not left[0].exists()


def test_two_writers_lose_nothing(homes):
    here, other = homes
    for day in range(4, 20):
        make(other, f"202611{day:02}T080000Z-r{day}")
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=merge, args=(other, here)) for _ in range(3)]
    for one in writers:
        one.start()
    for one in writers:
        one.join()
    assert [one.exitcode for one in writers] == [0, 0, 0]
    assert data_of(here) == data_of(other) | {
        "20261101T080000Z-r1": data_of(here)["20261101T080000Z-r1"]
    }
    assert not [*(here / "results" / "incoming").iterdir()]


def test_what_another_writer_brought_meanwhile_is_there(homes, monkeypatch):
    here, other = homes
    plain = os.rename

    def late(source, target):
        shutil.copytree(source, target)
        plain(source, target)

    monkeypatch.setattr(os, "rename", late)
    assert merge(other, here) == [merging.THERE] * 2


@pytest.mark.parametrize("kind", ["home", "clone", "runs"])
def test_a_store_is_a_home_a_clone_or_a_folder_of_runs(homes, tmp_path, kind):
    here, other = homes
    if kind == "clone":
        other = other.rename(tmp_path / ".clustergate").parent
    assert merge(other / "results" / "runs" if kind == "runs" else other, here) == ["new", "new"]


def test_what_holds_no_runs_is_no_store(homes, tmp_path, capsys):
    (tmp_path / "pictures" / "summer").mkdir(parents=True)
    (tmp_path / "notes.txt").write_text("x", encoding="utf-8")
    for name in ("pictures", "notes.txt", "absent"):
        assert main(["merge", str(tmp_path / name)]) == 1
        assert f"{name} holds no runs" in capsys.readouterr().err


def test_runs_of_earlier_versions_are_merged_as_they_are(homes):
    here, _ = homes
    old = Path(__file__).parent / "data" / "home"
    assert merge(old, here) == [merging.NEW]
    assert store.read_cases("20261122T212341Z-r1")
    (only,) = [one for one in listing.listed_runs() if one.run == "20261122T212341Z-r1"]
    assert (only.system, only.trial) == ("local", False)
