"""What should stay the same between two runs on a node.

A fingerprint is a plain mapping of groups to names to values that JSON can hold: text, numbers,
yes or no, lists of text, and None for what this machine does not show ("absent"). It is read from
``/proc`` and ``/sys`` below a root folder; versions of software are those of this process. What
moves by itself is in :mod:`clustergate.machine.load`, what changed between two fingerprints in
:mod:`clustergate.machine.changes`.

It goes into reports and across sites. Therefore no serial numbers, hardware addresses, host or
user names and nothing of the environment is in it; what a kernel's command line says of these is
hidden.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import signal
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from clustergate.machine.environment import is_secret
from clustergate.machine.kernel_files import (
    chosen,
    integer,
    printable,
    processors,
    text,
    word,
)
from clustergate.machine.node import NO_LIMIT_BYTES, Node, cgroup_levels, read_node
from clustergate.model import ClustergateError
from clustergate.paths import checkout

Value = str | int | float | list[str] | None
Fingerprint = dict[str, dict[str, Value]]

SCHEMA = 1

_VECTOR_INSTRUCTIONS = (
    *("sse2", "sse4_2", "avx", "avx2", "fma", "avx512f", "avx512cd", "avx512bw", "avx512dq"),
    *("avx512vl", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16", "amx_int8"),
    *("asimd", "sve", "sve2", "sme"),
)

_KERNEL_SETTINGS = {
    "clocksource": "sys/devices/system/clocksource/clocksource0/current_clocksource",
    "smt": "sys/devices/system/cpu/smt/control",
    "idle_driver": "sys/devices/system/cpu/cpuidle/current_driver",
    "idle_governor": "sys/devices/system/cpu/cpuidle/current_governor_ro",
    "numa_balancing": "proc/sys/kernel/numa_balancing",
    "zone_reclaim_mode": "proc/sys/vm/zone_reclaim_mode",
    "swappiness": "proc/sys/vm/swappiness",
    "overcommit_memory": "proc/sys/vm/overcommit_memory",
    "address_space_randomization": "proc/sys/kernel/randomize_va_space",
    "nmi_watchdog": "proc/sys/kernel/nmi_watchdog",
    "tuned_profile": "etc/tuned/active_profile",
}

_CLOCK_SETTINGS = {
    "cpufreq_driver": "scaling_driver",
    "governor": "scaling_governor",
    "energy_preference": "energy_performance_preference",
}

_NETWORK_SETTINGS = {
    "tcp_congestion_control": "proc/sys/net/ipv4/tcp_congestion_control",
    "tcp_receive_buffer": "proc/sys/net/ipv4/tcp_rmem",
    "tcp_send_buffer": "proc/sys/net/ipv4/tcp_wmem",
    "socket_receive_buffer_max_bytes": "proc/sys/net/core/rmem_max",
    "socket_send_buffer_max_bytes": "proc/sys/net/core/wmem_max",
    "queueing_discipline": "proc/sys/net/core/default_qdisc",
}

# Rows of /proc/<pid>/limits, proc(5): what "ulimit -a" shows.
_LIMITS = {
    "locked_memory_bytes": "locked memory",
    "stack_size_bytes": "stack size",
    "address_space_bytes": "address space",
    "data_size_bytes": "data size",
    "resident_set_bytes": "resident set",
    "core_file_size_bytes": "core file size",
    "file_size_bytes": "file size",
    "message_queue_bytes": "msgqueue size",
    "open_files": "open files",
    "file_locks": "file locks",
    "processes": "processes",
    "pending_signals": "pending signals",
    "cpu_time_s": "cpu time",
    "nice_priority": "nice priority",
    "realtime_priority": "realtime priority",
    "realtime_timeout_us": "realtime timeout",
}

_PROGRAM_TIMEOUT_S = 2.0


class RecordError(ClustergateError):
    """What was stored of a machine cannot be used."""

    exit_status = 1


# --- the whole --------------------------------------------------------------------------------


def read_fingerprint(root: Path = Path("/")) -> Fingerprint:
    """Read what should stay the same on the node whose ``/proc`` and ``/sys`` lie below ``root``.

    Raises nothing: what is missing, forbidden or damaged is None.
    """
    node = _node(root)
    cpus = processors(root)
    return {
        "hardware": {
            **_processor(node, cpus),
            **_memory(node),
            **_firmware(root),
        },
        "kernel": {
            **_system(root),
            **{name: _setting(root / path) for name, path in _KERNEL_SETTINGS.items()},
            **_clocks(root),
            "boost": _boost(root),
            "idle_states": _idle_states(root),
            "huge_pages": _huge_pages(root),
        },
        "limits": {**_process_limits(root), **_cgroup_limits(root, node)},
        "network": {
            **{name: _setting(root / path) for name, path in _NETWORK_SETTINGS.items()},
            **_interfaces(root),
            **_infiniband(root),
        },
        "software": _software(root),
    }


def to_record(fingerprint: Fingerprint) -> dict[str, Any]:
    """Return what is stored of a machine, to be written as JSON."""
    return {"schema": SCHEMA, "fingerprint": fingerprint}


def from_record(content: Any, source: str) -> Fingerprint:
    """Return the fingerprint in what was stored; ``source`` names it in errors.

    Raises :class:`RecordError` for anything that :func:`to_record` did not make.
    """
    if not isinstance(content, dict) or not _is_fingerprint(content.get("fingerprint")):
        raise RecordError("machine.no-record", path=source)
    schema = content.get("schema", SCHEMA)
    if schema != SCHEMA:
        facts = {"path": source, "schema": repr(schema)}
        raise RecordError("machine.other-schema", known=SCHEMA, **facts)
    fingerprint: Fingerprint = content["fingerprint"]
    return fingerprint


def _is_fingerprint(content: Any) -> bool:
    return isinstance(content, dict) and all(
        _is_text(name)
        and isinstance(group, dict)
        and all(map(_is_text, group))
        and all(map(_is_value, group.values()))
        for name, group in content.items()
    )


def _is_value(content: Any) -> bool:
    if isinstance(content, list):
        return all(map(_is_text, content))
    return content is None or isinstance(content, int | float) or _is_text(content)


def _is_text(content: Any) -> bool:
    return isinstance(content, str) and content.isprintable()


# --- hardware ---------------------------------------------------------------------------------


def _node(root: Path) -> Node:
    try:
        return read_node(root)
    except (ValueError, ZeroDivisionError):
        # A damaged file below /proc or /sys: all of the node is absent then, as below this path.
        return read_node(Path(os.devnull))


def _processor(node: Node, cpus: list[dict[str, str]]) -> dict[str, Value]:
    flags = _flags(cpus)
    online = len(node.cpus_online) or None
    return {
        "architecture": printable(node.architecture),
        "processor": printable(node.model_name),
        "virtual_machine": "hypervisor" in flags if "fpu" in flags else None,
        "sockets": node.sockets,
        "cores": node.cores_online,
        "threads_per_core": node.threads_per_core,
        "cpus_online": online,
        "cpus_offline": online and len(node.cpus_offline),
        "vector_instructions": [name for name in _VECTOR_INSTRUCTIONS if name in flags] or None,
        "caches": [
            f"L{cache.level} {cache.kind} {cache.instances} x {cache.size_bytes // 1024} KiB"
            for cache in node.caches
        ]
        or None,
        "microcode": _by_cpu(
            (int(entry["processor"]), printable(entry.get("microcode"))) for entry in cpus
        ),
    }


def _flags(cpus: list[dict[str, str]]) -> set[str]:
    first = cpus[0] if cpus else {}
    return set((first.get("flags") or first.get("Features") or "").split())


def _memory(node: Node) -> dict[str, Value]:
    total = node.memory_total_bytes
    return {
        # The memory of each NUMA node is left out: virtual machines bring it online bit by bit.
        "memory_total_gib": None if total is None else round(total / 2**30, 2),
        "numa_nodes": len(node.numa_nodes) or None,
        "numa_cpus": [f"{numa.number}: {_cpu_list(numa.cpus)}" for numa in node.numa_nodes] or None,
    }


def _firmware(root: Path) -> dict[str, Value]:
    # Only these: the serial numbers and UUIDs of the folder identify a machine.
    names = {
        "system_vendor": "sys_vendor",
        "system_product": "product_name",
        "board": "board_name",
        "bios_vendor": "bios_vendor",
        "bios_version": "bios_version",
        "bios_date": "bios_date",
    }
    return {name: word(root / "sys/class/dmi/id" / file) for name, file in names.items()}


# --- kernel -----------------------------------------------------------------------------------


def _system(root: Path) -> dict[str, Value]:
    huge_pages = root / "sys/kernel/mm/transparent_hugepage"
    return {
        "release": word(root / "proc/sys/kernel/osrelease"),
        # Not /proc/version: that names who compiled the kernel, and on which host.
        "version": word(root / "proc/sys/kernel/version"),
        "command_line": _command_line(word(root / "proc/cmdline")),
        "mitigations": _mitigations(root),
        "transparent_huge_pages": chosen(huge_pages / "enabled"),
        "transparent_huge_pages_defrag": chosen(huge_pages / "defrag"),
        "transparent_huge_pages_shmem": chosen(huge_pages / "shmem_enabled"),
    }


# The boot loader's own words, which change with every kernel and say no more than its release.
_OF_THE_BOOT_LOADER = ("BOOT_IMAGE", "initrd")
# In capitals are variables of the environment, which the kernel hands to init.
_PERSONAL_NAME = re.compile(
    r"(root|nfsroot|netroot|resume|ip|ifname|nameserver|ds|luks|user|[A-Z][A-Z0-9_]*)$"
    r"|(rd|inst|ignition|coreos|luks|cloud-init)\."
    r"|systemd\.(setenv|hostname|machine_id|run|set_credential)"
    # Whole words: "iommu.passthrough" and "spec_store_bypass_disable" are settings.
    r"|(.*[._-])?(pass|password|passwd|secret|token|key|credentials?|user(name|id)|serial|uuid|guid"
    r"|hostname|mac|url)([._-].*)?$"
)
_PERSONAL_VALUE = re.compile(
    r"([0-9a-f]{2}[:-]){5}[0-9a-f]{2}"  # hardware address
    r"|[0-9a-f]{8}-[0-9a-f]{4}-"  # UUID
    r"|[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+"  # IPv4 address
    r"|([0-9a-f]*:){3}"  # IPv6 address
    r"|//|@",
    re.IGNORECASE,
)


def _command_line(line: str | None) -> Value:
    if line is None:
        return None
    # What follows "--" is for init, and may hold anything.
    parameters = re.findall(r'(?:[^\s"]|"[^"]*")+', re.split(r"(?:^|\s)--(?:\s|$)", line)[0])
    return [
        _without_what_identifies(parameter)
        for parameter in parameters
        if parameter.partition("=")[0] not in _OF_THE_BOOT_LOADER
    ]


def _without_what_identifies(parameter: str) -> str:
    name, equals, value = parameter.partition("=")
    personal = _PERSONAL_NAME.match(name) or _PERSONAL_VALUE.search(value) or is_secret("", value)
    return f"{name}=(hidden)" if equals and personal else parameter


def _mitigations(root: Path) -> Value:
    files = sorted((root / "sys/devices/system/cpu/vulnerabilities").glob("*"))
    known = {file.name: value for file in files if (value := word(file))}
    if not known:
        return None
    # Each kernel knows some more that the processor does not have: no change of the machine.
    return [f"{name}: {value}" for name, value in known.items() if value != "Not affected"]


def _clocks(root: Path) -> dict[str, Value]:
    policies = list(_policies(root))

    def setting(file: str) -> str | None:
        return _by_cpu(
            (cpu, value)
            for folder, cpus in policies
            if (value := word(folder / file))
            for cpu in cpus
        )

    def limit(file: str) -> str | None:
        return _by_cpu(
            (cpu, f"{khz / 1000:g}")
            for folder, cpus in policies
            if (khz := integer(folder / file)) is not None
            for cpu in cpus
        )

    return {
        **{name: setting(file) for name, file in _CLOCK_SETTINGS.items()},
        "clock_lowest_allowed_mhz": limit("scaling_min_freq"),
        "clock_highest_allowed_mhz": limit("scaling_max_freq"),
        "clock_highest_possible_mhz": limit("cpuinfo_max_freq"),
    }


def _policies(root: Path) -> Iterator[tuple[Path, list[int]]]:
    """Yield the folders that hold a clock's settings, each with the CPUs that share them."""
    for folder in (root / "sys/devices/system/cpu/cpufreq").glob("policy[0-9]*"):
        cpus = word(folder / "related_cpus") or folder.name.removeprefix("policy")
        yield folder, [int(cpu) for cpu in cpus.split() if cpu.isdecimal()]


def _boost(root: Path) -> str | None:
    cpu = root / "sys/devices/system/cpu"
    by_intel = {"0": "on", "1": "off"}.get(word(cpu / "intel_pstate/no_turbo") or "")
    return by_intel or {"0": "off", "1": "on"}.get(word(cpu / "cpufreq/boost") or "")


def _idle_states(root: Path) -> Value:
    cpus = root / "sys/devices/system/cpu"
    names: dict[str, str] = {}
    disabled: dict[str, list[int]] = defaultdict(list)
    for state in sorted(cpus.glob("cpu[0-9]*/cpuidle/state[0-9]*")):
        cpu = int(re.sub(r"\D", "", state.parts[-3]))
        names.setdefault(state.name, word(state / "name") or state.name)
        if integer(state / "disable"):
            disabled[state.name].append(cpu)
    return [
        f"{names[state]} (disabled on {_cpu_list(disabled[state])})"
        if disabled[state]
        else names[state]
        for state in sorted(names)
    ] or None


def _huge_pages(root: Path) -> Value:
    folders = sorted((root / "sys/kernel/mm/hugepages").glob("hugepages-*"))
    return [
        f"{count} of {folder.name.removeprefix('hugepages-')}"
        for folder in folders
        if (count := integer(folder / "nr_hugepages")) is not None
    ] or None


# --- limits -----------------------------------------------------------------------------------


def _process_limits(root: Path) -> dict[str, Value]:
    rows = re.findall(
        r"^Max (\S+(?: \S+)*) {2,}(unlimited|[0-9]{1,20}) ",
        text(root / "proc/self/limits") or "",
        re.MULTILINE,
    )
    soft = {row: limit if limit == "unlimited" else int(limit) for row, limit in rows}
    return {name: soft.get(row) for name, row in _LIMITS.items()}


def _cgroup_limits(root: Path, node: Node) -> dict[str, Value]:
    # Without the cgroups' paths: they hold the numbers of jobs and users.
    quotas = [bound.cpus for bound in node.cpu_bounds if "cgroup" in bound.source]
    memory = [
        limit
        for controller, files in (
            (None, ("memory.max", "memory.high")),
            ("memory", ("memory.limit_in_bytes",)),
        )
        for folder in _cgroup_folders(root, controller)
        for file in files
        if (limit := integer(folder / file)) is not None and limit < NO_LIMIT_BYTES
    ]
    return {
        "cpu_affinity": _cpu_list(node.cpus_allowed) or None,
        "cgroup_cpus": min(quotas, default=None),
        "cgroup_memory_bytes": min(memory, default=None),
    }


def _cgroup_folders(root: Path, controller: str | None) -> list[Path]:
    try:
        return [folder for folder, _ in cgroup_levels(root, controller)]
    except ValueError:
        return []


# --- network ----------------------------------------------------------------------------------


def _interfaces(root: Path) -> dict[str, Value]:
    """Return the figures of interfaces with hardware behind them and of those with a route.

    Others come and go with containers.
    """
    routes = (text(root / "proc/net/route") or "").splitlines()[1:]
    routed = {route.split()[0] for route in routes if route.split()}
    figures: dict[str, Value] = {}
    for folder in sorted((root / "sys/class/net").glob("*")):
        if not os.path.exists(folder / "device") and folder.name not in routed:
            continue
        name = f"interface.{_without_address(folder.name)}"
        speed = integer(folder / "speed")
        figures |= {
            f"{name}.state": word(folder / "operstate"),
            # -1 is the kernel's word for not known.
            f"{name}.speed_mbit_s": speed if speed is not None and speed > 0 else None,
            f"{name}.mtu_bytes": integer(folder / "mtu"),
            **_device(root, folder / "device", name),
        }
    return figures or {"interfaces": None}


def _without_address(interface: str) -> str:
    """Return a name such as ``enx0123456789ab`` without the hardware address in it."""
    return re.sub(r"(?<=x)[0-9a-f]{12,16}$", "(address hidden)", interface)


def _infiniband(root: Path) -> dict[str, Value]:
    figures: dict[str, Value] = {}
    for folder in sorted((root / "sys/class/infiniband").glob("*")):
        name = f"infiniband.{_without_address(folder.name)}"
        figures |= {
            f"{name}.firmware": word(folder / "fw_ver"),
            f"{name}.type": word(folder / "hca_type"),
            f"{name}.board": word(folder / "board_id"),
            **_device(root, folder / "device", name),
        }
        for port in sorted((folder / "ports").glob("[0-9]*")):
            figures |= {
                f"{name} port {port.name}.state": word(port / "state"),
                f"{name} port {port.name}.physical_state": word(port / "phys_state"),
                f"{name} port {port.name}.rate": word(port / "rate"),
                f"{name} port {port.name}.link_layer": word(port / "link_layer"),
            }
    return figures or {"infiniband": None}


def _device(root: Path, device: Path, name: str) -> dict[str, Value]:
    driver = _link_target(device / "driver")
    speed, width = word(device / "current_link_speed"), word(device / "current_link_width")
    return {
        f"{name}.driver": driver,
        f"{name}.driver_version": driver and word(root / "sys/module" / driver / "version"),
        f"{name}.pci_link": f"{speed} x{width}" if speed and width else None,
    }


def _link_target(link: Path) -> str | None:
    try:
        return printable(os.path.basename(os.readlink(link)))
    except OSError:
        return None


# --- software ---------------------------------------------------------------------------------


def _software(root: Path) -> dict[str, Value]:
    return {
        "operating_system": _operating_system(root),
        "c_library": _c_library(),
        "preloaded_libraries": _preloaded(root),
        "compiler": _first_line(["cc", "--version"]),
        "python": platform.python_version(),
        "reframe": _package_version("ReFrame-HPC"),
        "clustergate": _package_version("clustergate"),
        "clustergate_checkout": _describe_checkout(checkout()),
    }


def _operating_system(root: Path) -> str | None:
    for place in ("etc/os-release", "usr/lib/os-release"):
        content = text(root / place) or ""
        match = re.search(r"^PRETTY_NAME=([\"']?)(.+)\1$", content, re.MULTILINE)
        if match is not None:
            return printable(match[2])
    return None


def _preloaded(root: Path) -> list[str]:
    """Return what the loader puts into every program, ld.so(8): spaces and colons divide."""
    lines = (text(root / "etc/ld.so.preload") or "").splitlines()
    words = re.split(r"[\s:]+", " ".join(line.partition("#")[0] for line in lines))
    return [known for word in words if (known := printable(word))]


def _c_library() -> str | None:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION")
    except (ValueError, OSError):
        # Not the GNU C library.
        return None


def _package_version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _describe_checkout(folder: Path) -> str | None:
    # An installed package may lie inside somebody else's repository.
    if not os.path.exists(folder / ".git"):
        return None
    return _first_line(["git", "-C", str(folder), "describe", "--tags", "--always", "--dirty"])


def _first_line(command: list[str]) -> str | None:
    """Return the first line that a program prints, None if it fails or takes its time."""
    # A GIT_DIR from outside would answer for another repository.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        with subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**environment, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"},
            # A process group of its own: what a wrapper script started must end with it.
            start_new_session=True,
        ) as process:
            try:
                output, _ = process.communicate(timeout=_PROGRAM_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                return None
    except OSError:
        return None
    line = output.decode("utf-8", errors="replace").partition("\n")[0].strip()
    return printable(line) if process.returncode == 0 else None


# --- values -----------------------------------------------------------------------------------


def _setting(path: Path) -> Value:
    number = integer(path)
    return word(path) if number is None else number


def _by_cpu(values: Iterable[tuple[int, str | None]]) -> str | None:
    """Return the value that all CPUs share, else each value with the CPUs that have it."""
    cpus: dict[str, list[int]] = defaultdict(list)
    for cpu, value in values:
        if value is not None:
            cpus[value].append(cpu)
    if len(cpus) <= 1:
        return next(iter(cpus), None)
    ordered = sorted(cpus.items(), key=lambda item: min(item[1]))
    return ", ".join(f"{value} ({_cpu_list(numbers)})" for value, numbers in ordered)


def _cpu_list(cpus: Iterable[int]) -> str:
    """Return numbers as the kernel lists them: ``0-3,8``."""
    runs: list[list[int]] = []
    for cpu in sorted(cpus):
        if runs and cpu == runs[-1][-1] + 1:
            runs[-1].append(cpu)
        else:
            runs.append([cpu])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
