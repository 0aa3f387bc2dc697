"""Outputs as people have them: with prefixes, cut off by a scheduler, appended, of other builds."""

import json
import re
from pathlib import Path

import pytest

from clustergate import cli
from clustergate.benchmarks.formats import parse
from clustergate.core.model import OutputError, Row

DATA = Path(__file__).parent / "data"
HPL = (DATA / "hpl" / "hpl-2.3-mpich-grids.txt").read_text()
HPCC = (DATA / "hpcc" / "hpcc-1.5.0-mpich.txt").read_text()
STREAM = """\
-------------------------------------------------------------
STREAM version $Revision: 5.10 $
-------------------------------------------------------------
This system uses 8 bytes per array element.
-------------------------------------------------------------
Array size = 80000000 (elements), Offset = 0 (elements)
Each kernel will be executed 10 times.
 The *best* time for each kernel (excluding the first iteration)
Number of Threads requested = 2
Number of Threads counted = 2
-------------------------------------------------------------
Function    Best Rate MB/s  Avg time     Min time     Max time
Copy:           21250.0     0.061000     0.060235     0.063000
Scale:          20480.0     0.063000     0.062500     0.064000
Add:            22588.2     0.086000     0.085000     0.088000
Triad:          22325.6     0.087000     0.086000     0.089000
-------------------------------------------------------------
Solution Validates: avg error less than 1.000000e-13 on all three arrays
-------------------------------------------------------------
"""
NPB_OMP = """\
 NAS Parallel Benchmarks (NPB3.4-OMP) - CG Benchmark

 CG Benchmark Completed.
 Class           =                        S
 Size            =                     1400
 Iterations      =                       15
 Time in seconds =                     0.05
 Total threads   =                        2
 Avail threads   =                        2
 Mop/s total     =                  1334.00
 Mop/s/thread    =                   667.00
 Operation type  =           floating point
 Verification    =               SUCCESSFUL
 Version         =                      3.4
 Compile date    =              21 Nov 2026
"""
LAMMPS = """\
LAMMPS (2 Aug 2023)
Setting up Verlet run ...
   Step          Temp          PotEng         Press          Volume
         0   300           -112.5          401.5           27418.25
       100   301.2         -112.6          1210.75         27418.25
Loop time of 12.5 on 4 procs for 100 steps with 2432 atoms

Total wall time: 0:00:13
"""


def rows(text: str) -> list[Row]:
    return list(parse(text.splitlines(keepends=True), source="out"))


def parsed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | bytes, *options: str
) -> tuple[int, list[dict[str, object]], str]:
    """Return the exit status of parse, the rows and what it says."""
    path = tmp_path / "out"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    status = cli.main(["parse", *options, str(path)])
    out, err = capsys.readouterr()
    return status, [json.loads(line) for line in out.splitlines()], err


@pytest.mark.parametrize(
    ("prefixes", "origin"),
    [
        (["0: "], "srun --label"),
        ([" 0: ", "12: "], "srun --label"),
        (["[1,0]<stdout>:"], "mpirun --tag-output"),
        (["[prterun-n1-99@1,0]<stdout>: "], "mpirun --tag-output"),
        (["[0] ", "[1] "], "mpiexec -l"),
        (["[2026-11-21T05:42:06.123Z] "], "time stamps"),
        (["05:42:06 ", "05:42:07 "], "time stamps"),
        (["    "], "indentation"),
        (["n01: "], "pdsh, journald or the like"),
        (["web-1  | "], "pdsh, journald or the like"),
        (["n01\t"], "pdsh, journald or the like"),
        (["Nov  9 05:42:06 n01 xhpl[77]: ", "Nov 19 05:42:07 n01 xhpl[77]: "], "pdsh"),
        (["2026-11-21T05:42:06+0100 n01 xhpl[77]: "], "pdsh, journald or the like"),
        (["Nov 21 05:42:06 ", "Nov 21 05:42:07 "], "time stamps"),
        (["[job 7] rank0> "], "pdsh, journald or the like"),
    ],
)
def test_a_prefix_on_every_line_is_removed_and_said(
    prefixes: list[str], origin: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = HPL.splitlines(keepends=True)
    text = "".join(prefixes[k % len(prefixes)] + line for k, line in enumerate(lines))
    status, found, said = parsed(tmp_path, capsys, "ok: [head] =>\n" + text)
    assert status == 0
    assert [one["values"] for one in found] == [row.values for row in rows(HPL)]
    assert [one["line"] for one in found] == [row.line + 1 for row in rows(HPL)]
    assert "was removed from each line" in said
    assert origin in said


def test_a_prefix_that_some_lines_lack_is_no_prefix() -> None:
    lines = HPL.splitlines(keepends=True)
    half = len(lines) // 2
    mixed = ["0: " + line for line in lines[:half]] + ["x\n"]
    with pytest.raises(OutputError):
        rows("".join([*mixed, *("0: " + line for line in lines[half:])]))
    # A result without its prefix is none.
    result = next(k for k, line in enumerate(lines) if line.startswith("WR"))
    with pytest.raises(OutputError):
        rows("".join("0: " * (k != result) + line for k, line in enumerate(lines)))


def test_the_outputs_of_two_nodes_that_a_tool_mixed_are_refused() -> None:
    lines = HPL.splitlines(keepends=True)
    mixed = [f"{node}: {line}" for line in lines for node in ("n01", "n02")]
    with pytest.raises(OutputError):
        rows("".join(mixed))


def test_log_naming_a_program_before_its_output_is_read() -> None:
    """A log that names a program before its output takes nothing from it."""
    said = "stage 3: STREAM version $Revision: 5.10 $\n\n"
    assert [row.values for row in rows(said + STREAM)] == [row.values for row in rows(STREAM)]


LIMIT = "slurmstepd: error: *** STEP 77.0 ON n01 CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT"


@pytest.mark.parametrize("half_a_line", [False, True])
def test_results_before_a_time_limit_are_kept_on_request(
    half_a_line: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    every = rows(HPL)
    lines = HPL.splitlines(keepends=True)[: every[3].line - 1]
    cut = "".join(lines) + ("WR11C2R4        10" if half_a_line else "") + f"\n{LIMIT} ***\n"
    status, found, said = parsed(tmp_path, capsys, cut)
    assert (status, found) == (1, [])
    assert "DUE TO TIME LIMIT" in said
    status, found, said = parsed(tmp_path, capsys, cut, "--keep-complete")
    assert status == 1
    assert [one["values"] for one in found] == [row.values for row in every[:3]]
    assert "DUE TO TIME LIMIT" in said
    assert "the results up to there are complete" in said


@pytest.mark.parametrize(("last", "kept"), [(121, 58), (125, 58), (60, 15)])
def test_tables_of_imb_before_it_was_cut_off_are_kept_on_request(
    last: int, kept: int, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (data / "imb" / "mpich-2021.11-mpi1.txt").read_text()
    every = rows(text)
    cut = "".join(text.splitlines(keepends=True)[:last])
    status, found, said = parsed(tmp_path, capsys, cut, "--keep-complete")
    assert status == 1
    assert [one["values"] for one in found] == [row.values for row in every[:kept]]
    assert "the results up to there are complete" in said
    # Half of a figure is none.
    _, found, _ = parsed(tmp_path, capsys, cut.rstrip()[:-1], "--keep-complete")
    assert [one["values"] for one in found] == [row.values for row in every[: len(found)]]


def test_where_nothing_was_complete_nothing_is_said_to_be_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut = HPCC[:3000] + f"\n{LIMIT} ***\n"
    status, found, said = parsed(tmp_path, capsys, cut, "--keep-complete")
    assert (status, found) == (1, [])
    assert "no result was complete before the place where it was cut off" in said
    # What is asked for already is not recommended.
    assert "--keep-complete" not in said
    _, _, said = parsed(tmp_path, capsys, cut)
    assert "--keep-complete prints those" in said


def test_nothing_is_kept_of_an_output_that_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = rows(HPL)[2].line
    lines = HPL.splitlines(keepends=True)
    for wrong in (
        HPL[::-1].replace("DESSAP", "DELIAF", 1)[::-1],
        "".join(lines[: line - 1] + lines[line:]),
    ):
        status, found, _ = parsed(tmp_path, capsys, wrong, "--keep-complete")
        assert (status, found) == (1, [])


def test_runs_of_hpcc_that_were_appended_are_all_read() -> None:
    once = rows(HPCC)
    twice = rows(HPCC + HPCC)
    assert [row.values for row in twice] == [row.values for row in once] * 2
    offset = HPCC.count("\n")
    assert [row.line for row in twice[len(once) :]] == [row.line + offset for row in once]


def test_damaged_second_run_of_hpcc_refused_by_its_line() -> None:
    broken = HPCC.replace("Success=1", "Success=0")
    line = HPCC.count("\n") + HPCC[: HPCC.index("Success=1")].count("\n") + 1
    with pytest.raises(OutputError) as refused:
        rows(HPCC + broken)
    assert refused.value.line == line
    # One that begins before the first has ended is none that HPCC appended.
    with pytest.raises(OutputError):
        rows(HPCC[: len(HPCC) // 2] + HPCC)


@pytest.mark.parametrize(("line", "reads"), [(35, True), (33, True), (32, False), (4, False)])
def test_hpcc_that_found_no_sizes_for_ptrans_counts(line: int, reads: bool) -> None:
    said = f"Error in line {line} of the input file.\n"
    text = HPCC.replace(
        "Begin of MPIRandomAccess section.", said + "Begin of MPIRandomAccess section."
    )
    if reads:
        assert [row.values for row in rows(text)] == [row.values for row in rows(HPCC)]
    else:
        with pytest.raises(OutputError, match="Error in line"):
            rows(text)


def test_stream_of_mccalpin_is_read() -> None:
    found = rows(STREAM)
    assert [row.conditions["kernel"] for row in found] == ["copy", "scale", "add", "triad"]
    assert found[0].conditions == {
        "elements": 80000000, "trials": 10, "threads": 2, "kernel": "copy"
    }  # fmt: skip
    assert found[3].values == pytest.approx({"bandwidth_gb_s": 22.3256, "time_s": 0.086})
    assert found[0].line == 13


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("21250.0", "21350.0"),
        ("0.060235", "0.050235"),
        ("0.061000", "0.071000"),
        ("80000000", "8000000"),
        ("8 bytes", "4 bytes"),
        ("Triad:  ", "Triad;  "),
        ("Add: ", "Copy:"),
        ("Solution Validates: avg", "Failed Validation on array a[], AvgRelAbsErr"),
        ("Solution Validates", "Solution"),
        ("STREAM version", "STREAM version $Revision: 5.10 $\nSTREAM version"),
        ("22588.2", "2258x.2"),
    ],
)
def test_stream_of_mccalpin_that_is_damaged_is_refused(old: str, new: str) -> None:
    with pytest.raises(OutputError):
        rows(STREAM.replace(old, new, 1))


def test_stream_that_is_cut_off_anywhere_is_refused() -> None:
    lines = STREAM.splitlines(keepends=True)
    for count in range(2, len(lines) - 2):
        with pytest.raises(OutputError):
            rows("".join(lines[:count]))


def test_npb_of_openmp_is_read_by_its_threads() -> None:
    (found,) = rows(NPB_OMP)
    assert (found.benchmark, found.conditions["threads"]) == ("NPB-CG", 2)
    assert found.values == {"total_mop_per_s": 1334.0, "time_s": 0.05}
    for old, new in (("667.00", "767.00"), ("SUCCESSFUL", "UNSUCCESSFUL"), ("Compile", "Cxmpile")):
        with pytest.raises(OutputError):
            rows(NPB_OMP.replace(old, new))


@pytest.mark.parametrize(
    ("changes", "benchmark", "counts"),
    [
        ({"NPB3.4-OMP": "NPB3.3-OMP-C"}, "NPB-CG", {"threads": 2}),
        ({"\n ": "\n"}, "NPB-CG", {"threads": 2}),
        ({"\n": "\n    "}, "NPB-CG", {"threads": 2}),
        ({"\n": "\nn01: "}, "NPB-CG", {"threads": 2}),
        ({"CG": "UA"}, "NPB-UA", {"threads": 2}),
        (
            {
                "NPB3.4-OMP": "NPB3.4-MZ MPI+OpenMP",
                "CG Bench": "BT-MZ Bench",
                " Total t": " Total processes =                        1\n Total t",
                " Avail threads   =                        2\n": "",
            },
            "NPB-BT-MZ",
            {"processes": 1, "threads": 2},
        ),
        (
            {
                "NPB3.4-OMP": "NPB3.4-SER",
                " Total threads   =                        2\n": "",
                " Avail threads   =                        2\n": "",
                " Mop/s/thread    =                   667.00\n": "",
            },
            "NPB-CG",
            {},
        ),
    ],
)
def test_other_versions_of_npb_are_read_too(
    changes: dict[str, str], benchmark: str, counts: dict[str, int]
) -> None:
    text = "\n" + NPB_OMP
    for old, new in changes.items():
        text = text.replace(old, new)
    (found,) = rows(text)
    assert found.benchmark == benchmark
    assert found.values == {"total_mop_per_s": 1334.0, "time_s": 0.05}
    many = {name: found.conditions.get(name) for name in ("processes", "threads")}
    assert {name: count for name, count in many.items() if count} == counts
    with pytest.raises(OutputError):
        rows(text.replace("SUCCESSFUL", "UNSUCCESSFUL"))


def test_npb_of_openmp_without_threads_is_not_serial() -> None:
    with pytest.raises(OutputError):
        rows(NPB_OMP.replace("Total threads", "Tota threads"))


def test_a_log_of_hpcg_is_told_as_what_it_is() -> None:
    log = "Initial Residual = 812.5\nIteration = 1   Scaled Residual = 0.181\n" * 2
    with pytest.raises(
        OutputError, match="this is output of HPCG's log, which clustergate does not"
    ):
        rows(log + "HPCG-Benchmark\nversion=3.1\n")


def test_lammps_without_total_energy_not_called_cut_off() -> None:
    with pytest.raises(OutputError, match=r"no total energy.*add `etotal`") as refused:
        rows(LAMMPS)
    assert "cut off" not in str(refused.value)
    with pytest.raises(OutputError, match="Total wall time"):
        rows(LAMMPS.replace("Total wall", ""))
    # The sum of both is the total energy.
    both = (
        LAMMPS.replace("Press ", "KinEng")
        .replace("401.5  ", "12.5   ")
        .replace("1210.75", "12.6   ")
    )
    assert rows(both)[0].values["time_s"] == 12.5
    with pytest.raises(OutputError, match="total energy"):
        rows(both.replace(" 12.6", " 92.6"))


def test_imbs_own_check_of_the_data_is_told_as_that() -> None:
    text = (DATA / "imb" / "mpich-2018-mpi1-check.txt").read_text()
    row = re.search(r"^ +\d+ .*\n", text, re.MULTILINE)
    assert row
    said = "1: Error PingPong,size = 4,sample #0\n"
    with pytest.raises(OutputError, match="IMB's own check of the data failed: 1: Error PingPong"):
        rows(text[: row.end()] + said + text[row.end() :])


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_told_as_that(
    encoding: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, said = parsed(tmp_path, capsys, HPL.encode(encoding))
    assert status == 1
    assert "this is text in UTF-16" in said
    assert "crash" not in said
