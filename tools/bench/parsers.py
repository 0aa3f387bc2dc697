"""How fast large benchmark outputs are read, and that memory does not grow with them."""

from __future__ import annotations

import functools
import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from clustergate.core.paths import checkout
from tools.bench.imb_text import ImbText, imb_text
from tools.bench.spread import Aim, Figure
from tools.bench.workspace import BenchError, Workspace

SECTION = "parser"
# Times the memory for the smallest text: a hundred times the text may move it by page and chance.
AIM_GROWTH = Aim(at_most=1.05)
MEGABYTE = 1_000_000
_READERS = {"library": "the library", "command": "clustergate parse"}

IMB = Path("tests", "data", "imb", "impi-2021.11-mpi1-default.txt")
# 20 MB in a few seconds: more than any machine prints in a night.
AIM_COMMAND = Aim(at_least=2.0)


@dataclass(frozen=True)
class Large:
    """A large text to read: ``how`` it is read, megabytes, and how often."""

    how: str
    megabytes: int
    times: int


LARGE = (
    Large("library", 10, 3),
    Large("library", 100, 1),
    Large("command", 2, 5),
    Large("command", 20, 1),
)
LARGE_WHEN_QUICK = (
    Large("library", 2, 3),
    Large("library", 20, 1),
    Large("command", 1, 3),
    Large("command", 10, 1),
)


def measure(
    room: Workspace, *, large: Sequence[Large], say: Callable[[str], None]
) -> Iterator[Figure]:
    """Yield speed and memory on large IMB texts.

    Memory is flat when it is the same as with the smallest text that is read in the same way.
    """
    captured = (checkout() / IMB).read_text(encoding="ascii")
    smallest: dict[str, float] = {}
    for item in large:
        say(f"parser: {item.megabytes} MB of IMB text, {item.how}, {item.times} times")
        text = imb_text(captured, item.megabytes * MEGABYTE)
        runs = [parse_in_child(room, item.how, text) for _ in range(item.times)]
        speeds = [text.size_bytes / MEGABYTE / seconds for seconds, _ in runs]
        peaks = [peak / MEGABYTE for _, peak in runs]
        figure = functools.partial(
            Figure,
            SECTION,
            f"IMB {item.megabytes} MB, {_READERS[item.how]}",
            what=f"a process of its own reads {text.rows} rows from a pipe",
        )
        aim = AIM_COMMAND if item.how == "command" else None
        yield figure("speed", "MB/s", speeds, aim=aim)
        yield figure("peak memory", "MB", peaks)
        if item.how in smallest:
            growth = [peak / smallest[item.how] for peak in peaks]
            yield figure("growth", "times", growth, aim=AIM_GROWTH)
        else:
            smallest[item.how] = statistics.median(peaks)


def parse_in_child(room: Workspace, how: str, text: ImbText) -> tuple[float, float]:
    """Return the seconds and the peak bytes of a process that parses the text from a pipe.

    Raises :class:`BenchError` when it refuses the text or finds another number of rows.
    """
    child = [sys.executable, "-m", "tools.bench.parse_child", how]
    with (
        room.last_output.open("wb") as errors,
        subprocess.Popen(
            child,
            env=room.environment(),
            cwd=checkout(),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        ) as process,
    ):
        assert process.stdin is not None
        try:
            for piece in text.pieces():
                process.stdin.write(piece)
            process.stdin.close()
        except BrokenPipeError:
            pass
        status = process.wait()
    said = room.output()
    if status:
        raise BenchError(f"the text was not read: {said.strip()}")
    told = json.loads(said)
    if told["rows"] not in (None, text.rows):
        raise BenchError(f"{told['rows']} rows were read of {text.rows}")
    return float(told["seconds"]), float(told["peak_bytes"])
