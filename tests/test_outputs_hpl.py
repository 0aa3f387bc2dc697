from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clustergate.benchmarks.hpl.output import (
    TITLE,
    HplExpectation,
    check_gflops,
    half_unit,
    hpl_flops,
    parse_hpl,
)
from clustergate.benchmarks.hpl.sizing import HplInput, hpl_expectation
from clustergate.core.model import OutputError, Row

DATA = Path(__file__).resolve().parent / "data" / "hpl"
STACKS = ("mpich", "impi", "openmpi")
GRIDS = tuple(f"hpl-{version}-{stack}-grids" for version in ("2.0", "2.3") for stack in STACKS)


def lines_of(name: str) -> list[str]:
    return (DATA / f"{name}.txt").read_text().splitlines(keepends=True)


def is_title(lines: Iterable[str]) -> bool:
    return any(map(TITLE.match, lines))


def rows_of(lines: Sequence[str], expect: HplExpectation | None = None) -> list[Row]:
    return list(parse_hpl(lines, source="HPL.out", expect=expect))


def error_of(lines: Sequence[str], expect: HplExpectation | None = None) -> OutputError:
    with pytest.raises(OutputError) as caught:
        rows_of(lines, expect)
    return caught.value


def position(lines: Sequence[str], start: str, occurrence: int = 0) -> int:
    return [index for index, line in enumerate(lines) if line.startswith(start)][occurrence]


def replaced(lines: Sequence[str], index: int, old: str, new: str) -> list[str]:
    assert old in lines[index]
    return [*lines[:index], lines[index].replace(old, new), *lines[index + 1 :]]


@pytest.mark.parametrize(
    ("name", "count"),
    [
        *((name, 8) for name in GRIDS),
        ("hpl-2.3-mpich-variants", 48),
        ("hpl-2.0-openmpi-lists", 19),
        ("hpl-2.3-mpich-detailed", 4),
    ],
)
def test_every_declared_test_is_a_row(name: str, count: int) -> None:
    assert len(rows_of(lines_of(name))) == count


def test_a_row_holds_the_line_as_printed() -> None:
    assert rows_of(lines_of("hpl-2.3-openmpi-grids"))[-1] == Row(
        suite="HPL",
        benchmark="HPL",
        conditions={
            "n": 2000,
            "nb": 128,
            "p": 2,
            "q": 1,
            "variant": "WR11C2R4",
            "order": "row",
            "depth": 1,
            "bcast": "1ringM",
            "rfact": "Crout",
            "ndiv": 2,
            "pfact": "Right",
            "nbmin": 4,
        },
        values={
            "time_s": 0.08,
            "performance_gflops": 63.124,
            "scaled_residual": 3.58282523e-03,
        },
        line=117,
    )


def test_the_variant_is_decoded() -> None:
    rows = rows_of(lines_of("hpl-2.3-mpich-variants"))
    (row,) = (row for row in rows if row.conditions["variant"] == "WC03L2C2")
    decoded = {name: row.conditions[name] for name in ("order", "depth", "bcast", "rfact")}
    assert decoded == {"order": "column", "depth": 0, "bcast": "2ringM", "rfact": "Left"}
    assert (row.conditions["pfact"], row.conditions["nbmin"]) == ("Crout", 2)
    assert rows_of(lines_of("hpl-2.0-openmpi-lists"))[0].conditions["nbmin"] == 16


def test_largest_of_three_hpl_1_residuals_kept() -> None:
    lines = []
    for line in lines_of("hpl-2.0-mpich-grids"):
        if line.startswith("||Ax-b||"):
            for scale, value in (("1  * N        ", 1), ("1  * ||x||_1  ", 3), ("oo * x ", 2)):
                lines.append(
                    f"||Ax-b||_oo / ( eps * ||A||_{scale}) = {value / 100:16.7f} ...... PASSED\n"
                )
        else:
            lines.append(line.replace("HPLinpack 2.0", "HPLinpack 1.0a"))
    rows = rows_of(lines)
    assert [row.values["scaled_residual"] for row in rows] == [0.03] * 8
    third = position(lines, "||Ax-b||", 5)
    assert "instead of the residual" in str(error_of([*lines[:third], *lines[third + 1 :]]))


@pytest.mark.parametrize("version", ["2.0", "2.3"])
@pytest.mark.parametrize("stack", STACKS)
def test_a_failed_residual_is_named(version: str, stack: str) -> None:
    lines = lines_of(f"hpl-{version}-{stack}-failed")
    error = error_of(lines)
    assert "FAILED" in lines[(error.line or 0) - 1]
    assert "(FAILED) and must be below" in error.message


def test_one_failure_among_good_results_spoils_the_text() -> None:
    lines = lines_of("hpl-2.3-impi-some-failed")
    assert error_of(lines).line == position(lines, "||Ax-b||_oo/") + 1


@pytest.mark.parametrize("stack", STACKS)
def test_a_skipped_test_is_named(stack: str) -> None:
    lines = lines_of(f"hpl-2.0-{stack}-skipped")
    assert str(error_of(lines)) == (
        "HPL.out:50: HPL reports a failure: [0,1] Memory allocation failed for A, x and b. Skip."
    )
    quiet = [line for line in lines if "HPL ERROR" not in line and ">>>" not in line]
    assert "instead of WR11C2R4 N=300000" in error_of(quiet).message


def test_illegal_input_values_are_counted() -> None:
    lines = lines_of("hpl-2.3-mpich-grids")
    skipped = position(lines, "              0 tests skipped")
    error = error_of(replaced(lines, skipped, "0 tests", "1 tests"))
    assert error.message == (
        "HPL's count of 1 tests skipped for illegal input values contradicts the 0 before it: "
        "lines are lost or damaged"
    )
    assert error.line == skipped + 1


def test_unchecked_results_do_not_count() -> None:
    error = error_of(lines_of("hpl-2.3-mpich-unchecked"))
    assert "not checked, so none counts: the input has a threshold of 0 or less" in error.message


def test_what_hpl_says_before_it_gives_up_is_the_error() -> None:
    lines = lines_of("hpl-2.3-mpich-grid-too-large")
    assert is_title(lines)
    assert error_of(lines).message == (
        "HPL reports a failure: Need at least 8 processes for these tests"
    )


@pytest.mark.parametrize("value", ["nan", "-nan", "inf", "0,0047947", "-1.0"])
def test_a_residual_that_is_no_number_is_an_error(value: str) -> None:
    lines = lines_of("hpl-2.0-mpich-grids")
    index = position(lines, "||Ax-b||_oo/")
    printed = re.search(r"= +(\S+)", lines[index])
    assert printed
    error = error_of(replaced(lines, index, printed.group(1), value))
    assert error.line == index + 1
    assert "not a residual as HPL prints it" in error.message


def test_a_residual_cannot_pass_above_the_threshold() -> None:
    lines = lines_of("hpl-2.0-mpich-grids")
    index = position(lines, "||Ax-b||_oo/")
    error = error_of(replaced(lines, index, "=        0.00", "=       17.00"))
    assert (error.line, "that PASSED contradicts the threshold 16.0" in error.message) == (
        index + 1,
        True,
    )


@pytest.mark.parametrize("value", ["inf", "nan", "0.000e+00", "5.533e+999", "5.533e+03"])
def test_gflops_that_do_not_follow_are_an_error(value: str) -> None:
    lines = lines_of("hpl-2.0-mpich-grids")
    index = position(lines, "WR11C2R4", -1)
    assert error_of(replaced(lines, index, "5.533e+01", value)).line == index + 1


def test_gflops_follow_within_the_rounding_of_both() -> None:
    # 1000 equations: 668.2 million operations; 0.01 s is anything from 0.005 to 0.015 s.
    assert hpl_flops(1000) == pytest.approx(668166666.67)
    for good in ("4.456e+01", "6.700e+01", "1.336e+02"):
        check_gflops(1000, "0.01", good, line=1, source="text")
    for bad in ("4.450e+01", "1.340e+02"):
        with pytest.raises(OutputError, match="contradicts N = "):
            check_gflops(1000, "0.01", bad, line=1, source="text")
    check_gflops(1000, "0.00", "9.999e+05", line=1, source="text")
    with pytest.raises(OutputError, match="contradicts N = "):
        check_gflops(1000, "0.00", "1.300e+02", line=1, source="text")


def test_half_a_unit_of_the_last_digit() -> None:
    assert half_unit("0.01") == pytest.approx(0.005)
    assert half_unit("7") == pytest.approx(0.5)
    assert half_unit("2.290e+02") == pytest.approx(0.05)
    assert half_unit("1.0e+999") == float("inf")


def test_a_decimal_comma_is_named() -> None:
    lines = lines_of("hpl-2.3-mpich-grids")
    index = position(lines, "WR11C2R4", 2)
    error = error_of([*lines[:index], lines[index].replace(".", ","), *lines[index + 1 :]])
    assert "decimal comma; run the program with LC_ALL=C" in error.message


def test_lines_of_several_ranks_mixed_are_an_error() -> None:
    lines = lines_of("hpl-2.3-mpich-grids")
    index = position(lines, "WR11C2R4", 2)
    half = len(lines[index]) // 2
    mixed = lines[index][:half] + "[node2] UCX WARN network\n" + lines[index][half:]
    error = error_of([*lines[:index], mixed, *lines[index + 1 :]])
    assert error.line == index + 1
    assert "mixed with another one" in error.message


def test_warnings_between_the_lines_do_no_harm() -> None:
    plain = lines_of("hpl-2.3-mpich-grids")
    noisy = [part for line in plain for part in ("[vm:1] WARNING: no InfiniBand here\n", line)]
    changed = [(row.conditions, row.values) for row in rows_of(noisy)]
    assert changed == [(row.conditions, row.values) for row in rows_of(plain)]


def test_ranks_that_ran_alone_each_print_a_text() -> None:
    lines = lines_of("hpl-2.0-impi-grids")
    both = [part for line in lines for part in (line, line)]
    assert "every rank ran alone" in error_of(both).message


def test_the_rest_of_an_earlier_run_is_an_error() -> None:
    lines = lines_of("hpl-2.0-impi-grids")
    error = error_of([*lines, *lines])
    assert error.line == len(lines) + 2
    assert "left over from an earlier run" in error.message
    assert "left over from an earlier run" in error_of([*lines[:60], *lines]).message


@pytest.mark.parametrize(
    ("dropped", "message"),
    [
        ("N      :    ", "the parameter N is missing"),
        ("||Ax-b||_oo/", "stands here instead of the residual"),
        ("WR11C2R4", "a residual stands here instead of the result"),
        ("Finished", "a count of tests stands where it does not belong"),
        ("End of Tests.", 'ends before "End of Tests."'),
        ("- Computational tests pass", "not checked"),
    ],
)
def test_a_lost_line_is_noticed(dropped: str, message: str) -> None:
    lines = lines_of("hpl-2.3-impi-grids")
    index = position(lines, dropped)
    assert message in str(error_of([*lines[:index], *lines[index + 1 :]]))


def test_a_lost_result_is_noticed_with_all_its_lines() -> None:
    lines = lines_of("hpl-2.0-mpich-grids")
    start, end = position(lines, "T/V      ", 3), position(lines, "T/V      ", 4)
    message = error_of([*lines[:start], *lines[end:]]).message
    assert message == (
        "a result of WR11C2R4 N=1000 NB=64 P=2 Q=1 stands here instead of "
        "WR11C2R4 N=2000 NB=128 P=1 Q=2: lines are lost or damaged"
    )
    last = position(lines, "T/V      ", 7)
    finished = position(lines, "Finished")
    assert (
        "the end of the tests after 7 of 8 results"
        in error_of([*lines[:last], *lines[finished:]]).message
    )


def test_a_text_that_is_cut_off_says_what_is_missing() -> None:
    lines = lines_of("hpl-2.0-mpich-grids")
    error = error_of(lines[: position(lines, "WR11C2R4", 3) + 1])
    assert error.line == position(lines, "WR11C2R4", 3) + 1
    assert "ends before the residual of the result of line" in error.message


def test_an_empty_text_and_a_foreign_one_are_told_apart() -> None:
    assert error_of([]).message == "the text is empty"
    assert "not output of HPL" in error_of(["hello\n"]).message


ASKED = HplInput(
    n_values=(1000, 2000),
    nb_values=(64, 128),
    p_values=(1, 2),
    q_values=(2, 1),
    pfacts=(2,),
    rfacts=(1,),
)
VARIANTS = replace(
    ASKED,
    n_values=(1500,),
    nb_values=(64,),
    p_values=(1,),
    q_values=(2,),
    process_mapping=1,
    pfacts=(0, 1, 2),
    nbmins=(2, 4),
    rfacts=(0, 1),
    bcasts=(0, 3),
    depths=(0, 1),
)
LISTS = replace(
    ASKED,
    n_values=(*range(100, 951, 50), 2000),
    nb_values=(64,),
    p_values=(1,),
    q_values=(1,),
    nbmins=(16,),
)


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("hpl-2.0-mpich-grids", ASKED),
        ("hpl-2.3-impi-grids", ASKED),
        ("hpl-2.3-mpich-variants", VARIANTS),
        ("hpl-2.0-openmpi-lists", LISTS),
    ],
)
def test_the_run_that_was_asked_for_passes(name: str, asked: HplInput) -> None:
    assert rows_of(lines_of(name), hpl_expectation(asked)) == rows_of(lines_of(name))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"n_values": (4000,)}, "N = 1000 2000 where 4000 was requested"),
        ({"nb_values": (64,)}, "NB = 64 128 where 64"),
        ({"p_values": (2,), "q_values": (2,)}, "P = 1 2 where 2"),
        ({"process_mapping": 1}, "PMAP = Row-major process mapping where Column-major process map"),
        ({"pfacts": (1,)}, "PFACT = Right where Crout"),
        ({"nbmins": (8,)}, "NBMIN = 4 where 8"),
        ({"ndivs": (3,)}, "NDIV = 2 where 3"),
        ({"rfacts": (0, 1)}, "RFACT = Crout where Left Crout"),
        ({"bcasts": (5,)}, "BCAST = 1ringM where BlongM"),
        ({"depths": (0,)}, "DEPTH = 1 where 0"),
        ({"swap": 0}, "SWAP = Mix (threshold = 64) where Binary-exchange"),
        ({"swapping_threshold": 80}, "SWAP = Mix (threshold = 64) where Mix (threshold = 80)"),
        ({"l1_transposed": False}, "L1 = transposed form where no-transposed form"),
        ({"u_transposed": False}, "U = transposed form where no-transposed form"),
        ({"equilibration": False}, "EQUIL = yes where no"),
        ({"alignment": 4}, "ALIGN = 8 double precision words where 4 double precision words"),
        ({"threshold": 8.0}, "residual threshold = 16.0 where 8.0"),
    ],
)
def test_another_problem_than_asked_for_is_an_error(change: dict[str, Any], said: str) -> None:
    expect = hpl_expectation(replace(ASKED, **change))
    message = error_of(lines_of("hpl-2.0-mpich-grids"), expect).message
    match = re.fullmatch(r"(.+?) = (.+) where (.+)", said)
    assert match
    name, ran, asked = match.groups()
    assert message.startswith("another run: problem ")
    assert f"{name} = {ran}," in message
    assert f"{name} = {asked}" in message
    assert "whether the program is a wrapper" in message


def test_request_compared_beyond_the_first_line_of_a_list() -> None:
    expect = hpl_expectation(replace(LISTS, n_values=(*LISTS.n_values[:-1], 2001)))
    error = error_of(lines_of("hpl-2.0-openmpi-lists"), expect)
    assert "950 2000, but N = " in error.message
    assert error.line == position(lines_of("hpl-2.0-openmpi-lists"), "N      :", 1) + 1


def test_hpl_is_recognised_below_other_lines() -> None:
    assert is_title(["a warning\n", *lines_of("hpl-2.0-mpich-grids")[:3]])
    assert not is_title(["# Intel(R) MPI Benchmarks\n"])


def with_results(lines: Sequence[str], change: Callable[[str, list[str]], str]) -> list[str]:
    """Return the lines with each result changed, told its variant and the other fields."""
    return [
        change(line.split()[0], line.split()[1:]) + "\n" if re.match(r"W[RC]\d", line) else line
        for line in lines
    ]


def declared_as(lines: Sequence[str], name: str, line: str) -> list[str]:
    index = position(lines, f"{name:7}:", 1 if name in ("N", "NB", "P", "Q") else 0)
    return [*lines[:index], line + "\n", *lines[index + 1 :]]


def nvidia(version: str, variant: str, *, per_process: bool) -> list[str]:
    """Return an output in the form of HPL-NVIDIA, which overrides DEPTH and other parameters."""
    rule = "=" * 80 + "\n"
    banner = f"HPL-NVIDIA {version}  -- NVIDIA accelerated HPL benchmark -- NVIDIA\n"

    def result(_: str, fields: list[str]) -> str:
        n, nb, p, q, time, rate = fields
        line = f"{variant:8}{n:>12} {nb:>5} {p:>5} {q:>5} {time:>11}       {float(rate):9.3e}"
        return line + (f" ( {float(rate) / int(p) / int(q):9.3e})" if per_process else " ")

    return [rule, banner, *with_results(lines_of("hpl-2.3-openmpi-grids"), result)]


def zen_2022() -> list[str]:
    """Return an output in the form of AMD Zen HPL 2022_11."""
    lines = declared_as(lines_of("hpl-2.3-openmpi-grids"), "BCAST", "BCAST  :  HybBcast ")
    return [line.replace("WR11C2R4 ", "WR1XC2R4 ") for line in lines]


def zen_2024() -> list[str]:
    """Return an output in the form of AMD Zen HPL 2024_10."""
    lines = declared_as(lines_of("hpl-2.3-openmpi-grids"), "BCAST", "BCAST  :  HybBcast ")
    lines = declared_as(lines, "SWAP", "SWAP   : (211) Spread-roll")
    lines = declared_as(lines, "U", "A      : no-transposed form (ColMajor)")
    lines = declared_as(
        lines, "ALIGN", "ALIGN  : 8 double precision words\nMXSWP  : (1/c) Collective "
    )
    lines = "".join(lines).splitlines(keepends=True)
    head = ["AMD Zen HPL 2024_10_08\n", "Using AOCL BLIS\n", "Derived from:\n"]
    return head + with_results(
        lines, lambda _, fields: f"WRC17C2R4c 211 {fields[0]:>12} {'  '.join(fields[1:])}"
    )


def gpu() -> list[str]:
    """Return an output in the form of HPL-GPU."""
    lines = declared_as(lines_of("hpl-2.3-openmpi-grids"), "BCAST", "BCAST  :     MPI ")
    banner = "HPL-GPU 1.1.0  --  High-Performance Linpack benchmark for GPUs  --   2015\n"

    def result(_: str, fields: list[str]) -> str:
        *sizes, time, rate = fields
        return f"WR16C2R4{sizes[0]:>12} {'  '.join(sizes[1:])} {time:>18} 11595.48 {rate:>15}"

    return [
        banner,
        *(line.replace("End of Tests", "End of tests") for line in with_results(lines, result)),
    ]


NVIDIA = {
    "nvidia-1.0": nvidia("1.0.0", "WR01C2R4", per_process=False),
    "nvidia-23.10": nvidia("23.10.0", "WR03R2R2", per_process=True),
    "nvidia-25.9": nvidia("25.9.0", "WR0", per_process=True),
}
ZEN = {"zen-2022": zen_2022(), "zen-2024": zen_2024()}
VENDORS = {**NVIDIA, **ZEN, "gpu": gpu()}


@pytest.mark.parametrize("name", VENDORS)
def test_the_builds_of_vendors_are_read(name: str) -> None:
    plain = rows_of(lines_of("hpl-2.3-openmpi-grids"))
    for row, expected in zip(rows_of(VENDORS[name]), plain, strict=True):
        for condition in ("n", "nb", "p", "q", "order"):
            assert row.conditions[condition] == expected.conditions[condition]
        assert row.values["time_s"] == expected.values["time_s"]
        assert row.values["scaled_residual"] == expected.values["scaled_residual"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nvidia-1.0", ("WR01C2R4", 0, "1ringM", "Crout", 2, "Right", 4)),
        ("nvidia-23.10", ("WR03R2R2", 0, "2ringM", "Right", 2, "Right", 2)),
        ("nvidia-25.9", ("WR0", 0)),
        ("gpu", ("WR16C2R4", 1, "MPI", "Crout", 2, "Right", 4)),
        ("zen-2022", ("WR1XC2R4", 1, "HybBcast", "Crout", 2, "Right", 4)),
        ("zen-2024", ("WRC17C2R4c", 1, "HybBcast", "Crout", 2, "Right", 4)),
    ],
)
def test_the_conditions_are_what_ran(name: str, said: tuple[object, ...]) -> None:
    declared = ("depth", "bcast", "rfact", "ndiv", "pfact", "nbmin")
    for row in rows_of(VENDORS[name]):
        assert (
            tuple(row.conditions[key] for key in ("variant", *declared) if key in row.conditions)
            == said
        )


def test_nvidia_rounds_the_order_down_to_whole_blocks() -> None:
    lines = declared_as(NVIDIA["nvidia-25.9"], "NB", "NB     :     125      500 ")
    lines = [re.sub(r"^(WR0 +\d+ +) 64 ", r"\g<1>125 ", line) for line in lines]
    lines = [re.sub(r"^(WR0 +\d+ +)128 ", r"\g<1>500 ", line) for line in lines]
    declared = declared_as(lines, "N", "N      :    1020     2124 ")
    assert [row.conditions["n"] for row in rows_of(declared)] == [1000, 1000, 2000, 2000] * 2
    for orders in ("1125     2000", "1000     2125", " 999     2000"):
        other = declared_as(lines, "N", f"N      :    {orders} ")
        assert "stands here instead of WR11C2R4" in error_of(other).message


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("nvidia-1.0", "HPL-NVIDIA", "HPL-OTHER", "instead of WR11C2R4"),
        ("nvidia-1.0", "WR01C2R4", "WC01C2R4", "instead of WR11C2R4"),
        ("nvidia-1.0", "WR01C2R4", "WRC01C2R4c", "instead of WR11C2R4"),
        ("nvidia-25.9", "WR0 ", "WR0 211", "instead of WR11C2R4"),
        ("nvidia-25.9", "( 2.576e+01)", "( 2.676e+01)", "contradicts 5.151e+01 Gflops"),
        ("nvidia-25.9", "( 2.576e+01)", "( 2.5", "not a result as HPL prints it"),
        ("nvidia-1.0", "5.151e+01", "3.151e+01", "contradicts N = "),
        ("nvidia-25.9", "...... PASSED", "...... FAILED", "(FAILED) and must be below"),
        ("nvidia-25.9", "5.151e+01 (", "11595.48 5.151e+01 (", "not a result as HPL prints it"),
        ("gpu", "HPL-GPU", "HPL-CPU", "not a result as HPL prints it"),
        ("gpu", " 11595.48 ", " ", "not a result as HPL prints it"),
        ("gpu", "5.1514e+01", "5.1514e+01 ( 2.576e+01)", "not a result as HPL prints it"),
        ("gpu", "WR16C2R4", "WR11C2R4", "instead of WR16C2R4"),
        ("zen-2022", "WR1XC2R4", "WR11C2R4", "stands here instead of"),
        ("zen-2024", "WRC17C2R4c 211", "WRC17C2R4c 210", "stands here instead of"),
        ("zen-2024", "WRC17C2R4c 211", "WRC17C2R4c    ", "stands here instead of"),
        ("zen-2024", "WRC17C2R4c 211", "WRR17C2R4c 211", "stands here instead of"),
        ("zen-2024", "WRC17C2R4c 211", "WRC17C2R4o 211", "stands here instead of"),
        ("zen-2024", "WRC17C2R4c 211", "WRC07C2R4c 211", "stands here instead of"),
        ("zen-2024", "(ColMajor)", "", "A as AMD Zen HPL prints it is missing"),
    ],
)
def test_what_a_build_of_a_vendor_cannot_print_is_an_error(
    name: str, old: str, new: str, said: str
) -> None:
    text = "".join(VENDORS[name])
    assert old in text
    assert said in error_of(text.replace(old, new, 1).splitlines(keepends=True)).message


@pytest.mark.parametrize("text", [lines_of("hpl-2.3-openmpi-grids"), NVIDIA["nvidia-25.9"]])
@pytest.mark.parametrize("name", ["NB", "P", "Q", "NBMIN", "NDIV"])
def test_a_parameter_cannot_be_zero(text: list[str], name: str) -> None:
    message = error_of(declared_as(text, name, f"{name:7}:       0 ")).message
    assert message.startswith(f"not values of {name} as HPL prints it: ")


def test_what_was_asked_for_is_not_overridden() -> None:
    expect = hpl_expectation(ASKED)
    for name in ("nvidia-1.0", "nvidia-25.9"):
        assert "instead of WR11C2R4" in error_of(NVIDIA[name], expect).message
