"""Read the lines of mpi_trials into rows.

    {"measurement":"trials","test":"ping_pong","bytes":8,"peer":1,"flush_bytes":35651584,
     "first_sent":133.600000,"first_flushed":5.100000,"times_us":[181.2900,14.2050,1937.6130]}

There is a row for each test, size and, of the ping-pong, ``peer``. ``time_us`` is the mean over the
trials of the maximum over the ranks, without the first trial and without spikes
(:mod:`clustergate.stats.spikes`), half of the round trip for the ping-pong. ``p95_time_us`` is
what one trial of twenty exceeds at most: a call that is slow once in ten has it, and not the mean.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from clustergate.benchmarks.mpi_kernel import (
    KernelExpectation,
    kernel_parser,
    read_kernel,
    require_kind,
    times_of,
)
from clustergate.core.model import ConditionValue, Row
from clustergate.core.outputs import OUTPUT_BAD_VALUE, OUTPUT_CONTRADICTION
from clustergate.machine.kernels.records import Line
from clustergate.stats.spikes import filtered_mean, percentile_95

# In doubles, as mpi_trials.c has them: the paper's 8 bytes, 10 Kbytes and 1 Mbyte.
SMALL, MEDIUM, LARGE = 8, 10_000, 1_000_000
TEST_BYTES: Mapping[str, tuple[int, ...]] = {
    "ping_pong": (SMALL, LARGE),
    "right_shift": (SMALL, MEDIUM),
    "barrier": (0,),
    "bcast": (SMALL, MEDIUM, LARGE),
    "scatter": (SMALL, MEDIUM),
    "gather": (SMALL, MEDIUM),
    "allgather": (SMALL, MEDIUM),
    "alltoall": (SMALL, MEDIUM),
    "reduce": (SMALL, LARGE),
    "allreduce": (SMALL, LARGE),
    "scan": (SMALL, LARGE),
}
_FLUSH_STEP = 0.1


def single_trials(
    lines: Iterable[str], test: str, *, source: str = "output"
) -> list[dict[str, Any]]:
    """Return what each trial of a test of ``mpi_trials`` took, for each size, as it was printed.

    Each has ``benchmark``, ``processes``, ``bytes``, ``flush_bytes`` and ``times_us``, the first
    trial first. Raises :class:`OutputError` as :func:`parse_mpi_trials` does.
    """
    begun, measured = read_kernel("mpi_trials", lines, source)
    processes = begun["processes"]
    names = ("bytes", "flush_bytes", "times_us")
    return [
        {"benchmark": test, "processes": processes, **{name: line.record[name] for name in names}}
        for line in measured
        if line.record.get("test") == test
    ]


@kernel_parser("mpi_trials")
def parse_mpi_trials(
    lines: Sequence[Line], processes: int, expect: KernelExpectation
) -> Iterator[Row]:
    peers: dict[tuple[str, int], list[int]] = {}
    for line in lines:
        require_kind(line, "trials", expect.settings)
        test, size = line.word("test", TEST_BYTES), line.integer("bytes", least=0)
        if size not in TEST_BYTES[test]:
            wanted = " or ".join(map(str, TEST_BYTES[test]))
            raise line.wrong(OUTPUT_BAD_VALUE(name="bytes", wanted=wanted, value=size))
        times, flush_bytes = times_of(line, expect), line.integer("flush_bytes", least=0)
        flushed = _FLUSH_STEP * len(times) if flush_bytes else 0.0
        if not math.isclose(line.value("first_flushed"), flushed, abs_tol=1e-4):
            facts = {"one": f"first_flushed {line.record['first_flushed']}"}
            other = f"{len(times)} trials, each after {flush_bytes} flushed bytes"
            raise line.wrong(OUTPUT_CONTRADICTION(other=other, **facts))
        conditions: dict[str, ConditionValue] = {
            "processes": processes,
            "bytes": size,
            "flush_bytes": flush_bytes,
            "trials": len(times),
        }
        peer = line.integer("peer", least=1) if test == "ping_pong" else 0
        if peer:
            conditions["peer"] = peer
        peers.setdefault((test, size), []).append(peer)
        share = 0.5 if test == "ping_pong" else 1.0
        mean, slow = (share * of(times) for of in (filtered_mean, percentile_95))
        if mean <= 0:
            facts = {"name": "times_us", "wanted": "positive", "value": f"{mean:g}"}
            raise line.wrong(OUTPUT_BAD_VALUE(**facts))
        values = {"time_us": mean, "p95_time_us": slow}
        yield Row("mpi_trials", test, conditions, values, line=line.number)
    for (test, size), partners in peers.items():
        # Not as a list: a damaged number of processes may be any.
        first, count = (1, processes - 1) if test == "ping_pong" else (0, 1)
        if len(partners) != count or partners != list(range(first, first + count)):
            one = f"{test} of {size} bytes in {len(partners)} lines"
            other = f"the {count} that {processes} processes print"
            raise lines[-1].wrong(OUTPUT_CONTRADICTION(one=one, other=other))
