"""A site config from what ``scontrol`` and ``lscpu`` print. Pure: texts go in, a text comes out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from clustergate.launching.hostfiles import HostfileError, expand, fold
from clustergate.machine.nominal import flops_per_cycle
from clustergate.model import BadRequest

_MIB = 1 << 20
_FIELD = re.compile(r"(?:^|\s)([A-Za-z_/:]+)=")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,40}", re.ASCII)
# Slurm takes more names than ReFrame; the characters are those that no shell and no list splits.
_OF_SLURM = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+@-]{0,60}", re.ASCII)
# Site configs of the suite's own.
_RESERVED = ("local", "template")
# Slurm's default, in MiB, where its configuration does not say it.
_NOT_SAID = 1
_SIZES = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_CACHE = re.compile(r"([\d.]+) (B|KiB|MiB|GiB)")


@dataclass(frozen=True)
class SlurmNode:
    """One node as Slurm knows it; ``memory_bytes`` is what jobs may use, 0 where nobody says it."""

    name: str
    cores: int
    memory_bytes: int


@dataclass(frozen=True)
class SlurmPartition:
    """One partition, with its nodes of the kind that most of them are.

    ``others`` are nodes of other kinds, which the suite leaves out; ``most`` is how many a job gets
    at most, None where Slurm does not limit it.
    """

    name: str
    nodes: tuple[SlurmNode, ...]
    others: tuple[str, ...] = ()
    most: int | None = None


@dataclass(frozen=True)
class Processor:
    """What ``lscpu`` says of a node; None where it does not say."""

    model: str
    cores: int
    cache_bytes: int | None
    ghz: float | None
    flops_per_cycle: int | None


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


def nodes_of(text: str) -> dict[str, SlurmNode]:
    """Return the nodes that ``scontrol show node`` printed, by name.

    Raises :class:`BadRequest` when there is none, or one lacks its size.
    """
    nodes = {}
    for record in records(text, "NodeName"):
        name = record["NodeName"]
        try:
            (checked,) = expand(name)
            cores = int(record["Sockets"]) * int(record["CoresPerSocket"])
            memory = int(record["RealMemory"])
            nodes[checked] = SlurmNode(checked, cores, memory * _MIB if memory > _NOT_SAID else 0)
        except (KeyError, ValueError, HostfileError) as error:
            raise BadRequest("slurm.node", name=name[:60], why=error) from None
    if not nodes:
        raise BadRequest("slurm.no-node")
    return nodes


def partitions_of(text: str, nodes: Mapping[str, SlurmNode]) -> list[SlurmPartition]:
    """Return the partitions that ``scontrol show partition`` printed, those with nodes.

    Raises :class:`BadRequest` for a name that cannot stand in a site config.
    """
    partitions = []
    for record in records(text, "PartitionName"):
        name = record["PartitionName"]
        if not _OF_SLURM.fullmatch(name):
            raise BadRequest("slurm.partition-name", name=name[:60])
        listed = record.get("Nodes", "(null)")
        try:
            names = [] if listed in ("", "(null)") else expand(listed)
        except HostfileError as error:
            raise BadRequest("slurm.partition-nodes", name=name, why=error) from None
        known = [nodes[node] for node in names if node in nodes]
        if not known:
            continue
        kinds: dict[tuple[int, int], list[SlurmNode]] = {}
        for node in known:
            kinds.setdefault((node.cores, node.memory_bytes), []).append(node)
        most = max(kinds.values(), key=len)
        others = tuple(node.name for node in known if node not in most)
        limit = record.get("MaxNodes", "")
        at_most = int(limit) if limit.isdecimal() else None
        partitions.append(SlurmPartition(name, tuple(most), others, at_most))
    if not partitions:
        raise BadRequest("slurm.no-partition")
    return partitions


def processor_of(text: str) -> Processor:
    """Return what ``lscpu`` printed.

    Raises :class:`BadRequest` when it does not tell the cores.
    """
    values: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            values.setdefault(key.strip(), value.strip())
    # On Arm without a firmware that tells sockets, lscpu counts clusters.
    each, unit = "Core(s) per socket", "Socket(s)"
    if values.get(unit, "-") == "-":
        each, unit = "Core(s) per cluster", "Cluster(s)"
    try:
        cores = int(values[each]) * int(values[unit])
    except (KeyError, ValueError):
        raise BadRequest("lscpu.no-cores") from None
    caches = [
        float(match[1]) * _SIZES[match[2]]
        for key in ("L1d cache", "L2 cache", "L3 cache")
        if (match := _CACHE.match(values.get(key, "")))
    ]
    amd = values.get("Vendor ID") == "AuthenticAMD"
    family = values.get("CPU family", "")
    clock = values.get("CPU max MHz", "")
    return Processor(
        model=values.get("Model name", "unknown"),
        cores=cores,
        cache_bytes=int(sum(caches)) if caches else None,
        ghz=float(clock) / 1000 if re.fullmatch(r"\d+(\.\d+)?", clock) else None,
        flops_per_cycle=flops_per_cycle(
            "", values.get("Flags", "").split(), int(family) if amd and family.isdigit() else None
        ),
    )


def hostname_patterns(names: Sequence[str]) -> list[str]:
    """Return regular expressions that match these node names, and others numbered like them."""
    patterns = {
        "".join(rf"\d{{{len(p)}}}" if p.isdigit() else re.escape(p) for p in parts)
        for parts in (re.findall(r"\d+|\D+", name) for name in names)
    }
    return sorted(f"{pattern}$" for pattern in patterns)


def site_config(
    system: str,
    partitions: Sequence[SlurmPartition],
    processor: Processor,
    login: str,
    stacks: Sequence[str] = ('stack("mpich"),',),
) -> str:
    """Return the text of a site config with these lines of stacks; what is unknown is a comment.

    ``processor`` is that of the machine where lscpu ran, ``login`` its name, empty where that is no
    machine of the system. Its caches and clock
    are taken for those of a partition whose nodes have as many cores. Raises :class:`BadRequest`
    for a name that cannot be a system's.
    """
    if not _NAME.fullmatch(system):
        raise BadRequest("site.system-name", name=system[:60])
    if system in _RESERVED:
        raise BadRequest("site.reserved-name", name=system)
    names = [node.name for partition in partitions for node in partition.nodes]
    every = hostname_patterns([login, *names] if login else names)
    patterns = ", ".join(f'r"{pattern}"' for pattern in every)
    lines = [
        f'"""{system}, as Slurm describes it; see template.py for what each field means."""',
        "",
        "from clustergate.sites import configuration, stack",
        "",
        "site_configuration = configuration(",
        "    systems=[",
        "        {",
        f'            "name": "{system}",',
        f'            "descr": {_quoted(f"{system}, {len(set(names))} nodes")},',
        *([] if login else ["            # Add the login nodes: this was not written on one."]),
        f'            "hostnames": [{patterns}],',
        '            "partitions": [',
    ]
    for partition in partitions:
        lines += (f"                {line}" for line in _partition(partition, processor))
    lines += ["            ],", "        }", "    ],", "    stacks=["]
    lines += [f"        {line}" for line in stacks]
    lines += ["    ],", ")"]
    return "\n".join(lines) + "\n"


def _partition(partition: SlurmPartition, processor: Processor) -> Iterator[str]:
    node = partition.nodes[0]
    alike = processor.cores == node.cores
    if partition.others:
        yield f"# Left out, as their cores or memory differ: {fold(partition.others)}"
    yield "{"
    # ReFrame's names begin with a letter, and have no other signs than these.
    name = re.sub(r"[^A-Za-z0-9_-]", "-", partition.name)
    yield f'    "name": {_quoted(name if name[0].isalpha() else f"p-{name}")},'
    yield '    "scheduler": "slurm",'
    yield '    "launcher": "clustergate",'
    yield f'    "access": ["--partition={partition.name}", "--exclusive"],'
    yield '    "max_jobs": 1,'
    yield '    "extras": {'
    if partition.most and partition.most < len(partition.nodes):
        yield f"        # A job gets {partition.most} nodes at most (MaxNodes): no case on more"
        yield "        # is available, so the gate does not open. Have it raised, or state fewer."
    yield f'        "nodes": {len(partition.nodes)},'
    yield f'        "cores_per_node": {node.cores},'
    if node.memory_bytes:
        yield f'        "memory_bytes_per_node": {node.memory_bytes},'
    else:
        yield "        # Slurm was not told the memory (RealMemory); see `free --bytes` on a node."
        yield '        # "memory_bytes_per_node": …,'
    if alike and processor.cache_bytes:
        yield f'        "cache_bytes_per_node": {processor.cache_bytes},'
    else:
        yield "        # All data caches of a node together; see lscpu on a node."
        yield '        # "cache_bytes_per_node": …,'
    yield "        # What a node can send, in 10**6 bytes/s: 25000 for 200 Gbit/s."
    yield '        # "link_mb_s": …,'
    if alike and processor.ghz and processor.flops_per_cycle:
        yield f"        # {_remark(processor.model)}: GHz times flops per cycle."
        rate = f"{processor.ghz:g} * {processor.flops_per_cycle}"
    else:
        yield "        # A guess that only sizes problems: enter GHz times flops per cycle of the"
        yield "        # nodes' cores (16 with AVX2, 32 with AVX-512)."
        rate = f"2.0 * {processor.flops_per_cycle or 16}"
    yield f'        "nominal_gflops_per_core": {rate},'
    yield "    },"
    yield "},"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _remark(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9 ().@_-]", " ", text)[:60].strip()
