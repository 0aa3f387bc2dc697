"""From the text a benchmark printed to rows, or to an error that names the line."""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from clustergate.benchmarks.descriptor import Benchmark, Format
from clustergate.benchmarks.limits import Measurement
from clustergate.benchmarks.registry import every_benchmark
from clustergate.core.figures import name_of, reported, samples_of
from clustergate.core.model import METRICS, NodeFacts, OutputError, Row
from clustergate.core.outputs import OUTPUT_EMPTY, OUTPUT_UNKNOWN
from clustergate.core.reasons import Reason, Words

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


PREFIX_REMOVED = Words(
    "output.prefix-removed",
    "the prefix {prefix!r} was removed from each line ({origin})",
    remedy="capture the output without it, if the figures look mixed",
)


def parse(
    lines: Iterable[str],
    *,
    source: str,
    suite: str | None = None,
    say: Callable[[Reason], None] = lambda reason: None,
) -> Iterator[Row]:
    """Yield the rows of a text of any format, recognised by its title, as its parser gives them.

    ``suite`` is a key of :func:`formats` and spares the recognition. A prefix that launchers and
    tools put before each line is removed, which ``say`` is told. Raises :class:`OutputError` for a
    text that is empty, of no known format, of two programs, or with a figure that no machine
    reaches, or as its parser does: rows that came before do not count then.
    """
    remaining = iter(lines)
    if suite is None:
        first: list[str] = []
        suite, prefix = _recognise(remaining, first, source)
        remaining = itertools.chain(first, remaining)
        if prefix:
            origin = _kind_of(prefix)[0]
            say(PREFIX_REMOVED(at=source, prefix=prefix, origin=origin))
            remaining = _without(prefix, remaining)
        remaining = _of_one_program(remaining, suite, source)
    yield from _reachable(
        formats()[suite].parse(remaining, source=source), every_benchmark()[suite], source
    )
    # A parser reads to the end of its own program's output.
    for _ in remaining:
        pass


TWO_PROGRAMS = Words(
    "output.two-programs",
    "the output of {other} begins here, behind that of {first}",
    remedy="split the file: one program each",
)


def _of_one_program(lines: Iterable[str], suite: str, source: str) -> Iterator[str]:
    """Yield lines; raise :class:`OutputError` for the title of a program that is not ``suite``."""
    known = every_benchmark()
    own = {suite, *known[suite].format.holds}
    others = [(one.title, one.format.title) for name, one in known.items() if name not in own]
    for number, line in enumerate(lines, 1):
        for other, title in others:
            if title.match(line):
                facts = {"first": known[suite].title, "other": other}
                raise OutputError(TWO_PROGRAMS(**facts), line=number, source=source)
        yield line


OUTPUT_UNREACHABLE = Words(
    "output.unreachable",
    "{figure} of {value:number} {unit} is beyond what any machine reaches: {why}",
    remedy="the output is damaged, or a clock was wrong; run it again",
)


def _reachable(rows: Iterable[Row], benchmark: Benchmark, source: str) -> Iterator[Row]:
    """Yield rows; raise :class:`OutputError` for a figure that no machine reaches, whatever it is.

    The limits are those of a run's figures where nothing of its node is known.
    """
    metrics = {**METRICS, **benchmark.metrics}
    check_of = functools.cache(functools.partial(_check_of, benchmark=benchmark))
    for row in rows:
        check = check_of(row.suite)
        conditions = {
            "nodes": 1,
            "ranks_per_node": _processes_of(row),
            "cores_per_rank": _CORES_OF_A_PROCESS,
        }
        known = {name: value for name, value in row.values.items() if name in metrics}
        named = replace(row, values=known) if len(known) < len(row.values) else row
        for sample in reported(samples_of([named], metrics)):
            for limit in benchmark.limits(Measurement(check, conditions, sample, (), NodeFacts())):
                # What the calls of a program without a check wait for is not known.
                least = limit.at_least if check else None
                above = limit.at_most is not None and sample.value > limit.at_most
                if above or (least is not None and sample.value < least):
                    beyond = OUTPUT_UNREACHABLE(
                        figure=name_of(sample),
                        value=sample.value,
                        unit=sample.unit,
                        why=limit.reason,
                    )
                    raise OutputError(beyond, line=row.line or None, source=source)
        yield row


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


# What stands before each line and differs by the rank that printed it, by who puts it there.
_OF_RANKS = {
    "srun --label": re.compile(r" *\d+: ?"),
    "mpirun --tag-output": re.compile(r"\[[^\[\]\s]*\d+,\d+\]<std(?:out|err)>: ?"),
    "mpiexec -l": re.compile(r"\[\d+\] ?"),
}
# All that may differ from line to line in any other prefix: syslog's and ISO 8601's.
_TIME = re.compile(
    r"(?:[A-Z][a-z]{2} +\d{1,2} |\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d(?:[.,]\d+)?"
    r"(?:Z|[+-]\d\d:?\d\d)?"
)
# Where such a prefix may end; a title begins behind it.
_PREFIX_ENDS = re.compile(rf"{_TIME.pattern}[ \t]+|[:|>)\]][ \t]*|^[ \t]+|\t")
_LONGEST_PREFIX = 120
# So many lines behind the title have the prefix, too: a log that names a program has none.
_ALIKE = 3


def _kind_of(prefix: str) -> tuple[str, re.Pattern[str]]:
    """Return who puts a prefix before each line, and what matches it on the others.

    It may have lost the blanks at its end where nothing follows.
    """
    for origin, pattern in _OF_RANKS.items():
        if pattern.fullmatch(prefix):
            return origin, pattern
    body = prefix.rstrip()
    origin = "pdsh, journald or the like" if body else "indentation"
    if _TIME.fullmatch(body.strip("[]")):
        origin = "time stamps"
    form = _TIME.pattern.join(map(re.escape, _TIME.split(body)))
    return origin, re.compile(rf"{form}(?:{re.escape(prefix[len(body) :])}|[ \t]*$)")


def _without(prefix: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines without a prefix of that kind, from the first that has it on.

    Once a line lacks it, it is not removed any more: what follows is another output.
    """
    pattern = _kind_of(prefix)[1]
    begun = left = False
    for line in lines:
        match = pattern.match(line)
        if left or not line.strip() or (match is None and not begun):
            yield line
            continue
        left, begun = match is None, True
        yield line[match.end() :] if match else line


def _prefixes_of(line: str) -> Iterator[str]:
    """Yield what may stand before a title in a line, first what ranks have."""
    for pattern in _OF_RANKS.values():
        if match := pattern.match(line):
            yield match[0]
    for match in _PREFIX_ENDS.finditer(line, 0, _LONGEST_PREFIX):
        yield line[: match.end()]


def _recognise(lines: Iterator[str], read: list[str], source: str) -> tuple[str, str]:
    """Return the format of the first title, and the prefix before it and the lines behind it.

    The lines that were looked at are added to ``read``.
    """
    known_formats = formats()

    def titled(text: str) -> str | None:
        return next((name for name, one in known_formats.items() if one.title.match(text)), None)

    guess, pattern, alike = ("", ""), re.compile(""), 0
    for line in itertools.islice(lines, LINES_TO_RECOGNISE):
        read.append(line)
        if guess[0] and line.strip():
            alike += 1
            if not pattern.match(line):
                guess = "", ""
            elif alike == _ALIKE:
                return guess
        if name := titled(line):
            return name, ""
        if not guess[0]:
            for prefix in _prefixes_of(line):
                if name := titled(line[len(prefix) :]):
                    guess, pattern, alike = (name, prefix), _kind_of(prefix)[1], 0
                    break
    if guess[0]:
        return guess
    if not any(line.strip() for line in read):
        raise OutputError(OUTPUT_EMPTY(), source=source)
    raise OutputError(OUTPUT_UNKNOWN(titles=titles()), line=1, source=source)
