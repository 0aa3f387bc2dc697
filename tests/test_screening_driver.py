"""The driver: launches at once, each with a limit, and what they prove."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clustergate.benchmarks.budget import Budget
from clustergate.benchmarks.hpl.sizing import HplInput, render_hpl_dat
from clustergate.benchmarks.imb.command import SIZES_FILE, sizes_file
from clustergate.core.files.stored import encode
from clustergate.core.model import ClustergateError, Launch, OutputError
from clustergate.launch.plan import Contender, Launched, PlanError, read_log, write_plan
from clustergate.launch.proof.ranks import ProofExpectation
from clustergate.machine.fingerprint import parse_state
from clustergate.machine.node import core_cpus
from clustergate.studies.screen.driver import Launcher, carry_out, lead_s, main, rows_of
from clustergate.studies.screen.folder import read_screening
from clustergate.studies.screen.plan import EACH, Log, Plan, log_of
from tests.conftest import PATIENCE_S

HOST = os.uname().nodename
HPL = HplInput((1000,), (1,), (2,), (64,))
PEAKS = Path(__file__).parent / "data" / "peaks" / "node_peaks.txt"


def plan_of(contenders: list[Contender], **what: Any) -> Plan:
    settled: dict[str, Any] = {
        "nonce": "abc",
        "system": "test",
        "nodes": [HOST],
        "ranks_per_node": 2,
        "hostfile_dialect": "hydra",
        "seed": 1,
        "budget": Budget(seconds=PATIENCE_S),
    }
    return Plan(**{**settled, "contenders": contenders, **what})


def program(name: str, words: list[str], ranks: int = 0, **what: Any) -> Contender:
    expected = ProofExpectation("", ranks, "/lib", "MPICH") if ranks else None
    settled: dict[str, Any] = {"proves": bool(ranks), "on": EACH, "seconds": PATIENCE_S}
    return Contender(name, [], words, "/proof.so", expected=expected, **{**settled, **what})


def script(text: str, **what: Any) -> Contender:
    return program("peaks", ["sh", "-c", text], **what)


def log_in(folder: Path) -> Log:
    return log_of(read_log(folder))


def outcome(tmp_path: Path, plan: Plan) -> Any:
    carry_out(plan, tmp_path)
    log = log_in(tmp_path)
    assert log.ended
    return log.results[0]


def test_figures_count_from_the_host_that_was_asked(tmp_path: Path) -> None:
    found = outcome(tmp_path, plan_of([script(f"uname -n; cat {PEAKS}")]))
    assert found.failed == ""
    assert set(found.values) == {"fma_peak_gflops", "triad_gb_s"}


def test_34_a_node_whose_clock_runs_slow_has_no_peaks(tmp_path: Path) -> None:
    """At a seventh of its speed, everything on the node seems seven times as fast."""
    faster = [
        json.dumps({**line, "gflops": 7 * line["gflops"]} if "gflops" in line else line)
        for line in map(json.loads, PEAKS.read_text().splitlines())
    ]
    said = tmp_path / "peaks.txt"
    said.write_text("\n".join(faster) + "\n")
    found = outcome(tmp_path, plan_of([script(f"uname -n; cat {said}")]))
    assert found.values == {}
    assert "so the timer runs slow" in found.failed


def test_figures_of_another_host_do_not_count(tmp_path: Path) -> None:
    found = outcome(tmp_path, plan_of([script(f"echo elsewhere; cat {PEAKS}")]))
    assert found.values == {}
    assert found.failed == f"it ran on elsewhere, not on {HOST}"


@pytest.mark.parametrize(
    ("order", "said"),
    [
        (script("echo no such device >&2; exit 3"), "exit status 3; its last words: no such devic"),
        (
            script(f"echo ssh: connect to host {HOST}: refused >&2; echo try again >&2; exit 255"),
            f"it said: ssh: connect to host {HOST}: refused",
        ),
        (script("sleep infinity", seconds=0.5), "it took longer than 0.5 s"),
        (script("uname -n; echo nonsense"), "not a line as node_peaks"),
        (script("true"), "it ran on an unknown host"),
        (program("peaks", ["/does/not/exist"]), "cannot be started: No such file"),
        (
            program("hpl", ["true"], 2, inputs={"HPL.dat": render_hpl_dat(HPL)}),
            "no process left a record of this run",
        ),
    ],
)
def test_what_goes_wrong_is_a_result(tmp_path: Path, order: Contender, said: str) -> None:
    found = outcome(tmp_path, plan_of([order]))
    assert found.values == {}
    assert said in found.failed


def test_another_problem_or_call_than_the_orders_is_refused(data: Path) -> None:
    hpl = (data / "hpl" / "hpl-2.3-mpich-grids.txt").read_text().splitlines(keepends=True)
    problem = HplInput((1000, 2000), (1, 2), (2, 1), (64, 128), pfacts=(2,), rfacts=(1,))
    order = program("hpl", ["xhpl"], 2, inputs={"HPL.dat": render_hpl_dat(problem)})
    assert len(rows_of(order, hpl)) == 8
    problem = replace(problem, n_values=(3000,))
    order = replace(order, inputs={"HPL.dat": render_hpl_dat(problem)})
    with pytest.raises(OutputError, match="N = 1000 2000, but N = 3000 was requested"):
        rows_of(order, hpl)

    imb = (data / "imb" / "impi-2021.11-mpi1-default.txt").read_text().splitlines(keepends=True)
    sizes = {SIZES_FILE: sizes_file((0, *(1 << k for k in range(23))))}
    words = ["IMB-MPI1", "-time", "0.3", "-iter", "30,20"]
    order = program("pingpong", words, 4, inputs=sizes)
    assert rows_of(order, imb)
    with pytest.raises(OutputError, match="options '30,20', but '300,20' was requested"):
        rows_of(replace(order, program=[*words[:-1], "300,20"]), imb)
    with pytest.raises(OutputError, match="but 0, 1, 2, 4 was requested"):
        rows_of(replace(order, inputs={SIZES_FILE: sizes_file((0, 1, 2, 4))}), imb)


def test_a_hostfile_of_just_these_nodes_is_written_for_each_launch(tmp_path: Path) -> None:
    order = script("cat {hostfile} >&2; echo {nodes} >&2; exit 1")
    outcome(tmp_path, plan_of([order], hostfile_dialect="openmpi"))
    (folder,) = tmp_path.glob("launch-*")
    assert (folder / "stderr").read_text() == f"{HOST} slots=2\n{HOST}\n"


def test_a_name_that_is_none_is_never_launched(tmp_path: Path) -> None:
    found = outcome(tmp_path, plan_of([script("echo {nodes}")], nodes=["a;touch b"]))
    assert "is not a node name" in found.failed
    assert not list(tmp_path.glob("launch-*/stdout"))


def test_allocation_without_excluded_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[1-4]")
    excluded = {"n3": "since 2026-11-21: fan"}
    plan = plan_of([script("exit 1")], nodes=[], scheduled=True, foreseen=6, excluded=excluded)
    write_plan(tmp_path, plan)
    carry_out(plan, tmp_path)
    assert log_in(tmp_path).names == ("n1", "n2", "n4")
    _, _, found = read_screening(tmp_path)
    assert any(d.startswith("the job was given only 3 of 6 nodes") for d in found.doubts)
    assert found.absent == 3


def test_hostfile_nodes_of_another_job_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[1-2]")
    names = ["n2", "n3", "n4"]
    plan = plan_of([script("exit 1")], nodes=names, scheduled=True, foreseen=3)
    write_plan(tmp_path, plan)
    carry_out(plan, tmp_path)
    assert log_in(tmp_path).names == ("n2",)
    _, _, found = read_screening(tmp_path)
    assert any("1 of 3 nodes (not n3, n4)" in d for d in found.doubts)
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(ClustergateError, match=r"none of the nodes .* \(n\[1-2\]\)"):
        carry_out(plan_of([], nodes=["n9"], scheduled=True), other)


def test_a_job_of_no_known_scheduler_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("SLURM_JOB_NODELIST", raising=False)
    write_plan(tmp_path, plan_of([], nodes=[], scheduled=True))
    handlers = {n: signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    try:
        assert main([str(tmp_path / "plan.json")]) == 2
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    assert "no scheduler names the nodes of this job" in capsys.readouterr().err


def test_what_was_done_is_not_done_again(tmp_path: Path) -> None:
    plan = plan_of([script("echo x >> ../count; exit 1")], most_further=0)
    carry_out(plan, tmp_path)
    carry_out(plan, tmp_path)
    assert (tmp_path / "count").read_text() == "x\n"


def test_each_launch_is_noted_as_those_of_a_check_are(tmp_path: Path) -> None:
    alone = [script(f"echo {n} >> ../count; exit {n}") for n in (3, 4, 5)]
    carry_out(plan_of(alone[:2]), tmp_path)
    # A job that was killed while it noted the second is taken up again, and makes it again.
    path = tmp_path / "launches.jsonl"
    path.write_text(path.read_text().partition('"turn": 1, "status"')[0])
    carry_out(plan_of(alone), tmp_path)
    noted = [(made.contender, made.turn, made.status) for made in read_log(tmp_path).launches]
    assert noted == [("peaks", 0, 3), ("peaks", 1, 4), ("peaks", 2, 5)]
    assert (tmp_path / "count").read_text().split() == ["3", "4", "4", "5"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"values": {"fma_peak_gflops": math.nan}},
            "launches.jsonl:2: .*fma_peak_gflops: nan is no number",
        ),
        ({"values": {"fma_peak_gflops": -1.0}}, "launches.jsonl:2: .*fma_peak_gflops is -1.0"),
        ({"values": {"fma_peak_gflops": "fast"}}, "launches.jsonl:2: "),
        ({"nodes": ["n1", "n1"]}, "launches.jsonl:2: .*it names n1 twice"),
        ({"nodes": ["n1", "n2"]}, "no screening launches peaks on n1, n2"),
        ({"contender": "stream"}, "no screening launches stream on n1"),
    ],
)
def test_a_log_of_what_cannot_be_is_refused_by_its_line(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    write_plan(tmp_path, plan_of([program("peaks", ["true"])], nodes=["n1", "n2"]))
    made = Launched("peaks", 0, 0, Launch(0, 1.0, 1.0), nodes=("n1",), values={"triad_gb_s": 9.0})
    entries: list[dict[str, Any]] = [{"names": ["n1", "n2"]}, encode(made)]
    log = tmp_path / "launches.jsonl"
    log.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    assert read_screening(tmp_path)[1].results[0].values == {"triad_gb_s": 9.0}
    log.write_text("\n".join(json.dumps(e) for e in (entries[0], entries[1] | change)) + "\n")
    with pytest.raises(PlanError, match=said):
        read_screening(tmp_path)


@pytest.mark.parametrize("days", [0.9, 8.0])
def test_a_screening_resumed_days_later_is_in_doubt(tmp_path: Path, days: float) -> None:
    """Nodes that were sound a week ago passed with those of today."""
    write_plan(tmp_path, plan_of([program("peaks", ["true"])], nodes=["n1", "n2"]))
    entries: list[dict[str, Any]] = [{"names": ["n1", "n2"]}]
    for order, node in enumerate(("n1", "n2")):
        launch = Launch(order, 1.8e9 + 86400.0 * days * order, 1.0)
        made = Launched("peaks", 0, 0, launch, nodes=(node,), values={"triad_gb_s": 9.0})
        entries.append(encode(made))
    entries.append({"ended": True})
    (tmp_path / "launches.jsonl").write_text("".join(json.dumps(e) + "\n" for e in entries))
    _, _, found = read_screening(tmp_path)
    assert any("its launches span 8 days" in one for one in found.doubts) is (days > 1)


def test_a_resumed_job_accuses_no_node_that_it_was_not_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node that was drained since failed every launch, and was to be drained."""
    plan = plan_of([script("exit 1")], nodes=[], scheduled=True, foreseen=3, most_further=0)
    (tmp_path / "launches.jsonl").write_text(json.dumps({"names": ["n1", "n2", "n3"]}) + "\n")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[1-2]")
    carry_out(plan, tmp_path)
    log = log_in(tmp_path)
    assert (log.results, log.ended) == ((), False)
    assert "the job was not given n3, with which it began; start a new" in log.notes[0]
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[1-4]")
    carry_out(plan, tmp_path)
    assert {one.nodes for one in log_in(tmp_path).results} == {("n1",), ("n2",), ("n3",)}


def test_killed_driver_ends_its_launches_and_keeps_notes(tmp_path: Path) -> None:
    orders = [script("exit 1"), script("echo $$ > ../pid; exec sleep infinity")]
    write_plan(tmp_path, plan_of(orders))
    process = subprocess.Popen(
        [sys.executable, "-I", "-m", "clustergate.studies.screen", str(tmp_path / "plan.json")],
        stdout=subprocess.DEVNULL,
    )
    while not ((tmp_path / "pid").is_file() and (tmp_path / "pid").read_text()):
        assert process.poll() is None
        time.sleep(0.05)
    process.terminate()
    assert process.wait() == 128 + signal.SIGTERM
    sleeper = Path("/proc") / (tmp_path / "pid").read_text().strip()
    assert not sleeper.exists()
    log = log_in(tmp_path)
    assert (log.names, [made.failed[:18] for made in log.results]) == (
        (HOST,),
        ["it ended with exit"],
    )
    assert not log.ended


def test_launches_of_a_round_run_at_once(tmp_path: Path) -> None:
    # Each waits for the file of the other.
    text = "touch ../$(basename {nodes}); while ! [ -e ../n1 -a -e ../n2 ]; do sleep 0.05; done"
    carry_out(plan_of([script(text)], nodes=["n1", "n2"]), tmp_path)
    results = log_in(tmp_path).results
    assert {r.failed for r in results} == {"it ran on an unknown host, not on n1",
                                           "it ran on an unknown host, not on n2"}  # fmt: skip


@pytest.mark.mpi
@pytest.mark.parametrize("stack", ["intel-mpi", "mpich", "openmpi"])
def test_two_cores_are_a_pair_under_every_stack(stacks: Path, tmp_path: Path, stack: str) -> None:
    cpus = core_cpus()
    if len(cpus) < 2:
        pytest.skip("one core is no pair")
    from clustergate.launch.launchers import exports
    from clustergate.stacks.manifest import read_manifest
    from clustergate.studies.screen import orders
    from clustergate.studies.screen.campaign import Task

    manifest = read_manifest(stacks, stack)
    missing = manifest.program("IMB-MPI1").unavailable
    if missing:
        pytest.skip(f"{stack} has no IMB here: {missing}")
    order = orders.pair_contender(manifest, exports(manifest, 1), cores=True, bind=True)
    plan = plan_of([order], what="core")
    names = tuple(f"core{cpu}" for cpu in cpus[:2])
    found = Launcher(plan, tmp_path).launch(Task(order, names, 0, 0))
    assert found.failed == ""
    assert found.values["pingpong_latency_us"] > 0
    assert found.values["pingpong_bandwidth_mb_s"] > 0


def test_the_log_says_what_the_node_and_its_cores_went_through(tmp_path: Path) -> None:
    distance = ["echo", '{"round_trip_ns": {"best": 48.5}}']
    # The kernel counts processor time in hundredths of a second: a shorter round has none.
    alone = script(f"uname -n; cat {PEAKS}; sleep 0.1")
    carry_out(plan_of([alone], what="core", core_distance=distance), tmp_path)
    log = read_log(tmp_path)
    assert set(log.machine) == {"boot_id", "processor", "cores", "governor"}
    assert log.machine["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert [one.turn for one in log.rounds][:1] == [0]
    assert log.rounds[0].distances_ns == [48.5, 48.5]
    assert log.rounds[0].node["elapsed_s"]
    assert [made.turn for made in log.launches][:1] == [0]


def test_node_state_told_once_per_node(tmp_path: Path) -> None:
    from clustergate.studies.screen.orders import _ON_HOST

    peaks = replace(script(""), program=["sh", "-c", _ON_HOST, "cat", str(PEAKS)])
    carry_out(plan_of([peaks], what="core"), tmp_path)
    assert [made.failed for made in read_log(tmp_path).launches] == [""] * len(core_cpus())
    (said,) = (tmp_path / "nodes").iterdir()
    assert said.name == os.uname().nodename
    assert parse_state(said.read_text())["kernel"]["release"] == os.uname().release


def test_nodes_begin_to_measure_together(tmp_path: Path) -> None:
    # The job's first node needs no ssh. When it began before the others, it was the slowest in
    # each of 38 rounds, while they were logged in to.
    from clustergate.studies.screen.campaign import Task
    from clustergate.studies.screen.orders import _ON_HOST

    began = tmp_path / "began"
    program = ["sh", "-c", _ON_HOST, "sh", "-c", f"date +%s >> {began}; cat {PEAKS}"]
    peaks = replace(script(""), program=program)
    names = [f"{HOST}.one", f"{HOST}.two"]
    launcher = Launcher(plan_of([peaks], nodes=names), tmp_path)
    (tmp_path / "nodes").mkdir()
    launcher.engine.begin_log()
    before = time.time()
    tasks = [Task(peaks, (name,), 0, number) for number, name in enumerate(names)]
    assert [result.failed for result in launcher.batch(tasks)] == ["", ""]
    # None begins before the second that both were given, which lay ahead.
    assert all(int(at) > before for at in began.read_text().split())
    # One alone has nobody to wait for.
    began.unlink()
    for result in launcher.batch([Task(peaks, (names[0],), 1, 2)]):
        assert result.failed == ""
    assert launcher._start == 0


@pytest.mark.parametrize(
    ("ready_s", "at_once", "waits"),
    [
        ([], 4, 1.0),
        ([0.2, -0.4], 4, 1.0),
        ([0.5, 3.0, 2.0], 4, 3.0),
        # The third began when another had ended.
        ([0.5, 2.0, 9.0], 2, 2.0),
        # A clock that is an hour ahead.
        ([0.5, 3600.0], 2, 5.0),
    ],
)
def test_nodes_wait_as_long_as_the_last_one_took(
    ready_s: list[float], at_once: int, waits: float
) -> None:
    assert lead_s(ready_s, at_once) == waits


@pytest.mark.long
@pytest.mark.mpi
def test_command_screens_this_node_through_reframe(suite: Any) -> None:
    clustergate = str(Path(sys.executable).parent / "clustergate")
    words = [clustergate, "screen", "--site", "local", "--stack", "mpich", "--hpl", "0"]
    ended = subprocess.run(
        words, env=suite.environment(), cwd=suite.home, capture_output=True, text=True, check=False
    )
    assert ended.returncode in (0, 2), ended.stdout + ended.stderr
    assert f"clustergate screen: exit status {ended.returncode}: " in ended.stdout
    (where,) = suite.home.glob("results/runs/*/screening")
    log = log_in(where)
    assert log.ended
    assert log.names == tuple(f"core{cpu}" for cpu in core_cpus())
    assert (where / "screening.html").read_text().startswith("<!DOCTYPE html>")
    assert "screening of" in (where / "ticket.txt").read_text()
    # Nothing of cores is a line for Slurm or a hostfile.
    assert not (where / "scontrol.sh").exists()
