"""What a core should do by its data sheet: clock times floating-point operations per cycle.

It sizes the first problems on a machine nobody has measured yet, and is the third of the peaks that
HPL's efficiency is told against. Turbo clocks carry a measurement above it.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import archspec.cpu

from clustergate.machine.kernel_files import integer, text

# Double-precision operations per cycle and core: vector lanes x 2 (multiply and add) x units.
# Sources: the vendors' optimisation manuals (AMD family 17h, 19h and 1Ah; Intel 64 and IA-32;
# Arm Neoverse N1, V1 and V2; Fujitsu A64FX).
# A virtual machine hides features by which archspec tells AMD's generations apart, but not the
# family: Zen 4 has 512-bit registers and 256-bit units.
_BY_AMD_FAMILY = {23: 16, 25: 16, 26: 32}
_BY_MICROARCHITECTURE = {
    "neoverse_n1": 8,
    "neoverse_v1": 16,
    "neoverse_v2": 16,
    "a64fx": 32,
}
_BY_FEATURE = (("avx512f", 32), ("fma", 16), ("avx", 8), ("sse2", 4), ("asimd", 8))


def flops_per_cycle(
    microarchitecture: str, features: Collection[str], amd_family: int | None = None
) -> int | None:
    """Return the double-precision operations per cycle of a core, None where nobody knows.

    ``microarchitecture`` is archspec's name, ``amd_family`` the kernel's number for an AMD
    processor; without an entry the widest vectors decide, taken for two fused units.
    """
    if amd_family in _BY_AMD_FAMILY:
        return _BY_AMD_FAMILY[amd_family]
    if microarchitecture in _BY_MICROARCHITECTURE:
        return _BY_MICROARCHITECTURE[microarchitecture]
    for feature, flops in _BY_FEATURE:
        if feature in features:
            return flops
    return None


def clock_ghz(root: Path = Path("/")) -> float | None:
    """Return the highest clock that the kernel tells of, in GHz, None where it tells of none."""
    limit_khz = integer(root / "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq")
    if limit_khz is not None:
        return limit_khz / 1e6
    clocks = [float(value) for value in _cpuinfo(root, "cpu MHz")]
    return max(clocks) / 1e3 if clocks else None


def amd_family(root: Path = Path("/")) -> int | None:
    """Return the family of an AMD processor, None for any other."""
    if "AuthenticAMD" not in _cpuinfo(root, "vendor_id"):
        return None
    return next((int(value) for value in _cpuinfo(root, "cpu family")), None)


def _cpuinfo(root: Path, name: str) -> list[str]:
    lines = (text(root / "proc/cpuinfo") or "").splitlines()
    entries = (line.partition(":") for line in lines)
    return [value.strip() for key, _, value in entries if key.strip() == name]


def nominal_gflops_per_core() -> float | None:
    """Return what one core of this node should do, in Gflop/s, None where it cannot be told."""
    target = archspec.cpu.host()
    clock, flops = clock_ghz(), flops_per_cycle(target.name, target.features, amd_family())
    return clock * flops if clock and flops else None
