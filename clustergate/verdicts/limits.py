"""What cannot be: physical limits of a benchmark's figures.

They hold on a machine that nobody has measured before, so they must hold on every machine: a limit
is taken only where it is sound, and is no tighter than that. There are three kinds.

- By the peaks of the same job: what :attr:`clustergate.machine.peaks.Peak.at_most` gives, so
that
  beyond it means beyond doubt. What others did on the node meanwhile widens it, and removes none.
- By what no processor does, where nothing was measured: operations, bytes and messages of a core at
  a clock that none has.
- From below, for times: a call that needs another process takes 5 ns at least and what a cache line
  takes to the nearest core, and bytes that arrive must have been written.

Left out, because they are not sound: that HPCC's StarDGEMM and StarFFT are at most its SingleDGEMM
and SingleFFT (single values of one launch, without an interval); HPCC's ping-pong and rings by the
measured bandwidth (their messages stay in the caches, and which pairs cross a link is not printed);
STREAM from below; and times of flushed messages within a node (how much a flush leaves in the
caches is not known). Pure functions.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from clustergate.benchmarks.hpl.output import operations
from clustergate.machine.peaks import HIGHEST_CLOCK_GHZ, Peak
from clustergate.model import Conditions, Limit, NodeFacts, Sample

# All cores at once below that share of as many times one alone: that is no matter of turbo clocks.
# Something else ran, and what the node can do was not seen.
_DISTURBED = 0.6
# The triad counts 24 bytes for an element and moves 32 where a line is read before it is written,
# which non-temporal stores avoid: another kernel may count up to a third more.
_WRITE_ALLOCATE = 4 / 3
# HPCC reports each process's best of ten passes, and the processes do not wait for each other: the
# best ones need not have been at the same time.
_BEST_OF_TEN = 1.5
# STREAM's own rule of how far an array must exceed the caches.
_CACHES_EXCEEDED = 4
_DOUBLE_BYTES = 8
# FFT counts 5 n log2 n, and the best algorithms do without a third of them.
_FFT_COUNTED = 2.0
# Forces between an atom and its neighbours, some forty of them, with some twenty operations each.
_FLOPS_PER_ATOM_STEP = 100.0

# Twice what any core does in a cycle: multiply-adds (two units of 512 bits), bytes through the
# first cache (two loads and a store of 64), bytes stored, words updated.
_FLOPS_PER_CYCLE = 64
_BYTES_PER_CYCLE = 384
_STORED_PER_CYCLE = 128
_UPDATES_PER_CYCLE = 2
# A message takes a library a hundred instructions and the other process some more; the fastest take
# 60 ns. It is half of the last digit that IMB prints: what took longer is not printed as 0.00.
_CALL_US = 0.005
# Of half the round trip of a cache line, which a message makes at least once: other pairs of cores
# than those measured are nearer by less.
_OF_A_CROSSING = 0.5
# Half a unit of the last digit of IMB's times.
_PRINTED_US = 0.005
# What a core does at most per second, in the units of the figures.
_MOST_OF_A_CORE: Mapping[str, float] = {
    "Gflop/s": _FLOPS_PER_CYCLE * HIGHEST_CLOCK_GHZ,
    "Tflop/s": _FLOPS_PER_CYCLE * HIGHEST_CLOCK_GHZ * 1e-3,
    "Mflop/s": _FLOPS_PER_CYCLE * HIGHEST_CLOCK_GHZ * 1e3,
    "Mop/s": _FLOPS_PER_CYCLE * HIGHEST_CLOCK_GHZ * 1e3,
    "GUP/s": _UPDATES_PER_CYCLE * HIGHEST_CLOCK_GHZ,
    "GB/s": _BYTES_PER_CYCLE * HIGHEST_CLOCK_GHZ,
    "MB/s": _BYTES_PER_CYCLE * HIGHEST_CLOCK_GHZ * 1e3,
}
_MOST_OF_A_CORE_BY_METRIC: Mapping[str, float] = {
    "message_rate_per_s": 1e6 / _CALL_US,
    "atom_steps_per_s": _FLOPS_PER_CYCLE * HIGHEST_CLOCK_GHZ * 1e9 / _FLOPS_PER_ATOM_STEP,
}
# Times of which HPCC prints the rate as well, in what and for which work of an order n.
_RATE_OF_TIME: Mapping[str, tuple[str, str, Callable[[int], float]]] = {
    "HPL_time": ("HPL_Tflops", "Tflop/s", lambda n: 1e-12 * operations(n)),
    "PTRANS_time": ("PTRANS_GBs", "GB/s", lambda n: 1e-9 * _DOUBLE_BYTES * n * n),
}
_LOOK = "do not trust this figure, look at clocks and timers"


class _Messages(NamedTuple):
    """What a benchmark of IMB-MPI1 does while it counts a byte of bandwidth.

    ``memory_bytes`` are read or written at least (a message is read once and written once), 0 for
    as many as there are processes; ``buffers`` of the message's size are in use in each process;
    ``directions`` of a link are used at once. ``pairs`` tells that the processes of the first half
    send to those of the second; else each sends to its neighbours.
    """

    memory_bytes: int
    buffers: int
    directions: int
    pairs: bool = False


# Sendrecv counts a message twice and Exchange four times, each as it goes out and comes in.
_MESSAGES: Mapping[str, _Messages] = {
    "PingPong": _Messages(2, 2, 1),
    "PingPing": _Messages(4, 2, 1),
    "Sendrecv": _Messages(0, 2, 2),
    "Exchange": _Messages(0, 2, 2),
    "Uniband": _Messages(2, 1, 1, pairs=True),
    "Biband": _Messages(2, 2, 2, pairs=True),
    "bidirectional_stream": _Messages(2, 2, 2, pairs=True),
}


_MESSAGE_CHECKS = frozenset({"ImbMpi1Check", "BidirectionalStreamCheck"})
# It is the difference of two times, each with its noise.
_AVAILABILITY = Limit(
    110.0, None, "no processor has more than all of its time for work, but for the noise"
)


def limits_of(
    check: str, conditions: Conditions, sample: Sample, peaks: Sequence[Peak], node: NodeFacts
) -> tuple[Limit, ...]:
    """Return the physical limits of a figure, in its own unit.

    ``check`` is the name of its check class; ``conditions`` are those of the case, of which
    ``nodes``, ``ranks_per_node`` and ``cores_per_rank`` count. All nodes are taken to be like the
    one that the peaks were measured on.
    """
    if sample.metric in _RATE_OF_TIME:
        metric, unit, work = _RATE_OF_TIME[sample.metric]
        rate = dataclasses.replace(sample, metric=metric, unit=unit)
        amount = work(int(sample.conditions["n"]))
        return tuple(
            Limit(None, amount / limit.at_most, f"{limit.reason}; {_LOOK}")
            for limit in limits_of(check, conditions, rate, peaks, node)
            if limit.at_most
        )
    measured = _measured(check, conditions, sample, peaks, node)
    return (
        *(measured or _beyond_any_core(conditions, sample)),
        *_too_short(check, conditions, sample, node),
    )


def _measured(
    check: str, conditions: Conditions, sample: Sample, peaks: Sequence[Peak], node: NodeFacts
) -> tuple[Limit, ...]:
    """Limit a figure by the peaks of the node, and by its link."""
    ranks, nodes = int(conditions["ranks_per_node"]), int(conditions["nodes"])
    cores_per_rank = int(conditions["cores_per_rank"])
    cores = ranks * cores_per_rank
    name = sample.metric
    told = f", on each of {nodes} nodes" if nodes > 1 else ""
    if sample.benchmark == "HPL" and name == "performance_gflops":
        return _hpl(sample, peaks, cores, nodes)
    if name == "HPL_Tflops":
        return _hpl(sample, peaks, cores, nodes, unit=1e-3)
    if name == "MPIFFT_Gflops":
        return _computing(peaks, "fma_peak", cores, _FFT_COUNTED * nodes, told)
    if name == "StarFFT_Gflops":
        return _computing(peaks, "fma_peak", cores, _FFT_COUNTED / ranks, _shared(ranks))
    if name == "SingleFFT_Gflops":
        return _computing(peaks, "fma_peak", cores_per_rank, _FFT_COUNTED)
    if name == "StarDGEMM_Gflops":
        return _computing(peaks, "fma_peak", cores, 1 / ranks, _shared(ranks))
    if name == "SingleDGEMM_Gflops":
        return _computing(peaks, "fma_peak", cores_per_rank)
    if name.startswith("StarSTREAM_"):
        return _streaming(sample, peaks, node, cores, ranks)
    if name.startswith("SingleSTREAM_"):
        return _streaming(sample, peaks, node, cores_per_rank, 1)
    if check in _MESSAGE_CHECKS and name == "bandwidth_mb_s":
        return tuple(_messages(sample, peaks, node, ranks))
    if check == "StreamCheck":
        return _whole_node(sample, peaks, node, cores, ranks)
    if check == "MpiTrialsCheck" and sample.benchmark == "ping_pong":
        return tuple(_crossing(sample, node, ranks))
    if name in ("performance_mflops", "total_mop_per_s"):
        return _computing(peaks, "fma_peak", cores, 1000 * nodes, told)
    if name == "atom_steps_per_s":
        return _computing(peaks, "fma_peak", cores, 1e9 / _FLOPS_PER_ATOM_STEP * nodes, told)
    if name == "availability_percent":
        return (_AVAILABILITY,)
    return ()


def _cores_of(conditions: Conditions) -> int:
    names = ("cores_per_rank", "ranks_per_node", "nodes")
    return math.prod(int(conditions[name]) for name in names)


def _beyond_any_core(conditions: Conditions, sample: Sample) -> Iterator[Limit]:
    """Limit a rate by what no core does, whatever is known of it."""
    of_one = sample.metric.startswith(("Star", "Single"))
    cores = int(conditions["cores_per_rank"]) if of_one else _cores_of(conditions)
    most = _MOST_OF_A_CORE_BY_METRIC.get(sample.metric, _MOST_OF_A_CORE.get(sample.unit))
    if most is not None:
        reason = f"no processor does more in a second on {_counted(cores)}"
        yield Limit(cores * most, None, reason)


def _counted(cores: int) -> str:
    return "one core" if cores == 1 else f"{cores} cores"


def _too_short(
    check: str, conditions: Conditions, sample: Sample, node: NodeFacts
) -> Iterator[Limit]:
    """Limit the time of a message or a collective call from below."""
    own = sample.conditions
    if sample.unit != "us" or sample.metric == "overhead_us" or own.get("processes") == 1:
        return
    answered = _is_ping_pong(check, sample)
    # A collective call of nothing returns at once, and one of IMB-RMA before anything moved.
    if answered or (own.get("bytes") != 0 and check != "ImbRmaCheck"):
        yield Limit(None, _CALL_US, f"no message takes less, whatever carries it; {_LOOK}")
    yield _written(int(own.get("bytes", 0)), 2 * int(conditions["cores_per_rank"]))
    if node.nearest_ns is not None and conditions.get("bound") and answered:
        yield Limit(
            None,
            _OF_A_CROSSING * node.nearest_ns / 2 / 1000,
            f"a cache line takes {node.nearest_ns:.4g} ns to the nearest core and back; {_LOOK}",
        )


def _written(size: int, cores: int) -> Limit:
    """Limit the time in which bytes arrive, in us, as they have to be written."""
    us = 1e6 * size / (cores * _STORED_PER_CYCLE * HIGHEST_CLOCK_GHZ * 1e9)
    reason = f"no processor writes {size} bytes faster on {_counted(cores)}; {_LOOK}"
    return Limit(None, max(0.0, us - _PRINTED_US), reason)


def _is_ping_pong(check: str, sample: Sample) -> bool:
    """Tell whether a time is of messages that wait for each other."""
    if check == "ImbMpi1Check":
        return sample.benchmark.startswith(("PingPong", "PingPing"))
    return sample.benchmark == "ping_pong" or "PingPongLatency" in sample.metric


def _times(count: float, what: object) -> str:
    return f"{what}" if count == 1 else f"{count:g} times {what}"


def _shared(ranks: int) -> str:
    return f", shared by {ranks} processes" if ranks > 1 else ""


def _hpl(
    sample: Sample, peaks: Sequence[Peak], cores: int, nodes: int, unit: float = 1.0
) -> tuple[Limit, ...]:
    # HPL spends its time in DGEMM with its block size as k; a larger k is faster still.
    sizes = {p.k for p in peaks if p.k is not None and p.k >= int(sample.conditions["nb"])}
    dgemm = [p for p in peaks if p.kind == "dgemm" and p.k == min(sizes, default=None)]
    told = f", on each of {nodes} nodes" if nodes > 1 else ""
    return (
        *_computing(dgemm, "dgemm", cores, nodes * unit, told),
        *_computing(peaks, "fma_peak", cores, nodes * unit, told),
    )


def _computing(
    peaks: Sequence[Peak], kind: str, cores: int, factor: float = 1.0, told: str = ""
) -> tuple[Limit, ...]:
    """Limit a rate by what so many cores of a node compute at most, times a factor."""
    wanted = _bounding(peaks, kind)
    together = max(wanted, key=lambda p: len(p.cores), default=None)
    alone = _fastest(p for p in wanted if len(p.cores) == 1)
    if together is None or alone is None:
        return ()
    all_cores = len(together.cores)
    undisturbed = together.at_most >= _DISTURBED * all_cores * alone.low
    if cores >= all_cores and undisturbed:
        return (Limit(factor * together.at_most, None, f"{together.reason}{told}"),)
    # Clocks are highest while one core runs alone.
    used = min(cores, all_cores)
    reason = f"{alone.reason}{f' on each of {used} cores' if used > 1 else ''}{told}"
    return (Limit(factor * used * alone.at_most, None, reason),)


def _bounding(peaks: Sequence[Peak], kind: str) -> list[Peak]:
    """Return the peaks of a kind, all of them or none.

    Without that of all cores at once, that of one core alone would be taken for the most there is.
    """
    alike = [p for p in peaks if p.kind == kind]
    return alike if all(p.at_most < math.inf for p in alike) else []


def _fastest(peaks: Iterable[Peak]) -> Peak | None:
    return max(peaks, key=lambda p: p.at_most, default=None)


def _streaming(
    sample: Sample, peaks: Sequence[Peak], node: NodeFacts, cores: int, processes: int
) -> tuple[Limit, ...]:
    """Limit a process's STREAM figure by the triad, if its vectors leave the caches."""
    array = int(sample.conditions["vector_size"]) * _DOUBLE_BYTES * processes
    return _through_memory(array, peaks, node, cores, processes)


def _whole_node(
    sample: Sample, peaks: Sequence[Peak], node: NodeFacts, cores: int, ranks: int
) -> tuple[Limit, ...]:
    """Limit the figure of all ranks of the suite's own STREAM, which wait for each other."""
    array = int(sample.conditions["elements"]) * _DOUBLE_BYTES * ranks
    return _through_memory(array, peaks, node, cores, 1)


def _through_memory(
    array: int, peaks: Sequence[Peak], node: NodeFacts, cores: int, processes: int
) -> tuple[Limit, ...]:
    triads = _bounding(peaks, "triad")
    # Copy and Scale go through two of the three arrays.
    from_memory = _from_memory(array, 2 * array, node)
    alone, fastest = _fastest(p for p in triads if len(p.cores) == 1), _fastest(triads)
    if from_memory is None or alone is None or fastest is None:
        return ()
    by_cores, by_node = cores * alone.at_most, _BEST_OF_TEN * fastest.at_most
    measured = _times(cores, alone) if by_cores < by_node else _times(_BEST_OF_TEN, fastest)
    at_most = min(by_cores, by_node) * _WRITE_ALLOCATE / (from_memory * processes)
    reason = f"memory moves no more than {measured}{_shared(processes)}, however it is counted"
    return (Limit(at_most, None, reason),)


def _messages(
    sample: Sample, peaks: Sequence[Peak], node: NodeFacts, ranks_per_node: int
) -> Iterator[Limit]:
    name = re.sub("(Specific|Any)Source$", "", sample.benchmark)
    if name not in _MESSAGES:
        return
    pattern = _MESSAGES[name]
    processes = int(sample.conditions["processes"])
    nodes = -(-processes // ranks_per_node)
    if nodes == 1:
        yield from _copying(sample, peaks, node, pattern, processes)
    elif node.link_mb_s is not None:
        yield from _sending(node.link_mb_s, pattern, processes, ranks_per_node, nodes)


def _copying(
    sample: Sample, peaks: Sequence[Peak], node: NodeFacts, pattern: _Messages, processes: int
) -> Iterator[Limit]:
    fastest = _fastest(_bounding(peaks, "triad"))
    buffers = int(sample.conditions["bytes"]) * pattern.buffers * processes
    from_memory = _from_memory(buffers, buffers, node)
    if from_memory is None or fastest is None:
        return
    moved = from_memory * (pattern.memory_bytes or processes)
    at_most = 1000 * fastest.at_most * _WRITE_ALLOCATE / moved
    yield Limit(
        at_most,
        None,
        f"messages that leave the caches are read and written once at least, and memory moves no "
        f"more than {fastest}",
    )


def _sending(
    link_mb_s: float, pattern: _Messages, processes: int, ranks_per_node: int, nodes: int
) -> Iterator[Limit]:
    links = 1
    if pattern.pairs:
        # Only then has every process of the first half of the nodes its partner on another.
        if nodes % 2 or processes % ranks_per_node:
            return
        links = nodes // 2
    used = pattern.directions * links
    carried = _times(used, f"{link_mb_s:.4g} MB/s")
    yield Limit(used * link_mb_s, None, f"the network carries {carried}, says the site config")


def _crossing(sample: Sample, node: NodeFacts, ranks_per_node: int) -> Iterator[Limit]:
    """Limit the time of half a round trip from below, where the message goes through the network.

    The other tests begin on each rank when it leaves a barrier, which is no common beginning.
    """
    peer, size = int(sample.conditions["peer"]), int(sample.conditions["bytes"])
    if sample.metric == "time_us" and peer >= ranks_per_node and node.link_mb_s is not None:
        reason = f"the network carries {node.link_mb_s:.4g} MB/s, says the site config"
        yield Limit(None, size / node.link_mb_s, reason)


def _from_memory(array: int, footprint: int, node: NodeFacts) -> float | None:
    """Return which part of a footprint must come from memory each time it is gone through.

    At best the caches keep a part of their own size. None when an array does not leave them.
    """
    if not node.cache_bytes or array < _CACHES_EXCEEDED * node.cache_bytes:
        return None
    return 1 - node.cache_bytes / footprint
