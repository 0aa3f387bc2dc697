"""How time and rate change with the number of processes."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence

from clustergate.core.reasons import Words
from clustergate.core.words import INPUT_UNKNOWN_NAME
from evaluations.derived import DerivedError, require_positive

Series = Mapping[int, float]
"""Values by the number of processes."""


def rpeak_gflops(clock_ghz: float, cores: int, flops_per_cycle: float) -> float:
    """Return the theoretical peak in Gflop/s (paper 001, section IV.A; paper 002, section 3)."""
    require_positive(clock_ghz=clock_ghz, cores=cores, flops_per_cycle=flops_per_cycle)
    return clock_ghz * cores * flops_per_cycle


def relative_change_percent(before: float, after: float) -> float:
    """Return by how much a value changed, in percent of what it was: negative for a fall.

    Paper 000, section 4.1.1 (efficiency of HPL from 4 to 64 CPUs); paper 003, section 7: 8153 is
    20 % slower than 10171, and 10171 is 25 % faster than 8153.
    """
    require_positive(before=before)
    return 100 * (after / before - 1)


def weak_efficiency_percent(rates: Series) -> dict[int, float]:
    """Return R(p)/(p R(1)) in percent, the work growing with p (paper 002, section 7.1)."""
    one = _of_one(rates)
    return {p: 100 * rate / (p * one) for p, rate in sorted(rates.items())}


def weak_efficiency_of_times_percent(times: Series) -> dict[int, float]:
    """Return T(1)/T(p) in percent, the work growing with p (paper 002, section 7.2)."""
    one = _of_one(times)
    return {p: 100 * one / time for p, time in sorted(times.items())}


def normalised_time(times: Series) -> dict[int, float]:
    """Return T(p)/T(1) (paper 002, figures 12 to 22)."""
    one = _of_one(times)
    return {p: time / one for p, time in sorted(times.items())}


def speed_up(times: Series) -> dict[int, float]:
    """Return T(1)/T(p), the work being the same (paper 002, section 7)."""
    return {p: 1 / part for p, part in normalised_time(times).items()}


def strong_efficiency_percent(times: Series) -> dict[int, float]:
    """Return T(1)/(p T(p)) in percent, the work being the same (paper 002, section 7)."""
    return {p: 100 * gained / p for p, gained in speed_up(times).items()}


NO_SINGLE = Words(
    "derived.no-single",
    "the run of one process is missing",
    cause="scaling is relative to it",
)


def _of_one(series: Series) -> float:
    if 1 not in series:
        raise DerivedError(NO_SINGLE())
    require_positive(**{f"the value of {p} processes": value for p, value in series.items()})
    return series[1]


NO_TIME = Words("derived.no-time", "there is no time of {processes} processes")


def penalty_of(odd: int, even: int, times: Series) -> float:
    """Return T(odd) - T(even): what fewer processes that are no power of two cost.

    Paper 002, section 6.3: 40 beside 64. Positive when the fewer take longer. Raises
    :class:`DerivedError` when one of them was not measured.
    """
    missing = [p for p in (odd, even) if p not in times]
    if missing:
        raise DerivedError(NO_TIME(processes=missing[0]))
    return times[odd] - times[even]


def _over(steps: Callable[[int], float]) -> Callable[[Series], dict[int, float]]:
    return lambda times: {p: time / steps(p) for p, time in sorted(times.items()) if p > 1}


MODELS: Mapping[str, Callable[[Series], dict[int, float]]] = {
    "log2 p": _over(math.log2),
    "p-1": _over(lambda p: p - 1.0),
    "p": lambda values: {p: value / p for p, value in sorted(values.items())},
    "T(1)": normalised_time,
    "strong efficiency": strong_efficiency_percent,
    "weak efficiency": weak_efficiency_percent,
    "weak efficiency of times": weak_efficiency_of_times_percent,
}
"""What times, and rates of growing problems, are related to. Over log2(p) and over p-1 times show
an algorithm (paper 004): bcast takes log2(p) steps, allgather and alltoall p-1, scatter and gather
of large messages p-1 messages. Paper 002 relates both to one process; over p is a rate for each of
them (paper 000, section 4.1.1)."""


def scaled(times: Series, model: str) -> dict[int, float]:
    """Return times as a model of :data:`MODELS` relates them; raises :class:`DerivedError`.

    Paper 004, tests 4 to 8; paper 002, section 7.
    """
    if model not in MODELS:
        raise DerivedError(INPUT_UNKNOWN_NAME(kind="model", name=model, known=[*MODELS]))
    return MODELS[model](times)


NO_VALUES = Words("derived.no-values", "there are no values to compare")


def growth_exponent(times: Series) -> float:
    """Return k of the law T = c p^k that is nearest to times, by least squares of logarithms.

    1 where the time is proportional to the processes, 0 where it is constant; log2(p) lies between
    (paper 004, tests 4 to 8). Raises :class:`DerivedError` for fewer than two numbers of processes.
    """
    if len(times) < 2:
        raise DerivedError(NO_VALUES())
    require_positive(**{f"the value of {p} processes": value for p, value in times.items()})
    logarithms = (map(math.log, times), map(math.log, times.values()))
    return statistics.linear_regression(*map(list, logarithms)).slope


def spread(values: Sequence[float]) -> float:
    """Return the largest over the smallest value: 1 for a constant (paper 004, figures 3 to 24).

    The papers call values nearly constant and give no measure; this is the one taken here. Raises
    :class:`DerivedError` for values that are none or not above 0.
    """
    if not values:
        raise DerivedError(NO_VALUES())
    require_positive(**{"each value": min(values)})
    return max(values) / min(values)
