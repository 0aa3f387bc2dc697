import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from clustergate.core.model import OutputError, Row
from clustergate.machine.kernels.peaks import METRICS, parse_peaks
from clustergate.machine.peaks import is_unchanged, peaks_of


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


def test_a_cut_within_a_line_is_noticed(node_peaks: list[str]) -> None:
    with pytest.raises(OutputError, match=r"peaks\.out:2: not a line as node_peaks"):
        list(parse_peaks([node_peaks[0], node_peaks[1][:30]], source="peaks.out"))


def test_a_lost_line_is_noticed(node_peaks: list[str]) -> None:
    with pytest.raises(OutputError, match="count of 30 contradicts 29 lines before it") as caught:
        list(parse_peaks(node_peaks[1:]))
    assert caught.value.line == 30


def test_a_second_program_that_was_cut_off(node_peaks: list[str], dgemm: list[str]) -> None:
    with pytest.raises(OutputError, match="cut off"):
        list(parse_peaks([*node_peaks, *dgemm[:-1]]))


@pytest.mark.parametrize(
    ("members", "complaint"),
    [
        ({"gflops": 0}, "'gflops' must be positive, not 0"),
        ({"gflops": -1.5}, "'gflops' must be positive"),
        ({"gflops": "58"}, "'gflops' must be positive"),
        ({"gflops": 10**400}, "'gflops' must be positive, not 1000"),
        ({"gflops": True}, "'gflops' must be positive"),
        ({"gflops": float("nan")}, "not a line as node_peaks"),
        ({"gflops": float("inf")}, "not a line as node_peaks"),
        ({"seconds": 0}, "'seconds' must be positive"),
        ({"trial": 1.5}, "'trial' must be an integer of at least 0"),
        ({"cores": []}, "'cores' must be a list"),
        ({"cores": ["0"]}, "'cores' must be a list"),
        ({"vector": ""}, "'vector' must be a word"),
        ({"measurement": "triade"}, "'measurement' must be one of .* not 'triade'"),
        ({"measurement": 7}, "not a line as node_peaks"),
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
    with pytest.raises(OutputError, match="'gflops' must be positive, not inf"):
        list(parse_peaks(lines))


@pytest.mark.parametrize("stranger", ["", "warning: something", "[1, 2]", "null"])
def test_a_line_of_something_else(node_peaks: list[str], stranger: str) -> None:
    with pytest.raises(OutputError, match=":1: not a line as node_peaks or dgemm"):
        list(parse_peaks([stranger, *node_peaks]))


TODAY = (
    '{"measurement":"fma_peak","cores":[0,1],"trial":0,"seconds":0.057049,"max_ghz":3.700,'
    '"vector":"avx512","flops_per_cycle":16,"clock_ghz":3.6900,"virtual":1,"gflops":70.878,'
    '"undisturbed":118.125,"cpu_share":0.683000}',
    '{"measurement":"triad","cores":[0],"trial":0,"seconds":0.050021,"array_mib":128,'
    '"bandwidth_gb_s":32.969,"undisturbed":33.025,"cpu_share":0.998100}',
    '{"measurement":"dgemm","cores":[0],"trial":0,"seconds":0.050021,"m":2000,"k":192,'
    '"kernel":"Zen","gflops":25.1,"undisturbed":50.2,"cpu_share":0.500000}',
    '{"measurement":"core_distance","cores":[0,1],"trial":0,"seconds":0.001766,'
    '"round_trip_ns":{"best":56.2,"mean":58.9}}',
    '{"measurement":"core_distance","cores":[0],"trial":0,"seconds":0.000001}',
    '{"measurement":"end","count":5}',
)


def test_what_the_cores_did_told_beside_each_trial() -> None:
    fma, triad, dgemm, distance, no_distance = parse_peaks(TODAY)
    assert fma.conditions["flops_per_cycle"] == 16
    assert fma.conditions["virtual"] == 1
    assert fma.values == {
        "performance_gflops": 70.878,
        "undisturbed_gflops": 118.125,
        "cpu_share": 0.683,
        "clock_ghz": 3.69,
        "max_ghz": 3.7,
    }
    assert triad.values["undisturbed_gb_s"] == 33.025
    assert dgemm.values["undisturbed_gflops"] == 50.2
    assert distance.values == {"round_trip_ns": 56.2}
    assert no_distance.values == {}


@pytest.mark.parametrize("name", ["undisturbed", "cpu_share", "clock_ghz"])
def test_what_is_told_beside_a_trial_is_a_number_above_0(name: str) -> None:
    with pytest.raises(OutputError, match=f"'{name}' must be positive, not 0"):
        list(parse_peaks([changed(TODAY[0], **{name: 0}), *TODAY[1:]]))


PROGRAMS = {
    "node_peaks": ["--seconds", "0.01", "--trials", "2", "--array-mib", "8"],
    "core_distance": ["--from-first", "1", "--trials", "2"],
}


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile the kernels that need no BLAS and no MPI."""
    folder = tmp_path_factory.mktemp("kernels")
    sources = Path(__file__).parent.parent / "clustergate" / "machine" / "kernels" / "src"
    for name in PROGRAMS:
        command = ["cc", "-O3", "-Wall", "-Wextra", "-Werror", "-pthread", "-o", str(folder / name)]
        subprocess.run([*command, str(sources / f"{name}.c"), "-lm"], check=True)
    return folder


@pytest.mark.parametrize("beside_others", [False, True])
def test_others_on_its_core_hide_nothing_from_a_kernel(kernels: Path, beside_others: bool) -> None:
    (core, *_) = sorted(os.sched_getaffinity(0))
    spinning = ["taskset", "-c", str(core), sys.executable, "-c", "while True: pass"]
    others = [subprocess.Popen(spinning) for _ in range(2 if beside_others else 0)]
    try:
        said = subprocess.run(
            [kernels / "node_peaks", *PROGRAMS["node_peaks"], "--cores", str(core)],
            check=True,
            capture_output=True,
            text=True,
        )
    finally:
        for other in others:
            other.kill()
            other.wait()
    rows = list(parse_peaks(said.stdout.splitlines()))
    assert [row.benchmark for row in rows] == ["fma_peak", "fma_peak", "triad", "triad"]
    for row in rows:
        rate = row.values.get("performance_gflops", row.values.get("bandwidth_gb_s", 0.0))
        undisturbed = row.values.get("undisturbed_gflops", row.values.get("undisturbed_gb_s", 0.0))
        # A block of 40 us holds two readings of the clock, which the whole trial has once.
        assert undisturbed >= 0.99 * rate
        assert 0 < row.values["cpu_share"] <= 1
    for row in rows[:2]:
        most = row.values["clock_ghz"] * int(row.conditions["flops_per_cycle"])
        # The clock is that of right after the trial, and may have risen from 1 GHz to 6 since.
        assert row.values["undisturbed_gflops"] <= 6 * most


def test_a_glance_is_held_against_glances_alone(kernels: Path) -> None:
    def rows(*options: str) -> list[Row]:
        command = [str(kernels / "node_peaks"), *PROGRAMS["node_peaks"], "--trials", "3", *options]
        said = subprocess.run(command, check=True, capture_output=True, text=True)
        return list(parse_peaks(said.stdout.splitlines()))

    whole, glance = rows(), rows("--glance", "1")
    assert {row.benchmark for row in glance} == {"fma_peak", "triad_glance"}
    known = {(peak.kind, peak.cores) for peak in peaks_of(whole)}
    assert {(peak.kind, peak.cores) for peak in peaks_of(glance)} <= known
    assert not is_unchanged(whole, glance)


def test_all_cores_at_once_are_measured_without_each_alone(kernels: Path) -> None:
    command = [str(kernels / "node_peaks"), *PROGRAMS["node_peaks"], "--together", "1"]
    said = subprocess.run(command, check=True, capture_output=True, text=True)
    cores = len(os.sched_getaffinity(0))
    rows = list(parse_peaks(said.stdout.splitlines()))
    assert [row.benchmark for row in rows] == ["fma_peak", "fma_peak", "triad", "triad"]
    assert {row.conditions["cores"] for row in rows} == {cores}


def test_the_nearest_core_is_looked_for_from_the_first(kernels: Path) -> None:
    said = subprocess.run(
        [kernels / "core_distance", *PROGRAMS["core_distance"]],
        check=True,
        capture_output=True,
        text=True,
    )
    rows = list(parse_peaks(said.stdout.splitlines()))
    first = {str(row.conditions["core_ids"]).split(",")[0] for row in rows}
    assert len(first) == 1
    assert len(rows) == len({row.conditions["core_ids"] for row in rows})
