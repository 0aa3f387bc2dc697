"""STREAM 5.10."""

from __future__ import annotations

from clustergate.benchmarks.stream5.output import Stream5Expectation, parse_stream5

ECHO = r"Array size|Number of Threads counted"


def asked(text: str) -> Stream5Expectation:
    (row, *_) = parse_stream5(text.splitlines())
    return Stream5Expectation(1, int(row.conditions["threads"]), int(row.conditions["elements"]))
