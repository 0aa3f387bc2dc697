"""The OSU Micro-Benchmarks."""

from __future__ import annotations

from clustergate.benchmarks.osu.output import OsuExpectation, parse_osu

ECHO = r"# \[ pairs"


def asked(text: str) -> OsuExpectation:
    rows = list(parse_osu(text.splitlines()))
    sizes = [int(row.conditions["bytes"]) for row in rows if "bytes" in row.conditions]
    processes = int(rows[0].conditions.get("processes", 4))
    least, most = (sizes[0], sizes[-1]) if sizes else (None, None)
    return OsuExpectation(rows[0].benchmark, processes, least, most, window=64)
