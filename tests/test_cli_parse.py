from __future__ import annotations

import contextlib
import csv
import gzip
import io
import json
import resource
import subprocess
import sys
import tracemalloc
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from clustergate import cli
from clustergate.benchmarks import formats
from clustergate.benchmarks.formats import parse
from clustergate.benchmarks.hpcc import output as hpcc
from clustergate.benchmarks.registry import every_metric
from clustergate.cli.parse import read_lines
from clustergate.core import model
from clustergate.core.model import OutputError, Row

DATA = Path(__file__).resolve().parent / "data"
HPL = str(DATA / "hpl" / "hpl-2.3-mpich-grids.txt")
MANY_RESULTS = str(DATA / "hpl" / "hpl-2.3-mpich-variants.txt")
FAILED = str(DATA / "hpl" / "hpl-2.0-impi-failed.txt")
HPCC = str(DATA / "hpcc" / "hpcc-1.5.0-impi.txt")
IMB = str(DATA / "imb" / "impi-2021.11-mpi1-default.txt")
# As the installed command starts, but with this one subcommand.
PROGRAM = (
    sys.executable,
    "-c",
    "from clustergate import cli; cli.COMMANDS = ('parse',); raise SystemExit(cli.main())",
    "parse",
)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    monkeypatch.setattr(cli, "COMMANDS", ("parse",))

    def call(*arguments: str) -> tuple[int, str, str]:
        status = cli.main(["parse", *arguments])
        return status, *capsys.readouterr()

    return call


def test_rows_are_json_lines(run: Any) -> None:
    status, out, err = run(HPL)
    rows = [json.loads(line) for line in out.splitlines()]
    assert (status, err, len(rows)) == (0, "", 8)
    assert rows[0]["file"] == HPL
    assert (rows[0]["suite"], rows[0]["benchmark"], rows[0]["line"]) == ("HPL", "HPL", 47)
    assert rows[0]["conditions"]["variant"] == "WR11C2R4"
    assert rows[0]["values"]["performance_gflops"] == 52.409


def test_the_table_has_the_columns_of_all_rows(run: Any) -> None:
    status, out, err = run("--format", "csv", HPL, HPCC)
    table = list(csv.DictReader(io.StringIO(out)))
    assert (status, err, len(table)) == (0, "", 8 + 41)
    assert list(table[0])[:8] == [
        *("file", "suite", "benchmark", "status", "line"),
        *("n", "nb", "p"),
    ]
    assert {row["suite"] for row in table} == {"HPL", "HPCC"}
    assert (table[0]["performance_gflops"], table[0]["StarDGEMM_Gflops"]) == ("52.409", "")
    (figure,) = (row for row in table if row["benchmark"] == "StarDGEMM_Gflops")
    assert float(figure["StarDGEMM_Gflops"]) > 1
    assert (figure["ranks"], figure["nb"]) == ("2", "")


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_what_is_printed_is_what_the_rows_hold(run: Any, tmp_path: Path, form: str) -> None:
    odd = tmp_path / '50%r, "%d" \\u0000 %(x)s.out'
    odd.write_bytes(Path(IMB).read_bytes())
    status, out, _ = run("--format", form, str(odd))
    rows = list(parse(odd.read_text().splitlines(keepends=True), source="x"))
    assert (status, len(rows)) == (0, 798)
    if form == "jsonl":
        names = ("suite", "benchmark", "status", "line", "conditions", "values")
        held = [{"file": str(odd), **{name: getattr(row, name) for name in names}} for row in rows]
        assert [json.loads(line) for line in out.splitlines()] == held
        return
    for read, row in zip(csv.DictReader(io.StringIO(out)), rows, strict=True):
        cells = {**row.conditions, **row.values, "line": row.line, "file": str(odd)}
        cells |= {"suite": row.suite, "benchmark": row.benchmark, "status": row.status}
        assert {name: text for name, text in read.items() if text} == {
            name: str(value) for name, value in cells.items()
        }


def test_rows_before_a_new_column_have_an_empty_cell_for_it(run: Any, tmp_path: Path) -> None:
    odd = tmp_path / "two\nlines.out"
    odd.write_bytes(Path(HPL).read_bytes())
    status, out, _ = run("--format", "csv", str(odd), FAILED, IMB, HPCC)
    table = list(csv.DictReader(io.StringIO(out), restkey="too many", restval="too few"))
    assert (status, len(table)) == (1, 8 + 798 + 41)
    assert table[0]["file"] == str(odd)
    for row in table:
        assert "too many" not in row
        assert "too few" not in row.values()
    # What a bad output had in columns of its own is none of the table's.
    assert run("--format", "csv", FAILED, IMB)[1] == run("--format", "csv", IMB)[1]


def test_lines_of_a_file_wherever_blocks_are_cut(tmp_path: Path) -> None:
    lines = [f"{number} " + "ä\r" * (number % 97) + "\n" for number in range(3000)]
    for last in ("", "no end"):
        path = tmp_path / "file"
        path.write_text("".join([*lines, last]), encoding="utf-8", newline="")
        assert list(read_lines(str(path), "x")) == [*lines, *[last] * bool(last)]
    path.write_text("".join(lines) + "a\0\n", encoding="utf-8", newline="")
    with pytest.raises(OutputError, match=r"x:3001: .* a zero byte"):
        list(read_lines(str(path), "x"))
    path.write_text("".join(lines) + "a" * 65536 + "\n", encoding="utf-8", newline="")
    with pytest.raises(OutputError, match=r"x:3001: .* a line of more than 65536 bytes"):
        list(read_lines(str(path), "x"))


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_nothing_is_printed_of_a_bad_text(run: Any, form: str) -> None:
    status, out, err = run("--format", form, FAILED)
    assert (status, out) == (1, "")
    assert err == (
        f"clustergate: {FAILED}:49: the result is wrong: the residual is 0.0047947 (FAILED) and "
        "must be below 0.0; do not trust the figures, look for a faulty node, compiler or library\n"
    )


def test_good_files_are_printed_beside_bad_ones(run: Any, tmp_path: Path) -> None:
    cut = tmp_path / "cut.out"
    cut.write_text("".join(Path(HPL).read_text().splitlines(keepends=True)[:-2]))
    status, out, err = run(str(cut), HPL, FAILED)
    assert status == 1
    assert {json.loads(line)["file"] for line in out.splitlines()} == {HPL}
    assert len(out.splitlines()) == 8
    assert [line.split(":")[1].strip() for line in err.splitlines()] == [str(cut), FAILED]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, ": cannot be read: No such file or directory"),
        (b"", ": the text is empty"),
        (b"\n \n", ": the text is empty"),
        (
            b"hello\n",
            ":1: this is not output of HPL, HPCC, IMB, OSU, HPCG, STREAM 5.10, mpi_trials, "
            "host_overhead, bidirectional_stream, STREAM, LAMMPS, HPCCG or NPB",
        ),
        (
            gzip.compress(b"HPLinpack", mtime=0),
            ":1: this is not a benchmark's output: it is compressed; unpack it first, or pipe it",
        ),
        (b"\x7fELF\x00\x01", ":1: this is not a benchmark's output: a zero byte"),
        (b"na\xefve\n", ":1: this is not output of HPL, HPCC, IMB"),
        (b"x" * 70000, ":1: this is not a benchmark's output: a line of more than 65536 bytes"),
    ],
)
def test_what_is_no_output_is_one_sentence(
    run: Any, tmp_path: Path, content: bytes | None, message: str
) -> None:
    path = tmp_path / "file"
    if content is not None:
        path.write_bytes(content)
    status, out, err = run(str(path))
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert err.startswith(f"clustergate: {path}{message}")


@pytest.mark.parametrize("path", [HPL, HPCC, IMB])
def test_a_long_preamble_and_other_encodings_do_no_harm(
    run: Any, tmp_path: Path, path: str
) -> None:
    _, plain, _ = run(path)
    bound = "[node:%d] MCW rank %d bound to socket 0[core %d[hwt 0]]: [B/././.][./././.]\n"
    report = "".join(bound % (rank, rank, rank % 4) for rank in range(5000)).encode()
    greeting = "Nœud réservé à Zoë\n".encode("cp1252")
    output = tmp_path / "job.out"
    output.write_bytes(report + greeting + Path(path).read_bytes() + greeting)
    status, out, err = run(str(output))
    assert (status, err) == (0, "")
    rows, expected = ([json.loads(line) for line in text.splitlines()] for text in (out, plain))
    for row in rows:
        row["line"] -= 5001
        row["file"] = path
    assert rows == expected


@pytest.mark.parametrize(
    ("path", "figure"), [(HPL, b"5.2409e+01"), (HPCC, b"StarDGEMM_Gflops="), (IMB, b" 3.51")]
)
def test_a_figure_in_another_encoding_is_damaged(
    run: Any, tmp_path: Path, path: str, figure: bytes
) -> None:
    content = Path(path).read_bytes()
    assert figure in content
    output = tmp_path / "job.out"
    output.write_bytes(content.replace(figure, figure[:-1] + b"\xb9", 1))
    status, out, err = run(str(output))
    assert (status, out, err.count("\n")) == (1, "", 1)


@pytest.mark.parametrize("path", [HPL, HPCC])
def test_a_job_may_print_its_input(run: Any, tmp_path: Path, path: str) -> None:
    words = "HPLinpack benchmark input file\nInnovative Computing Laboratory\n1000 2000 Ns\n"
    output = tmp_path / "job.out"
    output.write_text(f"Running HPC Challenge\n{words}{Path(path).read_text()}{words}")
    status, out, err = run(str(output))
    assert (status, err) == (0, "")
    assert len(out.splitlines()) == len(run(path)[1].splitlines())


def test_a_folder_is_no_output(run: Any, tmp_path: Path) -> None:
    assert run(str(tmp_path)) == (
        1,
        "",
        f"clustergate: {tmp_path}: cannot be read: Is a directory\n",
    )


def test_the_program_can_be_named(run: Any) -> None:
    assert run("--suite", "hpl", HPL)[0] == 0
    status, out, err = run("--suite", "hpcc", HPL)
    assert (status, out) == (1, "")
    assert "this is not output of HPCC" in err


def test_standard_input_is_read() -> None:
    with open(HPL, "rb") as file:
        ended = subprocess.run([*PROGRAM, "-"], stdin=file, capture_output=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert json.loads(ended.stdout.splitlines()[0])["file"] == "standard input"
    ended = subprocess.run([*PROGRAM, "-"], input=b"", capture_output=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr == b"clustergate: standard input: the text is empty\n"


def test_a_reader_that_has_had_enough_is_no_error() -> None:
    with subprocess.Popen(
        [*PROGRAM, *[MANY_RESULTS] * 20], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as program:
        assert program.stdout is not None
        assert program.stderr is not None
        program.stdout.readline()
        program.stdout.close()
        assert program.stderr.read() == b""


def test_a_full_disk_is_one_sentence(tmp_path: Path) -> None:
    def allow_small_files_only() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))

    ended = subprocess.run(
        [*PROGRAM, *[MANY_RESULTS] * 80],
        # Without bytecode: Python would leave its caches cut off at the limit.
        env={"TMPDIR": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        preexec_fn=allow_small_files_only,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (2, b"")
    assert ended.stderr == (
        b"clustergate: the rows cannot be kept in a temporary file until their text is checked: "
        b"File too large; set TMPDIR to a folder with more space\n"
    )


@pytest.mark.parametrize("paths", [[HPL], [IMB, HPCC, HPL], ["does-not-exist", HPL]])
def test_parquet_has_what_csv_has(paths: list[str]) -> None:
    def printed(form: str) -> bytes:
        command = [*PROGRAM, "--format", form, *paths]
        return subprocess.run(command, capture_output=True, check=False).stdout

    table = pl.read_parquet(io.BytesIO(printed("parquet")))
    kinds = {"benchmark": pl.String, "line": pl.Int64, "n": pl.Int64, "time_s": pl.Float64}
    assert {name: table.schema[name] for name in kinds} == kinds
    read = list(csv.DictReader(io.StringIO(printed("csv").decode())))
    assert len(read) == len(table)
    for row, cells in zip(table.iter_rows(named=True), read, strict=True):
        known = {name: cell for name, cell in cells.items() if cell}
        assert {name: value for name, value in row.items() if value is not None}.keys() == (
            known.keys()
        )
        assert all(type(row[name])(cell) == row[name] for name, cell in known.items())


def test_of_nothing_there_is_no_parquet() -> None:
    command = [*PROGRAM, "--format", "parquet", "does-not-exist"]
    ended = subprocess.run(command, capture_output=True, check=False)
    assert (ended.returncode, ended.stdout) == (1, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
def test_rows_that_cannot_be_written_are_one_sentence(form: str) -> None:
    command = [*PROGRAM, "--format", form, HPL]
    with open("/dev/full", "wb") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert ended.returncode == 2
    assert ended.stderr == b"clustergate: the rows cannot be written: No space left on device\n"


def test_a_large_text_is_not_kept_in_memory() -> None:
    lines = Path(HPCC).read_text().splitlines(keepends=True)
    warning = "[node] warning: the network is not as the library would have it\n"

    def noisy() -> Iterator[str]:
        for line in lines:
            yield line
            if line.startswith("Begin of "):
                yield from (f"{number} {warning}" for number in range(5000))

    tracemalloc.start()
    try:
        rows = sum(1 for _ in parse(noisy(), source="text"))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert rows == 41
    assert peak < 1_000_000 < 17 * 5000 * len(warning)


def test_an_unknown_text_is_an_error_when_it_is_asked_for_rows() -> None:
    with pytest.raises(OutputError, match="log:1: this is not output of HPL, HPCC, IMB"):
        list(parse(["nothing\n"], source="log"))


def test_every_value_has_a_metric() -> None:
    assert every_metric()["latency_us"] is model.METRICS["latency_us"]
    assert every_metric()["StarDGEMM_Gflops"] is hpcc.METRICS["StarDGEMM_Gflops"]
    for path in (HPL, HPCC):
        with open(path) as file:
            for row in parse(file, source=path):
                assert all(every_metric()[name].name == name for name in row.values)
    with pytest.raises(KeyError):
        every_metric()["speed"]


def test_no_time_and_a_rate_that_no_machine_has_are_refused(run: Any, tmp_path: Path) -> None:
    (bad := tmp_path / "hpl.txt").write_text(
        (DATA / "hpl" / "hpl-2.3-mpich-grids.txt")
        .read_text()
        .replace("0.01             5.2409e+01", "0.00             9.9990e+89")
    )
    status, out, told = run(str(bad))
    assert (status, out) == (1, "")
    assert f"{bad}:47: HPL.performance_gflops of 9.999e+89 Gflop/s is beyond what any" in told


@pytest.mark.parametrize("name", sorted(formats.formats()))
def test_what_no_machine_reaches_is_refused_of_every_format(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A rate that is 1e40 times as much; of a program that tells times alone, no time."""
    factor = {"mpi_trials": 0.0, "osu": 0.0}.get(name, 1e40)
    own, rows = formats.formats()[name], list[Row]()
    for path in DATA.rglob("*.*"):
        with contextlib.suppress(OutputError, IsADirectoryError):
            text = io.StringIO(path.read_text(errors="replace"))
            rows = rows or [*formats.parse(text, source="x", suite=name)]
    assert rows
    changed = [replace(r, values={k: v * factor for k, v in r.values.items()}) for r in rows]

    def told(lines: Iterable[str], *, source: str, expect: Any = None) -> Iterator[Row]:
        yield from changed

    fake = replace(own, parse=told)
    monkeypatch.setattr(formats, "formats", lambda: {name: fake})
    with pytest.raises(OutputError, match="beyond what any machine reaches"):
        [*formats.parse([], source="x", suite=name)]
