"""How much slower a disturbance can have made a figure, held to what was measured."""

import dataclasses
import functools
import math
import statistics
from collections import defaultdict

import pytest

from clustergate.benchmarks.hpcc import APART
from clustergate.core.model import Better, Launch, Sample
from clustergate.core.reasons import in_words
from clustergate.launch import excuses
from clustergate.launch.disturbance import NodeLoad, kept_off
from clustergate.launch.excuses import launch_times
from clustergate.machine.load import DISTURBING_CORES
from tests import builders
from tests.builders import ping
from tools.bench.launches import read_launches, recordings

RECORDED = recordings()


def excused(samples, launches, times):
    return excuses.explained_factor(samples, launches, times, APART)


def hpl(seconds, order=0):
    """Return the rate of HPL and its time."""
    rate = builders.hpl(2 / 3 * 8832**3 / seconds / 1e9, order)
    return rate, builders.sample("HPL", "time_s", seconds, order, n=8832)


def beside(share, order=0, seconds=12.0, far=1.0, lost=0.9, own=None):
    kept = {"disturbed": in_words("x"), "kept_off": share, "any_kept_off": share}
    return Launch(order, 0.0, seconds, "n1", lost, far=far, own_cores=own, **kept)


def of_hpl(seconds, launch):
    rate, time = hpl(seconds, launch.order)
    return excused([rate], [launch], launch_times([rate, time]))


# Taken on two cores of a Zen 3 machine beside one, two and four competing processes, some of them
# going through memory, some at 30 % of the time: seconds of HPL at N=8832, of the launch, and the
# largest share that a rank was kept off. What is left of the time is 5.1 to 5.7 s in all of them.
WITH_NEIGHBOURS = [
    *((8.22, 10.65, 0.339), (11.4, 14.04, 0.517), (13.22, 16.33, 0.566), (13.15, 16.25, 0.591)),
    *((11.4, 14.46, 0.513), (12.62, 15.33, 0.567), (14.02, 17.26, 0.608), (14.87, 18.03, 0.621)),
    *((11.36, 14.77, 0.53), (13.08, 15.83, 0.592), (10.34, 12.72, 0.489), (10.34, 12.86, 0.513)),
    *((10.59, 12.92, 0.515), (11.9, 14.56, 0.565), (14.77, 17.98, 0.632), (13.64, 16.68, 0.597)),
]


@pytest.mark.parametrize(("seconds", "whole", "share"), WITH_NEIGHBOURS)
def test_what_a_neighbour_did_to_hpl_is_explained_and_little_more(seconds, whole, share):
    factor = of_hpl(seconds, beside(share, seconds=whole))
    assert seconds / 5.1 <= factor <= 2.2 * seconds / 5.5


def test_an_undisturbed_launch_excuses_nothing():
    assert of_hpl(10.0, Launch(0, 0.0, 12.0)) == 1.0
    launches = [Launch(0, 0.0, 12.0), beside(0.5, 1)]
    samples = [sample for order in (0, 1) for sample in hpl(10.0, order)]
    # The best of both is at least what the undisturbed one says, or better than the other tells.
    factor = excused(samples[::2], launches, launch_times(samples))
    assert factor == of_hpl(10.0, beside(0.5))


def test_a_disturbance_of_unknown_size_explains_anything():
    assert of_hpl(10.0, beside(None)) == math.inf
    assert of_hpl(10.0, beside(1.0)) == math.inf
    assert excused([ping(8.0)], [], {}) == math.inf


def test_a_disturbance_may_have_come_all_at_once_though_hardly():
    # A tenth of 100 s is what 10 s of HPL may have met alone, but for what was never seen.
    assert of_hpl(10.0, beside(0.1, seconds=100.0)) == pytest.approx(1.25 * 3 / 0.9)
    assert of_hpl(80.0, beside(0.1, seconds=100.0)) == pytest.approx(1.25 / (1 - 10 / 80))
    assert of_hpl(100.0, beside(0.1, seconds=100.0)) == pytest.approx(1.25 / 0.9)


def test_ranks_that_wait_for_each_other_are_slowed_by_each_of_them():
    launch = dataclasses.replace(beside(0.4), any_kept_off=0.64)
    npb = [dataclasses.replace(sample, benchmark="NPB-CG") for sample in hpl(12.0)]
    assert excused(npb[:1], [launch], launch_times(npb)) == pytest.approx(1.25 / 0.36)
    assert of_hpl(12.0, launch) == pytest.approx(1.25 / 0.6)


@pytest.mark.parametrize(
    ("benchmark", "value", "conditions"),
    [
        ("StarDGEMM_Gflops", 17.3, {"n": 2586}),
        ("SingleFFT_Gflops", 0.23, {"n": 4194304}),
        ("StarSTREAM_Copy", 0.53, {"vector_size": 6690816}),
        ("StarSTREAM_Triad", 0.80, {"vector_size": 6690816}),
        ("HPL_Tflops", 0.0848, {"n": 6336}),
        ("HPL_time", 2.0, {"n": 6336}),
    ],
)
def test_hpccs_parts_say_how_long_they_took(benchmark, value, conditions):
    better = Better.LOWER if benchmark == "HPL_time" else Better.HIGHER
    sample = Sample(benchmark, benchmark, "", better, conditions, value)
    # Each took 2 s, a fortieth of the launch.
    expected = 1.25 / (1 - 0.01 * 80 / 2.0)
    assert excused([sample], [beside(0.01, seconds=80.0)], {}) == pytest.approx(expected, rel=0.01)
    short = dataclasses.replace(sample, value=value / 4 if better is Better.LOWER else 4 * value)
    assert excused([short], [beside(0.01, seconds=80.0)], {}) == math.inf


def test_best_launch_bounds_what_others_did_to_messages():
    def factor(launches, share=0.5):
        return excused(
            [ping(8.0, order=k) for k in range(launches)],
            [beside(share, k) for k in range(launches)],
            {},
        )

    assert factor(3) == math.inf
    assert math.inf > factor(4) > factor(6) > factor(10) > 2.0
    assert factor(10, 0.9) == math.inf


def test_cores_that_are_far_explain_some_times_their_distance():
    moved = [beside(0.01, k, far=6.0, lost=0.02) for k in range(3)]
    assert excused([ping(8.0, order=k) for k in range(3)], moved, {}) == 24.0
    assert excused([ping(8.0, order=k) for k in range(2)], moved[:2], {}) == math.inf
    crowded = [beside(0.5, k, far=6.0) for k in range(10)]
    near = [beside(0.5, k) for k in range(10)]
    pings = [ping(8.0, order=k) for k in range(10)]
    assert excused(pings, crowded, {}) == 24.0 * excused(pings, near, {})
    # What computes by itself suffers from memory that lies behind another core at most.
    assert of_hpl(12.0, beside(0.0, far=6.0, lost=0.0)) == pytest.approx(2.5)


def of_pings(count, **changes):
    launches = [beside(0.1, order, **changes) for order in range(count)]
    return excused([ping(8.0, order=order) for order in range(count)], launches, {})


def test_use_by_others_bounds_what_they_did_to_messages():
    # Three cores' worth beside 128 ranks, and beside two.
    assert of_pings(4, lost=3.0, own=128.0) < of_pings(4, lost=3.0, own=2.0)
    assert of_pings(10, lost=3.0, own=128.0) <= of_pings(4, lost=3.0, own=128.0)
    assert of_pings(3, lost=3.0, own=128.0) == math.inf
    # What was stored before says nothing of its own work.
    assert of_pings(4, lost=3.0, own=None) == of_pings(4, lost=3.0, own=2.0)


def test_ranks_on_several_nodes_wait_for_each_other():
    loads = [
        NodeLoad("n1", 1.0, 0.5, 0.0, 2, 0.3, 0.7),
        NodeLoad("n2", 1.0, 0.5, 0.0, 2, 0.5, 0.5),
    ]
    assert kept_off(loads) == pytest.approx((0.5, 0.65))
    assert kept_off([]) == (None, None)


# ------------------------------------------------------------ held to recorded launches


@functools.cache
def launches_of(path):
    """Return of each stack its undisturbed launches, those beside others, those on far cores."""
    by_stack = defaultdict(list)
    for launch in read_launches(path):
        if launch.bound and not launch.provoked:
            by_stack[launch.stack].append(launch)
    nearest = min(x.core_distance_ns for launches in by_stack.values() for x in launches)
    found = []
    for launches in by_stack.values():
        near = [x for x in launches if x.core_distance_ns <= 1.5 * nearest]
        far = [x for x in launches if x.core_distance_ns > 1.5 * nearest]
        quiet = [x for x in near if x.disturbance_cores <= DISTURBING_CORES]
        crowded = [x for x in near if DISTURBING_CORES < x.disturbance_cores <= 1.0]
        moved = [x for x in far if x.disturbance_cores <= DISTURBING_CORES]
        if len(quiet) >= 25:
            found.append((quiet, crowded, moved, nearest))
    return found


def bests_of(launches, count, name):
    """Return the best of each ``count`` launches that follow each other."""
    values = [launch.microseconds[name] for launch in launches]
    return [min(values[k : k + count]) for k in range(0, len(values) - count + 1, count)]


def usual(quiet, name):
    """Return what a baseline says: the median over runs of five launches."""
    return statistics.median(bests_of(quiet, 5, name))


@pytest.mark.parametrize("count", [4, 6, 10])
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_recorded_launches_beside_others_not_worse_than_excused(path, count):
    """No recorded launches beside others were worse than they are excused."""
    launches = [beside(0.5, order) for order in range(count)]
    allowed = excused([ping(1.0, order=order) for order in range(count)], launches, {})
    for quiet, crowded, _, _ in launches_of(path):
        for name in quiet[0].microseconds:
            worst = max(bests_of(crowded, count, name), default=0.0)
            assert worst <= allowed * usual(quiet, name), name


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_recorded_launches_beside_a_little_not_worse_than_explained(path):
    """No recorded launches beside a little were worse than that explains."""
    # Of two ranks, which work all the time.
    allowed = of_pings(4, lost=0.3, own=2.0)
    for quiet, crowded, _, _ in launches_of(path):
        little = [x for x in crowded if x.disturbance_cores <= 0.3]
        for name in quiet[0].microseconds:
            worst = max(bests_of(little, 4, name), default=0.0)
            assert worst <= allowed * usual(quiet, name), name


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_recorded_launches_on_far_cores_not_worse_than_excused(path):
    """No recorded launches on far cores were worse than they are excused."""
    for quiet, _, moved, nearest in launches_of(path):
        for k in range(0, len(moved) - 2, 3):
            run = moved[k : k + 3]
            launches = [
                beside(0.01, order, far=x.core_distance_ns / nearest, lost=0.02)
                for order, x in enumerate(run)
            ]
            allowed = excused([ping(1.0, order=order) for order in range(3)], launches, {})
            for name in quiet[0].microseconds:
                (best,) = bests_of(run, 3, name)
                assert best <= allowed * usual(quiet, name), name
