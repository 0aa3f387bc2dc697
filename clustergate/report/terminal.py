"""What a tired operator reads in ten seconds: the verdict, what is wrong and where, the figures."""

from __future__ import annotations

import io
import math
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import IO

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from clustergate.machine.peaks import OF_ALL_CORES
from clustergate.model import Case, CaseState, Run, Verdict
from clustergate.report.summary import (
    ABOVE_PEAK,
    EXIT_MEANINGS,
    WHY_ABOVE_PEAK,
    HeadlineRow,
    first_screen,
    headlines,
    status_of,
)
from clustergate.verdicts.assembly import is_undecided
from clustergate.wording.notation import counted, number, printable

WIDTH_WHEN_PIPED = 100
# Between columns of a table.
_GAP = 3
# What is to be copied, such as a path, stays whole.
_WRAPPER = partial(textwrap.TextWrapper, break_long_words=False, break_on_hyphens=False)


def width() -> int:
    """Return the width to write for: ``$COLUMNS``, the terminal's, or a fixed one in a pipe."""
    return shutil.get_terminal_size((WIDTH_WHEN_PIPED, 0)).columns


class _PrintableConsole(Console):
    """A console whose only control characters are those of its own styles."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yield what is shown."""
        for segment in super().render(renderable, options):
            text = segment.text if segment.control else printable(segment.text)
            yield segment._replace(text=text)


def console(width: int, file: IO[str] | None = None, *, colour: bool = False) -> Console:
    """Return what writes tables and sentences, as they are, in colours only if it is told to."""
    return _PrintableConsole(
        file=file,
        width=width,
        highlight=False,
        markup=False,
        emoji=False,
        force_terminal=colour,
        # With colours it is NO_COLOR's turn, https://no-color.org.
        no_color=None if colour else True,
    )


def print_lines(lines: Iterable[str]) -> None:
    """Print sentences, wrapped where somebody reads them and whole where a program does."""
    _print(console(width()), lines, sys.stdout.isatty())


def table(
    columns: Sequence[str], rows: Iterable[Sequence[str | Text]], right: Collection[int] = ()
) -> Table:
    """Return a table as all commands print them; numbers stand in the columns ``right``, from 0."""
    made = Table(box=box.SIMPLE, show_edge=False, pad_edge=False)
    for k, column in enumerate(columns):
        made.add_column(column, justify="right" if k in right else "left", overflow="fold")
    for row in rows:
        made.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in row))
    return made


def print_table(table: Table) -> None:
    """Print a table as wide as there is room."""
    console(width()).print(table)


def render(run: Run, *, width: int, wraps: bool = False) -> str:
    """Return the summary of a run as text; the last line says which exit status it has.

    A sentence stays on one line, for grep, unless it ``wraps``.
    """
    stream = io.StringIO()
    out = console(width, stream)
    stacks = sorted({case.stack for case in run.cases if case.figures})
    rows = list(headlines(run.cases, stacks))
    doubted = any(cell.text == ABOVE_PEAK for row in rows for cell in row.cells.values())
    _print(out, ["", *first_screen(run).lines(), *_peaks(run.cases)], wraps)
    for table in _tables(rows, stacks, width):
        out.print(table)
    below = [
        *([WHY_ABOVE_PEAK] if doubted else []),
        *_detectable(run.cases),
        *run.changes,
        *run.notes,
        _last_line(run.cases, status_of(run)),
    ]
    _print(out, below, wraps)
    return stream.getvalue()


def _print(out: Console, lines: Iterable[str], wraps: bool) -> None:
    for line in lines:
        indent = " " * (len(line) - len(line.lstrip()) + 2)
        text = _WRAPPER(width=out.width, subsequent_indent=indent).fill(line) if wraps else line
        out.print(Text(text), soft_wrap=True)


def _peaks(cases: Sequence[Case]) -> list[str]:
    """Return the most that the nodes of each partition did, all cores at once."""
    by_partition: dict[str, dict[str, list[float]]] = {}
    for case in cases:
        for kind, value in case.peaks.items():
            by_partition.setdefault(case.partition, {}).setdefault(kind, []).append(value)
    lines = []
    for partition, peaks in by_partition.items():
        what = [
            f"{title} {number(best(peaks[kind]))} {unit}"
            for kind, (title, unit, best) in OF_ALL_CORES.items()
            if kind in peaks
        ]
        where = f" of {partition}" if len(by_partition) > 1 else ""
        lines.append(f"  a node{where} can do, all cores at once: {', '.join(what)}")
    return lines


def _detectable(cases: Sequence[Case]) -> list[str]:
    """Return what the groups that were compared could have seen."""
    seen = [
        group.threshold
        for case in cases
        for group in case.groups
        if group.worse_by is not None and math.isfinite(group.threshold)
    ]
    if not seen:
        return []
    low, high = (f"{100 * math.expm1(end):.1f} %" for end in (min(seen), max(seen)))
    return [
        f"{counted(len(seen), 'group')} compared as a whole; smallest detectable change: {low} "
        f"in the least noisy group, {high} in the noisiest"
    ]


def _tables(rows: Sequence[HeadlineRow], stacks: Sequence[str], width: int) -> Iterator[Table]:
    """Yield the table of headlines over stacks, in several parts where it is too wide for one."""
    if not rows:
        return
    lines = [
        (
            f"  {row.title}" if row.share else row.title,
            row.unit,
            *(row.cells[stack].text if stack in row.cells else "-" for stack in stacks),
        )
        for row in rows
    ]
    named = sum(max(len(line[k]) for line in lines) + _GAP for k in (0, 1))
    widest = max(len(text) for line in [stacks, *(x[2:] for x in lines)] for text in line) + _GAP
    at_once = max(1, (width + _GAP - named) // widest)
    for k in range(0, len(stacks), at_once):
        shown = stacks[k : k + at_once]
        cells = [[*line[:2], *line[2 + k : 2 + k + at_once]] for line in lines]
        yield table(("figure", "unit", *shown), cells, range(2, 2 + len(shown)))


def _last_line(cases: Sequence[Case], status: int) -> str:
    counts = Counter(figure.judgement.verdict for case in cases for figure in case.figures)
    groups = [group.judgement.verdict for case in cases for group in case.groups]
    absent = sum(case.state is CaseState.NOT_AVAILABLE for case in cases)
    parts = [
        f"{counted(counts[verdict], 'figure')}: {verdict.value}"
        for verdict in (Verdict.NO_REFERENCE, Verdict.INCONCLUSIVE)
        if counts[verdict]
    ]
    if unsure := groups.count(Verdict.INCONCLUSIVE):
        parts.append(f"{counted(unsure, 'group')}: {Verdict.INCONCLUSIVE.value}")
    if undecided := sum(map(is_undecided, cases)):
        parts.append(f"{counted(undecided, 'case')}: too disturbed to be judged")
    parts += [f"{counted(absent, 'case')}: not available here"] if absent else []
    return "; ".join([f"clustergate check: exit status {status}: {EXIT_MEANINGS[status]}", *parts])
