"""HPCG, whose result is in a file of its own."""

from __future__ import annotations

from clustergate.benchmarks.hpcg.output import HpcgExpectation, parse_hpcg

STDOUT = False
ECHO = r"Machine Summary::Dist|Local Domain Dimensions::n"


def asked(text: str) -> HpcgExpectation:
    (row,) = parse_hpcg(text.splitlines())
    return HpcgExpectation(int(row.conditions["processes"]), int(row.conditions["nx"]))
