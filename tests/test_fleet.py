"""Nodes beside each other: made ones by the thousand, with faults that are known."""

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest

from clustergate import cli
from clustergate.core import store
from clustergate.core.model import CaseRecord
from clustergate.judge.history.node_states import keep_states
from clustergate.machine.changes import describe_one
from clustergate.machine.fingerprint import to_record
from clustergate.machine.fleet import deviations, kinds_of

NODE: dict[str, dict[str, Any]] = {
    "hardware": {
        "processor": "EPYC 7763",
        "system_product": "R6525",
        "cores": 128,
        "microcode": "0xa0011d1",
        "bios_version": "2.4",
        "memory_total_gib": 251.5,
    },
    "kernel": {
        "release": "5.14.0-427",
        "transparent_huge_pages": "always",
        "governor": "performance",
        "mounts": ["/ xfs rw", "/scratch lustre rw,flock"],
        "mitigations": [],
    },
    "limits": {"locked_memory_bytes": "unlimited"},
    "network": {
        "interface.eth0.mtu_bytes": 9000,
        "infiniband.mlx5_0.firmware": "20.35.1012",
        "infiniband.mlx5_0.pci_link": "16.0 GT/s PCIe x16",
        "infiniband.mlx5_0 port 1.rate": "200 Gb/sec (4X HDR)",
        "infiniband.mlx5_0 port 1.gids": "2 RoCE v2",
    },
    "software": {"drivers": ["mlx5_core 5.8-2.0.3"]},
}


def node(**changes: Any) -> dict[str, dict[str, Any]]:
    """Return a node with some values changed: ``kernel_release="…"``."""
    made = copy.deepcopy(NODE)
    for key, value in changes.items():
        group, _, name = key.partition("_")
        made[group][name] = value
    return made


def nodes(count: int, first: int = 1, **changes: Any) -> dict[str, Any]:
    return {f"n{i:04d}": node(**changes) for i in range(first, first + count)}


def told(states: Any, golden: Any = None) -> list[tuple[str, tuple[str, ...]]]:
    odd = deviations(kinds_of(states), states, golden)
    return [(describe_one(one.change), one.nodes) for one in odd]


def test_nodes_that_are_alike_are_not_told() -> None:
    # A kernel keeps some MB more or less for itself.
    states = {**nodes(20), "n0003": node(hardware_memory_total_gib=251.4)}
    assert len(kinds_of(states)) == 1
    assert told(states) == []


def test_thousands_of_nodes_of_three_kinds_with_known_faults() -> None:
    fat = {"hardware_memory_total_gib": 1007.5}
    other = {"hardware_processor": "Xeon 8480", "hardware_cores": 112, "kernel_governor": "x"}
    states = {**nodes(3000), **nodes(400, 3001, **fat), **nodes(1600, 3401, **other)}
    states["n0007"] = node(kernel_release="5.14.0-362")
    states["n0100"] = node(hardware_memory_total_gib=235.8)
    states["n0200"] = node(**{"network_infiniband.mlx5_0.pci_link": "8.0 GT/s PCIe x16"})
    states["n0201"] = node(**{"network_infiniband.mlx5_0.pci_link": "8.0 GT/s PCIe x16"})
    states["n3007"] = node(**fat, kernel_mounts=["/ xfs rw"])
    states["n4000"] = node(**other, hardware_microcode="0x1")
    gone = node()
    for name in [name for name in gone["network"] if name.startswith("infiniband")]:
        del gone["network"][name]
    states["n0300"] = gone
    kinds = kinds_of(states)
    assert [(len(kind.nodes), kind.title) for kind in kinds] == [
        (3000, "R6525, EPYC 7763, 251.5 GiB"),
        (1600, "R6525, Xeon 8480, 251.5 GiB"),
        (400, "R6525, EPYC 7763, 1007.5 GiB"),
    ]
    found = dict(told(states))
    assert found.pop("kernel release 5.14.0-427 -> 5.14.0-362") == ("n0007",)
    assert found.pop("memory total 251.5 GiB -> 235.8 GiB") == ("n0100",)
    link = "infiniband mlx5_0 pci link 16.0 GT/s PCIe x16 -> 8.0 GT/s PCIe x16"
    assert found.pop(link) == ("n0200", "n0201")
    assert found.pop("mounts without /scratch lustre rw,flock") == ("n3007",)
    assert found.pop("microcode 0xa0011d1 -> 0x1") == ("n4000",)
    # A card that is not there: itself and its port, with all they had.
    assert set(found.values()) == {("n0300",)}
    assert all("mlx5_0" in what and what.endswith("-> absent") for what in found)
    assert len(found) == 2


def test_where_half_differ_it_is_told_that_no_more_have_it() -> None:
    states = {**nodes(2), **nodes(2, 3, kernel_transparent_huge_pages="never")}
    (odd,) = deviations(kinds_of(states), states)
    assert odd.share == 0.5
    assert len(odd.nodes) == 2


def test_a_golden_node_finds_what_all_have_wrong() -> None:
    states = nodes(10, kernel_governor="powersave")
    states["n0004"] = node(kernel_governor="schedutil")
    assert told(states) == [("governor powersave -> schedutil", ("n0004",))]
    found = told(states, node())
    assert ("governor performance -> schedutil", ("n0004",)) in found
    assert found[-2][0] == "governor performance -> powersave"
    assert len(found) == 3
    assert len(found[-2][1]) == 9
    # Nothing is said of nodes of another product by it.
    assert told(nodes(3, hardware_system_product="other"), node()) == []


# --- clustergate fleet ------------------------------------------------------------------------


@pytest.fixture
def screened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A run with four nodes, of which one has another kernel."""
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path / "home"))
    said = tmp_path / "said"
    said.mkdir()
    for name, release in (("n1", "6.1"), ("n2", "6.1"), ("n3", "6.2"), ("n4", "6.1")):
        (said / name).write_text(f"hardware.processor\tP\nkernel.release\t{release}\n")
    run_id = "20261101T080000Z-1"
    keep_states(said, store.run_folder(run_id))
    return run_id


def fleet(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    status = cli.main(["fleet", *words])
    said = capsys.readouterr()
    return status, said.out + said.err


def test_the_odd_node_is_named_with_what_it_should_have(
    screened: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, said = fleet(capsys)
    assert status == 1
    head, answer, _, _, row, *_ = said.splitlines()[1:]
    assert head == f"clustergate fleet   run {screened}   4 nodes, 1 kind"
    assert answer == " ✗ UNLIKE THE REST: 1 of 4 nodes is: n3"
    assert row.split("   ")[:2] == ["n3 (1)", "kernel release 6.1 -> 6.2"]
    assert "75 % of its kind" in row
    assert "   kind A: 4 nodes, P: n[1-4]\n" in said
    assert said.endswith("clustergate fleet: exit status 1: some nodes are unlike the rest\n")


def test_many_differences_are_told_in_twenty_lines_and_whole_when_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path / "home"))
    said = tmp_path / "said"
    said.mkdir()
    for number in range(1, 100):
        values = {f"kernel.x{k}": "1" if number < 60 else str(number % (k + 2)) for k in range(20)}
        lines = [f"{name}\t{value}" for name, value in values.items()]
        (said / f"n{number}").write_text("\n".join(["hardware.processor\tP", *lines, ""]))
    keep_states(said, store.run_folder("20261101T080000Z-1"))
    monkeypatch.setenv("COLUMNS", "80")
    status, told = fleet(capsys)
    assert status == 1
    assert len(told.splitlines()) <= 21
    assert max(map(len, told.splitlines()[:-5])) <= 80
    assert re.search(r"^   \d+ more lines.* \(--all\)$", told, re.MULTILINE)
    status, whole = fleet(capsys, "--all")
    assert whole.count(" -> ") > 50
    assert "more line" not in whole


def test_a_golden_node_by_name_and_by_file(
    screened: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, said = fleet(capsys, screened, "--golden", "n3")
    assert status == 1
    assert "n[1-2,4] (3)" in said
    assert "the golden node" in said
    golden = tmp_path / "golden.json"
    state: dict[str, Any] = {"hardware": {"processor": "P"}, "kernel": {"release": "6.2"}}
    golden.write_text(json.dumps(to_record(state)))
    assert fleet(capsys, screened, "--golden", str(golden)) == (status, said)
    status, said = fleet(capsys, "--golden", "n9")
    assert status == 2
    assert "n9 is neither a node of the run nor a file" in said
    assert "n[1-4]" in said


def test_nodes_that_said_nothing_are_not_called_like_the_rest(
    screened: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """All that were seen were alike, and of the one that had died nobody spoke."""
    assert fleet(capsys, "--golden", "n1")[0] == 1
    (store.run_folder(screened) / "nodes.jsonl").unlink()
    said = store.run_folder(screened).parent / "said"
    said.mkdir()
    for name in ("n1", "n2"):
        (said / name).write_text("hardware.processor\tP\n")
    keep_states(said, store.run_folder(screened))
    assert fleet(capsys)[0] == 0
    hosts = {"proof": {"hosts": ["n1.cluster", "n2.cluster", "n3.cluster"]}}
    store.write_case(screened, CaseRecord("x", "HplCheck", "mpich", "alpha:cpu", {}, details=hosts))
    status, told = fleet(capsys)
    assert status == 2
    assert "n3.cluster took part and did not report their state" in told
    assert " ~ NOT ALL COMPARED: all others are like the rest\n" in told
    assert fleet(capsys, "--json")[0] == 2


def test_without_states_it_says_how_to_get_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path / "home"))
    status, said = fleet(capsys)
    assert status == 2
    assert "`clustergate screen`" in said


def test_a_node_alone_is_not_called_like_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path / "home"))
    (tmp_path / "n1").write_text("hardware.processor\tP\n")
    (tmp_path / "said").mkdir()
    (tmp_path / "n1").rename(tmp_path / "said" / "n1")
    keep_states(tmp_path / "said", store.run_folder("20261101T080000Z-1"))
    assert fleet(capsys, "--json")[0] == 2
    status, said = fleet(capsys)
    assert status == 2
    assert "n1: nothing to compare with, the only one of its kind" in said
    assert "all are like" not in said
