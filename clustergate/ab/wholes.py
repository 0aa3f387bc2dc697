"""Benchmarks as a whole beside their single sizes, in one family of comparisons. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustergate.ab.gathering import Job
from clustergate.ab.results import layout_of
from clustergate.model import Better, Sample
from clustergate.statistics.comparison import FAMILY_ERROR, MARGIN, Comparison
from clustergate.statistics.rounds import Rounds, compare_rounds


@dataclass(frozen=True)
class Cost:
    """How much longer B takes than A, of a single figure or of a benchmark as a ``whole``.

    The comparison's ratio is B/A of the time, or of what stands for it: above 1 B is slower.
    """

    name: str
    comparison: Comparison
    whole: bool


def costs(
    jobs: Sequence[Job], *, margin: float = MARGIN, family_error: float = FAMILY_ERROR
) -> list[Cost]:
    """Return the comparisons of all figures that can be worse, and of each benchmark as a whole.

    The whole of a benchmark is the geometric mean of its figures in a launch, of those that every
    launch of both has: a mean over others would change with what is missing. A whole of a single
    figure is that figure.
    """
    tables, names = [], []
    for job in jobs:
        table, told = _table(job)
        tables.append(table)
        names.append(told)
    found = compare_rounds(tables, margin=margin, family_error=family_error)
    return [
        Cost(name, comparison, whole)
        for of_job, comparisons in zip(names, found, strict=True)
        for (name, whole), comparison in zip(of_job, comparisons, strict=True)
    ]


def _table(job: Job) -> tuple[Rounds, list[tuple[str, bool]]]:
    """Return the times of a job's figures and wholes, and their names, with what is a whole."""
    columns: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = []
    names: list[tuple[str, bool]] = []
    groups: dict[str, list[int]] = {}
    for k, figure in enumerate(job.figures):
        if figure.better is Better.NEITHER:
            continue
        benchmark = f"{figure.benchmark} of {layout_of(job)}"
        groups.setdefault(f"{benchmark}, {figure.metric}", []).append(len(columns))
        columns.append((_time(job.a[:, k], figure), _time(job.b[:, k], figure)))
        size = figure.conditions.get("bytes")
        names.append((benchmark + ("" if size is None else f", {size} bytes"), False))
    for name, members in groups.items():
        whole = [k for k in members if all((side > 0.0).all() for side in columns[k])]
        told = name.rpartition(", ")[0]
        if len(members) > 1:
            columns.append((_mean(columns, whole, 0), _mean(columns, whole, 1)))
            names.append((f"{told} as a whole", True))
        else:
            names[members[0]] = (told, True)
    rounds = len(job.a)
    a, b = (np.array([c[side] for c in columns]).reshape(-1, rounds).T for side in (0, 1))
    return Rounds(a, b, [Better.LOWER] * len(columns)), names


def _time(values: NDArray[np.float64], figure: Sample) -> NDArray[np.float64]:
    if figure.better is Better.LOWER:
        return values
    # A rate of nothing is no time at all: it has no ratio, and is told so.
    with np.errstate(divide="ignore"):
        return np.where(values > 0.0, 1.0 / values, np.where(np.isnan(values), np.nan, 0.0))


def _mean(
    columns: Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]],
    members: Sequence[int],
    side: int,
) -> NDArray[np.float64]:
    if not members:
        return np.full(len(columns[0][side]), np.nan)
    return np.asarray(np.exp(np.mean([np.log(columns[k][side]) for k in members], axis=0)))
