"""Which nodes are slow beside the others of the same run, by what their own kernels did. Pure.

Each job measures the peaks of its first node before and after its launches. Equal nodes do the
same, so that from the first run on the median of four tells who does less, without any past.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence

from clustergate.core.model import COMPUTE, MEMORY, NODES, CaseRecord, Evidence, Row, Verdict
from clustergate.core.notation import listed
from clustergate.core.reasons import Facts, Words
from clustergate.judge.nodes import BesideMedian, beside_median, slow_each_time
from clustergate.judge.references.tolerances import TEMPLATE
from clustergate.machine.peaks import value_of

_TIMES = 3
"""How often a node must be slow before it is named: as often as a case is launched."""
_KINDS = {"fma_peak": COMPUTE, "dgemm": COMPUTE, "triad": MEMORY, "triad_glance": MEMORY}
_TITLES = {COMPUTE: "FMA peak and DGEMM", MEMORY: "triad"}

_Looks = Mapping[str, list[float]]
"""What a kernel cost in each of the jobs of a node: logarithms, positive is worse."""


def slow_nodes(
    records: Sequence[CaseRecord], tolerances: Mapping[str, float]
) -> Iterator[Evidence]:
    """Yield which nodes are slow beside others of their partition and processor.

    ``tolerances`` are fractions by kind; of a kind without one that of the template counts. Who is
    slow in three jobs is so; who is slow in all of fewer is not confirmed.
    """
    alike: dict[object, list[CaseRecord]] = {}
    for record in records:
        alike.setdefault((record.partition, record.processors), []).append(record)
    for own in alike.values():
        named: dict[str, Evidence] = {}
        kernels = _looks(own)
        for kind, titles in _TITLES.items():
            looks = [one for kernel, one in kernels.items() if _KINDS[kernel] == kind]
            tolerance = tolerances.get(kind, TEMPLATE[kind][0] / 100)
            for one in _of_kind(titles, looks, -math.log1p(-tolerance)):
                known = named.get(one.of)
                if known is None or one.verdict.severity > known.verdict.severity:
                    named[one.of] = one
        yield from named.values()


def slow_beside(test: str, looks: Mapping[str, list[float]], kind: str) -> Iterator[Evidence]:
    """Yield which nodes are slow beside the others in a figure of a test that ran on each.

    ``looks`` are what it was on each node, time by time, as logarithms, positive is worse.
    """
    yield from _of_kind(test, [looks], -math.log1p(-TEMPLATE[kind][0] / 100))


def _looks(records: Sequence[CaseRecord]) -> Mapping[str, _Looks]:
    """Return by kernel what it cost on each node, job by job.

    Jobs share what was measured in whole: a trial counts where it was seen first.
    """
    seen: set[tuple[object, ...]] = set()
    looks: dict[str, dict[str, list[float]]] = {}
    for record in sorted(records, key=_began):
        host = next((one.host for one in record.launches if one.host), "")
        trials: dict[str, list[Row]] = {}
        for row in record.peaks if host else ():
            key = (host, row.benchmark, *sorted(row.values.items()))
            if row.benchmark in _KINDS and key not in seen:
                seen.add(key)
                trials.setdefault(row.benchmark, []).append(row)
        for kernel, rows in trials.items():
            most = max(str(row.conditions["core_ids"]).count(",") for row in rows)
            rates = [
                value_of(row) for row in rows if str(row.conditions["core_ids"]).count(",") == most
            ]
            cost = -math.log(statistics.median(rates))
            looks.setdefault(kernel, {}).setdefault(host, []).append(cost)
    return looks


def _began(record: CaseRecord) -> float:
    return min((one.started for one in record.launches), default=0.0)


NODES_SLOW = Words(
    "nodes.slow",
    "{each} less {kernel} than the median of {nodes} nodes, each time",
    remedy="`clustergate screen` measures it beside the others; drain {node} if that agrees",
)
LOOKS_SLOW = Words(
    "nodes.looks-slow",
    "{each} less {kernel} than the median of {nodes} nodes, of too few jobs to be sure",
    remedy="`clustergate screen` measures {node} beside the others",
)


def _of_kind(titles: str, kernels: Sequence[_Looks], tolerance: float) -> Iterator[Evidence]:
    """Yield who is slow in the mean of some kernels, time by time; ``tolerance`` is a logarithm."""
    times: list[BesideMedian] = []
    for k in range(max((len(of) for looks in kernels for of in looks.values()), default=0)):
        by_node: dict[str, list[float]] = {}
        for looks in kernels:
            # Who was measured less often stands as it was the last time.
            costs = {node: of[min(k, len(of) - 1)] for node, of in looks.items()}
            of_kernel = beside_median(costs, tolerance)
            if of_kernel and any(len(of) > k for of in looks.values()):
                for node, by in of_kernel.slower_by.items():
                    by_node.setdefault(node, []).append(by)
        means = {node: statistics.fmean(by) for node, by in by_node.items()}
        if one := beside_median(means, tolerance):
            times.append(one)
    nodes = dict.fromkeys(node for one in times for node in one.slow)
    for node in nodes:
        own = times[: max(len(looks.get(node, ())) for looks in kernels)]
        if node not in slow_each_time(own):
            continue
        facts: Facts = {
            "node": node,
            "kernel": titles,
            "each": listed([f"{-100 * math.expm1(-one.slower_by[node]):.0f} %" for one in own]),
            "nodes": len(own[0].slower_by),
        }
        confirmed = len(own) >= _TIMES
        verdict = Verdict.REGRESSION if confirmed else Verdict.INCONCLUSIVE
        code = NODES_SLOW if confirmed else LOOKS_SLOW
        yield Evidence(NODES, verdict, (code(**facts),), node)
