"""What is written of a run or a gate that has ended: its reports, and last how it ended."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING

from clustergate.core import store
from clustergate.core.commands import NO_CALL, Invocation
from clustergate.core.model import Run, Verdict
from clustergate.judge.history.listing import GATE, JUNIT, SUMMARY, take_back
from clustergate.judge.history.stored_runs import is_trial, trial_note
from clustergate.run.resuming import write_ended

if TYPE_CHECKING:
    from clustergate.report.trends import History
    from clustergate.run.gate.workflow import Answer

GATE_PAGE = "gate.html"


class UnpublishedError(store.StoreError):
    """A run that is measured and judged, and whose reports cannot be written: it has no verdict."""

    def __init__(self, run: Run, why: store.StoreError) -> None:
        super().__init__(why.reason)
        self.run = run


def publish(judged: Run, invocation: Invocation = NO_CALL, history: History | None = None) -> Run:
    """Write the reports of a run with its ``history``, then that it came to its end.

    That is the one of its system among stored runs, unless it is given. Raises
    :class:`UnpublishedError`.
    """
    # SciPy takes longer to import than all other commands need.
    from clustergate.report.trends import history_of

    folder = store.run_folder(judged.run_id)
    before = judged.before
    if history is None:
        history, before = history_of(judged)
    notes = (*trial_note(folder), *judged.notes, f"report: {folder / 'report.html'}")
    run = dataclasses.replace(judged, notes=notes, before=before, trial=is_trial(folder))
    write_reports(run, folder, history, invocation)
    try:
        write_ended(run)
    except store.StoreError as error:
        take_back(folder)
        raise UnpublishedError(run, error) from None
    return run


def write_reports(
    finished: Run, folder: Path, history: History, invocation: Invocation = NO_CALL
) -> None:
    """Write the report of a run for the browser, for CI and, last, its verdicts for programs.

    Raises :class:`UnpublishedError`.
    """
    # Jinja takes longer to import than the reports are needed for.
    from clustergate.report import console, terminal, verdicts
    from clustergate.report.html import render_html
    from clustergate.report.junit import render_junit

    try:
        write_explanations(folder)
        store.write_text(folder / "report.html", render_html(finished, history, invocation))
        # A gate writes it with its answer: one that is killed before has none.
        if not (folder / GATE).exists():
            store.write_text(folder / JUNIT, render_junit(finished, invocation))
        summary = terminal.render(finished, width=console.WIDTH_STORED, invocation=invocation)
        store.write_text(folder / SUMMARY, summary)
        store.write_json(folder / verdicts.FILE, verdicts.as_json(finished, invocation))
    except store.StoreError as error:
        raise UnpublishedError(finished, error) from None


def write_explanations(folder: Path) -> None:
    """Write beside the reports of a run what explains their messages, where it is not yet.

    All runs share the copy beside their index by hard links where the file system has them, so
    that a folder that is moved or copied takes it along.
    Raises :class:`clustergate.core.store.StoreError`.
    """
    from clustergate.report import explained, page

    for name in explained.PAGES:
        shared, own = store.runs_folder() / name, folder / name
        if own != shared and own.is_file():
            continue
        store.make_folder(folder)
        try:
            # Rendering takes longer than all else that a small run writes.
            if not shared.is_file() or not page.explains_as_now(
                name, shared.read_text("utf-8", "replace")
            ):
                store.write_text(shared, page.explanation(name))
            os.link(shared, own)
        except FileExistsError:
            pass
        except (OSError, store.StoreError):
            store.write_text(own, page.explanation(name))


def publish_gate(answer: Answer) -> list[str]:
    """Write the reports of a gate and, last, its answer; return the lines to be printed.

    Raises :class:`clustergate.core.store.StoreError`.
    """
    from clustergate.report.gate import first_screen, render_gate, terminal_lines
    from clustergate.report.junit import render_junit

    run, decision, invocation = answer.run, answer.decision, answer.invocation
    folder = store.run_folder(run.run_id)
    passed = [one for one in run.evidence if one.verdict is Verdict.PASS]
    of_answer = answer.software_s, answer.resume, passed
    first = first_screen(decision, run.run_id, run.cases, *of_answer)
    store.write_text(folder / JUNIT, render_junit(run, invocation))
    write_explanations(folder)
    page = render_gate(first, run, folder, answer.notes, answer.items, invocation)
    store.write_text(folder / GATE_PAGE, page)
    lines = terminal_lines(answer, first)
    # In the place of that of the benchmarks, which may be a pass where the gate stays closed.
    summary = "\n".join(map(invocation.completed, lines))
    store.write_text(folder / SUMMARY, f"{summary}\n")
    # The verdict comes last: who reads it finds all that carries it.
    store.write_json(folder / GATE, invocation.in_json(answer.plain()))
    return ["", *lines]
