"""The simulated cluster: its noise, its runs, and what is said of them, by the way of a check."""

import dataclasses
import functools
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tools.bench import measured, metal, metal_aims, simulated_creeping
from tools.bench.judge import Judge, judge_run, make_judge, of_figures, regressions
from tools.bench.metal import Cell, Counted
from tools.bench.simulated_noise import (
    BARE_METAL,
    COMPUTE,
    HEAVY,
    KINDS,
    LATENCY,
    MACHINES,
    RECURRING,
    day_of,
    launches_of,
)
from tools.bench.simulated_rules import Beside
from tools.bench.simulated_runs import (
    BASELINES,
    HPL_CHECK,
    SETTINGS,
    Form,
    SimulatedRun,
    affected_by,
    baseline_runs,
    form_of,
    later_run,
    past_runs,
)
from tools.bench.slowdowns import (
    ALL_COMPUTE,
    BENCHMARK,
    HPL,
    NOTHING,
    SIZE,
    STACK,
    UPGRADED,
    WINDOW,
    Change,
)

SMOKE = form_of("smoke")


# --- noise --------------------------------------------------------------------------------------


def test_days_and_launches_scatter_as_the_machine_says() -> None:
    lot = np.random.default_rng(1)
    kinds = [*KINDS, COMPUTE]
    days = np.array([day_of(BARE_METAL, kinds, lot) for _ in range(4000)])
    launches, spikes = launches_of(BARE_METAL, kinds, 4000, lot)
    of_launch, of_day = BARE_METAL.sd(kinds)
    assert days.std(axis=0) == pytest.approx(of_day, rel=0.1)
    assert launches.std(axis=0) == pytest.approx(of_launch, rel=0.1)
    assert not spikes.any()
    # Half of a day's variance is shared by a kind, none between kinds.
    correlation = np.corrcoef(days.T)
    assert correlation[0, -1] == pytest.approx(0.5, abs=0.08)
    assert abs(correlation[0, 1]) < 0.08


def test_spikes_slow_down_and_recur_where_they_are_said_to() -> None:
    kinds = [COMPUTE] * 50
    _, first = launches_of(RECURRING, kinds, 200, np.random.default_rng(1))
    assert (first > 0).mean() == pytest.approx(0.05, abs=0.01)
    assert first[first > 0].mean() == pytest.approx(5 * 0.005, rel=0.2)
    for machine, share in ((RECURRING, 0.38), (HEAVY, 0.05)):
        _, second = launches_of(machine, kinds, 200, np.random.default_rng(2), first)
        assert (second[first > 0] > 0).mean() == pytest.approx(share, abs=0.07)


# --- runs ---------------------------------------------------------------------------------------


def test_a_run_has_the_figures_of_a_captured_one() -> None:
    # 169 of IMB-MPI1 that are compared, 31 measurements of HPCC, one of HPL, of two stacks each.
    of_check = {case.key.check: len(case.compared) for case in SMOKE.cases}
    assert of_check == {"HplCheck": 1, "HpccCheck": 32, "ImbMpi1Check": 169}
    run = later_run(SMOKE, BARE_METAL, [1])
    assert [len(record.launches) for record in run.records] == [1, 1, 1, 1, 3, 3]
    latency = next(s for s in run.records[-1].samples if s.metric == "latency_us")
    assert latency.value == round(latency.value, 2)
    long = form_of("maintenance")
    records = later_run(long, BARE_METAL, [1]).records
    assert all(10 <= len(record.launches) <= 20 for record in records[-2:])
    assert len(long.measured) > 2 * len(SMOKE.measured)


def test_small_messages_have_the_level_of_their_nodes_distance() -> None:
    wide = form_of("smoke, three stacks, two nodes")
    runs = [later_run(wide, BARE_METAL, [k]) for k in range(12)]
    by_distance: dict[str, list[float]] = {}
    for run in runs:
        case = wide.cases[-1]
        kinds = [wide.kinds[place] for place in case.places[case.compared]]
        taken = run.taken[case.key]
        small = taken.printed[:, [kind == LATENCY for kind in kinds]].mean()
        by_distance.setdefault(str(taken.record.details["distance"]), []).append(small)
    means = sorted(float(np.exp(np.mean(some))) for some in by_distance.values())
    assert means == pytest.approx([1.0, 1.3, 1.5], rel=0.05)


def test_a_changed_run_is_the_same_but_for_the_change() -> None:
    plain = later_run(SMOKE, HEAVY, [3])
    affected = affected_by(Change(HPL, 1.2), SMOKE, np.random.default_rng(1))
    changed = plain.with_change(Change(HPL, 1.2), affected)
    for case in SMOKE.cases:
        before, after = plain.taken[case.key], changed.taken[case.key]
        if case.key.check == HPL_CHECK:
            assert after.true - before.true == pytest.approx(np.log(1.2))
        else:
            assert after is before
    again = changed.again(SMOKE.cases[0].key)
    assert again.true.mean() == pytest.approx(np.log(1.2), abs=0.05)
    assert again.record.launches[0].started > changed.records[0].launches[0].started
    assert changed.again(SMOKE.cases[0].key, 2).record.samples != again.record.samples


@pytest.mark.parametrize(
    ("where", "figures"), [(NOTHING.where, 0), (HPL, 2), (SIZE, 1), (WINDOW, 3), (BENCHMARK, 7)]
)
def test_a_change_affects_what_it_says(where: str, figures: int) -> None:
    affected = affected_by(Change(where, 1.1), SMOKE, np.random.default_rng(4))
    assert affected.sum() == figures
    if where in (WINDOW, BENCHMARK):
        assert len({SMOKE.measured[k].benchmark for k in np.flatnonzero(affected).tolist()}) == 1


def test_a_stack_is_affected_alone_and_all_compute_in_every_stack() -> None:
    lot = np.random.default_rng(4)
    stack = affected_by(Change(STACK, 1.1), SMOKE, lot)
    assert len({SMOKE.measured[k].stack for k in np.flatnonzero(stack).tolist()}) == 1
    assert 2 * stack.sum() == len(SMOKE.measured)
    compute = affected_by(Change(ALL_COMPUTE, 1.1), SMOKE, lot)
    assert {SMOKE.measured[k].stack for k in np.flatnonzero(compute).tolist()} == {
        *SMOKE.setting.stacks
    }
    faster = later_run(SMOKE, BARE_METAL, [1]).with_change(Change(UPGRADED, 1.1), stack)
    assert faster.slower.min() == pytest.approx(-np.log(1.1))
    seldom = later_run(SMOKE, BARE_METAL, [1]).with_change(Change(STACK, 1.3, 10), stack)
    assert seldom.every == 10


# --- from stored runs to the exit status --------------------------------------------------------


@functools.cache
def made(baseline: str) -> tuple[Judge, list[SimulatedRun]]:
    """Return the judge of a baseline, and its runs."""
    runs = baseline_runs(SMOKE, BARE_METAL, BASELINES[baseline], [7])
    keys, partition = [c.key for c in SMOKE.cases], SMOKE.setting.partition(exclusive=True)
    return make_judge(past_runs(runs), SMOKE.setting.mode, keys, partition), runs


def judged(baseline: str, change: Change, seed: int) -> tuple[int, bool]:
    """Return the exit status of a run, and whether HPL is called slower in it."""
    judge, _ = made(baseline)
    affected = affected_by(change, SMOKE, np.random.default_rng(seed))
    run = later_run(SMOKE, BARE_METAL, [8, seed]).with_change(change, affected)
    said = judge_run(judge, run.records, lambda key: run.again(key).record)
    assert len(of_figures(said.cases)) >= len(SMOKE.measured)
    called = {key[0] for one in regressions(said.cases) for key in one}
    return said.status, HPL_CHECK in called


def test_an_unchanged_machine_never_exits_with_1() -> None:
    for seed in range(4):
        assert judged("20 days", NOTHING, seed) == (0, False)


def test_hpl_that_is_40_percent_slower_is_found_after_20_days() -> None:
    for seed in range(3):
        assert judged("20 days", Change(HPL, 1.4), seed) == (1, True)


def test_simple_rules_find_large_changes_and_nothing_unchanged() -> None:
    _, runs = made("20 days")
    beside = Beside(SMOKE, BARE_METAL, runs)
    plain = later_run(SMOKE, BARE_METAL, [9])
    hpl = affected_by(Change(HPL, 1.1), SMOKE, np.random.default_rng(1))
    for by, found in ((1.0, False), (1.05, True)):
        run = plain.with_change(Change(HPL, by), hpl)
        assert beside.likelihood_ratio(run, hpl) is found
        by_hand = beside.by_hand(run, hpl)
        assert (by_hand.affected > 1.0) is found
        assert by_hand.others <= 1.0
        assert by_hand.launches or not found
    size = affected_by(Change(STACK, 1.4), SMOKE, np.random.default_rng(1))
    called = beside.mann_whitney(plain.with_change(Change(STACK, 1.4), size), size)
    assert called == (True, False)
    assert beside.mann_whitney(plain, size) == (False, False)


# --- what is kept -------------------------------------------------------------------------------


def counted(
    cell: Cell, basis: int, *, found: int = 3, by_hand: Sequence[Sequence[float]] = ((2.0, 0.5),)
) -> Counted:
    return Counted(
        str(cell), basis, len(by_hand) * 4, found, figures=400, figures_passed=300,
        launches=40, node_seconds=200.0, by_hand=[*by_hand] * 4,
    )  # fmt: skip


def test_cells_counted_again_where_more_runs_are_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, int]] = []

    def count(cells: list[Cell], basis: int, runs: int, *, alone: bool) -> list[Counted]:
        assert not alone
        asked.append((basis, runs))
        return [Counted(str(c), basis, metal.share_of(c, runs)) for c in cells]

    monkeypatch.setattr(metal, "counted", count)
    kept = tmp_path / "bench" / "kept.jsonl"
    say: list[str] = []

    def run(runs: int) -> list[Counted]:
        wanted = "smoke | cloud | 5 days"
        return metal.measured(
            metal.CHECK, kept, lambda name: name.startswith(wanted), runs, 2, say.append
        )

    assert len(run(8)) == 6
    assert asked == [(0, 4), (1, 4)]
    with kept.open("a", encoding="utf-8") as file:
        file.write('{"cell": "cut of')
    assert [one.runs for one in run(8)] == [4, 4, 2, 2, 2, 2]
    assert len(asked) == 2
    run(16)
    assert asked[2:] == [(0, 8), (1, 8)]


def test_the_judge_alone_finds_what_a_check_finds() -> None:
    cells = [
        Cell("smoke", "bare metal", "5 days", change)
        for change in (NOTHING, Change(HPL, 1.05), Change(BENCHMARK, 1.20), Change(UPGRADED, 1.10))
    ]
    alone, whole = (metal.counted(cells, 0, 4, alone=alone) for alone in (True, False))
    assert [(one.found, one.accused) for one in alone] == [(o.found, o.accused) for o in whole]
    assert [one.runs for one in alone] == [4, 2, 2, 2]
    assert any(one.found for one in alone)
    assert not any(one.accused for one in alone)


def test_table_has_shares_intervals_and_widened_tolerances() -> None:
    nothing, hpl = (
        Cell("smoke", "bare metal", "5 days", change) for change in (NOTHING, Change(HPL, 1.05))
    )
    unchanged = counted(nothing, 0, found=0, by_hand=[[0.0, 2.5], [0.0, 0.5]])
    kept = [unchanged, counted(hpl, 0), counted(hpl, 1, by_hand=[[3.0, 0.5]])]
    content = json.loads(json.dumps({"metal": metal.plain(kept), "started": "2026-11-29T06:00"}))
    text = dict(measured.texts([content]))["metal"]
    assert "smoke, bare metal:" in text
    assert f"2026-11-29: seed {metal.SEED}, 2 baselines" in text
    assert metal.widened([unchanged]) == 2.5
    (row,) = (line for line in text.splitlines() if "HPL 5 %" in line)
    cells = [cell.strip() for cell in row.split("|")]
    assert cells[1:5] == ["5 days", "HPL 5 %", "8", "75 (75-75)"]
    assert cells[14:18] == ["100 (>68.8)", "0 (<31.2)", "2.5 x: 50 (0-100)", "0 (<31.2)"]


def test_an_aim_is_met_where_the_interval_holds_it() -> None:
    nothing, hpl = (
        Cell("smoke", "bare metal", "5 days", change) for change in (NOTHING, Change(HPL, 1.05))
    )
    kept = [counted(hpl, k, found=found) for k, found in enumerate((2, 4))]
    kept.append(dataclasses.replace(counted(nothing, 0, found=0), accused=1))
    met = {row[0].partition(": ")[0]: row[1::2] for row in metal_aims.aim_rows(kept)}
    assert met[hpl.title] == ("75.0 (50.0-100.0)", "met")
    below = metal_aims.aim_rows([counted(hpl, k, found=2) for k in range(2)])
    assert below[0][1::2] == ("50.0 (50.0-50.0)", "missed")
    alarms = next(row for row in metal_aims.aim_rows(kept) if "alarms" in row[0])
    assert alarms[1::2] == ("25.0 (25.0-25.0)", "missed")


def test_tolerances_by_hand_that_find_more_are_told() -> None:
    nothing, hpl = (
        Cell("smoke", "bare metal", "5 days", change) for change in (NOTHING, Change(HPL, 1.05))
    )
    unchanged = counted(nothing, 0, found=0, by_hand=[[0.0, 0.5]])
    better = [counted(hpl, k, found=1) for k in range(2)]
    (row,) = metal_aims.by_hand_rows([unchanged, *better])
    assert row == (hpl.title, "25", "100", "-75 to -75", "0")
    assert not metal_aims.by_hand_rows([unchanged, *(counted(hpl, k, found=4) for k in range(2))])


def test_change_found_in_80_percent_lies_between_simulated() -> None:
    by = [(np.log(1.05), 0.5), (np.log(1.10), 0.98)]
    assert 0.05 < metal_aims.found_in(by, 0.8) < 0.10
    assert metal_aims.found_in([(np.log(1.05), 0.8)], 0.8) == pytest.approx(0.05)
    assert metal_aims.found_in(by, 0.99) == float("inf")


def test_likelihood_ratio_finds_four_of_five_from_its_threshold() -> None:
    runs = baseline_runs(SMOKE, BARE_METAL, BASELINES["5 days"], [11])
    beside = Beside(SMOKE, BARE_METAL, runs)
    hpl = affected_by(Change(HPL), SMOKE, np.random.default_rng(1))
    change = Change(HPL, 1.0 + beside.found_in_80(hpl))
    later = (later_run(SMOKE, BARE_METAL, [12, k]).with_change(change, hpl) for k in range(40))
    # The baseline is drawn once, and is what it is: this is no exact share.
    assert 20 <= sum(beside.likelihood_ratio(run, hpl) for run in later) <= 40


def test_what_the_rule_before_said_is_told_of_cells_that_are_known() -> None:
    known = {str(cell) for cell in metal.CELLS}
    assert known.issuperset(metal.before())
    hpl = Cell("smoke", "bare metal", "5 days", Change(HPL, 1.05))
    (total,) = metal.totals([counted(hpl, k, found=3) for k in range(2)]).values()
    assert total == metal.Before(8, 6, 0, 0.75)
    assert total.told(total.found) == "75"


def test_every_cell_has_a_name_of_its_own_and_is_known() -> None:
    names = [str(cell) for cell in metal.CELLS]
    assert len(names) == len(set(names))
    for cell in metal.CELLS:
        assert cell.setting in SETTINGS
        assert cell.machine in MACHINES
        assert cell.baseline in BASELINES


def test_forms_have_one_sample_for_each_measurement() -> None:
    form: Form = form_of("smoke, three stacks, two nodes")
    for case in form.cases:
        places = case.places[case.compared]
        assert len(set(places.tolist())) == len(places)


def test_a_machine_that_creeps_is_told_by_the_way_of_a_check() -> None:
    crept = simulated_creeping.half_year(0.03, 0, weeks=4)
    assert crept.week in (2, 3, 4)
    assert crept.by in ("baseline", "check")
    steady = simulated_creeping.Told(0.0, 0)
    assert simulated_creeping.rows([steady, crept]) == [
        ("0 %", "1", "0", "", "", "0"),
        ("3 %", "1", "1", "1", str(crept.week), str(int(crept.by == "check"))),
    ]
