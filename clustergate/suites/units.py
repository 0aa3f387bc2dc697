"""What a unit tells of a figure: which way is better, and what it measures. Pure."""

from __future__ import annotations

import re

from clustergate.core.model import BANDWIDTH, COMPUTE, LATENCY, MEMORY, Better

_TIME = "seconds second secs sec s minutes minute mins min hours hour hrs hr h ms msec usec us ns"
_TIMES = frozenset([*_TIME.split(), "µs", "μs", "milliseconds", "microseconds", "nanoseconds"])
_SHORT = frozenset(["us", "usec", "ns", "µs", "μs", "microseconds", "nanoseconds"])
_PER = re.compile(r"\s*(?:/|\bper\b)\s*")
_FLOPS = re.compile(r"([kmgtpe]?)(flops?|ops?|ips|teps|l?ups?|iops)", re.IGNORECASE)
_BYTES_PER_S = re.compile(r"([kmgtp]?)i?(b|byte|bytes|bit|bits)(/s|/sec|ps)", re.IGNORECASE)
# Simulated time for time on the clock, as molecular dynamics and climate models count it.
_SIMULATED = frozenset(["ns", "ps", "fs", "us", "years", "year", "days", "day", "sypd", "ydd"])
_A_DAY = frozenset(["day", "days", "d", "h", "hour"])
_SYPD = "sypd"


def better_by_unit(unit: str) -> Better | None:
    """Return which way a unit says is better, None where it does not.

    A time is to be short, also one for each of something; a rate, something for each second, high.
    """
    name = " ".join(unit.split())
    plain = name.lower()
    above, *below = _PER.split(plain)
    if plain == _SYPD or (above in _SIMULATED and below and below[0] in _A_DAY):
        return Better.HIGHER
    if above in _TIMES:
        # Seconds for each second are a share.
        return None if below and below[0] in _TIMES else Better.LOWER
    if below and below[-1] in _TIMES | _A_DAY:
        return Better.HIGHER
    if _BYTES_PER_S.fullmatch(plain.replace(" ", "")) or _FLOPS.fullmatch(plain):
        return Better.HIGHER
    return None


def better_by_bounds(lower: float | None, upper: float | None) -> Better | None:
    """Return which way a test's own reference says is better, None where it bounds both or none."""
    if (lower is None) == (upper is None):
        return None
    return Better.LOWER if lower is None else Better.HIGHER


def kind_by_unit(unit: str) -> str:
    """Return of which kind a figure is by its unit, for how much such figures usually vary.

    Microseconds are those of messages, GB/s those of memory, MB/s those of messages again, as
    the authors of such benchmarks print them; all else is computing.
    """
    plain = "".join(unit.split()).lower()
    if plain in _SHORT:
        return LATENCY
    if match := _BYTES_PER_S.fullmatch(plain):
        return MEMORY if match[1] in ("g", "t", "p") else BANDWIDTH
    return COMPUTE
