import re
from pathlib import Path

import pytest

from clustergate.benchmarks import formats as outputs
from clustergate.benchmarks.hpcg.output import HpcgExpectation, parse_hpcg
from clustergate.core.model import OutputError


@pytest.fixture
def text(data: Path) -> str:
    return (data / "hpcg" / "mpich-2-32.txt").read_text(encoding="utf-8")


def test_a_real_output(text: str) -> None:
    (row,) = parse_hpcg(text.splitlines(), expect=HpcgExpectation(2, 32))
    assert row.conditions == {
        **{"processes": 2, "threads": 1, "nx": 32, "ny": 32, "nz": 32},
        **{"gx": 64, "gy": 32, "gz": 32, "iterations": 50, "sets": 2},
    }
    assert row.values == {"performance_gflops": 0.415401, "time_s": 5.53823}
    assert text.splitlines()[row.line - 1].endswith("rating of=0.415401")
    assert list(outputs.parse(text.splitlines(), source="x")) == [row]


@pytest.mark.parametrize(
    ("name", "processes", "edge", "sets"),
    [
        ("openmpi-2-32", 2, 32, 1),
        ("intel-mpi-2-24", 2, 24, 2),
        ("mpich-4-16", 4, 16, 1),
        ("openmpi-1-32", 1, 32, 4),
        ("mpich-1-16-quick", 1, 16, 1),
        ("openmpi-4-24", 4, 24, 1),
    ],
)
def test_other_real_outputs(data: Path, name: str, processes: int, edge: int, sets: int) -> None:
    """Of three MPI libraries; the quick one with the path that HPCG takes for 0 seconds."""
    lines = (data / "hpcg" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    (row,) = parse_hpcg(lines, expect=HpcgExpectation(processes, edge))
    assert row.conditions["sets"] == sets


@pytest.mark.parametrize(
    ("pattern", "changed", "complaint"),
    [
        (r"VALID with a GFLOP/s rating of=.*", "INVALID.=", "rating of' is missing"),
        ("Convergence Tests::Result=PASSED", "Convergence Tests::Result=FAILED", "Tests: FAILED"),
        (r"epsilon::Result=PASSED", "epsilon::Result=FAILED", "Departure from Symmetry .*: FAILED"),
        (r"(?s)Final Summary=.*", "", "rating of' is missing"),
        ("rating of=0.415401", "rating of=nan", "nan"),
        ("rating of=0.415401", "rating of=0.515401", "0.515401 contradicts 0.41540"),
        ("rating of=0.415401", "rating of=0.415402", "0.415402, which follows from the others"),
        ("Global nx=64", "Global nx=65", "65 contradicts 64, which follows from the others"),
        ("Processes=2", "Processes=4", "Processes of 4 contradicts 2"),
        ("Equations=65536", "Equations=65537", "contradicts 65536"),
        ("Terms=1678840", "Terms=1678841", "contradicts 1678840"),
        ("Summary::Total=5.53823", "Summary::Total=4.53823", "Raw Total of 0.419365 contradicts"),
        ("Summary::Total=2.3", "Summary::Total=3.3", "contradicts 2.32254e"),
        ("optimized iterations=100", "optimized iterations=150", "contradicts 3.48"),
        ("optimized iterations=100", "optimized iterations=110", "10 contradicts 0"),
        ("Setup Time=0.264", "Setup Time=9.264", "contradicts 0.314"),
        ("grid levels=3", "grid levels=2", "of 2 contradicts 3"),
        ("version=3.1", "version=2.4", "this is output of HPCG 2.4, which"),
        (r"\Z", "\nHPCG-Benchmark\n", "another run begins here"),
        (r"\Z", "\nMachine Summary::Distributed Processes=4\n", "stands here a second time"),
        (r"\AHPCG.*", "", "the title is missing"),
    ],
)
def test_damage_is_refused(text: str, pattern: str, changed: str, complaint: str) -> None:
    damaged, count = re.subn(pattern, changed, text, count=1)
    assert count == 1
    with pytest.raises(OutputError, match=complaint):
        list(parse_hpcg(damaged.splitlines()))


@pytest.mark.parametrize(
    ("expected", "complaint"),
    [
        (HpcgExpectation(processes=4), "processes 2, but 4 was requested"),
        (HpcgExpectation(edge=64), "an edge nx of 32, but 64 was requested"),
    ],
)
def test_another_run_is_refused(text: str, expected: HpcgExpectation, complaint: str) -> None:
    with pytest.raises(OutputError, match=f"another run: .*{complaint}"):
        list(parse_hpcg(text.splitlines(), expect=expected))
