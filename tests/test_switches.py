"""Switches as scontrol and ibnetdiscover print them, and screenings that know some of them."""

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest

from clustergate.benchmarks.budget import Budget
from clustergate.core.model import ClustergateError
from clustergate.launch.plan import LOG
from clustergate.sites.schedulers import slurm
from clustergate.studies.screen import folder, switches
from clustergate.studies.screen.findings import analyse
from clustergate.studies.screen.localisation import Unit
from clustergate.studies.screen.measures import Result
from clustergate.studies.screen.plan import Plan
from clustergate.studies.screen.rounds import rounds
from clustergate.studies.screen.switches import (
    known_switches,
    switches_of_ibnetdiscover,
    switches_of_slurm,
)

# As scontrol(1) and topology.conf(5) of Slurm 22.05 have it, with a switch of switches on top.
SLURM = """\
SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[001-003]
SwitchName=leaf2 Level=0 LinkSpeed=1 Nodes=n[004-005],login1
SwitchName=top Level=1 LinkSpeed=1 Nodes=login1,n[001-005] Switches=leaf[1-2]
"""
# In the form that ibnetdiscover(8) documents; names and GUIDs are made up.
FABRIC = """\
#
# Topology file: generated on Sat Nov 21 10:00:00 2026
#
# Initiated from node 98039b0300aa0001 port 98039b0300aa0001

vendid=0x2c9
devid=0xd2f0
sysimgguid=0x248a070300000010
switchguid=0x248a070300000010(248a070300000010)
Switch\t41 "S-248a070300000010"\t\t# "MF0;leaf1:MQM8700/U1" enhanced port 0 lid 1 lmc 0
[1]\t"H-98039b0300aa0001"[1](98039b0300aa0001) \t\t# "n001 HCA-1" lid 11 4xHDR
[2]\t"H-98039b0300aa0002"[1](98039b0300aa0002) \t\t# "n002.cluster mlx5_0" lid 12 4xHDR
[40]\t"S-248a070300000020"[40]\t\t# "MF0;leaf2:MQM8700/U1" lid 2 4xHDR

vendid=0x2c9
switchguid=0x248a070300000020(248a070300000020)
Switch\t41 "S-248a070300000020"\t\t# "Quantum Mellanox Technologies" base port 0 lid 2 lmc 0
[3]\t"H-98039b0300aa0003"[1](98039b0300aa0003) \t\t# "n003 HCA-1" lid 13 4xHDR
[4]\t"H-98039b0300aa0011"[1](98039b0300aa0011) \t\t# "n001 HCA-2" lid 14 4xHDR

vendid=0x2c9
caguid=0x98039b0300aa0001
Ca\t1 "H-98039b0300aa0001"\t\t# "n001 HCA-1"
[1](98039b0300aa0001) \t"S-248a070300000010"[1]\t\t# lid 11 lmc 0 "MF0;leaf1:MQM8700/U1" lid 1 4xHDR
"""


NAMES = [f"n{k:02d}" for k in range(16)]


def results(slow: dict[str, float]) -> list[Result]:
    """Return what pairs of a cluster show whose named nodes are so many times slower."""
    random = np.random.default_rng(3)
    found = []
    for turn, members in enumerate(rounds(len(NAMES))):
        for a, b in members.tolist():
            pair = (NAMES[a], NAMES[b])
            bad = max(slow.get(n, 1.0) for n in pair) * math.exp(random.normal(0, 0.01))
            values = {"pingpong_latency_us": 2 * bad, "pingpong_bandwidth_mb_s": 12000 / bad}
            found.append(Result(pair, "pingpong", turn, values))
    return found


def test_leaves_of_slurms_tree() -> None:
    assert switches_of_slurm(SLURM) == {
        **dict.fromkeys(("n001", "n002", "n003"), "leaf1"),
        **dict.fromkeys(("n004", "n005", "login1"), "leaf2"),
    }


@pytest.mark.parametrize(
    "text", ["", "slurm_load_topo error: x\n", "SwitchName=s Level=0 LinkSpeed=1 Nodes=(null)\n"]
)
def test_a_slurm_without_a_topology_says_nothing(text: str) -> None:
    assert switches_of_slurm(text) == {}


def test_blocks_are_switches_too() -> None:
    text = "BlockName=b1 BlockIndex=0 Nodes=n[1-2] BlockSize=2\n"
    assert switches_of_slurm(text) == {"n1": "b1", "n2": "b1"}


@pytest.mark.parametrize(
    "text",
    [
        "SwitchName=s0 Nodes=n[1-2],\\\nn5\nSwitchName=s1 Switches=s0\n",
        "SwitchName=s0 \\\r\n  Nodes=n[1-2],n5\r\n",
        'SwitchName="s0" Nodes="n[1-2,5]" LinkSpeed=9\n',
        "switchname = s0 nodes = n[1-2,5]\n",
        "---\n- topology: default\n  cluster_default: true\n  tree:\n    switches:\n"
        "      - switch: top\n        children: s[0-1]\n"
        "      - {switch: s0, nodes: 'n[1-2,5]'}\n",
    ],
    ids=["continued", "crlf", "quoted", "spaces", "yaml"],
)
def test_a_topology_is_read_as_slurm_reads_it(text: str) -> None:
    assert switches_of_slurm(text) == {"n1": "s0", "n2": "s0", "n5": "s0"}


def test_a_topology_conf_says_what_scontrol_says() -> None:
    conf = """\
# n[001-099] on Switches=none
SwitchName=leaf1 Nodes=n[001-003] # the first rack
switchname=leaf2 LinkSpeed=100 \\
  nodes=n[004-005],login1
SwitchName=top Switches=leaf[1-2]
"""
    assert switches_of_slurm(conf) == switches_of_slurm(SLURM)
    assert switches_of_slurm("BlockName=b1 Nodes=n[1-2]\nBlockSizes=2\n") == {
        "n1": "b1",
        "n2": "b1",
    }


UNMANAGED = "S-248a070300000020"


@pytest.mark.parametrize(
    ("devices", "n001"),
    [([], None), (["HCA-1"], "leaf1"), (["HCA-2"], UNMANAGED), (["HCA-1", "HCA-2"], None)],
)
def test_node_with_two_rails_on_the_used_adapters_switch(
    devices: list[str], n001: str | None
) -> None:
    """A node with two rails is on the switch of the adapter that is used."""
    found = switches_of_ibnetdiscover(FABRIC, devices)
    assert found.pop("n001", None) == n001
    assert found == {"n002": "leaf1", "n003": UNMANAGED}


# In the form of dump_ports_report() of ibnetdiscover; names and GUIDs are those above.
LEAF, BARE = "'MF0;leaf1:MQM8700/U1'", "'Quantum Mellanox Technologies'"
PORTS = f"""\
CA    11  1 0x98039b0300aa0001 4x HDR - SW     1  1 0x248a070300000010 ( 'n001 HCA-1' - 'leaf1' )
SW     1  1 0x248a070300000010 4x HDR - CA    11  1 0x98039b0300aa0001 ( {LEAF} - 'n001 HCA-1' )
SW     1  2 0x248a070300000010 4x HDR - CA    12  1 0x98039b0300aa0002 ( {LEAF} - 'n002.x mlx5_0' )
SW     1 40 0x248a070300000010 4x HDR - SW     2 40 0x248a070300000020 ( {LEAF} - {BARE} )
SW     1 41 0x248a070300000010 4x SDR                                    {LEAF}
SW     2  3 0x248a070300000020 4x HDR - CA    13  1 0x98039b0300aa0003 ( {BARE} - 'n003 HCA-1' )
SW     2  4 0x248a070300000020 4x HDR - CA    14  1 0x98039b0300aa0011 ( {BARE} - 'n001 HCA-2' )
"""


@pytest.mark.parametrize("devices", [[], ["HCA-1"], ["HCA-2"]])
def test_the_list_of_ports_says_what_the_topology_says(devices: list[str]) -> None:
    found = switches_of_ibnetdiscover(FABRIC, devices)
    assert switches_of_ibnetdiscover(PORTS, devices) == found


def test_file_of_one_rail_says_nothing_of_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of one rail says nothing of the other than that Slurm's may be wrong."""
    monkeypatch.setattr(slurm, "answer_of_slurm", lambda words: SLURM)
    fabric = tmp_path / "alpha.ibnetdiscover"
    fabric.write_text(PORTS)
    assert "n001" not in known_switches("slurm", fabric)
    assert known_switches("slurm", fabric, ["HCA-2"])[0]["n001"] == UNMANAGED
    fabric.write_text("SwitchName=s9 Nodes=n001\n")
    assert known_switches("slurm", fabric)[0] == {**switches_of_slurm(SLURM), "n001": "s9"}


def test_boards_of_a_director_are_switches_of_their_own() -> None:
    board = """\
Switch\t36 "S-{guid}"\t\t# "MF0;core1:CS7500/L{board}/U1" enhanced port 0 lid 7 lmc 0
[19][ext {board}]\t"H-98039b0300aa00{board}"[1](98039b0300aa0001) \t# "n0{board} HCA-1" lid 11

"""
    text = "".join(board.format(guid=f"248a0703000000{n}", board=n) for n in (10, 11))
    assert switches_of_ibnetdiscover(text) == {"n010": "core1/L10/U1", "n011": "core1/L11/U1"}


def test_the_file_goes_before_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm, "answer_of_slurm", lambda words: SLURM)
    fabric = tmp_path / "alpha.ibnetdiscover"
    assert known_switches("slurm", fabric)[0]["n003"] == "leaf1"
    assert known_switches("local", fabric)[0] == {}
    fabric.write_text(FABRIC)
    found, _ = known_switches("slurm", fabric)
    assert (found["n003"], found["n004"]) == ("S-248a070300000020", "leaf2")


@pytest.mark.parametrize("text", [b"", b"no fabric\n", b"\x80\xff\0" * 99])
def test_a_file_that_names_no_node_is_refused(tmp_path: Path, text: bytes) -> None:
    fabric = tmp_path / "alpha.ibnetdiscover"
    fabric.write_bytes(text)
    with pytest.raises(
        ClustergateError, match=r"alpha\.ibnetdiscover connects no node to a switch"
    ):
        known_switches("local", fabric)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ClustergateError, match="cannot be read"):
        known_switches("local", tmp_path)


def test_a_controller_that_answers_in_another_encoding_is_no_bug(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scontrol = tmp_path / "scontrol"
    scontrol.write_text(
        "#!/bin/sh\nprintf 'SwitchName=k\\374hl Level=0 LinkSpeed=1 Nodes=n[1-2]'\n"
    )
    scontrol.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert known_switches("slurm", tmp_path / "none")[0].keys() == {"n1", "n2"}


@pytest.mark.parametrize(
    ("script", "switch_of", "told"),
    [
        pytest.param("echo ' error' >&2; exit 1", {}, "which switch a node is on (error)", id="no"),
        pytest.param("echo '<html>502</html>'", {}, "'<html>502</html>'", id="garbage"),
        pytest.param(None, {}, "there is no scontrol on PATH", id="without"),
        # What Slurm prints without topology.conf.
        pytest.param("echo 'No topology information available' >&2", {}, "", id="none"),
        pytest.param(
            'if [ -e "$0.asked" ]; then echo "SwitchName=s1 Level=0 Nodes=n1"; '
            'else : > "$0.asked"; exit 1; fi',
            *({"n1": "s1"}, ""),
            id="no-at-first",
        ),
    ],
)
def test_a_controller_that_does_not_answer_is_not_without_switches(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    script: str | None,
    switch_of: dict[str, str],
    told: str,
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(switches, "_PAUSE_S", 0.0)
    if script:
        scontrol = tmp_path / "scontrol"
        scontrol.write_text(f"#!/bin/sh\n{script}\n")
        scontrol.chmod(0o755)
    found, why = known_switches("slurm", tmp_path / "none")
    assert found == switch_of
    assert told in why
    assert bool(why) is bool(told)


def test_what_is_known_of_some_nodes_is_used() -> None:
    plan = Plan("x", [], Budget(seconds=1.0), 1, switches={"n1": "a", "n2": "a", "n3": "b"})
    found = plan.switch_of(["n1", "n2", "n3", "n4", "n5"])
    assert found is not None
    assert (found["n1"], found["n2"], found["n3"]) == ("a", "a", "b")
    # They share no switch with anybody, and so no blame.
    assert len({found["n4"], found["n5"], "a", "b"}) == 4
    alone = dataclasses.replace(plan, switches={"n1": "a", "n2": "b"})
    assert alone.switch_of(["n1", "n2", "n3"]) is None


def test_nodes_with_long_names_are_found_in_the_fabric() -> None:
    plan = Plan("x", [], Budget(seconds=1.0), 1, switches={"n1": "a", "n2": "a", "n3.x": "b"})
    found = plan.switch_of(["n1.x", "n2.x", "n3.x"])
    assert found == {"n1.x": "a", "n2.x": "a", "n3.x": "b"}


@pytest.mark.parametrize("known", [{}, {"n1": "a", "n2": "a", "n3": "b"}, {"m1": "a"}])
def test_nodes_whose_switch_is_not_known_are_told(tmp_path: Path, known: dict[str, str]) -> None:
    names = ["n1", "n2", "n3", "n4"]
    plan = Plan("x", [], Budget(seconds=1.0), 1, nodes=names, switches=known)
    folder.start_or_resume(tmp_path, plan)
    (tmp_path / LOG).touch()
    notes = [note for note in folder.read_screening(tmp_path)[1].notes if "switch" in note]
    told = {3: "the switch of 1 of 4 nodes is not known (n4); ", 1: "the switch of 4 of 4 nodes "}
    assert len(notes) == bool(known)
    assert all(note.startswith(told[len(known)]) for note in notes)


def test_slow_switch_named_though_others_are_unknown() -> None:
    known = {name: f"s{k // 4}" for k, name in enumerate(NAMES) if k < 8}
    plan = Plan("x", [], Budget(seconds=1.0), 1, switches=known)
    slow = dict.fromkeys(NAMES[:4], 2.0)
    found = analyse(NAMES, results(slow), plan.switch_of(NAMES))
    assert {finding.unit for finding in found.findings} == {Unit.SWITCH}
    assert {finding.switches for finding in found.findings} == {("s0",)}
    assert found.findings[0].nodes == tuple(NAMES[:4])
    # One of which nothing is known is a node by itself.
    found = analyse(NAMES, results({NAMES[11]: 2.0}), plan.switch_of(NAMES))
    assert [(one.unit, one.nodes) for one in found.findings] == [(Unit.NODE, (NAMES[11],))]
