"""hpccinf.txt: an HPL.dat with more lines. Pure."""

from __future__ import annotations

from clustergate.benchmarks.hpl.sizing import HplInput, input_line, joined, rendered_lines

MAX_CHARACTERS = 80
"""HPCC reads the file a second time for PTRANS, in pieces of 81 characters. A longer line would
count as two and move the PTRANS lines away from where HPCC looks for them."""


def render_hpccinf(hpl_input: HplInput) -> str:
    """Return the text of an hpccinf.txt: an HPL.dat with lines 33 to 36 for PTRANS.

    HPCC runs PTRANS with N/2 and NB of every HPL run; nothing is added to these. Raises SizingError
    for a line that HPCC would not read whole.
    """
    lines = [
        *rendered_lines(hpl_input),
        "##### This line (no. 32) is ignored (it serves as a separator). ######",
        input_line(0, "Number of additional problem sizes for PTRANS"),
        input_line("", "values of N"),
        input_line(0, "number of additional blocking sizes for PTRANS"),
        input_line("", "values of NB"),
    ]
    return joined(lines, MAX_CHARACTERS, "HPCC")
