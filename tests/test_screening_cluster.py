"""A screening across the nodes of a virtual cluster: a slow node's link, a node that is gone."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from clustergate.state import checkout

pytestmark = [pytest.mark.cluster, pytest.mark.mpi]

PROGRAM = str(checkout() / "ci" / "virtual-cluster")
SITE = str(checkout() / "ci" / "virtual_cluster.py")
Virtual = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def virtual() -> Iterator[Virtual]:
    """Bring a cluster up for these tests, and remove it; calling it runs the program."""
    lacking = subprocess.run([PROGRAM, "missing"], capture_output=True, text=True)
    if lacking.returncode:
        pytest.skip(lacking.stderr.strip())
    named = {**os.environ, "VIRTUAL_CLUSTER": f"c{os.getpid() % 100000}"}

    def run(*words: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [PROGRAM, *words],
            env={**named, **variables},
            capture_output=True,
            text=True,
            timeout=900,
        )

    assert run("up", "--hours", "1").returncode == 0
    yield run
    run("down")


def screened(virtual: Virtual, home: Path, *options: str) -> tuple[int, str]:
    """Screen the four nodes over ssh, without HPL; return the exit status and what was said."""
    clustergate = str(Path(sys.executable).parent / "clustergate")
    words = ["screen", "--site", SITE, "--partition", "ssh", "--stack", "intel-mpi", "--hpl", "0"]
    ended = virtual("run", "head", clustergate, *words, *options, CLUSTERGATE_HOME=str(home))
    return ended.returncode, ended.stdout + ended.stderr


def test_the_nodes_behind_a_slow_link_and_a_dead_link_are_named(
    virtual: Virtual, stacks: Path
) -> None:
    assert virtual("fault", "slow-link", "n3", "100mbit").returncode == 0
    status, said = screened(virtual, stacks, "--budget", "6m")
    virtual("fault", "mend", "n3")
    assert status == 1, said
    assert "node n3: " in said
    assert "bandwidth at 4 MiB" in said
    assert "scontrol update NodeName=n3 State=DRAIN" in said
    assert virtual("fault", "link-down", "n4").returncode == 0
    status, said = screened(virtual, stacks, "--budget", "12m")
    virtual("fault", "mend", "n4")
    assert status == 1, said
    assert "node n4: failed" in said
