"""The virtual cluster itself: it comes, it breaks as it is told to, it goes and leaves nothing."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from clustergate.core.paths import checkout
from tests.conftest import PATIENCE_S, until

PROGRAM = checkout() / "ci" / "virtual-cluster"


def virtual_cluster(name, *words, **variables):
    """Run the program for a cluster of that name to its end."""
    return subprocess.run(
        [PROGRAM, *words],
        env={**os.environ, "VIRTUAL_CLUSTER": name, **variables},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


def traces(name):
    """Return what a cluster of that name has left on this machine."""
    links = [path.name for path in Path("/sys/class/net").glob(f"cg{name}*")]
    groups = [str(path) for path in Path("/sys/fs/cgroup").glob(f"*/clustergate-{name}-*")]
    folders = [str(path) for path in Path("/var/tmp").glob(f"clustergate-{name}/*")]
    return [*links, *groups, *folders, *processes_of(name)]


def processes_of(name):
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            environment = (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        ours = f"VIRTUAL_CLUSTER={name}".encode() in environment and "first-process" in words
        if ours or any(f"/clustergate-{name}/" in word for word in words):
            found.append(" ".join(words))
    return found


@pytest.fixture
def name():
    """Return the name of a cluster that is not there, and remove what a test leaves of it."""
    lacking = virtual_cluster("none", "missing")
    if lacking.returncode:
        pytest.skip(lacking.stderr.strip())
    name = f"t{os.getpid() % 100000}"
    yield name
    virtual_cluster(name, "down")


def test_what_is_missing_is_said(tmp_path):
    (tmp_path / "env").symlink_to("/usr/bin/env")
    (tmp_path / "python3").symlink_to(sys.executable)
    ended = virtual_cluster("none", "missing", PATH=str(tmp_path))
    sbin = Path("/usr/sbin/slurmctld").exists()
    assert ended.returncode == 2
    assert "clustergate: a virtual cluster needs " in ended.stderr
    assert "apt-get install --no-install-recommends" in ended.stderr
    assert "openssh-client" in ended.stderr
    assert sbin or "slurm-wlm" in ended.stderr


@pytest.mark.parametrize("wrong", ["A", "x y", "seven77", "../x", "a;b", ""])
def test_a_name_that_would_not_do_for_an_interface_is_refused(wrong):
    ended = virtual_cluster(wrong, "run", "head", "true")
    assert ended.returncode == 2
    assert "VIRTUAL_CLUSTER must be up to six letters and digits" in ended.stderr


@pytest.mark.cluster
def test_it_comes_up_once_and_goes_without_a_trace(name):
    assert virtual_cluster(name, "up", "--nodes", "2").returncode == 0
    again = virtual_cluster(name, "up", "--nodes", "2")
    assert again.returncode == 0
    assert "2 nodes up" in again.stdout
    ended = virtual_cluster(name, "run", "head", "srun", "-N2", "-n2", "hostname")
    assert sorted(ended.stdout.split()) == ["n1", "n2"]
    assert virtual_cluster(name, "run", "n1", "ssh", "n2", "hostname").stdout == "n2\n"
    assert virtual_cluster(name, "run", "n1", "sh", "-c", "exit 7").returncode == 7
    # What nodes keep in the /tmp that they share is often named by the number of a process alone.
    asked = ("sh", "-c", "echo $$")
    first, second = (int(virtual_cluster(name, "run", n, *asked).stdout) for n in ("n1", "n2"))
    assert second - first > 10_000
    # Whatever runs on a node can be slowed down with it, however it came there.
    for way in ([], ["srun", "-w", "n2"], ["ssh", "n2"]):
        ended = virtual_cluster(name, "run", "n2", *way, "cat", "/proc/self/cgroup")
        assert f"clustergate-{name}-n2" in ended.stdout, way
    assert "no node 'n3'" in virtual_cluster(name, "run", "n3", "true").stderr
    assert virtual_cluster(name, "down").returncode == 0
    assert traces(name) == []
    assert virtual_cluster(name, "down").returncode == 0


@pytest.mark.cluster
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_interrupted_start_found_by_down(name, number):
    command = [str(PROGRAM), "up", "--nodes", "2"]
    environment = {**os.environ, "VIRTUAL_CLUSTER": name}
    with subprocess.Popen(
        command,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        # Whoever runs the tests in the background may ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as started:
        while not list(Path("/var/tmp").glob(f"clustergate-{name}/ready/head")):
            assert started.poll() is None
            time.sleep(0.01)
        started.send_signal(number)
        _, told = started.communicate()
    if number != signal.SIGKILL:
        assert started.returncode == 130
        assert "nothing is left" in told
        assert traces(name) == []
    assert virtual_cluster(name, "down").returncode == 0
    assert traces(name) == []


def test_a_cluster_that_is_down_is_not_a_dead_head():
    ended = virtual_cluster("none", "run", "head", "true")
    assert ended.returncode == 2
    assert "the virtual cluster is down; `ci/virtual-cluster up` brings it up" in ended.stderr


@pytest.mark.cluster
def test_a_crashed_node_is_down_and_can_be_mended(name):
    assert virtual_cluster(name, "up", "--nodes", "2").returncode == 0
    assert virtual_cluster(name, "fault", "crash", "n2").returncode == 0
    assert "n2 is dead" in virtual_cluster(name, "run", "n2", "true").stderr
    assert virtual_cluster(name, "fault", "mend", "n2").returncode == 0
    ended = virtual_cluster(name, "run", "head", "srun", "-w", "n2", "hostname")
    assert ended.stdout == "n2\n"
    assert "no fault is called 'flood'" in virtual_cluster(name, "fault", "flood", "n1").stderr


@pytest.mark.cluster
def test_it_ends_by_itself(name):
    assert virtual_cluster(name, "up", "--nodes", "1", "--hours", "0.02").returncode == 0
    until(lambda: not processes_of(name), lambda: processes_of(name))
