"""What cannot be: physical limits of a benchmark's figures, from peaks of the same job.

They hold on a machine that nobody has measured before, so they must hold on every machine: a limit
is taken only where it is sound, and is no tighter than that. It is the upper end of the interval
that :mod:`clustergate.node_peaks` gives a peak, so that beyond it means beyond doubt. Pure
functions.

Left out, because they are not sound: that HPCC's StarDGEMM and StarFFT are at most its SingleDGEMM
and SingleFFT (single values of one launch, without an interval); HPCC's ping-pong and rings (their
messages stay in the caches, and which pairs cross a link is not printed); STREAM from below; and
times of flushed messages within a node (how much a flush leaves in the caches is not known).
FFT and PTRANS are so far below every peak that a limit would never speak.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from clustergate.model import Conditions, Limit, Sample
from clustergate.node_peaks import Peak

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


@dataclass(frozen=True)
class NodeFacts:
    """What a node is, as far as limits depend on it.

    ``cache_bytes`` is the size of all its caches together, None where nobody knows: then memory
    limits nothing. ``link_mb_s`` is what a node can send into the network, in 10**6 bytes per
    second, None where the site config does not say.
    """

    cache_bytes: int | None = None
    link_mb_s: float | None = None


def limits_of(
    check: str, conditions: Conditions, sample: Sample, peaks: Sequence[Peak], node: NodeFacts
) -> tuple[Limit, ...]:
    """Return the physical limits of a figure, in its own unit.

    ``check`` is the name of its check class; ``conditions`` are those of the case, of which
    ``nodes``, ``ranks_per_node`` and ``cores_per_rank`` count. All nodes are taken to be like the
    one that the peaks were measured on.
    """
    ranks, nodes = int(conditions["ranks_per_node"]), int(conditions["nodes"])
    cores_per_rank = int(conditions["cores_per_rank"])
    cores = ranks * cores_per_rank
    name = sample.metric
    if sample.benchmark == "HPL" and name == "performance_gflops":
        return _hpl(sample, peaks, cores, nodes)
    if name == "HPL_Tflops":
        return _hpl(sample, peaks, cores, nodes, unit=1e-3)
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
    if name == "performance_mflops":
        told = f", on each of {nodes} nodes" if nodes > 1 else ""
        return _computing(peaks, "fma_peak", cores, 1000 * nodes, told)
    if name == "availability_percent":
        return (_AVAILABILITY,)
    return ()


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
    wanted = [p for p in peaks if p.kind == kind]
    together = max(wanted, key=lambda p: len(p.cores), default=None)
    alone = _fastest(p for p in wanted if len(p.cores) == 1)
    if together is None or alone is None:
        return ()
    all_cores = len(together.cores)
    undisturbed = together.high >= _DISTURBED * all_cores * alone.low
    if cores >= all_cores and undisturbed:
        return (Limit(factor * together.high, None, f"nothing is faster than {together}{told}"),)
    # Clocks are highest while one core runs alone.
    used = min(cores, all_cores)
    reason = f"nothing is faster than {_times(used, alone)}{told}"
    return (Limit(factor * used * alone.high, None, reason),)


def _fastest(peaks: Iterable[Peak]) -> Peak | None:
    return max(peaks, key=lambda p: p.high, default=None)


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
    triads = [p for p in peaks if p.kind == "triad"]
    # Copy and Scale go through two of the three arrays.
    from_memory = _from_memory(array, 2 * array, node)
    alone, fastest = _fastest(p for p in triads if len(p.cores) == 1), _fastest(triads)
    if from_memory is None or alone is None or fastest is None:
        return ()
    by_cores, by_node = cores * alone.high, _BEST_OF_TEN * fastest.high
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
    fastest = _fastest(p for p in peaks if p.kind == "triad")
    buffers = int(sample.conditions["bytes"]) * pattern.buffers * processes
    from_memory = _from_memory(buffers, buffers, node)
    if from_memory is None or fastest is None:
        return
    moved = from_memory * (pattern.memory_bytes or processes)
    at_most = 1000 * fastest.high * _WRITE_ALLOCATE / moved
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
