"""The first screen of a run: the answer, the numbers, what to do now; the rest is on the page.

At most 20 lines; a sentence takes two at most.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.table import Table

from clustergate.benchmarks.descriptor import Headline
from clustergate.benchmarks.registry import every_headline
from clustergate.core.commands import NO_CALL, Invocation
from clustergate.core.model import CaseState, Run, Verdict
from clustergate.core.notation import counted, rounded
from clustergate.core.texts import AT_LEAST, DOUBT, DOUBTFUL, column_of, duration
from clustergate.judge.assembly import found_at_80_percent
from clustergate.machine.peaks import OF_ALL_CORES
from clustergate.report.answer import (
    Answer,
    answer_of,
    briefly,
    is_bound,
    is_too_busy,
    results,
)
from clustergate.report.console import new_console, table_within, write_lines
from clustergate.report.summary import (
    BUSY,
    CAUSES_SHOWN,
    NS_PER_US,
    REFERENCE,
    FirstScreen,
    Gain,
    Picked,
    causes,
    exit_meaning,
    gains,
    machine,
    next_steps,
    of_other_runs,
    percent_of_peak,
    picked,
    status_of,
    told_apart,
    why_none_is_best,
)

_LINES_OF_A_SENTENCE = 2
_ROWS_SHOWN = 6
_HEAD_OF_A_TABLE = 3
LINES = 20
"""Of a first screen, at most."""


def render(
    run: Run,
    *,
    width: int,
    wraps: bool = False,
    colour: bool = False,
    log: bool = False,
    invocation: Invocation = NO_CALL,
) -> str:
    """Return the first screen of a run as text; the last line says which exit status it has.

    A sentence stays on one line, for grep, unless it ``wraps``. The mark is in ``colour`` if so.
    A ``log``, beside which nobody opens a page, has all notes.
    """
    stream = io.StringIO()
    out = new_console(width, stream, colour=colour)

    def write(lines: Sequence[str]) -> None:
        whole = map(invocation.completed, lines)
        write_lines(out, whole, wraps=wraps, at_most=_LINES_OF_A_SENTENCE)

    status = status_of(run)
    answer = answer_of(run, status)
    below = [
        *_next(run, invocation),
        f"{run.command}: exit status {status}: {exit_meaning(run)}",
    ]
    write(["", _head(run)])
    write([f" {answer}"])
    columns, rows = _rows(run)
    numbers, left_out = _numbers(columns, rows, width)
    if numbers:
        out.print(numbers)
    if left_out:
        write([f"   {counted(left_out, 'more column')} on the page"])
    write([f"   {line}" for line in _results(run, rows)])
    write([f" ! {line}" for line in _notes(run, answer)])
    room = LINES + 1 - _height([*stream.getvalue().splitlines(), *below], width)
    shown = run.notes if log else run.notes[: max(0, room // _LINES_OF_A_SENTENCE)]
    write([f"   {note}" for note in shown])
    write(below)
    # A table fills its last column with blanks.
    return re.sub(r" +(?=\n)", "", stream.getvalue())


def _height(lines: Iterable[str], width: int) -> int:
    """Return how many lines sentences take of a terminal, two at most each."""
    return sum(1 + (len(line) > width) for line in lines)


def render_briefly(run: Run, invocation: Invocation = NO_CALL) -> str:
    """Return a run that one like it went before as a line: its answer, and where its report is."""
    answer = answer_of(run, status_of(run))
    return invocation.completed(f"{answer} {duration(run.duration_s)}; {run.notes[-1]}\n")


def _head(run: Run) -> str:
    """Return what was measured: system and node, how it is shared, mode, cases, time."""
    ran = sum(case.state is CaseState.RAN for case in run.cases)
    node = ": ".join(filter(None, [run.system, machine(run.machine, briefly=True)]))
    cases = f"{ran} of {len(run.cases)} benchmarks ran in {duration(run.duration_s)}"
    parts = (node, run.sharing, f"mode {run.mode}", "trial" * run.trial, cases)
    return "clustergate   " + "   ".join(filter(None, parts))


@dataclass(frozen=True)
class Numbers:
    """A table of a first screen: numbers stand in the columns ``right``, ``spare`` may go."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: Collection[int] = ()
    spare: Sequence[int] = ()


def render_first(
    head: str,
    first: FirstScreen,
    numbers: Numbers | None = None,
    *,
    rest: str = "on the page",
    below: Sequence[str] = (),
    whole: bool = False,
    width: int,
    wraps: bool = False,
    colour: bool = False,
    invocation: Invocation = NO_CALL,
) -> str:
    """Return the first screen of what is no run of benchmarks: answer, numbers, what to do.

    ``rest`` says where that is for which there is no room, unless the ``whole`` table is wanted.
    What stands ``below`` is said after what to do, and never wrapped.
    """
    stream = io.StringIO()
    out = new_console(width, stream, colour=colour)

    def write(lines: Iterable[str], at_most: int | None = _LINES_OF_A_SENTENCE) -> None:
        whole_lines = map(invocation.completed, lines)
        write_lines(out, whole_lines, wraps=wraps, at_most=at_most)

    write(["", head, first.answer])
    evidence = first.evidence(rest)
    rows = numbers.rows if numbers else ()
    wide = width if wraps else sys.maxsize
    # A table has a head and a rule, and a line says what was left out of it.
    others = [*[""] * (_HEAD_OF_A_TABLE + 1) * bool(rows), *first.steps, *below, *first.exit_lines]
    room = LINES + 1 - stream.getvalue().count("\n") - _height(others, wide)
    at_most = _LINES_OF_A_SENTENCE if _height(evidence, wide) <= room else 1
    if numbers and rows:
        taken = len(evidence) if at_most == 1 else _height(evidence, wide)
        room = max(1, room + 1 - taken)
        shown = rows if whole else rows[:room]
        of = (width, numbers.columns, shown, numbers.right, () if whole else numbers.spare)
        table, columns_left = table_within(*of)
        out.print(table)
        left = [counted(len(rows) - len(shown), "more line")] * (len(shown) < len(rows))
        left += [counted(columns_left, "more column")] * bool(columns_left)
        write([f"   {' and '.join(left)} {rest}"] * bool(left))
    write(evidence, at_most)
    write(first.steps, None)
    # What is to be copied stays whole.
    write_lines(out, map(invocation.completed, below), wraps=False)
    write(first.exit_lines, None)
    return re.sub(r" +(?=\n)", "", stream.getvalue())


# --- the numbers ----------------------------------------------------------------------------------


_Line = tuple[Headline, Mapping[str, Picked]]


def _rows(run: Run) -> tuple[list[str], list[_Line]]:
    """Return the columns of the first screen and its headlines, each with figures by column."""
    columns = list(dict.fromkeys(map(column_of, sorted(run.cases, key=lambda x: x.stack))))
    rows: list[_Line] = [
        (headline, figures)
        for headline in every_headline()
        if (figures := {c: one for c in columns if (one := picked(headline, c, run.cases))})
    ]
    # Of benchmarks that name none for the first screen, the first ones stand there.
    shown = ([row for row in rows if row[0].first] or rows)[:_ROWS_SHOWN]
    return [c for c in columns if any(c in figures for _, figures in shown)], shown


def _numbers(named: Sequence[str], rows: Sequence[_Line], width: int) -> tuple[Table | None, int]:
    """Return the table of headlines over stacks, and how many columns it has no room for."""
    if not rows:
        return None, 0
    lines: list[Sequence[str]] = [
        (
            headline.first or headline.title,
            headline.unit,
            *_cells(headline, figures, named),
            _node_can(headline, figures),
        )
        for headline, figures in rows
    ]
    heads = ["", "", *named, "this node can do"]
    if not any(line[-1] for line in lines):
        heads, lines = heads[:-1], [line[:-1] for line in lines]
    # What the node can do, then the last stacks.
    spare = range(len(heads) - 1, 2, -1)
    return table_within(width, heads, lines, range(2, 2 + len(named)), spare)


def _cells(headline: Headline, figures: Mapping[str, Picked], columns: Sequence[str]) -> list[str]:
    best = told_apart(figures.values())
    texts = []
    for column in columns:
        one = figures.get(column)
        if one is None:
            texts.append("-")
            continue
        _, figure, value = one
        gain = gains(figure, value).get(REFERENCE)
        beside = "" if gain is None or gain.is_none else f" {_signed(gain)}"
        text = rounded(value * headline.scale)
        if figure.doubt:
            text = f"{AT_LEAST[figure.better]}{text}" if is_bound(figure) else f"{text}{DOUBTFUL}"
        texts.append(f"{text}{beside}{' (best)' * (column in best)}")
    return texts


def _signed(gain: Gain) -> str:
    return f"{'+' if gain.percent > 0 else '-'}{gain.amount.replace(' ', '')}"


def _node_can(headline: Headline, figures: Mapping[str, Picked]) -> str:
    """Return what the node reached in the same job, and how much of it the figures are."""
    share = headline.peak or headline.share
    if share is None:
        return ""
    measured = [one for one in figures.values() if one[0].peaks.get(share.peak)]
    peaks = [case.peaks[share.peak] for case, *_ in measured]
    if not peaks:
        return ""
    title, unit, best = OF_ALL_CORES[share.peak]
    if not share.rate:
        return f"{rounded(best(peaks) / NS_PER_US)} core to core" if unit == "ns" else ""
    text = f"{rounded(best(peaks))} by {title}"
    shares = [
        percent_of_peak(case, value * headline.scale, share)
        for case, figure, value in measured
        if not figure.doubt
    ]
    if not shares:
        return text
    low, high = (f"{min(one, 100):.0f}" for one in (min(shares), max(shares)))
    return f"{text}: {low} %" if low == high else f"{text}: {low} to {high} %"


def _results(run: Run, rows: Sequence[_Line]) -> Iterator[str]:
    """Yield how many results there are, and what none of them is; what would have been found."""
    of = results(run.cases)
    broken = any(case.state.broken for case in run.cases)
    if run.session:
        yield f"{counted(len(of), 'result')} of {run.session}"
    elif of and not broken and not any(f.judgement.verdict in _WRONG for _, f in of):
        proof = "none impossible; every rank proved its library and its cores."
        yield f"{counted(len(of), 'result')}: {proof}"
    yield from found_at_80_percent(run.finds)
    if not any(told_apart(figures.values()) for _, figures in rows):
        yield from filter(None, [why_none_is_best(run)])


_WRONG = (Verdict.IMPOSSIBLE, Verdict.INVALID)


def _notes(run: Run, answer: Answer) -> list[str]:
    """Return what else somebody acts on, the worst first, a sentence each."""
    untold = causes(run)
    place = next((k for k, one in enumerate(untold) if one.where == answer.tells != ""), None)
    if place is not None:
        del untold[place]
    if is_too_busy(run.cases):
        untold = [one for one in untold if one.what not in (DOUBT, BUSY)]
    stated = {case.reason: case.reasons[0].without_remedy for case in run.cases if case.reasons}
    lines = [
        f"{one.where} was not run: {briefly(stated.get(one.short, one.short))}. "
        "`clustergate doctor` helps"
        if one.css == "unavailable"
        else str(one)
        for one in untold[:CAUSES_SHOWN]
    ]
    if more := len(untold) - len(lines):
        lines.append(f"{more} more on the page")
    lines += of_other_runs(run)
    if run.changes:
        lines.append(f"changed since the run before: {'; '.join(run.changes)}")
    return lines


def _next(run: Run, invocation: Invocation) -> list[str]:
    """Return what to do now, a command a line, and where the page is."""
    steps = next_steps(run)
    page = f"clustergate open {run.run_id}"
    *commands, page = (
        invocation.completed(f"`{command}`").strip("`")
        for command in (*(command for _, command in steps), page)
    )
    widest = max((len(why) for why, _ in steps), default=0) + 1
    heads = ["Next", *[""] * len(steps)]
    return [
        *(
            f" {head:4}  {why + ':':{widest}}   {command}"
            for head, (why, _), command in zip(heads, steps, commands, strict=False)
        ),
        f" Page  {page}",
    ]
