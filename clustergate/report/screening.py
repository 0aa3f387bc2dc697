"""A screening as one HTML page with heat maps, and in the forms that are needed next."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import ArrayLike, NDArray

from clustergate.core import store
from clustergate.core.commands import NO_CALL, Invocation
from clustergate.core.notation import counted, printable
from clustergate.core.texts import shortened
from clustergate.launch.plan import PLAN, read_plan
from clustergate.report import page as frame
from clustergate.report import plots, terminal
from clustergate.report.publishing import write_explanations
from clustergate.report.summary import Cause, FirstScreen
from clustergate.report.terminal import LINES
from clustergate.sites.schedulers import installed, scheduler_of
from clustergate.sites.schedulers.scheduler import Scheduler
from clustergate.studies.screen import folder, wording
from clustergate.studies.screen.findings import (
    FEWEST,
    Screening,
    confidence_text,
    drain_lines,
    hostfile_lines,
    ticket,
)
from clustergate.studies.screen.measures import PAIRS, Measure, Result
from clustergate.studies.screen.plan import Log, Plan

TICKET, HOSTFILE, PAGE = "ticket.txt", "hostfile.txt", "screening.html"
_LOOKS = {0: "pass", 1: "regression", 2: "inconclusive"}


def first_screen(log: Log, screening: Screening, run_id: str) -> FirstScreen:
    status = wording.exit_status(log, screening)
    pairs = len({frozenset(r.nodes) for r in log.results if len(r.nodes) == 2})
    causes = [
        Cause(
            *("regression", "fault"),
            f"{finding.suspect} ({confidence_text(finding.confidence)})",
            f"{evidence}; {finding.advice}",
            evidence,
        )
        for finding in screening.findings
        for evidence in ["; ".join(finding.evidence)]
    ]
    causes += [Cause("regression", "not back", "", one, one) for one in screening.astray]
    causes += [Cause("inconclusive", "in doubt", "", doubt, doubt) for doubt in screening.doubts]
    causes += [
        Cause("inconclusive", "not measured", "", missing, missing) for missing in screening.missing
    ]
    return FirstScreen(
        _LOOKS[status],
        wording.word_for(status, screening),
        f"{counted(len(screening.names), screening.what)} alone, {counted(pairs, 'pair')}, "
        f"{counted(len(log.results), 'measurement')}",
        causes,
        _next_steps(log, screening, run_id),
        [("clustergate screen", status, wording.MEANINGS[status])],
        [one.unlike for one in screening.findings if one.unlike],
        told_by_cause=True,
    )


def _next_steps(log: Log, screening: Screening, run_id: str) -> list[str]:
    if not log.ended:
        return [f"`clustergate screen --resume {run_id}` finishes it"]
    if screening.findings:
        out = ", ".join(screening.keeps_out) if screening.what == "node" else ""
        do = f"drain and exclude {out} with the lines below" if out else "fix it"
        return [f"{do}; `clustergate screen` then shows whether that was all"]
    if screening.astray:
        return ["put that right, or exclude those nodes in the hostfile; then `clustergate screen`"]
    if screening.absent:
        return [
            "bring back the nodes that the job was not given, or exclude them in the hostfile; "
            "then `clustergate screen`"
        ]
    if screening.quick and not (screening.doubts or screening.missing):
        return ["`clustergate gate` measures nodes, links and benchmarks"]
    if screening.doubts:
        return ["`clustergate screen` again with a larger --budget, when nothing else runs"]
    if screening.missing:
        return ["`clustergate screen` again with a larger --budget, or more --rounds"]
    if len(screening.names) < FEWEST:
        return [
            "`clustergate check --mode maintenance` judges them by references; it takes "
            f"{FEWEST} {screening.what}s to judge each other"
        ]
    return []


def render_first(
    log: Log,
    screening: Screening,
    where: Path,
    system: str,
    scheduler: str,
    not_screened: Sequence[str] = (),
    **how: Any,
) -> str:
    """Return what a terminal says of a screening, with what is to be copied as it stands.

    ``scheduler`` is that of its partition, ``not_screened`` says who took no part; ``how`` it is
    written is what :func:`~clustergate.report.terminal.render_first` takes.
    """
    run_id = where.parent.name
    first = first_screen(log, screening, run_id)
    beside = [*first.beside, *([first.sentence] if first.causes else []), *not_screened]
    below = [*_to_copy(screening, where, _drains(scheduler)), f" Page  `clustergate open {run_id}`"]
    head = f"clustergate screen   {system}   run {run_id}"
    taken = len(replace(first, beside=beside).lines()) + len(below) + _AROUND
    if how.get("wraps"):
        taken += sum(
            len(line) > how["width"] for line in [head, first.answer, *first.steps, *below]
        )
    notes = [*screening.notes, *log.notes]
    shown = notes[: max(0, LINES - taken)]
    more = len(notes) - len(shown)
    beside += [*shown, *[f"{counted(more, 'more note')} on the page"] * bool(more)]
    return terminal.render_first(head, replace(first, beside=beside), below=below, **how)


# The head, the exit status, and the line that says what is on the page.
_AROUND = 3
# More lines than these are in a file, as they are to be copied.
_LINES_TO_COPY = 2


def _to_copy(screening: Screening, where: Path, drains: Scheduler) -> list[str]:
    if not screening.keeps_out or screening.what != "node":
        return []
    today = datetime.date.today()
    copied = [
        (f"to drain them in {drains.name}", drain_lines(drains, screening, today), "run sh"),
        ("to exclude them in the hostfile", hostfile_lines(screening, today), "add the lines of"),
    ]
    files = [where / drains.drain_file, where / HOSTFILE]
    return [
        line
        for (what, lines, whole), file in zip(copied, files, strict=True)
        for line in (
            [f"{what}:", *lines] if len(lines) <= _LINES_TO_COPY else [f"{what}: {whole} {file}"]
        )
    ]


def render_screening(
    first: FirstScreen,
    screening: Screening,
    results: Sequence[Result],
    *,
    system: str,
    started: str,
    by: str = "",
    forms: Sequence[tuple[str, str]] = (),
    notes: Sequence[str] = (),
    invocation: Invocation = NO_CALL,
) -> str:
    """Return the page of a screening; ``by`` is who screened, ``forms`` are texts to copy."""
    return frame.render(
        "screening.html.j2",
        beside="../",
        invocation=invocation,
        system=system,
        started=started,
        by=by,
        first=first,
        screening=screening,
        confidence=confidence_text,
        forms=forms,
        maps=[
            (measure.title, map_of(measure, screening, results))
            for measure in PAIRS
            if measure.key in screening.located and screening.located[measure.key].centres
        ],
        classes=CLASSES,
        notes=[*notes, *screening.notes],
    )


def map_of(measure: Measure, screening: Screening, results: Sequence[Result]) -> Markup:
    """Return the heat map of a measure of pairs; ``results`` are those of the screening."""
    index = {name: k for k, name in enumerate(screening.names)}
    located = screening.located[measure.key]
    relevant = [r for r in results if r.kind == measure.kind and len(r.nodes) == 2]
    pairs = np.array([[index[n] for n in r.nodes] for r in relevant], dtype=np.int64)
    levels = np.array(
        [measure.level(r.values[measure.key]) if r.values else math.inf for r in relevant]
    )
    usual = np.full(len(levels), next(iter(located.centres.values())))
    if "other" in located.centres and screening.switch_of:
        switch_of = screening.switch_of
        same = [switch_of[a] == switch_of[b] for a, b in (r.nodes for r in relevant)]
        usual = np.where(same, located.centres["same switch"], located.centres["other"])
    grid = classes(len(screening.names), pairs, levels - usual, located.threshold)
    slow = int((grid > 0).sum())
    return heat_map(
        grid,
        screening.names,
        description=f"{measure.title} between {len(screening.names)} {screening.what}s: {slow} of "
        f"{grid.size} cells are slow or failed",
    )


def write_forms(
    log: Log,
    screening: Screening,
    system: str,
    where: Path,
    invocation: Invocation = NO_CALL,
) -> None:
    """Write the ticket and, of nodes, what the scheduler and the hostfile want, and the page."""
    when = folder.plan_time(where)
    texts = {TICKET: ticket(screening, system, when)}
    plan = read_plan(where / PLAN, Plan)
    drains = _drains(plan.scheduler)
    forms = {**_FORMS, drains.drain_file: f"To drain them in {drains.name}"}
    if screening.what == "node":
        texts[drains.drain_file] = _text(drain_lines(drains, screening, when.date()))
        texts[HOSTFILE] = _text(hostfile_lines(screening, when.date()))
    texts[PAGE] = render_screening(
        first_screen(log, screening, where.parent.name),
        screening,
        log.results,
        system=system,
        started=when.isoformat(timespec="seconds"),
        by=plan.by,
        forms=[(forms[name], text) for name, text in texts.items() if text and screening.findings],
        notes=log.notes,
        invocation=invocation,
    )
    write_explanations(where.parent)
    for name, text in texts.items():
        store.write_text(where / name, printable(text))


def _drains(name: str) -> Scheduler:
    """Return the scheduler to drain nodes in: the one here for those that are reached by ssh."""
    wanted = [scheduler_of(name), *installed(), scheduler_of("slurm")]
    return next(one for one in wanted if one.drain_file)


_FORMS = {
    TICKET: "For a ticket",
    HOSTFILE: "To exclude them in the hostfile",
}


def _text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


# --- the heat map -----------------------------------------------------------------------------

# A row of cells of one class is one rectangle, and of many nodes a cell stands for a block of pairs
# and shows the worst of them: the size of the drawing is bounded, whatever the number of nodes.


CELLS_AT_MOST = 128
"""Cells of a side: a bad link among 10,000 nodes colours one of 128 x 128."""

# From which class on a factor is called what; the style sheet has their colours, ``.level0`` and
# on. What was not measured is left out.
CLASSES = ("as expected", "slow", "1.5 x or more", "2 x or more", "4 x or more", "failed")
_STEPS = (1.5, 2.0, 4.0)
_SIDE, _LEFT, _TOP, _LABEL = 420.0, 90.0, 16.0, 14
_CELL_AT_MOST, _SCALE = 60.0, 1.25
_LABELS_AT_MOST = 32
_NOT_MEASURED = -1

Grid = NDArray[np.int64]


def classes(
    nodes: int, pairs: ArrayLike, beyond: ArrayLike, threshold: float, at_most: int = CELLS_AT_MOST
) -> Grid:
    """Return the class of each cell, -1 where nothing was measured, as a square.

    ``beyond`` is for each row of ``pairs`` the logarithm of how many times it is worse than
    expected, infinite where it failed; what is above ``threshold`` is slow. Of several values in a
    cell the worst counts, of repeated measurements of one pair the median. Raises ValueError for
    fewer than one cell.
    """
    if at_most < 1:
        raise ValueError("a heat map needs a cell")
    ends = np.sort(np.asarray(pairs, dtype=np.int64).reshape(-1, 2), axis=1)
    values = np.asarray(beyond, dtype=np.float64)
    side = min(nodes, at_most)
    grid: Grid = np.full((side, side), _NOT_MEASURED, dtype=np.int64)
    if not len(values):
        return grid
    keys, of_pair = np.unique(ends @ np.array([nodes, 1]), return_inverse=True)
    order = np.lexsort((values, of_pair))
    starts = np.searchsorted(of_pair[order], np.arange(len(keys)))
    middle = starts + np.bincount(of_pair) // 2
    typical = values[order][np.minimum(middle, len(values) - 1)]
    level = np.digitize(typical, [math.log(step) for step in _STEPS]) + 1
    level[typical <= threshold] = 0
    level[np.isinf(typical)] = len(CLASSES) - 1
    rows, columns = (keys // nodes * side // nodes), (keys % nodes * side // nodes)
    np.maximum.at(grid, (rows, columns), level)
    np.maximum.at(grid, (columns, rows), level)
    return grid


def heat_map(grid: Grid, names: Sequence[str], *, description: str) -> Markup:
    """Draw the classes of cells; ``names`` are those of the nodes, in the order of the rows.

    ``description`` is what a screen reader says.
    """
    side = len(grid)
    cell = min(_SIDE / max(side, 1), _CELL_AT_MOST)
    labels = [
        f'<text x="{_LEFT - 4:g}" y="{_short(_TOP + (row + 0.5) * cell)}" text-anchor="end" '
        'dominant-baseline="central" font-size="9" fill="currentColor">'
        f"{escape(printable(shortened(names[row * len(names) // side], _LABEL)))}</text>"
        for row in range(0, side, max(1, math.ceil(side / _LABELS_AT_MOST)))
    ]
    cells = []
    for row, members in enumerate(grid.tolist()):
        column = 0
        for level, run in groupby(members):
            width = len(list(run))
            if level != _NOT_MEASURED:
                cells.append(
                    f'<rect x="{_short(_LEFT + column * cell)}" y="{_short(_TOP + row * cell)}" '
                    f'width="{_short(width * cell)}" height="{_short(cell)}" '
                    f'class="level{level}"/>'
                )
            column += width
    whole = side * cell + 2
    return plots.svg(_LEFT + whole, _TOP + whole, [*labels, *cells], description, _SCALE)


def _short(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
