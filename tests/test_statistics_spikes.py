import statistics

import pytest

from clustergate.statistics.spikes import FilteredMean, filtered_mean

FIRST = 1000.0


def steady(count: int) -> list[float]:
    return [9.0, 11.0] * (count // 2)


def test_without_spikes_the_mean_is_that_of_all_but_the_first_trial() -> None:
    assert filtered_mean([FIRST, *steady(50)]) == FilteredMean(10.0, 10.0, 0, 50)


def test_three_spikes_of_fifty_go() -> None:
    times = [FIRST, *steady(47), 10.0, 50.0, 60.0, 70.0]
    found = filtered_mean(times)
    assert (found.mean, found.removed, found.trials) == (10.0, 3, 47)
    assert found.unfiltered_mean == pytest.approx(statistics.fmean(times[1:]))


def test_of_eight_spikes_only_the_five_largest_go() -> None:
    spikes = [20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0]
    found = filtered_mean([FIRST, *steady(42), *spikes])
    assert (found.removed, found.trials) == (5, 45)
    assert found.mean == pytest.approx((42 * 10 + 20 + 30 + 40) / 45)


def test_the_first_trial_counts_neither_as_a_time_nor_for_the_median() -> None:
    assert filtered_mean([0.0, 10.0, 10.0]).mean == 10.0
    assert filtered_mean([FIRST, 10.0]).unfiltered_mean == 10.0


@pytest.mark.parametrize(("spike", "removed"), [(18.0, 0), (18.001, 1)])
def test_a_spike_is_more_than_1_8_times_the_median(spike: float, removed: int) -> None:
    assert filtered_mean([FIRST, *[10.0] * 49, spike]).removed == removed


def test_of_less_than_ten_trials_none_goes() -> None:
    assert filtered_mean([FIRST, *[10.0] * 8, 1000.0]).removed == 0
    assert filtered_mean([FIRST, *[10.0] * 9, 1000.0]).removed == 1


def test_the_order_of_the_trials_does_not_matter() -> None:
    times = [50.0, *steady(40), 60.0]
    assert filtered_mean([FIRST, *times]) == filtered_mean([FIRST, *reversed(times)])


@pytest.mark.parametrize("times", [[], [1.0]])
def test_one_trial_is_too_few(times: list[float]) -> None:
    with pytest.raises(ValueError, match="at least two"):
        filtered_mean(times)
