"""Rolling the nodes of a virtual cluster, of which one is slow, while users' jobs run there."""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clustergate.core.paths import checkout
from clustergate.studies.roll.ledger import Event, Ledger
from tests.conftest import PATIENCE_S

pytestmark = [pytest.mark.cluster, pytest.mark.mpi]

SITE = str(checkout() / "ci" / "virtual_cluster.py")
SYSTEM = "virtual-cluster"


class Rolled:
    """A virtual cluster that is rolled: by commands on its head, seen by its ledger."""

    def __init__(self, virtual: Any, home: Path) -> None:
        self._virtual, self._home = virtual, home
        self.folder = home / "results" / "roll" / SYSTEM

    def command(self, *options: str) -> list[str]:
        clustergate = str(Path(sys.executable).parent / "clustergate")
        return [clustergate, "roll", "--site", SITE, "--stack", "mpich", *options]

    def __call__(self, *options: str) -> tuple[int, str]:
        """Call it once; return the exit status and what it said."""
        words = self.command(*options)
        ended = self._virtual("run", "head", *words, CLUSTERGATE_HOME=str(self._home))
        return ended.returncode, ended.stdout + ended.stderr

    def head(self, *words: str) -> str:
        ended = self._virtual("run", "head", *words)
        return str(ended.stdout + ended.stderr)

    def events(self, kind: str) -> list[Event]:
        return [one for one in Ledger(self.folder).read_new()[0] if one["event"] == kind]

    def until(self, seen: Callable[[], bool], *options: str) -> None:
        """Look again and again until something is seen."""
        until = time.monotonic() + PATIENCE_S
        while not seen():
            assert time.monotonic() < until, self.head("squeue")
            status, said = self("--once", "--share", "100", *options)
            assert status in (0, 1), said
            time.sleep(2)


@pytest.fixture(scope="module")
def rolled(virtual: Any, stacks: Path, tmp_path_factory: pytest.TempPathFactory) -> Rolled:
    home = tmp_path_factory.mktemp("home")
    for name in ("manifests", "prefixes", "builds", "cache"):
        (home / name).symlink_to(stacks / name)
    return Rolled(virtual, home)


def test_idle_nodes_are_seen_and_a_busy_one_is_left_to_its_user(rolled: Rolled) -> None:
    user = ["--job-name=user", "--exclusive", "--nodelist=n1", "--output=/dev/null"]
    number = rolled.head("sbatch", "--parsable", *user, "--wrap=sleep 900").strip()
    try:
        rolled.until(
            lambda: {n for one in rolled.events("look") for n in one["nodes"]} >= {"n2", "n3", "n4"}
        )
        assert f"{number} RUNNING" in rolled.head("squeue", "--noheader", "--format=%i %T")
        assert not any("n1" in one["nodes"] for one in rolled.events("look"))
    finally:
        rolled.head("scancel", number)
    measured = [one for one in rolled.events("look") if one["values"]]
    assert all(value > 0 for one in measured for value in one["values"].values())


def test_drained_by_its_accusation_as_sinfo_shows_it_and_resumed(rolled: Rolled) -> None:
    why = {"why": "as if", "short": "mem -21%", "log_evidence": 99.0, "log_bound": 11.0}
    own = {"name": "a1", "node": "n4", "kind": "alone", **why}
    Ledger(rolled.folder).append({"event": "accused", "at": time.time(), **own})
    status, said = rolled("--once", "--act", "drain")
    assert status == 1, said
    assert "roll a1 mem -21%" in rolled.head("sinfo", "-R")
    status, said = rolled("--status")
    assert status == 1
    assert "a1-drain n4: done" in said
    status, said = rolled("--undo", "a1")
    assert status == 0, said
    assert "roll a1" not in rolled.head("sinfo", "-R")
    assert rolled("--status")[0] == 0


def test_a_held_node_takes_the_screening_first(rolled: Rolled) -> None:
    user = ["--job-name=user", "--exclusive", "--output=/dev/null"]
    for node in ("n1", "n2", "n3", "n4"):
        for seconds in ("20", "600"):
            words = [f"--nodelist={node}", f"--wrap=sleep {seconds}"]
            rolled.head("sbatch", "--parsable", *user, *words)
    try:
        # Each is overdue at once, and busy; the second job of a user waits on each.
        hold = ["--every", "1s", "--act", "hold", "--hold-after", "1s", "--per-hour", "9"]
        rolled.until(
            lambda: any(
                (one["kind"], one["outcome"]) == ("hold", "undone")
                for one in rolled.events("acted")
            ),
            *(*hold, "--most", "100"),
        )
    finally:
        rolled.head("scancel", "--name=user")
    acted = [json.dumps(one) for one in rolled.events("acted") if one["kind"] == "hold"]
    assert any("done" in one and "create reservation" in one for one in acted), acted
    rolled.until(lambda: "ReservationName" not in rolled.head("scontrol", "show", "reservation"))
