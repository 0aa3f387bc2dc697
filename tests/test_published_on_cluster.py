"""The papers' systems on a virtual cluster: ranks come to lie on nodes as the papers laid them.

Each node has the printed number of slots, and as many nodes as fit are up. What starts is no
benchmark but each rank's ``hostname``: no figure of such a node would mean anything.
"""

import re
import shutil
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
from tests.virtual_pbs import VirtualPbs

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


@pytest.fixture
def pbs(cluster: VirtualCluster) -> Iterator[VirtualPbs]:
    if not shutil.which("pbs_server"):
        pytest.skip("OpenPBS is not installed: there is no pbs_server on PATH")
    # The one system of the papers that had PBS has nodes of one core.
    pbs = VirtualPbs(cluster, [f"n{k}" for k in range(1, NODES + 1)], 1)
    yield pbs
    pbs.remove()


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
        layout = laid_out(ranks, placement, 1, partition)
        launcher = getlauncher(partition.launcher)()
        launcher.configure(manifest, layout, tmp_path, nodes)
        words = [*launcher.launch({}), "hostname"]
        if partition.scheduler == "slurm":
            words = in_allocation(layout, words, tmp_path)
        told = cluster("run", "head" if partition.scheduler == "slurm" else "n1", *words)
        assert_lie(told.stdout, ranks, cores if placement == "packed" else 1)


@pytest.mark.parametrize("name", OF_PBS)
def test_ranks_lie_as_the_paper_laid_them_under_pbs(
    pbs: VirtualPbs, stacks: Path, tmp_path: Path, name: str
) -> None:
    partition, manifest = partition_of(name), read_manifest(stacks, "mpich")
    for placement, most in largest(partition).items():
        for ranks in (n for n in partition.shape.rank_counts() if 1 < n <= most):
            layout = laid_out(ranks, placement, 1, partition)
            launcher = getlauncher(partition.launcher)()
            launcher.configure(manifest, layout, tmp_path, None)
            words = " ".join([*launcher.launch({}), "hostname"])
            asked = preamble("pbs", layout, tmp_path)
            told = pbs.run(f"#!/bin/bash\n{asked}\ncd {tmp_path}\n{words}\n", tmp_path)
            assert_lie(told, ranks, partition.cores_per_node)
