"""PBS, from the documented forms of its output: no server was asked for these texts."""

from __future__ import annotations

import datetime
import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from clustergate import cli
from clustergate.core.model import ClustergateError
from clustergate.run import readiness as doctor
from clustergate.run.forecast import beyond_forecast
from clustergate.run.gate.decision import node_evidence
from clustergate.run.placing import options_for
from clustergate.run.readiness import FAIL, OK, WARN
from clustergate.sites import configs
from clustergate.sites.description import Partition, Site
from clustergate.sites.schedulers import NO_ANSWERS, scheduler_of
from clustergate.sites.schedulers.job_options import JobOptions
from clustergate.sites.schedulers.pbs import (
    NO_ANSWER,
    causes,
    limits_in,
    limits_of,
    queues_in,
    waits_for,
)
from clustergate.sites.schedulers.scheduler import DEFAULT, Limits

PBS = scheduler_of("pbs")
STAGE = Path("/home/user/.clustergate/stage/20261101T000000Z-1")


def node(state: str = "free", ncpus: int = 64, **attributes: Any) -> dict[str, Any]:
    resources = {"arch": "linux", "ncpus": ncpus, **attributes.pop("available", {})}
    return {"ntype": "PBS", "state": state, "resources_available": resources, **attributes}


def printed(kind: str, objects: Mapping[str, Any]) -> str:
    said = {"timestamp": 1764172100, "pbs_version": "23.06.06", "pbs_server": "head"}
    return json.dumps({**said, kind: objects})


NODES = printed(
    "nodes",
    {
        "n1": node(),
        "n2": node("job-exclusive"),
        "n3": node("down,offline", comment="broken fan"),
        "n4": node("down", comment="node down: communication closed"),
        "b1": node(queue="big", ncpus=256),
        "g1": node("resv-exclusive", available={"Qlist": "gpu,debug"}, queue="held"),
    },
)
OPEN = {"queue_type": "Execution", "enabled": "True", "started": "True"}
QUEUES = printed(
    "Queue",
    {
        "workq": {**OPEN, "resources_max": {"walltime": "24:00:00", "nodect": 8}},
        "big": OPEN,
        "gpu": {**OPEN, "default_chunk": {"Qlist": "gpu"}},
        "route": {"queue_type": "Route", "route_destinations": "workq,big@head"},
        "shut": {**OPEN, "started": "False"},
    },
)
SERVER = printed(
    "Server", {"head": {"default_queue": "workq", "resources_max": {"walltime": "48:00:00"}}}
)


def names(queue: str) -> list[str]:
    return [group.names for group in queues_in(NODES, QUEUES, SERVER)[queue].groups]


def test_queue_has_its_own_nodes_or_those_of_nobody() -> None:
    assert names("workq") == names(DEFAULT) == ["n[1-2]", "n3", "n4"]
    assert names("big") == ["b1"]
    assert names("gpu") == ["g1"]
    assert sorted(names("route")) == ["b1", "n3", "n4", "n[1-2]"]


def test_unused_nodes_have_their_states_and_comment() -> None:
    queues = queues_in(NODES, QUEUES, SERVER)
    assert queues["workq"].unused == {
        "n3": "down, offline, broken fan",
        "n4": "down, node down: communication closed",
    }
    assert queues["gpu"].unused == queues["big"].unused == {}
    assert set(queues["shut"].unused.values()) == {"its queue is not started"}


@pytest.mark.parametrize(
    ("state", "cause"),
    [
        *((used, "") for used in ("free", "busy", "job-busy", "resv-exclusive", "sleep")),
        ("offline", "offline"),
        ("job-busy,offline", "offline"),
        ("state-unknown,down", "state-unknown, down"),
        ("stale", "stale"),
        ("maintenance", "maintenance"),
        ("", "state-unknown"),
    ],
)
def test_states_of_nodes(state: str, cause: str) -> None:
    assert causes({"state": state}) == cause


@pytest.mark.parametrize(
    ("causes", "begun"),
    [
        ("offline, fan", "repair n[3-4] and run `pbsnodes -r -C '' n3 n4`"),
        ("down", "it comes back when its pbs_mom answers"),
        ("its queue is not started", "an operator opens it: `qmgr -c "),
    ],
)
def test_remedy_fits_the_cause(causes: str, begun: str) -> None:
    why = PBS.not_used("n[3-4]", causes)
    assert str(why).startswith(f"PBS does not use n[3-4]: {causes}; {begun}")


@pytest.mark.parametrize(
    "texts",
    [
        ("", QUEUES, SERVER),
        ("qstat: cannot connect to server head (errno=111)", QUEUES, SERVER),
        (NODES[:200], QUEUES, SERVER),
        (NODES, "[]", SERVER),
        (NODES, printed("Queue", {}), SERVER),
        (printed("nodes", {"n1": "free"}), QUEUES, SERVER),
        (printed("nodes", {"n1": node(ncpus="many")}), QUEUES, SERVER),  # type: ignore[arg-type]
        (printed("nodes", {"n 1;x": node()}), QUEUES, SERVER),
    ],
)
def test_damaged_output_is_no_answer(texts: tuple[str, str, str]) -> None:
    with pytest.raises(ClustergateError) as refused:
        queues_in(*texts)
    assert refused.value.reason.code == NO_ANSWER.code
    assert len(str(refused.value)) < 400


def test_every_cut_of_the_output_is_no_answer() -> None:
    for end in range(1, len(NODES) - 1, 7):
        with pytest.raises(ClustergateError):
            queues_in(NODES[:end], QUEUES, SERVER)


def test_silence_before_a_gate_is_settled_by_an_answer_after_it() -> None:
    assert NO_ANSWER.code in NO_ANSWERS
    silent, unused = NO_ANSWER(why="x"), PBS.not_used("n1", "down")
    assert [one.reasons[0] for one in node_evidence([silent], [])] == []
    assert [one.reasons[0] for one in node_evidence([silent], [unused])] == [unused]
    assert [one.reasons[0] for one in node_evidence([], [silent])] == [silent]


@pytest.mark.parametrize(
    ("queue", "seconds", "nodes"),
    [("workq", 86400.0, 8), ("", 86400.0, 8), ("big", 172800.0, None), ("none", 172800.0, None)],
)
def test_limits_of_queue_then_server(queue: str, seconds: float, nodes: int | None) -> None:
    limits = limits_in(QUEUES, SERVER, queue)
    assert (limits.seconds, limits.nodes) == (seconds, nodes)
    assert re.match(r"the queue \w+ limits jobs to \d+ s; raise its res", str(limits.why))


@pytest.mark.parametrize(
    ("walltime", "seconds"),
    [("00:30:00", 1800.0), ("30:00", 1800.0), (3600, 3600.0), ("100:00:00", 360000.0), ("x", None)],
)
def test_walltimes(walltime: str | int, seconds: float | None) -> None:
    queues = printed("Queue", {"workq": {**OPEN, "resources_max": {"walltime": walltime}}})
    assert limits_in(queues, printed("Server", {"head": {}}), "workq").seconds == seconds


@pytest.mark.parametrize(
    ("state", "comment", "why"),
    [
        ("Q", "Not Running: Not enough ncpus ", "Not enough ncpus"),
        ("Q", "", "queued"),
        ("H", "", "held"),
        ("S", "", "suspended"),
        ("R", "Job run at Sun Nov 29 at 17:21 on (n1:ncpus=64)", ""),
        ("E", "", ""),
    ],
)
def test_job_of_a_run_waits_or_runs(state: str, comment: str, why: str) -> None:
    def job(where: Path, state: str, **more: str) -> dict[str, Any]:
        return {"job_state": state, "Variable_List": {"PBS_O_WORKDIR": str(where)}, **more}

    commented = {"comment": comment} if comment else {}
    jobs = {
        "6.head": job(Path("/home/user/elsewhere"), "H"),
        "7.head": job(STAGE / "alpha" / "node" / "mpich" / "HplCheck", state, **commented),
    }
    assert waits_for(printed("Jobs", jobs), STAGE) == why
    assert waits_for(printed("Jobs", {"6.head": jobs["6.head"]}), STAGE) is None
    assert waits_for("", STAGE) is None
    with pytest.raises(ClustergateError, match="Jobs in 'qstat: Unknown Job Id' cannot be read"):
        waits_for("qstat: Unknown Job Id", STAGE)


def test_control_characters_of_an_environment_are_read() -> None:
    variables = f'{{"X": "a\x1bb\tc", "PBS_O_WORKDIR": "{STAGE / "a"}"}}'
    text = f'{{"Jobs": {{"7.head": {{"job_state": "Q", "Variable_List": {variables}}}}}}}'
    assert waits_for(text, STAGE) == "queued"


def partition(*access: str, nodes: int = 2, cores: int = 64) -> Partition:
    return Partition(
        name="work",
        scheduler="pbspro",
        access=access,
        cores_per_node=cores,
        nodes=nodes,
        environs=("mpich",),
    )


@pytest.mark.parametrize(
    ("described", "status", "says"),
    [
        (partition(nodes=4), OK, "4 nodes of 64 cores, by pbspro"),
        # ncpus are hardware threads.
        (partition(nodes=4, cores=32), OK, "4 nodes of 32 cores, by pbspro"),
        (partition("-q big", nodes=1, cores=256), OK, "1 node of 256 cores, by pbspro"),
        (partition("-q bigg"), FAIL, "PBS has no queue 'bigg', which `access` of the"),
        (partition(nodes=5), WARN, "the site config says 5 nodes of 64 cores, and PBS has 4 nod"),
        # A job that asks for more ncpus than there are never starts.
        (partition(nodes=4, cores=96), WARN, "the site config says 4 nodes of 96 cores, and PBS"),
    ],
)
def test_doctor_compares_sizes(described: Partition, status: str, says: str) -> None:
    finding = doctor.check_nodes(described, queues_in(NODES, QUEUES, SERVER))
    assert (finding.status, str(finding.says)[: len(says)]) == (status, says)


def test_access_names_a_queue_and_chunks_leave_the_nodes_to_pbs() -> None:
    assert PBS.queue_in(["-A proj", "-q gpu@head"]) == "gpu"
    assert PBS.queue_in(["-q a", "-q b"]) == "b"
    assert PBS.queue_in(["-l place=scatter"]) == DEFAULT
    queue = queues_in(NODES, QUEUES, SERVER)["workq"]
    for access in (["-l place=scatter:excl,walltime=1:0:0"], ["-A x"], []):
        assert PBS.allowed_in(queue, access) is queue
    for access in (["-l select=1:host=n1"], ["model=new"], ["-l host=n1"]):
        assert PBS.allowed_in(queue, access) is None


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let PBS's commands print texts: those of this file, unless others are given."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    limits_of.cache_clear()

    def says(status: int = 0, nodes: str = NODES) -> None:
        for name, text in (("nodes", nodes), ("queues", QUEUES), ("server", SERVER)):
            (tmp_path / name).write_text(text)
        for program in ("pbsnodes", "qstat"):
            path = tmp_path / program
            path.write_text(
                f'#!/bin/sh\ncase "$*" in\n-a*) cat {tmp_path}/nodes;;\n'
                f"-Q*) cat {tmp_path}/queues;;\n-B*) cat {tmp_path}/server;;\nesac\n"
                f"echo 'cannot connect to server head' >&2\nexit {status}\n"
            )
            path.chmod(0o755)

    return says


def test_server_is_asked(server: Callable[..., None]) -> None:
    server()
    assert PBS.queues()["workq"].by_cores == {64: 4}
    assert PBS.node_names() == ["n1", "n2", "n3", "n4", "b1", "g1"]
    assert PBS.node_names(["-q big"]) == ["b1"]
    assert PBS.limits([]) == Limits(86400.0, 8)
    first, second, *_ = PBS.unused_notes()
    assert first.startswith("PBS does not use n3: down, offline, broken fan; repair n3 and run")
    assert second.startswith("PBS does not use n4: down")


def test_scan_makes_partitions_of_queues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLUSTERGATE_SITE_FOLDER", str(tmp_path))
    large = {"ncpus": 128, "mem": "263872512kb"}
    small = {"mem": "131936256kb"}
    few = {name: node(available=small) for name in ("n1", "n2")}
    nodes = printed("nodes", {**few, "b1": node(available=large)})
    for name, text in (("nodes", nodes), ("queues", QUEUES)):
        (tmp_path / name).write_text(text)
    words = ["site", "scan", "alpha", "--stack", "mpich", "--nodes", str(tmp_path / "nodes")]
    words += ["--partitions", str(tmp_path / "queues")]
    words += ["--lscpu", str(Path(__file__).parent / "data" / "slurm" / "lscpu.txt")]
    assert cli.main(words) == 0
    text = (tmp_path / "site_configs" / "alpha.py").read_text()
    usual, big = configs.load(tmp_path / "site_configs" / "alpha.py").partitions
    assert [(p.nodes, p.cores_per_node) for p in (usual, big)] == [(2, 64), (1, 128)]
    assert [usual.scheduler, *usual.access[:2]] == ["pbs", "-q workq", "-l place=scatter:excl"]
    assert big.memory_bytes_per_node == 263872512 << 10
    assert "Enter half of it where ncpus are hardware threads" in text
    # PBS has no option that keeps nodes out.
    assert "# Jobs may get nodes of other kinds, too: b1; give these nodes a queue" in text


def test_scan_of_damaged_output_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CLUSTERGATE_SITE_FOLDER", str(tmp_path))
    (tmp_path / "nodes").write_text(NODES[:-40])
    (tmp_path / "queues").write_text(QUEUES)
    words = ["site", "scan", "alpha", "--nodes", str(tmp_path / "nodes")]
    words += ["--partitions", str(tmp_path / "queues"), "--lscpu", os.devnull]
    assert cli.main(words) == 2
    assert "PBS could not be asked for its nodes: nodes in" in capsys.readouterr().err
    assert not (tmp_path / "site_configs").exists()


def test_server_that_is_down_is_told_and_limits_nothing(server: Callable[..., None]) -> None:
    server(status=1)
    with pytest.raises(ClustergateError, match=r"PBS could not be asked .*: cannot connect"):
        PBS.queues()
    assert (PBS.node_names(), PBS.limits([])) == ([], Limits())
    (note,) = PBS.unused_notes()
    assert "cannot connect to server head; run this on a login node" in note


def test_gate_is_told_what_the_server_says(server: Callable[..., None]) -> None:
    server()
    site = Site(name="alpha", hostnames=[], partitions=[partition(nodes=4)])
    reasons = [str(why) for why in doctor.nodes_in_the_way(site, 1.0, print)]
    assert [one.partition(":")[0] for one in reasons[:2]] == [
        "PBS does not use n3",
        "PBS does not use n4",
    ]
    assert reasons[2].startswith("no partition of the site config contains b1 of PBS's queue big")


def test_account_is_for_every_job_and_qos_is_refused(server: Callable[..., None]) -> None:
    server()
    site = Site(name="alpha", hostnames=[], partitions=[partition()])
    assert options_for(JobOptions(account="proj"), site) == ["--job-option=A=proj"]
    with pytest.raises(
        ClustergateError, match="--qos works with Slurm only, and no partition of alpha"
    ):
        options_for(JobOptions(qos="high"), site)
    local = Site(name="alpha", hostnames=[], partitions=[Partition(name="a", scheduler="local")])
    with pytest.raises(ClustergateError, match="--account works with Slurm and PBS only"):
        options_for(JobOptions(account="proj"), local)
    assert beyond_forecast(site, []) == ", plus waiting in PBS's queue"


def test_lines_that_drain_and_resume() -> None:
    today = datetime.date(2026, 11, 21).isoformat()
    line = PBS.drain_line(["n3", "n4"], f"1.5x slower HPL, clustergate {today}")
    assert line == "pbsnodes -o -C '1.5x slower HPL, clustergate 2026-11-21' n3 n4"
    assert PBS.resume_line("n[3-4]") == "pbsnodes -r -C '' n3 n4"


def test_pbs_jobs_scattered_and_never_started_again() -> None:
    """Jobs are scattered unless the site places them and never started again."""
    assert PBS.completed(["-q big"]) == ["-q big", "-l place=scatter", "-r n"]
    assert PBS.completed(["-l place=pack:excl"]) == ["-l place=pack:excl", "-r n"]


def test_prefix_of_directives_is_not_inherited() -> None:
    assert PBS.overriding(["PBS_DPREFIX", "PBS_DEFAULT"], []) == ["PBS_DPREFIX"]
