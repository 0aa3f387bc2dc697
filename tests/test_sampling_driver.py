"""The driver with small shell scripts in the place of MPI programs."""

import dataclasses
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from clustergate.benchmarks.budget import Budget
from clustergate.core.model import ClustergateError, Row
from clustergate.launch import engine
from clustergate.launch.allocation import allocated_hosts
from clustergate.launch.driver import main
from clustergate.launch.node_measurements import NodeMeasurements
from clustergate.launch.plan import (
    Aside,
    Contender,
    Plan,
    launch_folder,
    proof_folder,
    read_log,
    write_plan,
)
from clustergate.machine import configuration
from clustergate.machine.node import END
from tests.conftest import PATIENCE_S


def shell(script: str, name: str = "a", **further) -> Contender:
    return Contender(name, [], ["sh", "-c", script], "", **further)


def plan_of(*contenders: Contender, launches: int = 2, **further) -> Plan:
    budget = Budget(launches, launches)
    return Plan("word", contenders, **{"budget": budget, "seed": 1, **further})


@pytest.fixture
def carry_out(tmp_path, monkeypatch):
    """Carry out a plan in a folder of its own and return the exit status."""
    monkeypatch.setattr(signal, "signal", lambda number, handler: None)

    def carry_out(plan: Plan) -> int:
        write_plan(tmp_path, plan)
        return main([str(tmp_path / "plan.json")])

    return carry_out


def output(job: Path, order: int) -> str:
    return (launch_folder(job, order) / "stdout").read_text()


def test_each_launch_has_folders_and_a_nonce_of_its_own(carry_out, tmp_path):
    script = 'cat input; pwd; echo "$CLUSTERGATE_PROOF_DIR $CLUSTERGATE_PROOF_NONCE"; ls; echo x>y'
    # The kernel's counters go in ticks: a launch of no time has no share of anything.
    script += "; sleep 0.1"
    assert carry_out(plan_of(shell(script, inputs={"input": "given\n"}), launches=3)) == 0
    assert [output(tmp_path, order) for order in range(3)] == [
        f"given\n{launch_folder(tmp_path, k)}\n{proof_folder(tmp_path, k)} word-{k}\n"
        "input\nstderr\nstdout\n"
        for k in range(3)
    ]
    launches = [made.launch for made in read_log(tmp_path).launches]
    assert [launch.order for launch in launches] == [0, 1, 2]
    assert launches[0].started <= launches[1].started <= launches[2].started
    assert "steal_percent" in launches[0].node


def test_the_program_finds_what_its_stack_exports_in_front(carry_out, tmp_path, monkeypatch):
    monkeypatch.setenv("LD_LIBRARY_PATH", "/behind")
    monkeypatch.delenv("UCX_TLS", raising=False)
    given = {"LD_LIBRARY_PATH": "/in-front", "UCX_TLS": "posix"}
    assert carry_out(plan_of(shell('echo "$LD_LIBRARY_PATH $UCX_TLS"', environment=given))) == 0
    assert output(tmp_path, 0) == "/in-front:/behind posix\n"


def test_site_preloads_stay_behind_the_proof_library(carry_out, tmp_path, monkeypatch):
    monkeypatch.setenv("LD_PRELOAD", "libsite.so")
    one = dataclasses.replace(shell('echo "$LD_PRELOAD"'), proof_library="libproof.so")
    assert carry_out(plan_of(one)) == 0
    assert output(tmp_path, 0) == "libproof.so:libsite.so\n"


def test_contenders_take_turns_in_an_order_by_chance(carry_out, tmp_path):
    assert carry_out(plan_of(shell("echo a", "a"), shell("echo b", "b"), launches=20)) == 0
    made = read_log(tmp_path).launches
    pairs = [(made[k].contender, made[k + 1].contender) for k in range(0, 40, 2)]
    assert set(pairs) == {("a", "b"), ("b", "a")}
    assert [x.turn for x in made] == [k // 2 for k in range(40)]
    assert all(output(tmp_path, x.launch.order) == f"{x.contender}\n" for x in made)


@pytest.mark.parametrize("text", ["btl = self,tcp\n", "# nothing is set\n"])
def test_the_users_configuration_files_are_kept_out_and_noted(
    text, carry_out, tmp_path, monkeypatch
):
    home = tmp_path / "home-of-the-user"
    (home / ".openmpi").mkdir(parents=True)
    (home / ".openmpi" / "mca-params.conf").write_text(text)
    monkeypatch.setenv("HOME", str(home))
    here = shell('echo "$HOME"')
    # What a login to another node says is no matter.
    there = dataclasses.replace(here, name="b", launcher=["env", "HOME=/home/there"])
    assert carry_out(plan_of(here, there, launches=1)) == 0
    homes = {output(tmp_path, order).strip() for order in range(2)}
    kept_out = [(file.path, file.settings) for file in read_log(tmp_path).kept_out]
    if text.startswith("btl"):
        assert homes == {str(tmp_path / "home")}
        assert kept_out == [("~/.openmpi/mca-params.conf", ("btl",))]
    else:
        assert homes == {str(home), "/home/there"}
        assert kept_out == []


def test_the_sites_configuration_files_are_noted_by_contender(carry_out, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name / "bin").mkdir(parents=True)
        (tmp_path / name / "bin" / "mpirun").symlink_to("/usr/bin/env")
    (tmp_path / "a" / "etc").mkdir()
    (tmp_path / "a" / "etc" / "openmpi-mca-params.conf").write_text("btl = self,tcp\n")
    plan = plan_of(
        *(
            dataclasses.replace(shell("true", n), launcher=[f"{tmp_path / n}/bin/mpirun"])
            for n in ("a", "b")
        )
    )
    assert carry_out(plan) == 0
    noted = read_log(tmp_path).site_files
    assert {name: [file.settings for file in files] for name, files in noted.items()} == {
        "a": [("btl",)],
        "b": [],
    }
    assert read_log(tmp_path).all_site_files == list(noted["a"])


def test_failed_launch_is_the_last_and_its_words_repeated(carry_out, tmp_path, capfd):
    second = '[ "$CLUSTERGATE_PROOF_NONCE" = word-1 ]'
    script = f'{second} && {{ printf "\\033why\\n" >&2; exit 3; }}; true'
    assert carry_out(plan_of(shell(script), launches=5)) == 3
    assert [made.status for made in read_log(tmp_path).launches] == [0, 3]
    assert capfd.readouterr().err.splitlines()[-1] == "␛why"


def test_a_launcher_ended_by_a_signal_fails_the_job(carry_out, tmp_path):
    assert carry_out(plan_of(shell("kill -SEGV $$"))) == 128 + signal.SIGSEGV
    assert [made.status for made in read_log(tmp_path).launches] == [-signal.SIGSEGV]


def test_a_launcher_that_is_not_there_is_one_sentence(carry_out, capfd):
    missing = dataclasses.replace(shell("true"), launcher=["/nowhere/mpirun"])
    assert carry_out(plan_of(missing)) == 2
    told = capfd.readouterr().err
    assert told == ("clustergate: /nowhere/mpirun cannot be started: No such file or directory\n")


def test_a_folder_that_was_used_before_is_refused(carry_out, capfd):
    assert carry_out(plan_of(shell("true"))) == 0
    assert carry_out(plan_of(shell("true"))) == 2
    assert "belongs to another run" in capfd.readouterr().err


def test_nodes_of_the_allocation_noted_and_written(carry_out, tmp_path, monkeypatch):
    """The nodes of the allocation are noted and written for the launcher."""
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[3-4],big1")
    path = str(tmp_path / "hostfile")
    plan = plan_of(shell(f"cat {path}"), hostfile=path, hostfile_dialect="mpirun_rsh")
    assert carry_out(dataclasses.replace(plan, ranks_per_node=2)) == 0
    assert read_log(tmp_path).hosts == ("n3", "n4", "big1")
    assert output(tmp_path, 0) == "n3:2\nn4:2\nbig1:2\n"


def test_without_a_scheduler_no_nodes_are_noted(carry_out, tmp_path, monkeypatch):
    monkeypatch.delenv("SLURM_JOB_NODELIST", raising=False)
    assert carry_out(plan_of(shell("true"))) == 0
    assert read_log(tmp_path).hosts is None


def test_a_launcher_whose_nodes_nobody_names_is_one_sentence(carry_out, capfd, tmp_path):
    path = str(tmp_path / "hostfile")
    assert carry_out(plan_of(shell("true"), hostfile=path, hostfile_dialect="mpirun_rsh")) == 2
    assert "no scheduler names the nodes of this job" in capfd.readouterr().err


def test_each_scheduler_names_the_nodes_in_its_way(tmp_path):
    (tmp_path / "nodes").write_text("n1\nn1\nn2\n")
    assert allocated_hosts({"PBS_NODEFILE": str(tmp_path / "nodes")}) == ["n1", "n2"]
    assert allocated_hosts({"LSB_MCPU_HOSTS": "n1 4 n2 4"}) == ["n1", "n2"]
    assert allocated_hosts({}) is None
    with pytest.raises(ClustergateError, match=r"PBS_NODEFILE .*absent cannot be read"):
        allocated_hosts({"PBS_NODEFILE": str(tmp_path / "absent")})


def test_what_is_aside_runs_before_and_after_all_launches(carry_out, tmp_path):
    (tmp_path / "trace").touch()
    trace = f"date +%s.%N >> {tmp_path}/trace; wc -l < {tmp_path}/trace"
    aside = Aside("peaks", ["sh", "-c", trace])
    assert carry_out(plan_of(shell(trace), asides=[aside])) == 0
    lines = [(tmp_path / f"peaks-{when}.jsonl").read_text() for when in ("before", "after")]
    assert lines == ["1\n", "4\n"]
    assert read_log(tmp_path).aside_s > 0


def test_what_is_aside_and_fails_fails_the_job(carry_out, tmp_path, capfd):
    failing = Aside("peaks", ["sh", "-c", "echo no counters >&2; exit 4"])
    assert carry_out(plan_of(shell("true"), asides=[failing])) == 4
    assert "no counters" in capfd.readouterr().err
    assert list(read_log(tmp_path).launches) == []


def proofs_by_launch(data: Path, disturbed: int) -> str:
    """Return a script whose first launches leave the records of a disturbed one."""
    return (
        f'if [ "${{CLUSTERGATE_PROOF_NONCE#word-}}" -lt {disturbed} ]; '
        f"then from={data}/proof/beside-others; else from={data}/proof/alone; fi; "
        'cp "$from"/* "$CLUSTERGATE_PROOF_DIR"'
    )


def test_disturbed_launches_are_kept_marked_and_made_up_for(carry_out, tmp_path, data):
    budget = Budget(at_least=3, at_most=9, seconds=PATIENCE_S)
    assert carry_out(plan_of(shell(proofs_by_launch(data, 2)), budget=budget)) == 0
    launches = [made.launch for made in read_log(tmp_path).launches]
    assert [str(launch.disturbed or "") for launch in launches] == [
        *["others used 0.68 of 2 cores of vm"] * 2,
        *[""] * 3,
    ]
    assert launches[0].host == "vm"
    assert launches[0].lost_cores == pytest.approx(0.68, abs=0.01)


def test_not_more_often_than_the_budget_allows(carry_out, tmp_path, data):
    budget = Budget(at_least=3, at_most=4, seconds=PATIENCE_S)
    assert carry_out(plan_of(shell(proofs_by_launch(data, 99)), budget=budget)) == 0
    assert len(read_log(tmp_path).launches) == 4


def test_a_launch_with_moved_cores_is_made_up_for(carry_out, tmp_path):
    # Measured before the first launch and after each: far, far, near, near, …
    counter = tmp_path / "counter"
    counter.touch()
    script = (
        f"echo >> {counter}; [ $(wc -l < {counter}) -le 2 ] && ns=310.5 || ns=52.5; "
        'echo "{\\"measurement\\":\\"core_distance\\",\\"round_trip_ns\\":{\\"best\\":$ns}}"'
    )
    budget = Budget(at_least=2, at_most=9, seconds=PATIENCE_S)
    plan = plan_of(shell("true"), budget=budget, core_distance=["bash", "-c", script])
    assert carry_out(plan) == 0
    distances = [made.launch.core_distance_ns for made in read_log(tmp_path).launches]
    assert distances == [310.5, 310.5, 52.5, 52.5]


@pytest.mark.parametrize(("far_again", "near"), [(2, 52.5), (99, 310.5)])
def test_a_launch_waits_for_near_cores_a_while(carry_out, tmp_path, monkeypatch, far_again, near):
    monkeypatch.setattr(engine, "_NEAR_AGAIN_S", 0.5)
    # Near before the first launch, then so often far, then near.
    counter = tmp_path / "counter"
    counter.touch()
    script = (
        f"echo >> {counter}; n=$(wc -l < {counter}); "
        f"[ $n -gt 1 ] && [ $n -le {1 + far_again} ] && ns=310.5 || ns=52.5; "
        'echo "{\\"measurement\\":\\"core_distance\\",\\"round_trip_ns\\":{\\"best\\":$ns}}"'
    )
    plan = plan_of(shell("true"), core_distance=["bash", "-c", script])
    assert carry_out(plan) == 0
    first, second = read_log(tmp_path).launches
    assert (first.waited_s, [*first.distances_ns]) == (0, [52.5, 310.5])
    assert second.distances_ns[0] == near
    assert second.waited_s > 0


def test_far_cores_show_by_what_earlier_jobs_of_the_run_saw(carry_out, tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "_NEAR_AGAIN_S", 0.2)
    monkeypatch.setattr(NodeMeasurements, "near_ns", 52.5)
    kept = []
    monkeypatch.setattr(NodeMeasurements, "keep_distances", lambda self, ns: kept.extend(ns))
    far = 'echo "{\\"measurement\\":\\"core_distance\\",\\"round_trip_ns\\":{\\"best\\":310.5}}"'
    budget = Budget(at_least=1, at_most=2, seconds=PATIENCE_S)
    plan = plan_of(shell("true"), budget=budget, core_distance=["bash", "-c", far])
    assert carry_out(plan) == 0
    log = read_log(tmp_path)
    # None of them is undisturbed, so that there are as many as may be.
    assert len(log.launches) == 2
    assert log.launches[0].waited_s > 0
    assert (log.nearest_ns, log.nearest_of_run_ns) == (310.5, 52.5)
    assert kept == [310.5, 310.5]


@pytest.mark.parametrize("command", [["echo", "{}"], ["false"], ["/nowhere/core_distance"], []])
def test_without_a_distance_nothing_is_known_of_it(carry_out, tmp_path, command):
    assert carry_out(plan_of(shell("true"), core_distance=command)) == 0
    assert {made.launch.core_distance_ns for made in read_log(tmp_path).launches} == {None}


def read_number(lines: Iterable[str]) -> Iterator[Row]:
    yield Row("IMB-MPI1", "PingPong", {"bytes": 8}, {"latency_us": float(next(iter(lines)))})


def read_own_metric(lines: Iterable[str]) -> Iterator[Row]:
    yield Row("HPCC", "StarDGEMM", {}, {"StarDGEMM_Gflops": float(next(iter(lines)))})


@pytest.mark.parametrize("read", [read_number, read_own_metric])
@pytest.mark.parametrize(("script", "made"), [("echo 100", 3), ("echo 10${PWD##*00}", 6)])
def test_wide_intervals_are_narrowed_as_long_as_the_budget_lasts(
    carry_out, tmp_path, monkeypatch, script, made, read
):
    monkeypatch.setitem(sys.modules, "numbers_in_lines", SimpleNamespace(read=read))
    budget = Budget(at_least=3, at_most=6, seconds=PATIENCE_S, precision=0.004)
    plan = plan_of(shell(script), budget=budget, reader="numbers_in_lines:read")
    assert carry_out(plan) == 0
    assert len(read_log(tmp_path).launches) == made


def test_a_figure_that_cannot_be_read_asks_for_no_more_launches(carry_out, tmp_path):
    budget = Budget(at_least=2, at_most=6, seconds=PATIENCE_S, precision=0.02)
    plan = plan_of(
        shell("echo"), budget=budget, reader="clustergate.benchmarks.imb.output:parse_imb"
    )
    assert carry_out(plan) == 0
    assert len(read_log(tmp_path).launches) == 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_interrupted_driver_ends_its_launch(tmp_path, number):
    write_plan(tmp_path, plan_of(shell("echo $$ > ../pid; exec sleep infinity")))
    driver = [sys.executable, "-I", "-m", "clustergate.launch", str(tmp_path / "plan.json")]
    with subprocess.Popen(
        driver,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as running:
        pid = tmp_path / "pid"
        while not (pid.exists() and pid.read_text()):
            assert running.poll() is None
            time.sleep(0.05)
        running.send_signal(number)
        assert running.wait() == 128 + number
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_a_job_starts_without_what_takes_long_to_load() -> None:
    script = "import sys, clustergate.launch.driver; print(*sys.modules)"
    ended = subprocess.run(
        [sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True
    )
    slow = {"clustergate.stacks", "filelock", "numpy", "psutil", "reframe", "yaml"}
    assert not slow & set(ended.stdout.split())


def test_a_node_with_another_file_under_the_same_name_is_noted(
    carry_out, tmp_path, data, monkeypatch
):
    """The files of the first node alone said what a stack is."""
    monkeypatch.setattr(configuration, "_OF_A_NODE", (str(tmp_path / "opt"),))
    (tmp_path / "opt").mkdir()
    same, other, absent = (tmp_path / "opt" / f"lib{name}.so" for name in ("same", "other", "x"))
    for path in (same, other):
        path.write_text("the first node")
    captured = next((data / "proof" / "alone").glob("*.json"))
    objects = [*map(str, (same, other, absent)), "/shared/libmpi.so"]
    (tmp_path / "rank.json").write_text(
        json.dumps({**json.loads(captured.read_text()), "objects": objects})
    )
    # Starts what it is given as the nodes n1 and n2 would; n2 has another file.
    nodes = tmp_path / "nodes.sh"
    nodes.write_text(
        "for node in n1 n2; do\n"
        f"  printf '#!/bin/sh\\necho %s\\n' $node > {tmp_path}/uname; chmod +x {tmp_path}/uname\n"
        f"  [ $node = n1 ] || echo other > {other}\n"
        f'  PATH={tmp_path}:$PATH "$@"\n'
        "done\n"
        f'printf "%s" "the first node" > {other}\n'
    )
    proven = f'cp {tmp_path}/rank.json "$CLUSTERGATE_PROOF_DIR"/rank-n1-1.json'
    contenders = shell(proven), shell(proven, "b")
    assert carry_out(plan_of(*contenders, on_each_node=["sh", str(nodes)])) == 0
    notes = [json.loads(line) for line in (tmp_path / "launches.jsonl").read_text().splitlines()]
    assert [x["unlike"] for x in notes if "unlike" in x] == 2 * [{"n1": [], "n2": [str(other)]}]
    assert read_log(tmp_path).unlike == {"n1": (), "n2": (str(other),)}


def test_a_node_with_another_version_of_a_file_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Versions are in the names of files: neither node has that of the other."""
    monkeypatch.setattr(configuration, "_OF_A_NODE", (f"{tmp_path}/opt",))
    first, second, lookup = (tmp_path / "opt" / f"lib{x}.so" for x in ("a.1", "a.2", "nss_x"))
    first.parent.mkdir()
    first.touch()
    lookup.touch()
    mapped = configuration.mapped_files(map(str, (first, second, lookup)))
    own = {path: sha256 for path, sha256 in mapped.items() if configuration.is_of_a_node(path)}
    assert own == {str(first): hashlib.sha256().hexdigest(), str(second): ""}
    # What all nodes should see may be mounted from elsewhere on one, and be as large.
    (large := tmp_path / "large.so").write_bytes(bytes(3 * END))
    (tmp_path / "shared.so").write_text("of all")
    names = ("shared.so", "large.so", "none")
    shared = {f"{tmp_path}/{name}": configuration.ends_of(f"{tmp_path}/{name}") for name in names}
    assert [*map(len, shared.values())] == [64, 64, 0]
    # Starts what it is given as the nodes n1, n2 and n3 would: n2 has the later version, and n3
    # nothing to look with.
    nodes = tmp_path / "nodes.sh"
    nodes.write_text(
        "for node in n1 n2 n3; do\n"
        f"  printf '#!/bin/sh\\necho %s\\n' $node > {tmp_path}/uname; chmod +x {tmp_path}/uname\n"
        f"  [ $node != n2 ] || mv {first} {second}\n"
        f"  [ $node != n2 ] || printf 'of one' > {tmp_path}/shared.so\n"
        f"  [ $node != n2 ] || printf 1 | dd of={large} bs=1 seek={3 * END - 1} conv=notrunc\n"
        f"  [ $node != n3 ] || ln -s /bin/false {tmp_path}/mv\n"
        f'  PATH={tmp_path}:$PATH "$@"\n'
        "done\n"
    )
    unlike = engine.Engine(tmp_path, "word").unlike(["sh", str(nodes)], {}, own, shared, 0)
    assert unlike == {"n1": [], "n2": [*map(str, (first, second)), *list(shared)[:2]]}


def test_what_a_program_would_load_is_known_before_it_ran() -> None:
    program, *libraries = configuration.linked_files(sys.executable, os.environ)
    assert program == sys.executable
    assert any("/libc" in library for library in libraries)
    assert configuration.linked_files("/nowhere/xhpl", os.environ) == ["/nowhere/xhpl"]
