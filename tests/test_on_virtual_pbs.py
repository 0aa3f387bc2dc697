"""The suite on several nodes with a real OpenPBS, built of the archive that OPENPBS names.

The nodes share one machine, as in test_on_virtual_cluster.py. The gate under PBS is run by
test_gate_cluster.py, the papers' layouts by test_published_on_cluster.py.
"""

import json
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.conftest import VirtualCluster, until
from tests.test_on_virtual_cluster import (
    ACROSS,
    OnCluster,
    fault,
    named,
    on_cluster,
    virtual_cluster,
)

__all__ = ["fault", "on_cluster"]

pytestmark = [pytest.mark.cluster, pytest.mark.mpi]

PARTITIONS = ("pbs", "ssh")


@pytest.fixture(scope="module")
def cluster():
    """Bring a cluster up with OpenPBS, by the name that the tests on Slurm have, and remove it."""
    pbs = VirtualCluster()
    pbs.named = named()
    pbs.bring_up("pbs", "--hours", "1")
    yield
    virtual_cluster("down")


@pytest.fixture(autouse=True)
def under_pbs(monkeypatch):
    monkeypatch.setattr(OnCluster, "partition", "pbs")


def manage(*requests):
    """Let PBS's administrator have a request each."""
    for request in requests:
        virtual_cluster("run", "head", "qmgr", "-c", request)


def jobs():
    """Return the jobs that PBS has, by their numbers, with their states."""
    said = virtual_cluster("run", "head", "qstat", "-f", "-F", "json").stdout
    return {name: job["job_state"] for name, job in json.loads(said).get("Jobs", {}).items()}


@pytest.mark.parametrize("stack", ["mpich", "intel-mpi"])
def test_hpl_crosses_nodes_by_pbs_and_by_ssh(on_cluster, stack):
    records, said = on_cluster.hpl(stack=stack, partition="")
    assert {record["partition"].partition(":")[2] for record in records} == {*PARTITIONS}
    for record in records:
        assert record["complaints"] == [], said
        assert record["details"]["proof"]["hosts"] == ["n1", "n2"]
    assert not jobs()


def test_ranks_that_do_not_divide_get_the_nodes_that_they_need(on_cluster):
    _, said = on_cluster.run("-S", "ranks=3", "-S", "n=500", "-S", "launches=1")
    (record,) = on_cluster.suite.records()
    assert record["complaints"] == [], said
    assert [rank["host"] for rank in record["details"]["proof"]["ranks"]] == ["n1", "n1", "n2"]


def test_jobs_are_no_longer_than_the_queue_allows(on_cluster):
    manage("set queue workq resources_max.walltime = 00:05:00")
    try:
        (record,), said = on_cluster.hpl()
    finally:
        manage("unset queue workq resources_max.walltime")
    assert record["complaints"] == [], said
    assert "its jobs request 300 s instead of 600 s" in said
    assert "limits jobs to 300 s" in said


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (
            ("drain", "n3", "a broken fan"),
            "offline, a broken fan; repair n3 and run `pbsnodes -r -C ",
        ),
        (("kill-pbs_mom", "n3"), "down, node down: .*; it comes back when its pbs_mom answers"),
    ],
)
def test_node_that_pbs_does_not_use_is_named_with_the_remedy(on_cluster, fault, kind, why):
    fault(*kind)

    def listed():
        return on_cluster.call("hostfile", "virtual-cluster").stdout

    until(lambda: "3 of 4 nodes usable: n[1-2,4]" in listed(), listed)
    assert re.search(f"PBS does not use n3: {why}", listed())
    told = on_cluster.call("doctor", "--site", str(on_cluster.site)).stdout
    assert re.search(f"PBS does not use n3: {why}", told)


def test_scan_writes_a_config_of_the_queues(on_cluster, tmp_path, monkeypatch):
    monkeypatch.setenv("CLUSTERGATE_SITE_FOLDER", str(tmp_path))
    said = on_cluster.call("site", "scan", "alpha", "--stack", "mpich")
    assert said.returncode == 0, said.stderr
    text = (tmp_path / "site_configs" / "alpha.py").read_text()
    for line in (
        "# 4 nodes: n[1-4]",
        '"scheduler": "pbs",',
        '"access": ["-q workq", "-l place=scatter:excl"],',
        '"cores_per_node": 2,',
    ):
        assert line in text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=str)
def test_waiting_job_says_why_and_ends_with_its_run(on_cluster, fault, number):
    for node in ("n2", "n3", "n4"):
        fault("drain", node)
    with subprocess.Popen(
        on_cluster.command(*ACROSS, "-S", "n=500"),
        env=named(on_cluster.suite.environment()),
        cwd=on_cluster.home,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    ) as running:
        assert running.stderr is not None
        line = "begun"
        # Until its scheduler has looked at it, it is queued.
        while line and "in PBS's queue (Not enough" not in line:
            line = running.stderr.readline()
        assert "Q" in jobs().values()
        running.send_signal(number)
        running.communicate()
    assert line, "it was not told what the job waits for"
    until(lambda: not jobs(), jobs)


def test_job_whose_node_vanishes_is_not_started_again(on_cluster, fault):
    records, said = on_cluster.hpl_with("sleep 60", lambda: fault("crash", "n1"))
    assert "PBS has ended the job and delivered no output" in said
    assert "PBS does not use n1: down" in said
    # PBS starts such a job anew on other nodes, in the folder of its first start.
    begun = {path.name for path in on_cluster.home.glob("begun-*")}
    assert begun == {"begun-n1", "begun-n2"}
    assert not any(record["samples"] for record in records)
    until(lambda: not jobs(), jobs)


def test_screening_in_a_job_of_pbs_names_the_slow_link_and_writes_the_line_to_drain(
    on_cluster, fault
):
    fault("slow-link", "n2", "100mbit")
    words = ["screen", "--site", str(on_cluster.site), "--partition", "pbs"]
    words += ["--stack", "intel-mpi", "--hpl", "0", "--budget", "8m"]
    said = on_cluster.call(*words)
    assert "FAULTS FOUND: node n2 (" in said.stdout, said.stdout + said.stderr
    if said.returncode == 2:
        pytest.skip(f"the machine is too busy to find a fault on it: {said.stdout}")
    (drains,) = on_cluster.home.glob("results/runs/*/screening/pbsnodes.sh")
    assert re.search(r"^pbsnodes -o -C '.*' n2$", Path(drains).read_text(), re.MULTILINE)
