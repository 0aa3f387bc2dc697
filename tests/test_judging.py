import dataclasses
import math

import pytest
from reframe.utility.sanity import reference_bounds

from clustergate.core.model import (
    BaselineRuns,
    Better,
    Estimate,
    Excuse,
    Judgement,
    Limit,
    Reference,
    Verdict,
    worst,
)
from clustergate.core.reasons import in_words
from clustergate.judge.judging import (
    exit_status,
    judge,
    reframe_reference,
    slow_share,
    slow_together,
    tolerated_bound,
)
from clustergate.judge.rules import FIGURE_PART


def measured(value, low=None, high=None):
    return Estimate(value, low, high, confidence=0.99, samples=1 if low is None else 5)


def reference(value, lower=-0.1, upper=0.1):
    return Reference(value, lower, upper, "MB/s", "measured 2026-11-01, 10 launches")


@pytest.mark.parametrize(
    ("value", "better", "verdict"),
    [
        (100.0, Better.HIGHER, Verdict.PASS),
        (91.0, Better.HIGHER, Verdict.PASS),
        (89.0, Better.HIGHER, Verdict.REGRESSION),
        (111.0, Better.HIGHER, Verdict.IMPROVEMENT),
        (109.0, Better.LOWER, Verdict.PASS),
        (111.0, Better.LOWER, Verdict.REGRESSION),
        (89.0, Better.LOWER, Verdict.IMPROVEMENT),
    ],
)
def test_only_the_worse_side_of_a_tolerance_is_a_regression(value, better, verdict):
    assert judge(measured(value), better, "MB/s", reference(100.0)).verdict is verdict


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (80.0, 89.0, Verdict.REGRESSION),
        (85.0, 95.0, Verdict.INCONCLUSIVE),
        (91.0, 99.0, Verdict.PASS),
        (95.0, 120.0, Verdict.PASS),
        (112.0, 120.0, Verdict.IMPROVEMENT),
    ],
)
def test_the_whole_interval_must_lie_beyond_a_bound(low, high, verdict):
    estimate = measured((low + high) / 2, low, high)
    assert judge(estimate, Better.HIGHER, "MB/s", reference(100.0)).verdict is verdict


@pytest.mark.parametrize("value", [0.0, -0.02])
@pytest.mark.parametrize("runs", [None, 4])
def test_what_took_no_time_is_no_improvement(value, runs):
    """A kernel that returned at once, where no limit says how fast it can be."""
    expected = known_reference(runs=runs) if runs else reference(100.0)
    judgement = judge(measured(value), Better.LOWER, expected.unit, expected, launches=[value] * 5)
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert "did the benchmark do its work" in judgement.sentence


def test_without_a_reference_there_is_no_pass():
    assert judge(measured(5.0), Better.HIGHER, "MB/s").verdict is Verdict.NO_REFERENCE


def test_beyond_the_physical_limit_impossible_despite_reference():
    """More than the physical limit is impossible even with a good reference."""
    limit = Limit(at_most=90.0, at_least=None, reason="the FMA peak measured in the same job")
    judgement = judge(measured(100.0), Better.HIGHER, "MB/s", reference(100.0), [limit])
    assert judgement.verdict is Verdict.IMPOSSIBLE
    assert "FMA peak" in judgement.sentence


def test_a_limit_inside_the_interval_is_not_beyond_doubt():
    limit = Limit(at_most=99.0, at_least=None, reason="peak")
    found = judge(measured(100.0, 98.0, 102.0), Better.HIGHER, "MB/s", None, [limit])
    assert found.verdict is Verdict.NO_REFERENCE


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_no_number_is_invalid(value):
    assert judge(measured(value), Better.HIGHER, "", reference(1.0)).verdict is Verdict.INVALID


@pytest.mark.parametrize(
    ("found", "check", "gate"),
    [
        ([Verdict.PASS, Verdict.IMPROVEMENT], 0, 0),
        ([Verdict.PASS, Verdict.NO_REFERENCE], 0, 2),
        ([Verdict.PASS, Verdict.INCONCLUSIVE], 0, 2),
        ([Verdict.REGRESSION], 1, 1),
        ([Verdict.IMPOSSIBLE], 2, 2),
        ([Verdict.INVALID], 2, 2),
        ([Verdict.INVALID, Verdict.REGRESSION, Verdict.PASS], 1, 1),
    ],
)
def test_the_worst_exit_status_wins_with_1_above_2(found, check, gate):
    assert exit_status(found, "check") == check
    assert exit_status(found, "gate") == gate


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("better", [Better.HIGHER, Better.LOWER])
def test_what_is_no_number_is_invalid_whatever_it_is_compared_with(value, better):
    for expected in (None, reference(100.0), known_reference()):
        unit = expected.unit if expected else "us"
        assert judge(measured(value), better, unit, expected).verdict is Verdict.INVALID


@pytest.mark.parametrize(
    ("ends", "told"),
    [
        ((math.nan, 102.0), "nan"),
        ((98.0, math.nan), "nan"),
        ((-math.inf, 102.0), "-inf"),
        ((98.0, math.inf), "inf"),
        ((-math.inf, math.inf), "-inf"),
    ],
)
def test_an_interval_with_an_end_that_is_no_number_is_invalid(ends, told):
    """Nothing is beyond such an end, so that half of the rate passed."""
    for expected in (None, reference(200.0)):
        found = judge(measured(100.0, *ends), Better.HIGHER, "MB/s", expected)
        assert found.verdict is Verdict.INVALID
        assert found.sentence.startswith(f"the value is {told}")


def test_a_run_without_a_verdict_is_invalid():
    assert worst([]) is Verdict.INVALID


@pytest.mark.parametrize("better", [Better.HIGHER, Better.LOWER])
@pytest.mark.parametrize("value", [100.0, 0.7, 17.3, -40.0, 0.0])
@pytest.mark.parametrize("tolerance", [0.1, 0.07, 0.3])
def test_reframe_is_given_the_threshold_of_the_judge(better, value, tolerance):
    expected = reference(value, -tolerance, tolerance)
    target, lower, upper, _ = reframe_reference(expected, better)
    # To the last digit: a figure that is printed with two decimals does meet its bound exactly.
    lowest, highest = reference_bounds(target, lower, upper)
    bound, other = (lowest, highest) if better is Better.HIGHER else (highest, lowest)
    assert math.isinf(other)
    assert tolerated_bound(expected, better) == bound
    assert judge(measured(bound), better, "MB/s", expected).verdict is Verdict.PASS


def test_a_reference_that_bounds_nothing_is_no_pass():
    unbounded = reference(100.0, lower=None, upper=0.1)
    found = judge(measured(1.0), Better.HIGHER, "MB/s", unbounded)
    assert found.verdict is Verdict.NO_REFERENCE
    assert "sets no bound on the worse side" in found.sentence


def test_a_reference_in_another_unit_is_not_compared():
    found = judge(measured(100.0), Better.HIGHER, "GB/s", reference(100.0))
    assert found.verdict is Verdict.INVALID
    assert "'GB/s'" in found.sentence
    assert "'MB/s'" in found.sentence


@pytest.mark.parametrize("better", [Better.HIGHER, Better.LOWER])
@pytest.mark.parametrize(("times", "verdict"), [(9, Verdict.IMPROVEMENT), (1000, Verdict.INVALID)])
def test_a_reference_of_another_unit_improves_nothing(better, times, verdict):
    expected = dataclasses.replace(
        reference(0.2, -0.05 if better is Better.HIGHER else None, 0.05), where="alpha.yaml:7"
    )
    value = 0.2 * times if better is Better.HIGHER else 0.2 / times
    found = judge(measured(value), better, "MB/s", expected)
    assert found.verdict is verdict
    if verdict is Verdict.INVALID:
        assert f"is {times} times better than the reference" in found.sentence
        assert "Tflop/s for Gflop/s" in found.sentence
        assert found.sentence.endswith("correct alpha.yaml:7")


@pytest.mark.parametrize(
    ("value", "limit", "said"),
    [
        (100.0, 150.0, ""),
        (
            100.0,
            30.0,
            "the reference itself exceeds the physical limit of 30.00 (FMA peak): is",
        ),
        (100_000.0, None, "this far off, suspect the reference too: is it in another unit"),
    ],
)
def test_a_regression_against_a_reference_that_cannot_be_names_it(value, limit, said):
    expected = dataclasses.replace(reference(value, -0.05, None), where="alpha.yaml:7")
    limits = [Limit(at_most=limit, at_least=None, reason="FMA peak")] if limit else []
    found = judge(measured(25.0), Better.HIGHER, "MB/s", expected, limits)
    assert found.verdict is Verdict.REGRESSION
    assert said in found.sentence
    assert ("see alpha.yaml:7" in found.sentence) == bool(said)


def test_below_the_least_told_without_doubting_the_clock():
    limit = Limit(at_most=None, at_least=50.0, reason="half of the FMA peak; look at the BLAS")
    found = judge(measured(30.0), Better.HIGHER, "Gflop/s", None, [limit])
    assert found.verdict is Verdict.IMPOSSIBLE
    assert "is below the physical limit of 50.00; half of the FMA peak; look at the BLAS" in (
        found.sentence
    )
    assert "clocks" not in found.sentence


# ------------------------------------------------------- against references with a known scatter


def known_reference(lower=None, upper=0.05, **changes):
    """Return a reference of twenty runs of twelve launches on six days."""
    runs = tuple(f"run{k:02}" for k in range(20))
    days = tuple(f"2026-11-{1 + k % 6:02}" for k in range(20))
    of = {"runs": runs, "days": days, "values": 20 * (101.0,), "launches": 12, "compared": 10}
    known = BaselineRuns(**{**of, **changes})
    return Reference(100.0, lower, upper, "us", "measured", known)


def launched(value, second=None, launches=12):
    low, high = sorted((value, value if second is None else second))
    return Estimate(value, low, high, confidence=0.4, samples=launches)


@pytest.mark.parametrize("launches", [3, 5, 9])
@pytest.mark.parametrize("value", [85.0, 99.0, 104.0, 112.0, 130.0, 300.0])
@pytest.mark.parametrize("better", [Better.LOWER, Better.HIGHER])
def test_reframe_fails_exactly_where_the_judge_says_regression(launches, value, better):
    sides = {"upper": 0.1} if better is Better.LOWER else {"lower": -0.1, "upper": None}
    reference = known_reference(**sides)
    if better is Better.HIGHER:
        value = 100.0**2 / value
    centre, lower, upper, _ = reframe_reference(reference, better)
    low, high = reference_bounds(centre, lower, upper)
    fails = (low is not None and value < low) or (high is not None and value > high)
    judgement = judge(launched(value, launches=launches), better, "us", reference)
    assert fails == (judgement.verdict is Verdict.REGRESSION)


def excuse(factor):
    cause = "others used 0.94 of 2 cores of n17"
    return Excuse(factor, in_words(cause), in_words(f"1 launch was disturbed ({cause})"))


@pytest.mark.parametrize(
    ("value", "factor", "verdict"),
    [
        # HPL at an eighth of its reference, beside a neighbour who explains the half.
        (100 / 8, 1.9, Verdict.REGRESSION),
        (100 / 8, 7.0, Verdict.REGRESSION),
        (100 / 8, 8.0, Verdict.INCONCLUSIVE),
        (100 / 8, math.inf, Verdict.INCONCLUSIVE),
        (100 / 1.5, 1.9, Verdict.INCONCLUSIVE),
        # Nothing makes a launch faster than the machine can be.
        (97.0, 1.9, Verdict.PASS),
        (130.0, math.inf, Verdict.IMPROVEMENT),
    ],
)
@pytest.mark.parametrize("better", [Better.HIGHER, Better.LOWER])
def test_a_disturbance_excuses_no_more_than_it_explains(value, factor, verdict, better):
    value = value if better is Better.HIGHER else 100.0**2 / value
    given = excuse(factor)
    found = judge(measured(value), better, "MB/s", reference(100.0), excuse=given)
    assert found.verdict is verdict
    if verdict is Verdict.REGRESSION:
        told = f"{given.cause}, which explains at most {factor:.1f} x; this is 8.0 x; "
        assert told in found.sentence
    if verdict is Verdict.INCONCLUSIVE:
        assert str(given.doubt) in found.sentence
    target, lower, upper, _ = reframe_reference(reference(100.0), better, excuse=given)
    lowest, highest = reference_bounds(target, lower, upper)
    assert (not lowest <= value <= highest) == (verdict is Verdict.REGRESSION)


def test_a_disturbed_figure_without_a_reference_has_none():
    found = judge(measured(1.0), Better.HIGHER, "MB/s", excuse=excuse(2.0))
    assert found.verdict is Verdict.NO_REFERENCE


@pytest.mark.parametrize("value", [-150.0, 0.0])
def test_a_reference_without_a_ratio_is_excused(value):
    found = judge(measured(value - 50), Better.HIGHER, "MB/s", reference(value), excuse=excuse(2.0))
    assert found.verdict is Verdict.INCONCLUSIVE


SLOW = [33.0, 32.5, 32.8, 33.1, 33.3, 33.2, 101.0, 100.0]


@pytest.mark.parametrize("better", [Better.HIGHER, Better.LOWER])
@pytest.mark.parametrize("best", [101.0, 130.0])
def test_30_mostly_slow_launches_no_pass_by_best_two(better, best):
    launches = [*SLOW[:-2], best, best - 1.0]
    if better is Better.LOWER:
        launches = [100.0**2 / value for value in launches]
    low, high = sorted(launches[-2:])
    estimate = Estimate(launches[-2], low, high, 0.4, len(launches))
    assert judge(estimate, better, "MB/s", reference(100.0)).verdict is not Verdict.INCONCLUSIVE
    found = judge(estimate, better, "MB/s", reference(100.0), launches=launches)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "6 of 8 launches are 3.0 x worse than the reference, and 2 are not" in found.sentence
    assert exit_status([found.verdict], "gate") == 2


@pytest.mark.parametrize(
    "launches", [[100.0], [100.0, 99.0, 45.0], [100.0, 99.0, 98.0, 45.0, 44.0], [100.0, 60.0, 60.0]]
)
def test_a_few_slow_launches_are_noise(launches):
    assert slow_share(launches, Better.HIGHER, reference(100.0)) is None


def test_launches_as_slow_as_the_baselines_are_usual():
    launches = [100.0] * 4 + [350.0] * 4
    assert slow_share(launches, Better.LOWER, known_reference(slow=0.4)) is None
    assert slow_share(launches, Better.LOWER, known_reference()) is not None


@pytest.mark.parametrize(
    ("slow", "given", "verdict"),
    [
        (0, None, Verdict.PASS),
        (1, None, Verdict.PASS),
        (3, None, Verdict.INCONCLUSIVE),
        (7, None, Verdict.REGRESSION),
        # What disturbed the other launches may have met these as well.
        (7, excuse(2.0), Verdict.INCONCLUSIVE),
    ],
)
def test_slow_launches_beyond_chance_are_a_regression(slow, given, verdict):
    """Slow launches beyond chance are a regression however good the best."""
    launches = [100.0] * (12 - slow) + [500.0] * slow
    known = known_reference()
    found = judge(launched(100.0), Better.LOWER, "us", known, launches=launches, excuse=given)
    assert found.verdict is verdict
    if verdict is Verdict.REGRESSION:
        assert "7 of 12 launches are 5.0 x worse than the reference, and 5 are not" in (
            found.sentence
        )


@pytest.mark.parametrize(("times", "verdict"), [(1.9, Verdict.PASS), (2.5, Verdict.INCONCLUSIVE)])
def test_one_good_launch_does_not_pass_for_all_the_others(times, verdict):
    found = judge(
        launched(100.0),
        Better.LOWER,
        "us",
        known_reference(),
        launches=[100.0] + 9 * [100.0 * times],
    )
    assert found.verdict is verdict
    assert ("launches.slow-share" in {one.code for one in found.reasons}) == (times > 2)


def test_where_no_launch_is_otherwise_nothing_is_said_of_others():
    found = slow_share([300.0] * 8, Better.LOWER, known_reference())
    assert found is not None
    assert "all 8 launches are 3.0 x worse than the reference" in found.sentence
    assert " not" not in found.sentence


def test_launches_slow_in_a_whole_benchmark_told_sooner():
    """Launches that are slow in all figures of a benchmark are told sooner."""
    known = known_reference().baseline
    assert known is not None
    means = [0.0] * 8 + [math.log(5)] * 4
    found = slow_together(means, known)
    assert found is not None
    assert found.verdict is Verdict.REGRESSION
    assert "4 of 12 launches are 5.0 x worse" in found.sentence
    excused = slow_together(means, known, excuse(2.0))
    assert excused is not None
    assert excused.verdict is Verdict.INCONCLUSIVE
    usual = dataclasses.replace(known, slow_together=0.4)
    assert slow_together(means, usual) is None


@pytest.mark.parametrize(("launches", "verdict"), [(2, "inconclusive"), (3, "regression")])
def test_too_few_launches_of_a_short_benchmark_accuse_nothing(launches, verdict):
    found = judge(launched(300.0, launches=launches), Better.LOWER, "us", known_reference())
    assert found.verdict.value == verdict


@pytest.mark.parametrize(
    ("value", "given", "verdict"),
    [
        (101.0, None, "pass"),
        (104.9, None, "inconclusive"),
        (111.0, None, "regression"),
        (101.0, excuse(2.0), "pass"),
        # A tenth hides in what others explain.
        (104.9, excuse(2.0), "inconclusive"),
        (111.0, excuse(2.0), "inconclusive"),
        (230.0, excuse(2.0), "regression"),
    ],
)
def test_single_figure_passes_near_the_best_alone(value, given, verdict):
    known = known_reference(upper=0.1)
    found = judge(launched(value), Better.LOWER, "us", known, excuse=given)
    assert found.verdict.value == verdict


def test_what_a_figure_is_called_beside_the_others_counts():
    said = Judgement(Verdict.INCONCLUSIVE, (FIGURE_PART(name="mpich", by=0.1),))
    found = judge(launched(300.0), Better.LOWER, "us", known_reference(), beside=said)
    assert found is said


def test_figure_ten_times_its_reference_is_no_improvement():
    found = judge(launched(9.9), Better.LOWER, "us", known_reference(), launches=[9.9] * 8)
    assert found.verdict is Verdict.INVALID
    assert "reference.far-off" in {one.code for one in found.reasons}
