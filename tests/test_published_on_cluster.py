"""The papers' systems on a virtual cluster: ranks come to lie on nodes as the papers laid them.

Each node has the printed number of slots, and as many nodes as fit are up. Of every system each
rank says its ``hostname``; of one of each shape the suite runs a case of the paper, whose ranks
prove where they were. No figure of such a node means anything: it has the slots, and not the cores.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from reframe.core.backends import getlauncher
from reframe.core.runtime import runtime, temp_runtime

from clustergate.core.paths import checkout
from clustergate.launch.dialects import Layout
from clustergate.launch.hostfiles import parse_hostfile
from clustergate.sites import configs, modes
from clustergate.sites.description import Partition
from clustergate.sites.layouts import layout_on_partition
from clustergate.stacks.manifest import read_manifest
from evaluations import systems
from tests import test_job_scripts
from tests.conftest import Suite, VirtualCluster, until

pytestmark = [pytest.mark.cluster, pytest.mark.mpi]

NODES, MOST_RANKS = 12, 128
# So many of MPI two cores bear, each of which waits for all others; more of a whole system.
MOST_REAL_RANKS, MOST_OF_ALL = 32, 72
# That of the only system whose nodes Slurm gave out, so that all of it fits.
CORES = 6


@pytest.fixture(scope="module")
def cluster() -> Iterator[VirtualCluster]:
    cluster = VirtualCluster()
    cluster.bring_up("slurm", "--nodes", str(NODES), "--cpus", str(CORES))
    yield cluster
    cluster("down")


@pytest.fixture(scope="module")
def pbs() -> Iterator[VirtualCluster]:
    cluster = VirtualCluster("p")
    # The one system of the papers that had PBS has nodes of one core.
    cluster.bring_up("pbs", "--nodes", str(NODES), "--cpus", "1")
    yield cluster
    cluster("down")


def partition_of(name: str) -> Partition:
    (partition,) = configs.load(checkout() / "site_configs" / f"{name}.py").partitions
    return partition


def that_fit(partition: Partition, most: int) -> Iterator[tuple[int, str]]:
    """Yield the paper's layouts of at most so many ranks that find room."""
    for ranks, placement in modes.sweep(partition.shape, [partition.shape]):
        if ranks <= most and layout_on_partition(ranks, placement, 1, partition).nodes <= NODES:
            yield ranks, placement


def largest(partition: Partition, most: int = MOST_RANKS) -> dict[str, int]:
    """Return by placement the most ranks of the paper's layouts that find room."""
    fit: dict[str, int] = {}
    for ranks, placement in that_fit(partition, most):
        fit[placement] = max(ranks, fit.get(placement, 0))
    return fit


def preamble(scheduler: str, layout: Layout, folder: Path) -> str:
    """Return what the suite's jobs ask a scheduler for."""
    site = folder / "site.py"
    site.write_text(test_job_scripts.SITE)
    with temp_runtime(str(site), "s"):
        backend = next(p.scheduler for p in runtime().system.partitions if p.name == scheduler)
        return test_job_scripts.script_of(backend, layout, layout.tasks_to_ask_for)


def in_allocation(layout: Layout, words: list[str], folder: Path) -> list[str]:
    """Return the words that run others in a job, with what the suite's jobs ask for."""
    text = preamble("slurm", layout, folder)
    asked = re.findall(r"^#SBATCH (--(?:nodes|ntasks|cpus-per)\S*)", text, re.MULTILINE)
    return ["salloc", "--quiet", "--exclusive", *asked, *words]


def assert_lie(told: str, ranks: int, each: int) -> None:
    """Assert that ranks which said their hosts fill the first nodes, so many on each."""
    left = {f"n{1 + ranks // each}": ranks % each} if ranks % each else {}
    wanted = {f"n{at}": each for at in range(1, 1 + ranks // each)} | left
    assert Counter(told.split()) == wanted


OF_PBS = [
    name
    for name, (_, system) in systems.systems().items()
    if (system.site or {}).get("scheduler") == "pbs"
]


@pytest.mark.parametrize("name", sorted(systems.systems().keys() - OF_PBS))
def test_ranks_lie_as_the_paper_laid_them(
    cluster: VirtualCluster, stacks: Path, tmp_path: Path, name: str
) -> None:
    partition, manifest = partition_of(name), read_manifest(stacks, "mpich")
    cores = partition.cores_per_node
    nodes = parse_hostfile(f"n[1-{NODES}] slots={cores}", "test")
    for placement, ranks in largest(partition).items():
        layout = layout_on_partition(ranks, placement, 1, partition)
        launcher = getlauncher(partition.launcher)()
        launcher.configure(manifest, layout, tmp_path, nodes)
        words = [*launcher.launch({}), "hostname"]
        if partition.scheduler == "slurm":
            words = in_allocation(layout, words, tmp_path)
        told = cluster("run", "head" if partition.scheduler == "slurm" else "n1", *words)
        assert_lie(told.stdout, ranks, cores if placement == "packed" else 1)


def printed_by_job(pbs: VirtualCluster, script: str, folder: Path) -> str:
    """Run a job of PBS to its end and return what it printed."""
    job, out = folder / "job.sh", folder / "delivered"
    out.unlink(missing_ok=True)
    job.write_text(f"#!/bin/bash\n{script}")
    said = pbs("run", "head", "qsub", "-W", "block=true", "-j", "oe", "-o", str(out), str(job))
    assert said.returncode == 0, (script, said.stdout, said.stderr)
    # It is delivered a moment after the end.
    until(out.exists, lambda: f"PBS delivered nothing of {script}")
    return out.read_text()


@pytest.mark.parametrize("name", OF_PBS)
def test_ranks_lie_as_the_paper_laid_them_under_pbs(
    pbs: VirtualCluster, stacks: Path, tmp_path: Path, name: str
) -> None:
    partition, manifest = partition_of(name), read_manifest(stacks, "mpich")
    for placement, most in largest(partition).items():
        for ranks in (n for n in partition.shape.rank_counts() if 1 < n <= most):
            layout = layout_on_partition(ranks, placement, 1, partition)
            launcher = getlauncher(partition.launcher)()
            launcher.configure(manifest, layout, tmp_path, None)
            words = " ".join([*launcher.launch({}), "hostname"])
            asked = preamble("pbs", layout, tmp_path)
            told = printed_by_job(pbs, f"{asked}\ncd {tmp_path}\n{words}\n", tmp_path)
            assert_lie(told, ranks, partition.cores_per_node)


# The check of each paper that starts ranks over whole layouts, and its smallest workload.
REAL = {
    **dict.fromkeys(("000", "002", "003"), ("ImbMpi1Check", ["benchmarks=Barrier", "time=1"])),
    "001": ("ImbMpi1Check", ["benchmarks=Reduce", "largest_bytes=8", "time=1"]),
    "004": ("MpiTrialsCheck", ["tests=barrier", "trials=3", "flush_bytes=0"]),
}
# What those of a node with more slots than this machine has cores cannot but say.
TOO_FEW_CORES = {"proof.shared-cores", "proof.shared-cores-elsewhere"}
# For stacks of which no provider of these tests has a build. Dozens of ranks of Intel MPI, which
# never let go of a core, did not finish on two.
INSTEAD = dict.fromkeys(("intel-mpi", "spack-intel-mpi", "spack-mvapich2"), "mpich")
SITE = """\
from evaluations.systems import site_of

by_name_alone = True
# The nodes share the cores of one machine, and have no other network.
site_configuration = site_of("{name}", nodes={nodes}, bind_to_cores=False, stacks={stacks})
for environment in site_configuration["environments"]:
    environment["env_vars"] = [["FI_PROVIDER", "tcp"]]
"""


def one_of_each_shape() -> list[str]:
    """Return one system for each paper, way to get nodes, and number of cores of a node."""
    found: dict[tuple[str, str, bool, int], str] = {}
    for name, (paper, system) in sorted(systems.systems().items()):
        site = system.site or {}
        alone = site["nodes"] == 1
        scheduler = site.get("scheduler", "local")
        found.setdefault((paper.id, scheduler, alone, site["cores_per_node"]), name)
    return sorted(set(found.values()) - {*OF_PBS})


@pytest.mark.parametrize("name", one_of_each_shape())
def test_cases_of_the_paper_run_where_it_ran_them(
    cluster: VirtualCluster, suite: Suite, tmp_path: Path, name: str
) -> None:
    partition = partition_of(name)
    check, settings = REAL[systems.systems()[name][0].id]
    stacks = list(dict.fromkeys(INSTEAD.get(stack, stack) for stack in partition.stacks))
    nodes, cores = min(partition.nodes or 1, NODES), partition.cores_per_node
    for folder in ("site_configs", "hostfiles"):
        (tmp_path / folder).mkdir()
    site = tmp_path / "site_configs" / f"{name}.py"
    site.write_text(SITE.format(name=name, nodes=nodes, stacks=stacks))
    listed = f"n[1-{nodes}] slots={cores}\n"
    (tmp_path / "hostfiles" / f"{name}.txt").write_text(listed.replace("[1-1]", "1"))
    most = MOST_OF_ALL if nodes == partition.nodes else MOST_REAL_RANKS
    counts = {*largest(partition, most).values()}
    # And one that leaves some slots of its last node free, where the paper had one.
    fit = that_fit(partition, most)
    counts |= {*[n for n, how in fit if how == "packed" and n > cores and n % cores][-1:]}
    layouts = {(n, how) for n, how in that_fit(partition, most) if n in counts}
    words = [str(Path(sys.executable).parent / "clustergate"), "check", "--site", str(site)]
    words += ["--mode", partition.mode, "--check", check, "--wait", "0s", "--"]
    words += [word for one in ("launches=1", *settings) for word in ("-S", f"{check}.{one}")]
    wanted = suite.environment(
        CLUSTERGATE_SITE_FOLDER=str(tmp_path),
        CLUSTERGATE_PROCESS_COUNTS=",".join(map(str, sorted(counts))),
    )
    where = "head" if partition.scheduler == "slurm" else "n1"
    said = cluster("run", where, *words, **wanted).stdout
    ran = {stack: set[tuple[int, str]]() for stack in stacks}
    for record in suite.records():
        assert {one["code"] for one in record["complaints"]} <= TOO_FEW_CORES, said
        how, placement = record["conditions"], record["conditions"]["placement"]
        ran[record["stack"]].add((how["ranks"], placement))
        ranks = record["details"]["proof"]["ranks"]
        each = cores if placement == "packed" else 1
        assert_lie(" ".join(rank["host"] for rank in ranks), how["ranks"], each)
    assert ran == dict.fromkeys(stacks, layouts), said
