"""Replays of recorded launches, on launches whose truth is known."""

import dataclasses
import datetime
import functools
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from clustergate.benchmarks.imb.blocks import bounded_mean
from clustergate.core import model
from clustergate.core.figures import name_of
from clustergate.core.model import CaseId, CaseRecord, Row
from clustergate.core.reasons import in_words
from clustergate.judge.baselines.proposals import Rule
from clustergate.sites.modes import MODES
from clustergate.stacks.manifest import read_manifest
from tools.bench import blocks, field, otava, pairs, record, runs, sizes, verdicts
from tools.bench import launches as launch_files
from tools.bench.launches import (
    TIME,
    Launch,
    RecordingError,
    Window,
    read_launches,
    write_launches,
)
from tools.bench.slowdowns import BENCHMARK, NOTHING, SIZE, STACK, Change
from tools.bench.spread import Share

NAMES = tuple(f"{b}/{size}" for b in record.BENCHMARKS for size in record.SIZES_BYTES)
WINDOW = Window("clustergate.launch", "2026-11-22T14:00:00+00:00", boot_id="abc")


def launches(
    count: int,
    *,
    seed: int = 1,
    others_cores: float = 0.0,
    core_distance_ns: float = 50.0,
    slower: float = 1.0,
    provoked: str = "",
    stack: str = "mpich",
    day: int = 1,
) -> list[Launch]:
    generator = np.random.default_rng(seed)
    made = []
    for k in range(count):
        noise = 1.0 + generator.exponential(0.01, len(NAMES))
        times = {n: slower * 40.0 * float(x) for n, x in zip(NAMES, noise, strict=True)}
        noted = model.Launch(
            order=k,
            started=86400.0 * day + 60.0 * k,
            seconds=0.5,
            lost_cores=others_cores,
            core_distance_ns=core_distance_ns,
            disturbed=in_words("others used cores") if others_cores > 0.1 else None,
        )
        printed = {name: {TIME: value} for name, value in times.items()}
        made.append(Launch(WINDOW, stack, noted, times, printed, provoked=provoked))
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
        "Allreduce/64": 0.55,
    }


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda text: text.replace('"order":0', '"place":0'), ":2: no launch is recorded here"),
        (lambda text: text.replace('"format":2', '"format":9'), ":1: .* of another version"),
        (lambda text: text.partition("\n")[2], ":1: no launch is recorded here"),
        (lambda text: text.replace('time_us":4', 'time_us":-4', 1), ":2: PingPong/8 is -4"),
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


def test_what_was_put_aside_is_read_by_its_name_alone() -> None:
    names = [path.name for path in launch_files.recordings()]
    assert "two-core-vm.jsonl.gz" in names
    assert not [name for name in names if "aside" in name]


# --- a check's own way from launches to an exit status ------------------------------------------

SMOKE = MODES["smoke"]
SMOKE_BUDGET = runs.effort(SMOKE).budget
BOTH = verdicts.STACKS


def of_both(count: int, **how) -> list[Launch]:
    """Return launches of two stacks in turn."""
    rounds = zip(*(launches(count, stack=s, **how) for s in BOTH), strict=True)
    return [launch for of_round in rounds for launch in of_round]


@functools.cache
def judge() -> runs.Judge:
    """Return what 40 runs on 20 days make whose launches scatter by 1 %."""
    recorded = [of_both(6, seed=day, day=day) for day in range(20)]
    basis = [run for some in recorded for run in runs.runs_of("basis", some, BOTH, SMOKE_BUDGET)]
    return runs.judge_of(basis, SMOKE, BOTH, Rule(most_runs=40))


def one_run(seed: int = 9) -> runs.Run:
    (run,) = runs.runs_of("later", of_both(3, seed=seed, day=2), BOTH, SMOKE_BUDGET)
    return run


def slower_by(factor: float, names: Iterable[str]) -> runs.Slowed:
    return {(name, order): factor for name in names for order in range(3)}


def test_a_run_takes_launches_until_enough_were_undisturbed() -> None:
    quiet, loud = launches(5), launches(2, others_cores=0.5)
    moved = launches(1, core_distance_ns=310.0)
    mixed = [*loud, *quiet[:2], *moved, *quiet[2:], *quiet]
    made = runs.runs_of("r", mixed, ["mpich"], SMOKE_BUDGET)
    assert [len(run.launches["mpich"]) for run in made] == [6, 3, 3]
    (case,) = [runs.record_of(made[0], "mpich", SMOKE)]
    assert [launch.order for launch in case.launches if launch.disturbed] == [0, 1, 4]
    assert made[0].seconds == 3.0


def test_a_run_never_takes_more_launches_than_the_mode() -> None:
    made = runs.runs_of("r", launches(13, others_cores=0.5), ["mpich"], SMOKE_BUDGET)
    assert [len(run.launches["mpich"]) for run in made] == [6, 6]


def test_figures_are_printed_as_imb_prints_them() -> None:
    (one,) = launches(1)
    printed = {"PingPong/8": {TIME: 0.1549}, "Sendrecv/64": {TIME: 0.2}, "Allreduce/8": {TIME: 0.5}}
    samples = runs.samples_of_run([dataclasses.replace(one, printed=printed)])
    assert {name_of(sample): sample.value for sample in samples} == {
        "PingPong.2p.8B.latency_us": 0.15,
        "PingPong.2p.8B.bandwidth_mb_s": 51.65,
        "Sendrecv.2p.64B.t_avg_us": 0.2,
        "Sendrecv.2p.64B.bandwidth_mb_s": 640.0,
        "Allreduce.2p.8B.t_avg_us": 0.5,
    }
    doubled = runs.samples_of_run(
        [dataclasses.replace(one, printed=printed)], {("PingPong/8", 0): 2.0}
    )
    assert [sample.value for sample in doubled[:3]] == [0.31, 25.82, 0.2]


def test_a_run_of_smoke_has_as_many_figures_as_was_counted() -> None:
    # A run on two cores left 229 figures of IMB-MPI1 a stack, 4 of HPL and 35 of HPCC. Of those of
    # IMB 60 are times or rates beside the bandwidth of the same messages, and compared with that.
    assert len(runs.figures_of_mode(SMOKE)) == 229 - 60
    assert len(judge().references.paths()) + judge().refused == 2 * (229 - 60 + 4 + 35)


def test_an_unchanged_run_exits_with_0_and_a_slower_one_with_1() -> None:
    for seed in range(9, 14):
        run = one_run(seed)
        cases = [judge().case(run, stack) for stack in BOTH]
        assert judge().exit_status(cases) == 0
        assert runs.answer(cases, dict.fromkeys(BOTH, NAMES)) == "passed"
        slow = judge().case(run, "mpich", slower_by(1.3, ["PingPong/8"]))
        assert judge().exit_status([cases[0], slow]) == 1
        assert runs.answer([slow], {"mpich": ["PingPong/8"]}) == "found"
        whole = judge().case(run, "mpich", slower_by(1.07, NAMES[:7]))
        assert runs.answer([whole], {"mpich": ["PingPong/8"]}) != "passed"
        whole = judge().case(run, "mpich", slower_by(1.12, NAMES[:7]))
        assert runs.answer([whole], {"mpich": ["PingPong/8"]}) == "found"
        assert runs.decided(cases) == 1.0
        assert runs.answer([slow], {"mpich": ["Sendrecv/8"]}) == "passed"


def test_a_stack_that_lost_its_case_is_missing() -> None:
    case = judge().case(one_run(), "mpich")
    lost = dataclasses.replace(case, conditions={**case.conditions, "ranks": 1})
    assert judge().exit_status([case, lost]) == 2


def test_what_has_no_reference_is_not_passed() -> None:
    run = one_run()
    basis = runs.runs_of("few", of_both(12), BOTH, SMOKE_BUDGET)
    nobody = runs.judge_of(basis, SMOKE, BOTH, Rule())
    assert nobody.replayed_figures() == 0.0
    case = nobody.case(run, "mpich", slower_by(9.0, NAMES))
    assert runs.answer([case], {"mpich": NAMES}) == "no reference"
    assert nobody.exit_status([case, nobody.case(run, "intel-mpi")]) == 0


# --- what is put in, and what is said of it -----------------------------------------------------


@pytest.mark.parametrize(
    ("change", "figures", "slow"),
    [
        (NOTHING, 42, set()),
        (Change(SIZE, 1.1), 1, {1.1}),
        (Change(BENCHMARK, 1.1), 7, {1.1}),
        (Change(STACK, 1.1), 21, {1.1}),
        (Change(STACK, 5.0, 3), 21, {5.0}),
    ],
)
def test_a_change_is_put_where_it_says(change, figures, slow) -> None:
    affected, slowed = verdicts.put_in(change, one_run(), np.random.default_rng(1))
    assert sum(map(len, affected.values())) == figures
    assert set(slowed.values()) == slow
    launches_hit = {order for _, order in slowed}
    assert len(launches_hit) == (0 if not slow else 1 if change.every == 3 else 3)


def test_bounds_are_those_of_recordings_and_not_of_runs() -> None:
    # 1 - 0.05 ** (1 / 8): eight recordings are eight trials, however many runs each of them has.
    assert Share([(0, 1000)] * 8).bounds == pytest.approx((0.0, 0.3123), abs=1e-4)
    assert Share([(9, 9), (4, 4)]).bounds == pytest.approx((0.05**0.5, 1.0))
    assert Share([(0, 100), (100, 100)]).bounds == (0.0, 1.0)
    low, high = Share([(10, 100), (12, 100), (11, 100), (9, 100)]).bounds
    assert 0.09 <= low <= 0.105 <= high <= 0.12
    assert Share([]).share == 0.0
    assert Share([(0, 0)]).bounds == (0.0, 1.0)


def times(count: int, seed: int = 1, slower: float = 1.0) -> field.Times:
    return slower * (10.0 + np.random.default_rng(seed).exponential(0.1, (count, 3)))


KNOWN = field.Known([times(10, seed) for seed in range(20)], figures=3)


@pytest.mark.parametrize("name", field.RULES)
def test_fields_rules_find_a_fifth_and_pass_the_unchanged(name: str) -> None:
    rule = field.RULES[name]
    assert rule(KNOWN, times(10, 77, 1.2)).all()
    alarms = sum(rule(KNOWN, times(10, seed)).sum() for seed in range(100, 140))
    assert alarms <= (12 if name == "t test" else 0)  # of 120, at 1 % each and a tail


def test_the_fields_rules_differ_where_they_should() -> None:
    spiked = times(10, 78)
    spiked[0] *= 5
    says = {name: bool(rule(KNOWN, spiked).all()) for name, rule in field.RULES.items()}
    assert says == {
        "one run, 10 %": True,
        "median, 10 %": False,
        "Mann-Whitney": False,
        "bootstrap": False,
        "t test": True,
    }
    # Four launches are too few for ranks among as many figures as a run has.
    many = dataclasses.replace(KNOWN, figures=1672)
    assert not field.mann_whitney(many, times(2, 79, 2.0)).any()


def test_candidates_score_what_they_are_meant_for() -> None:
    scores = {name: sizes.Scores(name, KNOWN.runs) for name in sizes.CANDIDATES}
    for of_candidate in scores.values():
        assert (of_candidate.of(times(10, 77)) < 5.0).all()
    one_slower = times(10, 77)
    one_slower[:, 1] *= 1.2
    for name in ("best of n", "lower quartile", "Mann-Whitney"):
        assert int(scores[name].of(one_slower).argmax()) == 1
        assert scores[name].of(one_slower)[1] > 5.0
    now_and_then = times(10, 77)
    now_and_then[::3] *= 5.0
    assert (scores["share of slow launches"].of(now_and_then) > 5.0).all()
    assert (scores["best of n"].of(now_and_then) < 5.0).all()


def test_a_threshold_is_chosen_on_other_recordings() -> None:
    of = {str(k): runs.runs_of(str(k), of_both(36, seed=k), BOTH, SMOKE_BUDGET) for k in range(3)}
    found = sizes.shares(of, "best of n", "every second run")
    assert [of_one for _, of_one in found[NOTHING].counts] == [6, 6, 6]
    assert found[NOTHING].share < 0.2
    assert found[Change(SIZE, 1.20)].share == 1.0
    assert sizes.shares({"0": of["0"]}, "best of n", "the first half")[NOTHING].counts == []


def test_the_best_that_memory_can_do_grows_with_the_slowdown() -> None:
    of = {str(k): runs.runs_of(str(k), of_both(36, seed=k), BOTH, SMOKE_BUDGET) for k in range(3)}
    (none, large) = (sizes.optimum(of, by, 1000, own_hour=False) for by in (0.0001, 0.5))
    # What is next to nothing is found as often as one is mistaken: in 1 %.
    assert all(share.share < 0.05 for share in none.values())
    assert all(share.share > 0.95 for share in large.values())
    assert none["slower: found among 1000"].share == 0.0


def test_blocks_of_a_size_are_told_apart_by_their_order() -> None:
    rows = [
        Row("IMB-MPI1", "PingPong", {"bytes": 1 << 20}, {"latency_us": t, "bandwidth_mb_s": rate})
        for t, rate in ((100.0, 10485.76), (200.0, 5242.88), (125.0, 8388.61))
    ]
    held = blocks.blocks_of(rows)
    assert held == {"PingPong/1048576": pytest.approx([100.0, 200.0, 125.0], rel=1e-4)}
    mean = blocks.levels([held], blocks.STATISTICS["mean"])
    assert mean == pytest.approx(np.array([[425 / 3]]), rel=1e-4)
    assert blocks.levels([held], blocks.middle) == pytest.approx(np.array([[125.0]]), rel=1e-4)


def test_calls_of_the_kernel_are_blocks_but_for_the_first() -> None:
    lines = (Path(__file__).parent / "data/mpi-kernels/mpi_trials.txt").read_text().splitlines()
    (first,) = (json.loads(x) for x in lines if '"ping_pong","bytes":8,' in x)
    held = blocks.calls_of(lines)
    assert held["ping_pong/8"] == first["times_us"][1:]
    assert len(held) > 10


def test_disturbed_blocks_scatter_means_not_medians() -> None:
    lot = np.random.default_rng(4)
    made = [
        {"PingPong/8": [1.0 + 5.0 * (lot.random() < 0.2) for _ in range(10)]} for _ in range(40)
    ]
    mean, median = (
        blocks.spreads(blocks.levels(made, blocks.STATISTICS[name])) for name in ("mean", "median")
    )
    assert mean[0] > 10 * median[0]
    values = blocks.levels(made, blocks.middle)
    told, rounds = blocks.decided(["PingPong/8"], values, Change(SIZE, 1.2))
    assert (told, rounds) == ("8 STAY CLOSED", 10.0)


def test_the_bounded_mean_shows_slow_blocks_that_a_median_hides() -> None:
    lot = np.random.default_rng(4)
    made = [{"PingPong/8": np.exp(0.02 * lot.normal(size=10)).tolist()} for _ in range(60)]
    slow = blocks.with_slow_blocks(made, lot)
    median = [blocks.levels(held, blocks.middle).mean() for held in (made, slow)]
    assert median[1] == pytest.approx(median[0], rel=0.03)
    values, faulty = (blocks.levels(held, bounded_mean) for held in (made, slow))
    assert blocks.decided(["PingPong/8"], values, NOTHING)[0] == "8 OPEN"
    assert blocks.decided(["PingPong/8"], values, faulty)[0] == "8 STAY CLOSED"


def test_one_block_hardly_moves_the_bounded_mean() -> None:
    assert bounded_mean([1.0] * 9 + [300.0]) == pytest.approx(2.0**0.1)


def test_a_change_point_is_looked_for_where_the_run_begins() -> None:
    ((series, place), *_) = field.series(KNOWN, times(10, 5, 1.2))
    assert (len(series), place) == (50, 40)
    assert min(series[place:]) > max(series[:place])


def test_without_otava_it_is_said_why() -> None:
    with pytest.raises(otava.NoOtava, match="No module named 'otava'"):
        otava.slower(Path(sys.executable), [([1.0, 2.0], 1)])


def piece(name: str, first: int, count: int) -> list[Launch]:
    return list(read_launches(launch_files.RECORDED / f"{name}.jsonl.gz"))[first : first + count]


def test_pieces_of_recordings_judged_by_baselines_of_others() -> None:
    recorded = {
        "quiet": piece("two-core-vm", 0, 120),
        "busy": piece("two-core-vm-busy", 300, 60),
        "evening": piece("two-core-vm-evening", 0, 60),
    }
    changes = (NOTHING, Change(STACK, 1.20))
    found = verdicts.replayed(
        recorded, SMOKE, baseline=verdicts.MANY, judged_runs=2, changes=changes
    )
    assert found is not None
    assert (found.runs, found.figures) == (6, 416)
    for change in changes:
        for rule in (verdicts.OURS, *field.RULES):
            told = [found.share(rule, change, answer) for answer in runs.ANSWERS]
            assert sum(one.share for one in told) == pytest.approx(1.0)
            assert [of for _, of in told[0].counts] == [2, 2, 2]
    # A fixed tolerance raises an alarm in each of these unchanged runs.
    assert found.share("one run, 10 %", NOTHING, "found").share == 1.0
    assert found.share(verdicts.OURS, changes[1], "passed").share == 0.0
    assert found.no_otava
    # None of them lasts as long as a baseline of a single session must.
    short = {"evening": recorded["evening"]}
    assert verdicts.replayed(short, SMOKE, baseline=verdicts.ONE, changes=changes) is None


def test_a_recording_of_another_processor_is_no_baseline() -> None:
    """One that is twice as fast would pass with any slowdown."""
    recorded = {
        "quiet": piece("two-core-vm", 0, 120),
        "busy": piece("two-core-vm-busy", 300, 60),
        "evening": piece("two-core-vm-evening", 0, 60),
        "faster": [
            dataclasses.replace(
                one, window=dataclasses.replace(one.window, processor="another processor")
            )
            for one in piece("two-core-vm-evening", 60, 60)
        ],
    }
    changes = (NOTHING,)
    found = verdicts.replayed(
        recorded, SMOKE, baseline=verdicts.MANY, judged_runs=1, changes=changes
    )
    assert found is not None
    told = [found.share(verdicts.OURS, NOTHING, answer).counts for answer in runs.ANSWERS]
    assert [sum(of for _, of in one) for one in told] == [3] * len(told)
    assert all(one[-1] == (0, 0) for one in told)


def test_nothing_slower_within_a_recording_and_no_tenth_passes() -> None:
    launches_of = piece("two-core-vm", 0, 700)
    made = runs.runs_of("quiet", launches_of, BOTH, SMOKE_BUDGET)
    known = runs.judge_of(made[:20], SMOKE, BOTH, Rule(shortest=datetime.timedelta(0)))
    benchmark = [name for name in NAMES if name.startswith("PingPong/")]
    for run, *later in zip(made[20:30], made[21:], made[22:], strict=False):
        further = {stack: iter(later) for stack in BOTH}

        def again(key: CaseId, further: Mapping[str, Iterator[runs.Run]] = further) -> CaseRecord:
            return known.record(next(further[key.stack]), key.stack)

        assert known.judged([known.record(run, stack) for stack in BOTH], again).status != 1
        slowed = {(name, k): 1.1 for name in benchmark for k in range(6)}
        case = known.case(run, "mpich", slowed)
        assert runs.answer([case], {"mpich": benchmark}) != "passed"


def test_the_replay_prints_its_tables_and_keeps_its_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path))
    monkeypatch.setattr(verdicts, "CHANGES", (NOTHING,))
    monkeypatch.setattr(verdicts, "BASELINE_RUNS", 5)
    # An environment in which nothing is installed.
    monkeypatch.setattr(otava, "environment", lambda folder: Path(sys.executable))
    arguments = ["--only", "replay", "--modes", "smoke", "--runs", "1"]
    for k in range(3):
        write_launches(tmp_path / f"{k}.jsonl", of_both(15, seed=k, day=k))
        arguments += ["--recorded", str(tmp_path / f"{k}.jsonl")]
    assert verdicts.main(arguments) == 0
    told = capsys.readouterr().out
    assert "3 recordings of 0.7 hours together, begun in 3 different hours of 3 days" in told
    assert "E-divisive: Otava cannot be used on Python" in told
    (kept,) = (tmp_path / "bench").glob("verdicts-*.json")
    (of_sessions,) = json.loads(kept.read_text())["replay"]  # none of them is a session by itself
    ours = [one for one in of_sessions["answers"] if one["rule"] == "clustergate"]
    assert sorted((one["recording"], one["runs"]) for one in ours) == [("0", 1), ("1", 1), ("2", 1)]
    assert "found" not in {one["answer"] for one in ours}


def test_launches_slowed_down_for_real_are_judged_by_benchmark() -> None:
    slowed = launches(15, seed=2, slower=1.2, provoked="delay")
    found = list(verdicts.judged("delay", judge(), slowed))
    assert [row.benchmark for row in found] == ["PingPong", "Sendrecv", "Allreduce"]
    assert {row.verdict for row in found} == {"found"}
    assert found[0].slower_percent == pytest.approx(20.0, abs=1.0)
    assert found[0].seen_percent is not None
    assert 2.99 < found[0].seen_percent < 8.0
    again = list(verdicts.judged("nothing", judge(), launches(15, seed=3)))
    assert {row.verdict for row in again} == {"passed"}


def test_launches_that_never_have_all_figures_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    class Incomplete(Recorded):
        def rounds(self, count: int) -> Iterator[Launch]:
            return (dataclasses.replace(x, microseconds={}) for x in launches(count))

    monkeypatch.setattr(record, "Recorder", Incomplete)
    manifest: Any = SimpleNamespace(stack="mpich")
    with pytest.raises(record.LaunchFailed, match="400 rounds left 0 runs with all figures"):
        list(verdicts.provoke([manifest], lambda said: None))


def test_where_others_used_the_node_nothing_is_said_of_the_stack() -> None:
    slowed = launches(10, slower=2.0, others_cores=0.9, provoked="competing process")
    found = list(verdicts.judged("competing process", judge(), slowed))
    assert {row.verdict for row in found} == {"disturbed"}


def test_launches_out_of_time_told_and_not_passed() -> None:
    slowed = [
        dataclasses.replace(launch, microseconds={"PingPong/8": 9.0}) for launch in launches(10)
    ]
    found = list(verdicts.judged("competing process", judge(), slowed))
    assert {(row.verdict, row.launches, row.incomplete) for row in found} == {
        ("inconclusive", 10, 10)
    }


class Recorded:
    """Stands in for a recorder: a stack with one launch a round, each later than the last."""

    def __init__(self, manifests: object, folder: Path) -> None:
        self.taken = 0
        self.refused: list[str] = []
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


def test_failed_launch_keeps_the_recording_so_far(
    recordings_of: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A recording keeps what it has when a launch fails and each third is put aside."""
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
    row = "` | 2026-11-22 14:00 | EPYC, 2 cores | MPICH 5.0.2 | clustergate.launch |\n"
    assert page.count(row) == 3


def test_launches_that_were_left_out_are_counted(
    recordings_of: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter([0.0, 0.0, 61.0])
    monkeypatch.setattr("tools.bench.record.time.monotonic", lambda: next(clock))
    monkeypatch.setattr(record, "Progress", lambda: print)
    assert record.main(["--minutes", "1"]) == 0
    told = capsys.readouterr().out
    assert "\n9 launches are in " in told
    assert told.endswith("; 1 more ran out of time for a size and were left out\n")


def test_refused_output_left_out_until_the_fourth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A launch whose output is refused is left out and a fourth ends the recording."""

    def one(*arguments: object) -> Launch:
        if arguments[3].turn % 2:  # type: ignore[attr-defined]
            raise record.LaunchFailed(f"no row of turn {arguments[3].turn}")  # type: ignore[attr-defined]
        return launches(1)[0]

    ended = subprocess.CompletedProcess([], 0, "", "")
    log = SimpleNamespace(launches=[SimpleNamespace(status=0, turn=turn) for turn in range(8)])
    monkeypatch.setattr(record, "window_of", lambda manifests: WINDOW)
    monkeypatch.setattr(record, "plan_of", lambda *plan: None)
    monkeypatch.setattr(record, "launched", lambda job, plan: ended)
    monkeypatch.setattr(record, "read_log", lambda job: log)
    monkeypatch.setattr(record.Recorder, "_recorded", one)
    recorder = record.Recorder([], tmp_path)
    made = recorder.rounds(8)
    assert len([next(made) for _ in range(4)]) == 4
    assert recorder.refused == [f"no row of turn {turn}" for turn in (1, 3, 5)]
    with pytest.raises(record.LaunchFailed, match="no row of turn 7"):
        next(made)


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


def test_stack_equals_itself_and_a_slowdown_is_found() -> None:
    recorded = launches(80)
    pair = pairs.recorded_rounds(recorded, "mpich")
    assert pair.shape == (40, 2, 21)
    names = sorted(recorded[0].microseconds)
    lot = np.random.default_rng(1)
    a, b = pairs.drawn(pair, 40, lot)
    assert pairs.compared(a, b, ()).answer in ("equivalent", "undecided")
    slower, places = pairs.changed(b, names, Change(BENCHMARK, 1.2), lot)
    assert len(places) == 7
    found = pairs.compared(a, slower, places)
    assert found.answer == "found"
    assert found.rounds < 40
    assert pairs.compared(slower, a, places).answer == "wrong"
    assert pairs.at_the_gate(names, a, b).answer != "STAY CLOSED"
    assert pairs.at_the_gate(names, a, slower).answer == "STAY CLOSED"


@pytest.mark.parametrize("how", [how for how in pairs.RULES if how not in ("ab", "gate")])
def test_what_others_say_of_the_rounds_is_told_with_what_it_costs(how: str) -> None:
    found = list(pairs.replayed({"simulated": launches(120)}, 40, 2, how))
    fifth = Change(SIZE, 1.2)
    answers, rounds, node_seconds = pairs.counted(found, fifth)
    assert answers == {pairs.CLOSED: 2}
    assert node_seconds == pytest.approx(rounds)  # each of two launches took half a second
    plain = pairs.counted(found, NOTHING)[0]
    if how in ("e-values", "likelihood of differences"):
        assert plain == {pairs.OPEN: 2}


def test_the_gate_is_asked_only_of_comparisons_that_it_may_open() -> None:
    recorded = {"simulated": launches(120)}
    for by, answers in ((1.05, {pairs.CLOSED}), (1.2, set())):
        made = list(pairs.comparisons(recorded, 60, 2, [Change(SIZE, by)]))
        assert {one.answer for one in pairs.may_open(made)} == answers


def test_test_that_knows_the_size_is_faster() -> None:
    recorded = {"simulated": launches(120)}
    needed = [
        pairs.counted(list(pairs.replayed(recorded, 40, 2, how)), Change(SIZE, 1.05))[1]
        for how in ("likelihood of the size", "likelihood of differences")
    ]
    assert needed[0] <= needed[1]


def test_behind_its_last_round_a_recording_goes_on_with_its_first() -> None:
    pair = pairs.recorded_rounds(launches(8), "mpich")
    a, b = pairs.drawn(pair, 9, np.random.default_rng(1))
    both = np.sort(np.stack([a, b], axis=1), axis=1)
    assert (both[:5] == both[4:]).all()
    assert {tuple(one) for one in both[:4, 0]} == {tuple(one) for one in pair.min(axis=1)}
    # With lots of its own.
    assert (a[:5] != a[4:]).any()


@pytest.mark.mpi
def test_a_recording_is_made_by_the_launcher_of_the_checks(stacks: Path, tmp_path: Path) -> None:
    manifest = read_manifest(stacks, "mpich")
    if missing := manifest.program("IMB-MPI1").unavailable:
        pytest.skip(f"mpich has no IMB here: {missing}")
    recorder = record.Recorder([manifest], tmp_path)
    made = [*recorder.rounds(2), *recorder.rounds(1)]
    assert [launch.turn for launch in made] == [0, 1, 2]
    window = made[0].window
    assert window.launcher == "clustergate.launch"
    assert None not in (window.engine, window.boot_id, window.processor, window.fingerprint)
    assert made[0].noted.lost_cores is not None
    assert made[0].noted.node["load_average_1min"] is not None
    assert "latency_us" in made[0].printed["PingPong/8"]
    write_launches(tmp_path / "l.jsonl.gz", made)
    assert [launch.noted for launch in read_launches(tmp_path / "l.jsonl.gz")] == [
        launch.noted for launch in made
    ]
