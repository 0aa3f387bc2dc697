"""How fast benchmark outputs are read, and that memory does not grow with them."""

from __future__ import annotations

import functools
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from clustergate.benchmarks.formats import parse, read
from clustergate.paths import checkout
from tools.bench.imb_text import ImbText, imb_text
from tools.bench.spread import Aim, Figure
from tools.bench.workspace import BenchError, Workspace

SECTION = "parser"
# Times the memory for the smallest text: a hundred times the text may move it by page and chance.
AIM_GROWTH = Aim(at_most=1.05)
MEGABYTE = 1_000_000
_READERS = {"tables": "the library", "command": "clustergate parse"}
SECONDS_OF_A_SAMPLE = 0.2

DATA = Path("tests", "data")
IMB = DATA / "imb" / "impi-2021.11-mpi1-default.txt"
AIM_COMMAND = Aim(at_least=20.0)
AIMS = {"IMB": Aim(at_least=60.0), "HPCC": Aim(at_least=40.0), "HPL": Aim(at_least=60.0)}
CAPTURED = {
    "IMB": IMB,
    "HPCC": DATA / "hpcc" / "hpcc-1.5.0-mpich.txt",
    "HPL": DATA / "hpl" / "hpl-2.3-mpich-variants.txt",
}


@dataclass(frozen=True)
class Large:
    """A large text to read: ``how`` it is read, megabytes, and how often."""

    how: str
    megabytes: int
    times: int


# The command keeps its rows in a temporary file, several times as large as the text: no gigabyte.
LARGE = (
    Large("tables", 10, 5),
    Large("tables", 100, 1),
    Large("tables", 1000, 1),
    Large("command", 2, 5),
    Large("command", 20, 1),
)
LARGE_WHEN_QUICK = (
    Large("tables", 5, 3),
    Large("tables", 50, 1),
    Large("command", 1, 3),
    Large("command", 10, 1),
)


def measure(
    room: Workspace, *, rounds: Iterable[int], large: Sequence[Large], say: Callable[[str], None]
) -> Iterator[Figure]:
    """Yield the throughput of the parsers, then speed and memory on large IMB texts.

    Memory is flat when it is the same as with the smallest text that is read in the same way.
    """
    say("parser: captured outputs")
    yield from _captured(rounds)
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


def _captured(rounds: Iterable[int]) -> Iterator[Figure]:
    texts = {
        name: (checkout() / path).read_text(encoding="utf-8").splitlines(keepends=True)
        for name, path in CAPTURED.items()
    }
    parsed: dict[str, list[float]] = {name: [] for name in texts}
    by_rows: dict[str, list[float]] = {name: [] for name in texts}
    split: dict[str, list[float]] = {name: [] for name in texts}
    for _ in rounds:
        for name, lines in texts.items():
            parsed[name].append(_speed(lines, _read))
            by_rows[name].append(_speed(lines, _parse))
            split[name].append(_speed(lines, _split))
    for name, lines in texts.items():
        size = sum(len(line) for line in lines) / 1000
        what = (
            f"{CAPTURED[name]}, {size:.0f} kB, again and again; rows that stand together in columns"
        )
        figure = functools.partial(Figure, SECTION, f"{name}, captured")
        yield figure("speed", "MB/s", parsed[name], what=what, aim=AIMS[name])
        yield figure("speed, row by row", "MB/s", by_rows[name], what=what)
        shares = [s / p for p, s in zip(parsed[name], split[name], strict=True)]
        yield figure("times str.split", "", shares, what="parsing / splitting the same lines")


def _read(lines: Sequence[str]) -> None:
    for _ in read(lines, source="text"):
        pass


def _parse(lines: Sequence[str]) -> None:
    for _ in parse(lines, source="text"):
        pass


def _split(lines: Sequence[str]) -> None:
    for line in lines:
        line.split()


def _speed(lines: Sequence[str], work: Callable[[Sequence[str]], None]) -> float:
    """Return MB per second of processor time, the work done again and again for a while."""
    size = sum(len(line) for line in lines)
    done = 0
    begun = time.process_time()
    while (seconds := time.process_time() - begun) < SECONDS_OF_A_SAMPLE:
        work(lines)
        done += size
    return done / MEGABYTE / seconds


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
