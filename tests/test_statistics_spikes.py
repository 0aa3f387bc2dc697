import statistics

import pytest

from clustergate.stats.spikes import filtered_mean, percentile_95

FIRST = 1000.0


def steady(count: int) -> list[float]:
    return [9.0, 11.0] * (count // 2)


def test_mean_without_spikes_of_all_but_the_first_trial() -> None:
    assert filtered_mean([FIRST, *steady(50)]) == 10.0


def test_three_spikes_of_fifty_go() -> None:
    assert filtered_mean([FIRST, *steady(47), 10.0, 50.0, 60.0, 70.0]) == 10.0


def test_of_eight_spikes_only_the_five_largest_go() -> None:
    spikes = [20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0]
    found = filtered_mean([FIRST, *steady(42), *spikes])
    assert found == pytest.approx((42 * 10 + 20 + 30 + 40) / 45)


def test_first_trial_counts_in_no_time_or_median() -> None:
    assert filtered_mean([0.0, 10.0, 10.0]) == 10.0
    assert filtered_mean([FIRST, 10.0]) == percentile_95([FIRST, 10.0]) == 10.0


@pytest.mark.parametrize(("spike", "goes"), [(18.0, False), (18.001, True)])
def test_a_spike_is_more_than_1_8_times_the_median(spike: float, goes: bool) -> None:
    times = [*[10.0] * 49, spike]
    assert filtered_mean([FIRST, *times]) == (10.0 if goes else statistics.fmean(times))


def test_of_less_than_ten_trials_none_goes() -> None:
    assert filtered_mean([FIRST, *[10.0] * 8, 1000.0]) == 120.0
    assert filtered_mean([FIRST, *[10.0] * 9, 1000.0]) == 10.0


def test_the_order_of_the_trials_does_not_matter() -> None:
    times = [50.0, *steady(40), 60.0]
    for of in (filtered_mean, percentile_95):
        assert of([FIRST, *times]) == of([FIRST, *reversed(times)])


@pytest.mark.parametrize(
    ("trials", "slow", "shown"),
    [(50, 2, False), (50, 3, True), (50, 5, True), (20, 1, False), (20, 2, True), (9, 1, True)],
)
def test_what_more_than_one_trial_of_twenty_takes_is_shown(
    trials: int, slow: int, shown: bool
) -> None:
    times = [FIRST, *[10.0] * (trials - slow), *[50.0] * slow]
    assert percentile_95(times) == (50.0 if shown else 10.0)


def test_a_call_that_is_slow_once_in_ten_leaves_the_mean_as_it_is() -> None:
    times = [FIRST, *([10.0] * 9 + [50.0]) * 5]
    assert (filtered_mean(times), percentile_95(times)) == (10.0, 50.0)


@pytest.mark.parametrize("times", [[], [1.0]])
@pytest.mark.parametrize("of", [filtered_mean, percentile_95])
def test_one_trial_is_too_few(of, times: list[float]) -> None:
    with pytest.raises(ValueError, match="at least two"):
        of(times)
