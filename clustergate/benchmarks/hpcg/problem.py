"""What HPCG is asked to solve, its hpcg.dat, and what that costs: operations, bytes, memory. Pure.

Sources: ReportResults.cpp of HPCG 3.1 counts operations and memory, and its rules ask of a result
that is to be published that it took 1,800 s and at least a quarter of the memory.
"""

from __future__ import annotations

import math

from clustergate.benchmarks.descriptor import CannotRun
from clustergate.core.reasons import Words

OFFICIAL_S = 1800
"""What a result to be published is rated over, in seconds at least."""
OFFICIAL_SHARE = 0.25
"""Of the memory, what the blocks of such a result fill at least."""
BYTES_PER_ROW = 780
"""Matrices, grids and vectors together, rounded up: HPCG counts 715 of blocks of 32 and of 104."""
# Each of three coarser grids halves an edge.
EDGE_STEP = 8
SMALLEST_EDGE = 16
COARSE_GRIDS = 3
ITERATIONS = 50
"""HPCG rates sets of so many; it cannot measure less than one set."""
_LARGEST_SHARE = 0.8
# Of each iteration, far from the faces of the grid: operations() by its rows.
_OPERATIONS_PER_ROW = 374
# Of the nominal peak: from 1 to 5 % on the machines of HPCG's list. It only sizes the blocks.
_EXPECTED_SHARE = 0.02

HPCG_MEMORY = Words(
    "sizing.hpcg-memory",
    "blocks of edge {edge} for {ranks} ranks of a node take {needed} bytes, more than "
    "{share:whole_percent} of its memory",
    remedy="take fewer ranks, or a smaller edge",
)
HPCG_EDGE = Words(
    "sizing.hpcg-edge",
    "the edge of a block is {edge}",
    remedy="take a multiple of {step}, {least} at least",
)


def local_edge(
    asked: int,
    memory_bytes_per_node: int,
    ranks_per_node: int,
    memory_fraction: float,
    seconds: float | None,
    gflops_per_core: float,
) -> int:
    """Return the edge of each rank's block, in rows.

    The blocks fill at most a fraction of a node's memory, and a set of iterations takes at most so
    many ``seconds``, None for no such bound, where a core reaches of its nominal peak what is
    usual. An edge that is ``asked`` for (0: none) is taken as it is. Raises :class:`CannotRun` for
    one that HPCG does not take, and where the memory does not hold the blocks.
    """
    rows = memory_fraction * memory_bytes_per_node / BYTES_PER_ROW / ranks_per_node
    if seconds is not None:
        rate = 1e9 * _EXPECTED_SHARE * gflops_per_core
        rows = min(rows, seconds * rate / (ITERATIONS * _OPERATIONS_PER_ROW))
    edge = asked or max(SMALLEST_EDGE, EDGE_STEP * int(rows ** (1 / 3) / EDGE_STEP + 1e-9))
    if edge < SMALLEST_EDGE or edge % EDGE_STEP:
        raise CannotRun(HPCG_EDGE(edge=edge, step=EDGE_STEP, least=SMALLEST_EDGE))
    needed = block_bytes(edge) * ranks_per_node
    if needed > _LARGEST_SHARE * memory_bytes_per_node:
        facts = {"edge": edge, "ranks": ranks_per_node, "needed": needed}
        raise CannotRun(HPCG_MEMORY(**facts, share=_LARGEST_SHARE))
    return edge


def block_bytes(edge: int) -> int:
    """Return about how many bytes HPCG takes for a block."""
    return BYTES_PER_ROW * edge**3


def unofficial(seconds: float, memory_share: float) -> str:
    """Return why a rating over so many seconds is not one to be published, empty where it is.

    ``memory_share`` is what the blocks fill of the memory, from 0 to 1.
    """
    if seconds >= OFFICIAL_S and memory_share >= OFFICIAL_SHARE:
        return ""
    return (
        f"not an official rating of HPCG: {seconds:.0f} s and {memory_share:.0%} of the memory, "
        f"where {OFFICIAL_S} s and {OFFICIAL_SHARE:.0%} are the least"
    )


def hpcg_dat(edge: int, seconds: int) -> str:
    """Return hpcg.dat: the block of each rank, and the least time of what is rated."""
    return f"HPCG benchmark input file\nclustergate\n{edge} {edge} {edge}\n{seconds}\n"


def nonzeros(nx: int, ny: int, nz: int) -> int:
    """Return the nonzero terms of a 27-point stencil on a grid; at its faces terms are missing."""
    return math.prod(3 * edge - 2 for edge in (nx, ny, nz))


def operations(grid: tuple[int, int, int], sets: int, iterations: int) -> float:
    """Return the floating point operations of so many sets of iterations on the whole grid.

    As ReportResults.cpp counts: two for each row of three dot products and three updates of a
    vector, two for each term of a product with the matrix, eight for the two sweeps before and
    after a coarser grid and two for its residual, four for the sweep on the coarsest.
    """
    every = sets * iterations
    rows, levels = math.prod(grid), [nonzeros(*(e >> k for e in grid)) for k in range(4)]
    *finer, coarsest = levels
    vectors = 2 * (3.0 * every + sets) * 2.0 * rows
    product = (every + sets) * 2.0 * levels[0]
    multigrid = every * (sum(10.0 * terms for terms in finer) + 4.0 * coarsest)
    return vectors + product + multigrid


def bytes_per_operation(grid: tuple[int, int, int], cache_bytes: float) -> float:
    """Return how many bytes the memory moves at least for each operation, whatever the caches hold.

    An iteration of the reference code goes through the fine matrix six times: a product, two
    symmetric sweeps of two passes each, and a residual (CG.cpp, ComputeMG_ref.cpp). Each pass reads
    8 bytes of value and 4 of index for each term, but for what the caches kept of the pass before.
    Vectors and coarser grids are left out: a cache may hold them.
    """
    terms = nonzeros(*grid)
    read = ITERATIONS * 6 * max(0.0, 12.0 * terms - cache_bytes)
    return read / operations(grid, 1, ITERATIONS)
