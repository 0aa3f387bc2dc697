"""The nodes and partitions that ``scontrol show`` prints, as text or as JSON. Pure.

NodeName=g0001 Arch=x86_64 CoresPerSocket=64
   CPUAlloc=0 CPUEfctv=112 CPUTot=128 CPULoad=0.00
   AvailableFeatures=hdr
   RealMemory=512000 AllocMem=0 FreeMem=490000 Sockets=1 Boards=1
   CoreSpecCount=8 CPUSpecList=0-1,16-17 MemSpecLimit=32000
   State=IDLE ThreadsPerCore=2 TmpDisk=0 Weight=1

PartitionName=batch
   AllowGroups=ALL AllowAccounts=ALL Default=YES Hidden=NO MaxNodes=64
   Nodes=g[0001-0512]
   State=UP TotalCPUs=65536 TotalNodes=512
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from clustergate.core.model import BadRequest
from clustergate.core.reasons import Words
from clustergate.launch.hostfiles import HostfileError, expand
from clustergate.machine.node import parse_cpu_list
from clustergate.sites.schedulers.scanned import ScannedNode, ScannedQueue

_MIB = 1 << 20
_FIELD = re.compile(r"(?:^|\s)([A-Za-z_/:]+)=")
# Slurm takes more names than ReFrame; the characters are those that no shell and no list splits.
_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+@-]{0,60}", re.ASCII)
# Slurm's default, in MiB, where its configuration does not say it.
_NOT_SAID = 1
# Those of Slurm's JSON (data_parser, NODE and PARTITION_INFO) by what the text calls them.
_NODE_KEYS = {
    "name": "NodeName",
    "sockets": "Sockets",
    "cores": "CoresPerSocket",
    "threads": "ThreadsPerCore",
    "cpus": "CPUTot",
    "effective_cpus": "CPUEfctv",
    "specialized_cores": "CoreSpecCount",
    "specialized_cpus": "CPUSpecList",
    "specialized_memory": "MemSpecLimit",
    "real_memory": "RealMemory",
    "features": "AvailableFeatures",
    "active_features": "ActiveFeatures",
    "hostname": "NodeHostName",
    "boot_time": "BootTime",
    "cpu_load": "CPULoad",
}
_PARTITION_KEYS = {
    "name": "PartitionName",
    "nodes/configured": "Nodes",
    "maximums/nodes": "MaxNodes",
    "groups/allowed": "AllowGroups",
    "accounts/allowed": "AllowAccounts",
    "partition/state": "State",
}
# Slurm before 22.05 printed JSON without them: cores that no job gets would be missed.
_NEEDED_IN_JSON = ("specialized_cores", "specialized_cpus", "specialized_memory")


def records(text: str, first: str) -> Iterator[dict[str, str]]:
    """Yield what ``scontrol show`` printed, a mapping for each thing that begins with ``first=``.

    Values may hold spaces; a value ends where the next ``Key=`` begins.
    """
    for block in re.split(rf"(?m)^(?={re.escape(first)}=)", text):
        fields = list(_FIELD.finditer(block))
        if not fields or fields[0][1] != first:
            continue
        ends = [*(match.start() for match in fields[1:]), len(block)]
        yield {
            match[1]: block[match.end() : end].strip()
            for match, end in zip(fields, ends, strict=True)
        }


def has_reserved_cores(text: str) -> bool:
    """Tell whether it is JSON that says which cores and memory of nodes no job gets."""
    nodes = _json(text).get("nodes")
    return (
        isinstance(nodes, list)
        and bool(nodes)
        and all(isinstance(node, dict) and {*_NEEDED_IN_JSON} <= {*node} for node in nodes)
    )


SLURM_JSON = Words(
    "slurm.json",
    "the output of scontrol --json is cut off or damaged: {why}",
    remedy="write it again",
)


def _json(text: str) -> dict[str, Any]:
    if not text.lstrip().startswith("{"):
        return {}
    try:
        said = json.loads(text)
    except ValueError as error:
        raise BadRequest(SLURM_JSON(why=error)) from None
    return said if isinstance(said, dict) else {}


OLD_JSON = Words(
    "slurm.old-json",
    "the JSON of this Slurm does not say which cores no job gets",
    remedy="give the text of `scontrol show node`, without --json",
)


def _node_records(text: str) -> Iterator[dict[str, str]]:
    said = _json(text)
    if not said:
        yield from records(text, "NodeName")
        return
    if said.get("nodes") and not has_reserved_cores(text):
        raise BadRequest(OLD_JSON())
    for node in said.get("nodes", []):
        yield {ours: _word(node[key]) for key, ours in _NODE_KEYS.items() if key in node}


def _partition_records(text: str) -> Iterator[dict[str, str]]:
    said = _json(text)
    if not said:
        yield from records(text, "PartitionName")
        return
    for partition in said.get("partitions", []):
        record = {}
        for key, ours in _PARTITION_KEYS.items():
            outer, _, inner = key.partition("/")
            value = partition.get(outer)
            if inner:
                value = value.get(inner) if isinstance(value, dict) else None
            if value is not None:
                record[ours] = _word(value)
        yield record


def _word(value: object) -> str:
    """Return a value of JSON as the text has it: ``{"set": true, "number": 4}`` is 4."""
    if isinstance(value, list):
        return ",".join(map(str, value))
    if isinstance(value, dict):
        return str(value.get("number")) if value.get("set") and not value.get("infinite") else ""
    return str(value)


SLURM_NODE = Words("slurm.node", "scontrol show node: {name!r} is not usable ({why})")
NO_NODE = Words("slurm.no-node", "scontrol show node printed no node")
NO_CORES = Words(
    "slurm.no-cores",
    "scontrol show node tells the cores of no node",
    cause="it has neither Sockets and CoresPerSocket nor CPUTot",
    remedy="is this its whole output?",
)


def nodes_of(text: str) -> dict[str, ScannedNode]:
    """Return the nodes that ``scontrol show node`` printed, by name.

    Raises :class:`BadRequest` when there is none, when none tells its cores, and for a name or a
    number that is none.
    """
    nodes = {}
    for record in _node_records(text):
        name = record.get("NodeName", "")
        try:
            (checked,) = expand(name)
            nodes[checked] = _node(checked, record)
        except (ValueError, HostfileError) as error:
            raise BadRequest(SLURM_NODE(name=name[:60], why=error)) from None
    if not nodes:
        raise BadRequest(NO_NODE())
    if not any(node.cores for node in nodes.values()):
        raise BadRequest(NO_CORES())
    return nodes


def _node(name: str, record: Mapping[str, str]) -> ScannedNode:
    def number(key: str) -> int:
        return int(_said(record, key) or 0)

    threads, cpus = number("ThreadsPerCore") or 1, number("CPUTot")
    total = number("Sockets") * number("CoresPerSocket") or cpus // threads
    # A site may let each core be one CPU although it has two threads.
    per_core = cpus / total if total and cpus > total else 1
    counted = len(parse_cpu_list(_said(record, "CPUSpecList")))
    reserved = max(number("CoreSpecCount"), round(counted / per_core))
    free = [total - reserved]
    if cpus and (effective := number("CPUEfctv")):
        free.append(int(effective / per_core))
    memory = number("RealMemory")
    usable = memory - number("MemSpecLimit") if memory > _NOT_SAID else 0
    features = _said(record, "ActiveFeatures") or _said(record, "AvailableFeatures")
    return ScannedNode(
        name,
        max(min(free), 0),
        max(usable, 0) * _MIB,
        total,
        frozenset(one for one in features.split(",") if _WORD.fullmatch(one)),
        _said(record, "NodeHostName"),
        _booted_s(_said(record, "BootTime")),
        float(load) if re.fullmatch(r"\d+(\.\d+)?", load := record.get("CPULoad", "")) else None,
    )


def _booted_s(said: str) -> float | None:
    """Return the seconds since the epoch of a local time, or of a number of them; 0 is unknown."""
    if said.isdecimal():
        return float(said) or None
    try:
        return datetime.datetime.fromisoformat(said).timestamp()
    except ValueError:
        return None


def _said(record: Mapping[str, str], key: str) -> str:
    value = record.get(key, "")
    return "" if value in ("(null)", "N/A", "None") else value


PARTITION_NAME = Words(
    "slurm.partition-name",
    "scontrol show partition: {name!r} is not a valid name",
)
PARTITION_NODES = Words("slurm.partition-nodes", "scontrol show partition: {name}: {why}")
NO_PARTITION = Words(
    "slurm.no-partition",
    "scontrol show partition printed no partition with nodes",
)


def partitions_of(text: str) -> list[ScannedQueue]:
    """Return the partitions that ``scontrol show partition`` printed, those with nodes.

    Raises :class:`BadRequest` for a name that cannot stand in a site config, and where there is
    none with nodes.
    """
    partitions = []
    for record in _partition_records(text):
        name = record.get("PartitionName", "")
        if not _WORD.fullmatch(name):
            raise BadRequest(PARTITION_NAME(name=name[:60]))
        listed = _said(record, "Nodes")
        try:
            names = expand(listed) if listed else []
        except HostfileError as error:
            raise BadRequest(PARTITION_NODES(name=name, why=error)) from None
        if not names:
            continue
        limit = record.get("MaxNodes", "")
        partitions.append(
            ScannedQueue(
                name,
                tuple(names),
                int(limit) if limit.isdecimal() else None,
                _names(record, "AllowGroups"),
                _names(record, "AllowAccounts"),
                record.get("State", "UP") == "UP",
                record.get("Default") == "YES",
                record.get("Hidden") == "YES",
                record.get("RootOnly") == "YES",
            )
        )
    if not partitions:
        raise BadRequest(NO_PARTITION())
    return partitions


def _names(record: Mapping[str, str], key: str) -> frozenset[str]:
    said = _said(record, key)
    return frozenset() if said in ("", "ALL") else frozenset(said.split(","))
