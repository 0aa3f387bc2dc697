"""Replays of recorded launches, on launches whose truth is known."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from tools.bench import pairs, replay, verdicts
from tools.bench.launches import Launch, RecordingError, read_launches, write_launches

NAMES = ("Allreduce/8", "PingPong/64", "PingPong/8")


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
        made.append(
            Launch(
                time_s=float(k),
                stack="mpich",
                bound=True,
                provoked=provoked,
                seconds=0.5,
                own_s=0.4,
                busy_s=0.4 + 0.5 * others_cores,
                steal_s=0.0,
                core_distance_ns=core_distance_ns,
                microseconds={n: slower * 0.5 * x for n, x in zip(NAMES, noise, strict=True)},
            )
        )
    return made


@pytest.mark.parametrize("name", ["l.csv", "l.csv.gz"])
def test_launches_are_read_as_they_were_written(tmp_path: Path, name: str) -> None:
    written = launches(3)
    write_launches(tmp_path / name, written)
    read = list(read_launches(tmp_path / name))
    assert [launch.stack for launch in read] == ["mpich"] * 3
    assert read[1].microseconds == pytest.approx(dict(written[1].microseconds), rel=1e-5)
    assert read[1].disturbance_cores == pytest.approx(0.0)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda text: text.replace("mpich,1", "mpich,x", 1).replace("0.500", "?", 1), ":2: "),
        (lambda text: text.replace("core_distance_ns", "distance"), ":1: these are no recorded"),
        (lambda text: text.replace(",50.0,", ",50.0,0", 1).replace(",0.", ",-0.", 9), ":2: "),
    ],
)
def test_a_damaged_recording_is_refused_by_its_line(tmp_path: Path, change, complaint) -> None:
    path = tmp_path / "l.csv"
    write_launches(path, launches(2))
    path.write_text(change(path.read_text()))
    with pytest.raises(RecordingError, match=complaint):
        list(read_launches(path))


def test_a_file_that_is_not_compressed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "l.csv.gz"
    path.write_text("time_s\n")
    with pytest.raises(RecordingError, match="cannot be read"):
        list(read_launches(path))


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
    assert row.told["20 %"] == {"found": 200, "cannot tell": 0, "passed": 0}
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
        ("cannot tell", 10, None)
    }


def test_launches_that_ran_out_of_their_time_are_told_and_not_passed() -> None:
    slowed = [
        dataclasses.replace(launch, microseconds={"PingPong/8": 9.0}) for launch in launches(10)
    ]
    found = list(verdicts.judged("competing process", launches(120), slowed))
    assert {(row.verdict, row.launches, row.incomplete) for row in found} == {
        ("cannot tell", 10, 10)
    }


def test_few_launches_that_count_make_a_run_of_so_many() -> None:
    slowed = [*launches(2, seed=2, slower=3.0), *launches(8, others_cores=0.9)]
    found = list(verdicts.judged("delay", launches(120), slowed))
    # Nothing is said of fewer than three launches, however slow they are.
    assert {(row.verdict, row.disturbed, row.seen_percent) for row in found} == {
        ("cannot tell", 8, None)
    }


class Recorded:
    """Stands in for a recorder: a stack with one launch a round, each later than the last."""

    def __init__(self, manifests: object, folder: Path) -> None:
        self.taken = 0

    def round(self) -> list[Launch]:
        self.taken += 1
        if self.taken > 150:
            raise verdicts.record.LaunchFailed("the node went away")
        (made,) = launches(1, seed=self.taken)
        names = [f"{b}/{k}" for b in ("Allreduce", "PingPong", "Sendrecv") for k in range(7)]
        values = dict.fromkeys(names[1 if self.taken % 10 == 0 else 0 :], 0.5)
        return [dataclasses.replace(made, time_s=float(self.taken), microseconds=values)]


def test_recordings_grow_window_by_window_and_lose_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path))
    monkeypatch.setattr(verdicts.record, "Recorder", Recorded)
    monkeypatch.setattr(verdicts, "_manifests", lambda stacks: [stacks])
    path = tmp_path / "new" / "launches.csv.gz"
    arguments = ["--record", "9", "--into", str(path), "--only", "recording"]
    # It ends badly after 150 rounds, of which every tenth lacks a figure.
    assert verdicts.main(arguments) == 2
    assert "the node went away" in capsys.readouterr().out
    assert len(list(read_launches(path))) == 135
    assert verdicts.main(arguments) == 2
    assert len(list(read_launches(path))) == 270
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    write_launches(path, launches(1))
    assert verdicts.main(arguments) == 2
    assert "holds launches of other benchmarks" in capsys.readouterr().out


def test_several_recordings_are_replayed_and_counted_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path))
    monkeypatch.setattr(verdicts, "AB_ROUNDS", ())
    monkeypatch.setattr(verdicts, "COSTS", (3,))
    arguments = ["--only", "replay"]
    for k in range(2):
        write_launches(tmp_path / f"{k}.csv", launches(90, seed=k))
        arguments += ["--recorded", str(tmp_path / f"{k}.csv")]
    assert verdicts.main(arguments) == 0
    told = capsys.readouterr().out
    assert "Slowed down for real" not in told
    assert "All recordings together" in told
    # 2 x (30 - 20) runs and no alarm: 1 - 0.05 ** (1 / 20).
    assert "below 13.91 %" in told


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--only", "recording"], "--only recording needs --record MINUTES"),
        (["--into", "x.csv"], "--into needs --record MINUTES"),
    ],
)
def test_what_is_asked_for_must_make_sense(arguments, complaint, capsys) -> None:
    with pytest.raises(SystemExit):
        verdicts.main(arguments)
    assert complaint in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "found"), [("two-core-vm.csv.gz", 0.5), ("two-core-vm-busy.csv.gz", 0.0)]
)
def test_the_recorded_launches_raise_no_alarm_and_hide_no_slow_down_of_ten_percent(
    name: str, found: float
) -> None:
    row = verdicts.replayed(list(read_launches(verdicts.RECORDED / name)), 5)
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
    assert told == {"found": 10, "cannot tell": 0, "missed": 0, "wrong": 0}


def test_a_benchmark_that_became_faster_is_no_slow_down_found() -> None:
    told = pairs.slowed(launches(60), ["mpich"], rounds=10, times=3, factor=0.80)
    assert told["wrong"] == 6


def test_more_rounds_than_were_recorded_are_refused() -> None:
    pair = pairs.recorded_rounds(launches(8), "mpich")
    with pytest.raises(ValueError, match="4 rounds were recorded"):
        pairs.told_apart([pair], rounds=5, times=1)
    assert verdicts.against_itself(launches(8), 5) is None
