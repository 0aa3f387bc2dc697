"""Parse standard input and say on standard error what it took: rows, processor time, peak memory.

``library`` reads it as Python does, ``command`` as ``clustergate parse -``, which prints them.
"""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path

from clustergate.benchmarks.formats import parse
from clustergate.cli import main
from clustergate.cli.parse import STANDARD_INPUT, read_lines


def peak_bytes() -> int:
    """Return the most memory that this process ever had; the kernel's count starts at its exec.

    getrusage(2) will not do: it counts what the parent had when it forked.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii")
    match = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    assert match is not None
    return int(match.group(1)) * 1024


def read_rows() -> int:
    """Return the number of rows in standard input."""
    return sum(1 for _ in parse(read_lines(STANDARD_INPUT, "text"), source="text"))


if __name__ == "__main__":
    begun = time.process_time()
    if sys.argv[1] == "command":
        rows = None
        if main(["parse", STANDARD_INPUT]):
            sys.exit("the text was refused")
    else:
        rows = read_rows()
    told = {"rows": rows, "seconds": time.process_time() - begun, "peak_bytes": peak_bytes()}
    print(json.dumps(told), file=sys.stderr)
