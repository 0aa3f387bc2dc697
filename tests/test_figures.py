import pytest

from clustergate.benchmarks.imb.output import parse_imb
from clustergate.core.figures import (
    left_out,
    name_of,
    name_of_unmeasured,
    refuse_shared_names,
    reported,
    same_measurement,
    samples_of,
    unmeasured,
)
from clustergate.core.model import METRICS, Better, OutputError, Row

PINGPONG = Row(
    "IMB-MPI1",
    "PingPong",
    {"processes": 2, "groups": 1, "bytes": 8, "repetitions": 1000},
    {"latency_us": 0.5, "bandwidth_mb_s": 16.0},
)


def test_each_value_of_a_row_is_a_sample_with_its_direction():
    latency, bandwidth = samples_of([PINGPONG])
    assert (latency.metric, latency.better, latency.unit) == ("latency_us", Better.LOWER, "us")
    assert (bandwidth.value, bandwidth.better) == (16.0, Better.HIGHER)
    assert bandwidth.conditions["repetitions"] == 1000


def test_a_metric_that_nobody_knows_is_refused():
    with pytest.raises(OutputError, match=r":3: Y: no benchmark's metrics say which way speed"):
        samples_of([Row("X", "Y", {}, {"speed": 1.0}, line=3)])


def test_indistinguishable_figures_of_a_launch_refused():
    rows = [Row("X", "Y", {"bytes": 8, "elements": n}, {"latency_us": 1.0}) for n in (5, 6)]
    refuse_shared_names(samples_of([rows[0], rows[0]]))
    with pytest.raises(OutputError, match=r"two figures have the name Y.8B.latency_us: elements"):
        refuse_shared_names(samples_of(rows))


def test_of_many_tilings_of_a_matrix_the_best_counts():
    rows = [Row("X", "HPL", {"n": 99, "nb": nb}, {"performance_gflops": 1.0}) for nb in (5, 6)]
    refuse_shared_names(samples_of(rows), matrix="HPL")
    with pytest.raises(OutputError, match=r"HPL.performance_gflops: nb is"):
        refuse_shared_names(samples_of(rows))


def test_names_tell_figures_apart():
    assert name_of(samples_of([PINGPONG])[0]) == "PingPong.2p.8B.latency_us"
    groups = Row("IMB-MPI1", "Bcast", {"processes": 2, "groups": 2, "bytes": 0}, {"t_avg_us": 1.0})
    assert name_of(samples_of([groups])[0]) == "Bcast.2p.2groups.0B.t_avg_us"


def test_figures_share_a_name_only_when_indistinguishable(data):
    """Figures of a real output share a name only when nothing tells them apart."""
    read = 0
    for path in sorted((data / "imb").glob("*.txt")):
        try:
            samples = samples_of(parse_imb(path.read_text().splitlines()), METRICS)
        except OutputError:
            continue  # captured on purpose: cut off, or without a benchmark asked for
        read += 1
        named: dict[str, object] = {}
        for sample in samples:
            told = {k: v for k, v in sample.conditions.items() if k != "repetitions"}
            assert named.setdefault(name_of(sample), told) == told, path
    assert read > 10


def test_the_slowest_rank_is_judged_and_the_fastest_is_not():
    times = {"t_min_us": 1.0, "t_avg_us": 2.0, "t_max_us": 3.0}
    row = Row("IMB-MPI1", "Bcast", {"bytes": 8}, times)
    assert [s.metric for s in reported(samples_of([row]))] == ["t_avg_us", "t_max_us"]
    assert same_measurement("Bcast.2p.8B.t_avg_us")[-1] == "Bcast.2p.8B.t_max_us"
    # A bandwidth is that of the slowest rank; of an empty message there is none.
    rows = [
        Row("IMB-MPI1", "Sendrecv", {"bytes": size}, {**times, "bandwidth_mb_s": rate})
        for size, rate in ((8, 5.3), (0, 0.0))
    ]
    assert [s.metric for s in reported(samples_of(rows))] == [
        *("t_avg_us", "bandwidth_mb_s"),
        *("t_avg_us", "t_max_us"),
    ]


def test_a_row_with_a_word_has_no_sample_and_is_not_lost():
    row = Row("IMB-MPI1", "Alltoall", {"bytes": 1 << 22}, {}, status="out-of-mem", line=7)
    assert samples_of([row]) == ()
    assert unmeasured([PINGPONG, row]) == [row]
    assert name_of_unmeasured(row) == "Alltoall.4194304B.out-of-mem"


def test_what_imb_chose_and_cannot_run_is_told_and_is_no_failure():
    rows = [
        Row("IMB-P2P", name, {"processes": 2}, {}, status="invalid", line=7)
        for name in ("Stencil2D", "Stencil3D", "Stencil2D")
    ]
    assert unmeasured(rows) == []
    told = ["not available here: Stencil2D, Stencil3D, which cannot run with 2 processes"]
    assert left_out([PINGPONG, *rows]) == told
