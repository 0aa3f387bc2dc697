import pytest

from clustergate.benchmarks.descriptor import CannotRun
from clustergate.benchmarks.mpi_kernel import arguments, doubling_bytes
from clustergate.benchmarks.mpi_trials.input import (
    flush_bytes,
    trials_arguments,
    trials_measured,
)
from clustergate.benchmarks.stream.input import stream_elements
from clustergate.benchmarks.stream5 import stream5_elements, threads_of_rank
from clustergate.launch.dialects import Layout, launch_options
from clustergate.sites.shape import Shape

MEBIBYTE = 1 << 20


@pytest.mark.parametrize(
    ("asked", "stated", "cache", "ranks", "flushed"),
    [
        pytest.param(0, 98304, MEBIBYTE, 2, 0, id="switched-off"),
        pytest.param(4096, 98304, MEBIBYTE, 2, 4096, id="asked-for"),
        pytest.param(-1, 8 * MEBIBYTE, MEBIBYTE, 2, 8 * MEBIBYTE, id="stated-for-each-rank"),
        pytest.param(-1, None, 64 * MEBIBYTE, 4, 16 * MEBIBYTE, id="a-share-of-the-caches"),
        pytest.param(-1, None, 100, 3, 40, id="whole-doubles-and-no-less-than-the-caches"),
    ],
)
def test_bytes_that_flush_the_caches(asked, stated, cache, ranks, flushed):
    assert flush_bytes(asked, stated, cache, ranks) == flushed


def test_unknown_caches_cannot_be_flushed():
    with pytest.raises(CannotRun, match="state cache_bytes_per_node in the site config"):
        flush_bytes(-1, None, None, 2)


def test_the_trials_are_asked_for_by_name():
    words = trials_arguments(["bcast", "scan"], 51, 4096)
    assert words == ["--flush-bytes", "4096", "--trials", "51", "--tests", "bcast,scan"]
    measured = trials_measured(["bcast", "barrier", "gather"])
    assert measured == {
        *(("bcast", 8), ("bcast", 10_000), ("bcast", 1_000_000), ("barrier", 0)),
        *(("gather", 8), ("gather", 10_000)),
    }


@pytest.mark.parametrize(
    ("tests", "trials", "complaint"),
    [
        (["bcst"], 51, "unknown test 'bcst'; known: ping_pong, right_shift"),
        ([], 51, "unknown test ''; known: ping_pong"),
        (["bcast"], 1, "at least 2"),
    ],
)
def test_what_mpi_trials_does_not_know_is_refused(tests, trials, complaint):
    with pytest.raises(CannotRun, match=complaint):
        trials_arguments(tests, trials, 0)


def test_sizes_double_up_to_the_largest():
    assert doubling_bytes(8) == (1, 2, 4, 8)
    assert doubling_bytes(11) == (1, 2, 4, 8)
    with pytest.raises(CannotRun, match="at least"):
        doubling_bytes(0)


def test_an_array_of_stream_is_four_times_the_caches():
    cache, memory = 32 * MEBIBYTE, 1 << 34
    elements = stream_elements(0, cache, memory, 2)
    assert elements * 8 * 2 == 4 * cache
    assert stream_elements(elements + 1, cache, memory, 2) == elements + 1
    unknown = stream_elements(0, None, memory, 2)
    assert unknown * 8 * 2 == pytest.approx(0.1 * memory)
    # Not divisible: rounded up, never below the rule.
    assert 3 * 8 * stream_elements(0, cache, memory, 3) >= 4 * cache


@pytest.mark.parametrize(
    ("asked", "cache", "memory", "complaint"),
    [
        (1000, 32 * MEBIBYTE, 1 << 34, "may not leave the caches; take 8388608 at least"),
        (1000, None, 1 << 34, "may not leave the caches; take"),
        (0, 32 * MEBIBYTE, 400 * MEBIBYTE, "more than 80 % of the node's memory"),
    ],
)
def test_arrays_that_measure_no_memory_are_refused(asked, cache, memory, complaint):
    with pytest.raises(CannotRun, match=complaint):
        stream_elements(asked, cache, memory, 2)


def test_numbers_become_options_without_loss():
    settings = {"largest_bytes": 16777216, "seconds": 0.02}
    words = arguments(settings)
    assert words == ["--largest-bytes", "16777216", "--seconds", "0.02"]


@pytest.mark.parametrize(
    ("asked", "cache", "ranks", "elements"),
    [
        (0, 32 * MEBIBYTE, 1, 20_000_000),
        (0, 19 * MEBIBYTE, 1, 10_000_000),
        (0, 480 * MEBIBYTE, 1, 320_000_000),
        (0, 480 * MEBIBYTE, 4, 80_000_000),
        (30_000_000, 32 * MEBIBYTE, 1, 40_000_000),
    ],
)
def test_stream_is_compiled_for_the_smallest_arrays_that_leave_the_caches(
    asked, cache, ranks, elements
):
    assert stream5_elements(asked, cache, 64 << 30, ranks) == elements


@pytest.mark.parametrize(
    ("cache", "memory", "complaint"),
    [
        (480 * MEBIBYTE, 8 << 30, "of 320000000 elements .* take 7680000000 bytes, more than 80 %"),
        (12 << 30, 1 << 40, "5120000000 elements .* may not leave the caches; take 6442450944"),
    ],
)
def test_stream_says_where_memory_or_its_largest_arrays_do_not_suffice(cache, memory, complaint):
    with pytest.raises(CannotRun, match=complaint):
        stream5_elements(0, cache, memory, 1)


# lscpu -p=CPU,Core,Socket,Node of two sockets of four cores: CPUs are numbered in turn, and their
# hardware threads behind them.
TWO_DOMAINS = [(cpu, cpu % 8, cpu % 2, cpu % 2) for cpu in range(16)]


@pytest.mark.parametrize(
    ("dialect", "words"),
    [
        ("hydra", "-n 2 -ppn 2 -bind-to core:4"),
        ("openmpi", "ppr:2:node:PE=4 --bind-to core"),
        ("intel-hydra", "I_MPI_PIN_DOMAIN 4:compact"),
    ],
)
def test_each_rank_of_stream_has_a_numa_domain_for_itself(dialect, words):
    domains = {node for *_, node in TWO_DOMAINS}
    shape = Shape(8, 1, domains=len(domains))
    assert shape.domain_counts == (1, 2)
    ranks = shape.domain_counts[-1]
    threads = threads_of_rank(shape.cores_per_node, ranks)
    assert words in " ".join(launch_options(dialect, Layout(ranks, ranks, threads)))
    # As hwloc orders cores: by what they share.
    cores = sorted({(node, socket, core) for _, core, socket, node in TWO_DOMAINS})
    bound = [cores[k * threads : (k + 1) * threads] for k in range(ranks)]
    assert [{node for node, *_ in cores} for cores in bound] == [{0}, {1}]
    # All arrays of a kernel's reads and writes, four times what all caches hold.
    cache = 2 * 32 * MEBIBYTE
    for count in shape.domain_counts:
        assert 8 * count * stream5_elements(0, cache, 64 << 30, count) >= 4 * cache


def test_ranks_of_stream_straddle_no_numa_domain():
    assert threads_of_rank(7, 1) == 7
    with pytest.raises(CannotRun, match="7 cores cannot be shared equally by its 2 NUMA domains"):
        threads_of_rank(7, 2)
