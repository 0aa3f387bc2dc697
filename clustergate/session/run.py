"""A run from end to end.

Prepare, execute, collect, launch again what looks slow, judge, compare with golden builds, publish.
"""

from __future__ import annotations

import dataclasses
import datetime
import time
from pathlib import Path
from typing import TYPE_CHECKING

from clustergate import store
from clustergate.environment import export
from clustergate.gate.contract import MODE
from clustergate.history.listing import GATE, JUNIT, SUMMARY, take_back
from clustergate.machine.others import Watch, wait_for_quiet
from clustergate.model import Run, Say
from clustergate.schedulers.slurm_limits import note_words
from clustergate.schedulers.wishes import words_in
from clustergate.session import resuming
from clustergate.session.again import confirm
from clustergate.session.collect import collect
from clustergate.session.execute import execute
from clustergate.session.forecast import waiting_s
from clustergate.session.judge import judge
from clustergate.session.prepare import are_here, prepare
from clustergate.session.request import Request
from clustergate.session.resuming import lock_run
from clustergate.sites.configs import WITHOUT_NODES
from clustergate.wording.commands import settings_given

if TYPE_CHECKING:
    from clustergate.report.trends import History


def run_session(
    request: Request, run_id: str, started: datetime.datetime, say: Say, *, resumes: bool = False
) -> Run:
    """Set up, run, judge and write the reports; return the run.

    ``resumes`` goes on with a run that is there. Raises
    :class:`ClustergateError` and what sites, references and stacks raise.
    """
    if request.without_nodes:
        export(WITHOUT_NODES, request.without_nodes)
    if resumes:
        note_words(words_in(request.options))
    with lock_run(run_id) as beside:
        for sentence in beside:
            say(sentence)
        prepared = prepare(request, run_id, started, say, beside=beside, resumes=resumes)
        here = are_here(prepared.partitions)
        if here and prepared.measures:
            wait_for_quiet(request.wait_s, say)
        watch = Watch(say)
        ended = {(one.check, one.stack) for one in prepared.earlier.values()}
        waiting = {
            pair: seconds
            for pair, seconds in waiting_s(
                prepared.expected, prepared.taken_s, usually=takes_as_usual(request)
            ).items()
            if pair not in ended and pair[1] not in prepared.not_set_up
        }
        status = execute(prepared.call, watch.say, waiting)
        collected = collect(prepared, status)
        again = confirm(prepared, collected, watch.say)
        duration_s = time.monotonic() - prepared.begun
        collected = dataclasses.replace(collected, duration_s=duration_s)
        who = tuple(watch.sentences()) if here and prepared.measures else ()
        judged = dataclasses.replace(judge(prepared, collected, again), beside=who)
    if is_against_golden(request):
        # SciPy takes longer to import than all other commands need.
        from clustergate.session.software import against_golden

        site, options = prepared.site, request.options
        stacks = [stack.name for stack in site.stacks_named(request.stacks)]
        reasons, more = against_golden(request.site, run_id, site, stacks, None, options, say)
        notes = (*judged.notes, *more)
        judged = dataclasses.replace(judged, evidence=(*judged.evidence, *reasons), notes=notes)
    return publish(judged, prepared.call.report.parent)


def takes_as_usual(request: Request) -> bool:
    """Tell whether what a case usually takes is known: in the gate's mode, as it is."""
    return request.mode.name == MODE and not settings_given(request.options)


def is_against_golden(request: Request) -> bool:
    """Tell whether golden builds are launched behind the cases: where all of maintenance is run."""
    return request.mode.name == MODE and not request.checks


class UnpublishedError(store.StoreError):
    """A run that is measured and judged, and whose reports cannot be written: it has no verdict."""

    def __init__(self, run: Run, why: store.StoreError) -> None:
        super().__init__(why.reason)
        self.run = run


def publish(judged: Run, folder: Path) -> Run:
    """Write the reports of a run with the history of its system, then that it came to its end.

    Raises :class:`UnpublishedError`.
    """
    # SciPy takes longer to import than all other commands need.
    from clustergate.report.trends import history_of

    history, before = history_of(judged)
    notes = (*judged.notes, f"report: {folder / 'report.html'}")
    run = dataclasses.replace(judged, notes=notes, before=before)
    write_reports(run, folder, history)
    try:
        resuming.write_ended(run)
    except store.StoreError as error:
        take_back(folder)
        raise UnpublishedError(run, error) from None
    return run


def write_reports(finished: Run, folder: Path, history: History) -> None:
    """Write the report of a run for the browser, for CI and, last, its verdicts for programs.

    Raises :class:`UnpublishedError`.
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
        summary = terminal.render(finished, width=console.WIDTH_STORED)
        store.write_text(folder / SUMMARY, summary)
        store.write_json(folder / verdicts.FILE, verdicts.as_json(finished))
    except store.StoreError as error:
        raise UnpublishedError(finished, error) from None
