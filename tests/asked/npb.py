"""The NAS Parallel Benchmarks."""

from __future__ import annotations

import re

from clustergate.benchmarks.npb.output import NpbExpectation

ECHO = r" (?:Class|Total processes) "


def asked(text: str) -> NpbExpectation:
    name = re.search(r"(\w\w) Benchmark$", text, re.M)
    return NpbExpectation(name and name.group(1), "S", 2)
