"""From the text a benchmark printed to rows, or to an error that names the line."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from clustergate.benchmarks.descriptor import Benchmark, Format
from clustergate.benchmarks.limits import Measurement
from clustergate.benchmarks.registry import every_benchmark
from clustergate.figures import name_of, reported, samples_of
from clustergate.model import METRICS, NodeFacts, OutputError, Part, Row, rows_of
from clustergate.wording.reasons import Reason, reason

# Launchers and MPI libraries print their own lines first: some for each rank, or each second.
LINES_TO_RECOGNISE = 100_000
# More than any: of a text nobody knows how many cores a process had, or which accelerator, nor
# always how many processes there were.
_CORES_OF_A_PROCESS, _PROCESSES = 4096, 10_000_000


def formats() -> Mapping[str, Format]:
    return {name: one.format for name, one in every_benchmark().items()}


def titles() -> str:
    """Return what the programs of all formats are called, in words."""
    *others, last = (one.title for one in every_benchmark().values())
    return f"{', '.join(others)} or {last}"


def parse(lines: Iterable[str], *, source: str, suite: str | None = None) -> Iterator[Row]:
    """Yield the rows of a text of any format: those of :func:`read`, one by one."""
    return rows_of(read(lines, source=source, suite=suite))


def read(
    lines: Iterable[str],
    *,
    source: str,
    suite: str | None = None,
    say: Callable[[Reason], None] = lambda reason: None,
) -> Iterator[Part]:
    """Yield the rows of a text of any format, recognised by its title, as its parser gives them.

    ``suite`` is a key of :func:`formats` and spares the recognition. A prefix that launchers and
    tools put before each line is removed, which ``say`` is told. Raises :class:`OutputError` for a
    text that is empty, of no known format, of two programs, or with a figure that no machine
    reaches, or as its parser does: rows that came before do not count then.
    """
    remaining = iter(lines)
    if suite is None:
        first: list[str] = []
        suite, prefix, origin = _recognise(remaining, first, source)
        remaining = itertools.chain(first, remaining)
        if prefix:
            say(reason("output.prefix-removed", at=source, prefix=prefix, origin=origin))
            remaining = _without(prefix, origin, remaining)
        remaining = _of_one_program(remaining, suite, source)
    for part in formats()[suite].parse(remaining, source=source):
        for row in _extremes(part):
            _require_reachable(row, every_benchmark()[suite], source)
        yield part
    # A parser reads to the end of its own program's output.
    for _ in remaining:
        pass


def _of_one_program(lines: Iterable[str], suite: str, source: str) -> Iterator[str]:
    """Yield lines; raise :class:`OutputError` for the title of a program that is not ``suite``."""
    known = every_benchmark()
    own = {suite, *known[suite].format.holds}
    others = [(one.title, one.format.title) for name, one in known.items() if name not in own]
    for number, line in enumerate(lines, 1):
        for other, title in others:
            if title.match(line):
                facts = {"first": known[suite].title, "other": other}
                raise OutputError("output.two-programs", line=number, source=source, **facts)
        yield line


def _extremes(part: Part) -> Iterator[Row]:
    """Yield the rows that are beyond a limit if any of a table is.

    A rate has one limit for all of its rows, a time one that grows with the bytes.
    """
    if isinstance(part, Row):
        yield part
        return
    # Whoever made a table has loaded it; a start without one is to be quick.
    import numpy as np

    numbers = part.columns()
    sizes = np.maximum(np.asarray(numbers.get("bytes", [1])), 1)
    wanted: set[int] = set()
    for values in part.figures:
        wanted |= {int(values.argmin()), int(values.argmax()), int((values / sizes).argmin())}
    for k in sorted(wanted):
        conditions = {**part.conditions, **{name: int(numbers[name][k]) for name in part.names}}
        values = {name: float(numbers[name][k]) for name in part.metrics}
        yield Row(part.suite, part.benchmark, conditions, values, line=part.line + k)


def _require_reachable(row: Row, benchmark: Benchmark, source: str) -> None:
    """Raise :class:`OutputError` for a figure that no machine reaches, whatever it is.

    The limits are those of a run's figures where nothing of its node is known.
    """
    conditions = {
        "nodes": 1,
        "ranks_per_node": _processes_of(row),
        "cores_per_rank": _CORES_OF_A_PROCESS,
    }
    check = _check_of(row.suite, benchmark)
    metrics = {**METRICS, **benchmark.metrics}
    known = {name: value for name, value in row.values.items() if name in metrics}
    for sample in reported(samples_of([replace(row, values=known)], metrics)):
        for limit in benchmark.limits(Measurement(check, conditions, sample, (), NodeFacts())):
            # What the calls of a program without a check wait for is not known.
            least = limit.at_least if check else None
            above = limit.at_most is not None and sample.value > limit.at_most
            if above or (least is not None and sample.value < least):
                raise OutputError(
                    "output.unreachable",
                    line=row.line or None,
                    source=source,
                    figure=name_of(sample),
                    value=sample.value,
                    unit=sample.unit,
                    why=limit.reason,
                )


def _processes_of(row: Row) -> int:
    grid = [int(row.conditions.get(side, 0)) for side in ("p", "q")]
    return int(row.conditions.get("processes", 0)) or math.prod(grid) or _PROCESSES


def _check_of(suite: str, benchmark: Benchmark) -> str:
    """Return the name of the check that runs a program, empty where none does."""
    program = re.sub(r"\W", "", suite).lower()
    names = [check.name for check in benchmark.checks]
    if len(names) == 1:
        return names[0]
    return next((name for name in names if name.lower().startswith(program)), "")


# What stands before each line, by who puts it there.
_PREFIXES = {
    "srun --label": re.compile(r" *\d+: ?"),
    "mpirun --tag-output": re.compile(r"\[[^\[\]\s]*\d+,\d+\]<std(?:out|err)>: ?"),
    "mpiexec -l": re.compile(r"\[\d+\] ?"),
    "time stamps": re.compile(
        r"\[?(?:\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]? ? ?"
    ),
    "indentation": re.compile(r"[ \t]+"),
}


def _without(prefix: str, origin: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines without a prefix of that kind, from the first that has it on.

    Once a line lacks it, it is not removed any more: what follows is another output.
    """
    begun = left = False
    for line in lines:
        match = None
        if origin != "indentation":
            match = _PREFIXES[origin].match(line)
        elif line.startswith(prefix):
            match = re.match(re.escape(prefix), line)
        if left or not line.strip() or (match is None and not begun):
            yield line
            continue
        left, begun = match is None, True
        yield line[match.end() :] if match else line


def _recognise(lines: Iterator[str], read: list[str], source: str) -> tuple[str, str, str]:
    """Return the format of the first title, the prefix before it and who puts it there.

    The lines up to it are added to ``read``.
    """
    known_formats = formats()
    for line in itertools.islice(lines, LINES_TO_RECOGNISE):
        read.append(line)
        for name, known in known_formats.items():
            if known.title.match(line):
                return name, "", ""
        for origin, pattern in _PREFIXES.items():
            if prefix := pattern.match(line):
                rest = line[prefix.end() :]
                for name, known in known_formats.items():
                    if known.title.match(rest):
                        return name, prefix[0], origin
    if not any(line.strip() for line in read):
        raise OutputError("output.empty", source=source)
    raise OutputError("output.unknown", line=1, source=source, titles=titles())
