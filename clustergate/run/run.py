"""A run from end to end.

Prepare, execute, collect, launch again what looks slow, judge, compare with golden builds. Whoever
asked for it has it published.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import time

from clustergate.core.environment import export
from clustergate.core.model import Run, Say
from clustergate.core.texts import ProgressLine, Step
from clustergate.machine.other_processes import Watch, wait_for_quiet
from clustergate.run.again import confirm
from clustergate.run.busy import note_busy
from clustergate.run.collect import collect
from clustergate.run.execute import execute
from clustergate.run.forecast import waiting_s
from clustergate.run.judge import judge
from clustergate.run.prepare import Prepared, are_here, prepare
from clustergate.run.reframe import read_outcomes
from clustergate.run.request import Request
from clustergate.run.resuming import lock_run
from clustergate.run.timetable import timetable
from clustergate.sites.exclusions import WITHOUT_NODES
from clustergate.sites.modes import MAINTENANCE
from clustergate.sites.schedulers import note_words
from clustergate.sites.schedulers.job_options import words_in


def run_session(
    request: Request, run_id: str, started: datetime.datetime, say: Say, *, resumes: bool = False
) -> Run:
    """Set up, run and judge; return the run, of which nothing is written but what it measured.

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
            is_busy = wait_for_quiet(request.wait_s, say)
            note_busy(run_id, is_busy=is_busy and request.stops_busy)
        watch = Watch(say)
        prepared, status = _execute(prepared, watch.say)
        # Of many figures it takes minutes, and nobody is to think that a case still runs.
        watch.say(Step("judging what ran"))
        collected = collect(prepared, status)
        again = confirm(prepared, collected, watch.say)
        duration_s = time.monotonic() - prepared.begun
        collected = dataclasses.replace(collected, duration_s=duration_s)
        who = tuple(watch.sentences()) if here and prepared.measures else ()
        judged = dataclasses.replace(judge(prepared, collected, again), beside=who)
    if is_against_golden(request):
        # SciPy takes longer to import than all other commands need.
        from clustergate.run.software import against_golden

        site, options = prepared.site, request.options
        stacks = [stack.name for stack in site.stacks_named(request.stacks)]
        reasons, more = against_golden(
            request.site, run_id, site, stacks, None, options, say, request.called
        )
        notes = (*judged.notes, *more)
        judged = dataclasses.replace(judged, evidence=(*judged.evidence, *reasons), notes=notes)
    return judged


def _execute(prepared: Prepared, say: Say) -> tuple[Prepared, int]:
    """Let ReFrame run the cases, and return how it ended: first what must run alone, if any.

    Of that the outcomes are then ``earlier`` ones.
    """
    ended = {(one.check, one.stack) for one in prepared.earlier.values()}
    jobs = [
        one
        for one in prepared.jobs
        if (one.case.check, one.case.stack) not in ended
        and one.case.stack not in prepared.not_set_up
    ]
    alone, others = ([x for x in jobs if x.alone is how] for how in (True, False))
    if (call := prepared.call_alone) is None:
        return prepared, execute(prepared.call, say, waiting_s(jobs))
    others_s = timetable(others, prepared.partitions).seconds

    def say_with_others(sentence: str) -> None:
        say(sentence.followed_by(others_s) if isinstance(sentence, ProgressLine) else sentence)

    status = execute(call, say_with_others, waiting_s(alone), to_come=len(others))
    outcomes = {one.key: one for one in read_outcomes(call.report, status)}
    prepared = dataclasses.replace(prepared, earlier={**outcomes, **prepared.earlier})
    # The next call writes one of this name.
    with contextlib.suppress(FileNotFoundError):
        call.report.rename(call.report.with_name("reframe-alone.json"))
    beside = sum(one.seconds for one in others) / others_s if others_s else 1.0
    of_others = prepared.call, say, waiting_s(others)
    return prepared, execute(*of_others, side_by_side=beside, done=len(alone))


def is_against_golden(request: Request) -> bool:
    """Tell whether golden builds are launched behind the cases: where all of maintenance is run."""
    return request.mode.name == MAINTENANCE and not request.checks
