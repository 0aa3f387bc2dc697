"""The text of a site config, from kinds of nodes and what ``lscpu`` prints. Pure."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from clustergate.core.model import BadRequest
from clustergate.core.notation import counted
from clustergate.core.reasons import Words
from clustergate.launch.hostfiles import fold
from clustergate.machine.nominal import flops_per_cycle
from clustergate.sites.description import MAX_JOBS
from clustergate.sites.kinds import NodeKind
from clustergate.sites.schedulers.scheduler import Scheduler

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,40}", re.ASCII)
# Site configs of the suite's own.
_RESERVED = ("local", "template")
_SIZES = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "K": 1 << 10, "M": 1 << 20}
_CACHES = re.compile(r"([\d.]+) (B|KiB|MiB|GiB)\b")
_ONE_CACHE = re.compile(r"(\d+)([KM])")
# Features that a comment names.
_MOST_FEATURES = 8


@dataclass(frozen=True)
class Processor:
    """What ``lscpu`` says of a node; None where it does not say."""

    model: str
    cores: int
    cache_bytes: int | None
    domains: int
    ghz: float | None
    flops_per_cycle: int | None


NO_CORES = Words(
    "lscpu.no-cores",
    "no cores and sockets in the output of lscpu",
    remedy="is this its output?",
)


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
        sockets = int(values[unit])
        cores = int(values[each]) * sockets
    except (KeyError, ValueError):
        raise BadRequest(NO_CORES()) from None
    amd = values.get("Vendor ID") == "AuthenticAMD"
    family = values.get("CPU family", "")
    return Processor(
        model=values.get("Model name", "unknown"),
        cores=cores,
        cache_bytes=_cache_bytes(values, cores, sockets),
        # Those without CPUs are memory alone.
        domains=sum(bool(re.match(r"NUMA node\d+ CPU", key) and values[key]) for key in values),
        ghz=_base_ghz(values),
        flops_per_cycle=flops_per_cycle(
            "", values.get("Flags", "").split(), int(family) if amd and family.isdigit() else None
        ),
    )


def _cache_bytes(values: Mapping[str, str], cores: int, sockets: int) -> int | None:
    """Return the data caches of a node; None where lscpu does not tell them all.

    util-linux 2.34 and later prints all instances of a level together, ``64 KiB (2 instances)``.
    Before, ``32K``, it printed one: L1d and L2 are a core's, and Intel has an L3 for each socket,
    AMD one for some of its cores.
    """
    levels = ("L1d cache", "L2 cache", "L3 cache")
    if totals := [match for key in levels if (match := _CACHES.match(values.get(key, "")))]:
        return int(sum(float(match[1]) * _SIZES[match[2]] for match in totals))
    each = [_ONE_CACHE.fullmatch(values.get(key, "")) for key in levels]
    if each[0] is None or (each[2] and values.get("Vendor ID") != "GenuineIntel"):
        return None
    instances = zip(each, (cores, cores, sockets), strict=True)
    return sum(int(one[1]) * _SIZES[one[2]] * count for one, count in instances if one)


def _base_ghz(values: Mapping[str, str]) -> float | None:
    """Return the clock that all cores can keep up; None where lscpu does not tell it.

    "CPU max MHz" is one core's turbo where there is one. The time stamp counter of x86 ticks at the
    base clock, and BogoMIPS is twice its MHz; in a virtual machine it is what the host says.
    """
    if stated := re.search(r"@ (\d+\.\d+)GHz", values.get("Model name", "")):
        return float(stated[1])
    x86 = values.get("Architecture") == "x86_64"
    key, per_ghz = ("BogoMIPS", 2000) if x86 else ("CPU max MHz", 1000)
    said = values.get(key, "")
    mega = float(said) if re.fullmatch(r"\d+(\.\d+)?", said) else 0.0
    return round(mega / per_ghz, 2) or None


def hostname_patterns(names: Sequence[str]) -> list[str]:
    """Return regular expressions that match these node names, and others numbered like them."""
    patterns = {
        "".join(rf"\d{{{len(p)}}}" if p.isdigit() else re.escape(p) for p in parts)
        for parts in (re.findall(r"\d+|\D+", name) for name in names)
    }
    return sorted(f"{pattern}$" for pattern in patterns)


def rdma_devices(root: Path = Path("/")) -> list[str]:
    """Return the adapters of this node that reach other nodes' memory."""
    return sorted(device.name for device in (root / "sys/class/infiniband").glob("*"))


RESERVED_NAME = Words(
    "site.reserved-name",
    "the site config {name} is the suite's own",
    remedy="choose another name",
)
SYSTEM_NAME = Words(
    "site.system-name",
    "{name!r} is not a valid name of a system",
    remedy="use letters, digits, '_' and '-', beginning with a letter",
)


def site_config(
    system: str,
    kinds: Sequence[NodeKind],
    scheduler: Scheduler,
    processor: Processor,
    login: str,
    stacks: Sequence[str] = ('stack("mpich"),',),
    left_out: Mapping[str, Sequence[str]] = MappingProxyType({}),
    booted_s: float | None = None,
) -> str:
    """Return the text of a site config with these lines of stacks; what is unknown is a comment.

    ``left_out`` are nodes that are in no partition, by the reason.

    ``processor`` is that of the machine where lscpu ran, ``login`` its name, empty where that is no
    machine of the system. Its caches and clock are taken for those of a partition whose nodes have
    as many cores. ``booted_s`` is when the machine booted that asks, in seconds since the epoch,
    None where it is none of the system's. Raises :class:`BadRequest` for a name that cannot be a
    system's.
    """
    if not _NAME.fullmatch(system):
        raise BadRequest(SYSTEM_NAME(name=system[:60]))
    if system in _RESERVED:
        raise BadRequest(RESERVED_NAME(name=system))
    names = [node.name for kind in kinds for node in kind.nodes]
    count = counted(len(names), "node")
    every = hostname_patterns([login, *names] if login else names)
    patterns = ", ".join(f'r"{pattern}"' for pattern in every)
    lines = [
        f'"""{system}, as {scheduler.name} describes it; see template.py for each field."""',
        "",
        "from clustergate.sites import configuration, stack",
        "",
        "site_configuration = configuration(",
        "    systems=[",
        "        {",
        f'            "name": "{system}",',
        f'            "descr": {_quoted(f"{system}, {count}")},',
        *([] if login else ["            # Add the login nodes: this was not written on one."]),
        f'            "hostnames": [{patterns}],',
        '            "partitions": [',
    ]
    for why, nodes in left_out.items():
        lines += _comment(f"In no partition, because {why}: {fold(nodes)}", 16)
    for kind in kinds:
        partition = _partition(kind, scheduler, processor, booted_s)
        lines += (f"                {line}" for line in partition)
    lines += ["            ],", "        }", "    ],", "    stacks=["]
    lines += [f"        {line}" for line in stacks]
    lines += ["    ],", ")"]
    return "\n".join(lines) + "\n"


def _partition(
    kind: NodeKind, scheduler: Scheduler, processor: Processor, booted_s: float | None = None
) -> Iterator[str]:
    node, queue = kind.nodes[0], kind.queue
    names = fold(one.name for one in kind.nodes)
    yield from _comment(f"{counted(len(kind.nodes), 'node')}: {names}")
    if kind.others:
        also = [q.name + (f" ({', '.join(q.terms)})" if q.terms else "") for q in kind.others]
        others = f"{scheduler.name} has nodes of these in other {scheduler.queue_word}s too"
        yield from _comment(f"{others}: {', '.join(also)}")
    if kind.foreign and not kind.choosing:
        other = f"Jobs may get nodes of other kinds, too: {fold(kind.foreign)}"
        yield from _comment(f"{other}; {scheduler.narrows}.")
    if kind.features_of_some:
        yield from _comment(_features(kind.features_of_some))
    yield "{"
    yield f'    "name": {_quoted(kind.name)},'
    yield f'    "scheduler": "{scheduler.reframe_names[0]}",'
    yield '    "launcher": "clustergate",'
    words = scheduler.access_to(queue.name, kind.choosing)
    yield f'    "access": [{", ".join(map(_quoted, words))}],'
    yield f'    "max_jobs": {MAX_JOBS if scheduler.is_exclusive(words) else 1},'
    yield '    "extras": {'
    count = min(len(kind.nodes), queue.most or len(kind.nodes))
    if count < len(kind.nodes):
        most = f"a job gets no more ({scheduler.most_nodes})"
        yield f"        # {count} of the {len(kind.nodes)}: {most}."
    yield f'        "nodes": {count},'
    if scheduler.counts_threads:
        yield "        # Enter half of it where ncpus are hardware threads, two a core."
    yield f'        "cores_per_node": {kind.cores},'
    if reserved := node.hardware_cores - kind.cores:
        yield f"        # Of {node.hardware_cores}, for the system."
        yield f'        "reserved_cores_per_node": {reserved},'
    if kind.memory_bytes:
        yield f'        "memory_bytes_per_node": {kind.memory_bytes},'
    else:
        yield f"        # {scheduler.name} was not told the memory; see `free --bytes` on a node."
        yield '        # "memory_bytes_per_node": …,'
    if kind.shares_machine(booted_s):
        yield from _comment(
            "These nodes share one machine, its cores and its network: bound ranks of several "
            "nodes would meet on its first cores, and pairs measured at once would disturb each "
            "other. Remove both lines if they do not.",
            8,
        )
        yield '        "bind_to_cores": False,'
        yield '        "screen_at_once": 1,'
    alike = processor.cores == node.hardware_cores
    if alike and processor.cache_bytes:
        yield f'        "cache_bytes_per_node": {processor.cache_bytes},'
    else:
        yield "        # All data caches of a node together; see lscpu on a node."
        yield '        # "cache_bytes_per_node": …,'
    if alike and processor.domains > 1:
        yield f'        "numa_domains_per_node": {processor.domains},'
    yield "        # What a node can send, in 10**6 bytes/s: 25000 for 200 Gbit/s."
    yield '        # "link_mb_s": …,'
    if alike and processor.ghz and processor.flops_per_cycle:
        yield f"        # {_remark(processor.model)}: base clock in GHz times flops per cycle."
        rate = f"{processor.ghz:g} * {processor.flops_per_cycle}"
    else:
        yield "        # A guess that only sizes problems: enter GHz times flops per cycle of the"
        yield "        # nodes' cores (16 with AVX2, 32 with AVX-512)."
        rate = f"2.0 * {processor.flops_per_cycle or 16}"
    yield f'        "nominal_gflops_per_core": {rate},'
    yield "    },"
    yield "},"


def _features(of_some: Mapping[str, Sequence[str]]) -> str:
    named = [f"{name} ({fold(nodes)})" for name, nodes in of_some.items()]
    more = len(named) - _MOST_FEATURES
    shown = ", ".join(named[:_MOST_FEATURES]) + (f" and {more} more" if more > 0 else "")
    return (
        f"Some have features that others lack: {shown}. If one of these means another processor or "
        "network, make it a partition of its own, with --constraint."
    )


def _comment(text: str, indent: int = 0) -> list[str]:
    """Return lines of a comment; a long list of nodes stays in one piece."""
    start = " " * indent + "# "
    return textwrap.wrap(
        text,
        100 - 16,
        initial_indent=start,
        subsequent_indent=start,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _remark(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9 ().@_-]", " ", text)[:60].strip()
