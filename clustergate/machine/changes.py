"""What changed on a node between two runs, the likeliest explanation of a slowdown first."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from clustergate.core.notation import listed
from clustergate.machine.fingerprint import Value

_PROGRAMS = "software.benchmark_programs_of_"
LIKELIEST_FIRST = (
    # Another processor, or less of it: nothing else needs explaining.
    "hardware.architecture",
    "hardware.processor",
    "hardware.sockets",
    "hardware.cores",
    "hardware.threads_per_core",
    "hardware.cpus_",
    "hardware.vector_instructions",
    # What an update or a new boot changes at once.
    "kernel.release",
    "kernel.version",
    "kernel.command_line",
    "kernel.mitigations",
    "kernel.transparent_huge_pages",
    # What stands before a program, or within its MPI library.
    "software.preloaded_libraries",
    "software.configuration_of_",
    # What is launched.
    "software.launcher_of_",
    "software.library_of_",
    "software.BLAS_of_",
    "software.programs_of_",
    _PROGRAMS,
    "software.variables_of_",
    # How fast the cores may run.
    "kernel.governor",
    "kernel.boost",
    "kernel.clock_",
    "kernel.energy_preference",
    "kernel.cpufreq_driver",
    "kernel.tuned_profile",
    "kernel.smt",
    "hardware.processor",
    "hardware.microcode",
    "hardware.bios_",
    "kernel.clocksource",
    # Links.
    "network.infiniband.",
    "network.interface.",
    # What a process may use.
    "limits.cgroup_",
    "limits.cpu_affinity",
    "limits.locked_memory_bytes",
    "limits.stack_size_bytes",
    "limits.",
    "login_limits.",
    # Memory and how it is handed out.
    "hardware.memory_total_gib",
    "hardware.numa_",
    "kernel.numa_balancing",
    "kernel.zone_reclaim_mode",
    "kernel.huge_pages",
    "kernel.idle_",
    "kernel.",
    "network.",
    "hardware.",
    "software.",
)
"""Beginnings of dotted names: of several changes, which explains a slowdown best, by experience."""
# Lists of files, a name before what tells the file: where a link leads, or a checksum.
_FILES = tuple(
    f"software.{kind}" for kind in ("libraries", "launcher_of_", "library_of_", "BLAS_of_")
)


@dataclass(frozen=True)
class Difference:
    """One thing that changed; ``name`` is group and name with a dot, None is "absent".

    A device that came or went is one difference, with its figures as text.
    """

    name: str
    before: Value
    after: Value


def differences(
    before: Mapping[str, Mapping[str, Value]], after: Mapping[str, Mapping[str, Value]]
) -> list[Difference]:
    """Return what changed, the likeliest explanation of a slowdown first (LIKELIEST_FIRST).

    A name that only one of the two knows was recorded by another version of clustergate and says
    nothing; a device (``interface.eth0.…``) that only one of them has came or went.
    """
    changed = [
        Difference(f"{group}.{name}", old, new)
        for group, values in before.items()
        if group in after
        for name, (old, new) in _pairs(values, after[group]).items()
        if not _same(f"{group}.{name}", old, new)
    ]
    return sorted(changed, key=_rank)


def changes_of_nodes(
    before: Mapping[str, Mapping[str, Mapping[str, Value]]],
    after: Mapping[str, Mapping[str, Mapping[str, Value]]],
) -> list[tuple[Difference, list[str]]]:
    """Return each change with the nodes that have it, of those in both; the likeliest cause first.

    States that many nodes share are compared once.
    """
    between: dict[tuple[int, int], list[Difference]] = {}
    with_nodes: dict[str, tuple[Difference, list[str]]] = {}
    for node in before.keys() & after.keys():
        old, new = before[node], after[node]
        if (id(old), id(new)) not in between:
            between[id(old), id(new)] = differences(old, new)
        for change in between[id(old), id(new)]:
            with_nodes.setdefault(repr(change), (change, []))[1].append(node)
    changes = [(change, sorted(nodes)) for change, nodes in with_nodes.values()]
    return sorted(changes, key=lambda one: (_rank(one[0]), -len(one[1]), one[1]))


def describe_one(difference: Difference) -> str:
    """Return what changed in words, of a list only what was taken away and what was added."""
    old, new = difference.before, difference.after
    name = label(difference.name)
    if not isinstance(old, list) or not isinstance(new, list):
        return f"{name} {shown(difference.name, old)} -> {shown(difference.name, new)}"
    if difference.name.startswith(_PROGRAMS):
        return f"{name} {_programs(old, new)}"
    parts = [
        f"{preposition} {shown(difference.name, items)}"
        for preposition, items in (
            ("without", _less(difference.name, old, new)),
            ("with", _less(difference.name, new, old)),
        )
        if items
    ]
    return f"{name} {' and '.join(parts) or 'in another order'}"


def _programs(old: Iterable[str], new: Iterable[str]) -> str:
    """Return which programs went, came and were built anew: a new wheel changes them all."""
    before, after = (dict(item.rsplit(" ", 1) for item in items) for items in (old, new))
    anew = [name for name in before.keys() & after.keys() if before[name] != after[name]]
    names = {
        "without": before.keys() - after.keys(),
        "with": after.keys() - before.keys(),
        "with other builds of": anew,
    }
    parts = [f"{how} {listed(sorted(which))}" for how, which in names.items() if which]
    return " and ".join(parts) or "in another order"


def label(name: str) -> str:
    """Return a dotted name in words, without the unit that :func:`shown` adds to the value."""
    if name in _NEEDS_ITS_GROUP:
        return _words(name.replace(".", "_"))
    kind, dot, rest = name.partition(".")[2].partition(".")
    if not dot:
        return _words(kind)
    # "interface.eth0.mtu_bytes", or "infiniband.mlx5_0" for the whole: devices keep their names.
    device, dot, attribute = rest.rpartition(".")
    return f"{kind} {device} {_words(attribute)}" if dot else f"{kind} {rest}"


def shown(name: str, value: Value) -> str:
    """Return the value of a dotted name for a reader, with its unit."""
    if value is None:
        return "absent"
    if isinstance(value, list):
        return (", " if any(" " in item for item in value) else " ").join(value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    suffix = _unit_suffix(name)
    return str(value) if suffix is None or value == "unlimited" else f"{value} {_UNITS[suffix]}"


_UNITS = {
    "_bytes": "bytes",
    "_gib": "GiB",
    "_mbit_s": "Mbit/s",
    "_mhz": "MHz",
    "_us": "us",
    "_s": "s",
    "_percent": "%",
    "_celsius": "C",
}
_NEEDS_ITS_GROUP = ("kernel.release", "kernel.version", "kernel.command_line")


def _words(name: str) -> str:
    return name.removesuffix(_unit_suffix(name) or "").replace("_", " ")


def _unit_suffix(name: str) -> str | None:
    return next((suffix for suffix in _UNITS if name.endswith(suffix)), None)


def _rank(difference: Difference) -> int:
    matches = (
        rank
        for rank, beginning in enumerate(LIKELIEST_FIRST)
        if difference.name.startswith(beginning)
    )
    return next(matches, len(LIKELIEST_FIRST))


def _pairs(
    before: Mapping[str, Value], after: Mapping[str, Value]
) -> dict[str, tuple[Value, Value]]:
    came_or_gone = _devices(before) ^ _devices(after)
    pairs: dict[str, tuple[Value, Value]] = {}
    for name in (*before, *after):
        device = _device(name)
        if device in came_or_gone:
            pairs[device] = (_figures(before, device), _figures(after, device))
        elif name in before and name in after:
            pairs[name] = (before[name], after[name])
    return pairs


def _devices(values: Mapping[str, Value]) -> set[str]:
    return {_device(name) for name in values} - {""}


def _device(name: str) -> str:
    """Return ``interface.eth0`` of ``interface.eth0.state``, nothing of a plain name."""
    return name.rpartition(".")[0]


def _figures(values: Mapping[str, Value], device: str) -> str | None:
    figures = [
        f"{_words(name.rpartition('.')[2])} {shown(name, value)}"
        for name, value in values.items()
        if _device(name) == device and value is not None
    ]
    return ", ".join(figures) or None


def _same(name: str, old: Value, new: Value) -> bool:
    if isinstance(old, list) and isinstance(new, list) and name.startswith(_FILES):
        return not _less(name, old, new) and not _less(name, new, old)
    # Fractions are sizes, of which a kernel keeps some MB more or less for itself at each boot.
    if isinstance(old, float) and isinstance(new, float):
        return math.isclose(old, new, rel_tol=0.01)
    return old == new


def _less(name: str, items: list[str], others: list[str]) -> list[str]:
    def file_of(item: str) -> str:
        # It may be known by the name of a link to it.
        return item.rpartition(" ")[2] if name.startswith(_FILES) else item

    known = set(map(file_of, others))
    return [item for item in items if file_of(item) not in known]
