import re
from pathlib import Path

import pytest

from clustergate.benchmarks import formats as outputs
from clustergate.benchmarks.hpccg.output import HpccgExpectation, parse_hpccg
from clustergate.core.model import OutputError


@pytest.fixture
def text(data: Path) -> str:
    return (data / "hpccg" / "2-ranks.txt").read_text(encoding="utf-8")


def test_a_real_output(text: str) -> None:
    (row,) = parse_hpccg(text.splitlines(), expect=HpccgExpectation(2, 16))
    assert row.conditions == {"processes": 2, "nx": 16, "ny": 16, "nz": 16, "iterations": 149}
    assert row.values == {"performance_mflops": 290.485, "time_s": 0.268926}
    assert text.splitlines()[row.line - 1] == "  Total   : 290.485"
    assert list(outputs.parse(text.splitlines(), source="x")) == [row]


@pytest.mark.parametrize(
    ("pattern", "changed", "complaint"),
    [
        ("Final residual: .*", "Final residual: 1e-3", "is 0.001 and must be 5.25045e-08 at most"),
        (
            "Final residual: .*",
            "Final residual: nan",
            "'Final residual' must be a number, not 'nan'",
        ),
        ("Initial Residual = .*", "", "'Initial Residual' is missing: the output is cut off"),
        (
            "Total   : 290.485",
            "Total   : 390.485",
            "7.81189e+07 operations in 0.268926 s contradicts",
        ),
        ("Total   : 0.268926", "Total   : 0", "'Time Summary/Total' must be positive"),
        ("nx: 16", "nx: 1.5", "'Dimensions/nx' must be an integer of at least 1, not '1.5'"),
    ],
)
def test_a_wrong_or_damaged_run_is_refused(
    text: str, pattern: str, changed: str, complaint: str
) -> None:
    with pytest.raises(OutputError, match=re.escape(complaint)):
        list(parse_hpccg(re.sub(pattern, changed, text).splitlines()))


@pytest.mark.parametrize(
    ("expected", "complaint"),
    [
        (HpccgExpectation(processes=4), "processes 2, but 4 was requested"),
        (HpccgExpectation(edge=64), "an edge nx of 16, but 64 was requested"),
    ],
)
def test_another_run_is_refused(text: str, expected: HpccgExpectation, complaint: str) -> None:
    with pytest.raises(OutputError, match=f"another run: .*{complaint}"):
        list(parse_hpccg(text.splitlines(), expect=expected))


def test_two_runs_in_one_text_are_refused(text: str) -> None:
    lines = text.splitlines()
    mixed = [line for line in lines for _ in range(2)]
    for twice in (mixed, lines + lines):
        with pytest.raises(OutputError, match=r":\d+: another run begins here"):
            list(parse_hpccg(twice))
