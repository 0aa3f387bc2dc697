"""The Intel MPI Benchmarks."""

from __future__ import annotations

import io

from clustergate.benchmarks.imb.header import Text, read_header
from clustergate.benchmarks.imb.output import parse_imb
from clustergate.benchmarks.imb.plan import ImbExpectation

ECHO = r"# IMB-|# #processes|# Benchmarking"


def asked(text: str) -> ImbExpectation:
    lines = list(io.StringIO(text))
    information, rows = read_header(Text(lines, "output")), list(parse_imb(lines))
    threaded = information.suite == "IMB-MT"
    # One line below the other: the first table.
    sized = [row for row in rows if "bytes" in row.conditions]
    first = [row for k, row in enumerate(sized) if row.line == sized[0].line + k]
    counts = {int(r.conditions["processes"]) * int(r.conditions.get("groups", 1)) for r in rows}
    return ImbExpectation(
        suite=information.suite,
        benchmarks=tuple(dict.fromkeys(row.benchmark for row in rows if row.status != "invalid")),
        processes=tuple(sorted(counts)) if threaded else (),
        bytes=tuple(int(row.conditions["bytes"]) for row in first if threaded or "-msglen" in text),
        arguments=None if threaded else information.command[1:],
        repetitions=int(rows[0].conditions["repetitions"]) if threaded else None,
        threads=int(rows[0].conditions.get("threads", 1)) if threaded else None,
        ranks=max(counts),
    )
