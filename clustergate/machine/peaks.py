"""What a node reached by its own measure, with intervals.

Of each trial counts what the cores did while they were had: others that run on a core only make a
trial slower, and the kernels tell what it was without them (the fastest block of some 40 us, or the
rate by their own processor time). Trials of older kernels, which do not tell, count as they are.

The interval of a peak runs from the slowest to the fastest trial, each moved outwards by its
distance from the median, and by 2 % of the median at least: the trials of a peak take a second and
a benchmark takes minutes, over which clocks move more than within that second, and the fastest of
few trials is not the fastest there is. So it is the wider the more the trials were disturbed. Rows
that were taken before and after a benchmark may come together; then the interval holds what the
node did meanwhile. Fewer than three trials give no interval, and so no peak. Pure functions.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from clustergate.core.model import METRICS, Row

_FEWEST_TRIALS = 3
_SMALLEST_SPREAD = 0.02
# The interval of an undisturbed peak spans a twentieth to a tenth.
_STEADY = 0.75
_NAMES = {"fma_peak": "FMA peak", "triad": "triad bandwidth", "dgemm": "DGEMM"}
_UNDISTURBED = {
    "performance_gflops": "undisturbed_gflops",
    "bandwidth_gb_s": "undisturbed_gb_s",
}
GLANCE = "_glance"
"""Ends the name of a measurement that only another glance can be held against."""
OF_ALL_CORES: Mapping[str, tuple[str, str, Callable[[Iterable[float]], float]]] = {
    "fma_peak": ("FMA peak", "Gflop/s", max),
    "dgemm": ("DGEMM", "Gflop/s", max),
    "triad": ("triad", "GB/s", max),
    "core_distance": ("core-to-core round trip", "ns", min),
}
"""What :func:`of_all_cores` tells: title and unit, and which of several is nearest to the truth."""
HIGHEST_CLOCK_GHZ = 6.5
"""No processor sold runs faster; the fastest is at 6.2 GHz."""
# Of a core with such vectors, all units together (node_peaks.c): what older kernels did not print.
_FLOPS_PER_CYCLE = {"avx512": 32, "avx2": 16, "sse2": 8, "neon": 24, "sve": 32}
# What a kernel names as the highest clock is exceeded by a little on some processors.
_ABOVE_NAMED_CLOCK = 1.25
# The machines beside a virtual one slow its cores down for hours, without a trace in it: its clock
# follows the load of the host, from the turbo clock of all cores to that of a few; a machine on the
# second hardware thread takes units; and memory is shared (one with two cores got 20 to 44 GB/s
# within minutes, at the same clock).
OF_A_VIRTUAL_MACHINE = {"fma_peak": 1.25, "triad": 2.0}
"""What the host of a virtual machine may take of a peak, as a factor."""


@dataclass(frozen=True)
class Peak:
    """A measurement on some cores at once: ``fma_peak``, ``triad`` or ``dgemm``.

    ``median``, ``low`` and ``high`` are in Gflop/s or GB/s, ``k`` is the inner size of a dgemm.
    ``undisturbed`` tells that they are of what the cores did without others; ``virtual`` that there
    may be others whom nothing shows. Of an FMA peak, ``by_clock`` is what the clock measured with
    it allows in Gflop/s, None where there is none, and ``ceiling`` what no such cores reach at any
    clock.
    """

    kind: str
    metric: str
    cores: tuple[int, ...]
    k: int | None
    median: float
    low: float
    high: float
    trials: int
    undisturbed: bool = False
    virtual: bool = False
    by_clock: float | None = None
    ceiling: float = math.inf

    @property
    def steady(self) -> bool:
        """Whether the trials agree well enough to compare peaks with each other."""
        return self.low >= _STEADY * self.high

    @property
    def at_most(self) -> float:
        """The most that a figure can have from these cores, infinite where that is not known.

        Trials that others slowed, and that do not say by how much, bound nothing but by the
        ceiling. On a virtual machine nobody knows what others took. There the clock that a core
        showed says more of it than its trials, as a busy second thread does not slow it down, and a
        DGEMM, which its neighbours in the caches slow by a third, bounds nothing.
        """
        if not (self.undisturbed or self.steady):
            return self.ceiling
        if not self.virtual:
            return min(self.high, self.ceiling)
        return min(self.taken_by_the_host * max(self.high, self.by_clock or 0.0), self.ceiling)

    @property
    def taken_by_the_host(self) -> float:
        """How many times as fast the cores may be when the host of a virtual machine is idle.

        It is 1 on bare metal, and infinite where nobody knows.
        """
        return OF_A_VIRTUAL_MACHINE.get(self.kind, math.inf) if self.virtual else 1.0

    @property
    def reason(self) -> str:
        """What stands behind :attr:`at_most`, in words."""
        if self.at_most == self.ceiling:
            return f"no {_cores(self.cores)} with such vectors compute faster at any clock"
        if self.virtual:
            return f"nothing is faster than {self}, even if the host of this virtual machine idles"
        return f"nothing is faster than {self}"

    def __str__(self) -> str:
        size = "" if self.k is None else f" with k={self.k}"
        reached = f"{self.low:.4g} to {self.high:.4g} {METRICS[self.metric].unit}"
        return f"the {_NAMES[self.kind]}{size} of {_cores(self.cores)}, {reached}"


def _cores(cores: Sequence[int]) -> str:
    return f"{len(cores)} cores" if len(cores) > 1 else f"core {cores[0]}"


def peaks_of(rows: Iterable[Row]) -> tuple[Peak, ...]:
    """Return the peaks that rows of :func:`.parse_peaks` tell of."""
    return tuple(peak for peak in _rates(rows) if peak.kind in _NAMES)


def is_unchanged(then: Iterable[Row], now: Iterable[Row]) -> bool:
    """Tell whether a glance shows a node as that did which was taken with its peaks.

    It does not when a rate left the interval that it had. On a virtual machine the limit allows for
    what nobody sees, and half of that (as a factor) for the time between the two; what bounds
    nothing there may change.
    """
    known, current = ({(x.kind, x.cores, x.k): x for x in _rates(rows)} for rows in (then, now))
    virtual = any(rate.virtual for rate in current.values())
    return known.keys() == current.keys() and all(
        _is_within(known[what], rate.median, virtual) for what, rate in current.items()
    )


def _is_within(known: Peak, rate: float, virtual: bool) -> bool:
    kind = known.kind.removesuffix(GLANCE)
    if virtual and kind not in OF_A_VIRTUAL_MACHINE:
        return True
    doubt = math.sqrt(OF_A_VIRTUAL_MACHINE[kind]) if virtual else 1.0
    return known.low / doubt <= rate <= known.high * doubt


def _rates(rows: Iterable[Row]) -> tuple[Peak, ...]:
    rows = list(rows)
    virtual = any(row.conditions.get("virtual") for row in rows)
    alike: dict[tuple[str, str, tuple[int, ...], int | None], list[Row]] = {}
    for row in rows:
        cores = tuple(int(core) for core in str(row.conditions["core_ids"]).split(","))
        k = int(row.conditions["k"]) if "k" in row.conditions else None
        for metric in _UNDISTURBED.keys() & row.values.keys():
            alike.setdefault((row.benchmark, metric, cores, k), []).append(row)
    return tuple(
        _peak(*what, trials, virtual)
        for what, trials in alike.items()
        if len(trials) >= _FEWEST_TRIALS
    )


def of_all_cores(rows: Iterable[Row]) -> dict[str, float]:
    """Return what a node can do at most, by kind of peak: ``fma_peak`` and ``dgemm`` in Gflop/s,
    ``triad`` in GB/s, each the median on most cores, ``core_distance`` the shortest round trip of a
    cache line in ns; only what was measured.
    """
    rows = list(rows)
    most: dict[str, Peak] = {}
    for peak in sorted(peaks_of(rows), key=lambda peak: len(peak.cores)):
        most[peak.kind] = peak
    medians = {kind: peak.median for kind, peak in most.items()}
    round_trips = [row.values["round_trip_ns"] for row in rows if "round_trip_ns" in row.values]
    return {**medians, **({"core_distance": min(round_trips)} if round_trips else {})}


def value_of(row: Row) -> float:
    """Return the rate of a trial: what the cores did while they were had, where that is known."""
    metric = next(name for name in _UNDISTURBED if name in row.values)
    return row.values.get(_UNDISTURBED[metric], row.values[metric])


def _peak(
    kind: str,
    metric: str,
    cores: tuple[int, ...],
    k: int | None,
    trials: Sequence[Row],
    virtual: bool,
) -> Peak:
    values = [value_of(row) for row in trials]
    undisturbed = all(_UNDISTURBED[metric] in row.values for row in trials)
    facts = (kind, metric, cores, k, *_interval(values), len(trials), undisturbed, virtual)
    vector = trials[0].conditions.get("vector")
    flops = float(
        trials[0].conditions.get("flops_per_cycle") or _FLOPS_PER_CYCLE.get(str(vector), 0)
    )
    if not flops:
        return Peak(*facts)
    clock_ghz, named_ghz = (
        max(row.values.get(name, 0.0) for row in trials) for name in ("clock_ghz", "max_ghz")
    )
    if clock_ghz:
        # A processor that was seen to do more than is known of such vectors knows better.
        flops = max(flops, max(values) / clock_ghz / len(cores))
    highest_ghz = _ABOVE_NAMED_CLOCK * named_ghz if named_ghz else HIGHEST_CLOCK_GHZ
    by_clock = clock_ghz * flops * len(cores)
    return Peak(*facts, by_clock or None, highest_ghz * flops * len(cores))


def nearest_ns(rows: Iterable[Row]) -> float | None:
    """Return how long a cache line takes to the nearest core and back, in ns.

    None where it was not measured, and on a virtual machine, whose cores move to other places.
    """
    rows = list(rows)
    round_trips = [row.values["round_trip_ns"] for row in rows if "round_trip_ns" in row.values]
    return (
        None
        if any(row.conditions.get("virtual") for row in rows)
        else min(round_trips, default=None)
    )


def _interval(values: Sequence[float]) -> tuple[float, float, float]:
    median = statistics.median(values)
    lowest, highest, least = min(values), max(values), _SMALLEST_SPREAD * median
    return (
        median,
        max(0.0, lowest - max(median - lowest, least)),
        highest + max(highest - median, least),
    )
