import re
from pathlib import Path

import pytest

from clustergate.benchmarks import formats as outputs
from clustergate.benchmarks.npb.output import NpbExpectation, parse_npb
from clustergate.core.model import OutputError


def text_of(data: Path, name: str) -> list[str]:
    return (data / "npb" / f"{name}.S.2.txt").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize(
    ("name", "size", "mops"),
    [("cg", "1400", 14.67), ("ep", None, None), ("is", "65536", 1.02), ("mg", None, None)],
)
def test_real_outputs_of_fortran_and_c(data: Path, name: str, size: str, mops: float) -> None:
    expected = NpbExpectation(name.upper(), "S", 2)
    (row,) = parse_npb(text_of(data, name), expect=expected)
    assert row.benchmark == f"NPB-{name.upper()}"
    assert row.conditions["processes"] == 2
    assert row.conditions["problem_class"] == "S"
    assert str(row.conditions["npb_version"]).startswith("3.3")
    if size:
        assert row.conditions["size"] == size
        assert row.values["total_mop_per_s"] == mops
    assert set(row.values) == {"total_mop_per_s", "time_s"}
    assert list(outputs.parse(text_of(data, name), source="x")) == [row]


def test_a_failed_verification_is_no_figure(data: Path) -> None:
    lines = [line.replace("  SUCCESSFUL", "UNSUCCESSFUL") for line in text_of(data, "is")]
    with pytest.raises(OutputError, match=r"output:\d+: .* is UNSUCCESSFUL"):
        list(parse_npb(lines))


@pytest.mark.parametrize(
    ("pattern", "changed", "complaint"),
    [
        (
            "(Mop/s/process .*)7.33",
            r"\g<1>9.33",
            "9.33 Mop/s of each of 2 processes contradicts 14.67",
        ),
        ("(Mop/s total .*)14.67", r"\g<1>nan", "'Mop/s total' must be a number, not 'nan'"),
        ("(Mop/s total .*)14.67", r"\g<1>0.00", "contradicts 0 in all"),
        (
            "(Total processes .*)2",
            r"\g<1>2.5",
            "'Total processes' must be an integer of at least 1",
        ),
        (
            "CG Benchmark Completed",
            "MG Benchmark Completed",
            "the end of MG stands here instead of that of CG",
        ),
        (
            "CG Benchmark Completed",
            "XX Benchmark Completed",
            "the end of XX stands here instead of that of CG",
        ),
        ("( Version .*)", r"\1\n Class           =   C", "'Class' stands here a second time"),
        ("( Version .*)", r"\1\n CG Benchmark Completed.", "another run begins here"),
    ],
)
def test_a_damaged_text_is_refused(data: Path, pattern: str, changed: str, complaint: str) -> None:
    text = re.sub(pattern, changed, "\n".join(text_of(data, "cg")))
    with pytest.raises(OutputError, match=re.escape(complaint)):
        list(parse_npb(text.splitlines()))


@pytest.mark.parametrize(
    ("expected", "complaint"),
    [
        (NpbExpectation(benchmark="MG"), "benchmark CG, but MG"),
        (NpbExpectation(problem_class="C"), "class S, but C"),
        (NpbExpectation(processes=16), "processes 2, but 16"),
    ],
)
def test_another_run_is_refused(data: Path, expected: NpbExpectation, complaint: str) -> None:
    with pytest.raises(OutputError, match=f"another run: {complaint} was requested"):
        list(parse_npb(text_of(data, "cg"), expect=expected))


def test_lines_that_ran_into_each_other_are_refused(data: Path) -> None:
    text = re.sub(r"( Version .*=).*\n", r"\1", "\n".join(text_of(data, "is")))
    with pytest.raises(OutputError, match="not a value as NPB prints it: 'Version = Compile date"):
        list(parse_npb(text.splitlines()))
