from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from clustergate.benchmarks.hpcc.output import (
    METRICS,
    SECTIONS,
    TITLE,
    HpccExpectation,
    parse_hpcc,
)
from clustergate.benchmarks.hpl.output import HplExpectation
from clustergate.benchmarks.hpl.sizing import HplInput, hpl_expectation
from clustergate.core.model import Better, OutputError, Row

DATA = Path(__file__).resolve().parent / "data" / "hpcc"
RANDOM_ACCESS = frozenset(name for name in SECTIONS if "RandomAccess" in name)

ASKED = HplInput(
    n_values=(1000,), nb_values=(64,), p_values=(1,), q_values=(2,), pfacts=(2,), rfacts=(1,)
)


def lines_of(name: str) -> list[str]:
    return (DATA / f"hpcc-1.5.0-{name}.txt").read_text().splitlines(keepends=True)


def is_title(lines: Iterable[str]) -> bool:
    return any(map(TITLE.match, lines))


def rows_of(lines: Sequence[str], expect: HpccExpectation | None = None) -> list[Row]:
    return list(parse_hpcc(lines, source="hpccoutf.txt", expect=expect))


def error_of(lines: Sequence[str], expect: HpccExpectation | None = None) -> OutputError:
    with pytest.raises(OutputError) as caught:
        rows_of(lines, expect)
    return caught.value


def position(lines: Sequence[str], start: str, occurrence: int = 0) -> int:
    return [index for index, line in enumerate(lines) if line.startswith(start)][occurrence]


def with_summary(lines: Sequence[str], name: str, value: str) -> list[str]:
    index = position(lines, f"{name}=")
    return [*lines[:index], f"{name}={value}\n", *lines[index + 1 :]]


def within(lines: Sequence[str], section: str) -> slice:
    return slice(
        position(lines, f"Begin of {section} section.") + 1,
        position(lines, f"End of {section} section."),
    )


def with_section(lines: Sequence[str], section: str, old: str, new: str) -> list[str]:
    inside = within(lines, section)
    assert any(old in line for line in lines[inside])
    changed = [line.replace(old, new) for line in lines[inside]]
    return [*lines[: inside.start], *changed, *lines[inside.stop :]]


@pytest.mark.parametrize(
    ("name", "hpl_results", "figures"),
    [
        ("mpich", 1, 40),
        ("impi", 1, 40),
        ("openmpi", 1, 40),
        ("openmpi-threads", 1, 40),
        ("openmpi-three-processes", 8, 40),
        ("mpich-one-process", 1, 30),
    ],
)
def test_every_figure_is_a_row(name: str, hpl_results: int, figures: int) -> None:
    rows = rows_of(lines_of(name))
    assert sum(row.benchmark == "HPL" for row in rows) == hpl_results
    assert len(rows) == hpl_results + figures
    assert {row.suite for row in rows} == {"HPCC"}


def test_rows_hold_the_summary_as_printed() -> None:
    lines = lines_of("openmpi-three-processes")
    rows = {row.benchmark: row for row in rows_of(lines)}
    gups = position(lines, "StarRandomAccess_LCG_GUPs=")
    assert rows["StarRandomAccess_LCG_GUPs"] == Row(
        suite="HPCC",
        benchmark="StarRandomAccess_LCG_GUPs",
        conditions={
            "ranks": 3,
            "threads": 1,
            "table_words": 262144,
            "hpcc_major_version": 1,
        },
        values={"StarRandomAccess_LCG_GUPs": float(lines[gups].split("=")[1])},
        line=gups + 1,
    )
    assert rows["MPIFFT_Gflops"].conditions == {
        "ranks": 3,
        "threads": 1,
        "n": 65536,
        "fft_ranks": 2,
    }
    assert rows["HPL_Tflops"].conditions["n"] == 800
    assert rows["PTRANS_GBs"].conditions["n"] == 400
    for row in rows.values():
        if row.benchmark != "HPL":
            assert lines[row.line - 1].startswith(f"{row.benchmark}=")
            assert float(lines[row.line - 1].split("=")[1]) == row.values[row.benchmark]


def test_threads_of_openmp_are_a_condition() -> None:
    rows = rows_of(lines_of("openmpi-threads"))
    assert {row.conditions["threads"] for row in rows if row.benchmark != "HPL"} == {2}


def test_every_name_of_the_summary_has_a_metric() -> None:
    lines = lines_of("mpich")
    names = [line.split("=")[0] for line in lines[within(lines, "Summary")]]
    assert sorted([*names, "FFT_API"]) == sorted(METRICS)


def older(lines: Sequence[str]) -> list[str]:
    """Return a text in the form of HPCC 1.4.2, whose STREAM does not say how large the error is."""
    text = "".join(lines).replace("version 1.5.0", "version 1.4.2")
    text = text.replace("VersionMinor=5\nVersionMicro=0", "VersionMinor=4\nVersionMicro=2")
    sums = "2519423615566406144.000000 503884723113281280.000000 671846297484375040.000000 "
    told = f"Results Comparison: \n        Expected  : {sums}\n        Observed  : {sums}"
    return re.sub("Solution Validates: .*", f"{told}\nSolution Validates", text).splitlines(
        keepends=True
    )


@pytest.mark.parametrize(
    ("name", "value"), [("VersionMajor", "2"), ("VersionMinor", "4"), ("VersionMicro", "1")]
)
def test_the_summary_is_of_the_version_in_the_banner(name: str, value: str) -> None:
    lines = lines_of("mpich")
    assert f"{name}={value} contradicts" in str(error_of(with_summary(lines, name, value)))
    # A banner whose version cannot be read says nothing against the summary.
    assert rows_of([line.replace("version 1.5.0", "version 1.5") for line in lines])


def newer(lines: Sequence[str]) -> list[str]:
    """Return a text in the form of the sources since, which name the FFT they were built with."""
    last = position(lines, "CPS_USING_FFTW=")
    return [*lines[: last + 1], "FFT_API=FFTE(built-in)\n", *lines[last + 1 :]]


@pytest.mark.parametrize("form", [older, newer])
@pytest.mark.parametrize("name", ["mpich", "impi", "openmpi-threads", "mpich-one-process"])
def test_the_versions_before_and_since_are_read(
    name: str, form: Callable[[Sequence[str]], list[str]]
) -> None:
    lines = lines_of(name)
    assert form(lines) != lines
    for read, expected in zip(rows_of(form(lines)), rows_of(lines), strict=True):
        assert (read.benchmark, read.conditions) == (expected.benchmark, expected.conditions)
        assert read.values == expected.values


def test_invalid_stream_of_an_old_version_is_an_error() -> None:
    lines = older(lines_of("mpich"))
    lost = [line for line in lines if line != "Solution Validates\n"]
    assert "the validation of section StarSTREAM is missing" in error_of(lost).message
    damaged = [line.replace("Solution Validates", "Solution Validates: avg") for line in lines]
    assert "the validation of section StarSTREAM is missing" in error_of(damaged).message
    failed = with_section(lines, "StarSTREAM", "Solution Validates", "Failed Validation on array a")
    assert "Failed Validation on array a" in error_of(failed).message


@pytest.mark.parametrize(
    ("name", "unit", "better"),
    [
        ("HPL_Tflops", "Tflop/s", Better.HIGHER),
        ("StarSTREAM_Triad", "GB/s", Better.HIGHER),
        ("RandomlyOrderedRingLatency_usec", "us", Better.LOWER),
        ("MPIRandomAccess_GUPs", "GUP/s", Better.HIGHER),
        ("PTRANS_time", "s", Better.LOWER),
        ("HPL_N", "", Better.NEITHER),
        ("sizeof_int", "B", Better.NEITHER),
    ],
)
def test_metrics_know_their_unit_and_direction(name: str, unit: str, better: Better) -> None:
    assert (METRICS[name].unit, METRICS[name].better) == (unit, better)


def test_circumstances_are_no_rows() -> None:
    rows = [row for row in rows_of(lines_of("mpich")) if row.benchmark != "HPL"]
    assert all(METRICS[row.benchmark].better is not Better.NEITHER for row in rows)


def test_a_run_that_failed_is_named() -> None:
    error = error_of(lines_of("mpich-failed"))
    assert "the scaled maximum error is 0.960675 and must be 0 at most" in error.message
    assert error.line == position(lines_of("mpich-failed"), "max(|x-x0|)") + 1


def test_success_0_is_an_error() -> None:
    lines = with_summary(lines_of("mpich"), "Success", "0")
    error = error_of(lines)
    assert error.message.startswith("the result is wrong: Success is 0 and must be 1")
    assert error.line == position(lines, "Success=") + 1


def test_a_section_without_results_must_be_expected() -> None:
    lines = lines_of("mpich-without-random-access")
    error = error_of(lines)
    assert error.message == (
        "MPIRandomAccess was requested and did not run: its section is without results"
    )
    assert error.line == position(lines, "End of MPIRandomAccess section.") + 1
    rows = rows_of(lines, HpccExpectation(skipped=RANDOM_ACCESS))
    assert len(rows) == 1 + 40 - 6
    assert not any("RandomAccess" in row.benchmark for row in rows)


def test_summary_of_a_section_not_run_does_not_matter() -> None:
    """What a section that did not run left in the summary does not matter."""
    lines = with_summary(
        lines_of("mpich-without-random-access"), "StarRandomAccess_LCG_GUPs", "-nan"
    )
    assert len(rows_of(lines, HpccExpectation(skipped=RANDOM_ACCESS))) == 35


def test_an_unknown_section_cannot_be_expected() -> None:
    with pytest.raises(ValueError, match="no section named Linpack"):
        HpccExpectation(skipped=frozenset({"Linpack"}))


def test_one_process_has_no_latencies_and_two_must() -> None:
    names = {row.benchmark for row in rows_of(lines_of("mpich-one-process"))}
    assert "MaxPingPongLatency_usec" not in names
    lines = lines_of("mpich")
    inside = within(lines, "LatencyBandwidth")
    error = error_of([*lines[: inside.start], *lines[inside.stop :]])
    assert "LatencyBandwidth was requested and did not run" in error.message


@pytest.mark.parametrize("section", SECTIONS)
def test_a_lost_section_is_named(section: str) -> None:
    lines = lines_of("mpich")
    inside = within(lines, section)
    error = error_of([*lines[: inside.start - 1], *lines[inside.stop + 1 :]])
    assert error.message.startswith(f"section {section} is missing")


@pytest.mark.parametrize("mark", ["Begin", "End"])
@pytest.mark.parametrize("section", ["PTRANS", "StarDGEMM", "HPL", "Summary"])
def test_a_lost_mark_is_an_error(section: str, mark: str) -> None:
    lines = lines_of("mpich")
    index = position(lines, f"{mark} of {section} section.")
    assert error_of([*lines[:index], *lines[index + 1 :]]).line is not None


@pytest.mark.parametrize(
    ("section", "old", "new", "message"),
    [
        ("MPIRandomAccess", "Found 0 errors", "Found 5243 errors", "must be 1% of"),
        ("MPIRandomAccess", "(passed)", "(failed)", "HPCC reports a failure"),
        ("StarRandomAccess_LCG", "Found 0 errors", "Found 2622 errors", "must be 1% of"),
        ("PTRANS", "PASSED", "FAILED", "PTRANS's residual check is FAILED"),
        ("PTRANS", "PASSED", "BYPASS", "PTRANS's residual check is BYPASS"),
        ("PTRANS", "    0 tests skipped", "    1 tests skipped", "count of 1 tests skipped"),
        (
            "PTRANS",
            "    5 tests completed",
            "    4 tests completed",
            "count of 4 tests that passed",
        ),
        ("PTRANS", "0.00 PASSED", "0,00 PASSED", "not a row of PTRANS as HPCC prints it"),
        (
            "StarDGEMM",
            "Scaled residual: ",
            "Scaled residual: 99",
            "the scaled residual is 990.01 and must be 16 at most",
        ),
        (
            "StarDGEMM",
            "Scaled residual: ",
            "Scaled residual: nan ",
            "the scaled residual of section StarDGEMM is missing",
        ),
        ("SingleDGEMM", "with error 0", "with error 1", "Node(s) with error 1"),
        ("StarSTREAM", "Solution Validates", "Failed Validation on", "Failed Validation"),
        ("MPIFFT", "e-15", "e-12", "the scaled maximum error"),
        ("StarFFT", "e-15", "e+15", "the scaled maximum error"),
        ("HPL", "...... PASSED", "...... FAILED", "(FAILED) and must be below 16.0"),
        ("StarFFT", "Average", "Averag ", "StarFFT_Gflops of section StarFFT is missing"),
    ],
)
def test_a_check_that_failed_is_an_error(section: str, old: str, new: str, message: str) -> None:
    lines = with_section(lines_of("mpich"), section, old, new)
    error = error_of(lines)
    assert message in error.message
    inside = within(lines, section)
    assert error.line is not None
    assert inside.start < error.line <= inside.stop + 1


def test_a_few_errors_of_random_access_are_allowed() -> None:
    assert "Found 457 errors" in "".join(lines_of("openmpi-threads"))
    fraction = {"MPIRandomAccess_Errors": "5242", "MPIRandomAccess_ErrorsFraction": "0.00999832"}
    lines = with_section(lines_of("mpich"), "MPIRandomAccess", "Found 0", "Found 5242")
    for name, value in fraction.items():
        lines = with_summary(lines, name, value)
    assert len(rows_of(lines)) == 41


@pytest.mark.parametrize("value", ["nan", "inf", "-1", "0", "-0", "1e+999", "42,3", ""])
def test_a_figure_that_is_none_is_an_error(value: str) -> None:
    lines = with_summary(lines_of("mpich"), "StarDGEMM_Gflops", value)
    assert error_of(lines).line == position(lines, "StarDGEMM_Gflops=") + 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HPL_Tflops", "0.5"),
        ("HPL_time", "12"),
        ("HPL_N", "2000"),
        ("HPL_NB", "65"),
        ("PTRANS_GBs", "1e+03"),
        ("PTRANS_n", "501"),
        ("MPIRandomAccess_GUPs", "0.1"),
        ("MPIRandomAccess_LCG_ExeUpdates", "2097153000"),
        ("MPIRandomAccess_ErrorsFraction", "0.5"),
        ("StarSTREAM_Triad", "1e+06"),
        ("STREAM_VectorSize", "166667"),
        ("STREAM_Threads", "2"),
        ("CommWorldProcs", "3"),
        ("DGEMM_N", "408"),
        ("MaxPingPongLatency_usec", "5"),
        ("RandomlyOrderedRingBandwidth_GBytes", "99"),
        ("MPIFFT_time3", "-1"),
    ],
)
def test_a_summary_that_contradicts_its_sections_is_an_error(name: str, value: str) -> None:
    assert error_of(with_summary(lines_of("mpich"), name, value)).line is not None


@pytest.mark.parametrize("value", ["57", "1.23457e+06", "4.2e-05", "105.2"])
def test_exponents_and_bare_integers_are_figures(value: str) -> None:
    lines = with_summary(lines_of("mpich"), "SingleDGEMM_Gflops", value)
    index = position(lines, "Single DGEMM Gflop/s")
    lines[index] = f"Single DGEMM Gflop/s {float(value):.6f}\n"
    rows = {row.benchmark: row for row in rows_of(lines)}
    assert rows["SingleDGEMM_Gflops"].values == {"SingleDGEMM_Gflops": float(value)}


@pytest.mark.parametrize("value", ["17", "nan", "-1"])
def test_the_residual_of_ptrans_is_held_to_its_threshold(value: str) -> None:
    """The sections print it with two decimals, so that most are 0.00 there."""
    lines = lines_of("mpich-one-process")
    assert with_summary(lines, "PTRANS_residual", "0") == lines
    assert rows_of(with_summary(lines, "PTRANS_residual", "3.5")) == rows_of(lines)
    error = error_of(with_summary(lines, "PTRANS_residual", value))
    assert "PTRANS_residual" in str(error)


def test_the_summary_says_everything_once() -> None:
    lines = lines_of("mpich")
    index = position(lines, "StarDGEMM_Gflops=")
    twice = error_of([*lines[:index], lines[index], *lines[index:]])
    assert twice.message.startswith("StarDGEMM_Gflops stands here a second time")
    lost = error_of([*lines[:index], *lines[index + 1 :]])
    assert lost.message.startswith("StarDGEMM_Gflops of the summary is missing")
    unknown = error_of([*lines[:index], "StarDGFMM_Gflops=1\n", *lines[index + 1 :]])
    assert unknown.message.startswith("not a line of the summary as HPCC prints it: 'StarDGFMM")


def test_the_rest_of_an_earlier_run_is_an_error() -> None:
    lines = lines_of("mpich")
    error = error_of([*lines, *lines_of("impi")], HpccExpectation())
    assert error.line == len(lines) + 2
    assert "left over from an earlier run" in error.message
    assert "left over from an earlier run" in error_of([*lines[:100], *lines]).message


def test_warnings_between_the_lines_do_no_harm() -> None:
    plain = lines_of("openmpi")
    noisy = [part for line in plain for part in ("[vm:1] WARNING: UCX_TLS=tcp is slow\n", line)]
    changed = [(row.conditions, row.values) for row in rows_of(noisy)]
    assert changed == [(row.conditions, row.values) for row in rows_of(plain)]


def test_unchecked_results_do_not_count() -> None:
    lines = lines_of("mpich")
    index = position(lines, "- Computational tests pass")
    error = error_of([*lines[:index], *lines[index + 1 :]])
    assert error.line == position(lines, "Begin of MPIRandomAccess section.")
    assert "a threshold of 0 or less" in error.message
    index = position(lines, "- The relative machine precision")
    error = error_of([*lines[:index], *lines[index + 1 :]])
    assert error.message.startswith("the machine precision above this line is missing")


def test_a_run_that_was_not_asked_for_is_an_error() -> None:
    lines = lines_of("mpich")
    asked = HpccExpectation(ranks=4)
    assert error_of(lines, asked).message == (
        "CommWorldProcs=2 contradicts 4 requested ranks: lines are lost or damaged"
    )
    asked = HpccExpectation(hpl=hpl_expectation(replace(ASKED, n_values=(2000,))))
    assert "another run: problem N = 1000, but N = 2000" in error_of(lines, asked).message
    asked = HpccExpectation(ranks=2, hpl=hpl_expectation(ASKED))
    assert len(rows_of(lines, asked)) == 41


@pytest.mark.parametrize(
    ("name", "n"),
    [
        ("impi", ["1000"]),
        ("openmpi", ["1000"]),
        ("mpich-one-process", ["500"]),
        ("openmpi-three-processes", ["600", "800"]),
    ],
)
def test_the_sizes_of_all_parts_follow_from_what_was_asked_for(name: str, n: list[str]) -> None:
    """HPCC sizes them by HPL's N, P and Q; hpccinf.txt can name more sizes for PTRANS."""
    lines = lines_of(name)
    asked = HpccExpectation(hpl=HplExpectation({"N": n}))
    assert rows_of(lines, asked) == rows_of(lines)
    places = ("WALL", "CPU ", "Array size", "Vector size", "Main table", "Found")
    for size in ("STREAM_VectorSize", "FFT_N", "MPIFFT_N", "RandomAccess_N", "PTRANS_n"):
        number = lines[position(lines, f"{size}=")].strip().rpartition("=")[2]
        doubled = re.compile(rf"\b{number}\b")
        other = [
            doubled.sub(str(2 * int(number)), line)
            if line.startswith(places) or f"_n={number}" in line.lower() or f"{size}=" in line
            else line
            for line in lines
        ]
        assert "follows from the N, NB, P and Q asked for" in error_of(other, asked).message


def test_a_grid_of_no_processes_is_an_error() -> None:
    lines = lines_of("mpich")
    index = position(lines, "P      :", 1)
    assert "not values of P as HPL prints it" in str(
        error_of([*lines[:index], "P      :       0\n", *lines[index + 1 :]])
    )


def test_an_empty_text_and_a_foreign_one_are_told_apart() -> None:
    assert error_of([]).message == "the text is empty"
    foreign = ["HPLinpack 2.3  --  High-Performance Linpack benchmark\n"]
    assert "not output of HPCC" in error_of(foreign).message
    assert not is_title(foreign)
    assert is_title(lines_of("mpich")[:3])


def test_a_line_of_another_section_is_not_told_as_a_failure():
    lines = lines_of("mpich")
    begun = lines.index("Begin of MPIRandomAccess section.\n") + 1
    number = lines.index("Node(s) with error 0\n")
    error = error_of(lines[:begun] + lines[number:])
    assert error.line == begun + 1
    assert '"Node(s) with error 0" stands where it does not belong' in str(error)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "||Ax-b||_oo/(eps*N)=   4.15702218e-03 ...... PASSED",
            "a residual stands here instead of the result",
        ),
        ("Finished      1 tests with the following results:", "a count of tests stands where"),
        (
            "WR11C2R4        1000    64     1     2    0.01   4.7870e+01",
            "no declared parameter foresees",
        ),
        ("Node(s) with error 0", "stands where it does not belong"),
    ],
)
@pytest.mark.parametrize(
    "place", ["Begin of MPIRandomAccess section.", "Begin of Summary section."]
)
def test_misplaced_figure_in_a_section_is_an_error(place: str, line: str, message: str) -> None:
    lines = lines_of("mpich")
    at = next(number for number, text in enumerate(lines, 1) if text.startswith(place))
    with pytest.raises(OutputError, match=message) as caught:
        rows_of([*lines[:at], line + "\n", *lines[at:]])
    assert caught.value.line == at + 1
