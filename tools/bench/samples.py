"""What a million samples cost to load, to estimate and to report."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import polars as pl

from clustergate.core.paths import checkout
from tools.bench.spread import Aim, Figure
from tools.bench.workspace import BenchError, Workspace

SECTION = "samples"
AIM_S = Aim(at_most=2.0)
AIM_MB = Aim(at_most=2000.0)
MEGABYTE = 1_000_000
# As many figures as a benchmark suite has under two stacks and a dozen process counts.
SIZES = 24
PROCESS_COUNTS = 40


def measure(
    room: Workspace, *, samples: int, rounds: Iterable[int], say: Callable[[str], None]
) -> Iterator[Figure]:
    """Yield seconds and memory of comparing two files with so many samples together.

    Raises :class:`~tools.bench.workspace.BenchError` when they are not all compared.
    """
    say(f"samples: {samples} of them")
    files = [room.home / f"{name}.csv" for name in "ab"]
    for seed, path in enumerate(files):
        path.write_bytes(samples_csv(samples // 2, seed).encode())
    seconds, peaks = [], []
    for _ in rounds:
        took, peak, figures = _compare(room, files)
        if figures != SIZES * PROCESS_COUNTS:
            raise BenchError(f"{figures} figures were compared of {SIZES * PROCESS_COUNTS}")
        seconds.append(took)
        peaks.append(peak / MEGABYTE)
    figure = functools.partial(
        Figure,
        SECTION,
        f"{samples} samples of {SIZES * PROCESS_COUNTS} figures",
        what="`clustergate compare` of two CSV files, from its start to its end",
    )
    yield figure("time", "s", seconds, aim=AIM_S)
    yield figure("peak memory", "MB", peaks, aim=AIM_MB)


def samples_csv(samples: int, seed: int) -> str:
    """Return samples as CSV, with a spread of 2 % and a tail, the launches of all figures in turn.

    Each figure has as many; ``samples`` is cut to a multiple of the number of figures.
    """
    figures = SIZES * PROCESS_COUNTS
    launches = samples // figures
    generator = np.random.default_rng(seed)
    noise = generator.normal(1.0, 0.02, launches * figures)
    noise += generator.exponential(0.01, launches * figures)
    which = np.tile(np.arange(figures), launches)
    sizes, processes = which % SIZES, which // SIZES
    table = pl.DataFrame(
        {
            "metric": np.full(len(which), "latency_us"),
            "bytes": 2**sizes,
            "processes": 2 + processes,
            "value": np.round((0.5 + 2.0**sizes / 10000) * noise, 5),
        }
    )
    return table.write_csv()


def _compare(room: Workspace, files: list[Path]) -> tuple[float, float, int]:
    """Return the seconds, the peak bytes and the number of compared figures."""
    command = [sys.executable, "-m", "tools.bench.command_child", "compare", "--json"]
    begun = time.perf_counter()
    ended = subprocess.run(
        [*command, *map(str, files)],
        env=room.environment(),
        cwd=checkout(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - begun
    if ended.returncode:
        raise BenchError(f"the samples were not compared: {ended.stderr.strip()[-200:]}")
    told = json.loads(ended.stderr.splitlines()[-1])
    return seconds, float(told["peak_bytes"]), len(ended.stdout.splitlines())
