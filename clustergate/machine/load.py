"""What moves on a node while something runs: load, stolen time, pressure, clocks, heat, memory.

Two readings, before and after a run, tell what the run met: :func:`load_between`. Counters start
at boot, so a single reading says little of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from clustergate.machine.kernel_files import integer, text, word

# Others' work that disturbs, in cores' worth: a fiftieth of the launch's own, or every daemon of a
# node with 128 cores would. On a virtual machine of two cores the kernel and the hypervisor alone
# take up to 0.09, so less than a tenth of a core disturbs nowhere; docs/verdicts-measured.md tells
# what this separates there.
DISTURBING_CORES = 0.1
_DISTURBING_SHARE = 0.02
# Fields of /proc/stat, proc(5). Guest time is left out: the kernel counts it as user time too.
_JIFFIES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
_PRESSURES = ("cpu", "memory", "io")
# Bounded: Python refuses to convert thousands of digits, which only damaged files have.
_WHOLE = "[0-9]{1,20}"
_DECIMAL = r"[0-9]{1,20}\.[0-9]{1,9}"
# Sensors of a processor. Others can wake a disk or wait for a management controller for seconds.
_PROCESSOR_SENSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal")

Load = Mapping[str, float | None]
"""Numbers by names that tell their units; None for what the machine does not show."""


def disturbing_cores(own: float | None) -> float:
    """Return from how many cores' worth of work on others disturb a launch that used ``own``.

    None: that is not known, as of launches that were stored before 2026-12.
    """
    return max(DISTURBING_CORES, _DISTURBING_SHARE * (own or 0.0))


def read_load(root: Path = Path("/")) -> dict[str, float | None]:
    """Return what the node whose ``/proc`` and ``/sys`` lie below ``root`` is doing now.

    Jiffies of all CPUs, pressures in us, throttle events, swapped pages and kills for lack of
    memory count from boot.
    """
    clocks, heat = _clocks_mhz(root), _temperatures_celsius(root)
    average = _match(root / "proc/loadavg", rf"({_DECIMAL}) .* ({_WHOLE})/")
    total = _match(root / "proc/stat", rf"^cpu +((?:{_WHOLE} +){{7,}}{_WHOLE})$")
    jiffies: dict[str, int] = (
        dict(zip(_JIFFIES, map(int, total[1].split()), strict=False)) if total else {}
    )
    return {
        "uptime_s": _number(root / "proc/uptime", rf"^({_DECIMAL}) "),
        "load_average_1min": float(average[1]) if average else None,
        "running_tasks": int(average[2]) if average else None,
        "jiffies": sum(jiffies.values()) if jiffies else None,
        **{f"{name}_jiffies": jiffies.get(name) for name in ("idle", "iowait", "steal")},
        **{
            f"{of}_pressure_us": _number(
                root / "proc/pressure" / of, rf"^some .* total=({_WHOLE})$"
            )
            for of in _PRESSURES
        },
        "clock_mhz_lowest": min(clocks, default=None),
        "clock_mhz_mean": round(sum(clocks) / len(clocks), 1) if clocks else None,
        "clock_mhz_highest": max(clocks, default=None),
        "temperature_celsius_highest": max(heat, default=None),
        "throttle_events": _throttle_events(root),
        "memory_available_kib": _number(root / "proc/meminfo", rf"^MemAvailable: +({_WHOLE}) kB$"),
        "pages_swapped_out": _number(root / "proc/vmstat", rf"^pswpout ({_WHOLE})$"),
        "oom_kills": _number(root / "proc/vmstat", rf"^oom_kill ({_WHOLE})$"),
    }


def load_between(before: Load, after: Load) -> dict[str, float]:
    """Return what the node went through between two readings, as far as it shows it.

    ``steal_percent`` is the share of all CPUs' time that the host gave to others, and
    ``busy_percent`` the share in which they worked, stolen time not counted. A pressure is the
    share of the time in which some task waited. Nothing is told where the node was started anew in
    between.
    """

    def increase(name: str) -> float | None:
        first, last = before.get(name), after.get(name)
        # Idle and iowait are known to run backwards now and then, proc(5).
        return None if first is None or last is None else max(0, last - first)

    elapsed_s = increase("uptime_s")
    if not elapsed_s:
        return {}
    of_jiffies = {name: increase(f"{name}_jiffies") for name in ("idle", "iowait", "steal")}
    whole = increase("jiffies")
    waited = [count for count in of_jiffies.values() if count is not None]
    busy = max(0, whole - sum(waited)) if whole is not None and waited else None
    shares = {
        "elapsed_s": round(elapsed_s, 2),
        "busy_percent": _percent(busy, whole),
        "iowait_percent": _percent(of_jiffies["iowait"], whole),
        "steal_percent": _percent(of_jiffies["steal"], whole),
        **{
            f"{of}_pressure_percent": _percent(increase(f"{of}_pressure_us"), elapsed_s * 1e6)
            for of in _PRESSURES
        },
        **{name: increase(name) for name in ("throttle_events", "pages_swapped_out", "oom_kills")},
        **{
            name: after.get(name)
            for name in (
                *("load_average_1min", "clock_mhz_mean", "temperature_celsius_highest"),
                "memory_available_kib",
            )
        },
    }
    return {name: value for name, value in shares.items() if value is not None}


def _percent(part: float | None, whole: float | None) -> float | None:
    return round(100 * part / whole, 3) if part is not None and whole else None


def _match(path: Path, pattern: str) -> re.Match[str] | None:
    return re.search(pattern, text(path) or "", re.MULTILINE)


def _number(path: Path, pattern: str) -> float | None:
    match = _match(path, pattern)
    return None if match is None else float(match[1])


def _clocks_mhz(root: Path) -> list[float]:
    # First cpuinfo: in older kernels each scaling_cur_freq waits 10 ms for its core.
    cpuinfo = text(root / "proc/cpuinfo") or ""
    if said := re.findall(rf"^cpu MHz\s*: ({_DECIMAL})$", cpuinfo, re.MULTILINE):
        return list(map(float, said))
    paths = (root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_cur_freq")
    return [khz / 1000 for khz in map(integer, paths) if khz is not None]


def _temperatures_celsius(root: Path) -> list[float]:
    return [
        # In thousandths of a degree: the kernel's hwmon/sysfs-interface.
        reading / 1000
        for folder in (root / "sys/class/hwmon").glob("hwmon*")
        if word(folder / "name") in _PROCESSOR_SENSORS
        for reading in map(integer, folder.glob("temp*_input"))
        if reading is not None
    ]


def _throttle_events(root: Path) -> int | None:
    """Return the sum over all CPUs; what a package counts is seen on each of its CPUs."""
    paths = (root / "sys/devices/system/cpu").glob("cpu[0-9]*/thermal_throttle/*_throttle_count")
    known = [count for count in map(integer, paths) if count is not None]
    return sum(known) if known else None
