"""Hostfiles: what they say, what each launcher is told, and what never reaches a shell."""

import datetime
import re
import string
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustergate.cli import main
from clustergate.launch import hostfiles
from clustergate.launch.hostfiles import (
    HostfileError,
    HostNode,
    expand,
    fold,
    parse_hostfile,
    render,
)

SMALL = """\
# a comment
n[1-3]  slots=4  switch=leaf1   # with a remark
big1    slots=64 switch=leaf2 rack=b

exclude n2 2026-11-20 broken memory, ticket #4711
"""


def test_nodes_slots_switches_and_exclusions_are_read():
    found = parse_hostfile(SMALL, "small")
    assert [node.name for node in found.nodes] == ["n1", "n2", "n3", "big1"]
    assert found.nodes[3] == HostNode("big1", 64, switch="leaf2", rack="b")
    assert [node.name for node in found.usable] == ["n1", "n3", "big1"]
    assert found.excluded["n2"].since == datetime.date(2026, 11, 20)
    assert str(found.excluded["n2"]) == "since 2026-11-20: broken memory, ticket #4711"


def test_the_template_can_be_read():
    found = hostfiles.read_hostfile(hostfiles.hostfile_path("template"))
    assert len(found.nodes) == 512
    assert fold(found.excluded) == "n[017,033]"
    assert found.nodes[0].switch == "leaf1"


def test_the_first_nodes_are_usable_and_large_enough():
    found = parse_hostfile(SMALL, "small")
    assert [node.name for node in found.first(2, slots=4)] == ["n1", "n3"]
    assert [node.name for node in found.first(1, slots=8)] == ["big1"]
    with pytest.raises(
        HostfileError, match="small: 2 nodes with 8 slots each requested, but only 1 of 4"
    ):
        found.first(2, slots=8)


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("openmpi", "n1 slots=4\nn3 slots=4\nbig1 slots=64\n"),
        ("hydra", "n1:4\nn3:4\nbig1:64\n"),
        ("mpirun_rsh", "n1:4\nn3:4\nbig1:64\n"),
    ],
)
def test_each_launcher_gets_its_dialect_without_the_excluded_nodes(dialect, text):
    assert render(parse_hostfile(SMALL, "small").usable, dialect) == text


def test_slurm_is_told_what_to_keep_out():
    assert hostfiles.slurm_options(parse_hostfile(SMALL, "small")) == ["--exclude=n2"]
    assert hostfiles.slurm_options(parse_hostfile("n1 slots=1", "one")) == []


def test_an_excluded_node_that_was_given_all_the_same_is_named():
    found = parse_hostfile(SMALL, "small")
    assert [*map(str, hostfiles.excluded_among(found, ["n1", "n2.cluster.example"]))] == [
        "the job was given n2.cluster.example, which small excludes since 2026-11-20: broken "
        "memory, ticket #4711; keep it out by an option of the scheduler"
    ]
    assert hostfiles.excluded_among(found, ["n1", "n20"]) == []


def test_ranges_are_written_in_the_last_number_only():
    assert fold(["r0n0", "r0n1", "r1n0", "r1n1"]) == "r0n[0-1],r1n[0-1]"
    assert fold(f"n{number:03}" for number in (1, 2, 3, 17)) == "n[001-003,017]"


def test_names_keep_the_order_of_the_file():
    assert expand("n2,n[10-11],login1") == ["n2", "n10", "n11", "login1"]
    assert expand("r[0-1]n[0-1]") == ["r0n0", "r0n1", "r1n0", "r1n1"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("n1", "nothing says how many ranks fit on n1; write `n1 slots=CORES`"),
        ("n1:0", "slots= must be a number from 1 to 999999, not '0'"),
        ("n1:4 slots=4", "slots= is given twice"),
        ("n1:x", "'n1:x' is not a node name"),
        ("n1 slots=4 max_slots=x", "slots= must be a number"),
        ("n1 max_slots=8", "slots= must be a number from 1 to 999999, not ''"),
        ("first", "first is already listed in line 1"),
        ("n1 slots=0", "slots= must be a number"),
        ("n1 slots=4.5", "slots= must be a number"),
        ("n1 slots=٤", "slots= must be a number"),
        ("n1 slots=4 slots=4", "slots= is given twice"),
        ("n1 slots=4 color=red", "'color=red' is not understood"),
        ("n1 n2 slots=4", "'n2' is not understood"),
        ("exlude n2 2026-11-20 broken fan", "'exlude' is not understood; did you mean 'exclude'?"),
        ("exclude1 slots=4 slots=4", "slots= is given twice"),
        ("n1 slots=4 switch=", "switch= must be a name"),
        ("n[1-3 slots=4", "is not a node name"),
        ("n[3-1] slots=4", "is not a node name"),
        ("n[1-2],n2 slots=4", "n2 is already listed in line 2"),
        ("n[1-999999999] slots=4", "more than 131072 nodes"),
        ("r[1-9999]n[1-9999] slots=4", "more than 131072 nodes"),
        ("n1,,n2 slots=4", "'' is not a node name"),
        ("first slots=4", "first is already listed in line 1"),
        ("exclude first", "an exclusion needs nodes, a date and a reason"),
        ("exclude first 2026-11-20", "an exclusion needs nodes, a date and a reason"),
        ("exclude first 2026-13-20 broken", "'2026-13-20' is not a date"),
        ("exclude first 20261120 broken", "'20261120' is not a date"),
        ("exclude n9 2026-11-20 broken", "n9 is excluded, but no line lists it"),
    ],
)
def test_a_line_that_is_wrong_is_named(line, message):
    with pytest.raises(HostfileError, match=re.escape(message)) as caught:
        parse_hostfile(f"first slots=1\n{line}\n", "hosts")
    assert str(caught.value).startswith("hosts:2: ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# nothing\n", "hosts: it lists no node"),
        ("n1 slots=1\nexclude n1 2026-11-20 dead\n", "hosts: every node is excluded"),
        ("n1 slots=1\nn1.site slots=1\n", "hosts:2: n1.site is n1 of line 1 by its whole name"),
        ("n1 slots=1\nexclude n1 2026-11-20 a\nexclude n1 2026-11-21 b\n", "hosts:3: n1 is alr"),
    ],
)
def test_a_file_that_names_nothing_to_run_on_is_refused(text, message):
    with pytest.raises(HostfileError, match=re.escape(message)):
        parse_hostfile(text, "hosts")


HOSTILE = [
    "n1;id",
    "$(id)",
    "`id`",
    "n1|id",
    "n1&id",
    "n'1",
    'n"1',
    "-oProxyCommand=id",
    "--version",
    "@all",
    "n1!n2",
    "*",
    "n?",
    "n1\\n2",
    "n1>out",
    "~root",
    "{n1,n2}",
    "n1:2",
    "../n1",
    "n[$(id)]",
    "n[1-2;id]",
    "n1\x00",
    "nö",
    "n１",
]


@pytest.mark.parametrize("word", HOSTILE)
def test_a_hostile_word_is_refused_wherever_it_stands(word):
    lines = [
        f"{word} slots=1",
        f"n1 slots={word}",
        f"n1 slots=1 switch={word}",
        f"n1 slots=1 rack={word}",
        f"n1 slots=1 {word}",
        f"n1 slots=1\nexclude {word} 2026-11-20 broken",
        f"n1 slots=1\nexclude n1 {word} broken",
    ]
    for line in lines:
        with pytest.raises(HostfileError):
            parse_hostfile(line, "hosts")
    with pytest.raises(HostfileError):
        render([HostNode(word, 1)], "hydra")
    with pytest.raises(HostfileError):
        fold([word])


@pytest.mark.parametrize("reason", ["$(id)", "a;b", "a'b", "`id`", "a\x1b[31m", "a\\b", "x" * 201])
def test_a_hostile_reason_is_refused(reason):
    with pytest.raises(HostfileError, match="hosts:2: the reason"):
        parse_hostfile(f"n1 slots=1\nexclude n1 2026-11-20 {reason}", "hosts")


PLAIN = set(string.ascii_letters + string.digits + "._-")


@given(st.text(min_size=1, max_size=30))
def test_no_text_becomes_a_name_with_other_characters(text):
    try:
        found = parse_hostfile(f"{text} slots=1\nlast slots=1", "hosts")
    except HostfileError:
        return
    for node in found.nodes:
        assert set(node.name) <= PLAIN
        assert node.name[0] not in "-."


def test_the_command_prints_each_dialect(tmp_path, monkeypatch, capsys):
    # Without a Slurm.
    monkeypatch.setenv("PATH", str(tmp_path))
    path = tmp_path / "hosts"
    path.write_text(SMALL)
    assert main(["hostfile", str(path)]) == 0
    assert main(["hostfile", str(path), "--for", "slurm"]) == 0
    assert main(["hostfile", str(path), "--for", "hydra"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "3 of 4 nodes usable: big1,n[1,3]",
        "excluded n2 since 2026-11-20: broken memory, ticket #4711",
        "--nodelist=big1,n[1,3]",
        "--exclude=n2",
        "n1:4",
        "n3:4",
        "big1:64",
    ]


DRAINED = """main|2|1|4|n[1,3]|(null)|idle|none
main|1|1|4|n2|(null)|drained|none
main|1|1|64|big1|(null)|drained|broken fan
"""


def with_sinfo(folder, monkeypatch, script):
    program = folder / "bin" / "sinfo"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")


def test_a_node_that_slurm_has_drained_is_not_usable(tmp_path, monkeypatch, capsys):
    with_sinfo(tmp_path, monkeypatch, f"cat <<'EOF'\n{DRAINED}EOF")
    path = tmp_path / "hosts"
    path.write_text(SMALL)
    assert main(["hostfile", str(path)]) == 0
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first == "2 of 4 nodes usable: n[1,3]"
    assert second.startswith("Slurm does not use big1: drained, broken fan")
    assert main(["hostfile", str(path), "--for", "hydra"]) == 0
    told = capsys.readouterr()
    assert told.out.splitlines() == ["n1:4", "n3:4"]
    assert "big1" in told.err


def test_where_slurm_uses_none_of_the_nodes_all_are_kept_and_told(tmp_path, monkeypatch, capsys):
    line = "main|4|1|4|n[1-3],big1|(null)|maint|none"
    with_sinfo(tmp_path, monkeypatch, f"echo '{line}'")
    path = tmp_path / "hosts"
    path.write_text(SMALL)
    assert main(["hostfile", str(path)]) == 0
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first == "3 of 4 nodes usable: big1,n[1,3]"
    assert second.startswith("Slurm does not use big1,n[1,3]: maint")


def test_a_slurm_that_does_not_answer_is_told(tmp_path, monkeypatch, capsys):
    with_sinfo(tmp_path, monkeypatch, "echo 'Unable to contact slurm controller' >&2; exit 1")
    path = tmp_path / "hosts"
    path.write_text(SMALL)
    assert main(["hostfile", str(path)]) == 0
    assert "Unable to contact slurm controller" in capsys.readouterr().out


def test_a_system_without_a_hostfile_is_told_from_an_unknown_one(capsys):
    assert main(["hostfile", "local"]) == 2
    told = capsys.readouterr().err
    assert "the system local has no hostfile" in told
    assert "with a scheduler it needs one only to exclude nodes" in told
    assert main(["hostfile", "nowhere"]) == 2
    assert "no file and no system with a hostfile in" in capsys.readouterr().err


def test_the_command_names_the_file_and_the_line(tmp_path):
    path = tmp_path / "hosts"
    path.write_text("n1 slots=2\nn2;id slots=2\n")
    clustergate = Path(sys.executable).parent / "clustergate"
    ended = subprocess.run([clustergate, "hostfile", path], capture_output=True, text=True)
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"clustergate: {path}:2: 'n2;id' is not a node name")
    assert ended.stdout == ""


def test_unknown_system_told_which_was_meant(capsys):
    """An unknown system is told which was meant and how to write a hostfile."""
    assert main(["hostfile", "virtual-clustre"]) == 2
    told = capsys.readouterr().err
    assert "no file and no system with a hostfile in " in told
    assert "did you mean 'virtual-cluster'?; " in told
    assert "hostfiles/template.txt explains how to write one" in told


def test_a_missing_file_and_bytes_that_are_no_text_are_said(tmp_path):
    with pytest.raises(HostfileError, match="cannot be read: No such file"):
        hostfiles.read_hostfile(tmp_path / "absent")
    (tmp_path / "binary").write_bytes(b"n1 slots=1\n\xff\xfe")
    with pytest.raises(HostfileError, match="is not a text file: byte 11"):
        hostfiles.read_hostfile(tmp_path / "binary")


@pytest.mark.parametrize(
    "text",
    [
        "n1:4\nn2:4\n",
        "n1 slots=4 max_slots=8\nn2 slots=4 max-slots=8\n",
        "n1\n" * 4 + "n2\n" * 4,
        "n1\nn2\n" * 4,
    ],
)
def test_hostfiles_of_launchers_and_nodefiles_of_pbs_are_read(text):
    found = parse_hostfile(text, "hosts")
    assert [(node.name, node.slots) for node in found.nodes] == [("n1", 4), ("n2", 4)]


def test_names_alone_are_refused_with_the_line_to_write():
    with pytest.raises(HostfileError, match=r"hosts:1: .* on c01; write `c01 slots=CORES`"):
        parse_hostfile("c01\nc02\nc03\n", "hosts")


def test_a_mark_of_the_byte_order_is_no_part_of_a_name(tmp_path: Path) -> None:
    path = tmp_path / "alpha.txt"
    path.write_bytes(b"\xef\xbb\xbfn1 slots=2\n")
    assert [node.name for node in hostfiles.read_hostfile(path).nodes] == ["n1"]
