"""A heat map of pairs as inline SVG: who is slow with whom. Pure.

A row of cells of one class is one rectangle, and of many nodes a cell stands for a block of pairs
and shows the worst of them: the size of the drawing is bounded, whatever the number of nodes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import ArrayLike, NDArray

from clustergate.report import plots
from clustergate.wording.notation import printable
from clustergate.wording.texts import shortened

CELLS_AT_MOST = 128
"""Cells of a side: a bad link among 10,000 nodes colours one of 128 x 128."""

# From which class on a factor is called what; the style sheet has their colours, ``.level0`` and
# on. What was not measured is left out.
CLASSES = ("as expected", "slow", "1.5 x or more", "2 x or more", "4 x or more", "failed")
_STEPS = (1.5, 2.0, 4.0)
_SIDE, _LEFT, _TOP, _LABEL = 420.0, 90.0, 16.0, 14
_LABELS_AT_MOST = 32
_NOT_MEASURED = -1

Grid = NDArray[np.int64]


def classes(
    nodes: int, pairs: ArrayLike, beyond: ArrayLike, threshold: float, at_most: int = CELLS_AT_MOST
) -> Grid:
    """Return the class of each cell, -1 where nothing was measured, as a square.

    ``beyond`` is for each row of ``pairs`` the logarithm of how many times it is worse than
    expected, infinite where it failed; what is above ``threshold`` is slow. Of several values in a
    cell the worst counts, of repeated measurements of one pair the median. Raises ValueError for
    fewer than one cell.
    """
    if at_most < 1:
        raise ValueError("a heat map needs a cell")
    ends = np.sort(np.asarray(pairs, dtype=np.int64).reshape(-1, 2), axis=1)
    values = np.asarray(beyond, dtype=np.float64)
    side = min(nodes, at_most)
    grid: Grid = np.full((side, side), _NOT_MEASURED, dtype=np.int64)
    if not len(values):
        return grid
    keys, of_pair = np.unique(ends @ np.array([nodes, 1]), return_inverse=True)
    order = np.lexsort((values, of_pair))
    starts = np.searchsorted(of_pair[order], np.arange(len(keys)))
    middle = starts + np.bincount(of_pair) // 2
    typical = values[order][np.minimum(middle, len(values) - 1)]
    level = np.digitize(typical, [math.log(step) for step in _STEPS]) + 1
    level[typical <= threshold] = 0
    level[np.isinf(typical)] = len(CLASSES) - 1
    rows, columns = (keys // nodes * side // nodes), (keys % nodes * side // nodes)
    np.maximum.at(grid, (rows, columns), level)
    np.maximum.at(grid, (columns, rows), level)
    return grid


def heat_map(grid: Grid, names: Sequence[str], *, description: str) -> Markup:
    """Draw the classes of cells; ``names`` are those of the nodes, in the order of the rows.

    ``description`` is what a screen reader says.
    """
    side = len(grid)
    cell = _SIDE / max(side, 1)
    labels = [
        f'<text x="{_LEFT - 4:g}" y="{_short(_TOP + (row + 0.5) * cell)}" text-anchor="end" '
        'dominant-baseline="central" font-size="9" fill="currentColor">'
        f"{escape(printable(shortened(names[row * len(names) // side], _LABEL)))}</text>"
        for row in range(0, side, max(1, math.ceil(side / _LABELS_AT_MOST)))
    ]
    cells = []
    for row, members in enumerate(grid.tolist()):
        column = 0
        for level, run in groupby(members):
            width = len(list(run))
            if level != _NOT_MEASURED:
                cells.append(
                    f'<rect x="{_short(_LEFT + column * cell)}" y="{_short(_TOP + row * cell)}" '
                    f'width="{_short(width * cell)}" height="{_short(cell)}" '
                    f'class="level{level}"/>'
                )
            column += width
    return plots.svg(_LEFT + _SIDE + 2, _TOP + _SIDE + 2, [*labels, *cells], description)


def _short(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
