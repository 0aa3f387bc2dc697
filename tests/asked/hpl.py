"""HPL."""

from __future__ import annotations

import io

from clustergate.benchmarks.hpl.output import HplExpectation, Text, read_parameters

PARAMETERS = r"(?:N|NB|PMAP|P|Q|PFACT|NBMIN|NDIV|RFACT|BCAST|DEPTH|SWAP|L1|U|EQUIL|ALIGN) +: +"
ECHO = rf"{PARAMETERS}|W[RC]\d|- Computational tests pass if"


def asked(text: str) -> HplExpectation:
    return HplExpectation(read_parameters(Text(list(io.StringIO(text)), "x")).declared)
