"""The gate: margins with a known chance of error, on numbers whose answer is known."""

import dataclasses
import math

import numpy as np
import pytest

from clustergate.model import Scatter, Steady
from clustergate.statistics import gate


def test_run_margin_is_the_prediction_limit_of_students_t() -> None:
    noise = gate.Noise(spread=0.01, runs=10, launches=5)
    # 0.005 / 2 / 5 = 0.0005 on one side; t with 9 degrees of freedom has 4.781 there (any table).
    expected = 4.781 * 0.01 * math.sqrt(1.1)
    assert gate.run_margin(noise, 5) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(("runs", "comparisons"), [(1, 10), (10, 0)])
def test_run_margin_without_runs_or_comparisons_is_refused(runs: int, comparisons: int) -> None:
    with pytest.raises(ValueError, match=r"at least two runs|something to compare"):
        gate.run_margin(gate.Noise(0.01, runs, 5), comparisons)


def test_a_spread_of_nothing_still_has_a_margin() -> None:
    assert gate.run_margin(gate.Noise(0.0, 10, 5), 25) > 0.002


def test_a_tail_is_the_worst_launch_and_those_that_shares_lie_beyond() -> None:
    residuals = np.random.default_rng(1).permutation(np.arange(1, 200)) / 100  # 0.01 ... 1.99
    tail = gate.tail_of(residuals)
    # Of 199 launches and the next one, 2 are 1 % and 100 are half.
    assert tail[0] == 1.99
    assert tail[1] == pytest.approx(1.98)
    assert tail[-1] == pytest.approx(1.0)
    assert list(tail) == sorted(tail, reverse=True)
    assert gate.tail_of([0.5]) == (0.5,) * (1 + len(gate.TAIL_SHARES))
    with pytest.raises(ValueError, match="needs launches"):
        gate.tail_of([])


def test_launch_margin_is_the_launch_that_so_many_others_rarely_all_exceed() -> None:
    residuals = np.arange(1, 1000) / 1000
    tail = gate.tail_of(residuals)
    chance = gate.FALSE_ALARM_RATE / 2 / 10
    for launches in (3, 5, 10):
        share = chance ** (1 / launches)
        assert gate.launch_margin(tail, 999, launches, 10) == pytest.approx(1 - share, abs=1e-3)


def test_launch_margin_of_too_few_launches_is_infinite() -> None:
    tail = gate.tail_of([0.0, 0.1, 0.2])
    assert gate.launch_margin(tail, 3, 1, 10) == math.inf
    with pytest.raises(ValueError, match="needs launches"):
        gate.launch_margin(tail, 3, 0, 10)


def test_more_launches_make_the_margin_smaller() -> None:
    tail = gate.tail_of(np.random.default_rng(1).exponential(0.1, 200))
    margins = [gate.launch_margin(tail, 200, launches, 63) for launches in (3, 5, 10, 30)]
    assert margins == sorted(margins, reverse=True)
    assert margins[0] > margins[-1]


# Quiet runs of five launches, of which the worst of hundred was 30 % worse.
TAIL = (0.26, 0.2, 0.15, 0.1, 0.08, 0.06, 0.05, 0.04, 0.03, 0.02, 0.01, 0.0, 0.0)


def scatter(**changes: object) -> Scatter:
    known = {"runs": 20, "launches": 5, "spread": 0.005, "tail": TAIL, "compared": 10}
    return Scatter(**{**known, **changes})  # type: ignore[arg-type]


def test_a_run_of_fewer_launches_than_its_baseline_has_a_wider_margin() -> None:
    margins = [gate.margin(scatter(pooled=True), launches) for launches in (10, 5, 3)]
    assert margins == sorted(margins)
    assert margins[0] < margins[1] < margins[2] < 0.26
    # By how many figures are judged beside it, too.
    assert gate.margin(scatter(pooled=True, compared=100), 5) > margins[1]
    assert gate.margin(scatter(), 5) > margins[1]


def test_of_a_run_with_too_few_launches_nothing_is_said() -> None:
    assert gate.margin(scatter(), 2) == math.inf
    assert gate.margin(scatter(launches=2, runs=50), 5) == math.inf
    # 25 launches do not tell what three of them do once in a million times: the worst stands for it
    # where the baseline had as few.
    assert gate.margin(scatter(runs=5, compared=2000), 5) == 0.26
    assert gate.margin(scatter(runs=5, compared=2000), 4) == math.inf


def test_a_benchmark_that_is_not_launched_again_has_the_spread_of_its_history() -> None:
    known = scatter(launches=1, spread=0.05, tail=(0.02,) * 13, repeated=False)
    assert gate.margin(known, 1) == gate.run_margin(gate.Noise(0.05, 20, 1), 10)
    assert gate.margin(scatter(launches=1, repeated=False), 1) == 0.26


def _unchanged(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Return launches with two modes, a tail on the slow side, and a spread of 1 %."""
    slow = np.where(generator.random(shape) < 0.15, 0.5, 0.0)
    return generator.normal(0.0, 0.01, shape) + slow + generator.exponential(0.01, shape)


def test_unchanged_runs_with_modes_and_tails_rarely_regress_and_slow_ones_do() -> None:
    generator = np.random.default_rng(7)
    figures, runs, launches, trials = 20, 10, 8, 200
    alarms = found = 0
    for _ in range(trials):
        baseline = _unchanged(generator, (runs, launches, figures))
        best = baseline.min(axis=1)
        centre = np.median(best, axis=0)
        new = _unchanged(generator, (launches, figures)).min(axis=0) - centre
        regressed = []
        for k in range(figures):
            noise = gate.Noise(float(best[:, k].std(ddof=1)), runs, launches)
            tail = gate.tail_of((baseline[:, :, k] - centre[k]).ravel())
            margin = max(
                gate.run_margin(noise, figures),
                gate.launch_margin(tail, runs * launches, launches, figures),
            )
            regressed.append(gate.change(float(new[k]), margin).regressed)
            found += gate.change(float(new[k]) + math.log(1.25), margin).regressed
        alarms += any(regressed)
    # 1 % is promised; 200 runs with 5 alarms or fewer are likely then, and unlikely at 5 %.
    assert alarms <= 5
    assert found > 0.9 * trials * figures


def test_a_change_is_a_regression_only_beyond_doubt_and_beyond_what_is_tolerated() -> None:
    assert gate.change(math.log(1.08), 0.03).regressed
    assert not gate.change(math.log(1.04), 0.001).regressed
    assert not gate.change(math.log(1.08), 0.10).regressed


def test_what_could_hide_is_told() -> None:
    assert not gate.change(0.0, 0.05).unseen
    assert gate.change(0.0, 0.12).unseen
    assert gate.change(math.log(1.08), 0.10).unseen
    assert not gate.change(math.log(1.5), 0.10).unseen


def test_tolerance_is_the_larger_of_margin_and_what_is_tolerated() -> None:
    assert gate.tolerance(0.0) == pytest.approx(0.05)
    assert gate.tolerance(math.log(1.2)) == pytest.approx(0.2)


def test_a_group_weighs_quiet_figures_more() -> None:
    weights = gate.group_weights({"quiet": 0.01, "loud": 0.05})
    # The median variance, 0.0013, is added to both: 0.0014 and 0.0038.
    assert weights["quiet"] == pytest.approx(0.0038 / 0.0052)
    assert sum(weights.values()) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="needs a figure"):
        gate.group_weights({})


def test_a_group_is_slower_by_the_weighted_mean_and_lacks_no_figure() -> None:
    weights = {"8B": 0.25, "64B": 0.75}
    assert gate.group_worse_by(weights, {"8B": 0.2, "64B": 0.1}) == pytest.approx(0.125)
    with pytest.raises(KeyError):
        gate.group_worse_by(weights, {"8B": 0.2})


def test_worse_is_positive_whichever_way_is_better() -> None:
    assert gate.worse_by(1.1, 1.0, higher_is_better=False) == pytest.approx(math.log(1.1))
    assert gate.worse_by(1.1, 1.0, higher_is_better=True) == pytest.approx(-math.log(1.1))
    with pytest.raises(ValueError, match="no ratio"):
        gate.worse_by(0.0, 1.0, higher_is_better=True)


def test_how_many_more_launches_would_do() -> None:
    known = scatter(pooled=True, tail=tuple(3 * value for value in TAIL))

    def decided(launches: int) -> bool:
        return not gate.change(0.0, gate.margin(known, launches)).unseen

    assert not decided(3)
    more = gate.more_launches(known, 3, 0.0)
    assert more is not None
    assert decided(3 + more)
    assert not decided(3 + more - 1)


def test_where_runs_differ_more_launches_help_in_all_of_them_or_more_runs_do() -> None:
    known = scatter(spread=0.03, pooled=True)
    assert gate.more_launches(known, 5, 0.0) is None
    more = gate.more_launches(known, 5, 0.0, of_baseline_too=True)
    assert more is not None
    assert more > 3
    few = scatter(runs=5, spread=0.012, launches=1, tail=(0.01,) * 13, repeated=False)
    assert gate.change(0.0, gate.margin(few, 1)).unseen
    runs = gate.more_runs(few, 1, 0.0)
    assert runs is not None
    more_of_them = dataclasses.replace(few, runs=5 + runs)
    assert not gate.change(0.0, gate.margin(more_of_them, 1)).unseen
    assert gate.more_launches(few, 1, 0.0) is None
    assert gate.more_runs(scatter(spread=0.3), 5, 0.0) is None


def test_steady_launches_are_those_beside_which_nothing_was_slowed() -> None:
    company = np.concatenate([np.linspace(0.0, 0.1, 101), np.full(50, 0.4)])
    floor = gate.steady_floor(company)
    # 2 % of 151 launches: the third of those that are 0.001 apart.
    assert floor == pytest.approx(0.003, abs=1e-9)
    assert gate.are_steady(company, floor).sum() == 101
    assert gate.are_steady(floor + math.log(1.149), floor)
    assert not gate.are_steady(floor + math.log(1.151), floor)


def test_the_best_of_a_single_figure_has_the_tail_of_its_launches() -> None:
    residuals = np.arange(1, 1000).reshape(-1, 1) / 1000
    tail = gate.best_tail_of(residuals, np.ones(1))
    assert tail[0] == 0.999
    # A share p lies beyond 1 - p; between whole numbers of launches it is read off a straight line.
    assert tail[5:] == pytest.approx([1 - share for share in gate.TAIL_SHARES[4:]], abs=0.02)
    assert list(tail) == sorted(tail, reverse=True)
    assert gate.best_tail_of(residuals, np.ones(1)) == tail
    with pytest.raises(ValueError, match="needs launches"):
        gate.best_tail_of(np.empty((0, 1)), np.ones(1))


def test_the_mean_of_bests_is_far_below_the_best_mean() -> None:
    lot = np.random.default_rng(3)
    residuals = lot.exponential(0.1, (400, 7))
    weights = np.full(7, 1 / 7)
    best, mean = gate.best_tail_of(residuals, weights), gate.tail_of(residuals @ weights)
    assert all(b < m for b, m in zip(best[7:], mean[7:], strict=True))
    # Drawn anew, few runs of so many launches lie beyond: by the chance of one comparison.
    share = gate.TAIL_SHARES[-1]
    count = math.ceil(math.log(gate.FALSE_ALARM_RATE / 2) / math.log(share))
    runs = lot.exponential(0.1, (20_000, count, 7)).min(axis=1) @ weights
    assert (runs > best[-1]).mean() < 2 * gate.FALSE_ALARM_RATE / 2


STEADILY = Steady(90, 0.01, tuple(value / 4 for value in TAIL), {"Bcast.8B": 1.0})


def test_steady_launches_make_the_margin_of_a_group_smaller_and_never_larger() -> None:
    wide = tuple(3 * value for value in TAIL)
    alone = scatter(pooled=True, tail=wide)
    beside = scatter(pooled=True, tail=wide, steady=STEADILY)
    assert gate.margin(beside, 8) == gate.margin(alone, 8)
    assert gate.margin(beside, 8, 4) == gate.margin(alone, 8)
    margins = [gate.margin(beside, 8, steady) for steady in (5, 6, 8)]
    assert margins == sorted(margins, reverse=True)
    assert gate.run_margin(gate.Noise(0.005, 20, 5), 10) <= margins[-1]
    assert margins[0] < gate.margin(alone, 8)
    # 90 launches do not tell what five of them do once in 40 000 million times.
    many = dataclasses.replace(beside, compared=10**8)
    assert gate.margin(many, 8, 5) == gate.margin(dataclasses.replace(many, steady=None), 8)
    assert gate.margin(beside, 2, 5) == math.inf


def test_more_launches_are_taken_for_as_steady_as_the_others() -> None:
    known = scatter(pooled=True, tail=(0.3,) * 9 + (0.1, 0.1, 0.02, 0.02), steady=STEADILY)
    without, with_them = (gate.more_launches(known, 5, 0.0, steady=k) for k in (0, 4))
    assert without is not None
    assert with_them is not None
    assert with_them < without


def _slowed_in_streaks(generator: np.random.Generator, count: int) -> np.ndarray:
    """Return which launches a neighbour slows: a fifth, and after one six of ten times the next."""
    draws, slowed = generator.random(count), np.zeros(count, dtype=bool)
    for k in range(1, count):
        slowed[k] = draws[k] < (0.6 if slowed[k - 1] else 0.1)
    return slowed


def test_streaks_of_slowed_launches_are_no_alarm_and_a_slower_group_is_found() -> None:
    """Ten launches of three groups; a neighbour slows all groups of a launch alike."""
    lot = np.random.default_rng(11)
    runs, launches, trials, weights = 20, 10, 150, np.full(7, 1 / 7)
    alarms = found = judged = 0
    for _ in range(trials):
        slowed = _slowed_in_streaks(lot, (runs + 1) * launches).reshape(-1, launches, 1, 1)
        made = lot.exponential(0.05, (runs + 1, launches, 3, 7)) + 0.3 * slowed
        bests = made[:runs].min(axis=1)
        made -= np.median(bests, axis=0)
        of_launches = made[:runs, :, 0].reshape(-1, 7)
        company = made[:, :, 1:].mean(axis=(2, 3))
        floor = gate.steady_floor(company[:runs])
        steady = company[:runs].ravel() <= floor + gate.STEADY
        known = scatter(
            launches=launches,
            spread=float(np.std(bests[:, 0] @ weights, ddof=1)),
            tail=gate.tail_of(of_launches @ weights),
            pooled=True,
            steady=Steady(
                int(steady.sum()), floor, gate.best_tail_of(of_launches[steady], weights), {}
            ),
        )
        count = int((company[runs] <= floor + gate.STEADY).sum())
        margin = gate.margin(known, launches, count)
        worse_by = float(made[runs, :, 0].min(axis=0) @ weights)
        alarms += gate.change(worse_by, margin).regressed
        if count >= gate.FEWEST_STEADY_OF_RUN:
            judged += 1
            found += gate.change(worse_by + math.log(1.10), margin).regressed
    assert alarms <= 2
    assert judged > trials / 2
    assert found > 0.9 * judged
