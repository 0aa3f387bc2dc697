"""Which nodes of a system are left out, by its hostfile or in this run, and what is left."""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from clustergate.core.reasons import Words
from clustergate.launch.hostfiles import (
    Exclusion,
    Hostfile,
    HostfileError,
    HostNode,
    expand,
    fold,
    hostfile_path,
    read_hostfile,
)
from clustergate.sites.description import Partition, SiteError
from clustergate.sites.schedulers import scheduler_of

# The nodes that are to be left out, as `clustergate gate` found them bad.
WITHOUT_NODES = "CLUSTERGATE_WITHOUT_NODES"


NO_NODE_LEFT = Words("site.no-node-left", "{source} excludes {which}; no node is left to run on")


def hostfile_of(system: str) -> Hostfile | None:
    """Return the nodes of a system, None where it has no hostfile.

    Those of ``CLUSTERGATE_WITHOUT_NODES`` are excluded, too. Raises
    :class:`~clustergate.launch.hostfiles.HostfileError` that names the line when it cannot be
    used.
    """
    path = hostfile_path(system)
    if not os.path.lexists(path):
        return None
    hostfile = read_hostfile(path)
    now = dict.fromkeys(nodes_left_out(), Exclusion(datetime.date.today(), "left out of this run"))
    return replace(hostfile, excluded={**now, **hostfile.excluded})


def nodes_out(system: str) -> tuple[list[str], list[str]]:
    """Return the nodes that are left out by hand, and a line for each reason of the hostfile.

    Raises as :func:`hostfile_of` does.
    """
    path = hostfile_path(system)
    excluded = read_hostfile(path).excluded if os.path.lexists(path) else {}
    by_reason: dict[str, list[str]] = {}
    for name, why in excluded.items():
        by_reason.setdefault(str(why), []).append(name)
    lines = [f"not judged, excluded {why}: {fold(names)}" for why, names in by_reason.items()]
    return [name for name in nodes_left_out() if name not in excluded], lines


def nodes_left_out() -> list[str]:
    """Return the nodes that ``CLUSTERGATE_WITHOUT_NODES`` names."""
    named = os.environ.get(WITHOUT_NODES, "")
    return expand(named) if named else []


NO_HOSTFILE = Words(
    "site.no-hostfile",
    "the partition {partition} launches over ssh and its system has no hostfile",
    remedy="write one as hostfiles/template.txt explains",
)
NO_NODES = Words(
    "site.no-nodes",
    (
        "the partition {partition}, whose jobs go through {scheduler}, does not say how many "
        "nodes it has"
    ),
    remedy="add `nodes` to its extras (`clustergate site scan NAME` tells), or write a hostfile",
)
ACCESS_TWICE = Words(
    "site.access-twice",
    "`access` of partition {partition} has {option} with two values",
    cause="sbatch takes only the last",
    remedy="combine them into one",
)
ACCESS_EXCLUDE = Words(
    "site.access-exclude",
    "`access` of partition {partition} has an --exclude of its own: {why}",
    cause="sbatch takes only one --exclude",
    remedy="name the nodes there as a list such as n[1-4]",
)


def exclude_nodes(declared: Mapping[str, Any], nodes: Hostfile | None, at: str) -> dict[str, Any]:
    """Return a partition that keeps out what the hostfile excludes, whoever chooses the nodes.

    ``at`` is where it stands in the site config.
    """
    partition = Partition.of(declared)
    scheduler = scheduler_of(partition.scheduler)
    if partition.launcher == "clustergate-ssh" and nodes is None:
        raise SiteError(NO_HOSTFILE(at=f"{at}.launcher", partition=partition.name))
    if scheduler.is_batch and partition.nodes is None and nodes is None:
        # One node of many would be measured, and all that must be judged would have been.
        facts = {"partition": partition.name, "scheduler": partition.scheduler}
        raise SiteError(NO_NODES(at=f"{at}.extras.nodes", **facts))
    if twice := scheduler.given_twice(partition.access):
        facts = {"partition": partition.name, "option": f"--{twice}"}
        raise SiteError(ACCESS_TWICE(at=f"{at}.access", **facts))
    access = scheduler.completed(partition.access)
    options = {**scheduler.reframe_options, **declared.get("sched_options", {})}
    try:
        nodes_left = _nodes_left(declared, nodes, at) if nodes or nodes_left_out() else {}
        access = scheduler.excluding(access, nodes.excluded if nodes else nodes_left_out())
    except HostfileError as why:
        facts = {"partition": partition.name, "why": str(why)}
        raise SiteError(ACCESS_EXCLUDE(at=f"{at}.access", **facts)) from None
    changed = {"access": access, "sched_options": options}
    changed = {key: value for key, value in changed.items() if value}
    return {**declared, "environs": [*declared["environs"]], **changed, **nodes_left}


UNLISTED_NODES = Words(
    "site.unlisted-nodes",
    (
        "the site config states {stated} nodes of the partition {partition}, and {source} lists "
        "{listed}"
    ),
    remedy=(
        "list the others too, broken ones by `exclude` with the reason, or correct the site config"
    ),
)


def _nodes_left(said: Mapping[str, Any], nodes: Hostfile | None, at: str) -> dict[str, Any]:
    """Return what changes of a partition without the nodes that are excluded, or left out now."""
    partition = Partition.of(said)
    stated = partition.nodes or (len(nodes.nodes) if nodes else 1)
    scheduler, ask = scheduler_of(partition.scheduler), not nodes and nodes_left_out()
    # Of those left out only the nodes of this partition are missing from it, as far as is known.
    own_names = {*scheduler.node_names(partition.access)} if ask else set()
    usable = stated - len([n for n in nodes_left_out() if n in own_names or not own_names])
    none_left = bool(own_names) and own_names <= {*nodes_left_out()}
    if nodes:
        name, listed = partition.name, len(nodes.nodes)
        own = _nodes_of_kind(nodes, partition.cores_per_node, stated)
        by_access = scheduler.excluded_by(partition.access) if nodes.excluded else ()
        out = {*nodes.excluded, *by_access}
        usable = sum(node.name not in out for node in own)
        if stated > listed:
            raise SiteError(
                UNLISTED_NODES(
                    at=f"{at}.extras.nodes",
                    partition=name,
                    stated=stated,
                    source=nodes.source,
                    listed=listed,
                )
            )
        none_left = not usable and any(node.name in nodes_left_out() for node in own)
        if not usable and not none_left:
            which = "every node" if len(own) == listed else f"every node like those of {name}"
            raise SiteError(NO_NODE_LEFT(source=nodes.source, which=which))
    left = min(stated, max(usable, 1))
    extras = {**said["extras"], "nodes": left}
    if left < stated:
        extras["excluded_nodes"] = stated - left
    # Of one without a node left no job could start in this run.
    return {"extras": extras, **({"environs": []} if none_left else {})}


def _nodes_of_kind(nodes: Hostfile, cores: int, count: int) -> Sequence[HostNode]:
    """Return the nodes of a hostfile that a partition of so many cores and nodes can have.

    Partitions of different nodes share the file: an excluded node of one is not lost to the other.
    """
    alike = [node for node in nodes.nodes if node.slots == cores]
    fitting = [node for node in nodes.nodes if node.slots >= cores]
    return next((kind for kind in (alike, fitting) if len(kind) >= count), nodes.nodes)
