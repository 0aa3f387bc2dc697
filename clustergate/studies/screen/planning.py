"""From a system, a stack and what is asked for to the plan of a screening."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from clustergate.benchmarks.budget import Budget
from clustergate.core.model import ClustergateError
from clustergate.core.reasons import Words
from clustergate.launch.dialects import hostfile_dialect
from clustergate.launch.hostfiles import Hostfile, expand
from clustergate.sites.description import Partition
from clustergate.sites.schedulers import scheduler_of
from clustergate.stacks.manifest import Manifest
from clustergate.studies.screen import orders
from clustergate.studies.screen.driver import CORE
from clustergate.studies.screen.plan import AT_ONCE, Plan, named_by


@dataclass(frozen=True)
class ScreenRequest:
    """What a user asks of a screening.

    ``nodes`` is a list such as ``n[01-64]``, empty for all of the system; ``rounds`` 0 for all
    pairs; ``seconds`` for all of it; ``hpl_seconds`` for HPL on each node alone, 0 for none;
    ``partition`` empty for the first of the system; ``launches`` are the fewest of each node's raw
    kernels, and with others, 0 for what it takes; ``quick`` for one short launch on each and no
    pairs.
    """

    nodes: str = ""
    rounds: int = 0
    seconds: float = 1200.0
    hpl_seconds: float = 60.0
    partition: str = ""
    launches: int = 0
    quick: bool = False


TOO_MANY_NODES = Words(
    "screening.too-many-nodes",
    (
        "a screening is one job on all {nodes} nodes of the partition {partition}, which limits"
        " jobs to {most}"
    ),
    remedy="screen {most} at a time by --nodes, or raise {setting}",
)


def within_limits(asked: ScreenRequest, partition: Partition) -> tuple[ScreenRequest, float]:
    """Return what a job of the partition can do of a screening, and its time limit in seconds.

    Beside the budget a job has time for the launches that were begun within it. Where the partition
    gives no job as long, the budget is less. Raises :class:`ClustergateError` where it gives no job
    as many nodes.
    """
    nodes, limits = partition.shape.nodes, partition.limits
    if limits.nodes is not None and nodes > limits.nodes:
        setting = scheduler_of(partition.scheduler).most_nodes
        name, most = partition.name, limits.nodes
        raise ClustergateError(
            TOO_MANY_NODES(nodes=nodes, partition=name, most=most, setting=setting)
        )
    turns = math.ceil(nodes / (partition.screen_at_once or AT_ONCE))
    beside_s = orders.patience_s(asked.hpl_seconds) + turns * orders.usual_s(asked.hpl_seconds)
    wanted_s = asked.seconds + beside_s
    most_s = limits.seconds
    if most_s is None or wanted_s <= most_s:
        return asked, wanted_s
    return replace(asked, seconds=min(asked.seconds, max(most_s - beside_s, most_s / 2))), most_s


def plan_screening(
    manifest: Manifest,
    partition: Partition,
    asked: ScreenRequest,
    *,
    nonce: str,
    seed: int,
    environment: Mapping[str, str],
    hostfile: Hostfile | None = None,
    pmi: str | None = None,
    switches: Mapping[str, str] | None = None,
    no_topology: str = "",
) -> Plan:
    """Return what the job of a screening does.

    With a hostfile its usable nodes are screened, of a scheduler's job only those in its
    allocation; with neither it is this node, and pairs of its cores. ``pmi`` is a word for srun,
    empty for the usual one of the stack, None where launches go over ssh. ``switches`` are those of
    nodes of which the hostfile says none, ``no_topology`` is why Slurm did not tell them. Raises
    :class:`ClustergateError` for nodes that the hostfile does not list or excludes, and what
    :mod:`.orders` raises.
    """
    usable = chosen(asked.nodes, hostfile)
    scheduled = scheduler_of(partition.scheduler).is_batch
    cores = not usable and not scheduled
    listed = {n.name: n.switch for n in hostfile.nodes if n.switch} if hostfile else {}
    if cores:
        alone = orders.core_contenders(manifest, environment)
    else:
        alone = orders.node_contenders(manifest, partition, asked.hpl_seconds, environment, pmi)
    pair = orders.pair_contender(
        manifest, environment, cores=cores, bind=partition.bind_to_cores, pmi=pmi
    )
    contenders = alone[:1] if asked.quick else [*alone, pair]
    return Plan(
        nonce=nonce,
        system=partition.system,
        # No later screening is held to one launch.
        by=named_by(partition.name, manifest.stack) + " (quick)" * asked.quick,
        nodes=usable,
        ranks_per_node=partition.cores_per_node,
        contenders=contenders,
        what=CORE if cores else "node",
        seed=seed,
        budget=Budget(seconds=asked.seconds),
        core_distance=manifest.command("core_distance") if cores else [],
        rounds=asked.rounds or None,
        launches=asked.launches,
        quick=asked.quick,
        scheduled=scheduled,
        scheduler=partition.scheduler,
        foreseen=0 if cores else len(usable) or partition.shape.nodes,
        at_once=partition.screen_at_once or AT_ONCE,
        hostfile_dialect=hostfile_dialect(manifest.dialect),
        switches={**(switches or {}), **listed},
        no_topology=no_topology,
        excluded={k: str(v) for k, v in hostfile.excluded.items()} if hostfile else {},
    )


UNLISTED_NODE = Words(
    "screening.unlisted-node",
    "{hostfile} lists no node {node}",
    remedy="write it there with its slots, or leave it out of --nodes",
)
EXCLUDED_NODE = Words(
    "screening.excluded-node",
    "{node} is excluded {why}",
    remedy="leave it out of --nodes or, once it is mended, take its line out of the hostfile",
)


def chosen(named: str, hostfile: Hostfile | None) -> Sequence[str]:
    """Return the nodes to screen, none where they are those of an allocation or this one.

    Raises :class:`ClustergateError` for nodes that the hostfile does not list or excludes.
    """
    if not named:
        return [node.name for node in hostfile.usable] if hostfile else []
    wanted = list(dict.fromkeys(expand(named)))
    if hostfile is None:
        return wanted
    known = {node.name for node in hostfile.nodes}
    for name in wanted:
        if name not in known:
            facts = {"hostfile": hostfile.source, "node": name}
            raise ClustergateError(UNLISTED_NODE(**facts))
        if name in hostfile.excluded:
            why = str(hostfile.excluded[name])
            raise ClustergateError(EXCLUDED_NODE(node=name, why=why))
    return wanted
