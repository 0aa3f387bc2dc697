from __future__ import annotations

import itertools
import re
import tracemalloc
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustergate.benchmarks.imb.header import TITLE, RunInformation, Text, read_header
from clustergate.benchmarks.imb.output import parse_imb
from clustergate.benchmarks.imb.plan import ImbExpectation
from clustergate.core.model import METRICS, OutputError, Row

DATA = Path(__file__).parent / "data" / "imb"
GOOD = sorted(path.name for path in DATA.glob("*.txt"))
CLOSING = "# All processes entering MPI_Finalize"
CALLS = {
    "impi-2021.11-mpi1-default.txt": "-time 0.3 -iter 30,20",
    # The lines of old versions are broken.
    "mpich-4.0-mpi1.txt": (
        "PingPong PingPing Sendrecv Exchange Reduce Barrier -iter 20 -msglog 0:10 -time 0.2"
    ),
    "impi-2021.11-p2p.txt": "-iter 100 -msglog 0:16 -pause 0",
    "impi-2021.11-nbc.txt": "-iter 20 -msglog 0:6 -time 0.2",
    "impi-2021.11-rma.txt": "-iter 20 -msglog 0:10 -time 0.2",
}


@pytest.mark.parametrize("name", CALLS)
def test_call_compared_with_the_one_repeated(name: str) -> None:
    text, asked = text_of(name), tuple(CALLS[name].split())
    assert rows_of(text, ImbExpectation(arguments=asked)) == rows_of(text)
    for other, said in (
        (asked[:-1], f"'{asked[-1]}', but ''"),
        ((*asked, "-off_cache", "-1"), "'', but '-off_cache -1'"),
        (("-multi", "0", *asked), "'', but '-multi 0'"),
        (asked[1:], f"'{asked[0]}', but ''"),
        ((*asked[:-1], "7"), f"'{asked[-1]}', but '7'"),
    ):
        message = str(error_of(text, ImbExpectation(arguments=other)))
        assert f"another run: options {said} was requested" in message


def test_the_folder_of_the_program_does_not_matter() -> None:
    text = text_of("impi-2021.11-mpi1-startup.txt")
    asked = ImbExpectation(arguments=("PingPong", "-msglog", "2:6", "-iter", "20"))
    called = changed(text, "# IMB-MPI1 PingPong", "# /my own/bin/IMB-MPI1 PingPong")
    assert rows_of(called, asked)
    called = changed(text, "# IMB-MPI1 PingPong", "# bin/IMB-MPI1 -off_cache -1 PingPong")
    assert "options '-off_cache -1', but ''" in str(error_of(called, asked))


@pytest.mark.parametrize(
    ("name", "ranks"),
    [
        ("openmpi-2021.7-mpi1.txt", 4),
        ("impi-2021.11-mpi1-npmin.txt", 3),
        ("impi-2021.11-nbc.txt", 3),
        ("impi-2021.11-p2p.txt", 4),
        ("impi-2021.11-mt.txt", 2),
        ("impi-2021.11-mt-3.txt", 3),
        ("impi-2021.11-rma.txt", 4),
    ],
)
def test_all_processes_of_the_run_are_compared(name: str, ranks: int) -> None:
    text = text_of(name)
    assert rows_of(text, ImbExpectation(ranks=ranks)) == rows_of(text)
    for other in (ranks - 2, ranks + 2):
        assert f"but {other} was requested" in str(error_of(text, ImbExpectation(ranks=other)))


def test_what_stands_in_the_tables_of_threads_is_compared() -> None:
    """IMB-MT repeats no command line."""
    text = text_of("impi-2021.11-mt.txt")
    asked = ImbExpectation(bytes=(8, 16, 32, 8192), repetitions=100, threads=2)
    assert rows_of(text, asked) == rows_of(text)
    for change, said in (
        ({"bytes": (8, 16, 32)}, "instead of the end of the table"),
        ({"repetitions": 1000}, "repetitions 100, but 1000 was requested"),
        ({"threads": 1}, "2 threads in each process, but 1 were requested"),
    ):
        assert said in str(error_of(text, replace(asked, **change)))


# Small ones of every shape, for the tests that read a text many times.
SMALL = (
    "impi-2021.11-mpi1-map.txt",
    "impi-2021.11-mpi1-msgsize.txt",
    "impi-2021.11-mpi1-startup.txt",
    "impi-2021.11-p2p-msgsz.txt",
    "mpich-2018-mpi1-check.txt",
    "mpich-2018-mpi1-multi1.txt",
    "mpich-2018-mpi1-out-of-mem.txt",
    "mpich-2018-ext.txt",
    "mpich-2018-io.txt",
    "mpich-2021.11-mpi1-time-out.txt",
    "mpich-2021.11-nbc.txt",
    "openmpi-2021.7-p2p.txt",
    "openmpi-2021.7-rma-warnings.txt",
)
# Their header does not say all that must come, as the parser's docstring tells.
LENIENT = ("impi-2021.11-mpi1-msglen.txt", "mpich-2021.11-mt.txt")


def text_of(name: str) -> str:
    return (DATA / name).read_text()


def is_title(lines: Iterable[str]) -> bool:
    return any(map(TITLE.match, lines))


def rows_of(text: str, expect: ImbExpectation | None = None) -> list[Row]:
    return list(parse_imb(text.splitlines(keepends=True), source="out", expect=expect))


def rows_in(name: str, **conditions: object) -> list[Row]:
    return [
        row
        for row in rows_of(text_of(name))
        if all(
            row.benchmark == value if key == "benchmark" else row.conditions.get(key) == value
            for key, value in conditions.items()
        )
    ]


def error_of(text: str, expect: ImbExpectation | None = None) -> OutputError:
    with pytest.raises(OutputError) as caught:
        rows_of(text, expect)
    return caught.value


def run_information(lines: Iterable[str]) -> RunInformation:
    return read_header(Text(lines, "out"))


def changed(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1
    return text.replace(old, new)


def stands_in(row: Row, lines: list[str]) -> bool:
    """Whether the line that a row names holds the row's numbers, in the order of the columns."""
    words = lines[row.line - 1].split()
    if row.status == "invalid":
        return f"{row.conditions['processes']}" in words and row.benchmark in words
    numbers = [row.conditions[key] for key in ("group", "bytes") if key in row.conditions]
    if row.status != "ok":
        offset = 1 if "bytes" not in row.conditions else 0
        return words[: len(numbers)] == [str(n) for n in numbers] and words[
            len(numbers) + offset
        ].startswith(row.status)
    numbers += [row.conditions["repetitions"], *row.values.values()]
    return [float(word) for word in words[: len(numbers)]] == numbers


# Every text


@pytest.mark.parametrize("name", GOOD)
def test_each_line_of_figures_gives_the_row_that_stands_there(name: str) -> None:
    lines = text_of(name).splitlines()
    rows = rows_of(text_of(name))
    data = [
        number
        for number, line in enumerate(lines, start=1)
        if re.match(r" *\d[\d. ]*$| +\d+ .*(out-of|overflow|time-out)|# !! Bench", line)
    ]
    assert [row.line for row in rows] == data
    assert all(stands_in(row, lines) for row in rows)


@pytest.mark.parametrize("name", GOOD)
def test_every_value_has_a_metric_and_only_rows_of_words_have_none(name: str) -> None:
    for row in rows_of(text_of(name)):
        assert set(row.values) <= set(METRICS)
        assert bool(row.values) == (row.status == "ok")


def test_statuses_of_all_texts() -> None:
    counted = {name: Counter(row.status for row in rows_of(text_of(name))) for name in GOOD}
    assert counted["impi-2021.11-mpi1-default.txt"] == {"ok": 798}
    assert counted["impi-2021.11-mpi1-int-overflow.txt"] == {
        "ok": 3,
        "int-overflow": 1,
        "out-of-mem": 1,
    }
    assert counted["mpich-2021.11-mpi1-time-out.txt"] == {"ok": 23, "time-out": 8}
    assert counted["impi-2021.11-mpi1-one-process.txt"] == {"ok": 39, "invalid": 2}


# Table shapes


def test_ping_pong() -> None:
    row = rows_in("impi-2021.11-mpi1-default.txt", benchmark="PingPong", bytes=4194304)[0]
    assert row.suite == "IMB-MPI1"
    assert row.conditions == {"processes": 2, "groups": 1, "bytes": 4194304, "repetitions": 5}
    assert list(row.values) == ["latency_us", "bandwidth_mb_s"]
    assert row.values["bandwidth_mb_s"] == pytest.approx(4194304 / row.values["latency_us"], 1e-4)


def test_columns_of_times_are_min_max_avg() -> None:
    text = text_of("openmpi-2021.7-mpi1.txt")
    for row in rows_of(text):
        if "t_avg_us" in row.values:
            words = text.splitlines()[row.line - 1].split()
            first = len(row.conditions) - 2
            assert row.values["t_min_us"] == float(words[first])
            assert row.values["t_max_us"] == float(words[first + 1])
            assert row.values["t_avg_us"] == float(words[first + 2])


@pytest.mark.parametrize(("benchmark", "messages"), [("Sendrecv", 2), ("Exchange", 4)])
def test_bandwidth_of_parallel_transfers_is_of_the_longest_time(
    benchmark: str, messages: int
) -> None:
    rows = rows_in("impi-2021.11-mpi1-default.txt", benchmark=benchmark, bytes=4194304)
    assert [row.conditions["processes"] for row in rows] == [2, 4]
    for row in rows:
        assert row.values["bandwidth_mb_s"] == pytest.approx(
            messages * 4194304 / row.values["t_max_us"], 1e-4
        )


def test_message_rate() -> None:
    rows = rows_in("impi-2021.11-mpi1-npmin.txt", benchmark="Uniband", bytes=1024)
    assert [row.conditions["processes"] for row in rows] == [2]
    assert list(rows[0].values) == ["bandwidth_mb_s", "message_rate_per_s"]


def test_tables_without_sizes() -> None:
    rows = rows_in("impi-2021.11-mpi1-npmin.txt", benchmark="Barrier")
    assert [row.conditions for row in rows] == [
        {"processes": processes, "groups": 1, "repetitions": 20} for processes in (1, 2, 3)
    ]
    assert list(rows[0].values) == ["t_min_us", "t_max_us", "t_avg_us"]


def test_process_counts_double_up_to_all() -> None:
    rows = rows_in("impi-2021.11-mpi1-npmin.txt", benchmark="Sendrecv", bytes=0)
    assert [row.conditions["processes"] for row in rows] == [1, 2, 3]


def test_groups_that_run_at_the_same_time() -> None:
    rows = rows_in("impi-2021.11-mpi1-multi0.txt", benchmark="Allreduce", bytes=64)
    assert [(row.conditions["processes"], row.conditions["groups"]) for row in rows] == [
        (2, 2),
        (4, 1),
    ]
    assert all("group" not in row.conditions for row in rows)


def test_groups_with_rows_of_their_own() -> None:
    rows = rows_in("impi-2021.11-mpi1-multi1.txt", benchmark="Exchange", bytes=16)
    assert [
        (row.conditions["processes"], row.conditions["groups"], row.conditions["group"])
        for row in rows
    ] == [(2, 2, 0), (2, 2, 1), (4, 1, 0)]


def test_aggregate_and_non_aggregate_blocks_of_one_name() -> None:
    rows = rows_in("impi-2021.11-rma.txt", benchmark="Unidir_put", bytes=1024)
    assert [row.conditions["mode"] for row in rows] == ["NON-AGGREGATE", "AGGREGATE"]
    rows = rows_in("mpich-2018-ext.txt", benchmark="Unidir_Put", bytes=64)
    assert [row.conditions["mode"] for row in rows] == ["AGGREGATE", "NON-AGGREGATE"]
    assert "mode" not in rows_in("mpich-2018-ext.txt", benchmark="Window", bytes=64)[0].conditions


def test_one_element_and_passive_target_of_rma() -> None:
    rows = rows_in("impi-2021.11-rma-multi1.txt", benchmark="Fetch_and_op")
    assert [(row.conditions["bytes"], row.conditions["group"]) for row in rows] == [(4, 0), (4, 1)]
    row = rows_in("impi-2021.11-rma-multi1.txt", benchmark="Truly_passive_put")[0]
    assert list(row.values) == ["t_pure_us", "t_overlapped_us"]


def test_nonblocking_collectives() -> None:
    names = ["t_overlapped_us", "t_pure_us", "t_cpu_us", "overlap_percent"]
    rows = rows_in("impi-2021.11-nbc.txt", benchmark="Ibcast", bytes=64)
    assert [row.conditions["processes"] for row in rows] == [2, 3]
    assert list(rows[0].values) == names
    assert list(rows_in("impi-2021.11-nbc.txt", benchmark="Ibarrier")[0].values) == names
    pure = rows_in("impi-2021.11-nbc-multi1.txt", benchmark="Ireduce_pure")[0]
    assert list(pure.values) == ["t_min_us", "t_max_us", "t_avg_us"]


def test_point_to_point_suite() -> None:
    rows = rows_in("impi-2021.11-p2p.txt", benchmark="Stencil2D", bytes=65536)
    assert [row.conditions["processes"] for row in rows] == [4]
    assert list(rows[0].values) == ["latency_us", "bandwidth_mb_s", "message_rate_per_s"]


def test_threads() -> None:
    row = rows_in("impi-2021.11-mt.txt", benchmark="UniBandMT")[0]
    assert row.conditions == {
        "processes": 2,
        "groups": 1,
        "threads": 2,
        "window_size": 64,
        "bytes": 8,
        "repetitions": 100,
    }
    assert list(row.values) == ["t_avg_us", "bandwidth_mb_s", "message_rate_per_s"]


def test_input_and_output() -> None:
    rows = rows_in("openmpi-2021.7-io.txt", benchmark="P_IWrite_Indv", bytes=64)
    assert [row.conditions["processes"] for row in rows] == [1, 2]
    assert rows[0].suite == "IMB-IO"


def test_lengths_from_a_file_keep_their_order_and_repetitions() -> None:
    rows = rows_in("impi-2021.11-mpi1-msglen.txt", benchmark="Allreduce")
    sizes = [8, 4096, 1048576, 8, 4096, 1048576, 4, 1024]
    assert [row.conditions["bytes"] for row in rows] == sizes


def test_a_benchmark_may_be_asked_for_twice() -> None:
    rows = rows_in("impi-2021.11-mpi1-msglen.txt", benchmark="PingPong", bytes=1048576)
    assert len(rows) == 4


# Rows of words


def test_out_of_memory() -> None:
    rows = rows_in("impi-2021.11-mpi1-out-of-mem.txt", benchmark="PingPong")
    assert rows[-1].status == "out-of-mem"
    assert rows[-1].conditions == {"processes": 2, "groups": 1, "bytes": 2048}
    rows = rows_in("mpich-2018-mpi1-out-of-mem.txt", benchmark="PingPong")
    assert [row.conditions["bytes"] for row in rows if row.status == "out-of-mem"] == [2048, 4096]


def test_integer_overflow_in_the_spelling_of_both_ages() -> None:
    text = text_of("impi-2021.11-mpi1-int-overflow.txt")
    assert rows_of(text)[1].status == "int-overflow"
    old = text.replace("int-overflow; The production rank*size", "int-overflow.; The production")
    assert rows_of(old)[1].status == "int-overflow"


def test_time_out_ends_benchmark_since_2019_table_before() -> None:
    text = text_of("mpich-2021.11-mpi1-time-out.txt")
    sendrecv = [row for row in rows_of(text) if row.benchmark == "Sendrecv"]
    assert {row.conditions["processes"] for row in sendrecv} == {2}
    assert [row.status for row in sendrecv[-2:]] == ["time-out", "time-out"]
    error = error_of(changed(text, "Benchmarks 2021.11", "Benchmarks 2018"))
    assert "instead of that of Sendrecv with 4 processes" in str(error)


def test_a_time_out_without_sizes_has_no_bytes() -> None:
    text = text_of("openmpi-2021.7-nbc.txt")
    barrier = rows_of(text)[-1]
    line = text.splitlines()[barrier.line - 1]
    words = "         1024 time-out.; Time limit (secs_per_sample * msg_sizes_list_len) is over;"
    row = rows_of(changed(text, line, words))[-1]
    assert row.status == "time-out"
    assert row.conditions == {"processes": 2, "groups": 1}


def test_what_cannot_run_is_an_error_only_if_it_was_asked_for() -> None:
    text = text_of("impi-2021.11-p2p.txt")
    row = next(row for row in rows_of(text) if row.status == "invalid")
    assert (row.benchmark, row.conditions) == ("Stencil3D", {"processes": 4})
    assert "Stencil3D was requested and did not run" in str(
        error_of(text, ImbExpectation(benchmarks=("PingPong", "stencil3d")))
    )
    named = changed(text, "# IMB-P2P -iter", "# IMB-P2P PingPong,stencil3D -iter")
    assert "Stencil3D was requested and did not run" in str(error_of(named))


# Versions


@pytest.mark.parametrize(
    ("name", "megabyte"),
    [
        ("written-by-hand-3.2-mpi1.txt", 2**20),
        ("mpich-4.0-mpi1.txt", 2**20),
        ("mpich-2017-mpi1.txt", 2**20),
        ("mpich-2018-mpi1.txt", 10**6),
        ("mpich-2021.11-mpi1.txt", 10**6),
    ],
)
def test_the_megabyte_changed_with_2018(name: str, megabyte: int) -> None:
    rows = rows_in(name, benchmark="PingPong")
    for row in rows[-3:]:
        time = row.values["latency_us"]
        per_second = float(row.conditions["bytes"]) / time * 1e6
        assert row.values["bandwidth_mb_s"] == pytest.approx(per_second / megabyte, 0.006 / time)


def test_the_megabyte_of_another_version_is_an_error() -> None:
    text = text_of("mpich-2018-mpi1.txt")
    assert "contradicts" in str(error_of(changed(text, "Benchmarks 2018,", "Benchmarks 2017,")))


def test_updates_of_2017_have_one_megabyte_throughout() -> None:
    for name in ("mpich-2017-mpi1.txt", "mpich-2018-mpi1.txt"):
        text = re.sub(r"Benchmarks 201\d,", "Benchmarks 2017 Update 1,", text_of(name))
        assert [row.values for row in rows_of(text)] == [
            row.values for row in rows_of(text_of(name))
        ]


@pytest.mark.parametrize("between", ["", "[vm:1] WARNING: UCX_TLS=tcp is slow\n"])
def test_megabyte_the_same_below_a_foreign_line(between: str) -> None:
    text = text_of("mpich-2018-mpi1.txt").replace("Benchmarks 2018,", "Benchmarks 2017 Update 1,")
    last = rows_in("mpich-2018-mpi1.txt", benchmark="PingPong")[-1]
    lines = text.splitlines(keepends=True)
    row = lines[last.line - 1]
    assert rows_of("".join([*lines[: last.line - 1], between, *lines[last.line - 1 :]]))
    rate = last.values["bandwidth_mb_s"] * 1e6 / 2**20
    lines[last.line - 1] = f"{between}{row[:-14]}{rate:13.2f}\n"
    assert "contradicts" in str(error_of("".join(lines)))


# Header


def test_recognition() -> None:
    for name in GOOD:
        assert is_title(text_of(name).splitlines()[:50])
    assert not is_title(["HPLinpack 2.3  --  High-Performance Linpack benchmark"])
    assert not is_title([])


def test_run_information() -> None:
    information = run_information(text_of("impi-2021.11-mpi1-startup.txt").splitlines())
    assert information.suite == "IMB-MPI1"
    assert information.imb_version == "2021.11"
    assert information.command == ("IMB-MPI1", "PingPong", "-msglog", "2:6", "-iter", "20")
    assert information.benchmarks == ("PingPong",)
    assert (information.minimum_length, information.maximum_length) == (0, 64)


def test_run_information_of_old_versions() -> None:
    information = run_information(text_of("mpich-4.0-mpi1.txt").splitlines())
    assert information.imb_version == "4.0.0"
    assert information.command[-2:] == ("-time", "0.2")
    information = run_information(text_of("mpich-2018-mpi1-multi1.txt").splitlines())
    assert information.benchmarks == ("PingPong", "Bcast", "Barrier")


def test_the_header_is_read_no_further_than_to_the_first_table() -> None:
    text = Text(text_of("mpich-2021.11-mpi1.txt").splitlines(), "out")
    read_header(text)
    assert text.line.startswith("#-----")
    assert next(iter(text)) == "# Benchmarking PingPong"


def test_a_header_alone_is_cut_off() -> None:
    header = text_of("mpich-2021.11-mpi1.txt").partition("\n\n#---")[0]
    with pytest.raises(OutputError, match="cut off"):
        run_information(header.splitlines())


# Foreign lines


def test_warnings_between_the_rows_are_passed_over() -> None:
    text = text_of("openmpi-2021.7-rma-warnings.txt")
    assert "OSC UCX component priority" in text
    silent = "".join(
        line for line in text.splitlines(keepends=True) if not line.startswith(("[", " \n"))
    )
    assert [(row.conditions, row.values) for row in rows_of(text)] == [
        (row.conditions, row.values) for row in rows_of(silent)
    ]


@pytest.mark.parametrize(
    "place", ["#    Intel(R) MPI", "# Date", "# MPI_Op", "\n#-----------------------", CLOSING]
)
def test_warnings_outside_the_tables_are_passed_over(place: str) -> None:
    text = text_of("mpich-2021.11-mpi1.txt")
    warning = "[node17:4711] UCX WARN  no device\n"
    assert len(rows_of(text.replace(place, warning + place, 2))) == 59


@pytest.mark.parametrize("name", GOOD)
def test_blanks_at_the_ends_of_all_lines_do_no_harm(name: str) -> None:
    text = text_of(name)
    assert rows_of(text.replace("\n", "  \n")) == rows_of(text)


# As the MPI libraries print help: with empty lines and indented ones.
HELP = """\
--------------------------------------------------------------------------
WARNING: no active ports were detected on this device.

  Local host:    node17
  Local adapter: mlx5_0
  Local ports:   1, 2 of 4

    Please check the cables of 2 ports.

--------------------------------------------------------------------------
"""
INDENTED = "  Local host:    node17\n    Local adapter: mlx5_0\n"


@pytest.mark.parametrize(
    "name", ["mpich-2021.11-mpi1.txt", *LENIENT, "impi-2021.11-rma-multi1.txt"]
)
def test_warnings_inside_the_head_of_a_table_are_passed_over(name: str) -> None:
    whole = [(row.conditions, row.values) for row in rows_of(text_of(name))]
    lines = text_of(name).splitlines(keepends=True)
    heads = [number for number, line in enumerate(lines) if line.startswith("# Benchmarking")]
    for head in heads:
        columns = next(place for place in range(head, len(lines)) if "#repetitions" in lines[place])
        for place in range(head, columns + 1):
            rows = rows_of("".join([*lines[:place], HELP, *lines[place:]]))
            assert [(row.conditions, row.values) for row in rows] == whole
            error_of("".join([*lines[:place], HELP, *lines[columns + 1 :]]))


@pytest.mark.parametrize("foreign", [HELP, INDENTED, "\n", "\n\n" + INDENTED])
@pytest.mark.parametrize(
    "name", ["mpich-2021.11-mpi1.txt", "mpich-2018-ext.txt", "openmpi-2021.7-p2p.txt"]
)
def test_help_and_empty_lines_between_the_rows_are_passed_over(name: str, foreign: str) -> None:
    lines = text_of(name).splitlines(keepends=True)
    whole = rows_of("".join(lines))
    for row in whole:
        place = row.line - 1
        rows = rows_of("".join([*lines[:place], foreign, *lines[place:]]))
        assert [(row.conditions, row.values) for row in rows] == [
            (row.conditions, row.values) for row in whole
        ]


@pytest.mark.parametrize("foreign", [HELP, INDENTED, "\n"])
def test_a_row_lost_beside_help_is_missed(foreign: str) -> None:
    lines = text_of("mpich-2021.11-mpi1.txt").splitlines(keepends=True)
    for row in rows_of("".join(lines)):
        place = row.line
        error_of("".join([*lines[: place - 1], foreign, *lines[place:]]))
        cut = lines[place - 1][:20] + "\n"
        error_of("".join([*lines[: place - 1], foreign, cut, *lines[place:]]))


def test_a_table_that_ends_in_help_is_cut_off() -> None:
    lines = text_of("mpich-2021.11-mpi1.txt").splitlines(keepends=True)
    row = rows_of("".join(lines))[2].line
    for rest in ("", "mpiexec: rank 1 was killed\n"):
        error = error_of("".join([*lines[:row], "\n", rest]))
        assert (error.line, "ends without its row of" in error.message) == (row + 1, True)


@pytest.mark.parametrize("name", LENIENT)
def test_an_empty_line_ends_a_table_whose_lengths_are_not_known(name: str) -> None:
    lines = text_of(name).splitlines(keepends=True)
    figures = [row.line for row in rows_of("".join(lines))]
    for line in set(figures) & {line - 1 for line in figures}:
        for foreign in ("\n", INDENTED):
            error_of("".join([*lines[:line], foreign, *lines[line:]]))


def test_a_window_size_stands_above_rates_alone() -> None:
    text, begun = text_of("impi-2021.11-mt.txt"), "# Benchmarking BarrierMT\n"
    assert "# window_size = 64\n" in text
    head, _, rest = text.partition(begun)
    counts, _, table = rest.partition("\n")
    mixed = f"{head}{begun}{counts}\n# window_size = 64\n{table}"
    assert "a window size stands here" in str(error_of(mixed))
    # Two heads of which the lines between are lost.
    one, other = "# Benchmarking SendRecvMT\n", "# Benchmarking UniBandMT\n"
    lost = text[: text.index(one) + len(one)] + text[text.index(other) + len(other) :]
    assert "the head of SendRecvMT stands here instead of" in str(error_of(lost))


def test_foreign_line_with_numbers_may_be_a_damaged_row() -> None:
    text = text_of("mpich-2021.11-mpi1.txt")
    lines = text.splitlines(keepends=True)
    row = rows_of(text)[3].line
    for foreign in ("rank 3 of 4\n", "x           8           20         0.50        16.00\n"):
        damaged = "".join([*lines[:row], foreign, *lines[row:]])
        assert error_of(damaged).line == row + 1


# What must not be read


@pytest.mark.parametrize(
    ("name", "line", "message"),
    [
        ("absurd-times.txt", 54, "not a row of Ireduce_scatter"),
        ("gave-up-in-silence.txt", 55, "gave up when its time was over for another process"),
        ("killed.txt", 57, "ends without its row of 524288 bytes"),
        ("left-out.txt", 66, "it takes 2 processes, and -npmin leaves these out"),
        ("singletons.txt", 39, "another run begins here"),
        ("unknown-benchmark.txt", 29, "Invalid benchmark name foo"),
    ],
)
def test_rejected(name: str, line: int, message: str) -> None:
    error = error_of(text_of(f"rejected/{name}"))
    assert error.line == line
    assert message in error.message
    assert str(error).startswith(f"out:{line}: ")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (" 0.00\n            1 ", " 0,00\n            1 ", "decimal comma"),
        (
            "         0.00\n            1 ",
            "         -nan\n            1 ",
            "-nan': the line is damaged",
        ),
        (
            "         0.00\n            1 ",
            "          inf\n            1 ",
            "inf': the line is damaged",
        ),
        (
            "         0.00\n            1 ",
            "        -0.01\n            1 ",
            "not a row of PingPong as IMB prints it",
        ),
        (
            "         0.00\n            1 ",
            "      0.00\n            1 ",
            "not a row of PingPong as IMB prints it",
        ),
        (
            "         0.00\n            1 ",
            "\n            1 ",
            "not a row of PingPong as IMB prints it",
        ),
        (
            "         0.00\n            1 ",
            "         0.00            1 ",
            "not a row of PingPong as IMB prints it",
        ),
        ("#repetitions", "#repititions", "the names of the columns"),
        ("# Benchmarking PingPong", "# Benchmarking PingPang", "stands here instead of that of"),
        ("# PingPong", "# PingPang", "stands here instead of that of"),
        ("# PingPong", "# PingPong (", "not a name in the list of benchmarks to run as IMB prints"),
        ("# #processes = 2", "# #processes = 3", "stands here instead of that of"),
        ("# ( 2 additional", "# ( 3 additional", "contradicts those of the tables before it"),
        (CLOSING, "# All processes entering", "stands where it does not belong"),
        (CLOSING, "", "cut off"),
        (
            "# List of Benchmarks to run:",
            "# List of:",
            "the list of benchmarks to run in the header is missing",
        ),
        (
            "# Minimum message length",
            "# Minimal message length",
            "a bound of the message lengths in the header is missing",
        ),
        ("# Calling sequence was:", "# Calling", "the calling sequence in the header is missing"),
        ("MPI_BYTE", "MPI_BITE", "not a datatype as IMB prints it"),
        ("#    Intel (R) MPI", "#    MPI", "head of a table before the title"),
    ],
)
def test_damage(old: str, new: str, message: str) -> None:
    text = text_of("written-by-hand-3.2-mpi1.txt")
    assert old in text
    assert message in str(error_of(text.replace(old, new, 1)))


def test_an_empty_text() -> None:
    for text in ("", "\n\n"):
        with pytest.raises(OutputError):
            rows_of(text)


def test_two_runs_in_one_text() -> None:
    text = text_of("mpich-2021.11-mpi1.txt")
    error = error_of(text + text)
    assert "another run begins here" in error.message
    assert error.line == text.count("\n") + 2
    tail = text[text.index("# Benchmarking Barrier") :]
    assert error_of(tail + text).line == 1
    assert "the end of another run" in str(error_of(f"\n{CLOSING}\n{text}"))


def test_a_failed_check_is_an_error() -> None:
    text = text_of("mpich-2018-mpi1-check.txt")
    row = rows_of(text)[2]
    line = text.splitlines()[row.line - 1]
    damaged = changed(text, line, line[:-4] + "0.02")
    assert "'defects' is 0.02 and must be 0" in str(error_of(damaged))
    success = "!!!!  ALL BENCHMARKS SUCCESSFUL !!!!"
    failure = "!!!!  1  BENCHMARK FAILED     !!!!"
    assert "IMB reports a failure" in str(error_of(changed(text, success, failure)))


def test_no_successful_execution_is_an_error() -> None:
    text = text_of("mpich-2021.11-mt.txt")
    failed = text.replace("# #processes = 2 (threads: 1)", "# NO SUCCESSFUL EXECUTIONS", 1)
    assert "no successful executions" in str(error_of(failed))


def test_a_message_length_that_imb_cut_is_an_error() -> None:
    text = text_of("impi-2021.11-mpi1-msgsize.txt")
    cut = changed(text, "8,4,65536,16777216", "8,4,65536,33554432")
    assert "a message length that was requested was cut" in str(error_of(cut))
    lines = text_of("mpich-2018-mpi1.txt").splitlines(keepends=True)
    row = rows_of("".join(lines))[-10].line
    lines.insert(row, "Attention, msg size 16777216 truncated to 4194304\n")
    assert "give -msglog a larger maximum" in str(error_of("".join(lines)))


def test_minimum_average_and_maximum_must_be_in_order() -> None:
    text = text_of("written-by-hand-3.2-mpi1.txt")
    swapped = text.replace("3.10         3.20         3.15", "3.10         3.15         3.20", 1)
    assert "contradicts t_min to t_max" in str(error_of(swapped))


def test_rounding_is_allowed_for_as_wide_as_it_is_and_no_wider() -> None:
    # 8 bytes in 1.645 and in 1.635 us are 4.638 and 4.666 MB/s of 2**20 bytes.
    text = text_of("written-by-hand-3.2-mpi1.txt")
    old = "         1.64         4.65"
    for printed in ("4.64", "4.66", "4.67"):
        assert len(rows_of(changed(text, old, f"         1.64         {printed}"))) == 33
    for printed in ("4.63", "4.68"):
        assert "contradicts" in str(
            error_of(changed(text, old, f"         1.64         {printed}"))
        )


@pytest.mark.parametrize(
    ("name", "benchmark"),
    [
        ("mpich-2021.11-mpi1.txt", "Uniband"),
        ("openmpi-2021.7-p2p.txt", "PingPing"),
        ("mpich-2021.11-mt.txt", "BiBandMT"),
    ],
)
def test_message_rate_and_bandwidth_must_agree(name: str, benchmark: str) -> None:
    text = text_of(name)
    row = rows_in(name, benchmark=benchmark)[-1]
    line = text.splitlines()[row.line - 1]
    rate = f"{row.values['message_rate_per_s']:.0f}"
    other = str(int(rate[0]) % 9 + 1) + rate[1:]
    assert "contradicts" in str(error_of(changed(text, line, line.replace(rate, other))))


def test_overlap_must_follow_from_its_times() -> None:
    text = text_of("impi-2021.11-nbc.txt")
    row = next(row for row in rows_of(text) if 10.0 < row.values["overlap_percent"] < 90.0)
    line = text.splitlines()[row.line - 1]
    damaged = changed(text, line, line[:-5] + str(int(line[-5]) % 9 + 1) + line[-4:])
    assert "contradicts an overlap" in str(error_of(damaged))


# Expectations


def test_a_benchmark_that_was_asked_for_must_be_there() -> None:
    text = text_of("mpich-2021.11-mpi1.txt")
    assert rows_of(text, ImbExpectation(suite="IMB-MPI1", benchmarks=("pingpong", "Barrier")))
    assert "Bcast was requested and did not run" in str(
        error_of(text, ImbExpectation(benchmarks=("Bcast",)))
    )
    assert "suite IMB-MPI1, but IMB-RMA was requested" in str(
        error_of(text, ImbExpectation(suite="IMB-RMA"))
    )
    threads = text_of("mpich-2021.11-mt.txt")
    assert rows_of(threads, ImbExpectation(benchmarks=("BiBandMT",)))
    error = error_of(threads, ImbExpectation(benchmarks=("UniBandMT",)))
    assert "UniBandMT was requested and did not run" in str(error)


def test_process_counts_that_were_asked_for_must_be_there() -> None:
    text = text_of("openmpi-2021.7-mpi1.txt")
    both = ImbExpectation(benchmarks=("Sendrecv", "Barrier"), processes=(2, 4))
    assert rows_of(text, both)
    assert "it has no table of 4 processes" in str(error_of(text, ImbExpectation(processes=(2, 4))))


def test_lengths_that_were_asked_for_must_be_there() -> None:
    text = text_of("impi-2021.11-mpi1-msglen.txt")
    asked = (8, 4096, 1048576, 8, 4096, 1048576, 3, 1024)
    assert rows_of(text, ImbExpectation(bytes=asked))
    error = error_of(text, ImbExpectation(bytes=asked[:-1]))
    assert "instead of the end of the table" in str(error)
    error = error_of(text, ImbExpectation(bytes=(*asked, 2048)))
    assert "without its row of 2048 bytes" in str(error)
    error = error_of(text, ImbExpectation(bytes=(8, 4096, 16777216)))
    assert "a message length that was requested was cut" in str(error)


def test_lengths_compared_with_those_of_the_header() -> None:
    text = text_of("mpich-2021.11-mpi1.txt")
    powers = (0, *(2**exponent for exponent in range(11)))
    assert rows_of(text, ImbExpectation(bytes=powers))
    error = error_of(text, ImbExpectation(bytes=powers[:-1]))
    assert "message lengths 0, 1, 2, 4" in str(error)


# Completeness: no row, table or end is lost unnoticed


def benchmark_tables(text: str) -> list[str]:
    head, *tables = re.split(r"\n(?=#-+\n# Bench)", text)
    assert head
    return tables


@pytest.mark.parametrize("name", ["mpich-2021.11-mpi1.txt", "impi-2021.11-rma-multi1.txt"])
def test_a_lost_table_is_an_error(name: str) -> None:
    text = text_of(name)
    tables = benchmark_tables(text)
    for table in tables[:-1]:
        assert "stands here instead of that of" in str(error_of(changed(text, table, "")))
    last = tables[-1].removesuffix(f"\n\n{CLOSING}\n\n")
    assert "is missing" in str(error_of(changed(text, last, "")))


@pytest.mark.parametrize("name", SMALL)
def test_a_lost_line_is_an_error_or_none_of_the_rows(name: str) -> None:
    lines = text_of(name).splitlines(keepends=True)
    whole = rows_of("".join(lines))
    figures = {row.line for row in whole}
    for number in range(1, len(lines) + 1):
        rest = "".join(lines[: number - 1] + lines[number:])
        try:
            rows = rows_of(rest)
        except OutputError:
            continue
        assert number not in figures
        assert [(row.conditions, row.values) for row in rows] == [
            (row.conditions, row.values) for row in whole
        ]


def test_threads_cut_inside_a_table_are_an_error() -> None:
    text = text_of("mpich-2021.11-mt.txt")
    whole = rows_of(text)
    for cut in range(len(text) - 1):
        try:
            rows = rows_of(text[:cut])
        except OutputError:
            continue
        # Only a cut between two tables is left, which an expectation tells.
        assert rows == whole[: len(rows)]
        assert text[:cut].endswith("\n\n")
        names = tuple({row.benchmark for row in whole})
        error_of(text[:cut], ImbExpectation(benchmarks=names))


def test_first_wrong_line_told_of_tables_checked_together() -> None:
    """The first line that is wrong is told of though tables are checked together."""
    lines = text_of("impi-2021.11-mpi1-default.txt").splitlines(keepends=True)
    rows = (k for k, line in enumerate(lines) if line.split()[:1] == ["65536"])
    first, second = itertools.islice(rows, 2)
    for place in (second, first):
        lines[place] = lines[place].replace("1", "2").replace("2", "8")
        error = error_of("".join(lines[:400]))
        assert (error.line, error.reason.code) == (place + 1, "output.contradiction")


# Damage that only IMB can have; the rest is in test_damaged_outputs.py


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(SMALL).map(text_of), st.data())
def test_lines_lost_beside_help_give_no_other_row(text: str, data: st.DataObject) -> None:
    lines = text.splitlines()
    place = data.draw(st.integers(0, len(lines)))
    lines[place:place] = HELP.splitlines()
    lost = data.draw(st.sets(st.integers(0, len(lines) - 1), max_size=5))
    left = [line for number, line in enumerate(lines) if number not in lost]
    try:
        rows = list(parse_imb(left))
    except OutputError:
        return
    assert [(row.conditions, row.values) for row in rows] == [
        (row.conditions, row.values) for row in rows_of(text)
    ]


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(SMALL).map(text_of), st.data())
def test_a_swapped_or_repeated_row_is_an_error(text: str, data: st.DataObject) -> None:
    lines = text.splitlines()
    rows = [row.line - 1 for row in rows_of(text) if row.status == "ok"]
    first, second = sorted(data.draw(st.sets(st.sampled_from(rows), min_size=2, max_size=2)))
    repeated = [*lines[:second], lines[first], *lines[second:]]
    error_of("\n".join(repeated))
    if lines[first] != lines[second]:
        sizes = {lines[first].split()[0], lines[second].split()[0]}
        lines[first], lines[second] = lines[second], lines[first]
        if len(sizes) == 2:
            error_of("\n".join(lines))


# Size


def endless(benchmark: str) -> Iterator[str]:
    text = text_of("impi-2021.11-mpi1-msglen.txt")
    head = text[: text.index("# PingPong\n")]
    rule = "#---------------------------------------------------"
    yield from head.splitlines()
    yield from (f"# {benchmark}", "", rule, f"# Benchmarking {benchmark} ", "# #processes = 2 ")
    yield from (rule, "       #bytes #repetitions      t[usec]   Mbytes/sec")
    for size in itertools.count():
        yield f"{size:13d}{20:13d}{size / 100 + 1:13.2f}{size / (size / 100 + 1):13.2f}"


def test_rows_come_while_the_text_is_read() -> None:
    rows = list(itertools.islice(parse_imb(endless("PingPong")), 100))
    assert [row.conditions["bytes"] for row in rows] == list(range(100))


def test_memory_does_not_grow_with_the_text() -> None:
    rows = parse_imb(endless("PingPong"))
    next(rows)
    tracemalloc.start()
    try:
        for _ in itertools.islice(rows, 40000):
            pass
        # The arrays of those that are checked at once; the lines alone have 2 MB.
        assert tracemalloc.get_traced_memory()[1] < 1_500_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "name",
    [
        *("impi-2021.11-mpi1-npmin.txt", "mpich-2021.11-mpi1.txt", "mpich-2018-mpi1-multi1.txt"),
        *("impi-2021.11-rma.txt", "impi-2021.11-nbc.txt", "impi-2021.11-p2p.txt"),
    ],
)
def test_the_tables_of_the_warm_up_are_read_and_do_not_count(name: str) -> None:
    text = text_of(name)
    every = rows_of(text)
    first = every[0].benchmark
    assert sum(row.benchmark == first for row in every) > 1
    rest = [row for row in every if row.benchmark != first]
    assert rest
    assert rows_of(text, ImbExpectation(warm_up=True)) == rest
    table = text.index("#bytes")
    damaged = text[:table] + text[table:].replace(".", ",", 1)
    error_of(damaged, ImbExpectation(warm_up=True))


def test_unrequested_benchmark_named_behind_a_warm_up() -> None:
    text = changed(text_of("impi-2021.11-p2p.txt"), "# IMB-P2P -", "# IMB-P2P PingPong stencil3D -")
    assert "Stencil3D was requested" in str(error_of(text.replace("PingPong s", "PingPong,s")))
    rows = rows_of(text, ImbExpectation(warm_up=True))
    assert [row.benchmark for row in rows if row.status == "invalid"] == ["Stencil3D"]
