"""A run from end to end: prepare, execute, collect, judge, compare with golden builds, publish."""

from __future__ import annotations

import dataclasses
import datetime
import os

from clustergate.gate.contract import MODE
from clustergate.machine.others import Watch, wait_for_quiet
from clustergate.model import Run, Say
from clustergate.session.collect import collect
from clustergate.session.execute import execute
from clustergate.session.forecast import waiting_s
from clustergate.session.judge import judge
from clustergate.session.prepare import prepare
from clustergate.session.publish import publish
from clustergate.session.request import Request
from clustergate.session.resuming import lock_run
from clustergate.sites.configs import WITHOUT_NODES


def run_session(
    request: Request, run_id: str, started: datetime.datetime, say: Say, *, resumes: bool = False
) -> Run:
    """Set up, run, judge and write the reports; return the run.

    ``resumes`` goes on with a run that is there. Raises
    :class:`ClustergateError` and what sites, references and stacks raise.
    """
    if request.without_nodes:
        os.environ[WITHOUT_NODES] = request.without_nodes
    with lock_run(run_id) as beside:
        for sentence in beside:
            say(sentence)
        prepared = prepare(request, run_id, started, say, beside=beside, resumes=resumes)
        # Elsewhere than here a scheduler chooses the nodes, and keeps others off them.
        here = all(one.scheduler == "local" for one in prepared.partitions)
        if here and prepared.measures:
            wait_for_quiet(request.wait_s, say)
        watch = Watch(say)
        ended = {(one.check, one.stack) for one in prepared.earlier.values()}
        waiting = {
            pair: seconds
            for pair, seconds in waiting_s(prepared.expected, prepared.taken_s).items()
            if pair not in ended and pair[1] not in prepared.not_set_up
        }
        status = execute(prepared.call, watch.say, waiting)
        collected = collect(prepared, status)
        who = tuple(watch.sentences()) if here and prepared.measures else ()
        judged = dataclasses.replace(judge(prepared, collected), beside=who)
    if is_against_golden(request):
        # SciPy takes longer to import than all other commands need.
        from clustergate.session.software import against_golden

        site, options = prepared.site, request.options
        stacks = [stack.name for stack in site.stacks_named(request.stacks)]
        found, more = against_golden(request.site, run_id, site, stacks, None, options, say)
        notes = (*judged.notes, *more)
        judged = dataclasses.replace(judged, evidence=tuple(found), notes=notes)
    return publish(judged, prepared.call.report.parent)


def is_against_golden(request: Request) -> bool:
    """Tell whether golden builds are launched behind the cases: where all of maintenance is run."""
    return request.mode.name == MODE and not request.checks
