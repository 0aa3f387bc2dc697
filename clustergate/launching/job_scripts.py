"""What a job's script asks its scheduler for, and whether that is the launch's layout. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from clustergate.launching.dialects import Layout
from clustergate.wording.notation import counted

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
        name: int(numbers[-1])
        for name, pattern in (("nodes", _NODES), ("tasks", _TASKS), ("per node", _PER_NODE))
        if (numbers := pattern.findall(script))
    }
    ranks = f"{counted(layout.ranks, 'rank')}, {layout.ranks_per_node} per node"
    needs = f"{ranks}, need {layout.nodes}"
    if (nodes := asked.get("nodes", layout.nodes)) != layout.nodes:
        yield f"it requests {counted(nodes, 'node')}, but {needs}"
    if "#SBATCH" in script and not asked.keys() & {"nodes", "per node"}:
        yield f"it does not say how many nodes, but {needs}"
    if (per_node := asked.get("per node", layout.ranks_per_node)) != layout.ranks_per_node:
        yield f"it requests {counted(per_node, 'task')} per node, but {needs}"
    tasks = asked.get("tasks", layout.tasks_to_ask_for)
    if not layout.ranks <= tasks <= layout.tasks_to_ask_for:
        yield f"it requests {counted(tasks, 'task')}, but {needs}"
