"""A ReFrame test that the judge fails: ``class MyTest(clustergate.Judged, …)``.

ReFrame's own environment needs clustergate for it. In the performance stage the test asks the judge
what its figures are beside those of its sessions before; what looks slow fails, so that
``--max-retries 2`` runs it again, and three slow attempts are a regression.
"""

from __future__ import annotations

import datetime
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import reframe as rfm
from reframe.core.builtins import run_after, variable
from reframe.core.exceptions import PerformanceError

from clustergate.core.model import ClustergateError, Verdict
from clustergate.judge.assembly import wrong_in
from clustergate.judge.confirmation import unconfirmed
from clustergate.suites.judging import NEWEST, OLDEST, judge_session
from clustergate.suites.places import default_place, sessions_at
from clustergate.suites.reports import nodes_of, values_of
from clustergate.suites.sessions import Result, Session, named
from clustergate.suites.settings import settings_beside


@functools.lru_cache(maxsize=4)
def _sessions(place: Path) -> Sequence[Session]:
    # A suite asks for each of its tests.
    try:
        return sessions_at(place, NEWEST, OLDEST)
    except ClustergateError:
        return ()


# Its name until 4.9.
_Plugin: Any = getattr(rfm, "RegressionTestPlugin", None) or rfm.RegressionMixin


class Judged(_Plugin):  # type: ignore[misc]
    """Mixed into a test, it fails what the judge calls slower than in the sessions before.

    ``judge_by`` is a database, a report file or a folder, ReFrame's own place by default. A test
    without five sessions before it passes, and so does one whose files cannot be read: the judge
    that runs behind ReFrame (``clustergate judge``) says so.
    """

    judge_by = variable(str, value="", loggable=False)

    @run_after("performance")  # type: ignore[untyped-decorator]
    def judge(self) -> None:
        """Raise ReFrame's PerformanceError with the judge's sentence for what looks slow."""
        place = Path(self.judge_by) if self.judge_by else default_place()
        if sentence := slower(_result_of(self), _sessions(place)):
            raise PerformanceError(sentence)


def slower(result: Result, before: Sequence[Session]) -> str:
    """Return in a sentence what of a test is slower than in sessions before, empty for nothing.

    ``before`` are the newest first.
    """
    own = [
        Session(one.session_id, one.started, same, one.ended, one.configs)
        for one in before
        if (
            same := [x for x in one.results if (x.test, x.environ) == (result.test, result.environ)]
        )
    ]
    now = datetime.datetime.now().astimezone()
    session = Session("this one", now, [result])
    settings, _ = settings_beside([session], Path.cwd())
    run = judge_session([session, *own], settings, "", now).run
    for case in run.cases:
        for name, judgement in wrong_in(case):
            if judgement.verdict is Verdict.REGRESSION:
                return f"{name}: {judgement.sentence}"
        if why := unconfirmed(case):
            judged = [one.judgement for one in case.groups]
            judged += [one.judgement for one in case.figures]
            slow = next(one for one in judged if why in one.reasons)
            return "; ".join(str(one) for one in slow.reasons[1:2]) or str(why)
    return ""


def _result_of(test: Judged) -> Result:
    name, parameters, repeat, node = named(str(test.name))
    partition, job = test.current_partition, test.job
    return Result(
        test=name,
        parameters=parameters,
        system=partition.fullname.partition(":")[0],
        partition=partition.name,
        environ=test.current_environ.name,
        result="pass",
        values=tuple(values_of(test.perfvalues)),
        nodes=nodes_of(job.nodelist) if job else (),
        tasks=test.num_tasks or 1,
        repeat=repeat,
        node=node,
        hash=test.hashcode,
        exclusive=bool(test.exclusive_access),
        completed=datetime.datetime.now().timestamp(),
    )
