"""What moves on a node while something runs: load, stolen time, pressure, clocks, heat, memory.

Two readings, before and after a run, tell what the run met: :func:`load_between`. Counters start
at boot, so a single reading says little.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from clustergate.machine.kernel_files import integer, processors, text, word

# Cores' worth of others' work from which a launch is disturbed, however many cores the node has: a
# launch waits for its slowest rank. On a virtual machine of two cores the kernel and the hypervisor
# alone take up to 0.09; docs/verdicts.md tells what this separates there.
DISTURBING_CORES = 0.1
# Fields of /proc/stat, proc(5). Guest time is left out: the kernel counts it as user time too.
_JIFFIES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
# The kernel knows "full" of the CPU only within cgroups; for the whole system it is always 0.
_PRESSURES = (
    ("cpu", "some"),
    ("memory", "some"),
    ("memory", "full"),
    ("io", "some"),
    ("io", "full"),
)
# Bounded: Python refuses to convert thousands of digits, which only damaged files have.
_WHOLE = "[0-9]{1,20}"
_DECIMAL = r"[0-9]{1,20}\.[0-9]{1,9}"
# Sensors of a processor. Others can wake a disk or wait for a management controller for seconds.
_PROCESSOR_SENSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal")


def read_load(root: Path = Path("/")) -> dict[str, Any]:
    """Return what the node whose ``/proc`` and ``/sys`` lie below ``root`` is doing now.

    Plain values that JSON can hold; None for what the machine does not show. Jiffies, pressures
    in us, throttle events, swapped pages and kills for lack of memory count from boot.
    """
    statistics = _numbers(root / "proc/vmstat")
    swapped = (statistics.get("pswpin"), statistics.get("pswpout"))
    return {
        "uptime_s": _uptime_s(root),
        **_load_average(root),
        **_jiffies(root),
        **_pressures(root),
        "clock_mhz_by_cpu": _clock_mhz_by_cpu(root),
        "temperature_celsius": _temperature_celsius(root),
        "core_throttle_events": _throttle_events(root, "core"),
        "package_throttle_events": _throttle_events(root, "package"),
        "memory_available_bytes": _memory_available_bytes(root),
        "pages_swapped": None if None in swapped else sum(filter(None, swapped)),
        "oom_kills": statistics.get("oom_kill"),
    }


def load_between(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the node went through between two readings, with the unit in every name.

    ``steal_percent`` is the share of all CPUs' time that the host gave to others,
    ``steal_worst_cpu_percent`` that of the CPU which lost most. A pressure is the share of the
    time in which some (or all: ``full``) tasks waited. ``busy_cpus_mean`` is the mean number of
    CPUs that worked, stolen time not counted. None where a reading lacks the figure; all None
    when the node was started anew in between.
    """
    elapsed_s = _increase(before, after, "uptime_s")
    if not elapsed_s:
        before = after = {}
    jiffies = _jiffies_between(before.get("cpu_jiffies"), after.get("cpu_jiffies"))
    by_cpu = after.get("cpu_jiffies_by_cpu") or {}
    worst = _worst_steal(before.get("cpu_jiffies_by_cpu") or {}, by_cpu)
    heat = [
        celsius
        for reading in (before, after)
        for celsius in (reading.get("temperature_celsius") or {}).values()
    ]
    memory = [reading.get("memory_available_bytes") for reading in (before, after)]
    return {
        "elapsed_s": round(elapsed_s, 2) if elapsed_s else None,
        "steal_percent": _percent(jiffies.get("steal"), sum(jiffies.values())),
        "steal_worst_cpu_percent": worst,
        "iowait_percent": _percent(jiffies.get("iowait"), sum(jiffies.values())),
        "busy_cpus_mean": _busy_cpus(jiffies, len(by_cpu)),
        "load_average_1min_before": before.get("load_average_1min"),
        "load_average_1min_after": after.get("load_average_1min"),
        **{
            f"{resource}_pressure_{kind}_percent": _percent(
                _increase(before, after, f"{resource}_pressure_{kind}_us"),
                (elapsed_s or 0) * 1e6,
            )
            for resource, kind in _PRESSURES
        },
        "temperature_celsius_highest": max(heat, default=None),
        "core_throttle_events": _increase(before, after, "core_throttle_events"),
        "package_throttle_events": _increase(before, after, "package_throttle_events"),
        "memory_available_bytes_lowest": min(filter(None, memory), default=None),
        "pages_swapped": _increase(before, after, "pages_swapped"),
        "oom_kills": _increase(before, after, "oom_kills"),
    }


# --- reading ----------------------------------------------------------------------------------


def _uptime_s(root: Path) -> float | None:
    match = re.match(rf"({_DECIMAL}) ", word(root / "proc/uptime") or "")
    return None if match is None else float(match[1])


def _load_average(root: Path) -> dict[str, Any]:
    pattern = rf"({_DECIMAL}) ({_DECIMAL}) ({_DECIMAL}) ({_WHOLE})/[0-9]+ [0-9]+"
    match = re.fullmatch(pattern, word(root / "proc/loadavg") or "")
    return {
        "load_average_1min": None if match is None else float(match[1]),
        "load_average_5min": None if match is None else float(match[2]),
        "load_average_15min": None if match is None else float(match[3]),
        "running_tasks": None if match is None else int(match[4]),
    }


def _jiffies(root: Path) -> dict[str, Any]:
    rows = {
        name: dict(zip(_JIFFIES, map(int, figures.split()), strict=False))
        for name, figures in re.findall(
            rf"^cpu([0-9]*)((?: +{_WHOLE}){{8,}})$", text(root / "proc/stat") or "", re.MULTILINE
        )
    }
    total = rows.pop("", None)
    by_cpu = {cpu: {"steal": row["steal"], "total": sum(row.values())} for cpu, row in rows.items()}
    return {"cpu_jiffies": total, "cpu_jiffies_by_cpu": by_cpu or None}


def _pressures(root: Path) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for resource, kind in _PRESSURES:
        pattern = rf"^{kind} avg10=({_DECIMAL}) .* total=({_WHOLE})$"
        content = text(root / "proc/pressure" / resource) or ""
        match = re.search(pattern, content, re.MULTILINE)
        name = f"{resource}_pressure_{kind}"
        figures[f"{name}_avg10_percent"] = None if match is None else float(match[1])
        figures[f"{name}_us"] = None if match is None else int(match[2])
    return figures


def _clock_mhz_by_cpu(root: Path) -> dict[str, float] | None:
    # First cpuinfo: in older kernels each scaling_cur_freq waits 10 ms for its core.
    clocks = {
        entry["processor"]: float(entry["cpu MHz"])
        for entry in processors(root)
        if re.fullmatch(_DECIMAL, entry.get("cpu MHz", ""))
    }
    if not clocks:
        for path in (root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_cur_freq"):
            khz = integer(path)
            if khz is not None:
                clocks[path.parts[-3].removeprefix("cpu")] = khz / 1000
    return dict(sorted(clocks.items(), key=lambda item: int(item[0]))) or None


def _temperature_celsius(root: Path) -> dict[str, float] | None:
    """Return the hottest spot of each sensor chip of a processor."""
    hottest = {}
    for folder in sorted((root / "sys/class/hwmon").glob("hwmon*")):
        chip = word(folder / "name")
        # temp3_input, in thousandths of a degree: the kernel's hwmon/sysfs-interface.
        readings = [integer(path) for path in folder.glob("temp*_input")]
        known = [reading for reading in readings if reading is not None]
        if chip in _PROCESSOR_SENSORS and known:
            hottest[f"{folder.name} {chip}"] = max(known) / 1000
    return hottest or None


def _throttle_events(root: Path, kind: str) -> int | None:
    """Return the sum over all CPUs; what a package counts is seen on each of its CPUs."""
    pattern = f"cpu[0-9]*/thermal_throttle/{kind}_throttle_count"
    counts = [integer(path) for path in (root / "sys/devices/system/cpu").glob(pattern)]
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _memory_available_bytes(root: Path) -> int | None:
    pattern = rf"^MemAvailable: +({_WHOLE}) kB$"
    match = re.search(pattern, text(root / "proc/meminfo") or "", re.MULTILINE)
    return None if match is None else int(match[1]) * 1024


def _numbers(path: Path) -> dict[str, int]:
    lines = re.findall(rf"^(\w+) ({_WHOLE})$", text(path) or "", re.MULTILINE)
    return {name: int(value) for name, value in lines}


# --- between two readings ---------------------------------------------------------------------


def _increase(before: Mapping[str, Any], after: Mapping[str, Any], name: str) -> Any:
    first, last = before.get(name), after.get(name)
    return None if first is None or last is None else max(0, last - first)


def _jiffies_between(
    before: Mapping[str, int] | None, after: Mapping[str, int] | None
) -> dict[str, int]:
    # Idle and iowait are known to run backwards now and then, proc(5): then nothing was added.
    return {name: _increase(before or {}, after or {}, name) or 0 for name in before or {}}


def _worst_steal(
    before: Mapping[str, Mapping[str, int]], after: Mapping[str, Mapping[str, int]]
) -> float | None:
    shares = [
        _percent(_increase(row, after[cpu], "steal"), _increase(row, after[cpu], "total"))
        for cpu, row in before.items()
        if cpu in after
    ]
    return max((share for share in shares if share is not None), default=None)


def _busy_cpus(jiffies: Mapping[str, int], cpus: int) -> float | None:
    waiting = sum(jiffies.get(name, 0) for name in ("idle", "iowait", "steal"))
    total = sum(jiffies.values())
    return round(cpus * (total - waiting) / total, 3) if total and cpus else None


def _percent(part: float | None, whole: float | None) -> float | None:
    return round(100 * part / whole, 3) if part is not None and whole else None
