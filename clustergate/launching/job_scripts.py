"""What a job's script asks its scheduler for, and whether that is the launch's layout. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from clustergate.launching.dialects import Layout

# Where Slurm, PBS, LSF and OAR are told the nodes; the last word of several holds.
_NODES = re.compile(
    r"^#(?:SBATCH +(?:--nodes[= ]|-N *)|PBS +-l *select=|BSUB +-nnodes +|OAR +-l +/host=)(\d+)",
    re.MULTILINE,
)
_TASKS = re.compile(r"^#SBATCH +(?:--ntasks[= ]|-n *)(\d+)", re.MULTILINE)
_PER_NODE = re.compile(
    r"^#(?:SBATCH +--ntasks-per-node[= ]|PBS +-l *select=\d+:mpiprocs=|OAR +-l +/host=\d+/core=)"
    r"(\d+)",
    re.MULTILINE,
)


def complaints(script: str, layout: Layout) -> Iterator[str]:
    """Yield what a job's script asks for that is not what its launch needs.

    Schedulers that are told in other words are not looked at.
    """
    asked = {
        name: int(found[-1])
        for name, pattern in (("nodes", _NODES), ("tasks", _TASKS), ("per node", _PER_NODE))
        if (found := pattern.findall(script))
    }
    needs = f"{layout.ranks} ranks, {layout.ranks_per_node} per node, take {layout.nodes}"
    if (nodes := asked.get("nodes", layout.nodes)) != layout.nodes:
        yield f"it asks for {nodes} nodes, and {needs}"
    if "#SBATCH" in script and not asked.keys() & {"nodes", "per node"}:
        yield f"it asks for no number of nodes, and {needs}"
    if (per_node := asked.get("per node", layout.ranks_per_node)) != layout.ranks_per_node:
        yield f"it asks for {per_node} tasks per node, and {needs}"
    tasks = asked.get("tasks", layout.tasks_to_ask_for)
    if not layout.ranks <= tasks <= layout.tasks_to_ask_for:
        yield f"it asks for {tasks} tasks, and {needs}"
