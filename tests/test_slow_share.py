"""Launches that are far worse: how many of them an unchanged machine has."""

import math
from typing import Any

import pytest

from clustergate.stats import slow_share


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
    usual = slow_share.usual_share(of["known"], of["together"])
    assert slow_share.is_slow_share(slow, launches, usual, of["compared"]) == certain
    assert slow_share.is_doubtful_share(slow, launches, usual) == doubtful


def test_the_chance_of_slow_launches_is_the_binomial_one() -> None:
    # 1 - 0.97**3, and 0.97 and 0.03 for each way.
    assert slow_share.chance_of_slow(1, 3, slow_share.usual_share(None)) == pytest.approx(
        1 - 0.97**3
    )
    assert slow_share.chance_of_slow(3, 3, 0.03) == pytest.approx(0.03**3)
    assert slow_share.chance_of_slow(0, 3, 0.03) == 1.0
    assert slow_share.slow_launches([0.0, math.log(2.9), math.log(3.1)]) == [math.log(3.1)]
