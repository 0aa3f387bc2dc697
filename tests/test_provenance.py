"""A text is taken for that of a launch by its word, its dates and its times, and else refused."""

from __future__ import annotations

import re
import time
from calendar import timegm
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clustergate.benchmarks.formats import parse
from clustergate.core.model import Row
from clustergate.launch.proof import provenance
from clustergate.launch.proof.provenance import MARK, measured_s, span_of
from clustergate.launch.proof.ranks import Moment, RankProof, read_proofs

WORD = "5f3a-0"
# All captured outputs are of this day, on a machine whose local time is UTC.
DAY = timegm((2026, 11, 21, 0, 0, 0))


def complaints(*args: Any, **settings: Any) -> list[str]:
    """Return what is wrong in sentences."""
    return [*map(str, provenance.complaints(*args, **settings))]


def ranks(
    data: Path, began: float, seconds: float, offset: int = 0, set_by: float = 0.0
) -> list[RankProof]:
    """Return the records of two ranks that ran so long, from so many seconds since 1970."""

    def moment(at: float, real: float) -> Moment:
        first = proofs[0].at_init
        assert first is not None
        return replace(first, monotonic_s=at, realtime_s=real, utc_offset_s=offset)

    proofs = read_proofs(data / "proof" / "mpich-dgemm")
    begin, end = moment(100.0, began), moment(100.0 + seconds, began + seconds + set_by)
    return [replace(p, nonce=WORD, at_init=begin, at_finalize=end) for p in proofs]


def text_of(data: Path, name: str) -> list[str]:
    return (data / name).read_text().splitlines(keepends=True)


def rows_of(lines: Sequence[str]) -> list[Row]:
    return list(parse(lines, source="output"))


def told(data: Path, name: str, proofs: Sequence[RankProof], **what: Any) -> list[str]:
    lines = text_of(data, name)
    return list(complaints(proofs, WORD, rows_of(lines), lines, is_stdout=False, **what))


def seconds_since_1970(clock: str) -> float:
    return DAY + timegm(time.strptime(f"1970 {clock}", "%Y %H:%M:%S"))


# The clock of the output's first date, how long its ranks may have run, what its times add up to.
RUNS = {
    "imb/impi-2021.11-mpi1-default.txt": ("06:24:21", 8.0),
    "imb/impi-2021.11-p2p.txt": ("06:22:25", 3.0),
    "imb/impi-2021.11-nbc.txt": ("06:22:23", 2.0),
    "imb/impi-2021.11-rma.txt": ("06:22:14", 8.0),
    "hpl/hpl-2.3-impi-grids.txt": ("05:42:09", 3.0),
    "hpcc/hpcc-1.5.0-mpich.txt": ("05:43:07", 2.0),
}


@pytest.mark.parametrize("name", RUNS)
def test_an_honest_output_is_taken(data: Path, name: str) -> None:
    clock, seconds = RUNS[name]
    began = seconds_since_1970(clock)
    # time() cuts the seconds off, and ranks may start in any part of one.
    for early in (0.0, 0.3, 0.999):
        assert told(data, name, ranks(data, began + early, seconds)) == []


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("later", [-3600.0, 60.0, 86400.0])
def test_a_date_outside_the_launch_is_another_launch(data: Path, name: str, later: float) -> None:
    clock, seconds = RUNS[name]
    (sentence,) = told(data, name, ranks(data, seconds_since_1970(clock) + later, seconds))
    assert re.match(
        rf"output:\d+: dated Sat Nov 21 {clock} 2026, and the ranks ran from ", sentence
    )
    assert "the output of another launch; check whether the program is a wrapper" in sentence


def test_the_time_zone_is_that_of_the_ranks(data: Path) -> None:
    """IMB and HPL print local time; HPCC prints seconds since 1970 besides."""
    began = seconds_since_1970("06:24:21")
    name = "imb/impi-2021.11-mpi1-default.txt"
    for hours in (-9.5, 2, 5.75):
        offset = int(3600 * hours)
        assert told(data, name, ranks(data, began - offset, 8.0, offset)) == []
        assert told(data, name, ranks(data, began, 8.0, offset))
    hpcc = "hpcc/hpcc-1.5.0-mpich.txt"
    assert told(data, hpcc, ranks(data, seconds_since_1970("05:43:07"), 2.0, 7200)) == []


def test_a_clock_that_was_set_meanwhile_accuses_nobody(data: Path) -> None:
    name, began = "imb/impi-2021.11-mpi1-default.txt", seconds_since_1970("06:24:21")
    for set_by in (-30.0, 30.0):
        assert told(data, name, ranks(data, began + set_by, 8.0, set_by=-set_by)) == []


@pytest.mark.parametrize("name", [n for n in RUNS if "hpl" not in n and "nbc" not in n])
def test_times_that_do_not_fit_into_the_launch_are_refused(data: Path, name: str) -> None:
    clock, _ = RUNS[name]
    (sentence,) = told(data, name, ranks(data, seconds_since_1970(clock), 0.0))
    assert re.search(r"output: what was measured took [\d.]+ s in all by its own account", sentence)
    assert "the ranks ran for 0.0 s from MPI_Init to MPI_Finalize" in sentence


def test_hpl_that_took_longer_than_its_launch_is_refused(data: Path) -> None:
    lines = text_of(data, "hpl/hpl-2.0-mpich-grids.txt")
    (row, *others) = rows_of(lines)
    slow = replace(row, values={**row.values, "time_s": 12.0})
    ran = ranks(data, 0.0, 11.0)
    (sentence,) = complaints(ran, WORD, [slow, *others], lines, is_stdout=False)
    assert "took 12." in sentence
    # A clock of MPI that is calibrated a little wrong is no reason to refuse a run.
    ran = ranks(data, 0.0, 11.9)
    assert list(complaints(ran, WORD, [slow, *others], lines, is_stdout=False)) == []


def test_a_timer_that_runs_slow_is_found_by_the_dates_of_hpl(data: Path) -> None:
    name = "hpl/hpl-2.3-mpich-detailed.txt"
    lines = text_of(data, name)
    later = [line.replace("05:42:2", "05:43:2") if "end time" in line else line for line in lines]
    ran = ranks(data, seconds_since_1970("05:42:20"), 120.0)
    assert list(complaints(ran, WORD, rows_of(lines), lines, is_stdout=False)) == []
    (sentence,) = complaints(ran, WORD, rows_of(lines), later, is_stdout=False)
    assert "the program took 60 s by the dates it prints, and 0.01 s by its timer" in sentence


def test_the_word_of_the_launch_must_stand_in_standard_output(data: Path) -> None:
    name, began = "imb/impi-2021.11-mpi1-startup.txt", seconds_since_1970("06:22:14")
    lines = text_of(data, name)

    def said(*added: str) -> list[str]:
        return list(complaints(ranks(data, began, 3.0), WORD, rows_of(lines), [*added, *lines]))

    assert said(f"{MARK} {WORD}\n") == []
    assert said(f"a prompt> {MARK} {WORD}\n") == []
    (lacking,) = said()
    assert f"rank 0 wrote '{MARK} {WORD}'" in lacking
    (other,) = said("", f"{MARK} 5f3a-1\n")
    assert other.startswith("output:2: launch 5f3a-1 printed this, not 5f3a-0: ")


def test_nothing_is_said_of_times_where_a_rank_did_not_end(data: Path) -> None:
    began = seconds_since_1970("06:24:21")
    first, second = ranks(data, began + 3600, 1.0)
    assert span_of([first, replace(second, at_finalize=None)]) is None
    assert told(data, "imb/impi-2021.11-mpi1-default.txt", [replace(first, at_finalize=None)]) == []


def test_records_of_another_launch_are_not_asked(data: Path) -> None:
    began = seconds_since_1970("06:24:21")
    others = [replace(p, nonce="other") for p in ranks(data, 0.0, 1.0)]
    mine = ranks(data, began, 8.0)
    assert told(data, "imb/impi-2021.11-mpi1-default.txt", [*others, *mine]) == []


def test_groups_that_measure_at_the_same_time_count_once(data: Path) -> None:
    rows = rows_of(text_of(data, "imb/impi-2021.11-mpi1-multi1.txt"))
    first = [row for row in rows if not row.conditions.get("group")]
    assert len(first) < len(rows)
    assert measured_s(rows) == measured_s(first) > 0


@pytest.mark.parametrize("damage", [("Nov", "Nav"), ("21 06", "31 06"), (" 06:", " 26:")])
def test_a_damaged_date_is_told_and_no_traceback(data: Path, damage: tuple[str, str]) -> None:
    name, began = "imb/impi-2021.11-mpi1-default.txt", seconds_since_1970("06:24:21")
    lines = [re.sub(*damage, line) if "# Date" in line else line for line in text_of(data, name)]
    (sentence,) = complaints(ranks(data, began, 8.0), WORD, rows_of(lines), lines, is_stdout=False)
    assert re.match(
        r"output:4: 'Sat \w+ \d+ [\d:]+ 2026' is no date: the text is damaged", sentence
    )
