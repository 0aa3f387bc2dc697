"""This node as the kernel describes it: cores, memory, and what limits a process's use of them.

Everything comes from ``/proc`` and ``/sys`` below a root folder, so that a copy of another
machine's files can be read as well. A file that is missing makes its figure None ("absent"),
never an exception: virtual machines and containers lack many of them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from clustergate.machine.kernel_files import integer, word
from clustergate.machine.kernel_files import text as file_text

SCRIPT = Path(__file__).with_name("node_state.sh")
"""It says on any node what :mod:`clustergate.machine.fingerprint` reads."""
NO_LIMIT_BYTES = 2**60
"""Version 1 of cgroups says "no limit" by a number near 2^63 that depends on the page size."""
GIB = 2**30
END = 2**17
"""Bytes of each end of a file that are compared of what nodes share: all of it takes long."""
# What decides how fast a node is, of what it says.
_OF_SPEED = ("hardware.", "kernel.", "limits.cpu_", "limits.cgroup_")
# Memory available below this share of the node's is reported.
_MUCH_MEMORY = 0.5
_MOST_CPUS = 2**16


@dataclass(frozen=True)
class MemoryBound:
    """Bytes still to be had under one limit; ``source`` names the limit."""

    available_bytes: int
    source: str


@dataclass(frozen=True)
class CpuBound:
    """Logical CPUs (or time worth as many) that one limit allows; ``source`` names the limit."""

    cpus: float
    source: str


@dataclass(frozen=True)
class Cache:
    """All caches of one level, kind (Data, Instruction, Unified) and size among online CPUs."""

    level: int
    kind: str
    size_bytes: int
    instances: int


@dataclass(frozen=True)
class Node:
    """What one node has, and what the process that asked may use of it.

    ``cpus`` are logical CPUs (hardware threads) by the kernel's numbers, ``cores`` are physical.
    ``cpus_allowed`` are those online ones that the affinity of this process permits.
    """

    model_name: str | None
    cpus_online: tuple[int, ...]
    cpus_allowed: tuple[int, ...]
    cores_online: int | None
    cores_allowed: int | None
    caches: tuple[Cache, ...]
    cpu_bounds: tuple[CpuBound, ...]
    memory_total_bytes: int | None
    memory_bounds: tuple[MemoryBound, ...]
    address_space_bytes: int | None
    domains_online: int | None = None

    @property
    def numa_domains(self) -> int | None:
        """The NUMA domains with cores; None where they are unknown, or not all cores usable."""
        return None if self.lacks_cores else self.domains_online

    @property
    def cpu_bound(self) -> CpuBound | None:
        """The tightest limit on logical CPUs, None where nothing could be read."""
        return min(self.cpu_bounds, key=lambda bound: bound.cpus, default=None)

    @property
    def usable_cpus(self) -> int | None:
        """Logical CPUs that this process can keep busy; a quota of 1.5 makes 1, and never 0."""
        bound = self.cpu_bound
        return None if bound is None else max(1, int(bound.cpus))

    @property
    def usable_cores(self) -> int | None:
        """Physical cores that this process can keep busy: the process count for HPL.

        A core counts once even when two of its hardware threads are allowed. Where the kernel does
        not tell cores from threads, each logical CPU counts as a core.
        """
        if self.usable_cpus is None or self.cores_allowed is None:
            return self.usable_cpus
        return min(self.usable_cpus, self.cores_allowed)

    @property
    def _all_cores(self) -> int:
        return self.cores_online or len(self.cpus_online)

    @property
    def lacks_cores(self) -> bool:
        """Whether something keeps this process from some of the node's cores."""
        return self.usable_cores is not None and self.usable_cores < self._all_cores

    def restriction(self) -> str:
        """Return in words what keeps this process from much of the node, empty if nothing does.

        It may be an affinity (taskset(1), a batch system's), a cpuset or a quota of a cgroup; a
        limit on the memory, or others who have half of it.
        """
        restrictions = []
        if self.lacks_cores and self.cpu_bound:
            cores = f"{self.usable_cores} of the node's {self._all_cores} cores"
            restrictions.append(f"{cores} ({self.cpu_bound.source})")
        total, memory = self.memory_total_bytes, self.memory_bound()
        if total and memory and memory.available_bytes < _MUCH_MEMORY * total:
            gib = (
                f"{memory.available_bytes / GIB:.1f} of the node's {total / GIB:.1f} GiB of memory"
            )
            restrictions.append(f"{gib} ({memory.source})")
        return f"this process may use {' and '.join(restrictions)}" if restrictions else ""

    def memory_bound(self, processes: int = 1) -> MemoryBound | None:
        """Return the tightest limit on the memory of ``processes`` together, None if unknown.

        The limit on address space (``ulimit -v``) holds for each process by itself.
        """
        bounds = list(self.memory_bounds)
        if self.address_space_bytes is not None:
            bounds.append(
                MemoryBound(
                    self.address_space_bytes * processes,
                    f"address space limit (ulimit -v) times {processes}",
                )
            )
        return min(bounds, key=lambda bound: bound.available_bytes, default=None)


def read_node(root: Path = Path("/")) -> Node:
    """Read the node whose ``/proc`` and ``/sys`` lie below ``root``, as this process sees it."""
    online = _cpus_online(root)
    allowed = _cpus_allowed(root, online)
    meminfo = _kilobyte_table(root / "proc/meminfo")
    return Node(
        model_name=_model_name(root),
        cpus_online=online,
        cpus_allowed=allowed,
        cores_online=_count_cores(root, online),
        cores_allowed=_count_cores(root, allowed),
        caches=_caches(root, online),
        cpu_bounds=tuple(_cpu_bounds(root, online, allowed)),
        memory_total_bytes=meminfo.get("MemTotal"),
        memory_bounds=tuple(_memory_bounds(root, meminfo)),
        address_space_bytes=_address_space_bytes(root),
        domains_online=sum(
            bool(file_text(path))
            for path in (root / "sys/devices/system/node").glob("node[0-9]*/cpulist")
        )
        or None,
    )


def core_cpus(root: Path = Path("/")) -> tuple[int, ...]:
    """Return one logical CPU of each core that this process may use, in ascending order.

    Where the kernel does not say which CPUs share a core, each is one.
    """
    allowed = _cpus_allowed(root, _cpus_online(root))
    first = {_siblings(root, cpu) or (cpu,): cpu for cpu in reversed(allowed)}
    return tuple(sorted(first.values()))


def node_record(root: Path = Path("/")) -> dict[str, Any]:
    """Return what a log says of the node that its launches ran on: which boot of which processor.

    None is not known.
    """
    clocks = (root / "sys/devices/system/cpu/cpufreq").glob("policy[0-9]*/scaling_governor")
    governors = sorted(set(filter(None, map(word, clocks))))
    return {
        "boot_id": word(root / "proc/sys/kernel/random/boot_id"),
        "processor": _model_name(root),
        "cores": len(core_cpus(root)),
        "governor": ", ".join(governors) or None,
    }


def state_command(folder: Path) -> list[str]:
    """Return the command by which a node says its state into a file of its name in a folder."""
    return ["sh", str(SCRIPT), "/", str(folder)]


def hash_command(folder: Path, own: Iterable[str], shared: Iterable[str]) -> list[str]:
    """Return the command by which a node says what files it has, as :func:`state_command` does.

    Of its ``own`` the SHA-256, of ``shared`` ones that of their size and both ends, as
    :func:`clustergate.machine.configuration.ends_of` takes it.
    """
    script = (
        'half=$0/.$(uname -n).$$; ends=; for file do if [ "$file" = -e ]; then ends=yes; '
        'elif [ "$ends" ]; then [ ! -r "$file" ] || { sum=$({ stat -L -c %s "$file"; '
        f'head -c {END} "$file"; tail -c {END} "$file"; }} | sha256sum); '
        'echo "${sum%% *}  $file"; }; '
        'else sha256sum -- "$file"; fi; done >"$half"; mv "$half" "$0/$(uname -n)"'
    )
    return ["sh", "-c", script, str(folder), *own, "-e", *shared]


def boot_and_settings(state: str) -> str:
    """Return what this boot of this node has and how it is set, as text to compare with another.

    It is empty where the node has not said that.
    """
    boot = word(Path("/proc/sys/kernel/random/boot_id"))
    lines = [line for line in state.splitlines() if line.startswith(_OF_SPEED)]
    return "\n".join([boot, *lines]) if boot and lines else ""


def parse_cpu_list(text: str) -> tuple[int, ...]:
    """Return the numbers in a list such as ``0-3,8,10-11``; an empty list gives none.

    The kernel, Slurm and Flux write it so. Raises ValueError for text that is no such list.
    """
    numbers: list[int] = []
    for part in filter(None, text.strip().split(",")):
        first, dash, last = part.partition("-")
        low, high = int(first), int(last if dash else first)
        if not low <= high < low + _MOST_CPUS:
            raise ValueError(f"{part[:60]!r} is no range of CPUs")
        numbers.extend(range(low, high + 1))
    return tuple(numbers)


# --- CPUs and caches --------------------------------------------------------------------------


def _cpus_online(root: Path) -> tuple[int, ...]:
    return parse_cpu_list(file_text(root / "sys/devices/system/cpu/online") or "")


def _cpus_allowed(root: Path, online: tuple[int, ...]) -> tuple[int, ...]:
    # The list in status may name CPUs that are offline or do not exist; sched_getaffinity would
    # leave them out, and so do we.
    text = _colon_table(root / "proc/self/status").get("Cpus_allowed_list")
    if text is None:
        return online
    allowed = parse_cpu_list(text)
    return tuple(cpu for cpu in allowed if cpu in online) if online else allowed


def _cpu_bounds(
    root: Path, online: tuple[int, ...], allowed: tuple[int, ...]
) -> Iterator[CpuBound]:
    if online:
        yield CpuBound(len(online), "CPUs online")
    if allowed:
        yield CpuBound(len(allowed), "CPU affinity")
    for folder, path in cgroup_levels(root, None):
        quota, _, period = (file_text(folder / "cpu.max") or "max").partition(" ")
        if quota != "max":
            yield CpuBound(int(quota) / int(period), f"cpu.max of cgroup {path}")
    for folder, path in cgroup_levels(root, "cpu"):
        quota_us = integer(folder / "cpu.cfs_quota_us")
        period_us = integer(folder / "cpu.cfs_period_us")
        if quota_us is not None and period_us is not None and quota_us > 0:
            yield CpuBound(quota_us / period_us, f"cpu.cfs_quota_us of cgroup {path}")


def _siblings(root: Path, cpu: int) -> tuple[int, ...] | None:
    topology = root / f"sys/devices/system/cpu/cpu{cpu}/topology"
    # Linux 5.3 gave the file a better name and kept the old one beside it.
    text = file_text(topology / "core_cpus_list") or file_text(topology / "thread_siblings_list")
    return None if text is None else parse_cpu_list(text)


def _count_cores(root: Path, cpus: tuple[int, ...]) -> int | None:
    siblings = {_siblings(root, cpu) for cpu in cpus}
    return None if not siblings or None in siblings else len(siblings)


def _model_name(root: Path) -> str | None:
    table = _colon_table(root / "proc/cpuinfo")
    # POWER says "cpu", LoongArch "Model Name"; ARM gives numbers only.
    return table.get("model name") or table.get("Model Name") or table.get("cpu")


def _caches(root: Path, online: tuple[int, ...]) -> tuple[Cache, ...]:
    sharers: dict[tuple[int, str, int], set[str]] = defaultdict(set)
    for cpu in online:
        for folder in (root / f"sys/devices/system/cpu/cpu{cpu}/cache").glob("index*"):
            level = integer(folder / "level")
            kind = file_text(folder / "type")
            size = re.fullmatch(r"([0-9]+)K", file_text(folder / "size") or "")
            if level is not None and kind is not None and size is not None:
                shared_by = file_text(folder / "shared_cpu_list") or str(cpu)
                sharers[level, kind, int(size[1]) * 1024].add(shared_by)
    return tuple(Cache(*key, instances=len(shared)) for key, shared in sorted(sharers.items()))


# --- memory -----------------------------------------------------------------------------------


def _memory_bounds(root: Path, meminfo: dict[str, int]) -> Iterator[MemoryBound]:
    # Kernels before 3.14 have no MemAvailable; free memory alone is the careful answer there.
    for name in ("MemAvailable", "MemFree"):
        if name in meminfo:
            yield MemoryBound(meminfo[name], name)
            break
    yield from _numa_memory_bound(root)
    for folder, path in cgroup_levels(root, None):
        for name in ("memory.max", "memory.high"):
            yield from _cgroup_memory_bound(
                folder, path, name, usage="memory.current", cache="inactive_file"
            )
    for folder, path in cgroup_levels(root, "memory"):
        yield from _cgroup_memory_bound(
            folder,
            path,
            "memory.limit_in_bytes",
            usage="memory.usage_in_bytes",
            cache="total_inactive_file",
        )


def _cgroup_memory_bound(
    folder: Path, path: str, limit_name: str, usage: str, cache: str
) -> Iterator[MemoryBound]:
    limit = integer(folder / limit_name)
    if limit is None or limit >= NO_LIMIT_BYTES:
        return
    # Usage includes cached file pages; the inactive ones are given up before a process is killed,
    # as with MemAvailable.
    used = (integer(folder / usage) or 0) - _space_table(folder / "memory.stat").get(cache, 0)
    available = min(limit, max(0, limit - used))
    yield MemoryBound(available, f"{limit_name} of cgroup {path}")


def _numa_memory_bound(root: Path) -> Iterator[MemoryBound]:
    text = _colon_table(root / "proc/self/status").get("Mems_allowed_list")
    nodes = set(parse_cpu_list(file_text(root / "sys/devices/system/node/has_memory") or ""))
    allowed = set(parse_cpu_list(text or "")) & nodes
    if not allowed or allowed == nodes:
        return
    folder = root / "sys/devices/system/node"
    tables = [_kilobyte_table(folder / f"node{one}/meminfo") for one in sorted(allowed)]
    if all("MemFree" in table for table in tables):
        available = sum(table["MemFree"] + table.get("Inactive(file)", 0) for table in tables)
        yield MemoryBound(available, f"NUMA nodes allowed ({text})")


def _address_space_bytes(root: Path) -> int | None:
    text = file_text(root / "proc/self/limits") or ""
    match = re.search(r"^Max address space +([0-9]+) ", text, re.MULTILINE)
    return None if match is None else int(match[1])


# --- cgroups ----------------------------------------------------------------------------------


def cgroup_levels(root: Path, controller: str | None) -> list[tuple[Path, str]]:
    """Return folder and path of this process's cgroup and of all above it that can be seen.

    ``controller`` names one of version 1, None means version 2. Limits hold on every level.
    """
    mount = _cgroup_mount(root, controller)
    path = _cgroup_path(root, controller)
    if mount is None or path is None:
        return []
    mounted, mount_point = mount
    levels = PurePosixPath("/")
    # Without a namespace of its own a container sees the host's path, and mounted only its part
    # of the tree; with a namespace the process may even sit outside of what is mounted ("/..").
    if ".." not in path.parts and path.is_relative_to(mounted):
        levels /= path.relative_to(mounted)
    return [
        (root / mount_point.relative_to("/") / level.relative_to("/"), str(level))
        for level in (levels, *levels.parents)
    ]


def _cgroup_mount(root: Path, controller: str | None) -> tuple[PurePosixPath, PurePosixPath] | None:
    for line in (file_text(root / "proc/self/mountinfo") or "").splitlines():
        # proc_pid_mountinfo(5): after a variable number of fields, a lone "-" and then file system
        # type, source and the options, which name version 1's controllers.
        head, _, tail = line.partition(" - ")
        file_system, _, options = tail.split(" ", 2)
        wanted = "cgroup2" if controller is None else "cgroup"
        if file_system == wanted and (controller is None or controller in options.split(",")):
            mounted, mount_point = head.split(" ")[3:5]
            return PurePosixPath(mounted), PurePosixPath(mount_point)
    return None


def _cgroup_path(root: Path, controller: str | None) -> PurePosixPath | None:
    for line in (file_text(root / "proc/self/cgroup") or "").splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0" if controller is None else controller in controllers.split(","):
            return PurePosixPath(path)
    return None


# --- files ------------------------------------------------------------------------------------


def _colon_table(path: Path) -> dict[str, str]:
    """Return the lines ``key: value`` of a file; of several lines with one key the first."""
    table: dict[str, str] = {}
    for line in (file_text(path) or "").splitlines():
        key, colon, value = line.partition(":")
        if colon:
            table.setdefault(key.strip(), value.strip())
    return table


def _kilobyte_table(path: Path) -> dict[str, int]:
    """Return in bytes the lines ``key: 123 kB`` of a meminfo, also with "Node 0" before the key."""
    pattern = r"^(?:Node [0-9]+ )?([^:\n]+): *([0-9]+) kB$"
    return {
        key: int(value) * 1024
        for key, value in re.findall(pattern, file_text(path) or "", re.MULTILINE)
    }


def _space_table(path: Path) -> dict[str, int]:
    """Return the lines ``key 123`` of a memory.stat."""
    return {
        key: int(value)
        for key, value in re.findall(r"^(\S+) ([0-9]+)$", file_text(path) or "", re.MULTILINE)
    }
