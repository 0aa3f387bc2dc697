"""Whether a program's clocks run as the kernel's: what is sound on a busy or corrected machine."""

import dataclasses

import pytest

from clustergate.launch.proof.clocks import ClockIntervals, Clocks

BEGUN = Clocks(
    raw_s=5000.0,
    apart_s=2e-6,
    wtime_s=17.0,
    monotonic_s=5001.0,
    time_of_day_s=1.8e9,
    kernel_time_of_day_s=1.8e9,
)


def passed(seconds, apart_s=2e-6, **clocks):
    """Return what passed when each clock named ran so many seconds, and all others ``seconds``."""
    ran = {
        name: getattr(BEGUN, name) + clocks.get(name, seconds)
        for name in ("wtime_s", "monotonic_s", "time_of_day_s", "kernel_time_of_day_s")
    }
    after = Clocks(raw_s=BEGUN.raw_s + seconds, apart_s=apart_s, **ran)
    return ClockIntervals(BEGUN, after)


@pytest.mark.parametrize("seconds", [0.001, 0.3, 60.0, 86400.0])
def test_clocks_that_agree_are_not_accused(seconds):
    assert list(passed(seconds).misled()) == []
    assert passed(seconds).set_by_s == 0
    assert passed(seconds).follows_the_time_of_day() == []


@pytest.mark.parametrize("seconds", [0.01, 1.0, 3600.0])
def test_a_time_service_that_holds_the_clock_is_not_accused(seconds):
    """500 ppm, at which Linux corrects a clock at most, and a time zone's worth of another zero."""
    held = seconds * (1 + 500e-6)
    corrected = dict.fromkeys(
        ("wtime_s", "monotonic_s", "time_of_day_s", "kernel_time_of_day_s"), held
    )
    assert list(passed(seconds, **corrected).misled()) == []
    assert passed(seconds, **corrected).follows_the_time_of_day() == []


def test_a_rank_that_lost_its_core_while_it_read_is_not_accused():
    assert list(passed(0.2, apart_s=0.05, wtime_s=0.245).misled()) == []
    assert list(passed(0.2, wtime_s=0.245).misled()) == [("MPI_Wtime", pytest.approx(1.225))]


@pytest.mark.parametrize("speed", [0.1, 0.98, 1.02, 30.0])
def test_a_clock_that_runs_at_another_speed_is_named_with_it(speed):
    found = dict(passed(2.0, wtime_s=2.0 * speed, monotonic_s=2.0 * speed).misled())
    assert found == pytest.approx({"MPI_Wtime": speed, "clock_gettime": speed})


def test_a_library_before_gettimeofday_alone_is_found_out():
    """The kernel's own time of day went on: nobody set it."""
    assert dict(passed(2.0, time_of_day_s=0.2).misled()) == pytest.approx({"gettimeofday": 0.1})


@pytest.mark.parametrize("by_s", [-3600.0, -0.5, 3.2])
def test_a_clock_that_was_set_is_told_and_accuses_nobody(by_s):
    of_day = {"time_of_day_s": 60.0 + by_s, "kernel_time_of_day_s": 60.0 + by_s}
    found = passed(60.0, **of_day)
    assert list(found.misled()) == []
    assert found.set_by_s == pytest.approx(by_s)
    assert found.follows_the_time_of_day() == []


def test_what_is_timed_by_a_clock_that_was_set_does_not_count():
    of_day = dict.fromkeys(("time_of_day_s", "kernel_time_of_day_s", "wtime_s"), 63.2)
    found = passed(60.0, **of_day)
    assert list(found.misled()) == []
    assert found.follows_the_time_of_day() == ["MPI_Wtime"]


def test_a_clock_that_is_drawn_out_by_eight_percent_does_not_count():
    """As chrony does by default with a clock that is far off."""
    slewed = ("time_of_day_s", "kernel_time_of_day_s", "wtime_s", "monotonic_s")
    found = passed(60.0, **dict.fromkeys(slewed, 65.0))
    assert found.follows_the_time_of_day() == ["MPI_Wtime", "clock_gettime"]


def test_a_zero_of_its_own_is_no_difference():
    """As in a time namespace, whose clocks are the kernel's with other zeros."""
    shift = {"raw_s": 1e6, "monotonic_s": -4e3, "wtime_s": 9.0}
    there = [
        dataclasses.replace(one, **{k: getattr(one, k) + v for k, v in shift.items()})
        for one in (passed(5.0).before, passed(5.0).after)
    ]
    assert list(ClockIntervals(*there).misled()) == []
