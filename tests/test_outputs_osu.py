import re
from pathlib import Path

import pytest

from clustergate.benchmarks import formats as outputs
from clustergate.benchmarks.osu.output import OsuExpectation, parse_osu, program_of
from clustergate.core.model import OutputError, Row

# Version 5.8 on a page of a site, version 6.1 in another one's guide: their forms, other figures.
OLDER = """\
# OSU MPI Allreduce Latency Test v5.8
# Size       Avg Latency(us)
4                      12.50
8                      12.25

real\t0m7.902s
"""
FROM_ZERO = """\
# OSU MPI Latency Test v6.1
# Size          Latency (us)
0                      31.20
1                      27.90
2                      26.70
"""


@pytest.fixture
def folder(data: Path) -> Path:
    return data / "osu"


def rows_of(text: str, expect: OsuExpectation | None = None) -> list[Row]:
    return list(parse_osu(text.splitlines(), expect=expect))


@pytest.mark.parametrize(
    ("name", "rows", "benchmark", "values"),
    [
        ("latency-mpich", 17, "osu_latency", {"latency_us": 48.39}),
        ("latency-checked-mpich", 8, "osu_latency", {"latency_us": 0.96}),
        ("bw-mpich", 17, "osu_bw", {"bandwidth_mb_s": 605.32}),
        ("bibw-openmpi", 17, "osu_bibw", {"bandwidth_mb_s": 167.21}),
        ("bibw-intel-mpi", 21, "osu_bibw", {"bandwidth_mb_s": 3155.69}),
        ("reduce-intel-mpi", 21, "osu_reduce", {"t_avg_us": 6662.08}),
        ("put_latency-mpich", 11, "osu_put_latency", {"latency_us": 0.12}),
        ("multi_lat-openmpi", 11, "osu_multi_lat", {"latency_us": 0.22}),
        (
            *("mbw_mr-4-openmpi", 11, "osu_mbw_mr"),
            {"bandwidth_mb_s": 8.3, "message_rate_per_s": 8105.76},
        ),
        (
            *("allreduce-full-openmpi", 13, "osu_allreduce"),
            {"t_avg_us": 0.87, "t_min_us": 0.87, "t_max_us": 0.88},
        ),
        (
            *("barrier-full-mpich", 1, "osu_barrier"),
            {"t_avg_us": 27133.56, "t_min_us": 27098.96, "t_max_us": 27168.15},
        ),
        (
            *("ialltoall-openmpi", 11, "osu_ialltoall"),
            {"t_overlapped_us": 1.27, "t_cpu_us": 0.68, "t_pure_us": 0.53, "overlap_percent": 0.0},
        ),
    ],
)
def test_captured_output(
    folder: Path, name: str, rows: int, benchmark: str, values: dict[str, float]
) -> None:
    lines = (folder / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    found = list(outputs.parse(lines, source="x"))
    last = found[-1]
    assert (len(found), last.suite, last.benchmark, last.values) == (rows, "OSU", benchmark, values)
    assert all(str(value) in lines[last.line - 1] for value in values.values())


def test_what_a_library_prints_between_the_lines_is_passed_over(folder: Path) -> None:
    text = (folder / "get_bw-fence-openmpi.txt").read_text(encoding="utf-8")
    found = rows_of(text)
    assert [row.conditions["bytes"] for row in found] == [2**k for k in range(13)]
    assert {row.conditions["sync"] for row in found} == {"MPI_Win_fence"}
    assert {row.conditions["window"] for row in found} == {"MPI_Win_create"}
    assert {row.conditions["processes"] for row in found} == {2}


def test_pairs_tell_the_processes(folder: Path) -> None:
    text = (folder / "mbw_mr-4-openmpi.txt").read_text(encoding="utf-8")
    assert {row.conditions["processes"] for row in rows_of(text)} == {4}
    with pytest.raises(OutputError, match="the number of processes 4, but 8 was requested"):
        rows_of(text, OsuExpectation(processes=8))


def test_forms_of_older_versions() -> None:
    assert [row.values for row in rows_of(OLDER)] == [{"t_avg_us": 12.5}, {"t_avg_us": 12.25}]
    assert [row.conditions["bytes"] for row in rows_of(FROM_ZERO)] == [0, 1, 2]
    on_devices = FROM_ZERO.replace("MPI Latency", "MPI-CUDA Latency")
    assert {row.conditions["mode"] for row in rows_of(on_devices)} == {"cuda"}
    of_integers = FROM_ZERO.replace("# Size", "# Datatype: MPI_INT.\n# Size")
    assert {row.conditions["mode"] for row in rows_of(of_integers)} == {"mpi_int"}


def test_percentiles_beside_a_figure_are_passed_over() -> None:
    """As ``-z`` of OSU 7 prints them."""
    head = "# OSU MPI Bandwidth Test v7.5\n# Datatype: MPI_CHAR.\n"
    columns = "# Size      Bandwidth (MB/s)    P50 Tail BW(MB/s)\n"
    rows = rows_of(f"{head}{columns}1    3.05    2.98\n2    6.10    5.96\n")
    assert [row.values["bandwidth_mb_s"] for row in rows] == [3.05, 6.1]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            "# OSU MPI Latency Test v7.4\n# Datatype: MPI_CHAR.\n"
            "# Size       Avg Latency(us)     Transmit Size\n4    15.27    8\n8    11.90    16\n",
            r"output:3: this is output of osu_latency with derived data types \(-D\)",
        ),
        (
            "# OSU MPI Multiple Bandwidth / Message Rate Test v7.4\n"
            "# [ pairs: 1 ] [ window size: varied ]\n\n# Uni-directional Bandwidth (MB/sec)\n"
            "# Datatype: MPI_CHAR.\n#                8          16\n1        4.05        5.10\n",
            r"output:2: this is output of osu_mbw_mr with windows of several sizes \(-V\)",
        ),
        (
            "# OSU MPI Latency Test v7.4\n# Datatype: MPI_CHAR.\n"
            "# Size       Avg Latency(us)\n4    15.27\n# Datatype: MPI_INT.\n"
            "# Size       Avg Latency(us)\n4    15.27\n",
            "output:5: another run begins here",
        ),
    ],
    ids=["derived data types", "varied windows", "all data types"],
)
def test_tables_of_other_options_are_refused_by_name(text: str, complaint: str) -> None:
    with pytest.raises(OutputError, match=complaint):
        rows_of(text)


@pytest.mark.parametrize(
    ("title", "program"),
    [
        ("MPI All-to-Allv Personalized Exchange Latency", "osu_alltoallv"),
        ("MPI Non-Blocking Broadcast Latency", "osu_ibcast"),
        ("MPI Non-blocking Reduce_scatter_block Latency", "osu_ireduce_scatter_block"),
        ("MPI Neighborhood Alltoall Latency", "osu_neighbor_alltoall"),
        ("MPI Barrier Persistent Latency", "osu_barrier_persistent"),
        ("MPI_Put Bi-directional Bandwidth", "osu_put_bibw"),
        ("MPI_Compare_and_swap latency", "osu_cas_latency"),
        ("MPI Init", ""),
        ("OpenSHMEM Put", ""),
    ],
)
def test_program_of_a_title(title: str, program: str) -> None:
    assert program_of(title) == program


@pytest.mark.parametrize(
    ("name", "pattern", "changed", "complaint"),
    [
        ("latency-mpich", r"\n4 .*", "", "a size of 8 bytes contradicts 2 bytes before it"),
        ("latency-mpich", r"\n4 .*", "\n4", "not a line of figures as OSU prints it"),
        ("latency-mpich", r"(\n4 +\d+\.\d)\d", r"\1", "not a line of figures as OSU prints it"),
        ("latency-mpich", r"(?s)\n1 .*", "", "the text ends before a line of figures"),
        ("latency-mpich", r"(?s)\n# Size.*", "", "the text ends before the table"),
        ("latency-mpich", r"(?s)# OSU.*", "", "the text ends before the title"),
        ("latency-mpich", r"\n# Size.*", "", "not a line of columns"),
        ("latency-mpich", "MPI Latency", "MPI Init", "output of OSU MPI Init, which clustergate"),
        ("latency-mpich", r"\Z", "\n# OSU MPI Latency Test v7.4\n", "another run begins here"),
        ("put_latency-mpich", "Datatype: MPI_", "Datatype: 0PI_", "not a line of the head"),
        ("put_latency-mpich", "# Window.*", "", "the window or the synchronization is missing"),
        (
            "mbw_mr-4-openmpi",
            r"(# . pairs.*\n)(?s:(.*\n)8 )",
            r"\2\g<1>8 ",
            "a line of the head stands",
        ),
        ("latency-mpich", r"(\n4 +)[\d.]+", r"\g<1>nan", "not a line of figures as OSU prints it"),
        ("latency-checked-mpich", "Pass", "Fail", "the validation of the data is Fail"),
        ("mbw_mr-mpich", r"(\n8 +)\d", r"\g<1>9", "messages of 8 bytes contradicts"),
        ("allreduce-full-openmpi", r"(\n8 +)\d", r"\g<1>99", "contradicts the least and the most"),
        ("iallreduce-full-mpich", r"(\n1024 +)\d", r"\g<1>99", "an overlap of .* contradicts"),
        ("barrier-full-mpich", r"(\n *\d.*)", r"\1\1", "contradicts -1 bytes before it|figures"),
    ],
)
def test_damage_is_refused(
    folder: Path, name: str, pattern: str, changed: str, complaint: str
) -> None:
    text = (folder / f"{name}.txt").read_text(encoding="utf-8")
    damaged, count = re.subn(pattern, changed, text, count=1)
    assert count == 1
    with pytest.raises(OutputError, match=complaint):
        rows_of(damaged)


@pytest.mark.parametrize("name", ["barrier-full-mpich", "latency-mpich"])
def test_a_last_number_may_not_be_cut_but_the_end_of_its_line_may(folder: Path, name: str) -> None:
    text = (folder / f"{name}.txt").read_text(encoding="utf-8").rstrip("\n")
    assert list(parse_osu(text.splitlines(keepends=True)))
    with pytest.raises(
        OutputError, match=r"ends before the end of this line|not a line of figures"
    ):
        list(parse_osu(text[:-1].splitlines(keepends=True)))


@pytest.mark.parametrize(
    ("expected", "complaint"),
    [
        (OsuExpectation(program="osu_bw"), "the program osu_latency, but osu_bw was requested"),
        (OsuExpectation(smallest_bytes=8), "the smallest size 1, but 8 was requested"),
        (OsuExpectation(largest_bytes=1 << 20), "the line of 1048576 bytes is missing"),
    ],
)
def test_another_run_is_refused(folder: Path, expected: OsuExpectation, complaint: str) -> None:
    text = (folder / "latency-mpich.txt").read_text(encoding="utf-8")
    with pytest.raises(OutputError, match=complaint):
        rows_of(text, expected)


def test_failure_is_told_in_its_own_words() -> None:
    with pytest.raises(OutputError, match="OSU reports a failure: This test requires exactly two"):
        rows_of("This test requires exactly two processes\n")
