"""Nodes against the median of the nodes of their run: made figures, of which one is slow."""

import math
import random

import pytest

from clustergate.judge.nodes import BesideMedian, beside_median, slow_each_time

TOLERANCE = -math.log1p(-0.03)


def launching(
    slow: dict[str, float], seed: int, nodes: int = 16, sd: float = 0.005
) -> dict[str, float]:
    """Return what nodes cost, some of them more."""
    drawn = random.Random(seed)
    return {f"n{k:02}": slow.get(f"n{k:02}", 0.0) + drawn.gauss(0, sd) for k in range(nodes)}


def told(slow: dict[str, float], seed: int, **how: float) -> list[str]:
    """Return who is slow in three launchings."""
    times = [beside_median(launching(slow, 3 * seed + k, **how), TOLERANCE) for k in range(3)]  # type: ignore[arg-type]
    return slow_each_time([one for one in times if one])


def test_one_node_of_sixteen_that_is_five_percent_slow_is_named() -> None:
    named = [told({"n07": 0.05}, seed) for seed in range(200)]
    assert sum(one == ["n07"] for one in named) >= 180


def test_equal_nodes_are_not_accused() -> None:
    assert not any(told({}, seed) for seed in range(200))


def test_two_slow_nodes_do_not_hide_each_other() -> None:
    assert sorted(told({"n03": 0.06, "n07": 0.06}, 1)) == ["n03", "n07"]


def test_where_nodes_scatter_more_one_must_be_further_behind() -> None:
    scattered = beside_median(launching({"n07": 0.07}, 3, sd=0.03), TOLERANCE)
    assert scattered is not None
    assert scattered.bound > 0.07
    assert scattered.slow == []


def test_the_bound_is_that_of_the_formula() -> None:
    costs = {"a": 0.0, "b": 0.01, "c": 0.02, "d": 0.03, "e": 0.5}
    one = beside_median(costs, TOLERANCE)
    assert one is not None
    assert one.spread == pytest.approx(1.4826 * 0.01, rel=1e-3)
    assert one.bound == pytest.approx(4 * 1.4826 * 0.01 * math.sqrt(1 + 1.57 / 5), rel=1e-3)
    assert one.again == pytest.approx(one.bound * 2.326 / 4, rel=1e-3)
    assert one.slow == ["e"]


def test_three_nodes_do_not_tell() -> None:
    assert beside_median({"a": 0.0, "b": 0.0, "c": 1.0}, TOLERANCE) is None


def test_a_node_that_is_slow_once_and_not_again_is_none() -> None:
    first, again, never = (
        BesideMedian({"a": by, "b": 0.0}, 0.0, 0.05, 0.03) for by in (0.1, 0.04, 0.0)
    )
    assert slow_each_time([first, first]) == ["a"]
    assert slow_each_time([first, never]) == []
    # Beyond what one of many is by chance, and again beyond what this one is.
    assert slow_each_time([again, first, again]) == ["a"]
    assert slow_each_time([again, again]) == []
