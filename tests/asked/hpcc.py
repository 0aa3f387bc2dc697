"""HPCC, whose results are in a file of their own."""

from __future__ import annotations

import re

from clustergate.benchmarks.hpcc.output import HpccExpectation
from tests.asked import hpl

STDOUT = False
ECHO = rf"{hpl.ECHO}|CommWorldProcs|HPL_(?:N|NB|nprow)="


def asked(text: str) -> HpccExpectation:
    found = re.search(r"^CommWorldProcs=(\d+)$", text, re.M)
    assert found
    return HpccExpectation(int(found.group(1)), hpl.asked(text[text.index("HPLinpack") :]))
