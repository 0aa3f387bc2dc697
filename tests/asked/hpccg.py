"""HPCCG."""

from __future__ import annotations

from clustergate.benchmarks.hpccg.output import HpccgExpectation

ECHO = r"  (?:Number of MPI ranks|n[xyz]):"


def asked(text: str) -> HpccgExpectation:
    return HpccgExpectation(2, 16)
