"""What the NAS Parallel Benchmarks can be run with: process counts and problem sizes. Pure.

The rules are those of the README of NPB 3.3 and 3.4, MPI version; Pase (IBM e326 and x336, section
3.4) runs class C.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from clustergate.benchmarks.descriptor import CannotRun
from clustergate.core.reasons import Words
from clustergate.core.words import INPUT_UNKNOWN_NAME

NPB_CLASSES = ("S", "W", "A", "B", "C")
_SQUARE, _POWER_OF_TWO, _ANY = "a square", "a power of two", "any number"
NPB_PROCESSES: Mapping[str, str] = {
    **dict.fromkeys(("bt", "sp"), _SQUARE),
    **dict.fromkeys(("cg", "ft", "is", "lu", "mg"), _POWER_OF_TWO),
    "ep": _ANY,
}


def is_allowed(benchmark: str, processes: int) -> bool:
    if processes < 1:
        return False
    rule = NPB_PROCESSES[benchmark]
    if rule == _SQUARE:
        return math.isqrt(processes) ** 2 == processes
    return rule == _ANY or processes & (processes - 1) == 0


PROCESS_RULE = Words(
    "input.process-rule",
    "{name} runs on {rule} of processes, and {asked} were asked for",
)


def npb_processes(benchmark: str, asked: int, available: int) -> int:
    """Return how many processes run a benchmark of NPB: as asked, or the most that may.

    ``asked`` 0 leaves it open. Raises :class:`CannotRun` for a number that the benchmark
    does not run on.
    """
    if asked == 0:
        return max(count for count in range(1, available + 1) if is_allowed(benchmark, count))
    if not is_allowed(benchmark, asked):
        name = f"{benchmark.upper()} of the NAS Parallel Benchmarks"
        rule = NPB_PROCESSES[benchmark]
        raise CannotRun(PROCESS_RULE(name=name, rule=rule, asked=asked))
    return asked


def npb_class(name: str) -> str:
    """Return the name of a problem size, S to C; raises :class:`CannotRun` for another."""
    if name not in NPB_CLASSES:
        raise CannotRun(INPUT_UNKNOWN_NAME(kind="class", name=name, known=list(NPB_CLASSES)))
    return name
