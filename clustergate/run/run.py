"""A run from end to end.

Prepare, execute, collect, launch again what looks slow, judge, compare with golden builds. Whoever
asked for it has it published.
"""

from __future__ import annotations

import dataclasses
import datetime
import time

from clustergate.core.commands import settings_given
from clustergate.core.environment import export
from clustergate.core.model import Run, Say
from clustergate.machine.other_processes import Watch, wait_for_quiet
from clustergate.run.again import confirm
from clustergate.run.busy import note_busy
from clustergate.run.collect import collect
from clustergate.run.execute import execute
from clustergate.run.forecast import waiting_s
from clustergate.run.judge import judge
from clustergate.run.prepare import are_here, prepare
from clustergate.run.request import Request
from clustergate.run.resuming import lock_run
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
        from clustergate.run.software import against_golden

        site, options = prepared.site, request.options
        stacks = [stack.name for stack in site.stacks_named(request.stacks)]
        reasons, more = against_golden(
            request.site, run_id, site, stacks, None, options, say, request.called
        )
        notes = (*judged.notes, *more)
        judged = dataclasses.replace(judged, evidence=(*judged.evidence, *reasons), notes=notes)
    return judged


def takes_as_usual(request: Request) -> bool:
    """Tell whether what a case usually takes is known: in the gate's mode, as it is."""
    return request.mode.name == MAINTENANCE and not settings_given(request.options)


def is_against_golden(request: Request) -> bool:
    """Tell whether golden builds are launched behind the cases: where all of maintenance is run."""
    return request.mode.name == MAINTENANCE and not request.checks
