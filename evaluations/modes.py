"""What each paper ran, as modes of the suite."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from clustergate.benchmarks.budget import Budget
from clustergate.benchmarks.descriptor import Effort
from clustergate.benchmarks.hpl.effort import LinpackEffort
from clustergate.benchmarks.imb.command import ImbEffort
from clustergate.core.model import Metric
from clustergate.sites import modes
from clustergate.sites.modes import Derive, Mode
from evaluations.derived import balance, curves

MEBIBYTE = 1 << 20

# Paper 003 saw a dip just above a packet of 1500 bytes, between two of IMB's own sizes.
AROUND_A_PACKET = (1500, 1536)

# Those that paper 001 tried.
BLOCK_SIZES = (96, 104, 112, 120, *range(128, 257, 16))

PAPER_CHECKS: Mapping[str, Mapping[str, str]] = {
    "000": {"HPCC": "HpccCheck", "IMB": "ImbMpi1Check"},
    "001": {"HPL": "HplCheck", "IMB": "ImbMpi1Check"},
    "002": {
        "PMB": "ImbMpi1Check",
        "host processor overhead": "HostOverheadCheck",
        "stream in both directions": "BidirectionalStreamCheck",
        "HPCCG": "HpccgCheck",
        "LAMMPS": "LammpsCheck",
    },
    "003": {
        "HPL": "HplCheck",
        "PMB": "ImbMpi1Check",
        "STREAM": "StreamCheck",
        "NAS Parallel Benchmarks": "NpbCheck",
    },
    "004": {"trials of collectives": "MpiTrialsCheck"},
}
"""The benchmarks of each published evaluation, with the checks that run them."""


METRICS: Mapping[str, Metric] = {**balance.METRICS, **curves.METRICS}

_DERIVED: Mapping[str, Derive] = {
    "HpccCheck": lambda samples, layout, _: balance.balance_samples(samples, layout.ranks),
    "ImbMpi1Check": lambda samples, layout, node: curves.curve_samples(
        samples, layout.ranks, layout.nodes, node.link_mb_s
    ),
}
_THREE_TO_SIX = Budget(at_least=3, at_most=6, seconds=120.0)


def _published(paper: str, purpose: str, **settings: Any) -> Mode:
    """Return the mode of a paper: the efforts of IMB's own defaults, and what the paper set."""
    return replace(
        modes.MODES["acceptance"],
        like="acceptance",
        name=f"published-{paper}",
        purpose=purpose,
        as_published=True,
        derived=_DERIVED,
        only=tuple(PAPER_CHECKS[paper].values()),
        **settings,
    )


def _imb(
    *benchmarks: str,
    largest_bytes: int = 4 * MEBIBYTE,
    root_shift: str = "",
    sizes: tuple[int, ...] = (),
) -> ImbEffort:
    return ImbEffort(
        budget=_THREE_TO_SIX,
        largest_bytes=largest_bytes,
        repetitions=1000,
        volume_mb=40,
        seconds=10.0,
        benchmarks=benchmarks,
        root_shift=root_shift,
        sizes=sizes,
    )


_KERNELS = dict.fromkeys(
    ("mpi_trials", "host_overhead", "bidirectional_stream", "stream"),
    Effort(budget=_THREE_TO_SIX),
)
MODES: tuple[Mode, ...] = (
    _published(
        "000",
        "HPCC and IMB on five supercomputers",
        efforts={
            "imb": _imb(
                *("Barrier", "Allreduce", "Reduce", "Reduce_scatter", "Allgather"),
                *("Allgatherv", "Alltoall", "Sendrecv", "Exchange", "Bcast", "PingPong"),
            ),
        },
    ),
    _published(
        "001",
        "MVAPICH2 against Intel MPI",
        efforts={
            "hpl": LinpackEffort(
                seconds=None,
                n_fraction=0.92,
                inputs={
                    **{"nbmins": (8,), "rfacts": (1,), "depths": (0,)},
                    "equilibration": False,
                },
            ),
            "imb": _imb(
                *("PingPong", "PingPing", "Sendrecv", "Exchange", "Reduce", "Allreduce"),
                *("Reduce_scatter", "Scatter", "Gather", "Allgather", "Alltoall", "Bcast"),
                largest_bytes=16 * MEBIBYTE,
                root_shift="on",
            ),
        },
    ),
    replace(
        _published(
            "001",
            "block sizes and grids of HPL on one node",
            on_one_node=frozenset({"HplCheck"}),
            efforts={
                "hpl": LinpackEffort(
                    seconds=0.5,
                    inputs={"nb_values": BLOCK_SIZES, "nbmins": (8,), "rfacts": (1,)},
                    every_grid=True,
                )
            },
        ),
        name="published-001-tilings",
        only=("HplCheck",),
    ),
    _published(
        "002",
        "a low-power machine beside a commodity cluster",
        efforts={
            **_KERNELS,
            "imb": _imb("PingPong", "Sendrecv", "Allreduce", largest_bytes=16 * MEBIBYTE),
        },
    ),
    _published(
        "003",
        "eight configurations of two servers",
        on_one_node=frozenset({"HplCheck"}),
        efforts={
            **_KERNELS,
            # The best of many tilings counts at each N.
            "hpl": LinpackEffort(
                seconds=None,
                inputs={"nb_values": (64, 96, 128, 160, 192, 256), "nbmins": (4, 8)},
            ),
            "imb": _imb(
                *("PingPong", "Exchange", "Sendrecv", "Bcast", "Reduce", "Allreduce"),
                "Barrier",
                sizes=tuple(sorted((0, *(1 << k for k in range(23)), *AROUND_A_PACKET))),
            ),
        },
    ),
    _published("004", "collectives with flushed caches", efforts=_KERNELS),
)
"""The modes of ``clustergate evaluation``: each runs what a paper ran, with its parameters."""
