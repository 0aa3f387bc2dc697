"""hpccinf.txt: an HPL.dat with more lines. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from clustergate.benchmarks.hpl.sizing import (
    HPL_MAX_VALUES,
    HplInput,
    SizingError,
    input_line,
    joined,
    rendered_lines,
    require_positive,
    spaced,
)

MAX_CHARACTERS = 80
"""HPCC reads the file a second time for PTRANS, in pieces of 81 characters. A longer line would
count as two and move the PTRANS lines away from where HPCC looks for them."""


def render_hpccinf(
    hpl_input: HplInput,
    ptrans_sizes: Sequence[int] = (),
    ptrans_blocks: Sequence[int] = (),
) -> str:
    """Return the text of an hpccinf.txt: an HPL.dat with lines 33 to 36 for PTRANS.

    HPCC runs PTRANS with N/2 and NB of every HPL run anyway; the two sequences are additions.
    Raises SizingError for additions that HPCC would drop without a word: more than 20, or smaller
    than 0.4743 of the largest N (0.9486 * N / 2 in its io.c).
    """
    for what, values in (("sizes", ptrans_sizes), ("blocks", ptrans_blocks)):
        if len(values) > HPL_MAX_VALUES:
            facts = {"least": 0, "most": HPL_MAX_VALUES, "count": len(values)}
            name = f"additional PTRANS {what}"
            raise SizingError("input.too-many", program="HPCC", name=name, **facts)
        for value in values:
            require_positive(f"each of the additional PTRANS {what}", value)
    smallest = 0.9486 * max(hpl_input.n_values) * 0.5
    dropped = [size for size in ptrans_sizes if size < smallest]
    if dropped:
        facts = {"value": dropped[0], "n": max(hpl_input.n_values), "least": math.ceil(smallest)}
        raise SizingError("input.unread", program="HPCC", what="PTRANS size", **facts)
    lines = [
        *rendered_lines(hpl_input),
        "##### This line (no. 32) is ignored (it serves as a separator). ######",
        input_line(len(ptrans_sizes), "Number of additional problem sizes for PTRANS"),
        input_line(spaced(ptrans_sizes), "values of N"),
        input_line(len(ptrans_blocks), "number of additional blocking sizes for PTRANS"),
        input_line(spaced(ptrans_blocks), "values of NB"),
    ]
    return joined(lines, MAX_CHARACTERS, "HPCC")
