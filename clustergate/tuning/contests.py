"""Configurations measured in turn, and what can be said of them. Pure functions."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clustergate.model import Estimate
from clustergate.one_thread import scipy
from clustergate.statistics import MAD
from clustergate.tuning.space import Configuration

CONFIDENCE = 0.95

CLEARLY = 2.5
"""Standard errors beyond which a candidate is dropped before the time of its choice is up."""

TIE = 0.003
"""A gain below this, as a fraction, is not worth a departure from HPL's defaults."""

OUTLIER = 2.5
"""Spreads from the median beyond which a value does not count."""

SMALLEST_SPREAD = 0.0005
"""HPL prints four digits: two equal values do not mean that there is no spread."""

FIRST_SPREAD = 0.02
"""Of a difference, as a fraction, on a machine of which nothing is known."""

EARLIER_WEIGHT = 4
"""How many of a contest's own deviations the spread of earlier contests counts for."""

MEDIAN_EFFICIENCY = 0.37
"""How much of what normal deviations tell of their spread their median tells."""

DOUBT = 0.01
"""Standard error, as a fraction, by which what a small problem tells may be wrong for a larger."""


def typical(values: Sequence[float], spread: float) -> float:
    """Return the mean of the values that are no outliers."""
    middle = statistics.median(values)
    kept = [value for value in values if abs(value - middle) <= OUTLIER * spread]
    return statistics.fmean(kept or [middle])


@dataclass(frozen=True)
class RatePrediction:
    """Predicts from a rate at one order the rate at a larger one.

    The time for an operation is that of DGEMM and, besides, something that falls as 1/N: panels,
    swaps and messages grow with N^2, operations with N^3.
    """

    n: int
    dgemm_gflops: Mapping[tuple[str, int], float]

    def rate(self, configuration: Configuration, gflops: float, n: int) -> float:
        """Return the rate predicted for order ``self.n`` from the rate at order ``n``."""
        limit = self.dgemm_gflops.get((configuration.kernel, configuration.nb), 0.0)
        if n >= self.n or limit <= gflops:
            return gflops
        return 1 / (1 / limit + (1 / gflops - 1 / limit) * n / self.n)


class Contest:
    """Configurations measured in turn at one order: how they compare, round by round.

    With a ``prediction`` their rates are those that it predicts, and whatever is told of them has
    the ``doubt`` of a forecast (a standard error).
    """

    def __init__(
        self, n: int, earlier_spread: float = FIRST_SPREAD, prediction: RatePrediction | None = None
    ) -> None:
        self.n = n
        self.earlier_spread = earlier_spread
        self.prediction = prediction
        self.predicted_n = max(n, prediction.n) if prediction is not None else n
        self.doubt = DOUBT if self.predicted_n > n else 0.0
        self._rounds: list[dict[Configuration, float]] = []
        self._spread: float | None = None

    @property
    def configurations(self) -> list[Configuration]:
        """All that were measured, in the order of their first measurement."""
        return list(dict.fromkeys(c for r in self._rounds for c in r))

    @property
    def count(self) -> int:
        return len(self._rounds)

    def add(self, gflops: Mapping[Configuration, Sequence[float]]) -> None:
        """Add rounds; each configuration has a value in every one of them."""
        rounds = max((len(values) for values in gflops.values()), default=0)
        self._spread = None
        self._rounds += [
            {c: math.log(self._rate(c, values[i])) for c, values in gflops.items()}
            for i in range(rounds)
        ]

    def _rate(self, configuration: Configuration, gflops: float) -> float:
        if self.prediction is None:
            return gflops
        return self.prediction.rate(configuration, gflops, self.n)

    def have_met(self, one: Configuration, other: Configuration) -> bool:
        """Tell whether two configurations were measured in the same round."""
        return bool(self._differences(one, other))

    def fastest(self, running: Sequence[Configuration]) -> Configuration:
        """Return the fastest of some configurations that share all their rounds."""
        return max(running, key=lambda c: self._gain(c, running[0]))

    def undecided(self, running: Sequence[Configuration]) -> list[Configuration]:
        """Return those that may still be the best: one alone when it is decided.

        ``running`` share all rounds. It is decided, too, when what is left ties with the best and
        further rounds would hardly tell more.
        """
        leader = self.fastest(running)
        left = [c for c in running if c == leader or not self._is_worse(c, leader)]
        enough = max(TIE / 2, self.doubt)
        is_exact = all(self._own_error(c, leader) < enough for c in left if c != leader)
        return [leader] if is_exact else left

    def ranked(self) -> list[Configuration]:
        """Return all, the best first, then by how long they were in the race and by their rates."""
        rounds = {c: len(self._rounds_of(c)) for c in self.configurations}
        leader = self.fastest([c for c, n in rounds.items() if n == max(rounds.values())])
        rest = [c for c in self.configurations if c != leader]
        return [leader, *sorted(rest, key=lambda c: -self._gain(c, leader))]

    def rate(self, configuration: Configuration) -> float:
        """Return the rate of a configuration, in Gflop/s."""
        rates = [r[configuration] for r in self._rounds_of(configuration)]
        return math.exp(typical(rates, self.spread))

    def gain(self, one: Configuration, other: Configuration) -> Estimate:
        """Return the gain in rate of one configuration over another, as a fraction.

        The interval is Student's, of the spread that all comparisons share.
        """
        value = self._gain(one, other)
        freedom = self._own_freedom + EARLIER_WEIGHT
        student = float(scipy.special.stdtrit(freedom, (1 + CONFIDENCE) / 2))
        half = student * self.standard_error(one, other)
        rounds = len(self._differences(one, other))
        return Estimate(
            math.expm1(value),
            math.expm1(value - half),
            math.expm1(value + half),
            CONFIDENCE,
            rounds,
        )

    def standard_error(self, one: Configuration, other: Configuration) -> float:
        """Return the standard error of the gain."""
        return math.hypot(self._own_error(one, other), self.doubt)

    def _own_error(self, one: Configuration, other: Configuration) -> float:
        return self.spread / math.sqrt(len(self._differences(one, other)))

    @property
    def spread(self) -> float:
        """The standard deviation of the difference between two configurations in one round.

        It is that of all pairs of configurations, from the median of their deviations, which
        outliers do not move, together with what earlier contests showed.
        """
        if self._spread is None:
            own = MAD * statistics.median(self._deviations() or [0.0])
            squares = self._own_freedom * own**2 + EARLIER_WEIGHT * self.earlier_spread**2
            pooled = math.sqrt(squares / (self._own_freedom + EARLIER_WEIGHT))
            self._spread = max(SMALLEST_SPREAD, pooled)
        return self._spread

    @property
    def _own_freedom(self) -> float:
        """The degrees of freedom that the median of the deviations is worth."""
        measured = sum(len(r) - 1 for r in self._rounds)
        return MEDIAN_EFFICIENCY * max(0, measured - (len(self.configurations) - 1))

    def _deviations(self) -> list[float]:
        deviations = []
        for one, other in itertools.combinations(self.configurations, 2):
            differences = self._differences(one, other)
            if len(differences) > 1:
                middle = statistics.median(differences)
                # Of few values the median lies nearer to them than their true middle.
                scale = math.sqrt(len(differences) / (len(differences) - 1))
                deviations += [abs(d - middle) * scale for d in differences]
        return deviations

    def _gain(self, one: Configuration, other: Configuration) -> float:
        return typical(self._differences(one, other), self.spread)

    def _is_worse(self, one: Configuration, leader: Configuration) -> bool:
        """Tell whether one is clearly worse, and was so in three rounds of four.

        Else two disturbed rounds of the first three would be enough to drop the best.
        """
        differences = sorted(self._differences(one, leader))
        good = differences[math.ceil(0.75 * len(differences)) - 1]
        highest = self._gain(one, leader) + CLEARLY * self.standard_error(one, leader)
        return max(highest, good) < 0

    def _rounds_of(self, configuration: Configuration) -> list[dict[Configuration, float]]:
        return [r for r in self._rounds if configuration in r]

    def _differences(self, one: Configuration, other: Configuration) -> list[float]:
        return [r[one] - r[other] for r in self._rounds if one in r and other in r]
