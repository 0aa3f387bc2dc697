"""From the text a benchmark printed to rows, or to an error that names the line."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping

from clustergate.benchmarks.descriptor import Format
from clustergate.benchmarks.registry import every_benchmark
from clustergate.model import OutputError, Part, Row, rows_of

# Launchers and MPI libraries print their own lines first: some for each rank, or each second.
LINES_TO_RECOGNISE = 100_000


def formats() -> Mapping[str, Format]:
    return {name: one.format for name, one in every_benchmark().items()}


def titles() -> str:
    """Return what the programs of all formats are called, in words."""
    *others, last = (one.title for one in every_benchmark().values())
    return f"{', '.join(others)} or {last}"


def parse(lines: Iterable[str], *, source: str, suite: str | None = None) -> Iterator[Row]:
    """Yield the rows of a text of any format: those of :func:`read`, one by one."""
    return rows_of(read(lines, source=source, suite=suite))


def read(lines: Iterable[str], *, source: str, suite: str | None = None) -> Iterator[Part]:
    """Yield the rows of a text of any format, recognised by its title, as its parser gives them.

    ``suite`` is a key of :func:`formats` and spares the recognition. Raises
    :class:`OutputError` for a text that is empty, of no known format, of two programs, or as its
    parser does: rows that came before do not count then.
    """
    remaining = iter(lines)
    if suite is None:
        first: list[str] = []
        suite = _recognise(remaining, first, source)
        remaining = _of_one_program(itertools.chain(first, remaining), suite, source)
    yield from formats()[suite].parse(remaining, source=source)
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


def _recognise(lines: Iterator[str], read: list[str], source: str) -> str:
    """Return the format of the first title, and add the lines up to it to ``read``."""
    known_formats = formats()
    for line in itertools.islice(lines, LINES_TO_RECOGNISE):
        read.append(line)
        for name, known in known_formats.items():
            if known.title.match(line):
                return name
    if not any(line.strip() for line in read):
        raise OutputError("output.empty", source=source)
    raise OutputError("output.unknown", line=1, source=source, titles=titles())
