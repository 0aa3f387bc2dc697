"""What the jobs ask schedulers for, by the scripts that ReFrame's own backends write."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reframe.core.backends import getlauncher
from reframe.core.runtime import runtime, temp_runtime
from reframe.core.schedulers import Job

from clustergate.cli.dry_run import complaints
from clustergate.core.model import ClustergateError
from clustergate.launch.dialects import Layout, srun_options
from clustergate.sites.layouts import layout_on_partition
from clustergate.sites.shape import Shape
from tests.described_partitions import described

SCHEDULERS = ("slurm", "pbs", "lsf", "oar")
SITE = f"""\
partitions = [
    {{"name": name, "scheduler": name, "launcher": "local", "environs": ["e"],
     "sched_options": {{"use_nodes_option": True}} if name == "slurm" else {{}}}}
    for name in {SCHEDULERS}
]
site_configuration = {{
    "systems": [{{"name": "s", "hostnames": ["x"], "partitions": partitions}}],
    "environments": [{{"name": "e"}}],
    "logging": [{{"handlers$": [{{"type": "stream", "name": "stdout"}}], "handlers": []}}],
}}
"""


@pytest.fixture(scope="module")
def schedulers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    site = tmp_path_factory.mktemp("site") / "site.py"
    site.write_text(SITE)
    with temp_runtime(str(site), "s"):
        yield {part.name: part.scheduler for part in runtime().system.partitions}


def script_of(scheduler: Any, layout: Layout, tasks: int) -> str:
    job = Job.create(scheduler, getlauncher("local")(), name="job", workdir=".")
    job.num_tasks, job.num_tasks_per_node = tasks, layout.ranks_per_node
    job.num_cpus_per_task = layout.cores_per_rank
    return "\n".join(scheduler.emit_preamble(job))


@settings(deadline=None)
@given(
    nodes=st.integers(1, 100),
    cores=st.integers(1, 128),
    cores_per_rank=st.integers(1, 4),
    ranks=st.integers(1, 4000),
    placement=st.sampled_from(["packed", "one-per-node"]),
    name=st.sampled_from(SCHEDULERS),
)
def test_a_job_asks_for_the_nodes_that_its_ranks_lie_on(
    schedulers, nodes, cores, cores_per_rank, ranks, placement, name
):
    shape = Shape(cores, nodes)
    try:
        layout = layout_on_partition(ranks, placement, cores_per_rank, described("s:p", shape))
    except ClustergateError:
        assert not shape.holds(ranks, placement, cores_per_rank)
        return
    held = layout.ranks_on([f"n{i}" for i in range(layout.nodes)])
    assert sum(held.values()) == ranks
    assert layout.nodes == len(held) <= nodes
    assert max(held.values()) * cores_per_rank <= cores
    if placement == "one-per-node":
        assert set(held.values()) == {1}
    assert [*complaints(script_of(schedulers[name], layout, layout.tasks_to_ask_for), layout)] == []


@pytest.mark.parametrize("name", SCHEDULERS)
def test_a_remainder_that_the_backends_drop_is_noticed(schedulers, name):
    layout = layout_on_partition(64, "packed", 1, described("s:p", Shape(6, 80)))
    told = [*complaints(script_of(schedulers[name], layout, 64), layout)]
    assert told == ["it requests 10 nodes, but 64 ranks, 6 per node, need 11"]


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("--nodes=2\n#SBATCH --ntasks=4\n#SBATCH --ntasks-per-node=2", []),
        ("--nodes=2\n#SBATCH -N 3", ["it requests 3 nodes"]),
        ("--ntasks=4", ["it does not say how many nodes"]),
        # A site may take use_nodes_option back: so many tasks, at most so many a node.
        ("--ntasks=4\n#SBATCH --ntasks-per-node=2", []),
        ("--nodes=2\n#SBATCH --ntasks=2", ["it requests 2 tasks"]),
        ("--nodes=2\n#SBATCH --ntasks-per-node=1", ["it requests 1 task per node"]),
    ],
)
def test_what_a_site_adds_must_leave_the_layout_whole(lines, told):
    found = complaints(f"#!/bin/bash\n#SBATCH {lines}\n", Layout(3, 2))
    assert [said.split(",")[0] for said in found] == told


def test_srun_fills_nodes_whose_ranks_do_not_divide():
    divided = srun_options("hydra", Layout(6, 3))
    assert {"--ntasks-per-node=3", "--distribution=block:block"} < set(divided)
    # By block srun would put 3, 2, 2 there.
    left_over = srun_options("hydra", Layout(7, 3))
    assert {"--nodes=3", "--ntasks=7", "--distribution=plane=3"} < set(left_over)
    assert not any("per-node" in word for word in left_over)
