"""The gate: margins with a known chance of error, on numbers whose answer is known."""

import dataclasses
import math
import statistics
from typing import Any

import numpy as np
import pytest

from clustergate.model import Scatter
from clustergate.statistics import gate


def scatter(**changes: object) -> Scatter:
    """Return a figure of twenty quiet runs of ten launches on six days."""
    known = {"runs": 20, "launches": 10, "days": 6, "usual": 0.01, "spread": 0.005}
    known |= {"freedom": 19.0, "compared": 10}
    return Scatter(**{**known, **changes})  # type: ignore[arg-type]


def test_the_best_level_is_one_that_another_launch_confirms() -> None:
    launches = [10.0, 10.4, 12.0, 15.0]
    assert gate.best_level(launches, higher_is_better=False) == 10.0
    assert gate.best_level([7.0, *launches], higher_is_better=False) == 10.0
    assert gate.best_level([*launches, 14.5, 30.0], higher_is_better=True) == 15.0
    assert gate.best_level([7.0, 10.0], higher_is_better=False) == 7.0
    assert gate.best_level([7.0], higher_is_better=True) == 7.0


def test_days_are_a_level_of_their_own() -> None:
    # Three days two apart, on each two runs that are 0.2 apart.
    days = [[0.0, 0.2], [2.0, 2.2], [4.0, 4.2]]
    within = statistics.variance(days[0])
    between = statistics.variance([0.1, 2.1, 4.1]) - within / 2
    assert gate.spread_of(days) == pytest.approx(math.sqrt(between + within))
    assert gate.spread_of([[1.0, 2.0, 4.0]]) == pytest.approx(statistics.stdev([1.0, 2.0, 4.0]))
    assert gate.spread_of([[1.0], [2.0], [4.0]]) == pytest.approx(statistics.stdev([1, 2, 4]))
    # Days that differ by less than their runs add nothing.
    alike = [[0.0, 1.0], [0.1, 0.9], [0.0, 1.0]]
    assert gate.spread_of(alike) == pytest.approx(math.sqrt((0.5 + 0.32 + 0.5) / 3))
    # Many runs of few days know no more days.
    many = [[0.1 * k for k in range(50)], [9.0 + 0.1 * k for k in range(50)]]
    assert gate.spread_of(many) > statistics.stdev([x for day in many for x in day]) + 1


def test_a_family_lends_what_it_knows_of_its_spreads() -> None:
    lot = np.random.default_rng(5)
    runs = 6
    alike = lot.normal(0.0, 0.02, (runs, 60)).std(axis=0, ddof=1)
    pooled = gate.pooled({str(k): float(s) for k, s in enumerate(alike)}, runs, 1)
    # All scatter by 2 %: what each showed was luck.
    assert max(spread for spread, _ in pooled.values()) < 0.9 * alike.max()
    assert all(spread == pytest.approx(0.02, rel=0.35) for spread, _ in pooled.values())
    assert min(freedom for _, freedom in pooled.values()) > 20
    # In a family that differs by itself each keeps nearer to its own.
    wild = {str(k): 0.002 * 5.0 ** (k % 5) for k in range(20)}
    kept = gate.pooled(wild, runs, 1)
    assert all(wild[name] * 0.7 < kept[name][0] < wild[name] * 2 for name in wild)
    assert all(freedom < 7 for _, freedom in kept.values())
    assert gate.pooled({"one": 0.02, "other": 0.03}, runs, 1)["one"] == (0.02, 5.0)


def test_where_days_are_known_there_are_no_more_of_them_than_there_were() -> None:
    spreads = {str(k): 0.02 for k in range(60)}
    assert all(f == math.inf for _, f in gate.pooled(spreads, 30, 1).values())
    assert {f for _, f in gate.pooled(spreads, 30, gate.FEWEST_DAYS).values()} == {4.0}


def test_the_margin_is_the_prediction_limit_of_students_t() -> None:
    # 0.005 / 4 / 10 = 0.000125 on one side; t with 19 degrees of freedom has 4.491 there.
    expected = 0.01 + 4.491 * 0.05 * math.sqrt(1.05)
    assert gate.margin(scatter(spread=0.05), 10) == pytest.approx(expected, rel=2e-4)
    assert gate.margin(scatter(spread=0.05, compared=100), 10) > expected
    assert gate.margin(scatter(spread=0.05, usual=0.1), 10) == pytest.approx(expected + 0.09, 1e-3)
    # 5 % is tolerated, however quiet a machine is.
    assert gate.margin(scatter(spread=0.0), 10) == gate.TOLERATED
    with pytest.raises(ValueError, match="something to compare"):
        gate.margin(scatter(compared=0), 10)


@pytest.mark.parametrize(
    ("changes", "launches", "shift"),
    [
        ({"days": 1}, 10, math.log(2.0)),
        ({"days": 4}, 10, math.log(2.0)),
        ({"days": 4, "pooled": True}, 10, math.log(1.6)),
        ({"days": 1}, 3, math.log(2.5)),
        ({"days": 1, "pooled": True}, 3, math.log(2.0)),
        ({"days": 1, "launches": 1, "repeated": False, "apart": True}, 1, math.log(1.5)),
        # Days are known, but not of runs of so few launches.
        ({}, 9, math.log(2.5)),
    ],
)
def test_what_no_days_tell_is_what_unchanged_machines_did(
    changes: dict[str, object], launches: int, shift: float
) -> None:
    assert gate.margin(scatter(**changes), launches) == pytest.approx(shift)
    wild = scatter(**{**changes, "spread": 0.5})
    assert gate.margin(wild, launches) > 2.0


def test_of_a_run_with_too_few_launches_nothing_is_said() -> None:
    assert gate.margin(scatter(), 2) == math.inf
    assert gate.margin(scatter(launches=2), 10) == math.inf
    assert gate.margin(scatter(launches=1, repeated=False), 1) == gate.TOLERATED


def test_what_passes_leaves_no_room_for_ten_percent() -> None:
    few = scatter(days=1, launches=4)
    assert gate.passes_below(few) < gate.passes_below(scatter(days=1)) < math.log(1.05)
    assert gate.passes_below(dataclasses.replace(few, repeated=False)) > gate.passes_below(few)


@pytest.mark.parametrize(
    ("slow", "launches", "changes", "certain", "doubtful"),
    [
        (0, 10, {}, False, False),
        (1, 10, {}, False, False),
        (2, 10, {}, False, True),
        (1, 3, {}, False, True),
        # A fault in a third of the launches would often show no more.
        (1, 6, {}, False, True),
        (1, 7, {}, False, False),
        (1, 3, {"known": 0.1}, False, True),
        (6, 10, {}, True, True),
        (3, 10, {"together": True, "compared": 80}, False, True),
        (4, 10, {"together": True, "compared": 80}, True, True),
        # As they were in the baseline.
        (4, 10, {"known": 0.2}, False, False),
        (1, 1, {}, False, True),
    ],
)
def test_slow_launches_are_counted_against_what_is_usual(
    slow: int, launches: int, changes: dict[str, Any], certain: bool, doubtful: bool
) -> None:
    of = {"known": 0.0, "together": False, "compared": 10, **changes}
    usual = gate.usual_share(of["known"], of["together"])
    assert gate.is_slow_share(slow, launches, usual, of["compared"]) == certain
    assert gate.is_doubtful_share(slow, launches, usual) == doubtful


def test_the_chance_of_slow_launches_is_the_binomial_one() -> None:
    # 1 - 0.97**3, and 0.97 and 0.03 for each way.
    assert gate.chance_of_slow(1, 3, gate.usual_share(None)) == pytest.approx(1 - 0.97**3)
    assert gate.chance_of_slow(3, 3, 0.03) == pytest.approx(0.03**3)
    assert gate.chance_of_slow(0, 3, 0.03) == 1.0
    assert gate.slow_launches([0.0, math.log(2.9), math.log(3.1)]) == [math.log(3.1)]


def test_tolerance_is_the_larger_of_margin_and_what_is_tolerated() -> None:
    assert gate.tolerance(0.0) == pytest.approx(0.05)
    assert gate.tolerance(math.log(1.2)) == pytest.approx(0.2)


def test_worse_is_positive_whichever_way_is_better() -> None:
    assert gate.worse_by(1.1, 1.0, higher_is_better=False) == pytest.approx(math.log(1.1))
    assert gate.worse_by(1.1, 1.0, higher_is_better=True) == pytest.approx(-math.log(1.1))
    with pytest.raises(ValueError, match="no ratio"):
        gate.worse_by(0.0, 1.0, higher_is_better=True)
