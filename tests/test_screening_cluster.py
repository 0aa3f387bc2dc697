"""A screening across the nodes of a virtual cluster that is stopped in the middle."""

import sys
import time
from pathlib import Path
from typing import Any

import pytest

from clustergate.core.paths import checkout

pytestmark = [pytest.mark.cluster, pytest.mark.mpi]

SITE = str(checkout() / "ci" / "virtual_cluster.py")


def screened(virtual: Any, home: Path, *options: str) -> tuple[int, str]:
    """Screen the four nodes over ssh, without HPL; return the exit status and what was said."""
    ended = virtual("run", "head", *command(*options), CLUSTERGATE_HOME=str(home))
    return ended.returncode, ended.stdout + ended.stderr


def command(*options: str) -> list[str]:
    clustergate = str(Path(sys.executable).parent / "clustergate")
    words = ["screen", "--site", SITE, "--partition", "ssh", "--stack", "intel-mpi", "--hpl", "0"]
    return [clustergate, *words, *options]


def test_a_killed_screening_goes_on_where_it_was(virtual: Any, stacks: Path) -> None:
    runs = stacks / "results" / "runs"
    before = set(runs.glob("*"))
    options = ["--rounds", "2", "--budget", "12m"]
    with virtual.start("head", *command(*options), CLUSTERGATE_HOME=str(stacks)) as running:
        while True:
            assert running.poll() is None
            found = [
                p for new in set(runs.glob("*")) - before for p in new.glob("*/launches.jsonl")
            ]
            if found and "pingpong" in found[0].read_text():
                break
            time.sleep(0.2)
        running.kill()
    (where,) = found
    kept = [line for line in where.read_text().splitlines() if "pingpong" in line]
    status, said = screened(virtual, stacks, "--resume", where.parents[1].name)
    assert status in (0, 2), said
    after = where.read_text()
    assert all(line in after.splitlines() for line in kept)
    assert '"ended"' in after
