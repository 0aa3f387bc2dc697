"""A run from end to end: prepare, execute, collect, judge, publish."""

from __future__ import annotations

import datetime

from clustergate.model import Run
from clustergate.session.collect import collect
from clustergate.session.execute import execute
from clustergate.session.judge import judge
from clustergate.session.prepare import Say, prepare
from clustergate.session.publish import publish
from clustergate.session.request import Request
from clustergate.session.resuming import lock_run


def run_session(
    request: Request, run_id: str, started: datetime.datetime, say: Say, *, resumes: bool = False
) -> Run:
    """Set up, run, judge and write the reports; return the run.

    ``resumes`` goes on with a run that is there. Raises
    :class:`~clustergate.session.reframe.RunError` and what sites, references and stacks raise.
    """
    with lock_run(run_id) as beside:
        for sentence in beside:
            say(sentence)
        prepared = prepare(request, run_id, started, say, beside=beside, resumes=resumes)
        status = execute(prepared.call, say)
        judged = judge(prepared, collect(prepared, status))
        return publish(judged, prepared.call.report.parent)
