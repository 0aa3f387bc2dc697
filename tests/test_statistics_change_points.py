from __future__ import annotations

import math

import numpy as np
import pytest

from clustergate.stats.change_points import change_points, share_spent

# Yearly flow of the Nile at Aswan, 1871 to 1970 (Cobb, The problem of the Nile, 1978): it fell
# after 1898, the 28th year.
NILE = [
    *(1120, 1160, 963, 1210, 1160, 1160, 813, 1230, 1370, 1140, 995, 935, 1110, 994, 1020, 960),
    *(1180, 799, 958, 1140, 1100, 1210, 1150, 1250, 1260, 1220, 1030, 1100, 774, 840, 874, 694),
    *(940, 833, 701, 916, 692, 1020, 1050, 969, 831, 726, 456, 824, 702, 1120, 1100, 832, 764),
    *(821, 768, 845, 864, 862, 698, 845, 744, 796, 1040, 759, 781, 865, 845, 944, 984, 897, 822),
    *(1010, 771, 676, 649, 846, 812, 742, 801, 1040, 860, 874, 848, 890, 744, 749, 838, 1050, 918),
    *(986, 797, 923, 975, 815, 1020, 906, 901, 1170, 912, 746, 919, 718, 714, 740),
]


def test_the_nile_fell_after_1898() -> None:
    (change,) = change_points(NILE, confidence=0.99)
    assert change.index == 28
    assert change.low is not None
    assert change.high is not None
    # The means differ by 247.8 (Cobb).
    assert change.low < -247.8 < change.high < 0


def test_a_change_that_is_taken_back_is_two() -> None:
    levels = 0.02 * np.random.default_rng(1).normal(size=36)
    levels[12:24] += 0.1
    first, second = change_points(levels.tolist(), confidence=0.99)
    assert (first.index, second.index) == (12, 24)
    assert first.shift == pytest.approx(0.1, abs=0.03)
    assert second.shift == pytest.approx(-0.1, abs=0.03)


def test_unchanged_series_have_no_changes() -> None:
    rng = np.random.default_rng(2)
    found = [change_points(rng.exponential(size=40).tolist(), confidence=0.99) for _ in range(300)]
    # 1 % of 300 are three; more than eight would be a chance of one in a hundred.
    assert sum(map(bool, found)) <= 8


@pytest.mark.parametrize(
    "values",
    [
        [],
        [1.0],
        [1.0, 2.0, 3.0, 4.0, 5.0],
        [3.0] * 50,
        [0.14, 0.15] * 20,
        [*[1.0, 1.01] * 10, 9.0, *[1.0, 1.01] * 10],
    ],
)
def test_where_nothing_can_be_told_there_is_no_change(values: list[float]) -> None:
    assert change_points(values, confidence=0.99) == ()


@pytest.mark.parametrize(("values", "confidence"), [([1.0, math.nan], 0.99), ([1.0], 1.0)])
def test_bad_input_is_refused(values: list[float], confidence: float) -> None:
    with pytest.raises(ValueError, match=r"finite|between 0 and 1"):
        change_points(values, confidence=confidence)


def test_looks_after_every_run_share_one_chance_of_error() -> None:
    # Each doubling of the values is charged once, with the most that a look within it may use.
    shares = {n: share_spent(n) for n in (*range(6, 12), *range(12, 24), 24, 48, 96, 6 * 2**20)}
    assert {shares[n] for n in range(6, 12)} == {1 / 2}
    assert {shares[n] for n in range(12, 24)} == {1 / 6}
    assert (shares[24], shares[48], shares[96]) == (1 / 12, 1 / 20, 1 / 30)
    assert sum(share_spent(6 * 2**k) for k in range(1000)) <= 1.0


def test_look_after_every_run_seldom_sees_a_false_change() -> None:
    rng = np.random.default_rng(4)
    ever = 0
    for _ in range(60):
        values = rng.exponential(size=30).tolist()
        ever += any(change_points(values[:n], confidence=0.9) for n in range(6, 31))
    # 10 % of 60 are six; more than eleven would be a chance of one in a hundred.
    assert ever <= 11
