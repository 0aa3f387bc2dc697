"""What limits figures of any benchmark: the parts that its folder makes its limits of.

Limits hold on a machine that nobody has measured before, so they must hold on every machine: a
limit is taken only where it is sound, and is no tighter than that. There are three kinds.

- By the peaks of the same job: what :attr:`clustergate.machine.peaks.Peak.at_most` gives, so that
  beyond it means beyond doubt. What others did on the node meanwhile widens it, and removes none.
- By what no processor does, where nothing was measured: operations, bytes and messages of a core at
  a clock that none has.
- From below, for times: a call that needs another process takes 5 ns at least and what a cache line
  takes to the nearest core, and bytes that arrive must have been written.

Pure functions.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from clustergate.core.model import Conditions, Limit, NodeFacts, Sample
from clustergate.machine.peaks import HIGHEST_CLOCK_GHZ, Peak

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
DOUBLE_BYTES = 8

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
# What a core does at most per second, in the units of the figures; messages count as 1/s.
_MOST_OF_A_CORE: Mapping[str, float] = {
    "Gflop/s": _FLOPS_PER_CYCLE * HIGHEST_CLOCK_GHZ,
    "Tflop/s": _FLOPS_PER_CYCLE * HIGHEST_CLOCK_GHZ * 1e-3,
    "Mflop/s": _FLOPS_PER_CYCLE * HIGHEST_CLOCK_GHZ * 1e3,
    "Mop/s": _FLOPS_PER_CYCLE * HIGHEST_CLOCK_GHZ * 1e3,
    "GUP/s": _UPDATES_PER_CYCLE * HIGHEST_CLOCK_GHZ,
    "GB/s": _BYTES_PER_CYCLE * HIGHEST_CLOCK_GHZ,
    "MB/s": _BYTES_PER_CYCLE * HIGHEST_CLOCK_GHZ * 1e3,
}
_MOST_OF_A_CORE_BY_METRIC: Mapping[str, float] = {"message_rate_per_s": 1e6 / _CALL_US}
LOOK = "do not trust this figure; check clocks and timers"


@dataclasses.dataclass(frozen=True)
class Measurement:
    """A figure with all that its limits depend on.

    ``conditions`` are those of the case, of which ``nodes``, ``ranks_per_node``,
    ``cores_per_rank`` and ``bound`` count. All nodes are taken to be like the one that the peaks
    were measured on.
    """

    check: str
    conditions: Conditions
    sample: Sample
    peaks: Sequence[Peak]
    node: NodeFacts

    @property
    def nodes(self) -> int:
        return int(self.conditions["nodes"])

    @property
    def ranks(self) -> int:
        return int(self.conditions["ranks_per_node"])

    @property
    def cores_of_a_rank(self) -> int:
        return int(self.conditions["cores_per_rank"])

    @property
    def cores(self) -> int:
        return self.ranks * self.cores_of_a_rank

    @property
    def on_each_node(self) -> str:
        """The nodes in words, empty for one."""
        return f", on each of {self.nodes} nodes" if self.nodes > 1 else ""


def limits_of_any(
    measurement: Measurement,
    measured: Iterable[Limit] = (),
    *,
    cores: int | None = None,
    most_of_a_core: float | None = None,
    answered: bool = False,
    at_once: bool = False,
) -> tuple[Limit, ...]:
    """Return the limits ``measured`` for a figure, else what no processor does, and the least time.

    ``cores`` are those that made the figure where they are not all of the case,
    ``most_of_a_core`` is the most of one per second where it does not follow from the unit.
    ``answered`` messages wait for each other; a call may return ``at_once``, before anything moved.
    """
    of_node = tuple(measured)
    of_any = _core_limits(
        measurement, cores or measurement.nodes * measurement.cores, most_of_a_core
    )
    return (*(of_node or of_any), *_time_limits(measurement, answered=answered, at_once=at_once))


def _core_limits(one: Measurement, cores: int, most: float | None) -> tuple[Limit, ...]:
    """Limit a rate by what no core does, whatever is known of it."""
    if most is None:
        of_unit = _MOST_OF_A_CORE.get(one.sample.unit)
        most = _MOST_OF_A_CORE_BY_METRIC.get(one.sample.metric, of_unit)
    if most is None:
        return ()
    reason = f"no processor does more in a second on {_cores_in_words(cores)}"
    return (Limit(cores * most, None, reason, loose=True),)


def _cores_in_words(cores: int) -> str:
    return "one core" if cores == 1 else f"{cores} cores"


def _time_limits(one: Measurement, *, answered: bool, at_once: bool) -> Iterator[Limit]:
    """Limit the time of a message or a collective call from below."""
    own = one.sample.conditions
    if one.sample.unit != "us" or own.get("processes") == 1:
        return
    # A collective call of nothing returns at once.
    if answered or not (at_once or own.get("bytes") == 0):
        yield Limit(None, _CALL_US, f"no message takes less, whatever carries it; {LOOK}")
    yield _written(int(own.get("bytes", 0)), 2 * one.cores_of_a_rank)
    nearest_ns = one.node.nearest_ns
    if nearest_ns is not None and one.conditions.get("bound") and answered:
        reason = f"a cache line takes {nearest_ns:.4g} ns to the nearest core and back; {LOOK}"
        yield Limit(None, _OF_A_CROSSING * nearest_ns / 2 / 1000, reason)


def _written(size: int, cores: int) -> Limit:
    """Limit the time in which bytes arrive, in us, as they have to be written."""
    us = 1e6 * size / (cores * _STORED_PER_CYCLE * HIGHEST_CLOCK_GHZ * 1e9)
    reason = f"no processor writes {size} bytes faster on {_cores_in_words(cores)}; {LOOK}"
    return Limit(None, max(0.0, us - _PRINTED_US), reason)


def _times(count: float, what: object) -> str:
    return f"{what}" if count == 1 else f"{count:g} times {what}"


def shared_by(ranks: int) -> str:
    """Return that processes share a limit, in words; empty for one alone."""
    return f", shared by {ranks} processes" if ranks > 1 else ""


def compute_limits(
    peaks: Sequence[Peak], kind: str, cores: int, factor: float = 1.0, suffix: str = ""
) -> tuple[Limit, ...]:
    """Limit a rate by what so many cores of a node compute at most, times a factor."""
    wanted = _usable_peaks(peaks, kind)
    together = max(wanted, key=lambda p: len(p.cores), default=None)
    alone = _fastest(p for p in wanted if len(p.cores) == 1)
    if together is None or alone is None:
        return ()
    all_cores = len(together.cores)
    undisturbed = together.at_most >= _DISTURBED * all_cores * alone.low
    if cores >= all_cores and undisturbed:
        return (Limit(factor * together.at_most, None, f"{together.reason}{suffix}"),)
    # Clocks are highest while one core runs alone.
    used = min(cores, all_cores)
    reason = f"{alone.reason}{f' on each of {used} cores' if used > 1 else ''}{suffix}"
    return (Limit(factor * used * alone.at_most, None, reason),)


def compute_limits_of_all_cores(measurement: Measurement, unit: float = 1.0) -> tuple[Limit, ...]:
    """Limit a rate of all cores by their FMA peak; ``unit`` is what it counts per Gflop/s."""
    return compute_limits(
        measurement.peaks,
        "fma_peak",
        measurement.cores,
        unit * measurement.nodes,
        measurement.on_each_node,
    )


def rate_limits(metric: str, per_gflop: float) -> Callable[[Measurement], tuple[Limit, ...]]:
    """Return the limits of a benchmark whose rate counts ``per_gflop`` for each Gflop/s."""

    def limits(one: Measurement) -> tuple[Limit, ...]:
        if one.sample.metric != metric:
            return limits_of_any(one)
        most = per_gflop * _FLOPS_PER_CYCLE * HIGHEST_CLOCK_GHZ
        return limits_of_any(one, compute_limits_of_all_cores(one, per_gflop), most_of_a_core=most)

    return limits


def _usable_peaks(peaks: Sequence[Peak], kind: str) -> list[Peak]:
    """Return the peaks of a kind, all of them or none.

    Without that of all cores at once, that of one core alone would be taken for the most there is.
    """
    alike = [p for p in peaks if p.kind == kind]
    return alike if all(p.at_most < math.inf for p in alike) else []


def _fastest(peaks: Iterable[Peak]) -> Peak | None:
    return max(peaks, key=lambda p: p.at_most, default=None)


def stream_limits(
    measurement: Measurement, array: int, cores: int, processes: int = 1
) -> tuple[Limit, ...]:
    """Limit a STREAM figure in GB/s by the triad, if its arrays leave the caches.

    An ``array`` is that many bytes over all processes of the node; it is the figure of one of
    ``processes`` that do not wait for each other.
    """
    triads = _usable_peaks(measurement.peaks, "triad")
    # Copy and Scale go through two of the three arrays.
    from_memory = _from_memory(array, 2 * array, measurement.node)
    alone, fastest = _fastest(p for p in triads if len(p.cores) == 1), _fastest(triads)
    if from_memory is None or alone is None or fastest is None:
        return ()
    by_cores, by_node = cores * alone.at_most, _BEST_OF_TEN * fastest.at_most
    measured = _times(cores, alone) if by_cores < by_node else _times(_BEST_OF_TEN, fastest)
    at_most = min(by_cores, by_node) * _WRITE_ALLOCATE / (from_memory * processes)
    reason = f"memory moves no more than {measured}{shared_by(processes)}, however it is counted"
    return (Limit(at_most, None, reason),)


def memory_limits(measurement: Measurement, bytes_per_unit: float) -> Iterator[Limit]:
    """Limit a rate whose every unit takes so many bytes from memory at least: in 10^9 per second.

    A kernel that mostly reads moves as much as the triad with the lines that this writes.
    """
    fastest = _fastest(_usable_peaks(measurement.peaks, "triad"))
    if fastest is not None and bytes_per_unit > 0:
        at_most = measurement.nodes * fastest.at_most * _WRITE_ALLOCATE / bytes_per_unit
        reason = (
            f"each operation takes {bytes_per_unit:.3g} bytes from memory at least, which moves no "
            f"more than {fastest}, however it is counted{measurement.on_each_node}"
        )
        yield Limit(at_most, None, reason)


class Messages(NamedTuple):
    """What a benchmark of messages does while it counts a byte of bandwidth.

    ``memory_bytes`` are read or written at least (a message is read once and written once), 0 for
    as many as there are processes; ``buffers`` of the message's size are in use in each process;
    ``directions`` of a link are used at once. ``pairs`` tells that the processes of the first half
    send to those of the second; else each sends to its neighbours.
    """

    memory_bytes: int
    buffers: int
    directions: int
    pairs: bool = False


def message_limits(measurement: Measurement, messages: Messages) -> Iterator[Limit]:
    """Limit a bandwidth in MB/s by memory within a node, and by the link between nodes."""
    processes = int(measurement.sample.conditions["processes"])
    nodes = -(-processes // measurement.ranks)
    if nodes == 1:
        yield from _copy_limits(measurement, messages, processes)
    elif measurement.node.link_mb_s is not None:
        yield from _link_limits(
            measurement.node.link_mb_s, messages, processes, measurement.ranks, nodes
        )


def _copy_limits(one: Measurement, messages: Messages, processes: int) -> Iterator[Limit]:
    fastest = _fastest(_usable_peaks(one.peaks, "triad"))
    buffers = int(one.sample.conditions["bytes"]) * messages.buffers * processes
    from_memory = _from_memory(buffers, buffers, one.node)
    if from_memory is None or fastest is None:
        return
    moved = from_memory * (messages.memory_bytes or processes)
    at_most = 1000 * fastest.at_most * _WRITE_ALLOCATE / moved
    yield Limit(
        at_most,
        None,
        f"messages that leave the caches are read and written once at least, and memory moves no "
        f"more than {fastest}",
    )


def _link_limits(
    link_mb_s: float, messages: Messages, processes: int, ranks_per_node: int, nodes: int
) -> Iterator[Limit]:
    links = 1
    if messages.pairs:
        # Only then has every process of the first half of the nodes its partner on another.
        if nodes % 2 or processes % ranks_per_node:
            return
        links = nodes // 2
    used = messages.directions * links
    yield Limit(used * link_mb_s, None, link_reason(link_mb_s, used))


def link_reason(link_mb_s: float, used: int = 1) -> str:
    """Return why so many uses of a link carry no more."""
    return f"the network carries {_times(used, f'{link_mb_s:.4g} MB/s')}, says the site config"


def _from_memory(array: int, footprint: int, node: NodeFacts) -> float | None:
    """Return which part of a footprint must come from memory each time it is gone through.

    At best the caches keep a part of their own size. None when an array does not leave them.
    """
    if not node.cache_bytes or array < _CACHES_EXCEEDED * node.cache_bytes:
        return None
    return 1 - node.cache_bytes / footprint
