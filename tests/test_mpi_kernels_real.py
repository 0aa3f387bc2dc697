"""The suite's own MPI kernels with real MPI libraries: what they print, and that they can fail."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from clustergate.benchmarks.formats import parse
from clustergate.stacks.manifest import read_manifest

pytestmark = pytest.mark.mpi

SHORT = {
    "mpi_trials": ["--flush-bytes", "4096", "--trials", "3"],
    "host_overhead": ["--largest-bytes", "4", "--trials", "1", "--seconds", "1e-6"],
    "bidirectional_stream": ["--largest-bytes", "4", "--seconds", "1e-4"],
    "stream": ["--elements", "10000", "--trials", "3"],
}
ROWS = {"mpi_trials": 22, "host_overhead": 6, "bidirectional_stream": 3, "stream": 4}
KERNELS = "MpiTrialsCheck|HostOverheadCheck|BidirectionalStreamCheck|StreamCheck"
# An MPI library that damages an element of what it sums up or receives.
FAULTY = r"""
#include <mpi.h>
static int calls;
int MPI_Allreduce(const void *in, void *out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    int status = PMPI_Allreduce(in, out, n, type, op, comm);
    if (type == MPI_DOUBLE && n > 0 && ++calls == 2)
        *(double *)out += 1;
    return status;
}
int MPI_Sendrecv(const void *out, int n, MPI_Datatype type, int to, int tag, void *in, int in_n,
                 MPI_Datatype in_type, int from, int in_tag, MPI_Comm comm, MPI_Status *from_whom)
{
    int size, status = PMPI_Sendrecv(out, n, type, to, tag, in, in_n, in_type, from, in_tag, comm,
                                     from_whom);
    MPI_Type_size(in_type, &size);
    ((char *)in)[size - 1] ^= 0x40;
    return status;
}
"""
# An MPI library whose clock has steps that are longer than what is timed.
COARSE = "double MPI_Wtime(void) { return 0; }"


def launch(stacks, stack, program, arguments, ranks=2, preload=""):
    """Run a kernel bare; a busy machine has fewer cores than ranks, so nothing is bound."""
    manifest = read_manifest(stacks, stack)
    named = dict(manifest.environment)
    path = f"{named.pop('PATH')}:{os.environ['PATH']}"
    command = [manifest.launcher, "-n", str(ranks)]
    if stack == "openmpi":
        command += ["--allow-run-as-root", "--oversubscribe"]
    if preload:
        command += ["env", f"LD_PRELOAD={preload}"]
    return subprocess.run(
        [*command, manifest.programs[program].path, *arguments],
        env={**os.environ, **named, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def preloadable(stacks: Path, folder: Path, text: str) -> str:
    """Return a library to preload that changes what MPICH does."""
    manifest = read_manifest(stacks, "mpich")
    source, library = folder / "changed.c", folder / "libchanged.so"
    source.write_text(text)
    compiler = f"{manifest.mpi_prefix}/bin/mpicc"
    command = [compiler, "-shared", "-fPIC", "-o", str(library), str(source)]
    subprocess.run(command, check=True)
    return str(library)


@pytest.fixture
def faulty(stacks: Path, tmp_path: Path) -> str:
    """Return a library to preload that makes MPICH lose data."""
    return preloadable(stacks, tmp_path, FAULTY)


@pytest.mark.parametrize("program", SHORT)
@pytest.mark.parametrize("stack", ["intel-mpi", "mpich", "openmpi"])
def test_each_kernel_runs_with_each_library(stacks, stack, program):
    ended = launch(stacks, stack, program, SHORT[program])
    assert ended.returncode == 0, ended.stderr
    rows = list(parse(ended.stdout.splitlines(), source="output"))
    assert len(rows) == ROWS[program]
    assert {row.conditions["processes"] for row in rows} == {2}


def test_ping_pong_of_odd_counts_reaches_every_rank(stacks):
    """The ping pong reaches every rank and the results of odd counts are right."""
    tests = "ping_pong,gather,alltoall,scan"
    ended = launch(stacks, "mpich", "mpi_trials", [*SHORT["mpi_trials"], "--tests", tests], ranks=3)
    rows = list(parse(ended.stdout.splitlines(), source="output"))
    assert [r.conditions["peer"] for r in rows if r.benchmark == "ping_pong"] == [1, 2, 1, 2]
    assert {row.benchmark for row in rows} == set(tests.split(","))


def test_the_flush_is_what_was_asked_for_and_can_be_left_out(stacks):
    arguments = ["--trials", "4", "--tests", "barrier", "--flush-bytes"]
    for asked in ("800", "0"):
        ended = launch(stacks, "mpich", "mpi_trials", [*arguments, asked])
        record = json.loads(ended.stdout.splitlines()[1])
        assert record["flush_bytes"] == int(asked)
        assert record["first_flushed"] == pytest.approx(0.4 if asked != "0" else 0)


@pytest.mark.parametrize("program", SHORT)
def test_a_coarse_clock_of_the_library_does_not_matter(stacks, tmp_path, program):
    coarse = preloadable(stacks, tmp_path, COARSE)
    ended = launch(stacks, "mpich", program, SHORT[program], preload=coarse)
    rows = list(parse(ended.stdout.splitlines(), source="output"))
    assert len(rows) == ROWS[program], ended.stderr


@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        ("mpi_trials", ["--tests", "allreduce"]),
        ("mpi_trials", ["--tests", "right_shift"]),
        ("bidirectional_stream", []),
    ],
)
def test_a_library_that_loses_data_fails_the_kernel(stacks, faulty, program, arguments):
    ended = launch(stacks, "mpich", program, [*SHORT[program], *arguments], preload=faulty)
    assert ended.returncode != 0
    assert re.search(f"wrong result.*{''.join(arguments[1:])}", ended.stderr)
    assert '"measurement":"end"' not in ended.stdout


@pytest.mark.parametrize(
    ("program", "arguments", "ranks", "complaint"),
    [
        ("mpi_trials", [], 2, "--flush-bytes must say"),
        ("mpi_trials", ["--flush-bytes", "0"], 1, "at least 2 processes"),
        ("mpi_trials", ["--trials", "1"], 2, "'1'"),
        ("mpi_trials", ["--flush-bytes"], 2, "--flush-bytes needs"),
        ("host_overhead", [], 3, "there are 3"),
        ("bidirectional_stream", [], 3, "3 processes"),
        ("stream", [], 1, "--elements must say"),
        ("stream", ["--elment", "3"], 1, "'--elment'"),
    ],
)
def test_what_a_kernel_cannot_do_is_one_sentence(stacks, program, arguments, ranks, complaint):
    ended = launch(stacks, "mpich", program, arguments, ranks=ranks)
    assert ended.returncode != 0
    assert complaint in ended.stderr


@pytest.mark.long
def test_the_checks_prove_their_launches_and_keep_their_figures(suite):
    options = ["-n", KERNELS, "-p", "mpich", "-S", "launches=1", "-S", "largest_bytes=4"]
    options += ["-S", "MpiTrialsCheck.trials=3", "-S", "BidirectionalStreamCheck.seconds=0.001"]
    options += ["-S", "HostOverheadCheck.seconds=0.0001", "-S", "HostOverheadCheck.trials=1"]
    ended = suite.reframe(*options, "-r")
    assert ended.returncode == 0, ended.stdout
    kept = {record["check"]: record for record in suite.records()}
    assert {name: len(record["samples"]) for name, record in kept.items()} == {
        "MpiTrialsCheck": 44,
        "HostOverheadCheck": 24,
        "BidirectionalStreamCheck": 3,
        "StreamCheck": 8,
    }
    for record in kept.values():
        assert record["complaints"] == []
        assert record["details"]["proof"]
        assert record["command"]
    assert kept["MpiTrialsCheck"]["conditions"]["settings"] == "trials=3"


@pytest.mark.long
def test_a_kernel_that_left_something_out_does_not_pass(suite):
    suite.replace_program("mpich", "stream", '"$real" "$@" | grep -v scale')
    selection = ["--check", "StreamCheck", "--stack", "mpich"]
    ended = suite.check("-S", "launches=1", selection=selection)
    assert "STREAM with mpich" in ended.stdout
    assert "output.contradiction" in suite.codes("StreamCheck")
