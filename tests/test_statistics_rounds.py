"""Rounds of two contenders: known answers, the promise about errors, what a verdict needs."""

import math

import numpy as np
import pytest

from clustergate.core.model import BadRequest, Better
from clustergate.stats.comparison import ENDLESS, Relation, from_logarithms
from clustergate.stats.rounds import (
    FEWEST,
    SLOW_LAUNCHES,
    Hypotheses,
    Rounds,
    answers,
    compare_rounds,
)
from clustergate.stats.slow_launches import is_fault


def rounds(
    seed: int, count: int, figures: int, factor: float = 1.0, noise: float = 0.03, drift: float = 0
) -> Rounds:
    rng = np.random.default_rng(seed)
    # What disturbs a round, and what changes from round to round, is common to both.
    common = 0.1 * rng.normal(size=(count, figures)) + drift * np.arange(count)[:, None]
    a, b = (np.exp(common + noise * rng.normal(size=(count, figures))) for _ in "ab")
    return Rounds(a, factor * b, [Better.LOWER] * figures)


def verdicts(*jobs: Rounds, **options: float) -> list[Relation]:
    return [one.verdict for found in compare_rounds(jobs, **options) for one in found]


def test_what_is_common_to_a_round_tells_nothing_apart():
    assert set(verdicts(rounds(1, 30, 10, factor=1.1))) == {Relation.A_BETTER}
    assert set(verdicts(rounds(1, 20, 10, factor=1.0, noise=0.01))) == {Relation.EQUIVALENT}
    assert set(verdicts(rounds(1, 20, 10, drift=0.2, noise=0.01))) == {Relation.EQUIVALENT}


def test_ratio_in_its_interval_and_direction_of_the_metric():
    """The ratio lies in its interval and the direction follows the metric."""
    job = rounds(3, 15, 2, factor=1.5)
    faster = Rounds(job.a, job.b, [Better.LOWER, Better.HIGHER])
    one, other = compare_rounds([faster])[0]
    assert (one.verdict, other.verdict) == (Relation.A_BETTER, Relation.B_BETTER)
    assert one.low is not None
    assert one.high is not None
    assert 1.0 <= one.low < 1.5 < one.high
    # It was decided by then.
    assert (one.samples_a, one.samples_b, one.further_launches) == (FEWEST, FEWEST, None)


def test_a_metric_without_direction_is_no_contest():
    job = rounds(3, 15, 1, factor=1.5)
    (one,) = compare_rounds([Rounds(job.a, job.b, [Better.NEITHER])])[0]
    assert one.verdict is Relation.INCONCLUSIVE
    assert "neither direction" in one.remark


def test_nothing_is_better_in_fewer_rounds_than_it_takes():
    few = compare_rounds([rounds(5, FEWEST - 1, 4, factor=2.0)])[0]
    assert {one.verdict for one in few} == {Relation.INCONCLUSIVE}
    assert all(one.further_launches for one in few)
    assert set(verdicts(rounds(5, FEWEST, 4, factor=2.0))) == {Relation.A_BETTER}


def test_an_endless_interval_asks_for_as_many_rounds_again():
    """Reduce of 0.5, 1 and 2 MB in us, MPICH and Intel MPI, while others used both cores."""
    mpich = [
        [1007, 805, 4970, 2430, 1564, 1439, 634, 728, 346, 256],
        [1421, 2168, 1810, 4615, 2079, 3475, 1520, 732, 1338, 451],
        [2564, 3122, 5529, 9672, 3776, 7374, 6615, 3013, 6707, 1076],
    ]
    intel_mpi = [
        [35, 32, 80, 156, 417, 219, 25, 317, 328, 23],
        [56, 78, 157, 687, 474, 199, 155, 813, 47, 49],
        [443, 204, 217, 452, 2081, 1352, 89, 25356, 730, 90],
    ]
    job = Rounds(np.array(mpich).T, np.array(intel_mpi).T, [Better.LOWER] * 3)
    endless = [one for one in compare_rounds([job])[0] if one.low is None]
    assert endless
    assert {(one.verdict, one.further_launches) for one in endless} == {(Relation.INCONCLUSIVE, 10)}


def test_known_end_of_the_interval_told_of_the_better():
    """Three times as fast in every round of ten: how much faster at most need not be known."""
    asked = ((-ENDLESS, -0.2), 0.995, (10, 10), None, "")
    better = from_logarithms(Relation.B_BETTER, -1.1, *asked)
    assert (better.low, better.high, better.confidence) == (None, math.exp(-0.2), 0.995)
    undecided = from_logarithms(Relation.INCONCLUSIVE, -1.1, *asked)
    assert (undecided.low, undecided.high, undecided.confidence) == (None, None, 0.0)
    assert undecided.ratio == better.ratio


def test_a_small_but_certain_difference_is_equivalent():
    (one,) = compare_rounds([rounds(7, 40, 1, factor=1.02, noise=0.005)])[0]
    assert one.verdict is Relation.EQUIVALENT
    (narrower,) = compare_rounds([rounds(7, 40, 1, factor=1.02, noise=0.005)], margin=0.01)[0]
    assert narrower.verdict is Relation.A_BETTER


def test_printed_digits_hide_what_is_smaller():
    a = np.full((20, 1), 0.15)
    (one,) = compare_rounds([Rounds(a, a, [Better.LOWER])])[0]
    assert one.verdict is Relation.INCONCLUSIVE
    assert "printed resolution" in one.remark


def test_rounds_without_a_value_do_not_count():
    a, b = np.ones((12, 3)) + 0.001 * np.arange(12)[:, None], np.full((12, 3), 1.2)
    b[:2, 0], b[:, 1], a[:, 2] = np.nan, np.nan, 0.0
    found = compare_rounds([Rounds(a, b, [Better.LOWER] * 3)])[0]
    assert [one.samples_a for one in found] == [11, 12, 12]
    assert [one.remark for one in found][1:] == [
        "measured in A only",
        "a value of zero or less has no ratio",
    ]
    assert [one.verdict for one in found][1:] == [Relation.INCONCLUSIVE] * 2


def test_nothing_at_all_is_no_error():
    assert compare_rounds([]) == []
    assert compare_rounds([Rounds(np.zeros((0, 0)), np.zeros((0, 0)), [])]) == [[]]
    (one,) = compare_rounds([Rounds(np.zeros((0, 1)), np.zeros((0, 1)), [Better.LOWER])])[0]
    assert one.verdict is Relation.INCONCLUSIVE


@pytest.mark.parametrize(("a", "b"), [(np.ones((3, 2)), np.ones((2, 2))), (np.ones(3), np.ones(3))])
def test_tables_that_do_not_fit_are_refused(a, b):
    with pytest.raises(BadRequest, match="one shape"):
        compare_rounds([Rounds(a, b, [Better.LOWER] * 2)])
    with pytest.raises(BadRequest, match="not finite"):
        compare_rounds([Rounds([[np.inf]], [[1.0]], [Better.LOWER])])
    with pytest.raises(BadRequest, match="between 0 and 1"):
        compare_rounds([], margin=2.0)


def test_equal_contenders_are_rarely_told_apart():
    """Of 30 suites with 20 figures each, 1 % may hold a difference: 3 would be 1 in 300."""
    wrong = 0
    for seed in range(30):
        found = verdicts(rounds(seed, 10, 20))
        wrong += bool({Relation.A_BETTER, Relation.B_BETTER} & set(found))
    assert wrong < 3


def test_jobs_of_few_and_of_many_rounds_stand_on_one_scale():
    found = verdicts(rounds(1, 9, 20), rounds(2, 40, 20, factor=1.08))
    assert found[20:].count(Relation.A_BETTER) > 10
    assert not {Relation.A_BETTER, Relation.B_BETTER} & set(found[:20])


def beside_others(seed: int, factor: float) -> Rounds:
    """Return thirty rounds, in half of which others slowed both launches, each in its own way."""
    rng = np.random.default_rng(seed)
    slowed = (np.arange(30) % 2)[:, None]
    a, b = (np.exp(0.01 * rng.normal(size=(30, 5)) + slowed * rng.exponential(size=(30, 5)))
            for _ in "ab")  # fmt: skip
    return Rounds(a, factor * b, [Better.LOWER] * 5)


def test_slowed_rounds_hide_and_make_no_difference():
    for seed in (2, 3, 4):
        found = verdicts(beside_others(seed, 1.1))
        assert found.count(Relation.A_BETTER) >= 4
        assert Relation.B_BETTER not in found
        better = {Relation.A_BETTER, Relation.B_BETTER}
        assert not better & set(verdicts(beside_others(seed, 1.0)))


def test_ahead_in_fast_rounds_alone_is_not_better():
    job = rounds(5, 30, 1, factor=1.2, noise=0.01)
    a = np.array(job.a)
    a[::5] *= 5.0
    (one,) = compare_rounds([Rounds(a, job.b, job.better)])[0]
    assert one.verdict is Relation.A_BETTER
    a[1::4] *= 5.0
    (one,) = compare_rounds([Rounds(a, job.b, job.better)])[0]
    assert one.verdict is Relation.INCONCLUSIVE
    assert one.remark == "the slow rounds point the other way"


def test_launches_that_are_slow_now_and_then_are_not_equivalent():
    job = rounds(6, 30, 1, noise=0.005)
    b = np.array(job.b)
    assert verdicts(job) == [Relation.EQUIVALENT]
    b[::4] *= 5.0
    assert verdicts(Rounds(job.a, b, job.better)) == [Relation.INCONCLUSIVE]


@pytest.mark.parametrize(("times", "share"), [(1.3, 0.4), (1.2, 0.5)])
@pytest.mark.parametrize("seed", range(1, 4))
def test_rather_slow_in_many_launches_not_ruled_out(seed, times, share):
    """On a quiet machine what is rather slow in many launches is not ruled out."""
    asked, lot = Hypotheses(0.1, slower=0.05), np.random.default_rng(seed)
    a, b = np.exp(0.01 * lot.normal(size=(2, 100, 1)))
    assert answers(Rounds(a, b, [Better.LOWER]), asked)[0].verdict is Relation.EQUIVALENT
    b[lot.random(100) < share] *= times
    assert answers(Rounds(a, b, [Better.LOWER]), asked)[0].verdict is not Relation.EQUIVALENT


@pytest.mark.parametrize("seed", range(1, 4))
@pytest.mark.parametrize("slow", "ab")
def test_twice_as_long_in_many_launches_is_not_equivalent(slow, seed):
    lot = np.random.default_rng(seed)
    job = dict(zip("ab", np.exp(0.01 * lot.normal(size=(2, 30, 1))), strict=True))
    assert verdicts(Rounds(**job, better=[Better.LOWER])) == [Relation.EQUIVALENT]
    job[slow][::3] *= 2.0
    (one,) = compare_rounds([Rounds(**job, better=[Better.LOWER])])[0]
    assert (one.verdict, one.remark) == (Relation.INCONCLUSIVE, SLOW_LAUNCHES)


@pytest.mark.parametrize("seed", range(1, 6))
def test_slow_in_a_third_of_launches_not_ruled_out(seed):
    """What is slow in a third of its launches is not ruled out to be slower."""
    asked, job = Hypotheses(0.2, slower=0.05), rounds(seed, 40, 1, noise=0.01)
    a, b = np.array(job.a), np.array(job.b)
    slow = np.random.default_rng(1000 + seed).random((40, 1)) < 1 / 3
    b[slow] *= 2.0
    assert answers(Rounds(a, b, job.better), asked)[0].verdict is not Relation.EQUIVALENT
    a[slow] *= 2.0
    assert answers(Rounds(a, b, job.better), asked)[0].verdict is Relation.EQUIVALENT


def test_wild_figure_hides_no_slowdown_of_the_whole():
    job, rng = rounds(8, 30, 4, factor=1.1, noise=0.02), np.random.default_rng(8)
    a, b = np.array(job.a), np.array(job.b)
    a[:, 0] *= np.exp(rng.exponential(4.0, size=30))
    b[:, 0] *= np.exp(rng.exponential(4.0, size=30))
    a, b = (np.c_[side, np.exp(np.log(side).mean(axis=1))] for side in (a, b))
    asked, better = Hypotheses(0.2, slower=0.05), [Better.LOWER] * 5
    assert answers(Rounds(a, b, better), asked)[4].verdict is Relation.INCONCLUSIVE
    summed = Rounds(a, b, better, {4: [0, 1, 2, 3]})
    assert answers(summed, asked)[4].verdict is Relation.A_BETTER


def test_values_that_one_contender_lacks_speak_against_it():
    job = rounds(7, 30, 1, factor=1.2, noise=0.01)
    a, b = np.array(job.a), np.array(job.b)
    a[::2] = np.nan
    (one,) = compare_rounds([Rounds(a, b, job.better)])[0]
    assert one.verdict is Relation.INCONCLUSIVE
    assert one.remark == "A has no value in 15 of 30 rounds"
    b[::2], a[::2] = np.nan, 1.0
    (one,) = compare_rounds([Rounds(a, b, job.better)])[0]
    assert one.verdict is Relation.A_BETTER
    (one,) = compare_rounds([Rounds(a, b / 1.2, job.better)])[0]
    assert one.verdict is Relation.INCONCLUSIVE


def test_what_a_round_without_a_value_alone_makes_is_no_ratio():
    """It was 5e21 times as slow: two ranks of MPICH and Intel MPI on two busy cores, 4 KiB."""
    a = np.array([12.59, 3.0, 2.72, 6.58, 31.25, 3.15])
    b = np.array([1.37, np.nan, 1.44, 1.32, 1.4, 1.35])
    (one,) = compare_rounds([Rounds(a[:, None], b[:, None], [Better.LOWER])])[0]
    assert (one.verdict, one.ratio) == (Relation.INCONCLUSIVE, None)
    assert one.remark == "B has no value in 1 of 6 rounds"


def test_a_job_of_two_rounds_beside_others_is_no_error():
    few = Rounds([[1.0], [1.0]], [[1.0], [9.0]], [Better.LOWER])
    (one,) = compare_rounds([few, rounds(1, 30, 20)])[0]
    assert (one.verdict, one.low, one.high) == (Relation.INCONCLUSIVE, None, None)


def test_rates_weigh_less_where_they_are_low():
    job = beside_others(2, 1.1)
    rates = Rounds(1 / np.array(job.a), 1 / np.array(job.b), [Better.HIGHER] * 5)
    assert verdicts(rates) == verdicts(job) == [Relation.A_BETTER] * 5


def test_a_fault_must_be_the_plainer_the_more_often_was_looked() -> None:
    """With twelve launches four are enough of seven benchmarks; of as many in fifty none would."""
    assert is_fault(0, 4, 12, 7)
    assert not is_fault(0, 3, 12, 7)
    assert not is_fault(0, 6, 52, 3)
    assert not is_fault(1, 6, 24, 3)
    assert is_fault(0, 8, 52, 3)
