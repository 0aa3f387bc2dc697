"""The whole way with real MPI: what a person sees who runs, breaks and interrupts the suite."""

import contextlib
import functools
import json
import os
import re
import signal
import sqlite3
import subprocess
from collections import Counter

import pytest

from clustergate.stacks.manifest import read_manifest
from tests.conftest import STACKS, until

pytestmark = pytest.mark.mpi
long = functools.partial(pytest.param, marks=pytest.mark.long)

SMALL = ["-S", "HplCheck.n=1000", "-S", "HpccCheck.n=500"]
SMALL += ["-S", "ImbMpi1Check.benchmarks=PingPong,Allreduce"]
# On two cores of any machine it takes longer than a test needs to stop it.
LONG_HPL = ["-S", "n=20000", "-S", "ranks=2"]


def available(suite, program):
    manifests = {name: read_manifest(suite.home, name) for name in suite.stacks}
    return [name for name, found in manifests.items() if not found.program(program).unavailable]


# A leftover never ends by itself, so that it is seen however long the machine takes.
AND_STAYS = '"$real" "$@"; exec sleep infinity'


def left_nothing(suite):
    until(lambda: not suite.processes(), suite.processes)


def verdict_line(said, stack="mpich"):
    """Return the line of a summary that says what is wrong with HPL."""
    (line,) = [x for x in said.splitlines() if f"HPL with {stack}" in x]
    assert line.startswith((" ✗ FAILED: ", " ✗ DID NOT RUN: ", " ! invalid: "))
    return line


@pytest.mark.long
def test_a_plain_reframe_call_runs_every_check_with_every_stack(suite):
    stored = suite.home / "results" / "results.db"
    variables = {"RFM_ENABLE_RESULTS_STORAGE": "1", "RFM_SQLITE_DB_FILE": str(stored)}
    ended = suite.reframe(*SMALL, "-t", "^benchmark$", "-r", **variables)
    assert ended.returncode == 0, ended.stdout
    kept = suite.records()
    ran = Counter((record["check"], record["stack"]) for record in kept if record["samples"])
    assert ran == {
        (name, stack): 1
        for name, program in (
            ("HplCheck", "xhpl"),
            ("HpccCheck", "hpcc"),
            ("ImbMpi1Check", "IMB-MPI1"),
        )
        for stack in available(suite, program)
    }
    for record in kept:
        assert record["complaints"] == []
        if record["samples"]:
            assert record["conditions"]["placement"] == "packed"
            assert record["conditions"]["bound"] is True
        else:
            assert record["unavailable"]
    pingpong = [
        sample
        for record in kept
        for sample in record["samples"]
        if sample["benchmark"] == "PingPong" and sample["metric"] == "latency_us"
    ]
    assert {sample["conditions"]["bytes"] for sample in pingpong} >= {0, 8, 4194304}
    with sqlite3.connect(stored) as storage:
        (sessions,) = storage.execute("select count(*) from sessions").fetchone()
    assert sessions == 1


@pytest.mark.long
def test_check_fails_when_cases_that_should_run_did_not(suite):
    ended = suite.check("-n", "HplCheck", "-S", "n=1000")
    assert ended.returncode == 2
    assert re.search(r" ✗ DID NOT RUN: .* with [a-z-]+.*: ", ended.stdout)
    assert "case.missing" in suite.codes("HpccCheck")
    assert ended.stdout.splitlines()[-1].startswith("clustergate check: exit status 2")
    assert f"{len(suite.stacks)} of {3 * len(suite.stacks)} benchmarks ran" in ended.stdout


@pytest.mark.long
def test_a_named_check_of_a_named_stack_is_the_whole_run(suite, tmp_path):
    command = suite.check_command("-S", "benchmarks=PingPong")
    command[2:2] = ["--stack=mpich", "--check=ImbMpi1Check", f"--copy-to={tmp_path / 'artifacts'}"]
    ended = subprocess.run(command, env=suite.environment(), capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "1 of 1 benchmarks ran" in ended.stdout
    assert {(r["check"], r["stack"]) for r in suite.records()} == {("ImbMpi1Check", "mpich")}
    (copied,) = (tmp_path / "artifacts").glob("*/report.html")
    assert (copied.parent / "junit.xml").is_file()
    assert list((copied.parent / "cases").glob("*.json"))


def test_a_stack_that_the_site_has_not_is_named(suite):
    command = suite.check_command()
    ended = subprocess.run(
        [*command[:2], "--stack=mpitch"], env=suite.environment(), capture_output=True, text=True
    )
    assert ended.returncode == 2
    told = ended.stderr.splitlines()[-1]
    assert "'mpitch'" in told
    assert all(name in told for name in STACKS)


def test_a_selection_that_matches_nothing_is_no_pass(suite):
    ended = suite.check("-n", "Typo")
    assert ended.returncode == 2
    assert "missing" in ended.stdout


@pytest.mark.long
def test_a_hang_ends_at_its_time_limit_and_leaves_no_process(suite):
    suite.replace_program("mpich", "xhpl", AND_STAYS)
    ended = suite.check("-n", "HplCheck", "-p", "mpich", *LONG_HPL, "-S", "time_limit=3s")
    assert ended.returncode == 2
    assert "timed out" in verdict_line(ended.stdout)
    left_nothing(suite)


@pytest.mark.long
def test_a_killed_rank_is_named(suite):
    running = subprocess.Popen(
        suite.check_command("-n", "HplCheck", "-p", "mpich", *LONG_HPL),
        env=suite.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )

    def ranks():
        return [json.loads(path.read_text()) for path in suite.home.rglob("proof/*/rank-*.json")]

    until(lambda: len(ranks()) == 2)
    os.kill(ranks()[1]["pid"], signal.SIGKILL)
    output, _ = running.communicate()
    assert running.returncode == 2
    assert verdict_line(output)
    assert "proof.unfinished" in suite.codes()


@pytest.mark.long
def test_an_interrupt_is_one_sentence_and_leaves_earlier_results(suite):
    assert suite.check("-n", "HplCheck", "-S", "n=1000").returncode == 2
    before = suite.records()
    suite.replace_program("mpich", "xhpl", AND_STAYS)
    running = subprocess.Popen(
        suite.check_command("-n", "HplCheck", "-p", "mpich", *LONG_HPL),
        env=suite.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A test run in the background of a script has inherited that interrupts are ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    until(lambda: any("xhpl" in command for command in suite.processes()))
    os.killpg(running.pid, signal.SIGINT)
    _, complaint = running.communicate()
    assert running.returncode == 130
    assert complaint.splitlines()[-1].startswith("clustergate: interrupted; ")
    assert "Traceback" not in complaint
    assert [r for r in suite.records() if r in before] == before
    left_nothing(suite)


def as_in_the_background():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Under `nohup` the tests, and all that they start, would ignore it.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.mark.parametrize("number", [signal.SIGTERM, *map(long, (signal.SIGHUP, signal.SIGKILL))])
def test_all_of_a_run_ends_with_it(suite, number):
    """As `timeout` and CI end it: the signal comes to one process, and interrupts are ignored."""
    suite.replace_program("mpich", "xhpl", AND_STAYS)
    running = subprocess.Popen(
        suite.check_command("-n", "HplCheck", "-p", "mpich", *LONG_HPL),
        env=suite.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=as_in_the_background,
    )
    until(lambda: any("xhpl" in command for command in suite.processes()))
    running.send_signal(number)
    _, complaint = running.communicate()
    if number != signal.SIGKILL:
        assert running.returncode == 128 + number
        last = f"clustergate: interrupted by {number.name}; "
        assert complaint.splitlines()[-1].startswith(last)
        assert "check --resume" in complaint
    left_nothing(suite)


@pytest.mark.long
def test_strict_run_beside_programs_on_all_cores_fails(suite, tmp_path):
    hog = tmp_path / "hog"
    hog.write_text("#!/bin/bash\nwhile :; do :; done\n")
    hog.chmod(0o755)
    with contextlib.ExitStack() as running:
        # So many that they are among the first whatever else runs.
        for _ in range(8 * len(os.sched_getaffinity(0))):
            busy = running.enter_context(subprocess.Popen([str(hog)]))
            running.callback(busy.kill)
        one = ("--check", "HplCheck", "--stack", "mpich")
        lenient = suite.check("-S", "n=4000", selection=one)
        ended = suite.check("-S", "n=4000", selection=("--strict", *one))
    assert (lenient.returncode, ended.returncode) == (0, 2), ended.stdout
    assert "no result of a benchmark could be judged" in ended.stdout.splitlines()[-1]
    told = re.search(r"TOO BUSY TO JUDGE. Other programs used .*: (.*)", ended.stdout)
    assert told, ended.stdout
    assert "hog of " in told[1]


@pytest.mark.long
def test_two_runs_in_one_home_leave_each_other_alone(suite):
    met, runs = suite.home / "met", f"{suite.home}/stage/*/local/node/openmpi"
    # Each waits for the other's launch.
    both = f"[ $(ls -d {runs}/*/launch-* | sed 's|/local/node/.*||' | sort -u | wc -l) = 2 ]"
    meet = f"until [ -e {met} ]; do {both} && touch {met}; sleep 0.1; done"
    suite.replace_program("openmpi", "xhpl", f'{meet}; exec "$real"')
    first = subprocess.Popen(
        suite.check_command("-n", "HplCheck", "-p", "openmpi", "-S", "n=1000"),
        env=suite.environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    until(lambda: list(suite.home.glob("stage/*/local/node/openmpi/*/launch-*")))
    second = suite.check("-n", "HplCheck", "-p", "mpich|openmpi", "-S", "n=1000")
    output, _ = first.communicate()
    for told, ran in (output, 1), (second.stdout, 2):
        assert f"   {ran} of 9 benchmarks ran in " in told
        assert not re.search("HPL with openmpi[^:]*: failed", told), told
    assert " running in this home" in second.stdout


@pytest.mark.long
def test_a_killed_run_is_resumed_and_nothing_is_lost(suite):
    goes_on = suite.home / "goes-on"
    waits = f'[ -e "{goes_on}" ] || sleep infinity; exec "$real"'
    suite.replace_program("openmpi", "xhpl", waits)
    running = subprocess.Popen(
        suite.check_command("-S", "n=1000", selection=["--check", "HplCheck"]),
        env=suite.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def stacks_begun():
        begun = suite.home.glob("stage/*/local/node/*/HplCheck/launch-*")
        return {path.parts[-3] for path in begun}

    until(lambda: "openmpi" in stacks_begun())
    running.kill()
    running.wait()
    before = {record["stack"]: record for record in suite.records()}
    assert before
    assert "openmpi" not in before
    goes_on.touch()
    (run,) = suite.run_folders()
    ended = suite.resume(run.name)
    assert f"resumed: {len(before)} cases " in ended.stdout
    after = {record["stack"]: record for record in suite.records()}
    assert set(after) == set(suite.stacks)
    assert {stack: after[stack] for stack in before} == before
    assert ended.returncode == 0, ended.stdout
    assert len(suite.run_folders()) == 1
    left_nothing(suite)


@pytest.mark.long
def test_an_inherited_variable_is_removed_and_named(suite):
    ended = suite.check("-n", "HplCheck", "-S", "n=1000", OPENBLAS_CORETYPE="Haswell")
    assert "OPENBLAS_CORETYPE=Haswell was set in the shell" in ended.stdout
    assert suite.records()[0]["removed_environment"]["OPENBLAS_CORETYPE"] == "Haswell"


@pytest.mark.long
def test_a_credential_of_the_shell_is_written_nowhere(suite):
    """Not into a record, a report, or what lies in the job's folder, under whatever name."""
    secret = "eyJhbGciOiJIUzI1NiJ9-c2VjcmV0"
    names = ("SLURM_JWT", "I_MPI_AUTH_TOKEN", "OMP_PLACES", "LD_AUDIT_TOKEN", "CI_JOB_TOKEN")
    ended = suite.check(
        *("-n", "HplCheck", "-p", "mpich", "-S", "n=1000", "--keep-stage-files"),
        **dict.fromkeys(names, secret),
    )
    assert "SLURM_JWT was set in the shell" in ended.stdout
    assert secret not in ended.stdout + ended.stderr
    files = [path for path in suite.home.rglob("*") if path.is_file() and not path.is_symlink()]
    assert any(path.name == "removed-environment" for path in files)
    assert any(path.name.startswith("rank-") for path in files)
    assert [path for path in files if secret.encode() in path.read_bytes()] == []


@pytest.mark.long
def test_stack_not_set_up_told_and_others_measured(suite):
    (prefix,) = (suite.home / "prefixes").glob("openmpi-*")
    whole = prefix.readlink()
    prefix.unlink()
    options = ("-n", "^HplCheck", "-S", "n=500", "-S", "launches=1")
    ended = suite.check(*options, selection=("--check", "HplCheck"), PIP_NO_INDEX="1")
    assert ended.returncode == 2
    why = suite.facts("stack.not-provided", stack="openmpi")["why"]
    assert str(why) in ended.stderr
    assert verdict_line(ended.stdout, "openmpi")
    # Its manifest of an earlier set-up is there, and what that names is not measured.
    assert {record["stack"] for record in suite.records()} == {"mpich", "intel-mpi"}
    assert "2 of 3 benchmarks ran" in ended.stdout
    prefix.symlink_to(whole)
    (run,) = suite.run_folders()
    resumed = suite.resume(run.name)
    assert resumed.returncode == 0, resumed.stdout
    assert "3 of 3 benchmarks ran" in resumed.stdout


@pytest.mark.long
def test_a_space_in_the_path_disturbs_nothing(tmp_path, suite_in):
    home = tmp_path / "a spacé"
    home.mkdir()
    suite = suite_in(home)
    checks = ("--check", "HplCheck", "--check", "HpccCheck")
    ended = suite.check("-S", "n=500", "-S", "launches=1", selection=checks)
    assert ended.returncode == 0, ended.stdout
    assert "6 of 6 benchmarks ran" in ended.stdout
