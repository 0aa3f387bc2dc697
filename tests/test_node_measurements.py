"""Peaks that the jobs of a run share: what makes them be measured again, and what does not.

A fake kernel reads the rates of the node from a file, so that a test can change the node.
"""

import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path

import pytest

from clustergate.benchmarks.budget import Budget
from clustergate.launch import node_measurements
from clustergate.launch.node_measurements import NodeMeasurements
from clustergate.launch.plan import NODES, Aside, Plan
from clustergate.machine import fingerprint
from clustergate.machine import node as machine_node
from clustergate.machine.kernels.peaks import parse_peaks
from clustergate.machine.peaks import peaks_of

QUIET = {"fma_peak": 100.0, "triad": 20.0, "triad_glance": 22.0, "virtual": 0.0}


def trial(kind: str, number: int, value: float, virtual: int) -> str:
    told = {"measurement": kind, "cores": [0, 1], "trial": number, "seconds": 0.02}
    if kind == "fma_peak":
        told |= {"vector": "avx2", "virtual": virtual, "gflops": value / 2, "undisturbed": value}
    else:
        told |= {"array_mib": 16, "bandwidth_gb_s": value / 2, "undisturbed": value}
    return json.dumps({**told, "cpu_share": 0.5})


class Node:
    """A node that is looked at by the jobs of a run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rates = dict(QUIET)
        self.ran: list[str] = []
        self.jobs = 0
        self.uptime_s = 1000.0
        self.on_each_node: list[str] = []
        self.state = {"kernel.governor": "performance"}

    def run(self, command: Sequence[str], output: str) -> str:
        (asked,) = command
        self.ran.append(asked)
        kinds = ("fma_peak", "triad_glance" if asked == "glance" else "triad")
        lines = [
            trial(kind, number, self.rates[kind] * factor, int(self.rates["virtual"]))
            for kind in kinds
            for number, factor in enumerate((0.99, 1.0, 1.01))
        ]
        return "\n".join([*lines, '{"measurement":"end","count":6}']) + "\n"

    def job(
        self,
        meanwhile: dict[str, float] | None = None,
        depends_on: str = "k=192",
        after_s: float = 60.0,
        distances_ns: Sequence[float] = (),
    ) -> list[str]:
        """Go through a job, so long after the last one; return what it ran.

        During its launches rates may change.
        """
        self.jobs += 1
        self.uptime_s += after_s
        self.at = self.folder / f"job-{self.jobs}"
        (self.at / NODES).mkdir(parents=True)
        said = "".join(f"{name}\t{value}\n" for name, value in self.state.items())
        (self.at / NODES / platform.node()).write_text(said)
        aside = Aside("node_peaks", ["whole"], ["glance"], depends_on)
        kept_in = str(self.folder / "peaks")
        plan = Plan(
            "word",
            [],
            Budget(1, 1),
            1,
            asides=[aside],
            kept_in=kept_in,
            on_each_node=self.on_each_node,
        )
        self.ran.clear()
        asides = NodeMeasurements(plan, self.at, self.run)
        asides.before()
        self.near_ns = asides.near_ns
        self.rates |= meanwhile or {}
        asides.after()
        asides.keep_distances(distances_ns)
        return list(self.ran)

    def highest(self, kind: str) -> float:
        """Return the most that figures of the last job may have."""
        files = [self.at / f"node_peaks-{when}.jsonl" for when in ("before", "after")]
        rows = [row for file in files for row in parse_peaks(file.read_text().splitlines())]
        (peak,) = [peak for peak in peaks_of(rows) if peak.kind == kind]
        return peak.at_most


FIRST = ["whole", "glance", "glance"]
KNOWN = ["glance", "glance"]


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    made = Node(tmp_path)
    monkeypatch.setattr(node_measurements, "_uptime_s", lambda: made.uptime_s)
    return made


def test_a_node_that_stays_as_it_is_is_measured_once(node: Node) -> None:
    assert [node.job() for _ in range(3)] == [FIRST, KNOWN, KNOWN]
    assert node.highest("fma_peak") == pytest.approx(103.0)
    # What the caches had a part in is no bandwidth.
    assert node.highest("triad") == pytest.approx(20.4, rel=0.01)


def test_last_glance_of_a_job_serves_the_next_at_once(node: Node) -> None:
    node.job()
    assert [node.job(after_s=1.0) for _ in range(2)] == [["glance"]] * 2
    # It counts with the peaks like any other.
    before = (node.at / "node_peaks-before.jsonl").read_text()
    assert before.count("triad_glance") == 3
    node.rates["fma_peak"] = 130.0
    assert node.job(after_s=1.0) == ["glance", "whole", "glance"]
    assert node.highest("fma_peak") > 130
    assert node.job(after_s=1.0) == ["glance"]
    # A clock that ran backwards says nothing of when that was.
    assert node.job(after_s=-10.0) == KNOWN


@pytest.mark.parametrize("kind", ["fma_peak", "triad_glance"])
@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_changed_clocks_and_memory_measured_again(node: Node, kind: str, factor: float) -> None:
    node.job()
    node.rates[kind] *= factor
    assert node.job() == ["glance", *FIRST]
    assert node.highest("fma_peak") == pytest.approx(1.03 * node.rates["fma_peak"], rel=0.01)
    assert node.job() == KNOWN


def test_how_near_cores_are_is_known_to_later_jobs_on_the_node(node: Node) -> None:
    node.job(distances_ns=[310.0, 52.0, 55.0])
    assert node.near_ns is None
    # Both cores on one for a moment is not how near they usually are.
    node.job(distances_ns=[17.0, 312.0])
    assert node.near_ns == 52.0
    node.job()
    assert node.near_ns == 52.0
    node.state["kernel.governor"] = "powersave"
    node.job()
    assert node.near_ns is None
    for path in (node.folder / "peaks").iterdir():
        path.write_text('{"not": "a list"')
    node.job()
    assert node.near_ns is None


def test_a_figure_that_only_the_former_clock_allowed_is_impossible(node: Node) -> None:
    node.job()
    node.rates["fma_peak"] = 50.0
    node.job()
    assert node.highest("fma_peak") < 55


def test_a_figure_that_only_the_present_clock_allows_is_possible(node: Node) -> None:
    node.job()
    assert node.job({"fma_peak": 130.0}) == ["glance", "glance", "whole", "glance"]
    assert node.highest("fma_peak") > 130
    assert node.job() == KNOWN


def test_memory_measured_beside_others_bounds_nothing_later(node: Node) -> None:
    node.rates |= {"triad": 8.0, "triad_glance": 9.0}
    node.job()
    node.rates |= QUIET
    assert node.job() == ["glance", *FIRST]
    assert node.highest("triad") > 20


def test_allowed_change_on_a_virtual_machine_is_none(node: Node) -> None:
    node.rates["virtual"] = 1.0
    node.job()
    node.rates |= {"fma_peak": 91.0, "triad_glance": 16.0}
    assert node.job() == KNOWN
    node.rates["fma_peak"] = 80.0
    assert node.job() == ["glance", *FIRST]


@pytest.mark.parametrize(
    "changed",
    [
        {"boot_id": "another-boot"},
        {"limits.cgroup_cpus": "1.0"},
        {"limits.cpu_affinity": "0"},
        {"kernel.governor": "powersave"},
        {"kernel.boost": "false"},
    ],
)
def test_another_boot_cpuset_limit_or_setting_shares_nothing(
    node: Node, changed: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {
        "limits.cpu_affinity": "0-1",
        "limits.cgroup_cpus": "2.0",
        "kernel.governor": "performance",
        "kernel.boost": "true",
        "network.interface.eth0.state": "up",
    }
    boot = ["one-boot"]
    node.state = dict(told)
    monkeypatch.setattr(machine_node, "word", lambda path: boot[0])
    node.job()
    node.state["network.interface.eth0.state"] = "down"
    assert node.job() == KNOWN
    boot[0] = changed.pop("boot_id", boot[0])
    node.state |= changed
    assert node.job() == FIRST
    boot[0], node.state = "one-boot", told
    assert node.job() == KNOWN


def test_of_several_nodes_the_first_says_itself_how_it_is_set(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What a process of the launcher's may use is not what the peaks are measured with.
    monkeypatch.setattr(fingerprint, "read_node_state", lambda: "limits.cpu_affinity\t0-1\n")
    node.on_each_node = ["srun"]
    node.job()
    node.state["limits.cpu_affinity"] = "0"
    assert node.job() == KNOWN
    monkeypatch.setattr(fingerprint, "read_node_state", lambda: "limits.cpu_affinity\t0\n")
    assert node.job() == FIRST


def test_another_block_size_is_measured_for_itself(node: Node) -> None:
    node.job()
    assert node.job(depends_on="k=256") == FIRST


@pytest.mark.parametrize(
    "text", ["", "[]", '["", ""]', '["cut', '["lines", "of others"]', '["", "", "", 1.0]', "7"]
)
def test_what_another_job_left_half_is_measured_again(node: Node, text: str) -> None:
    node.job()
    (kept,) = (node.folder / "peaks").iterdir()
    kept.write_text(text)
    assert node.job() == FIRST


def test_a_node_that_does_not_tell_how_it_is_set_shares_nothing(node: Node) -> None:
    node.state = {}
    assert [node.job(), node.job()] == [FIRST, FIRST]


def test_the_time_of_day_plays_no_part(node: Node) -> None:
    node.job()
    (kept,) = (node.folder / "peaks").iterdir()
    os.utime(kept, (0, 0))
    assert node.job() == KNOWN
