from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from clustergate.core.model import Better
from clustergate.stats import ranks
from clustergate.stats.comparison import Comparison, Relation
from evaluations.launches import Pair, compare, of_two_sessions

RNG = np.random.default_rng
Noise = Callable[[np.random.Generator, int], "np.ndarray"]


def one(a: object, b: object, better: Better = Better.LOWER, **options: float) -> Comparison:
    (found,) = compare([Pair(a, b, better)], **options)  # type: ignore[arg-type]
    return found


def normal(spread: float) -> Noise:
    return lambda rng, n: np.exp(spread * rng.normal(size=n))


def autocorrelated(rng: np.random.Generator, n: int) -> np.ndarray:
    x = rng.normal(size=n)
    for k in range(1, n):
        x[k] = 0.5 * x[k - 1] + math.sqrt(1 - 0.5**2) * x[k]
    return np.exp(0.05 * x)


NOISES: dict[str, Noise] = {
    "normal": normal(0.05),
    "log-normal": lambda rng, n: np.exp(0.1 * np.exp(rng.normal(size=n))),
    "heavy tails": lambda rng, n: np.exp(np.clip(0.03 * rng.standard_t(2, n), -3, 3)),
    "two modes": lambda rng, n: (
        np.where(rng.random(n) < 0.4, 1.3, 1.0) * np.exp(0.01 * rng.normal(size=n))
    ),
    "quantised": lambda rng, n: np.round(1 + 0.05 * rng.normal(size=n), 1),
    "outliers": lambda rng, n: (
        np.exp(0.02 * rng.normal(size=n)) * np.where(rng.random(n) < 0.1, 3, 1)
    ),
    "autocorrelated": autocorrelated,
    "drifting": lambda rng, n: np.exp(np.linspace(0, 0.1, n) + 0.03 * rng.normal(size=n)),
}


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
@pytest.mark.parametrize(("n", "m"), [(20, 20), (8, 30)])
def test_nothing_is_better_than_itself_in_suites_of_hundreds(noise: Noise, n: int, m: int) -> None:
    rng = RNG(1)
    verdicts = set()
    for _ in range(5):
        suite = [Pair(noise(rng, n), noise(rng, m), Better.LOWER) for _ in range(200)]
        verdicts |= {told.verdict for told in compare(suite)}
    assert verdicts <= {Relation.EQUIVALENT, Relation.INCONCLUSIVE}


@pytest.mark.parametrize("better", [Better.LOWER, Better.HIGHER])
def test_ten_percent_found_in_twenty_launches_of_noise(better: Better) -> None:
    rng = RNG(2)
    noise = normal(0.03)
    found = [one(noise(rng, 20), 1.1 * noise(rng, 20), better) for _ in range(50)]
    wanted = Relation.A_BETTER if better is Better.LOWER else Relation.B_BETTER
    assert [told.verdict for told in found].count(wanted) >= 48
    assert all(told.low is not None and told.low >= 1.0 for told in found)
    covered = [told.low <= 1.1 <= told.high for told in found if told.low and told.high]
    assert sum(covered) >= 48


def test_equal_sets_are_usually_equivalent() -> None:
    rng = RNG(3)
    noise = normal(0.05)
    found = [one(noise(rng, 30), noise(rng, 30)) for _ in range(100)]
    assert [told.verdict for told in found].count(Relation.EQUIVALENT) >= 65
    for told in found:
        if told.verdict is Relation.EQUIVALENT:
            assert told.low is not None
            assert told.high is not None
            assert 1 / 1.05 <= told.low <= told.high <= 1.05


def test_what_differs_by_the_margin_is_hardly_ever_equivalent() -> None:
    rng = RNG(4)
    noise = normal(0.03)
    found = [one(noise(rng, 20), 1.06 * noise(rng, 20)) for _ in range(300)]
    assert [told.verdict for told in found].count(Relation.EQUIVALENT) <= 3


def test_a_small_but_certain_difference_is_equivalent_and_said() -> None:
    rng = RNG(5)
    told = one(normal(0.005)(rng, 30), 1.02 * normal(0.005)(rng, 30))
    assert told.verdict is Relation.EQUIVALENT
    assert told.remark == "a significant difference within the margin"


@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 2), (3, 3), (1, 30), (3, 4)])
def test_from_few_launches_nothing_can_be_told(n: int, m: int) -> None:
    told = one([1.0] * n, [9.0] * m)
    assert told.verdict is Relation.INCONCLUSIVE
    assert (told.low, told.high) == (None, None)
    assert told.further_launches is not None


@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [
        ([5] * 10, [5] * 10, Relation.EQUIVALENT),
        ([5] * 20, [6] * 20, Relation.A_BETTER),
        # Each may be anything between 0.145 and 0.155.
        ([0.15] * 20, [0.15] * 20, Relation.INCONCLUSIVE),
    ],
)
def test_constants(a: list[float], b: list[float], verdict: Relation) -> None:
    assert one(a, b).verdict is verdict


def test_the_ratio_is_the_median_of_all_ratios() -> None:
    a, b = [1.0, 2.0, 4.0, 7.0, 9.0], [3.0, 5.0, 6.0, 8.0, 11.0]
    logs = [math.log(y / x) for x in a for y in b]
    assert one(a, b).ratio == pytest.approx(math.exp(float(np.median(logs))))


def test_without_a_better_direction_nothing_is_better() -> None:
    rng = RNG(8)
    told = one(normal(0.02)(rng, 20), 2 * normal(0.02)(rng, 20), Better.NEITHER)
    assert told.verdict is Relation.INCONCLUSIVE
    assert "neither direction" in told.remark


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        ([1.0, 0.0] * 10, [1.0] * 20, "a value of zero or less has no ratio"),
        ([1.0] * 20, [-1.0] * 20, "a value of zero or less has no ratio"),
        ([1.0] * 20, [], "measured in A only"),
        ([], [1.0], "measured in B only"),
    ],
)
def test_what_has_no_ratio_cannot_be_told(a: list[float], b: list[float], said: str) -> None:
    told = one(a, b)
    assert (told.verdict, told.remark, told.ratio) == (Relation.INCONCLUSIVE, said, None)


def test_a_large_set_is_told_as_its_pairs_are_by_bisection() -> None:
    rng = RNG(6)
    told = one(normal(0.05)(rng, 900), 1.08 * normal(0.05)(rng, 1100))
    assert told.verdict is Relation.A_BETTER
    assert told.ratio == pytest.approx(1.08, rel=0.01)


@pytest.mark.parametrize(("n", "m"), [(3, 4), (5, 5), (8, 12), (30, 30)])
def test_rank_sums_have_scipys_chances(n: int, m: int) -> None:
    rng = RNG(n)
    for _ in range(10):
        a, b = rng.normal(size=n), rng.normal(size=m)
        exact = stats.mannwhitneyu(a, b, method="exact", alternative="less")
        if 2 * exact.statistic < n * m:
            chance = ranks.rank_sum_chance(int(exact.statistic), n, m)
            assert chance == pytest.approx(exact.pvalue)


def test_normal_tails_not_lighter_than_exact() -> None:
    n = m = 60
    deviation = math.sqrt(n * m * (n + m + 1) / 12)
    for u in (700, 900, 1100):
        exact = ranks.rank_sum_chance(u, n, m)
        assert exact <= float(stats.norm.cdf((u + 0.5 - n * m / 2) / deviation)) * 1.001


@pytest.mark.parametrize("ties", [False, True])
def test_the_kth_difference_is_that_of_the_sorted_ones(ties: bool) -> None:
    rng = RNG(7)
    for _ in range(20):
        n, m = rng.integers(1, 12, 2)
        a, b = (np.sort(np.round(2 * rng.normal(size=k)) if ties else rng.normal(size=k))
                for k in (n, m))  # fmt: skip
        wanted = np.sort((b[None, :] - a[:, None]).ravel())
        found = ranks.kth_differences(a, b, range(n * m))
        assert found == pytest.approx(wanted.tolist(), abs=1e-11)


@pytest.mark.parametrize("digits", [15, 1])
@pytest.mark.parametrize(("shift", "spread"), [(11.5, 1e-5), (-1e6, 1e-9), (0.0, 0.0), (3.0, 1.0)])
def test_close_differences_far_from_zero_found(shift: float, spread: float, digits: int) -> None:
    """Bisection had no number left between its bounds, and went on for ever."""
    rng = RNG(11)
    a, b = (np.sort(at + np.round(spread * rng.normal(size=200), digits)) for at in (0.0, shift))
    wanted = np.sort((b[None, :] - a[:, None]).ravel())
    places = [0, 1, 19_999, 20_000, 39_999]
    found = ranks.kth_differences(a, b, places)
    assert found == pytest.approx(wanted[places].tolist(), abs=1e-9, rel=1e-14)


@pytest.mark.parametrize(
    ("factor", "alone", "of_two"),
    [
        (1.0, Relation.EQUIVALENT, Relation.INCONCLUSIVE),
        (1.5, Relation.A_BETTER, Relation.INCONCLUSIVE),
        (1 / 1.5, Relation.B_BETTER, Relation.INCONCLUSIVE),
        (2.5, Relation.A_BETTER, Relation.A_BETTER),
        (0.4, Relation.B_BETTER, Relation.B_BETTER),
    ],
)
def test_what_hours_do_is_no_difference_of_two_sessions(
    factor: float, alone: Relation, of_two: Relation
) -> None:
    a, b = (normal(0.01)(RNG(k), 20) for k in (1, 2))
    told = one(a, factor * b)
    later = of_two_sessions(told, math.log(2.0))
    assert (told.verdict, later.verdict) == (alone, of_two)
    assert told.ratio is not None
    assert (later.low, later.high) == pytest.approx((told.ratio / 2, told.ratio * 2))
    assert ("differ by up to 2 times" in later.remark) == (of_two is Relation.INCONCLUSIVE)
    assert later.further_launches is None


def test_two_sessions_less_certain_than_hours() -> None:
    told = one(normal(0.5)(RNG(1), 8), 3.0 * normal(0.5)(RNG(2), 8))
    assert told.verdict is Relation.INCONCLUSIVE
    later = of_two_sessions(told, math.log(1.1))
    assert (later.verdict, later.low, later.high) == (told.verdict, told.low, told.high)


def test_two_sessions_add_nothing_where_there_is_no_ratio() -> None:
    told = one([1.0], [])
    assert of_two_sessions(told, 1.0) == told
