"""What is left of a run for those who come later: its end, and its reports."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from clustergate import store
from clustergate.history.listing import GATE, JUNIT, SUMMARY
from clustergate.model import Run
from clustergate.session import resuming

if TYPE_CHECKING:
    from clustergate.report.trends import History


def publish(judged: Run, folder: Path) -> Run:
    """Keep that a run came to its end, and write its reports with the history of its system."""
    # SciPy takes longer to import than all other commands need.
    from clustergate.report.trends import history_of

    resuming.write_ended(judged)
    run = dataclasses.replace(judged, notes=(*judged.notes, f"report: {folder / 'report.html'}"))
    return with_reports(run, folder, history_of(run))


def with_reports(finished: Run, folder: Path, history: History) -> Run:
    """Write the report of a run for the browser, for CI and for programs beside its records.

    What was measured is stored and judged by then, and is told whether they can be written or not.
    """
    # Jinja takes longer to import than the reports are needed for.
    from clustergate.report import console, terminal, verdicts
    from clustergate.report.html import render_html
    from clustergate.report.junit import render_junit

    try:
        store.write_text(folder / "report.html", render_html(finished, history))
        # A gate writes it with its answer: one that is killed before has none.
        if not (folder / GATE).exists():
            store.write_text(folder / JUNIT, render_junit(finished))
        summary = terminal.render(finished, width=console.WIDTH_WHEN_PIPED)
        store.write_text(folder / SUMMARY, summary)
        store.write_json(folder / verdicts.FILE, verdicts.as_json(finished))
    except store.StoreError as error:
        return dataclasses.replace(finished, notes=(*finished.notes, f"no report: {error}"))
    return finished
