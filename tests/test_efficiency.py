import pytest

from clustergate.benchmarks.hpl.efficiency import doubt_of, efficiencies, node_peaks_gflops
from clustergate.core.model import Better, Row, Sample


def trial(benchmark, gflops, cores=2, **more):
    conditions = {"cores": cores, "core_ids": "0,1", "trial": 0, **more}
    return Row("node-peaks", benchmark, conditions, {"performance_gflops": gflops})


PEAKS = [
    trial("fma_peak", 110.0),
    trial("fma_peak", 120.0),
    trial("fma_peak", 116.0),
    trial("fma_peak", 58.0, cores=1),
    trial("dgemm", 100.0, k=192),
    trial("dgemm", 80.0, k=64),
]


def test_peaks_are_medians_of_all_cores_and_the_same_block_size():
    found = node_peaks_gflops(PEAKS, nb=192, cores=2, nominal_gflops_per_core=41.5)
    assert found == {"nominal": 83.0, "fma peak": 116.0, "dgemm": 100.0}


def test_a_peak_that_was_not_measured_is_left_out():
    assert node_peaks_gflops([], 192, 2, 41.5) == {"nominal": 83.0}


def test_efficiency_counts_every_node():
    hpl = Sample("HPL", "performance_gflops", "Gflop/s", Better.HIGHER, {"n": 9000}, 174.0)
    (found,) = efficiencies([hpl], {"fma peak": 116.0}, nodes=2)
    assert found.value == pytest.approx(75.0)
    assert found.conditions == {"n": 9000, "against": "fma peak"}
    assert (found.metric, found.unit) == ("efficiency_percent", "%")


def test_turbo_lifts_the_nominal_efficiency_above_100():
    hpl = Sample("HPL", "performance_gflops", "Gflop/s", Better.HIGHER, {}, 91.0)
    assert efficiencies([hpl], {"nominal": 83.0}, nodes=1)[0].value > 100


def test_peaks_are_of_what_the_cores_did_while_they_were_had():
    slowed = [
        Row(
            "node-peaks",
            "dgemm",
            {"cores": 2, "k": 192, "trial": trial},
            {"performance_gflops": rate, "undisturbed_gflops": 100.0, "cpu_share": rate / 100},
        )
        for trial, rate in enumerate((30.0, 50.0, 99.0))
    ]
    assert node_peaks_gflops(slowed, 192, 2, 41.5)["dgemm"] == 100.0


@pytest.mark.parametrize(
    ("against", "percent", "doubtful"),
    [
        ("dgemm", 126.5, True),
        ("fma peak", 102.1, True),
        ("fma peak", 101.9, False),
        ("nominal", 126.5, False),
    ],
)
def test_an_efficiency_above_its_peak_is_told_with_its_reason(against, percent, doubtful):
    hpl = Sample("HPL", "efficiency_percent", "%", Better.HIGHER, {"against": against}, percent)
    told = doubt_of(hpl, percent)
    assert bool(told) == doubtful
    assert not told or "rely on the Gflop/s" in str(told)
