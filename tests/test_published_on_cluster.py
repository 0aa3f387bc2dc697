"""The papers' systems on a virtual cluster: ranks come to lie on nodes as the papers laid them.

Each node has the printed number of slots, and as many nodes as fit are up. What starts is no
benchmark but each rank's ``hostname``: no figure of such a node would mean anything.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from reframe.core.backends import getlauncher
from reframe.core.runtime import runtime, temp_runtime

from clustergate.launching.dialects import Layout
from clustergate.launching.hostfiles import parse_hostfile
from clustergate.paths import checkout
from clustergate.sites import configs, modes
from clustergate.sites.description import Partition
from clustergate.sites.layouts import laid_out
from clustergate.stacks.manifest import read_manifest
from evaluations import systems
from tests import test_job_scripts
from tests.conftest import VirtualCluster

pytestmark = [pytest.mark.cluster, pytest.mark.mpi]

NODES, MOST_RANKS = 12, 128
# That of the only system whose nodes Slurm gave out, so that all of it fits.
CORES = 6


@pytest.fixture(scope="module")
def cluster() -> Iterator[VirtualCluster]:
    cluster = VirtualCluster()
    lacking = cluster("missing")
    if lacking.returncode:
        pytest.skip(lacking.stderr.strip())
    brought = cluster("up", "--nodes", str(NODES), "--cpus", str(CORES))
    assert brought.returncode == 0, brought.stderr
    yield cluster
    cluster("down")


def partition_of(name: str) -> Partition:
    (partition,) = configs.load(checkout() / "site_configs" / f"{name}.py").partitions
    return partition


def largest(partition: Partition) -> dict[str, int]:
    """Return by placement the most ranks of the paper's layouts that find room."""
    fit: dict[str, int] = {}
    for ranks, placement in modes.sweep(partition.shape, [partition.shape]):
        if ranks <= MOST_RANKS and laid_out(ranks, placement, 1, partition).nodes <= NODES:
            fit[placement] = max(ranks, fit.get(placement, 0))
    return fit


def in_allocation(layout: Layout, words: list[str], folder: Path) -> list[str]:
    """Return the words that run others in a job, with what the suite's jobs ask for."""
    site = folder / "site.py"
    site.write_text(test_job_scripts.SITE)
    with temp_runtime(str(site), "s"):
        slurm = next(one.scheduler for one in runtime().system.partitions if one.name == "slurm")
        text = test_job_scripts.script_of(slurm, layout, layout.tasks_to_ask_for)
    asked = re.findall(r"^#SBATCH (--(?:nodes|ntasks|cpus-per)\S*)", text, re.MULTILINE)
    return ["salloc", "--quiet", "--exclusive", *asked, *words]


@pytest.mark.parametrize("name", sorted(systems.systems()))
def test_ranks_lie_as_the_paper_laid_them(
    cluster: VirtualCluster, stacks: Path, tmp_path: Path, name: str
) -> None:
    partition, manifest = partition_of(name), read_manifest(stacks, "mpich")
    if partition.scheduler == "pbs":
        pytest.skip("there is no PBS on a virtual cluster")
    cores = partition.cores_per_node
    nodes = parse_hostfile(f"n[1-{NODES}] slots={cores}", "test")
    for placement, ranks in largest(partition).items():
        layout = laid_out(ranks, placement, 1, partition)
        launcher = getlauncher(partition.launcher)()
        launcher.configure(manifest, layout, tmp_path, nodes)
        words = [*launcher.launch({}), "hostname"]
        if partition.scheduler == "slurm":
            words = in_allocation(layout, words, tmp_path)
        node = "head" if partition.scheduler == "slurm" else "n1"
        told = cluster("run", node, *words)
        lie = Counter(told.stdout.split())
        each = cores if placement == "packed" else 1
        left = {f"n{1 + ranks // each}": ranks % each} if ranks % each else {}
        wanted = {f"n{at}": each for at in range(1, 1 + ranks // each)} | left
        assert lie == wanted, (placement, words, told.stderr)
