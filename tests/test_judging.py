import math

import pytest
from reframe.utility.sanity import reference_bounds

from clustergate.judging import (
    exit_status,
    judge,
    reframe_reference,
    tolerated_bound,
    worst,
)
from clustergate.model import Better, Estimate, Limit, Reference, Verdict


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
        (85.0, 95.0, Verdict.CANNOT_TELL),
        (91.0, 99.0, Verdict.PASS),
        (95.0, 120.0, Verdict.PASS),
        (112.0, 120.0, Verdict.IMPROVEMENT),
    ],
)
def test_the_whole_interval_must_lie_beyond_a_bound(low, high, verdict):
    estimate = measured((low + high) / 2, low, high)
    assert judge(estimate, Better.HIGHER, "MB/s", reference(100.0)).verdict is verdict


def test_without_a_reference_there_is_no_pass():
    assert judge(measured(5.0), Better.HIGHER, "MB/s").verdict is Verdict.NO_REFERENCE


def test_more_than_the_physical_limit_is_impossible_even_with_a_good_reference():
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
        ([Verdict.PASS, Verdict.CANNOT_TELL], 0, 2),
        ([Verdict.REGRESSION], 1, 1),
        ([Verdict.IMPOSSIBLE], 2, 2),
        ([Verdict.INVALID], 2, 2),
        ([Verdict.INVALID, Verdict.REGRESSION, Verdict.PASS], 1, 1),
    ],
)
def test_the_worst_exit_status_wins_with_1_above_2(found, check, gate):
    assert exit_status(found, "check") == check
    assert exit_status(found, "gate") == gate


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
    assert "bounds nothing" in found.sentence


def test_a_reference_in_another_unit_is_not_compared():
    found = judge(measured(100.0), Better.HIGHER, "GB/s", reference(100.0))
    assert found.verdict is Verdict.INVALID
    assert "'GB/s'" in found.sentence
    assert "'MB/s'" in found.sentence


def test_less_than_there_must_be_is_told_without_doubting_the_clock():
    limit = Limit(at_most=None, at_least=50.0, reason="half of the FMA peak; look at the BLAS")
    found = judge(measured(30.0), Better.HIGHER, "Gflop/s", None, [limit])
    assert found.verdict is Verdict.IMPOSSIBLE
    assert "less than the 50.00 there must be; half of the FMA peak; look at the BLAS" in (
        found.sentence
    )
    assert "clocks" not in found.sentence
