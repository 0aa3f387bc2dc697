"""Amounts of memory and lengths of time as people type them."""

from __future__ import annotations

import re
from fractions import Fraction

from clustergate.core.model import BadRequest, ClustergateError
from clustergate.core.reasons import Words

_BYTE_UNITS = {
    "": 1,
    "B": 1,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
    "kB": 10**3,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
}


INPUT_MEMORY = Words(
    "input.memory",
    "'{text}' is not an amount of memory",
    remedy="write it like 24GiB or 24GB",
)
TWO_WAYS = Words(
    "input.two-ways",
    "'{text}' can be read in two ways",
    remedy="write {binary} (powers of 1024) or {decimal} (powers of 1000)",
)
INPUT_UNIT = Words(
    "input.unit",
    "'{text}' has an unknown unit",
    remedy="use KiB, MiB, GiB, TiB, kB, MB, GB or TB",
)


def parse_bytes(text: str) -> int:
    """Return the bytes in ``24GiB`` (2^30), ``24GB`` (10^9) or ``25769803776``.

    A bare ``24G`` is refused, since some tools mean 2^30 by it and others 10^9. Raises
    :class:`ClustergateError`.
    """
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", text)
    if match is None:
        raise ClustergateError(INPUT_MEMORY(text=text))
    number, unit = match.groups()
    if unit.upper() in ("K", "M", "G", "T"):
        prefix = unit.upper()
        decimal = f"{'k' if prefix == 'K' else prefix}B"
        raise ClustergateError(TWO_WAYS(text=text, binary=f"{prefix}iB", decimal=decimal))
    if unit not in _BYTE_UNITS:
        raise ClustergateError(INPUT_UNIT(text=text))
    return int(Fraction(number) * _BYTE_UNITS[unit])


NO_UNIT = Words("input.no-unit", "'{text}' has no unit", remedy="is it {text}s or {text}m?")
INPUT_DURATION = Words(
    "input.duration",
    "'{text}' is not a length of time",
    remedy="write it like 90s, 10m or 1h30m",
)


def parse_duration(text: str) -> float:
    """Return the seconds in ``90s``, ``10m``, ``1h30m`` or ``0``; raises BadRequest.

    A bare ``5`` is refused: whoever types it may mean minutes.
    """
    text = text.strip()
    number = r"([0-9]+(?:\.[0-9]+)?)"
    match = re.fullmatch(rf"(?:{number}h)?(?:{number}m)?(?:{number}s)?|0", text)
    if re.fullmatch(number, text) and match is None:
        raise BadRequest(NO_UNIT(text=text))
    if match is None or not text:
        raise BadRequest(INPUT_DURATION(text=text))
    hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return hours * 3600 + minutes * 60 + seconds
