"""What a tired operator reads in ten seconds: the verdict, what is wrong and where, the figures."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator, Sequence

from rich.table import Table

from clustergate.core.commands import NO_CALL, Invocation
from clustergate.core.model import Case, CaseState, Run, Standing, Verdict
from clustergate.core.notation import counted, number
from clustergate.judge.assembly import is_undecided
from clustergate.machine.peaks import OF_ALL_CORES
from clustergate.report.console import new_console, table, write_lines
from clustergate.report.summary import (
    REFERENCE,
    RUN_BEFORE,
    Gain,
    HeadlineRow,
    Measured,
    cause_of,
    exit_meaning,
    first_screen,
    measured,
    status_of,
)

# Between columns of a table.
_GAP = 3
_BESIDE = {
    REFERENCE: "beside each figure: how much better (+) or worse (-) than its reference",
    RUN_BEFORE: "beside each figure: how much better (+) or worse (-) than in the run before",
}
_FACTOR = "; 3x is a factor of three"


def render(
    run: Run,
    *,
    width: int,
    wraps: bool = False,
    colour: bool = False,
    invocation: Invocation = NO_CALL,
) -> str:
    """Return the summary of a run as text; the last line says which exit status it has.

    A sentence stays on one line, for grep, unless it ``wraps``. Verdicts are in ``colour`` if so.
    """
    stream = io.StringIO()
    out = new_console(width, stream, colour=colour)
    of = measured(run)
    against = next(iter(of.against), "")
    head = ["", *first_screen(run).lines(), *_measured(of), *_peaks(run.cases)]
    write_lines(out, map(invocation.completed, head), wraps=wraps)
    columns = [name for name in of.columns if any(name in row.cells for row in of.rows)]
    for part in _tables(of.rows, columns, against, width):
        out.print(part)
    below = [
        *_beside(of.rows, against),
        *of.notes,
        *run.changes,
        *run.notes,
        *(str(cause_of(one)) for one in run.evidence),
        _last_line(run),
    ]
    write_lines(out, map(invocation.completed, below), wraps=wraps)
    return stream.getvalue()


def render_briefly(run: Run, invocation: Invocation = NO_CALL) -> str:
    """Return a run that one like it went before as a line: its verdict, and where its report is."""
    return invocation.completed(f"{first_screen(run).lines()[0]}; {run.notes[-1]}\n")


def _measured(of: Measured) -> list[str]:
    """Return what was measured: the node, and the stacks in the words of their libraries."""
    said = "; ".join(f"{stack}: {library}" for stack, library in of.stacks.items())
    lines = {"machine": of.machine, "stacks": said}
    return [f"  {title}: {text}" for title, text in lines.items() if text]


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
        lines.append(f"  node peaks{where}, all cores: {', '.join(what)}")
    return lines


def _tables(
    rows: Sequence[HeadlineRow], stacks: Sequence[str], against: str, width: int
) -> Iterator[Table]:
    """Yield the table of headlines over stacks, in several parts where it is too wide for one.

    Beside each figure stands its gain ``against`` the reference or the run before.
    """
    if not rows:
        return
    columns = [_column(rows, stack, against) for stack in stacks]
    lines = [
        (f"  {row.title}" if row.share else row.title, row.unit, *cells)
        for row, *cells in zip(rows, *columns, strict=True)
    ]
    named = sum(max(len(line[k]) for line in lines) + _GAP for k in (0, 1))
    widest = max(len(text) for line in [stacks, *(x[2:] for x in lines)] for text in line) + _GAP
    at_once = max(1, (width + _GAP - named) // widest)
    for k in range(0, len(stacks), at_once):
        shown = stacks[k : k + at_once]
        cells = [
            [*line[:2], *line[2 + k : 2 + k + at_once]]
            for row, line in zip(rows, lines, strict=True)
            if any(stack in row.cells for stack in shown)
        ]
        yield table(("figure", "unit", *shown), cells, range(2, 2 + len(shown)))


def _column(rows: Sequence[HeadlineRow], stack: str, against: str) -> list[str]:
    cells = [row.cells.get(stack) for row in rows]
    gains = [
        _signed(cell.gains[against]) if cell and against in cell.gains else "" for cell in cells
    ]
    widest = max(map(len, gains))
    return [
        f"{cell.text if cell else '-'}{f' {gain:>{widest}}' if widest else ''}"
        for cell, gain in zip(cells, gains, strict=True)
    ]


def _beside(rows: Sequence[HeadlineRow], against: str) -> list[str]:
    """Return what stands beside each figure; of factors only where one does."""
    if not against:
        return []
    gains = [
        cell.gains[against] for row in rows for cell in row.cells.values() if against in cell.gains
    ]
    return [_BESIDE[against] + (_FACTOR if any(one.is_factor for one in gains) else "")]


def _signed(gain: Gain) -> str:
    sign = "+" if gain.percent > 0 else "-"
    return "=" if gain.is_none else f"{sign}{gain.amount.replace(' ', '')}"


def _last_line(run: Run) -> str:
    cases = run.cases
    counts = Counter(figure.judgement.verdict for case in cases for figure in case.figures)
    groups = [group.judgement.verdict for case in cases for group in case.groups]
    absent = sum(case.state is CaseState.NOT_AVAILABLE for case in cases)
    parts = []
    if open_ones := sum(one.standing is Standing.UNDECIDED for one in run.expectations):
        parts.append(f"{counted(open_ones, 'expectation')}: {Standing.UNDECIDED.value}")
    parts += [
        f"{counted(counts[verdict], 'figure')}: {verdict.value}"
        for verdict in (Verdict.NO_REFERENCE, Verdict.INCONCLUSIVE)
        if counts[verdict]
    ]
    if unsure := groups.count(Verdict.INCONCLUSIVE):
        parts.append(f"{counted(unsure, 'group')}: {Verdict.INCONCLUSIVE.value}")
    if undecided := sum(map(is_undecided, cases)):
        parts.append(f"{counted(undecided, 'case')}: no figure could be judged")
    parts += [f"{counted(absent, 'case')}: not available here"] if absent else []
    ended = f"clustergate check: exit status {status_of(run)}: {exit_meaning(run)}"
    return "; ".join([ended, *parts])
