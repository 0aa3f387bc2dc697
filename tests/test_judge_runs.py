"""The runs of a baseline: the level that they reached, and what one more differs by."""

import itertools
import math
import statistics

import numpy as np
import pytest

from clustergate.core.model import BaselineRuns, Better
from clustergate.judge.runs import best_level, luck, spread
from clustergate.judge.scatter import lent


def test_the_best_level_is_one_that_another_launch_confirms() -> None:
    launches = [10.0, 10.4, 12.0, 15.0]
    assert best_level(launches, Better.LOWER) == 10.0
    assert best_level([7.0, *launches], Better.LOWER) == 10.0
    assert best_level([*launches, 14.5, 30.0], Better.HIGHER) == 15.0
    assert best_level([7.0, 10.0], Better.LOWER) == 7.0
    assert best_level([7.0], Better.HIGHER) == 7.0


def spread_of(levels) -> float:
    """Return the spread of runs of some days, by the logarithms of their values."""
    days = [f"2026-11-{day:02}" for day, runs in enumerate(levels, 1) for _ in runs]
    values = tuple(math.exp(level) for runs in levels for level in runs)
    names = tuple(f"run{k}" for k in range(len(days)))
    return spread(BaselineRuns(names, tuple(days), values, 1))


def test_days_are_a_level_of_their_own() -> None:
    # Three days two apart, on each two runs that are 0.2 apart.
    days = [[0.0, 0.2], [2.0, 2.2], [4.0, 4.2]]
    within = statistics.variance(days[0])
    between = statistics.variance([0.1, 2.1, 4.1]) - within / 2
    assert spread_of(days) == pytest.approx(math.sqrt(between + within))
    assert spread_of([[1.0, 2.0, 4.0]]) == pytest.approx(statistics.stdev([1.0, 2.0, 4.0]))
    assert spread_of([[1.0], [2.0], [4.0]]) == pytest.approx(statistics.stdev([1, 2, 4]))
    # Days that differ by less than their runs add nothing.
    alike = [[0.0, 1.0], [0.1, 0.9], [0.0, 1.0]]
    assert spread_of(alike) == pytest.approx(math.sqrt((0.5 + 0.32 + 0.5) / 3))
    # Many runs of few days know no more days.
    many = [[0.1 * k for k in range(50)], [9.0 + 0.1 * k for k in range(50)]]
    assert spread_of(many) > statistics.stdev([x for day in many for x in day]) + 1


def test_the_best_of_many_runs_is_luckier_than_that_of_five() -> None:
    levels = [0.03, -0.02, 0.01, 0.05, 0.0, 0.04, 0.02, 0.06]
    names = tuple(f"run{k}" for k in range(len(levels)))
    of = BaselineRuns(names, names, tuple(map(math.exp, levels)), 1)
    of_five = statistics.fmean(map(min, itertools.combinations(levels, 5)))
    assert luck(of, Better.LOWER) == pytest.approx(of_five - min(levels))
    of_five = statistics.fmean(map(max, itertools.combinations(levels, 5)))
    assert luck(of, Better.HIGHER) == pytest.approx(max(levels) - of_five)
    few = BaselineRuns(names[:5], names[:5], of.values[:5], 1)
    assert luck(few, Better.LOWER) == 0.0
    # Half of them on far nodes: that is no luck of the others.
    far = [level + 0.3 * (k % 2) for k, level in enumerate(levels)]
    where = ("same switch", "another group") * 4
    placed = BaselineRuns(names, names, tuple(map(math.exp, far)), 1, distances=where)
    assert luck(placed, Better.LOWER) < 0.05


def test_worse_is_positive_whichever_way_is_better() -> None:
    assert Better.LOWER.worse_by(1.1, 1.0) == pytest.approx(math.log(1.1))
    assert Better.HIGHER.worse_by(1.1, 1.0) == pytest.approx(-math.log(1.1))
    with pytest.raises(ValueError, match="no ratio"):
        Better.HIGHER.worse_by(0.0, 1.0)


def test_a_family_lends_what_it_knows_of_its_variances() -> None:
    lot = np.random.default_rng(5)
    alike = lot.normal(0.0, 0.02, (6, 60)).var(axis=0, ddof=1)
    pooled, more = lent(alike, 5)
    # All scatter by 2 %: what each showed was luck.
    assert pooled.max() < 0.9 * alike.max()
    assert np.sqrt(pooled) == pytest.approx(0.02, rel=0.35)
    assert more > 15
    # In a family that differs by itself each keeps nearer to its own.
    wild = np.array([0.002 * 5.0 ** (k % 5) for k in range(20)]) ** 2
    kept, more = lent(wild, 5)
    assert (np.sqrt(wild) * 0.7 < np.sqrt(kept)).all()
    assert (np.sqrt(kept) < np.sqrt(wild) * 2).all()
    assert more < 2
    assert lent(wild[:2], 5)[1] == 0.0
