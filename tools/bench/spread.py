"""Figures and shares with their spread: estimates, aims, tables and JSON. Pure functions."""

from __future__ import annotations

import dataclasses
import itertools
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from rich import box
from rich.table import Table
from scipy.stats import binom

from clustergate.core.model import Estimate

CONFIDENCE = 0.95
_DRAWN = 4000


@dataclass(frozen=True)
class Aim:
    """What a figure should stay below or reach; one of the two is None."""

    at_most: float | None = None
    at_least: float | None = None

    def verdict(self, estimate: Estimate) -> str:
        """Return ``met`` or ``missed`` where the whole interval says so, else ``inconclusive``."""
        low = estimate.value if estimate.low is None else estimate.low
        high = estimate.value if estimate.high is None else estimate.high
        if self.at_most is not None:
            low, high, bound = -high, -low, -self.at_most
        elif self.at_least is not None:
            bound = self.at_least
        else:
            raise ValueError("an aim without a bound")
        if low >= bound:
            return "met"
        return "missed" if high < bound else "inconclusive"

    def __str__(self) -> str:
        return f"≤ {self.at_most:g}" if self.at_most is not None else f"≥ {self.at_least:g}"


@dataclass(frozen=True)
class Figure:
    """One quantity of one subject, such as ``harness`` of ``HPL with mpich``.

    ``values`` are the measurements in the order they were made, ``what`` says in a sentence what
    was measured.
    """

    section: str
    subject: str
    quantity: str
    unit: str
    values: Sequence[float]
    what: str
    aim: Aim | None = None

    @property
    def estimate(self) -> Estimate:
        """The median of the measurements, with its interval."""
        return median_interval(self.values)

    @property
    def verdict(self) -> str:
        """Whether the aim was met; empty without an aim."""
        return self.aim.verdict(self.estimate) if self.aim else ""


def median_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Estimate:
    """Return the median, with the narrowest interval between two measurements that is sure enough.

    The k-th smallest and the k-th largest of n independent measurements hold the median between
    them with the probability 1 - 2 P(B < k), B binomial of n and 1/2, whatever the distribution
    (David and Nagaraja, Order Statistics, 7.1). Below six measurements even the smallest and the
    largest are less sure than 95 %: the estimate says how sure they are. A single measurement has
    no interval. Raises ValueError without any.
    """
    ordered = sorted(values)
    count = len(ordered)
    if count == 0:
        raise ValueError("a median of no measurements")
    middle = statistics.median(ordered)
    if count == 1:
        return Estimate(middle, None, None, 0.0, 1)

    def sureness(k: int) -> float:
        return 1.0 - 2.0 * float(binom.cdf(k - 1, count, 0.5))

    inner = [k for k in range(2, count // 2 + 1) if sureness(k) >= confidence]
    k = max(inner, default=1)
    return Estimate(middle, ordered[k - 1], ordered[-k], sureness(k), count)


@dataclass(frozen=True)
class Share:
    """How often something happened in each of several recordings: pairs of so many, of so many."""

    counts: Sequence[tuple[int, int]]

    @property
    def share(self) -> float:
        """The share of all, 0 where there was nothing to count."""
        happened, of = map(sum, zip(*self.counts, strict=True)) if self.counts else (0, 0)
        return happened / of if of else 0.0

    @property
    def bounds(self) -> tuple[float, float]:
        """The bounds of the share in recordings to come, each of 95 %.

        What lies within a recording is alike, so recordings are drawn, with replacement (the
        cluster bootstrap: Davison and Hinkley, Bootstrap Methods and their Application, 3.8). Where
        it happened in none of them, or always, drawing tells nothing, and each of them counts as
        one trial (Clopper and Pearson, 1934).
        """
        counted = np.array([(a, n) for a, n in self.counts if n], dtype=float).reshape(-1, 2)
        if not len(counted):
            return 0.0, 1.0
        happened, of = counted.sum(axis=0)
        rare = 1.0 - (1.0 - CONFIDENCE) ** (1.0 / len(counted))
        if happened == 0:
            return 0.0, rare
        if happened == of:
            return 1.0 - rare, 1.0
        drawn = np.random.default_rng(1).integers(0, len(counted), (_DRAWN, len(counted)))
        sums = counted[drawn].sum(axis=1)
        low, high = np.quantile(sums[:, 0] / sums[:, 1], [1.0 - CONFIDENCE, CONFIDENCE])
        return float(low), float(high)

    def __str__(self) -> str:
        """In percent, with the bounds."""
        low, high = self.bounds
        if self.share == 0.0:
            return f"0 (<{100 * high:.0f})"
        return f"{100 * self.share:.0f} ({100 * low:.0f}-{100 * high:.0f})"


def table(title: str, figures: Iterable[Figure]) -> Table:
    """Return the figures of one section: a line per subject, a column per quantity.

    Below it stands what a column means, where that is the same for all subjects.
    """
    figures = list(figures)
    columns: dict[tuple[str, str], list[Figure]] = {}
    for figure in figures:
        columns.setdefault((figure.quantity, figure.unit), []).append(figure)
    drawn = Table(
        title=title, title_justify="left", caption_justify="left", box=box.SIMPLE, show_edge=False
    )
    drawn.add_column("", overflow="fold")
    meanings = []
    for (quantity, unit), held in columns.items():
        aims = [f"\naim {figure.aim}" for figure in held if figure.aim]
        drawn.add_column(
            "\n".join(filter(None, [quantity, unit])) + "".join(aims[:1]),
            justify="right",
            overflow="fold",
        )
        if len({figure.what for figure in held}) == 1 < len(held):
            named = ", ".join(filter(None, [quantity, unit]))
            meanings.append(f"{named}: {held[0].what}")
    drawn.caption = "\n".join(meanings)
    for subject, group in itertools.groupby(figures, key=lambda figure: figure.subject):
        cells = {(figure.quantity, figure.unit): cell(figure) for figure in group}
        drawn.add_row(subject, *[cells.get(key, "") for key in columns])
    return drawn


def cell(figure: Figure) -> str:
    """Return the median, the interval below it, and what is said of the aim unless it was met."""
    estimate = figure.estimate
    size = abs(estimate.value)
    decimals = 2 if size == 0.0 else min(max(2 - math.ceil(math.log10(size)), 0), 3)
    lines = [f"{estimate.value:.{decimals}f}"]
    if estimate.low is not None and estimate.high is not None:
        lines.append(f"{estimate.low:.{decimals}f}…{estimate.high:.{decimals}f}")
    if figure.verdict not in ("", "met"):
        lines.append(figure.verdict)
    return "\n".join(lines)


def as_record(figure: Figure) -> Mapping[str, object]:
    """Return a figure as JSON holds it: the estimate, the measurements and the aim."""
    return {
        "section": figure.section,
        "subject": figure.subject,
        "quantity": figure.quantity,
        "unit": figure.unit,
        "what": figure.what,
        **dataclasses.asdict(figure.estimate),
        "values": list(figure.values),
        "aim": str(figure.aim) if figure.aim else "",
        "verdict": figure.verdict,
    }
