"""The runs of a baseline as the judge takes them: what a figure was in each, on which day. Pure."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence

import numpy as np

from clustergate.benchmarks.registry import descriptor_of
from clustergate.core.model import LATENCY, MESSAGES, BaselineRuns, Better
from clustergate.judge.changes import Past
from clustergate.judge.distances import distances, shifts
from clustergate.judge.kinds import FigureId, kind_of, kind_of_messages
from clustergate.judge.scatter import components

SMALLEST_BASELINE = 5
"""Fewer runs are no baseline."""
# A best launch stands for a level when another comes so near to it.
_CONFIRMED = math.log(1.10)


def worse_by(values: Sequence[float], than: float, better: Better) -> list[float]:
    """Return by how much values are worse than another, as logarithms of ratios.

    Raises ValueError where one of them is not above zero.
    """
    return [better.worse_by(value, than) for value in values]


def best_level(values: Sequence[float], better: Better) -> float:
    """Return the best of some launches to which another comes near, else the best.

    The values are above zero.
    """
    ordered = sorted(values, reverse=better is Better.HIGHER)
    for one, following in itertools.pairwise(ordered):
        if abs(math.log(following / one)) <= _CONFIRMED:
            return one
    return ordered[0]


def usual(known: BaselineRuns, than: float, better: Better) -> float:
    """Return by how much the runs were worse than a value in the mean, as a logarithm."""
    return max(statistics.fmean(worse_by(known.values, than, better)), 0.0)


def luck(known: BaselineRuns, better: Better) -> float:
    """Return by how much the best run is better than the best of a smallest baseline in the mean.

    It is a logarithm, of all the baselines that so many of the runs could make, those of each
    distance of the nodes less what it adds.
    """
    apart = shifts(known, better)
    costs = worse_by(known.values, 1.0, better)
    ordered = sorted(x - apart[d] for x, d in zip(costs, distances(known), strict=True))
    of, drawn = len(ordered), min(SMALLEST_BASELINE, len(ordered))
    # The best of those drawn is at each place as often as the others come from behind it.
    often = [math.comb(of - 1 - place, drawn - 1) for place in range(of)]
    mean = sum(x * n for x, n in zip(ordered, often, strict=True)) / math.comb(of, drawn)
    return mean - ordered[0]


def spread(known: BaselineRuns) -> float:
    """Return the standard deviation of one more run, as a logarithm (:func:`components`)."""
    days = np.unique(known.days, return_inverse=True)[1]
    scatter = components(np.log(known.values)[:, None], days)
    return float(np.sqrt(scatter.between + scatter.within)[0])


def median(known: BaselineRuns) -> float:
    """Return the median of the days, each of which is the median of its runs."""
    by_day: dict[str, list[float]] = {}
    for day, value in zip(known.days, known.values, strict=True):
        by_day.setdefault(day, []).append(value)
    return statistics.median(map(statistics.median, by_day.values()))


def with_common_runs(baselines: Sequence[BaselineRuns]) -> list[list[int]]:
    """Return the places of baselines that were made together, as far as runs connect them."""
    # Thousands of figures have the same runs.
    alike: dict[tuple[str, ...], list[int]] = {}
    for place, one in enumerate(baselines):
        alike.setdefault(one.runs, []).append(place)
    made: list[tuple[set[str], list[int]]] = []
    for runs, places in alike.items():
        connected = [each for each in made if not each[0].isdisjoint(runs)]
        made = [each for each in made if each[0].isdisjoint(runs)]
        whole = set(runs).union(*(of for of, _ in connected))
        made.append((whole, sorted([*(x for _, of in connected for x in of), *places])))
    return [places for _, places in made]


def days(known: BaselineRuns) -> int:
    """Return on how many days the runs began."""
    return len(set(known.days))


def kind_in(check: str, benchmark: str, metric: str, size_bytes: object) -> str:
    """Return of which kind a figure of a check is."""
    kinds = descriptor_of(check).kinds
    kind = kinds.get(f"{benchmark}.{metric}") or kinds.get(benchmark)
    if kind == MESSAGES:
        return kind_of_messages(size_bytes)
    return kind or kind_of(metric, size_bytes)


def figure_id(
    case: Sequence[str], name: str, benchmark: str, metric: str, size_bytes: object
) -> FigureId:
    """Return what the judge knows a figure by; ``case`` are its keys in a reference file."""
    kind = kind_in(case[0], benchmark, metric, size_bytes)
    size = size_bytes if isinstance(size_bytes, int) else -1
    return FigureId(tuple(case), name, benchmark, metric, kind, size)


def past_of(
    known: Sequence[tuple[FigureId, BaselineRuns, Better]], *, exclusive: bool = False
) -> Past:
    """Return what the runs of a baseline said of some figures together, run by run."""
    days = {run: day for _, of, _ in known for run, day in zip(of.runs, of.days, strict=True)}
    ordered = sorted(days, key=lambda run: (days[run], run))
    rows = {run: row for row, run in enumerate(ordered)}
    values = np.full((len(ordered), len(known)), np.nan)
    means = np.ones(len(known))
    for column, (figure, of, better) in enumerate(known):
        costs = np.array(worse_by(of.values, 1.0, better))
        if figure.kind == LATENCY and len({*distances(of)}) > 1:
            # Each distance of the nodes has a mean of its own.
            apart = shifts(of, better)
            costs -= [apart[where] for where in distances(of)]
            means[column] = len(apart)
        values[[rows[run] for run in of.runs], column] = costs
    numbers = {day: number for number, day in enumerate(sorted(set(days.values())))}
    return Past(
        [figure for figure, *_ in known],
        np.array([numbers[days[run]] for run in ordered], dtype=int),
        values,
        np.array([printed_step(x.case[0], of.values) / min(of.values) for x, of, _ in known]),
        exclusive,
        means=means,
    )


def printed_step(check: str, values: Sequence[float]) -> float:
    """Return the distance of neighbouring values that the benchmark prints, 0 for a fine one."""
    step = descriptor_of(check).step
    halves = [2 * value / step for value in values] if step else [0.5]
    return step if all(abs(x - round(x)) < 1e-6 * max(x, 1.0) for x in halves) and step else 0.0
