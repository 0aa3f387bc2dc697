"""The engine: one launch, with small shell scripts in the place of MPI programs."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from clustergate.core.paths import checkout
from clustergate.launch.ending import exit_status
from clustergate.launch.engine import Engine, LaunchError
from clustergate.launch.plan import Contender, launch_folder, read_log
from clustergate.launch.watchdog import Patience


def shell(script: str, **further) -> Contender:
    return Contender("a", [], ["sh", "-c", script], "", **further)


def said(job: Path, order: int = 0) -> str:
    return (launch_folder(job, order) / "stdout").read_text()


@pytest.fixture
def handlers():
    """Give the signals back that a driver takes."""
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_signal_while_a_launch_starts_leaves_no_process(tmp_path, monkeypatch, handlers):
    started = []

    class Interrupted(subprocess.Popen[bytes]):
        def __init__(self, *arguments, **further):
            super().__init__(*arguments, **further)
            started.append(self.pid)
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    one = Engine(tmp_path, "word")
    assert exit_status(lambda: one.launch(shell("exec sleep infinity"), 0).status) == 143
    with pytest.raises(ProcessLookupError):
        os.kill(started[0], 0)


def test_a_launch_takes_no_longer_than_it_may(tmp_path):
    with pytest.raises(LaunchError, match=r"it took longer than 0\.5 s"):
        Engine(tmp_path, "word").launch(shell("exec sleep infinity", seconds=0.5), 0)


def test_launch_too_long_told_where_its_ranks_wait(tmp_path):
    told = "1 1.0 n1\\n0 1 7 0 1 MPI_Recv S 0.0\\n1\\n"
    script = f'printf "{told}" >"$CLUSTERGATE_PROOF_DIR/progress-n1-1"; exec sleep infinity'
    watched = shell(script, seconds=4.0, patience=Patience(9.0, 60.0, ranks=2))
    where = "4 s: rank 0 on n1 waits in MPI_Recv, 1 of 2 ranks told nothing"
    with pytest.raises(LaunchError, match=where):
        Engine(tmp_path, "word").launch(watched, 0)


def test_a_launcher_that_waits_for_a_node_is_not_asked_to_launch(tmp_path, monkeypatch):
    """As Hydra does in an allocation of Slurm for a node that lacks its proxy."""
    monkeypatch.setattr("clustergate.launch.engine._SAYING_S", 0.5)
    one = Engine(tmp_path, "word")
    waits = ["sh", "-c", f"echo {{}} >{tmp_path}/nodes/n1; exec sleep infinity"]
    with pytest.raises(
        LaunchError, match=r"1 of 2 nodes started no process .*; processes started on n1; see nodes"
    ):
        one.note_nodes(waits, {}, 2)
    # Who only ends late has told all.
    (tmp_path / "nodes.out").unlink()
    (tmp_path / "nodes.err").unlink()
    one.note_nodes(waits, {}, 1)


def test_what_is_no_mpi_program_is_started_as_it_is(tmp_path, monkeypatch):
    monkeypatch.delenv("CLUSTERGATE_PROOF_NONCE", raising=False)
    one = Engine(tmp_path, "word")
    one.launch(shell('echo "$CLUSTERGATE_PROOF_NONCE"'), 0)
    one.launch(shell('echo "$CLUSTERGATE_PROOF_NONCE"', proves=False), 1)
    assert (said(tmp_path, 0), said(tmp_path, 1)) == ("word-0\n", "\n")


@pytest.fixture
def records(data, tmp_path):
    """Return the records of a rank whose MPI_Wtime was right, and of one whose was slow."""
    record = json.loads(next((data / "proof" / "mpich-imb").glob("rank-*.json")).read_text())
    names = ("wtime_s", "monotonic_s", "time_of_day_s", "kernel_time_of_day_s")
    for name, speed in (("right", 1.0), ("slow", 0.9845)):
        for moment, raw_s in (("at_init", 100.0), ("at_finalize", 130.0)):
            clocks = {"raw_s": raw_s, "apart_s": 1e-6, **dict.fromkeys(names, raw_s)}
            record[moment]["clocks"] = {**clocks, "wtime_s": raw_s * speed}
        (tmp_path / f"{name}.json").write_text(json.dumps(record))
    return tmp_path


@pytest.mark.parametrize(("kinds", "launches"), [("slow right", 2), ("slow slow", 2), ("right", 1)])
def test_launch_with_wrong_mpi_timer_repeated_once(records, kinds, launches):
    job = records / "job"
    job.mkdir()
    one = Engine(job, "word")
    one.begin_log()
    lines = '[ "$1" ] || exit 1; echo "$1"; cp ' + f'"{records}/$1.json" "$CLUSTERGATE_PROOF_DIR"'
    script = f"""
        set -- {kinds}
        made=$(cat "{records}/made" 2>/dev/null | wc -l)
        echo >> "{records}/made"
        shift "$made"
        {lines}/rank-0.json
    """
    made = one.launch(shell(script), 0)
    assert (records / "made").read_text().count("\n") == launches
    assert said(job) == kinds.split()[-1] + "\n"
    log = read_log(job)
    assert [one.launch.order for one in log.launches] == [0]
    assert len(log.notes) == launches - 1
    assert all("a launch was made again, since MPI_Wtime of rank" in note for note in log.notes)
    # What was thrown away took its time, too.
    assert (made.waited_s > 0) == (launches == 2)


def test_launches_inherit_the_environment_that_was_given(tmp_path, monkeypatch):
    monkeypatch.setenv("UCX_TLS", "of this process")
    one = Engine(tmp_path, "word", environ={"PATH": os.environ["PATH"], "GIVEN": "1"})
    one.launch(shell('echo "$GIVEN$UCX_TLS$DECLARED"', environment={"DECLARED": "2"}), 0)
    assert said(tmp_path) == "12\n"


def test_nothing_is_started_after_all_was_ended(tmp_path):
    one = Engine(tmp_path, "word")
    one.end_all()
    with pytest.raises(LaunchError, match="was not started, since"):
        one.launch(shell("true"), 0)


def test_only_the_engine_starts_ranks():
    sources = {
        str(path.relative_to(checkout())): path.read_text()
        for room in ("clustergate", "reframe_checks", "evaluations", "tools/bench")
        for path in (checkout() / room).rglob("*.py")
    }
    proving = {name for name, text in sources.items() if "CLUSTERGATE_PROOF_NONCE=" in text}
    # The bench of the suite's own cost starts them by hand, as the measure of what it costs.
    assert proving == {"clustergate/launch/plan.py", "tools/bench/harness.py"}
    rooms = tuple(f"clustergate/{room}/" for room in ("studies", "launch"))
    starting = {n for n, text in sources.items() if n.startswith(rooms) and "Popen(" in text}
    assert starting == {"clustergate/launch/engine.py"}
