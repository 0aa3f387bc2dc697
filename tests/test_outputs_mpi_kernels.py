import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from clustergate.benchmarks import formats as outputs
from clustergate.benchmarks.mpi_kernel import KernelExpectation
from clustergate.benchmarks.mpi_trials.input import trials_measured
from clustergate.benchmarks.mpi_trials.output import TEST_BYTES, parse_mpi_trials, single_trials
from clustergate.benchmarks.registry import every_benchmark, every_metric
from clustergate.core.figures import name_of, samples_of
from clustergate.core.model import OutputError, Row

PROGRAMS = ("mpi_trials", "host_overhead", "bidirectional_stream", "stream")


def parse_mpi_kernel(
    lines: Sequence[str], *, expect: KernelExpectation | None = None
) -> Iterator[Row]:
    """Read an output by the parser of the program that it names, where it names one."""
    named = [program for program in PROGRAMS if lines and f'"{program}"' in lines[0]]
    parse = every_benchmark()[(named or ["mpi_trials"])[0]].format.parse
    return parse(lines, source="output", expect=expect)


def lines_of(data: Path, program: str) -> list[str]:
    return (data / "mpi-kernels" / f"{program}.txt").read_text(encoding="utf-8").splitlines()


@pytest.fixture
def trials(data: Path) -> list[str]:
    return lines_of(data, "mpi_trials")


@pytest.fixture
def stream(data: Path) -> list[str]:
    return lines_of(data, "stream")


def changed(line: str, **members: object) -> str:
    return json.dumps({**json.loads(line), **members})


def bcast_of(*times: float, **members: object) -> list[str]:
    record = {
        "measurement": "trials",
        "test": "bcast",
        "bytes": 8,
        "flush_bytes": 0,
        "first_flushed": 0.0,
        "times_us": times,
    }
    return [
        json.dumps({"measurement": "begin", "program": "mpi_trials", "processes": 4}),
        json.dumps({**record, **members}),
        json.dumps({"measurement": "end", "count": 1}),
    ]


def test_all_tests_of_the_template_are_read(trials: list[str]) -> None:
    measured = trials_measured(list(TEST_BYTES))
    expected = KernelExpectation(2, 51, {"flush_bytes": 35651584}, measured)
    rows = list(parse_mpi_kernel(trials, expect=expected))
    assert len(rows) == 22
    assert list(dict.fromkeys(row.benchmark for row in rows)) == list(TEST_BYTES)
    bcast = rows[7]
    assert bcast.conditions == {
        "processes": 2,
        "bytes": 1_000_000,
        "flush_bytes": 35651584,
        "trials": 51,
    }
    times = json.loads(trials[8])["times_us"]
    assert bcast.values["p95_time_us"] == sorted(times[1:])[47]
    assert bcast.values["time_us"] <= sum(times[1:]) / 50
    assert bcast.line == 9


def test_single_trials_are_told_as_they_were_printed(trials: list[str]) -> None:
    small, medium, large = single_trials(trials, "bcast")
    assert [one["bytes"] for one in (small, medium, large)] == [8, 10_000, 1_000_000]
    assert (large["processes"], large["flush_bytes"]) == (2, 35651584)
    assert large["times_us"] == json.loads(trials[8])["times_us"]
    assert len(small["times_us"]) == 51
    with pytest.raises(OutputError):
        single_trials(trials[:-1], "bcast")


def test_a_ping_pong_is_half_of_the_round_trip(trials: list[str]) -> None:
    row = next(iter(parse_mpi_kernel(trials)))
    round_trips = json.loads(trials[1])["times_us"][1:]
    assert row.conditions["peer"] == 1
    assert row.values["p95_time_us"] == sorted(round_trips)[47] / 2
    names = [name_of(sample) for sample in samples_of([row])]
    assert names[0] == "ping_pong.2p.to1.8B.time_us"


def test_the_filter_is_applied() -> None:
    (row,) = parse_mpi_kernel(bcast_of(500, *[10.0] * 19, 90.0))
    assert row.values == {"time_us": 10.0, "p95_time_us": 10.0}
    (row,) = parse_mpi_kernel(bcast_of(500, *[10.0] * 18, 80.0, 90.0))
    assert row.values == {"time_us": 10.0, "p95_time_us": 80.0}


def test_overhead_and_availability_are_medians_of_their_trials(data: Path) -> None:
    lines = lines_of(data, "host_overhead")
    expected = KernelExpectation(2, 3, measured=frozenset({("irecv", 65536)}))
    rows = list(parse_mpi_kernel(lines, expect=expected))
    assert [row.conditions["call"] for row in rows] == ["isend"] * 17 + ["irecv"] * 17
    assert name_of(samples_of([rows[3]])[0]) == "host_overhead.2p.isend.8B.overhead_us"
    assert [row.conditions["bytes"] for row in rows[:17]] == [1 << k for k in range(17)]
    record = json.loads(lines[1])
    record |= {"base_us": 10.0, "work_us": 30.0, "iteration_us": 31.0}
    beginning = json.loads(lines[0])
    slow = (12.0, 50.0, 11.0)
    three = [{**record, "trial": k, "iteration_us": 31.0 + k, "p95_us": slow[k]} for k in range(3)]
    told = [json.dumps(r) for r in (beginning, *three, {"measurement": "end", "count": 3})]
    (row,) = parse_mpi_kernel(told)
    assert row.values == pytest.approx(
        {
            "overhead_us": 2.0,
            "availability_percent": 80.0,
            "transfer_us": 10.0,
            "p95_time_us": 50.0,
        }
    )


def test_a_stream_of_messages_counts_what_all_sent(data: Path) -> None:
    lines = lines_of(data, "bidirectional_stream")
    rows = list(parse_mpi_kernel(lines))
    assert [row.conditions["bytes"] for row in rows] == [1 << k for k in range(25)]
    last = json.loads(lines[-2])
    sent_mb = last["bytes"] * last["messages"] / 1e6
    assert rows[-1].values["bandwidth_mb_s"] == pytest.approx(sent_mb / last["seconds"])


def test_stream_counts_bytes_as_stream_does(stream: list[str]) -> None:
    rows = list(parse_mpi_kernel(stream))
    assert [row.conditions["kernel"] for row in rows] == ["copy", "scale", "add", "triad"]
    assert name_of(samples_of(rows)[0]) == "STREAM.2p.copy.bandwidth_gb_s"
    lines = [json.loads(line) for line in stream[1:-1]]
    for row, line in zip(rows, lines, strict=True):
        arrays = 2 if line["kernel"] in ("copy", "scale") else 3
        moved = arrays * 8 * line["elements"] * 2
        fastest_s = 1e-6 * min(line["times_us"][1:])
        assert row.values["bandwidth_gb_s"] == pytest.approx(1e-9 * moved / fastest_s)
        assert row.values["p95_time_us"] == max(line["times_us"][1:])


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_programs_are_recognised(data: Path, program: str) -> None:
    lines = ["a launcher's own line", *lines_of(data, program), "bye"]
    rows = list(outputs.parse(lines, source="x"))
    assert rows == list(outputs.parse(lines, source="x", suite=program))
    for row in rows:
        assert all(every_metric()[name] for name in row.values)


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_cut_and_every_lost_line_is_noticed(data: Path, program: str) -> None:
    lines = lines_of(data, program)
    for kept in range(len(lines)):
        with pytest.raises(OutputError, match=r"cut off|nothing was printed"):
            list(parse_mpi_kernel(lines[:kept]))
    for lost in range(1, len(lines) - 1):
        with pytest.raises(OutputError, match=r"count|missing|lost"):
            list(parse_mpi_kernel([*lines[:lost], *lines[lost + 1 :]]))
    with pytest.raises(
        OutputError, match=":1: a measurement stands here instead of the first line"
    ):
        list(parse_mpi_kernel(lines[1:]))
    with pytest.raises(OutputError, match=":3: not a line as an MPI kernel"):
        list(parse_mpi_kernel([*lines[:2], "WARNING: something", *lines[2:]]))


@pytest.mark.parametrize(
    ("members", "complaint"),
    [
        ({"test": "bcst"}, "'test' must be one of ping_pong"),
        ({"bytes": 16}, "'bytes' must be 8 or 10000 or 1000000, not 16"),
        ({"times_us": [1.0]}, "list of two times or more"),
        ({"times_us": [1.0, -1.0]}, "list of two times or more"),
        ({"times_us": [1.0, "2"]}, "list of two times or more"),
        ({"times_us": [1.0, 0.0]}, "'times_us' must be positive"),
        ({"flush_bytes": 4096}, "first_flushed 0.0 contradicts 2 trials"),
        ({"flush_bytes": -1}, "'flush_bytes' must be an integer"),
        ({"measurement": "stream"}, "a line of 'stream' stands here instead of one of 'trials'"),
    ],
)
def test_a_damaged_line_is_named(members: dict[str, object], complaint: str) -> None:
    with pytest.raises(OutputError, match=f"output:2: .*{re.escape(complaint)}"):
        list(parse_mpi_kernel(bcast_of(5.0, 6.0, **members)))


def test_infinite_times_are_refused() -> None:
    begin, line, end = bcast_of(5.0, 6.0)
    with pytest.raises(OutputError, match="output:2: "):
        list(parse_mpi_kernel([begin, line.replace("6.0", "Infinity"), end]))
    with pytest.raises(OutputError, match="output:2: "):
        list(parse_mpi_kernel([begin, line.replace("6.0", "1e999"), end]))


@pytest.mark.parametrize(
    ("expected", "complaint"),
    [
        (KernelExpectation(processes=8), "another run: processes 4, but 8"),
        (KernelExpectation(arguments=("--trials", "2")), "arguments unknown, but --trials 2 was"),
        (KernelExpectation(trials=51), "trials 2, but 51 was requested"),
        (KernelExpectation(settings={"flush_bytes": 8}), "flush_bytes 0, but 8"),
        (KernelExpectation(measured=frozenset({("scan", 8)})), "scan of 8 bytes is missing"),
    ],
)
def test_another_run_than_the_one_asked_for(expected: KernelExpectation, complaint: str) -> None:
    with pytest.raises(OutputError, match=complaint):
        list(parse_mpi_kernel(bcast_of(5.0, 6.0), expect=expected))


def test_the_output_of_another_program_is_refused(data: Path) -> None:
    with pytest.raises(OutputError, match=":1: another run: program stream, but mpi_tri"):
        list(parse_mpi_trials(lines_of(data, "stream")))


def test_the_call_is_compared_with_the_one_asked_for() -> None:
    begin, *others = bcast_of(5.0, 6.0)
    begin = changed(begin, arguments=["--flush-bytes", "0", "--trials", "2"])
    asked = KernelExpectation(arguments=("--flush-bytes", "0", "--trials", "2"))
    assert list(parse_mpi_kernel([begin, *others], expect=asked))
    other = KernelExpectation(arguments=("--flush-bytes", "0", "--trials", "51"))
    with pytest.raises(OutputError, match="--trials 2, but --flush-bytes 0 --trials 51 was req"):
        list(parse_mpi_kernel([begin, *others], expect=other))


def test_a_ping_pong_that_left_a_process_out_is_noticed(trials: list[str]) -> None:
    more = [changed(trials[0], processes=3), *trials[1:]]
    with pytest.raises(OutputError, match="ping_pong of 8 bytes in 1 lines contradicts the 2"):
        list(parse_mpi_kernel(more))


def test_an_absurd_number_of_processes_is_an_error(trials: list[str]) -> None:
    absurd = [changed(trials[0], processes=10**30), *trials[1:]]
    with pytest.raises(
        OutputError, match=r"in 1 lines contradicts the 9{30} that 10{30} processes"
    ):
        list(parse_mpi_kernel(absurd))


def test_a_test_that_stands_there_twice_is_noticed() -> None:
    begin, line, _ = bcast_of(5.0, 6.0)
    end = json.dumps({"measurement": "end", "count": 2})
    with pytest.raises(OutputError, match="in 2 lines contradicts the 1"):
        list(parse_mpi_kernel([begin, line, line, end]))


@pytest.mark.parametrize(
    ("members", "complaint"),
    [
        ({"kernel": "quadd"}, "'kernel' must be one of .*, not 'quadd'"),
        ({"bytes": 8}, "8 bytes contradicts the 285212672"),
        ({"elements": 0}, "'elements' must be an integer of at least 1"),
        ({"times_us": [1.0, 0.0]}, "'times_us' must be positive"),
    ],
)
def test_a_damaged_line_of_stream(
    stream: list[str], members: dict[str, object], complaint: str
) -> None:
    with pytest.raises(OutputError, match=complaint):
        list(parse_mpi_kernel([stream[0], changed(stream[1], **members), *stream[2:]]))


@pytest.mark.parametrize("program", PROGRAMS)
def test_another_output_below_the_end_is_refused(data: Path, program: str) -> None:
    lines = lines_of(data, program)
    assert list(parse_mpi_kernel([*lines, "a launcher's last words"]))
    with pytest.raises(OutputError, match=f":{len(lines) + 1}: another run begins here"):
        list(parse_mpi_kernel([*lines, *lines]))
