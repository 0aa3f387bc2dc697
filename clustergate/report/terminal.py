"""What a tired operator reads in ten seconds: the verdict, what is wrong and where, the figures."""

from __future__ import annotations

import io
import math
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import IO

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from clustergate.benchmarks.descriptor import Headline, Share
from clustergate.benchmarks.registry import every_headline
from clustergate.machine.peaks import OF_ALL_CORES
from clustergate.model import Case, CaseState, Figure, Judgement, Run, Verdict
from clustergate.verdicts.assembly import is_undecided, verdicts
from clustergate.verdicts.judging import exit_status, worst
from clustergate.wording.notation import counted, number, printable
from clustergate.wording.texts import (
    DOUBTFUL,
    absences,
    doubt_lines,
    figure_name,
    group_name,
    nothing_to_compare_with,
)

WRONG = (Verdict.REGRESSION, Verdict.IMPOSSIBLE, Verdict.INVALID)
EXIT_MEANINGS = {
    0: "no fault found",
    1: "a figure is worse than its reference",
    2: "a case did not run, was not proven or, with --strict, was disturbed, or a figure exceeds a "
    "physical limit",
}
SHOWN_AT_MOST = 12
OPEN_SHOWN_AT_MOST = 4
WIDTH_WHEN_PIPED = 100
# A share above the whole is no share: the peak was measured at a worse moment.
ABOVE_PEAK = f"> 100{DOUBTFUL}"
WHY_ABOVE_PEAK = (
    f"{ABOVE_PEAK}: more than the node's own kernels reached right before and after, which others "
    "on the node or on its host slowed"
)
_WHOLE, _NS_PER_US = 100.0, 1000.0
# Between columns of a table.
_GAP = 3
Picked = tuple[Case, Figure, float]
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


def print_table(table: Table) -> None:
    """Print a table as wide as there is room."""
    console(width()).print(table)


def status_of(run: Run) -> int:
    """Return the exit status of a run; a strict one fails where a whole case was disturbed."""
    status = exit_status(verdicts(run.cases))
    return 2 if run.strict and not status and any(map(is_undecided, run.cases)) else status


def render(run: Run, *, width: int, wraps: bool = False) -> str:
    """Return the summary of a run as text; the last line says which exit status it has.

    A sentence stays on one line, for grep, unless it ``wraps``.
    """
    stream = io.StringIO()
    out = console(width, stream)
    judged = verdicts(run.cases)
    status = status_of(run)
    absent, doubtful = absences(run.cases), doubt_lines(run.cases)
    above = [
        "",
        f"{worst(judged).value.upper()}: {_headline(run, judged)}",
        *(f"  {line}" for line in _troubles(run.cases)),
        *(f"  {line}" for line in run.unjudged),
        *(f"  {line}" for line in doubtful),
        *(f"  {line}" for line in run.beside if doubtful),
        *(["  not available here:"] if absent else []),
        *(f"    {where}: {why}" for where, why in absent),
        *(f"  next: {line}" for line in next_steps(run)),
        *(f"  {line}" for line in _peaks(run.cases)),
    ]
    below = [*_open_questions(run.cases), *run.changes, *run.notes, _last_line(run.cases, status)]
    stacks = sorted({case.stack for case in run.cases if case.figures})
    rows = [row for headline in every_headline() for row in _rows(headline, stacks, run.cases)]
    _print(out, above, wraps)
    for table in _tables(stacks, rows, width):
        out.print(table)
    if any(ABOVE_PEAK in row for row in rows):
        below = [WHY_ABOVE_PEAK, *below]
    _print(out, below, wraps)
    return stream.getvalue()


def _print(out: Console, lines: Iterable[str], wraps: bool) -> None:
    for line in lines:
        indent = " " * (len(line) - len(line.lstrip()) + 2)
        text = _WRAPPER(width=out.width, subsequent_indent=indent).fill(line) if wraps else line
        out.print(Text(text), soft_wrap=True)


def next_steps(run: Run) -> list[str]:
    """Return the next command in a sentence, none where there is nothing left to do."""
    if any(case.state is CaseState.MISSING for case in run.cases):
        return [f"`clustergate check --resume {run.run_id}` runs the missing cases"]
    for case in run.cases:
        if any(judged.verdict is Verdict.REGRESSION for _, judged in wrong_in(case)):
            of = f"--check {case.check} --stack {case.stack}"
            return [f"`clustergate history {of}` tells since when, and what else changed then"]
    for case in run.cases:
        if case.state is CaseState.FAILED or wrong_in(case):
            of = f"--mode {run.mode} --check {case.check} --stack {case.stack}"
            return [f"`clustergate check {of}` measures it again, once the cause is mended"]
    if steps := nothing_to_compare_with(run.cases):
        return steps
    if any(map(is_undecided, run.cases)):
        return [f"`clustergate check --mode {run.mode}` measures again, when nothing else runs"]
    return []


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
        lines.append(f"a node{where} can do, all cores at once: {', '.join(what)}")
    return lines


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
        if case.state.broken:
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


def _where(case: Case) -> str:
    ranks = case.conditions.get("ranks")
    ranks_suffix = f", {counted(int(ranks), 'rank')}" if ranks else ""
    return f"{case.check} with {case.stack}{ranks_suffix}"


def _where_all(alike: Sequence[Case]) -> str:
    """Return which cases of one stack a sentence is about."""
    if len(alike) == 1:
        return _where(alike[0])
    counts = Counter(case.check for case in alike)
    checks = ", ".join(f"{name} ({n} cases)" if n > 1 else name for name, n in counts.items())
    return f"{checks} with {alike[0].stack}"


def _tables(stacks: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> Iterator[Table]:
    """Yield the table of headlines over stacks, in several parts where it is too wide for one."""
    if not rows:
        return
    named = sum(max(len(row[k]) for row in rows) + _GAP for k in (0, 1))
    widest = max(len(text) for row in [stacks, *(row[2:] for row in rows)] for text in row) + _GAP
    at_once = max(1, (width + _GAP - named) // widest)
    for k in range(0, len(stacks), at_once):
        table = Table(box=box.SIMPLE, show_edge=False, pad_edge=False)
        table.add_column("figure")
        table.add_column("unit")
        for stack in stacks[k : k + at_once]:
            table.add_column(stack, justify="right")
        for row in rows:
            table.add_row(*row[:2], *row[2 + k : 2 + k + at_once])
        yield table


def _rows(headline: Headline, stacks: Sequence[str], cases: Sequence[Case]) -> list[list[str]]:
    """Return the line of a headline, with that of its share; none without a figure."""
    found = [picked(headline, stack, cases) for stack in stacks]
    if not any(found):
        return []
    rows = [[headline.title, headline.unit, *(written(one, headline) for one in found)]]
    if (share := headline.share) and any(shares := [share_of(one, share) for one in found]):
        unit = "%" if share.rate else ""
        rows.append([f"  {share.title}", unit, *(cell or "-" for cell in shares)])
    return rows


def picked(headline: Headline, stack: str, cases: Sequence[Case]) -> Picked | None:
    """Return the figure of a stack that a headline shows, with its case and its value."""
    found = [
        (case, figure, figure.estimate.value)
        for case in cases
        if case.stack == stack and case.check == headline.check
        for figure in case.figures
        if headline.shows(figure) and figure.estimate is not None
    ]
    if not found:
        return None
    values = [value for _, _, value in found]
    # What is no number is not even equal to itself.
    best = found[values.index(headline.pick(values))]
    # Of several that are equal, a doubt about one is about all.
    return next((one for one in found if one[1].doubt and one[2] == best[2]), best)


def written(picked: Picked | None, headline: Headline) -> str:
    """Return the value of a headline's figure, ``-`` where there is none."""
    if picked is None:
        return "-"
    _, figure, value = picked
    if figure.metric == "efficiency_percent" and figure.doubt and value > _WHOLE:
        return ABOVE_PEAK
    return number(value * headline.scale) + (DOUBTFUL if figure.doubt else "")


def share_of(picked: Picked | None, share: Share) -> str:
    """Return what a figure is of its node's peak; empty where that is not known."""
    if picked is None:
        return ""
    case, figure, value = picked
    peak = case.peaks.get(share.peak)
    if not peak or (not share.rate and case.conditions.get("nodes") != 1):
        return ""
    mark = DOUBTFUL if figure.doubt else ""
    if not share.rate:
        return f"{value * _NS_PER_US / peak:.0f}{mark}"
    percent = _WHOLE * value * float(case.conditions.get("ranks_per_node", 1)) / peak
    return ABOVE_PEAK if percent > _WHOLE else f"{number(percent)}{mark}"


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
