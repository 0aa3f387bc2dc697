"""The gate: margins with a known chance of error, on numbers whose answer is known."""

import math

import numpy as np
import pytest

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


def test_launch_margin_is_the_launch_that_so_many_others_rarely_all_exceed() -> None:
    residuals = np.arange(1, 100) / 100  # 0.01 ... 0.99
    chance = gate.FALSE_ALARM_RATE / 2 / 10
    share = chance ** (1 / 5)  # of one launch in five
    beyond = math.floor(share * 100)
    # So many launches of the hundred (these and the next one) may be at it or beyond.
    assert gate.launch_margin(residuals, 5, 10) == pytest.approx((100 - beyond) / 100)


def test_launch_margin_of_too_few_launches_is_infinite() -> None:
    assert gate.launch_margin([0.0, 0.1, 0.2], 1, 10) == math.inf
    with pytest.raises(ValueError, match="needs launches"):
        gate.launch_margin([], 5, 10)


def test_more_launches_make_the_margin_smaller() -> None:
    residuals = np.random.default_rng(1).exponential(0.1, 200)
    margins = [gate.launch_margin(residuals, launches, 63) for launches in (3, 5, 10, 30)]
    assert margins == sorted(margins, reverse=True)
    assert margins[0] > margins[-1]


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
            residuals = (baseline[:, :, k] - centre[k]).ravel()
            margin = max(
                gate.run_margin(noise, figures), gate.launch_margin(residuals, launches, figures)
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


def test_a_group_weighs_quiet_figures_more_and_scatters_less_than_they_do() -> None:
    generator = np.random.default_rng(3)
    quiet = generator.normal(0.0, 0.01, 200)
    loud = generator.normal(0.0, 0.05, 200)
    baseline = gate.group_baseline({"quiet": quiet.tolist(), "loud": loud.tolist()}, launches=5)
    assert sum(baseline.weights.values()) == pytest.approx(1.0)
    assert baseline.weights["quiet"] > baseline.weights["loud"]
    assert baseline.noise.spread < 0.03
    assert baseline.noise == gate.Noise(baseline.noise.spread, 200, 5)


def test_a_group_is_slower_by_the_weighted_mean_and_lacks_no_figure() -> None:
    weights = {"8B": 0.25, "64B": 0.75}
    assert gate.group_worse_by(weights, {"8B": 0.2, "64B": 0.1}) == pytest.approx(0.125)
    with pytest.raises(KeyError):
        gate.group_worse_by(weights, {"8B": 0.2})


@pytest.mark.parametrize("residuals", [{}, {"a": [0.1]}, {"a": [0.1, 0.2], "b": [0.1]}])
def test_a_group_without_enough_is_refused(residuals: dict[str, list[float]]) -> None:
    with pytest.raises(ValueError, match=r"group needs|inhomogeneous"):
        gate.group_baseline(residuals, launches=5)


def test_worse_is_positive_whichever_way_is_better() -> None:
    assert gate.worse_by(1.1, 1.0, higher_is_better=False) == pytest.approx(math.log(1.1))
    assert gate.worse_by(1.1, 1.0, higher_is_better=True) == pytest.approx(-math.log(1.1))
    with pytest.raises(ValueError, match="no ratio"):
        gate.worse_by(0.0, 1.0, higher_is_better=True)


def test_launches_needed_grow_with_the_spread_of_launches_and_may_not_help() -> None:
    few = gate.launches_needed(gate.Noise(0.01, 10, 5), 25, within=0.02)
    many = gate.launches_needed(gate.Noise(0.015, 10, 5), 25, within=0.03)
    assert few is not None
    assert many is not None
    assert 5 < few < many
    # Runs that differ as much as this are not told apart by more launches of each.
    assert gate.launches_needed(gate.Noise(0.05, 10, 5), 25, within=0.001) is None
