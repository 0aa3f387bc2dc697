"""The pure parts of ``make bench``: statistics, tables, and the large texts that are parsed."""

import dataclasses
import datetime
import io
import json
import os
import sys
from pathlib import Path

import pytest
from rich.console import Console

from clustergate.benchmarks.formats import parse
from clustergate.benchmarks.imb.output import parse_imb
from clustergate.core.model import OutputError
from tools.bench import (
    answers,
    earlier,
    imb_text,
    listing,
    samples,
    scale,
    setting_up,
    spread,
    starting,
)
from tools.bench.workspace import BenchError, file_for, turns, workspace

CAPTURED = "imb/impi-2021.11-mpi1-default.txt"


@pytest.mark.parametrize(
    ("values", "low", "high", "confidence"),
    [
        # 1 - 2 * (1/2)**n while the interval is from the smallest to the largest.
        ([3.0, 1.0, 2.0], 1.0, 3.0, 0.75),
        ([5.0, 4.0, 3.0, 2.0, 1.0], 1.0, 5.0, 0.9375),
        ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 1.0, 6.0, 0.96875),
        # From the second to the ninth of ten: 1 - 2 * (1 + 10) / 2**10.
        ([float(k) for k in range(1, 11)], 2.0, 9.0, 1 - 22 / 1024),
    ],
)
def test_interval_of_the_median_is_between_measurements(
    values: list[float], low: float, high: float, confidence: float
) -> None:
    found = spread.median_interval(values)
    assert (found.low, found.high) == (low, high)
    assert found.confidence == pytest.approx(confidence)


def test_outlier_moves_neither_median_nor_interval() -> None:
    values = [float(k) for k in range(1, 11)]
    assert spread.median_interval([*values[:-1], 1e9]) == spread.median_interval(values)


def test_one_measurement_has_no_interval() -> None:
    found = spread.median_interval([4.0])
    assert (found.value, found.low, found.high, found.samples) == (4.0, None, None, 1)


def test_two_that_begin_at_once_keep_what_each_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    now, files = datetime.datetime.now(), set()
    for process in (1, 2):
        monkeypatch.setattr(os, "getpid", lambda process=process: process)
        files.add(file_for(now, "screening-"))
    assert len(files) == 2


def test_no_measurement_is_an_error() -> None:
    with pytest.raises(ValueError, match="no measurements"):
        spread.median_interval([])


@pytest.mark.parametrize(
    ("aim", "values", "verdict"),
    [
        (spread.Aim(at_most=0.5), [0.1, 0.2, 0.5], "met"),
        (spread.Aim(at_most=0.5), [0.1, 0.2, 0.6], "inconclusive"),
        (spread.Aim(at_most=0.5), [0.6, 0.7, 0.8], "missed"),
        (spread.Aim(at_least=10.0), [10.0, 12.0], "met"),
        (spread.Aim(at_least=10.0), [9.0, 12.0], "inconclusive"),
        (spread.Aim(at_least=10.0), [9.0, 9.5], "missed"),
        (spread.Aim(at_least=10.0), [9.9], "missed"),
    ],
)
def test_an_aim_is_met_or_missed_by_the_whole_interval(
    aim: spread.Aim, values: list[float], verdict: str
) -> None:
    figure = spread.Figure("parser", "IMB", "speed", "MB/s", values, "", aim)
    assert figure.verdict == verdict


def test_table_has_a_line_per_subject_a_column_per_quantity() -> None:
    figures = [
        spread.Figure("s", "HPL", "bare", "s", [2.0, 2.1, 2.2], ""),
        spread.Figure("s", "HPL", "harness", "s", [0.7, 0.8, 0.9], "", spread.Aim(at_most=0.5)),
        spread.Figure("s", "PingPong", "bare", "s", [123.4], ""),
    ]
    text = io.StringIO()
    Console(file=text, width=100).print(spread.table("harness", figures))
    words = text.getvalue().split()
    assert words.count("bare") == words.count("HPL") == words.count("PingPong") == 1
    assert {"2.1", "2.0…2.2", "0.80", "0.70…0.90", "missed", "123"} <= set(words)
    assert "aim ≤ 0.5" in text.getvalue()


def test_a_record_holds_the_measurements_and_is_json() -> None:
    aim = spread.Aim(at_least=10.0)
    figure = spread.Figure("parser", "IMB", "speed", "MB/s", [11.0, 12.0, 13.0], "read", aim)
    record = json.loads(json.dumps(spread.as_record(figure)))
    assert record["values"] == [11.0, 12.0, 13.0]
    assert (record["value"], record["low"], record["high"]) == (12.0, 11.0, 13.0)
    assert (record["aim"], record["verdict"]) == ("≥ 10", "met")


@pytest.mark.parametrize("wanted", [0, 300_000])
def test_a_large_imb_text_is_accepted_by_the_parser(data: Path, wanted: int) -> None:
    text = imb_text.imb_text((data / CAPTURED).read_text(encoding="ascii"), wanted)
    whole = b"".join(text.pieces())
    assert len(whole) == text.size_bytes
    rows = list(parse(whole.decode("ascii").splitlines(keepends=True), source="text"))
    assert len(rows) == text.rows
    if wanted:
        assert abs(text.size_bytes - wanted) < 70_000


def test_a_large_imb_text_has_the_captured_figures(data: Path) -> None:
    captured = (data / CAPTURED).read_text(encoding="ascii")
    text = imb_text.imb_text(captured, 0)
    read = parse_imb(b"".join(text.pieces()).decode("ascii").splitlines(keepends=True))
    known = parse_imb(captured.splitlines(keepends=True))
    wanted = [row for row in known if int(row.conditions.get("bytes", 0)) % 4 == 0]
    assert [(r.benchmark, r.conditions, r.values) for r in read] == [
        (r.benchmark, r.conditions, r.values) for r in wanted
    ]


def test_a_large_imb_text_that_is_cut_off_is_refused(data: Path) -> None:
    text = imb_text.imb_text((data / CAPTURED).read_text(encoding="ascii"), 0)
    lines = b"".join(text.pieces()).decode("ascii").splitlines(keepends=True)
    with pytest.raises(OutputError, match="cut off"):
        list(parse(lines[:-3], source="text"))


def test_samples_are_compared_by_a_process_of_its_own() -> None:
    figures = samples.SIZES * samples.PROCESS_COUNTS
    text = samples.samples_csv(3 * figures + 1, seed=1)
    assert text.startswith("metric,bytes,processes,value\n")
    assert len(text.splitlines()) == 1 + 3 * figures
    with workspace() as room:
        found = list(
            samples.measure(room, samples=6 * figures, rounds=range(1), say=lambda told: None)
        )
    assert [figure.quantity for figure in found] == ["time", "peak memory"]
    assert all(figure.values[0] > 0 for figure in found)


def test_start_of_a_command_told_beside_python_itself() -> None:
    with workspace() as room:
        found = [*starting.measure(room, rounds=range(1), say=lambda _: None)]
    assert [figure.subject for figure in found][:2] == ["python -c ''", "clustergate --help"]
    assert all(figure.values[0] > 0 for figure in found[1:])
    assert [bool(figure.aim) for figure in found] == [False, *[True] * 4, False, False]


def test_unchanged_stacks_of_spack_are_set_up_without_a_spack(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with workspace() as room:
        (found,) = setting_up.measure(room, rounds=range(2), say=lambda _: None)
        assert len(found.values) == 2
        assert room.output().count("Open MPI") == setting_up.STACKS
    # What is to be built is not measured.
    monkeypatch.setattr(setting_up, "note_as_built", lambda stack, state: None)
    with workspace() as room, pytest.raises(BenchError, match="is not a Spack installation"):
        list(setting_up.measure(room, rounds=range(1), say=lambda _: None))


@pytest.mark.long
def test_what_is_listed_is_all_that_the_suite_plans() -> None:
    with workspace() as room:
        found = [*listing.measure(room, cases=30, rounds=range(1), say=lambda _: None)]
    assert {figure.section for figure in found} == {listing.SECTION}
    assert len(found) == 5
    assert all(figure.values for figure in found)


def test_rounds_end_before_the_time_does_but_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("tools.bench.workspace.time.monotonic", lambda: clock[0])
    for seconds, most, expected in [(100.0, 3, 3), (25.0, 9, 2), (0.0, 9, 1)]:
        made = 0
        for _ in turns(most, seconds):
            clock[0] += 10.0
            made += 1
        assert made == expected


@pytest.mark.long
def test_a_screening_of_many_nodes_is_planned_judged_and_drawn() -> None:
    with workspace() as room:
        found = [*scale.measure(room, rounds=range(1), nodes=200, say=lambda _: None)]
    assert [figure.unit for figure in found] == ["s", "s", "s", "s", "MB", "MB", "MB"]
    assert all(figure.values[0] >= 0 for figure in found)


def _figure(values: list[float], unit: str = "s") -> spread.Figure:
    return spread.Figure("s", "HPL", "harness", unit, values, "")


def _recorded(values: list[float], unit: str = "s") -> dict[str, object]:
    entry = spread.as_record(_figure(values, unit))
    machine = {"processor": "EPYC 9V74", "cores": 2, "started": "2026-11-23T05:00:00+00:00"}
    load = {"others_cores": 0.05}
    return {**machine, **load, "version": "clustergate 1.0+g12ab", "figures": [entry]}


USUAL = [1.00, 1.01, 0.99, 1.02, 0.98, 1.0, 1.01, 0.99, 1.0]


@pytest.mark.parametrize(
    ("times", "unit", "word"),
    [
        (0.5, "s", "better"),
        (2.0, "s", "worse"),
        (2.0, "MB/s", "better"),
        (0.5, "MB/s", "worse"),
        # Hours differ by as much.
        (1.1, "s", "inconclusive"),
        (1.0, "s", "inconclusive"),
    ],
)
def test_a_run_is_better_or_worse_than_the_recorded_one_or_neither(times, unit, word) -> None:
    now = _figure([times * value for value in USUAL], unit)
    ((_, told, found),) = earlier.against([now], _recorded(USUAL, unit))
    assert found == word
    assert told.ratio == pytest.approx(times, rel=0.02)


def test_clock_of_a_busy_machine_says_neither_better_nor_worse() -> None:
    now, then = _figure([2.0 * value for value in USUAL]), _recorded(USUAL)
    busy_then = {**then, "others_cores": 1.5}
    for recorded, busy in ((then, True), (busy_then, False)):
        ((_, _, word),) = earlier.against([now], recorded, busy=busy)
        assert word.startswith("inconclusive")


@pytest.mark.parametrize(("times", "word"), [(1.7, "inconclusive"), (3.0, "worse")])
def test_processor_time_of_a_busy_machine_must_differ_by_more(times: float, word: str) -> None:
    now = _figure([times * value for value in USUAL])
    now = dataclasses.replace(now, quantity="processor time")
    entry = {**spread.as_record(now), "values": USUAL}
    recorded = {**_recorded(USUAL), "figures": [entry]}
    for busy_then, busy in ((0.05, True), (1.5, False)):
        then = {**recorded, "others_cores": busy_then}
        assert [found for *_, found in earlier.against([now], then, busy=busy)] == [word]
    assert [found for *_, found in earlier.against([now], recorded)] == ["worse"]


def test_few_rounds_and_figures_that_were_not_recorded_say_nothing() -> None:
    now = _figure([2.0, 2.1])
    ((_, _, word),) = earlier.against([now], _recorded(USUAL))
    assert word == "inconclusive"
    assert not [*earlier.against([_figure(USUAL, "MB")], _recorded(USUAL))]


def test_the_page_has_a_column_for_each_machine() -> None:
    page = earlier.with_table("a\n<!-- costs -->\n<!-- /costs -->\nb\n", [_recorded(USUAL)])
    assert "| what | aim | EPYC 9V74, 2 cores, commit 12ab, 2026-11-23, quiet |" in page
    assert "| HPL: harness |  | 1 s |" in page
    assert page.startswith("a\n<!-- costs")
    assert page.endswith("/costs -->\nb\n")
    assert earlier.with_table(page, [_recorded(USUAL)]) == page


def test_the_page_leaves_out_what_the_clock_said_of_a_busy_machine() -> None:
    busy = {**_recorded(USUAL), "others_cores": 1.5}
    page = "<!-- costs -->\n<!-- /costs -->\n"
    assert "harness" not in earlier.with_table(page, [busy])
    assert "| HPL: harness |  |  | 1 s |" in earlier.with_table(page, [busy, _recorded(USUAL)])


def test_the_page_of_costs_is_that_of_the_recorded_runs() -> None:
    page = earlier.PAGE.read_text(encoding="utf-8")
    assert earlier.recorded_runs()
    assert earlier.with_table(page, earlier.recorded_runs()) == page


def test_an_answer_is_read_until_its_first_number() -> None:
    script = "import time; print('PingPong\\n', flush=True); time.sleep(0.2); print('t: 0.3 us')"
    read = answers.read([sys.executable, "-c", script], r"t: [\d.]+ us")
    assert (read.lines, read.words) == (2, 4)
    assert 0.2 < read.first_number_s <= read.seconds
    with pytest.raises(BenchError, match=r"no number of the benchmark; its last line: t: 0\.3 us"):
        answers.read([sys.executable, "-c", script], "MB/s")


def test_a_plain_test_of_reframe_prints_the_figures_that_are_looked_for() -> None:
    script = "printf '  8 1000 0.25\\n 1048576 10 84.2\\n# All processes entering MPI_Finalize\\n'"
    with workspace() as room:
        command, number = answers.commands(room, {"mpich": script, "intel-mpi": script})["ReFrame"]
        read = answers.read(command, number, room.environment())
    assert 0 < read.first_number_s <= read.seconds
    assert read.lines > 2
