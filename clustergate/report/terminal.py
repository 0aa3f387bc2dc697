"""What a tired operator reads in ten seconds: the verdict, what is wrong and where, the figures."""

from __future__ import annotations

import io
import math
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import IO

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from clustergate.benchmarks.descriptor import Headline
from clustergate.benchmarks.registry import every_headline
from clustergate.model import Case, CaseState, Judgement, Run, Verdict
from clustergate.verdicts.assembly import verdicts
from clustergate.verdicts.judging import exit_status, worst
from clustergate.wording.notation import counted, number, printable
from clustergate.wording.texts import (
    DOUBTFUL,
    doubts,
    figure_name,
    group_name,
    nothing_to_compare_with,
)

WRONG = (Verdict.REGRESSION, Verdict.IMPOSSIBLE, Verdict.INVALID)
EXIT_MEANINGS = {
    0: "no fault found",
    1: "a figure is worse than its reference",
    2: "a case did not run or was not proven, or a figure exceeds a physical limit",
}
SHOWN_AT_MOST = 12
OPEN_SHOWN_AT_MOST = 4
WIDTH_WHEN_PIPED = 100


def width() -> int:
    """Return the width to write for: the terminal's, or a fixed one when nobody is looking."""
    if sys.stdout.isatty():
        return shutil.get_terminal_size().columns
    return WIDTH_WHEN_PIPED


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
        no_color=not colour,
    )


def render(run: Run, *, width: int) -> str:
    """Return the summary of a run as text; the last line says which exit status it has."""
    stream = io.StringIO()
    out = console(width, stream)
    judged = verdicts(run.cases)
    status = exit_status(judged)
    absent = _absences(run.cases)
    above = [
        "",
        f"{worst(judged).value.upper()}: {_headline(run, judged)}",
        *(f"  {line}" for line in run.unjudged),
        *(f"  {line}" for line in nothing_to_compare_with(run.cases)),
        *(f"  {line}" for line in doubts(run.cases)),
        *(f"  {line}" for line in _troubles(run.cases)),
        *(["not available here:"] if absent else []),
        *(f"  {line}" for line in absent),
    ]
    below = [*_open_questions(run.cases), *run.notes, _last_line(run.cases, status)]
    table = _figures_table(run.cases)
    # A sentence stays on one line, for grep; a terminal wraps it by itself.
    for line in above:
        out.print(Text(line), soft_wrap=True)
    if table is not None:
        out.print(table)
    for line in below:
        out.print(Text(line), soft_wrap=True)
    return stream.getvalue()


def _headline(run: Run, judged: Sequence[Verdict]) -> str:
    counts = Counter(judged)
    ran = sum(case.state is CaseState.RAN for case in run.cases)
    summary = ", ".join(f"{counts[v]} {v.value}" for v in Verdict if counts[v])
    figures = sum(f.estimate is not None for case in run.cases for f in case.figures)
    minutes, seconds = divmod(round(run.duration_s), 60)
    return (
        f"{run.system}, mode {run.mode}, {ran} of {len(run.cases)} cases ran in "
        f"{minutes} min {seconds} s, {figures} figures measured: {summary}"
    )


def _troubles(cases: Sequence[Case]) -> list[str]:
    broken: dict[tuple[str, CaseState, str], list[Case]] = {}
    for case in cases:
        if case.state in (CaseState.FAILED, CaseState.MISSING):
            broken.setdefault((case.stack, case.state, case.reason), []).append(case)
    lines = [
        f"{_where_all(alike)}: {state.value}: {reason}"
        for (_, state, reason), alike in broken.items()
    ]
    lines += [
        f"{_where(case)}: {called}: {judgement.verdict.value}: {judgement.sentence}"
        for case in cases
        for called, judgement in wrong_in(case)
    ]
    if len(lines) > SHOWN_AT_MOST:
        left = len(lines) - SHOWN_AT_MOST
        lines = [*lines[:SHOWN_AT_MOST], f"and {left} more"]
    return lines


def wrong_in(case: Case) -> list[tuple[str, Judgement]]:
    """Return what is wrong with a case, by its name: groups first, then figures.

    Of figures that are slower, and whose group is slower as a whole, the group speaks.
    """
    slower = {g.benchmark for g in case.groups if g.judgement.verdict is Verdict.REGRESSION}
    groups = [(group_name(group), group.judgement) for group in case.groups]
    figures = [
        (figure_name(figure), figure.judgement)
        for figure in case.figures
        if figure.judgement.verdict is not Verdict.REGRESSION or figure.benchmark not in slower
    ]
    return [
        (called, judgement) for called, judgement in groups + figures if judgement.verdict in WRONG
    ]


def _open_questions(cases: Sequence[Case]) -> list[str]:
    """Return of which groups nobody can tell, and what the others could have seen."""
    groups = [(case, group) for case in cases for group in case.groups]
    seen = [
        group.threshold
        for _, group in groups
        if group.worse_by is not None and math.isfinite(group.threshold)
    ]
    lines = [
        f"inconclusive: {_where(case)}, {group_name(group)}: {group.judgement.sentence}"
        for case, group in groups
        if group.judgement.verdict is Verdict.INCONCLUSIVE
    ]
    if len(lines) > OPEN_SHOWN_AT_MOST:
        left = len(lines) - OPEN_SHOWN_AT_MOST
        lines = [*lines[:OPEN_SHOWN_AT_MOST], f"and {left} more"]
    if seen:
        low, high = (f"{100 * math.expm1(end):.1f} %" for end in (min(seen), max(seen)))
        lines.append(
            f"{counted(len(seen), 'group')} compared as a whole; smallest detectable change: {low} "
            f"in the least noisy group, {high} in the noisiest"
        )
    return lines


def _absences(cases: Sequence[Case]) -> list[str]:
    absent: dict[tuple[str, str], str] = {}
    for case in cases:
        if case.state is CaseState.NOT_AVAILABLE:
            absent.setdefault((case.check, case.stack), case.reason)
    return [f"{check} with {stack}: {reason}" for (check, stack), reason in absent.items()]


def _where(case: Case) -> str:
    ranks = case.conditions.get("ranks")
    ranks_suffix = f", {ranks} ranks" if ranks else ""
    return f"{case.check} with {case.stack}{ranks_suffix}"


def _where_all(alike: Sequence[Case]) -> str:
    """Return which cases of one stack a sentence is about."""
    if len(alike) == 1:
        return _where(alike[0])
    counts = Counter(case.check for case in alike)
    checks = ", ".join(f"{name} ({n} cases)" if n > 1 else name for name, n in counts.items())
    return f"{checks} with {alike[0].stack}"


def _figures_table(cases: Sequence[Case]) -> Table | None:
    stacks = sorted({case.stack for case in cases if case.figures})
    if not stacks:
        return None
    table = Table(box=box.SIMPLE, show_edge=False, pad_edge=False)
    table.add_column("figure")
    table.add_column("unit")
    for stack in stacks:
        table.add_column(stack, justify="right")
    for headline in every_headline():
        cells = [_cell(headline, stack, cases) for stack in stacks]
        if any(cells):
            table.add_row(headline.title, headline.unit, *[cell or "-" for cell in cells])
    return table if table.row_count else None


def _cell(headline: Headline, stack: str, cases: Sequence[Case]) -> str:
    figures = [
        figure
        for case in cases
        if case.stack == stack and case.check == headline.check
        for figure in case.figures
        if headline.shows(figure)
    ]
    values = [figure.estimate.value for figure in figures if figure.estimate is not None]
    if not values:
        return ""
    picked = headline.pick(values)
    doubtful = any(f.doubt for f in figures if f.estimate and f.estimate.value == picked)
    return number(picked * headline.scale) + (DOUBTFUL if doubtful else "")


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
    parts += [f"{counted(absent, 'case')}: not available here"] if absent else []
    return "; ".join([f"clustergate check: exit status {status}: {EXIT_MEANINGS[status]}", *parts])
