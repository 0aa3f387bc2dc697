"""What a curve over message sizes says: its knees, dips and crossings, and the fit of a line.

A curve is a mapping from message size in bytes to a value: a bandwidth (more is better) or a time.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from clustergate.core.model import Better, Metric, Sample
from clustergate.core.reasons import Words
from evaluations.derived import DerivedError, require_positive
from evaluations.derived.links import efficiency_percent, slot_peak_mb_s

Curve = Mapping[int, float]

NEAR_THE_TOP = 0.98
"""Part of its largest value at which a bandwidth has reached about its largest value."""


@dataclass(frozen=True)
class LatencyBandwidth:
    """T(M) = alpha + M beta: ``alpha_us`` in us, ``beta_us_per_byte`` in us per byte.

    ``r_squared`` is the part of the scatter of the times that the line explains.
    """

    alpha_us: float
    beta_us_per_byte: float
    r_squared: float

    @property
    def bandwidth_mb_s(self) -> float:
        """Return 1/beta in 1e6 bytes/s; infinite when the time does not grow with the size."""
        return 1 / self.beta_us_per_byte if self.beta_us_per_byte > 0 else math.inf


FEW_SIZES = Words("derived.few-sizes", "a linear fit needs the times of two message sizes or more")


def latency_bandwidth(times_us: Curve) -> LatencyBandwidth:
    """Fit T(M) = alpha + M beta by least squares (paper 004, test 4, with beta per byte).

    Every time counts alike relative to itself: without that weight the largest message alone would
    settle both. Raises :class:`DerivedError` for fewer than two sizes and for times not above 0.
    """
    if len(times_us) < 2:
        raise DerivedError(FEW_SIZES())
    sizes = np.array(list(times_us), dtype=float)
    times = np.array(list(times_us.values()))
    require_positive(**{"each time": float(times.min())})
    design = np.column_stack([np.ones_like(sizes), sizes]) / times[:, None]
    (alpha, beta), *_ = np.linalg.lstsq(design, np.ones_like(times), rcond=None)
    return LatencyBandwidth(float(alpha), float(beta), r_squared(times, alpha + beta * sizes))


FEW_VALUES = Words("derived.few-values", "a test of linearity needs three values or more")


def line_r_squared(values: Mapping[int, float]) -> float:
    """Return how much of the scatter of some values over sizes a straight line explains.

    Paper 002, section 6.4. Raises :class:`DerivedError` for fewer than three sizes, through two of
    which there always is a line.
    """
    if len(values) < 3:
        raise DerivedError(FEW_VALUES())
    sizes, heights = np.array(list(values), dtype=float), np.array(list(values.values()))
    slope, start = np.polyfit(sizes, heights, 1)
    return r_squared(heights, start + slope * sizes)


def r_squared(values: np.ndarray, fitted: np.ndarray) -> float:
    """Return 1 less the scatter about the fit over the scatter about the mean; 1 for constants."""
    scatter = float(((values - values.mean()) ** 2).sum())
    return 1 - float(((values - fitted) ** 2).sum()) / scatter if scatter else 1.0


def size_of_most(bandwidth: Curve, near: float = NEAR_THE_TOP) -> int:
    """Return n_max: the smallest size that reaches about the largest bandwidth (paper 003, 8.1)."""
    return _first_reaching(bandwidth, near)


NO_HALF = Words(
    "derived.no-half", "the smallest size, {bytes} bytes, already exceeds half the bandwidth"
)


def size_of_half(bandwidth: Curve) -> float:
    """Return n_1/2: the size at half the largest bandwidth, in bytes (paper 003, section 8.1).

    Between two measured sizes it is interpolated, linearly in the logarithm of the size. Raises
    :class:`DerivedError` when the smallest size is beyond half already, or nothing was measured.
    """
    sizes = sorted(size for size in bandwidth if size > 0)
    upper = _first_reaching(bandwidth, 0.5)
    below = [size for size in sizes if size < upper]
    half = max(bandwidth[size] for size in sizes) / 2
    if bandwidth[upper] == half:
        return float(upper)
    if not below:
        raise DerivedError(NO_HALF(bytes=upper))
    lower = below[-1]
    part = (half - bandwidth[lower]) / (bandwidth[upper] - bandwidth[lower])
    return float(lower * (upper / lower) ** part)


NO_BANDWIDTH = Words("derived.no-bandwidth", "no bandwidth is given to take a fraction of")


def _first_reaching(bandwidth: Curve, part: float) -> int:
    moved = {size: value for size, value in sorted(bandwidth.items()) if size > 0}
    if not moved or max(moved.values()) <= 0:
        raise DerivedError(NO_BANDWIDTH())
    wanted = part * max(moved.values())
    return next(size for size, value in moved.items() if value >= wanted)


def crossover(better: Sequence[bool], sizes: Sequence[int]) -> int | None:
    """Return the smallest size from which on one side is ahead at all sizes, None when nowhere.

    ``better`` says of each of the ``sizes`` whether it is (paper 001, section V).
    """
    smallest = None
    for size, ahead in sorted(zip(sizes, better, strict=True), reverse=True):
        if not ahead:
            break
        smallest = size
    return smallest


def from_where_ahead(mine: Curve, other: Curve, *, lower_is_better: bool) -> int | None:
    """Return the smallest common size from which on ``mine`` is ahead of ``other``, or None."""
    sizes = sorted(set(mine) & set(other))
    ahead = [
        mine[size] < other[size] if lower_is_better else mine[size] > other[size] for size in sizes
    ]
    return crossover(ahead, sizes)


def from_where_alike(mine: Curve, other: Curve, within: float) -> int | None:
    """Return the smallest common size from which on the two differ by ``within`` at most, or None.

    ``within`` is a part of the larger of the two.
    """
    sizes = sorted(set(mine) & set(other))
    alike = [
        abs(mine[size] - other[size]) <= within * max(mine[size], other[size]) for size in sizes
    ]
    return crossover(alike, sizes)


def dips(bandwidth: Curve, depth: float = 0.05) -> list[int]:
    """Return the sizes at which a bandwidth is below both its neighbours by ``depth`` or more.

    Paper 001, section V; ``depth`` is a part of the lower neighbour.
    """
    sizes = sorted(bandwidth)
    return [
        middle
        for left, middle, right in zip(sizes, sizes[1:], sizes[2:], strict=False)
        if bandwidth[middle] <= (1 - depth) * min(bandwidth[left], bandwidth[right])
    ]


def switch_points(times_us: Curve, factor: float = 1.5) -> list[int]:
    """Return the sizes at which a time jumps off the line through the two sizes before.

    Paper 002, sections 3 and 6: a message library sends larger messages another way. A jump is a
    time that is ``factor`` times what the line foretells, or one ``factor``-th of it. A line that
    falls foretells the time of the size before; the line through a jump foretells nothing.
    """
    sizes = sorted(times_us)
    switches: list[int] = []
    for first, second, third in zip(sizes, sizes[1:], sizes[2:], strict=False):
        if second in switches:
            continue
        slope = (times_us[second] - times_us[first]) / (second - first)
        foretold = times_us[second] + max(slope, 0.0) * (third - second)
        if not foretold / factor <= times_us[third] <= foretold * factor:
            switches.append(third)
    return switches


CURVES = ("PingPong", "Sendrecv", "Exchange")
"""The benchmarks of IMB whose bandwidth over message sizes papers tell of."""

METRICS: Mapping[str, Metric] = {
    name: Metric(name, unit, better)
    for name, unit, better in (
        ("max_bandwidth_mb_s", "MB/s", Better.HIGHER),
        ("size_of_max_bytes", "bytes", Better.LOWER),
        ("size_of_half_bytes", "bytes", Better.LOWER),
        ("link_percent", "%", Better.HIGHER),
    )
}
"""Those of :func:`curve_samples`."""


def curve_samples(
    samples: Sequence[Sample], ranks: int, nodes: int, link_mb_s: float | None
) -> tuple[Sample, ...]:
    """Return what each launch's bandwidth over message sizes says, as figures of ``…-curve``.

    The largest bandwidth, the size that reaches about all of it and that of half of it (paper 003,
    section 8.1; none where the smallest message has more), and between nodes the largest as a part
    of what a link carries in the benchmark's directions (section 6.1). Two sizes are no curve.
    """
    found: dict[tuple[str, int, int], dict[int, float]] = {}
    for one in samples:
        if one.benchmark in CURVES and one.metric == "bandwidth_mb_s":
            of = (one.benchmark, int(one.conditions["processes"]), one.order)
            found.setdefault(of, {})[int(one.conditions["bytes"])] = one.value
    made = []
    for (benchmark, processes, order), curve in found.items():
        if len(curve) < 3 or max(curve.values()) <= 0:
            continue
        largest = max(curve.values())
        values = {"max_bandwidth_mb_s": largest, "size_of_max_bytes": float(size_of_most(curve))}
        with contextlib.suppress(DerivedError):
            values["size_of_half_bytes"] = size_of_half(curve)
        if link_mb_s and nodes > 1 and processes == ranks:
            peak = slot_peak_mb_s(link_mb_s, both_ways=benchmark != "PingPong", full_duplex=True)
            values["link_percent"] = efficiency_percent(largest, peak)
        made += [
            Sample(
                *(f"{benchmark}-curve", name, METRICS[name].unit, METRICS[name].better),
                {"processes": processes},
                value,
                order,
            )
            for name, value in values.items()
        ]
    return tuple(made)
