"""What a command costs before it does anything, in processor time: others do not add to that."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator

from clustergate.core.paths import checkout
from tools.bench.spread import Aim, Figure
from tools.bench.workspace import Workspace

SECTION = "start-up"
HPL_OUTPUT = checkout() / "tests" / "data" / "hpl" / "hpl-2.0-mpich-grids.txt"
HPL_INPUT = ("--cores-per-node=2", "--memory-per-node=4GiB")
# Those that only tell something, those that also do something small, and the rest.
TELLING = {("--version",), ("--help",)}
WORKING = {("parse", str(HPL_OUTPUT)), ("hpl-input", *HPL_INPUT)}
COMMANDS = [*sorted(TELLING), *sorted(WORKING), ("list", "runs"), ("check", "--help")]
AIM_TELLING, AIM_WORKING = Aim(at_most=0.15), Aim(at_most=0.4)


def measure(
    room: Workspace, *, rounds: Iterable[int], say: Callable[[str], None]
) -> Iterator[Figure]:
    """Yield the processor time of commands, each after an empty Python program in every round.

    Raises :class:`~tools.bench.workspace.BenchError` when a command fails.
    """
    say(f"start-up: {len(COMMANDS)} commands")
    python = [sys.executable, "-c", ""]
    commands = {words: [sys.executable, "-m", "clustergate", *words] for words in COMMANDS}
    seconds: dict[tuple[str, ...], list[float]] = {words: [] for words in [(), *commands]}
    for _ in rounds:
        for words, command in {(): python, **commands}.items():
            seconds[words].append(room.timed(command).cpu_seconds)
    for words, values in seconds.items():
        # A path would only say where this checkout lies.
        name = " ".join(["clustergate", *(word.rpartition("/")[2] for word in words)])
        aim = AIM_TELLING if words in TELLING else AIM_WORKING if words in WORKING else None
        yield Figure(
            SECTION,
            name if words else "python -c ''",
            "processor time, with work" if words in WORKING else "processor time",
            "s",
            values,
            "user and system time of the process from its start to its end",
            aim,
        )
