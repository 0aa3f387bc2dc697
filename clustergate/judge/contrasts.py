"""How much slower a set of figures became than its nearest neighbours: one weighted sum each. Pure.

A figure's change is ``d = y - m``: the logarithm of what it is, positive worse, less the mean of
its baseline. A set changed by ``r = sum w (d - c)``, where ``c`` is the mean change of the figures
nearest to each that are not in the set (its control). All of it is linear, so that a row of
coefficients tells a set, for the run that is judged and for each run of the baseline.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustergate.judge.hypotheses import Hypothesis
from clustergate.judge.kinds import FigureId
from clustergate.stats.one_thread import scipy

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Contrasts:
    """The coefficients of some hypotheses over figures, a row each.

    ``own`` are those without a control, ``less_control`` those with it; ``controlled`` tells where
    every figure has one. ``squares`` is the sum of the squared weights of a hypothesis: 1 for one
    figure, 1/n for n that count alike.
    """

    own: scipy.sparse.csr_array
    less_control: scipy.sparse.csr_array
    controlled: NDArray[np.bool_]
    squares: Floats


def contrasts(
    figures: Sequence[FigureId], sets: Sequence[Hypothesis], precision: Floats
) -> Contrasts:
    """Return the coefficients of some sets of figures, which count by their ``precision``."""
    tiers = [_places_by(figures, key) for key in _TIERS]
    own, controls, controlled, squares = [], [], [], []
    for one in sets:
        inside = np.array(one.places)
        weights = precision[inside] / precision[inside].sum()
        own.append([(inside, weights)])
        squares.append(float(weights @ weights))
        control = list(_control(figures, tiers, inside, weights, precision))
        controlled.append(bool(control) and all(len(places) for places, _ in control))
        controls.append(control if controlled[-1] else [])
    plain = _matrix(own, len(figures))
    less_control = plain - _matrix(controls, len(figures))
    return Contrasts(plain, less_control, np.array(controlled), np.array(squares))


# Where a figure finds its control, the nearest first; all of them on the same nodes.
_TIERS: Sequence[Callable[[FigureId], Hashable]] = (
    # Of nodes that lie nobody knows where, other stacks had the same.
    lambda f: (f.case[1], f.case[0], f.name) if f.unplaced else None,
    lambda f: (f.case[1], f.case[0], f.benchmark, f.stack, f.kind),
    lambda f: (f.case[1], f.stack, f.kind),
    lambda f: (f.case[1], f.case[0], f.benchmark, f.kind),
    lambda f: (f.case[1], f.kind),
)
_Places = Mapping[Hashable, NDArray[np.int_]]


def _places_by(figures: Sequence[FigureId], key: Callable[[FigureId], Hashable]) -> _Places:
    by_key: dict[Hashable, list[int]] = {}
    for place, figure in enumerate(figures):
        by_key.setdefault(key(figure), []).append(place)
    return {key: np.array(places) for key, places in by_key.items()}


def _control(
    figures: Sequence[FigureId],
    tiers: Sequence[_Places],
    inside: NDArray[np.int_],
    weights: Floats,
    precision: Floats,
) -> Iterator[tuple[NDArray[np.int_], Floats]]:
    """Yield places and coefficients of the control of each figure of a set; none where none is."""
    is_inside = np.zeros(len(figures), dtype=bool)
    is_inside[inside] = True
    shares: dict[tuple[Hashable, ...], float] = {}
    for place, weight in zip(inside, weights, strict=True):
        keys = tuple(key(figures[place]) for key in _TIERS)
        shares[keys] = shares.get(keys, 0.0) + float(weight)
    for keys, share in shares.items():
        outside: NDArray[np.int_] = np.array([], dtype=int)
        for key, tier in zip(keys, tiers, strict=True):
            if key is None:
                continue
            outside = tier[key][~is_inside[tier[key]]]
            if len(outside):
                break
        counted = precision[outside]
        yield outside, share * counted / counted.sum() if len(outside) else counted


def _matrix(
    rows: Sequence[Sequence[tuple[NDArray[np.int_], Floats]]], width: int
) -> scipy.sparse.csr_array:
    """Return rows of coefficients, each given in parts by their places, as one sparse matrix."""
    parts = [(row, *part) for row, some in enumerate(rows) for part in some]
    if not parts:
        return scipy.sparse.csr_array((len(rows), width))
    at_rows = np.concatenate([np.full(len(places), row) for row, places, _ in parts])
    columns = np.concatenate([places for _, places, _ in parts])
    values = np.concatenate([values for *_, values in parts])
    return scipy.sparse.csr_array((values, (at_rows, columns)), shape=(len(rows), width))
