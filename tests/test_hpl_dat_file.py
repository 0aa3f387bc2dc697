"""An HPL.dat that somebody wrote: what HPL makes of it, and what is odd in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from clustergate import cli
from clustergate.benchmarks.hpl import dat_file
from clustergate.benchmarks.hpl.sizing import HplInput, SizingError, render_hpl_dat

PLAIN = HplInput(n_values=(29184,), p_values=(2,), q_values=(2,))
TEXT = render_hpl_dat(PLAIN)


def changed(line: int, text: str, of: str = TEXT) -> str:
    lines = of.splitlines()
    lines[line - 1] = text
    return "\n".join(lines) + "\n"


def test_a_good_file_is_what_stands_in_it() -> None:
    assert dat_file.parse(TEXT) == dat_file.DatFile(PLAIN)
    assert dat_file.input_for_check(dat_file.parse(TEXT)) == PLAIN
    assert dat_file.parse(TEXT).ranks == 4


@pytest.mark.parametrize(
    ("line", "text", "field", "value"),
    [
        (6, "22848\t     Ns", "n_values", (22848,)),
        (6, "   22848 Ns", "n_values", (22848,)),
        (6, "22848", "n_values", (22848,)),
        (6, "22848\r", "n_values", (22848,)),
        (13, "1.6e1 threshold", "threshold", 16.0),
        (3, "out output file name (if any)", "output_file", "out"),
        (9, "1 PMAP process mapping (0=Row-,1=Column-major)", "process_mapping", 1),
    ],
)
def test_lines_as_people_write_them(line: int, text: str, field: str, value: object) -> None:
    read = dat_file.parse(changed(line, text))
    assert read.input == replace(PLAIN, **{field: value})  # type: ignore[arg-type]
    assert read.wrong == ()


# HPL seeks the next value behind the last one's length and one character more.
@pytest.mark.parametrize(
    ("line", "hpl"),
    [
        ("1000 2048 300 Ns", "1000 2048 300"),
        (" 1000 2048 300 Ns", "1000 2048 300"),
        ("1000   2048   300 Ns", "1000 2048 8"),
        ("   1000 2048 300 Ns", "1000 0 2048"),
    ],
)
def test_a_list_that_hpl_reads_otherwise_is_wrong(line: str, hpl: str) -> None:
    text = changed(6, line, of=changed(5, "3 # of problems sizes (N)"))
    if "0 " in hpl.removeprefix("1000 "):
        # An order of 0 is no problem.
        with pytest.raises(SizingError, match="n_values must be at least 1, not 0"):
            dat_file.parse(text)
        return
    read = dat_file.parse(text)
    assert " ".join(map(str, read.input.n_values)) == hpl
    if hpl.endswith("300"):
        assert read.wrong == ()
        return
    (sentence,) = read.wrong
    assert sentence.startswith(f"HPL.dat:6: HPL reads {hpl} where 1000 2048 300 stands: ")
    with pytest.raises(SizingError, match="would not run as written"):
        dat_file.input_for_check(read)


def test_values_beyond_the_count_are_odd() -> None:
    read = dat_file.parse(changed(6, "29184 58368 Ns"))
    assert read.input.n_values == (29184,)
    assert read.odd == ("HPL.dat:6: of 29184 58368 HPL runs 29184 alone",)
    assert dat_file.input_for_check(read) == PLAIN


def test_a_result_that_nobody_checks_is_not_run() -> None:
    read = dat_file.parse(changed(13, "-16.0 threshold"))
    assert "HPL checks nothing" in read.wrong[0]
    with pytest.raises(SizingError, match="HPL checks nothing"):
        dat_file.input_for_check(read)


def test_results_that_go_into_a_file_come_to_standard_output() -> None:
    read = dat_file.parse(changed(4, "8 device out (6=stdout,7=stderr,file)"))
    assert "go to device 8" in read.odd[0]
    assert dat_file.input_for_check(read) == PLAIN


@pytest.mark.parametrize(
    ("line", "text", "said"),
    [
        (6, "Ns", "HPL.dat:6: HPL finds no n_values in `Ns`"),
        (5, "2 # of problems sizes (N)", "HPL.dat:6: HPL finds no value 2 of n_values"),
        (5, "21 # of problems sizes (N)", "1 to 20 values"),
        (13, "threshold", "HPL.dat:13: HPL finds no threshold"),
        (23, "6 BCASTs", "bcasts must be at most 5, not 6"),
        (6, "1" * 253, "253 characters, and HPL reads 252"),
    ],
)
def test_what_hpl_refuses_or_replaces_is_refused_with_its_place(
    line: int, text: str, said: str
) -> None:
    with pytest.raises(SizingError) as told:
        dat_file.parse(changed(line, text))
    assert said in str(told.value)


def test_a_file_that_ends_early_is_refused() -> None:
    for lines in range(31):
        with pytest.raises(SizingError, match=f"ends after line {lines}|HPL.dat"):
            dat_file.parse("\n".join(TEXT.splitlines()[:lines]))


@pytest.mark.parametrize(
    ("line", "text", "odd"),
    [
        (6, "35 Ns", "tests an installation"),
        (6, "29000 Ns", "N=29000 is not a multiple of NB=192"),
        (8, "4 NBs", "NB=4 is below 32"),
        (11, "4 Ps", "a 4 x 2 grid is outside"),
        (6, "192 Ns", "with N=192, NB=192 and 2 x 2 some processes hold no part of it"),
    ],
)
def test_what_nobody_may_have_meant_is_odd(line: int, text: str, odd: str) -> None:
    assert any(odd in one for one in dat_file.parse(changed(line, text)).odd)


def test_files_are_told_apart_by_their_content(tmp_path: Path) -> None:
    one, other = tmp_path / "one.dat", tmp_path / "other.dat"
    one.write_text(TEXT)
    other.write_text(TEXT + "\n")
    assert dat_file.read_file(one).input == dat_file.read_file(other).input
    assert dat_file.read_file(one).digest != dat_file.read_file(other).digest
    with pytest.raises(SizingError, match="No such file"):
        dat_file.read_file(tmp_path / "none.dat")


# --- the command ------------------------------------------------------------------------------


@pytest.fixture
def look(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    def run(text: str, *options: str) -> tuple[int, str]:
        file = tmp_path / "HPL.dat"
        file.write_text(text)
        status = cli.main(["hpl-input", str(file), *options])
        return status, "".join(capsys.readouterr())

    return run


SMALL = ("--cores-per-node", "4", "--memory-per-node", "16GiB", "--gflops", "100")


def test_the_command_says_what_a_file_asks_for(look: Callable[..., tuple[int, str]]) -> None:
    status, said = look(TEXT, *SMALL)
    assert status == 0
    assert said.splitlines() == [
        "N: 29184",
        "NB: 192",
        "grid: 2 x 2, 4 processes",
        "memory: 39.7 % of 17179869184 bytes (1 x 17179869184, as given)",
        "time: 2 min 46 s for 1 solve at 100.0 Gflop/s (as given)",
    ]


def test_the_command_says_what_is_odd_on_this_machine(
    look: Callable[..., tuple[int, str]],
) -> None:
    _, said = look(changed(6, "58368 Ns"), *SMALL)
    assert "odd: the matrix does not fit into the memory" in said
    _, said = look(TEXT, *SMALL, "--cores-per-node", "2")
    assert "odd: 4 processes on 2 cores" in said
    _, said = look(TEXT, *SMALL, "--nodes", "2")
    assert "odd: 4 of 8 cores stay idle" in said


def test_options_that_make_an_input_have_no_effect_on_a_file(
    look: Callable[..., tuple[int, str]],
) -> None:
    for options in (("--nb", "96"), ("-n", "1000"), ("--n-fraction", "0.5"), ("--p", "2")):
        status, said = look(TEXT, *options)
        assert status == 2
        assert f"-{options[0].lstrip('-')} has no effect on a FILE" in said
