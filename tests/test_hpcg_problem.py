import math

import pytest

from clustergate.benchmarks.descriptor import CannotRun
from clustergate.benchmarks.hpcg import BENCHMARK
from clustergate.benchmarks.hpcg.problem import (
    OFFICIAL_S,
    OFFICIAL_SHARE,
    block_bytes,
    bytes_per_operation,
    hpcg_dat,
    local_edge,
    nonzeros,
    operations,
    unofficial,
)
from clustergate.benchmarks.limits import Measurement
from clustergate.core.model import Better, NodeFacts, Sample
from clustergate.machine.peaks import Peak

GIB = 1 << 30


def test_operations_are_those_that_hpcg_counts() -> None:
    """Of tests/data/hpcg/mpich-2-32.txt, whose values have six digits."""
    assert nonzeros(64, 32, 32) == 1678840
    assert operations((64, 32, 32), 2, 50) == pytest.approx(2.32254e9, rel=3e-6)
    # 715.441 bytes for each equation, says HPCG.
    assert 2 * block_bytes(32) == pytest.approx(0.0468871e9, rel=0.1)


def test_blocks_follow_from_the_time_of_a_set_and_the_memory() -> None:
    assert local_edge(0, 256 * GIB, 64, 0.4, 3.0, 40.0) == 48
    assert local_edge(0, 256 * GIB, 64, 0.4, 10.0, 40.0) == 72
    assert local_edge(0, 256 * GIB, 64, 0.4, None, 40.0) == 128
    assert local_edge(0, 256 * GIB, 64, 0.4, 1e-6, 40.0) == 16
    assert local_edge(104, 256 * GIB, 64, 0.4, 3.0, 40.0) == 104


@pytest.mark.parametrize("gib_per_core", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("cores", [2, 64, 192])
def test_an_official_rating_fills_a_quarter_of_the_memory(cores: int, gib_per_core: int) -> None:
    effort = BENCHMARK.efforts["acceptance"]
    memory = cores * gib_per_core * GIB
    edge = local_edge(0, memory, cores, effort.memory_fraction, None, 40.0)
    assert OFFICIAL_SHARE * memory <= cores * block_bytes(edge) <= 0.5 * memory
    assert hpcg_dat(edge, OFFICIAL_S).splitlines()[2:] == [f"{edge} {edge} {edge}", "1800"]


@pytest.mark.parametrize(
    ("edge", "memory", "complaint"),
    [
        (100, GIB, "edge of a block is 100; take a multiple of 8, 16 at least"),
        (8, GIB, "edge of a block is 8"),
        (104, GIB, r"blocks of edge 104 for 2 ranks of a node take 1754787840 bytes, more than 80"),
    ],
)
def test_blocks_that_do_not_fit_are_refused(edge: int, memory: int, complaint: str) -> None:
    with pytest.raises(CannotRun, match=complaint):
        local_edge(edge, memory, 2, 0.4, 3.0, 40.0)


def test_bytes_of_an_operation_are_those_of_the_fine_matrix() -> None:
    """Six passes of 324 bytes for each row, and 374 operations; none of what the caches hold."""
    grid = (512, 512, 512)
    assert bytes_per_operation(grid, 0.0) == pytest.approx(6 * 324 / 374, rel=0.01)
    matrix = 12.0 * nonzeros(*grid)
    half = bytes_per_operation(grid, matrix / 2)
    assert half == pytest.approx(bytes_per_operation(grid, 0.0) / 2)
    assert bytes_per_operation(grid, matrix) == 0


def measurement(cache_bytes: int | None, gflops: float, nodes: int = 1) -> Measurement:
    grid = {"gx": 256 * nodes, "gy": 256, "gz": 256}
    sample = Sample("HPCG", "performance_gflops", "Gflop/s", Better.HIGHER, grid, gflops)
    alone = Peak("triad", "bandwidth_gb_s", (0,), None, 12.0, 12.0, 12.0, 3)
    peaks = [alone, Peak("triad", "bandwidth_gb_s", tuple(range(8)), None, 60.0, 60.0, 60.0, 3)]
    case = {"nodes": nodes, "ranks_per_node": 8, "cores_per_rank": 1, "bound": True}
    return Measurement("HpcgCheck", case, sample, peaks, NodeFacts(cache_bytes, None))


@pytest.mark.parametrize("nodes", [1, 4])
def test_no_rating_is_higher_than_the_triad_allows(nodes: int) -> None:
    one = measurement(1 << 25, 10.0, nodes)
    (limit,) = [x for x in BENCHMARK.limits(one) if not x.loose]
    triad = one.peaks[1].at_most
    assert limit.at_most == pytest.approx(nodes * 4 / 3 * triad / (6 * 324 / 374), rel=0.02)
    assert "bytes from memory at least" in str(limit.reason)


def test_without_known_caches_or_with_a_matrix_in_them_memory_limits_nothing() -> None:
    for cache in (None, 12 * nonzeros(256, 256, 256)):
        limits = BENCHMARK.limits(measurement(cache, 10.0))
        assert all(x.loose and x.at_most is not None and math.isfinite(x.at_most) for x in limits)


@pytest.mark.parametrize(
    ("seconds", "share", "told"),
    [
        (1800.0, 0.25, ""),
        (12.4, 0.39, "not an official rating of HPCG: 12 s and 39% of the memory, where 1800 s"),
        (1900.0, 0.1, "1900 s and 10% of the memory, where 1800 s and 25% are the least"),
    ],
)
def test_rating_below_the_rules_is_told_as_one(seconds: float, share: float, told: str) -> None:
    assert told in unofficial(seconds, share)
    assert bool(unofficial(seconds, share)) == bool(told)
