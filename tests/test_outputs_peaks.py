import json
from pathlib import Path

import pytest

from clustergate.model import OutputError
from clustergate.outputs.peaks import METRICS, parse_peaks


@pytest.fixture
def node_peaks(data: Path) -> list[str]:
    return (data / "peaks" / "node_peaks.txt").read_text(encoding="utf-8").splitlines()


@pytest.fixture
def dgemm(data: Path) -> list[str]:
    return (data / "peaks" / "dgemm.txt").read_text(encoding="utf-8").splitlines()


def changed(line: str, **members: object) -> str:
    return json.dumps({**json.loads(line), **members})


def test_every_trial_is_a_row(node_peaks: list[str]) -> None:
    rows = list(parse_peaks(node_peaks))
    assert [row.benchmark for row in rows] == ["fma_peak"] * 15 + ["triad"] * 15
    assert {row.suite for row in rows} == {"node-peaks"}
    assert [row.line for row in rows] == list(range(1, 31))
    first = rows[0]
    assert first.conditions == {"cores": 1, "core_ids": "0", "trial": 0, "vector": "avx512"}
    assert first.values == {"performance_gflops": 57.815}
    last = rows[-1]
    assert last.conditions == {"cores": 2, "core_ids": "0,1", "trial": 4, "array_mib": 128}
    assert last.values == {"bandwidth_gb_s": 39.921}
    assert set(last.values) <= set(METRICS)


def test_dgemm_names_its_shape_and_its_kernels(dgemm: list[str]) -> None:
    row = list(parse_peaks(dgemm))[-1]
    assert row.conditions == {
        "cores": 2,
        "core_ids": "0,1",
        "trial": 4,
        "m": 2000,
        "k": 192,
        "kernel": "SkylakeX",
    }
    assert row.values == {"performance_gflops": 108.587}


def test_dgemm_stays_below_the_peak(node_peaks: list[str], dgemm: list[str]) -> None:
    def best(lines: list[str], benchmark: str, cores: int) -> float:
        return max(
            row.values["performance_gflops"]
            for row in parse_peaks(lines)
            if row.benchmark == benchmark and row.conditions["cores"] == cores
        )

    for cores in (1, 2):
        assert 0.9 < best(dgemm, "dgemm", cores) / best(node_peaks, "fma_peak", cores) < 1


def test_outputs_may_follow_each_other(node_peaks: list[str], dgemm: list[str]) -> None:
    assert len(list(parse_peaks([*node_peaks, *dgemm]))) == 45


@pytest.mark.parametrize("kept", [1, 10, 30])
def test_a_cut_is_noticed(node_peaks: list[str], kept: int) -> None:
    with pytest.raises(OutputError, match="cut off"):
        list(parse_peaks(node_peaks[:kept]))


def test_a_cut_within_a_line_is_noticed(node_peaks: list[str]) -> None:
    with pytest.raises(OutputError, match=r"peaks\.out:2: not a line of node_peaks"):
        list(parse_peaks([node_peaks[0], node_peaks[1][:30]], source="peaks.out"))


def test_a_lost_line_is_noticed(node_peaks: list[str]) -> None:
    with pytest.raises(OutputError, match="counts 30 lines, but 29 came before it") as caught:
        list(parse_peaks(node_peaks[1:]))
    assert caught.value.line == 30


def test_a_second_program_that_was_cut_off(node_peaks: list[str], dgemm: list[str]) -> None:
    with pytest.raises(OutputError, match="cut off"):
        list(parse_peaks([*node_peaks, *dgemm[:-1]]))


def test_no_output() -> None:
    with pytest.raises(OutputError, match="nothing was printed"):
        list(parse_peaks([]))


@pytest.mark.parametrize(
    ("members", "complaint"),
    [
        ({"gflops": 0}, "'gflops' must be a number above 0, not 0"),
        ({"gflops": -1.5}, "'gflops' must be a number above 0"),
        ({"gflops": "58"}, "'gflops' must be a number above 0"),
        ({"gflops": 10**400}, "int too large"),
        ({"gflops": True}, "'gflops' must be a number above 0"),
        ({"gflops": float("nan")}, "not a line of node_peaks"),
        ({"gflops": float("inf")}, "not a line of node_peaks"),
        ({"seconds": 0}, "'seconds' must be a number above 0"),
        ({"trial": 1.5}, "'trial' must be a whole number from 0"),
        ({"cores": []}, "'cores' must be a list"),
        ({"cores": ["0"]}, "'cores' must be a list"),
        ({"vector": ""}, "'vector' must be a word"),
        ({"measurement": "triade"}, "unknown measurement 'triade'"),
        ({"measurement": 7}, "not a line of node_peaks"),
    ],
)
def test_figures_that_cannot_be(
    node_peaks: list[str], members: dict[str, object], complaint: str
) -> None:
    lines = [node_peaks[0], changed(node_peaks[1], **members), *node_peaks[2:]]
    with pytest.raises(OutputError, match=complaint) as caught:
        list(parse_peaks(lines))
    assert caught.value.line == 2


def test_an_overflowing_figure_is_refused(node_peaks: list[str]) -> None:
    figure = json.loads(node_peaks[0])["gflops"]
    lines = [node_peaks[0].replace(str(figure), "1e999"), *node_peaks[1:]]
    with pytest.raises(OutputError, match="'gflops' must be a number above 0, not inf"):
        list(parse_peaks(lines))


@pytest.mark.parametrize("stranger", ["", "warning: something", "[1, 2]", "null"])
def test_a_line_of_something_else(node_peaks: list[str], stranger: str) -> None:
    with pytest.raises(OutputError, match=":1: not a line of node_peaks or dgemm"):
        list(parse_peaks([stranger, *node_peaks]))
