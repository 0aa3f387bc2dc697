"""The first run of a cluster of equal nodes: is the slow one named, and is nobody else. Pure.

Each node runs a few jobs, which measure its kernels; what is said of the run is that of a check
(:mod:`clustergate.judge.slow_nodes`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from clustergate.core.model import CaseRecord, Launch, Row, Verdict
from clustergate.judge.slow_nodes import slow_nodes
from tools.bench.simulated_noise import (
    BARE_METAL,
    COMPUTE,
    HEAVY,
    MEMORY,
    NOISY,
    Machine,
)

SEED, RUNS = 13, 400
NODES, JOBS, TRIALS = 16, 3, 3
SLOWER = 0.05
# Standard deviation between equal nodes: real ones differ by so much.
APART = (0.0005, 0.003, 0.005, 0.007)
_KERNELS: Mapping[str, tuple[str, str]] = {
    "fma_peak": (COMPUTE, "performance_gflops"),
    "dgemm": (COMPUTE, "performance_gflops"),
    "triad": (MEMORY, "bandwidth_gb_s"),
}


@dataclass(frozen=True)
class Counted:
    """What was said of first runs of equal nodes, and of as many with a node slow in compute.

    ``named`` have that node alone as slow, ``accused`` any node although all are equal, both as a
    regression; ``open`` are unchanged ones in which a node is not confirmed.
    """

    machine: str
    apart_percent: float
    runs: int
    named: int
    accused: int
    open: int


def counted(machine: Machine, apart: float, runs: int) -> Counted:
    """Return what is said of some runs; nodes differ by ``apart``, a fraction."""
    named = accused = left_open = 0
    for k in range(runs):
        lot = np.random.default_rng([SEED, k])
        slow = f"n{int(lot.integers(NODES)):02}"
        said = _said(_run(machine, apart, "", np.random.default_rng([SEED, k, 0])))
        accused += Verdict.REGRESSION in said.values()
        left_open += Verdict.INCONCLUSIVE in said.values()
        said = _said(_run(machine, apart, slow, np.random.default_rng([SEED, k, 1])))
        named += [n for n, verdict in said.items() if verdict is Verdict.REGRESSION] == [slow]
    return Counted(machine.name, 100 * apart, runs, named, accused, left_open)


def _said(records: Sequence[CaseRecord]) -> dict[str, Verdict]:
    return {one.of: one.verdict for one in slow_nodes(records, {})}


def _run(machine: Machine, apart: float, slow: str, lot: np.random.Generator) -> list[CaseRecord]:
    # What a node's clock does, all its kernels of a kind show.
    of_nodes = {
        f"n{n:02}": dict(zip((COMPUTE, MEMORY), lot.normal(size=2) * apart, strict=True))
        for n in range(NODES)
    }
    return [
        CaseRecord(
            *(f"job-{node}-{job}", "NpbCheck", "mpich", "simulated:node"),
            {},
            launches=[Launch(0, 100.0 * job, 10.0, host=node)],
            peaks=list(_peaks(machine, own, node == slow, lot)),
        )
        for job, (node, own) in itertools.product(range(JOBS), of_nodes.items())
    ]


def _peaks(
    machine: Machine, own: Mapping[str, float], slow: bool, lot: np.random.Generator
) -> Iterator[Row]:
    for kernel, (kind, metric) in _KERNELS.items():
        sd = machine.noise[kind].launch / 100
        # Trials of one job follow each other: what disturbs one disturbs all of them.
        job = lot.normal() * sd + (lot.random() < machine.spikes) * lot.exponential(
            machine.spike * sd
        )
        cost = own[kind] + job + (SLOWER if slow and kind == COMPUTE else 0.0)
        for _ in range(TRIALS):
            rate = float(np.exp(-cost - lot.normal() * sd / 2))
            yield Row("node-peaks", kernel, {"core_ids": "0,1"}, {metric: 1000 * rate})


HEADS = (
    "machine", "equal nodes differ by %", "runs", "one of 16 is 5 % slow in compute: named, %",
    "nothing is slow: accused, %", "not confirmed, %",
)  # fmt: skip


def measured(runs: int = RUNS) -> list[Counted]:
    """Return what is said of runs of each machine."""
    return [
        counted(machine, apart, runs) for machine in (BARE_METAL, HEAVY, NOISY) for apart in APART
    ]


def rows(some: Sequence[Counted]) -> list[Sequence[str]]:
    """Return the rows of a table, in percent of the runs."""
    return [
        (
            one.machine,
            f"{one.apart_percent:g}",
            str(one.runs),
            *(f"{100 * count / one.runs:.1f}" for count in (one.named, one.accused, one.open)),
        )
        for one in some
    ]


def plain(some: Sequence[Counted]) -> list[dict[str, Any]]:
    return [asdict(one) for one in some]
