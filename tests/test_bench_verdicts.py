"""Replays of recorded launches, on launches whose truth is known."""

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from clustergate import model
from clustergate.stacks.manifest import read_manifest
from clustergate.wording.reasons import in_words
from tools.bench import convert, pairs, record, replay, verdicts
from tools.bench import launches as launch_files
from tools.bench.launches import (
    TIME,
    Launch,
    RecordingError,
    Window,
    read_launches,
    write_launches,
)

NAMES = ("Allreduce/8", "PingPong/64", "PingPong/8")


WINDOW = Window("clustergate.launching", "2026-11-22T14:00:00+00:00", boot_id="abc")


def launches(
    count: int,
    *,
    seed: int = 1,
    others_cores: float = 0.0,
    core_distance_ns: float = 50.0,
    slower: float = 1.0,
    provoked: str = "",
) -> list[Launch]:
    generator = np.random.default_rng(seed)
    made = []
    for k in range(count):
        noise = 1.0 + generator.exponential(0.01, len(NAMES))
        times = {n: slower * 0.5 * x for n, x in zip(NAMES, noise, strict=True)}
        noted = model.Launch(
            order=k,
            started=float(k),
            seconds=0.5,
            lost_cores=others_cores,
            core_distance_ns=core_distance_ns,
            disturbed=in_words("others used cores") if others_cores > 0.1 else None,
        )
        printed = {name: {TIME: value} for name, value in times.items()}
        made.append(Launch(WINDOW, "mpich", noted, times, printed, provoked=provoked))
    return made


@pytest.mark.parametrize("name", ["l.jsonl", "l.jsonl.gz"])
def test_launches_are_read_as_they_were_written(tmp_path: Path, name: str) -> None:
    later = dataclasses.replace(WINDOW, date="2026-11-22T15:00:00+00:00")
    written = launches(3)
    written += [dataclasses.replace(launch, window=later) for launch in launches(2)]
    write_launches(tmp_path / name, written)
    assert list(read_launches(tmp_path / name)) == written


def test_the_time_of_a_figure_is_that_which_a_comparison_takes(tmp_path: Path) -> None:
    (one,) = launches(1)
    printed = {
        "PingPong/64": {"latency_us": 0.18, "bandwidth_mb_s": 358.39},
        "Sendrecv/64": {"t_min_us": 0.2, "t_max_us": 0.25, "t_avg_us": 0.22, "bandwidth_mb_s": 512},
        "Allreduce/64": {"t_min_us": 0.51, "t_max_us": 0.55, "t_avg_us": 0.53},
    }
    write_launches(tmp_path / "l.jsonl", [dataclasses.replace(one, printed=printed)])
    (read,) = read_launches(tmp_path / "l.jsonl")
    assert read.microseconds == {
        "PingPong/64": pytest.approx(64 / 358.39),
        "Sendrecv/64": pytest.approx(128 / 512),
        "Allreduce/64": 0.53,
    }


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda text: text.replace('"order":0', '"place":0'), ":2: no launch is recorded here"),
        (lambda text: text.replace('"format":2', '"format":9'), ":1: .* of another version"),
        (lambda text: text.partition("\n")[2], ":1: no launch is recorded here"),
        (lambda text: text.replace('time_us":0', 'time_us":-0', 1), ":2: Allreduce/8 is -0"),
        (lambda text: text[:-40], ":3: no launch is recorded here"),
    ],
)
def test_a_damaged_recording_is_refused_by_its_line(tmp_path: Path, change, complaint) -> None:
    path = tmp_path / "l.jsonl"
    write_launches(path, launches(2))
    path.write_text(change(path.read_text()))
    with pytest.raises(RecordingError, match=complaint):
        list(read_launches(path))


def test_a_file_that_is_not_compressed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "l.jsonl.gz"
    path.write_text("{}\n")
    with pytest.raises(RecordingError, match="cannot be read"):
        list(read_launches(path))


OLD = """\
time_s,stack,bound,provoked,seconds,own_s,busy_s,steal_s,core_distance_ns,PingPong/8
1795284849.55,mpich,1,,0.500,0.400,0.40,0.00,52.4,0.471733
1795284850.55,mpich,1,,0.500,0.400,0.60,0.02,302.2,0.9
"""


def test_a_recording_of_the_launcher_before_is_converted_and_marked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = tmp_path / "l.csv"
    old.write_text(OLD)
    with pytest.raises(RecordingError, match=rf"python -m tools.bench.convert {old}` converts it"):
        list(read_launches(old))
    assert convert.main([str(old)]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'l.jsonl.gz'}\n"
    quiet, disturbed = read_launches(tmp_path / "l.jsonl.gz")
    assert {x.window.launcher for x in (quiet, disturbed)} == {"before the engine"}
    assert quiet.microseconds == {"PingPong/8": 0.471733}
    assert (quiet.time_s, quiet.core_distance_ns) == (1795284849.55, 52.4)
    assert quiet.noted.disturbed is None
    assert disturbed.disturbance_cores == pytest.approx(0.44)
    assert str(disturbed.noted.disturbed) == "others used 0.44 cores"
    assert disturbed.noted.node == {"own_s": 0.4, "busy_s": 0.6, "steal_s": 0.02}
    # Nothing is written over.
    assert convert.main([str(old)]) == 1
    assert "is there already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda text: text.replace("0.500", "?", 1), ":2: "),
        (lambda text: text.replace("0.9", "-0.9"), ":3: PingPong/8 is -0.9"),
        (lambda text: text.replace("own_s", "ours"), ":1: these are no recorded launches"),
    ],
)
def test_a_damaged_old_recording_is_refused_by_its_line(tmp_path, capsys, change, complaint):
    old = tmp_path / "l.csv"
    old.write_text(change(OLD))
    assert convert.main([str(old)]) == 1
    assert f"{old}{complaint}" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["l.csv"]


def test_what_was_put_aside_is_read_by_its_name_alone() -> None:
    names = [path.name for path in launch_files.recordings()]
    assert "two-core-vm.jsonl.gz" in names
    assert not [name for name in names if "aside" in name]


def test_a_run_takes_launches_until_enough_were_undisturbed() -> None:
    quiet, loud = launches(6), launches(3, others_cores=0.5)
    moved = launches(1, core_distance_ns=310.0)
    runs = replay.runs_of([*loud, *quiet[:2], *moved, *quiet[2:]], "mpich", 2)
    assert runs.cost.tolist() == [5, 3, 2]
    assert runs.best.shape == (3, 3)
    assert np.allclose(runs.best[0], runs.undisturbed[0].min(axis=0))


def test_the_upper_bound_of_no_alarm_in_300_runs_is_one_percent() -> None:
    # 1 - 0.05 ** (1 / 300), the rule of three.
    assert replay.Share(0, 300).upper_bound == pytest.approx(0.009936, rel=1e-3)
    assert replay.Share(3, 3).upper_bound == 1.0
    assert replay.Share(0, 0).share == 0.0


def test_unchanged_launches_raise_no_alarm_and_slow_ones_are_found() -> None:
    row = verdicts.replayed(launches(600, seed=5), 5)
    assert row is not None
    assert (row.runs, row.false_alarms) == (100, 0)
    assert row.told["20 %"] == {"found": 200, "inconclusive": 0, "passed": 0}
    assert row.told["10 %"]["passed"] == 0


def test_the_alarms_of_several_recordings_count_together() -> None:
    rows = [
        verdicts.replayed(launches(count, seed=5), cost) for count, cost in ((300, 5), (600, 3))
    ]
    rows.append(verdicts.replayed(launches(400, seed=6), 5))
    found = verdicts.together([row for row in rows if row is not None])
    assert {cost: (share.happened, share.of) for cost, share in found.items()} == {
        3: (0, 180),
        5: (0, 40 + 60),
    }


def test_too_few_launches_are_no_replay() -> None:
    assert verdicts.replayed(launches(60), 5) is None


def test_single_runs_raise_alarms_where_launches_have_tails() -> None:
    made = launches(200)
    made[100] = launches(1, slower=1.3)[0]
    assert verdicts.single_run(made)["20 %"].happened == 1
    assert verdicts.single_run(launches(200))["20 %"].happened == 0


def test_launches_slowed_down_for_real_are_judged_by_group() -> None:
    unchanged = launches(120)
    slowed = launches(15, seed=2, slower=1.2, provoked="delay")
    found = list(verdicts.judged("delay", unchanged, slowed))
    assert [(row.benchmark, row.verdict) for row in found] == [
        ("Allreduce", "found"),
        ("PingPong", "found"),
    ]
    assert found[0].slower_percent == pytest.approx(20.0, abs=1.0)
    assert found[0].seen_percent == pytest.approx(5.0, abs=1.0)
    again = list(verdicts.judged("nothing", unchanged, launches(15, seed=3)))
    assert [row.verdict for row in again] == ["passed", "passed"]


def test_where_others_used_the_node_nothing_is_said_of_the_stack() -> None:
    slowed = launches(10, slower=2.0, others_cores=0.9, provoked="competing process")
    found = list(verdicts.judged("competing process", launches(120), slowed))
    assert {(row.verdict, row.disturbed, row.slower_percent) for row in found} == {
        ("inconclusive", 10, None)
    }


def test_launches_that_ran_out_of_their_time_are_told_and_not_passed() -> None:
    slowed = [
        dataclasses.replace(launch, microseconds={"PingPong/8": 9.0}) for launch in launches(10)
    ]
    found = list(verdicts.judged("competing process", launches(120), slowed))
    assert {(row.verdict, row.launches, row.incomplete) for row in found} == {
        ("inconclusive", 10, 10)
    }


def test_few_launches_that_count_make_a_run_of_so_many() -> None:
    slowed = [*launches(2, seed=2, slower=3.0), *launches(8, others_cores=0.9)]
    found = list(verdicts.judged("delay", launches(120), slowed))
    # Nothing is said of fewer than three launches, however slow they are.
    assert {(row.verdict, row.disturbed, row.seen_percent) for row in found} == {
        ("inconclusive", 8, None)
    }


class Recorded:
    """Stands in for a recorder: a stack with one launch a round, each later than the last."""

    def __init__(self, manifests: object, folder: Path) -> None:
        self.taken = 0
        second = len(launch_files.every_recording()) + 1
        self.window = dataclasses.replace(
            WINDOW,
            date=f"2026-11-22T14:00:{second:02}+00:00",
            processor="EPYC",
            cores=2,
            stacks={"mpich": {"mpi": "MPICH 5.0.2"}},
        )

    def rounds(self, count: int) -> Iterator[Launch]:
        for _ in range(count):
            self.taken += 1
            if self.taken > 145:
                raise record.LaunchFailed("the node went away")
            (made,) = launches(1, seed=self.taken)
            names = [f"{b}/{k}" for b in ("Allreduce", "PingPong", "Sendrecv") for k in range(7)]
            values = dict.fromkeys(names[1 if self.taken % 10 == 0 else 0 :], 0.5)
            printed = {name: {TIME: value} for name, value in values.items()}
            yield dataclasses.replace(
                made, window=self.window, microseconds=values, printed=printed
            )


@pytest.fixture
def recordings_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of recordings with a page, where no launcher launches."""
    monkeypatch.setattr(record, "Recorder", Recorded)
    monkeypatch.setattr(record, "RECORDED", tmp_path)
    monkeypatch.setattr(launch_files, "RECORDED", tmp_path)
    monkeypatch.setattr(record, "manifests_of", lambda stacks: [stacks])
    (tmp_path / "README.md").write_text(
        "Above.\n<!-- recordings -->\nold\n<!-- /recordings -->\nBelow.\n"
    )
    return tmp_path


def test_a_recording_keeps_what_it_has_when_a_launch_fails_and_each_third_is_put_aside(
    recordings_of: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(3):
        # It ends badly within a job, after 145 rounds, of which every tenth lacks a figure.
        assert record.main(["--minutes", "9"]) == 2
        assert "the node went away" in capsys.readouterr().err
    files = launch_files.every_recording()
    assert [len(list(read_launches(path))) for path in files] == [131] * 3
    assert [path.name.endswith("-aside.jsonl.gz") for path in files] == [False, False, True]
    assert len(launch_files.recordings()) == 2
    assert re.fullmatch(r"two-core-(vm|node)-2026-11-22-140001\.jsonl\.gz", files[0].name)
    # No time and no name in it, so that the same launches are the same bytes.
    assert files[0].read_bytes()[4:8] == bytes(4)
    page = (recordings_of / "README.md").read_text()
    assert page.startswith("Above.\n<!-- recordings -->\n| recording |")
    assert page.endswith("<!-- /recordings -->\nBelow.\n")
    row = "` | 2026-11-22 14:00 | EPYC, 2 cores | MPICH 5.0.2 | clustergate.launching |\n"
    assert page.count(row) == 3


def test_the_table_of_recordings_is_what_their_first_lines_say() -> None:
    page = (launch_files.RECORDED / "README.md").read_text()
    assert record.with_table(page, launch_files.every_recording()) == page


def test_of_a_recording_put_aside_the_first_line_alone_is_read(tmp_path: Path) -> None:
    path = tmp_path / "l-aside.jsonl"
    write_launches(path, launches(2))
    path.write_text(path.read_text().partition("\n")[0] + "\nnot to be read\n")
    assert launch_files.header(path) == WINDOW
    path.write_text("not to be read\n")
    with pytest.raises(RecordingError, match=":1: no recording of this version begins here"):
        launch_files.header(path)


def test_several_recordings_are_replayed_and_counted_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path))
    monkeypatch.setattr(verdicts, "AB_ROUNDS", ())
    monkeypatch.setattr(verdicts, "COSTS", (3,))
    arguments = ["--only", "replay"]
    for k in range(2):
        write_launches(tmp_path / f"{k}.jsonl", launches(90, seed=k))
        arguments += ["--recorded", str(tmp_path / f"{k}.jsonl")]
    assert verdicts.main(arguments) == 0
    told = capsys.readouterr().out
    assert "Slowed down for real" not in told
    assert "All recordings together" in told
    # 2 x (30 - 20) runs and no alarm: 1 - 0.05 ** (1 / 20).
    assert "below 13.91 %" in told


@pytest.mark.parametrize(
    ("name", "found"), [("two-core-vm.jsonl.gz", 0.5), ("two-core-vm-busy.jsonl.gz", 0.0)]
)
def test_the_recorded_launches_raise_no_alarm_and_hide_no_slow_down_of_ten_percent(
    name: str, found: float
) -> None:
    row = verdicts.replayed(list(read_launches(launch_files.RECORDED / name)), 5)
    assert row is not None
    assert row.runs >= 30
    assert row.false_alarms <= 0.01 * row.runs
    assert row.told["10 %"]["passed"] == 0
    assert row.told["20 %"]["found"] > found * sum(row.told["20 %"].values())


def test_a_stack_is_not_told_apart_from_itself_and_a_slow_down_is_not_missed() -> None:
    recorded = launches(60)
    pair = pairs.recorded_rounds(recorded, "mpich")
    assert pair.shape == (30, 2, 3)
    assert pairs.told_apart([pair], rounds=10, times=30).happened <= 2
    told = pairs.slowed(recorded, ["mpich"], rounds=10, times=5, factor=1.10)
    # Two groups: Allreduce and PingPong.
    assert told == {"found": 10, "inconclusive": 0, "missed": 0, "wrong": 0}


def test_a_benchmark_that_became_faster_is_no_slow_down_found() -> None:
    told = pairs.slowed(launches(60), ["mpich"], rounds=10, times=3, factor=0.80)
    assert told["wrong"] == 6


def test_more_rounds_than_were_recorded_are_refused() -> None:
    pair = pairs.recorded_rounds(launches(8), "mpich")
    with pytest.raises(ValueError, match="4 rounds were recorded"):
        pairs.told_apart([pair], rounds=5, times=1)
    assert verdicts.against_itself(launches(8), 5) is None


@pytest.mark.mpi
def test_a_recording_is_made_by_the_launcher_of_the_checks(stacks: Path, tmp_path: Path) -> None:
    manifest = read_manifest(stacks, "mpich")
    if missing := manifest.program("IMB-MPI1").unavailable:
        pytest.skip(f"mpich has no IMB here: {missing}")
    recorder = record.Recorder([manifest], tmp_path)
    made = [*recorder.rounds(2), *recorder.rounds(1)]
    assert [launch.turn for launch in made] == [0, 1, 2]
    window = made[0].window
    assert window.launcher == "clustergate.launching"
    assert None not in (window.engine, window.boot_id, window.processor, window.fingerprint)
    assert made[0].noted.lost_cores is not None
    assert made[0].noted.node["load_average_1min_before"] is not None
    assert "latency_us" in made[0].printed["PingPong/8"]
    write_launches(tmp_path / "l.jsonl.gz", made)
    assert [launch.noted for launch in read_launches(tmp_path / "l.jsonl.gz")] == [
        launch.noted for launch in made
    ]
