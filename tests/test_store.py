import dataclasses
import datetime
import json
import multiprocessing
import os
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest

from clustergate.core import store
from clustergate.core.files.whole import share_with_group
from clustergate.core.model import Better, CaseRecord, Launch, Row, Sample, number_of_run
from clustergate.core.reasons import in_words
from clustergate.judge.history.node_states import NODE_STATE, recorded_runs
from clustergate.launch.disturbance import NODE_SHARED
from clustergate.run.resuming import lock_run

BUSY = NODE_SHARED(lost_cores=0.3, cores=2, host="vm")
RECORD = CaseRecord(
    name="HplCheck-node-mpich",
    check="HplCheck",
    stack="mpich",
    partition="local:node",
    conditions={"ranks": 2},
    samples=[Sample("HPL", "performance_gflops", "Gflop/s", Better.HIGHER, {"n": 8832}, 91.4)],
    launches=[Launch(0, 1795254814.7, 0.76, "vm", 0.02, 0.0, 52.5, BUSY)],
    launches_needed=3,
    unmeasured=[Row("IMB-MPI1", "Bcast", {"bytes": 8}, {}, "out-of-mem", 12)],
    peaks=[Row("node-peaks", "fma_peak", {"core_ids": "0,1"}, {"performance_gflops": 116.6})],
    complaints=[in_words("a complaint")],
    notes=["a note"],
)


def test_a_case_comes_back_as_it_was_kept(tmp_path):
    store.write_case("run", RECORD, tmp_path)
    assert store.read_cases("run", tmp_path) == [RECORD]


def test_a_case_is_read_without_its_samples(tmp_path):
    store.write_case("run", RECORD, tmp_path)
    (read,) = store.read_cases("run", tmp_path, samples=False)
    assert read == dataclasses.replace(RECORD, samples=[])


def test_reason_stored_with_code_facts_and_sentence(tmp_path):
    path = store.write_case("run", RECORD, tmp_path)
    (launch,) = json.loads(path.read_text(encoding="utf-8"))["launches"]
    facts = {"lost_cores": 0.3, "cores": 2, "host": "vm"}
    sentence = "others used 0.30 of 2 cores of vm"
    assert launch["disturbed"] == {"code": "node.shared", "facts": facts, "sentence": sentence}


def test_a_run_that_was_stored_before_reasons_had_codes_is_read(tmp_path):
    path = store.write_case("run", RECORD, tmp_path)
    content = json.loads(path.read_text(encoding="utf-8"))
    content["launches"][0]["disturbed"] = "others used 0.30 cores"
    content["complaints"] = ["a complaint"]
    path.write_text(json.dumps(content), encoding="utf-8")
    (read,) = store.read_cases("run", tmp_path)
    assert str(read.launches[0].disturbed) == "others used 0.30 cores"
    assert read.complaints == [in_words("a complaint")]


def test_a_reason_of_another_version_keeps_its_sentence(tmp_path):
    path = store.write_case("run", RECORD, tmp_path)
    content = json.loads(path.read_text(encoding="utf-8"))
    told = {"code": "proof.of-tomorrow", "facts": {"rank": 3}, "sentence": "rank 3 is not yet born"}
    content["complaints"] = [told]
    path.write_text(json.dumps(content), encoding="utf-8")
    ((complaint,),) = (read.complaints for read in store.read_cases("run", tmp_path))
    assert (complaint.code, str(complaint)) == (told["code"], told["sentence"])


def test_a_run_that_left_nothing_has_no_cases(tmp_path):
    assert store.read_cases("run", tmp_path) == []


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 1}', '{"schema": 7}'])
def test_a_damaged_record_is_named(tmp_path, text):
    store.write_case("run", RECORD, tmp_path).write_text(text)
    with pytest.raises(store.StoreError, match=r"HplCheck-node-mpich\.json"):
        store.read_cases("run", tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("91.4", '"91.4"', "samples[0].value: expected float, got str"),
        ("91.4", "NaN", "samples[0].value: nan is no number"),
        ("8832", "true", "n of a sample: Expected int, got bool"),
        ("91.4", "true", "samples[0].value: expected float, got bool"),
        ('{\n    "n": 8832\n   }', "null", "samples[0].conditions: expected object, got null"),
        ('"stack": "mpich"', '"stack": ["mpich"]', "stack: expected str, got array"),
        ('"Gflop/s"', '"Mflop/s"', "HPL performance_gflops is in 'Mflop/s', higher is better"),
        ('"higher"', '"lower"', "HPL performance_gflops is in 'Gflop/s', lower is better"),
        ("116.6", '"116.6"', "peaks[0].values.performance_gflops: expected float, got str"),
        ("116.6", "-1", "a figure of fma_peak is none: [-1.0, 1, 1]"),
        ('"core_ids": "0,1"', '"cores": 2', "the cores of fma_peak are None"),
    ],
)
def test_a_record_that_was_edited_to_something_else_is_damaged(tmp_path, old, new, told):
    """It was a bug of the suite: `history`, `compare` and `baseline` ended in a traceback."""
    path = store.write_case("run", RECORD, tmp_path)
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(store.StoreError, match=f"{path.name} is damaged .*{re.escape(told)}"):
        store.read_cases("run", tmp_path)


@pytest.mark.parametrize("name", ["cooled_by", "launches"])
def test_what_a_later_version_wrote_is_not_to_be_removed(tmp_path, name):
    """A home that was used by a newer clone was told to be damaged, and its runs to be removed."""
    path = store.write_case("run", RECORD, tmp_path)
    content = json.loads(path.read_text(encoding="utf-8"))
    content[name] = [{**content["launches"][0], "cooled_by": "water"}]
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(store.StoreError, match="another version of clustergate wrote it") as error:
        store.read_cases("run", tmp_path)
    assert error.value.reason.code == "run.other-version"


def test_a_sample_that_was_pasted_twice_is_damage(tmp_path):
    """It counted as one more launch, and narrowed the interval of its figure."""
    twice = dataclasses.replace(RECORD, samples=[*RECORD.samples, *RECORD.samples])
    store.write_case("run", twice, tmp_path)
    with pytest.raises(store.StoreError, match="launch 0 has HPL performance_gflops twice"):
        store.read_cases("run", tmp_path)


def test_a_value_that_is_no_number_is_never_stored(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        store.write_json(tmp_path / "x.json", {"value": float("nan")})
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_one_sentence_and_keeps_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "x.json"
    store.write_json(path, {"kept": True})

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(store.StoreError, match="No space left on device; free some space"):
        store.write_json(path, {"kept": False})
    assert json.loads(path.read_text()) == {"kept": True}
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.json"]


def test_runs_in_the_order_of_their_beginning(tmp_path, monkeypatch):
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path))
    zone = datetime.timezone(datetime.timedelta(hours=2))
    early = store.new_run_id(datetime.datetime(2026, 11, 1, 1, 30, tzinfo=zone))
    assert early == "20261031T233000Z-r1"
    # Somebody had set the clock forward, and copied runs of an earlier version and of a later day.
    ahead = store.new_run_id(datetime.datetime(2031, 1, 1, tzinfo=zone))
    for name in (early, ahead, "20261001T000000Z-4711", "20261102T000000Z-r17"):
        store.write_json(store.run_folder(name) / NODE_STATE, {})
    back = store.new_run_id(datetime.datetime(2026, 11, 2, 1, 30, tzinfo=zone))
    store.write_json(store.run_folder(back) / NODE_STATE, {})
    assert recorded_runs() == [
        *("20261001T000000Z-4711", early, ahead, "20261102T000000Z-r17", back)
    ]
    (tmp_path / "results" / "newest-run").write_text("damaged")
    assert number_of_run(store.new_run_id(datetime.datetime.now(zone))) == 19


def test_a_plain_reframe_call_is_one_run_of_its_own(monkeypatch):
    monkeypatch.setenv(store.RUN_ID, "")
    assert store.current_run_id() == store.current_run_id() != ""
    monkeypatch.setenv(store.RUN_ID, "given")
    assert store.current_run_id() == "given"


def test_a_copy_of_a_run_is_added_to_what_a_folder_holds(tmp_path):
    state, folder = tmp_path / "state", tmp_path / "artifacts"
    for run in ("earlier", "run"):
        store.write_case(run, RECORD, state)
        store.copy_run(run, folder, state)
    name = f"cases/{RECORD.name}.json"
    kept = store.run_folder("run", state) / name
    assert (folder / "run" / name).read_text() == kept.read_text()
    assert (folder / "earlier" / name).is_file()


def test_a_run_that_never_began_leaves_no_copy(tmp_path):
    store.copy_run("run", tmp_path / "artifacts", tmp_path)
    assert not (tmp_path / "artifacts").exists()


def test_a_copy_that_cannot_be_made_says_where_the_run_is(tmp_path):
    store.write_case("run", RECORD, tmp_path)
    (tmp_path / "artifacts").write_text("no folder")
    with pytest.raises(store.StoreError, match=r"cannot be copied .* it is in .*results/runs/run"):
        store.copy_run("run", tmp_path / "artifacts", tmp_path)


def test_a_folder_that_cannot_be_made_is_no_full_disk(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    with pytest.raises(store.StoreError, match="Not a directory; write elsewhere, or have it"):
        store.make_folder(tmp_path / "file" / "runs")
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path))
    with pytest.raises(store.StoreError, match="name another folder in CLUSTERGATE_HOME and run"):
        store.make_folder(tmp_path / "file" / "runs")


def _as_operator(number: int, home: Path, pipe: Any) -> None:
    os.setgroups([])
    os.setresgid(_GROUP, _GROUP, _GROUP)
    os.setresuid(number, number, number)
    os.umask(0o022)
    share_with_group(home)
    try:
        run = store.new_run_id(datetime.datetime.now(datetime.timezone.utc))
        folder = store.run_folder(run)
        store.write_json(folder / "asked.json", {"by": store.user_name()})
        with lock_run(run):
            pass
        first = min(store.runs_folder().glob("*"), key=lambda path: number_of_run(path.name))
        with lock_run(first.name):
            store.write_json(first / "asked.json", {"by": "another"})
        pipe.send(run)
    except BaseException as error:
        pipe.send(repr(error))


_GROUP = 54321


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be several users")
def test_operators_of_one_group_share_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(prefix="clustergate-shared-") as place:
        Path(place).chmod(0o755)
        home = Path(place) / "home"
        home.mkdir()
        os.chown(home, 0, _GROUP)
        home.chmod(0o2775)
        monkeypatch.setenv("CLUSTERGATE_HOME", str(home))
        for number in (54321, 54322):
            context = multiprocessing.get_context("fork")
            ours, theirs = context.Pipe()
            operator = context.Process(target=_as_operator, args=(number, home, theirs))
            operator.start()
            said = ours.recv()
            operator.join()
            assert said.endswith(f"-r{number - 54320}"), said
        modes = {path: path.stat().st_mode & 0o060 for path in home.rglob("*")}
        assert set(modes.values()) == {0o060}, modes
        assert json.loads(next(home.rglob("*-r1/asked.json")).read_text())["by"] == "another"


def test_what_is_not_shared_stays_the_owner_s(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    before = os.umask(0o022)
    try:
        share_with_group(tmp_path)
        store.write_text(tmp_path / "a", "")
        assert (tmp_path / "a").stat().st_mode & 0o777 == 0o644
        share_with_group(tmp_path / "absent")
        assert os.umask(0o022) == 0o022
    finally:
        os.umask(before)
