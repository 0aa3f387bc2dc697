"""What ReFrame does otherwise here: how it loads tests, and when a job of PBS has ended."""

from __future__ import annotations

import time
from typing import Any

from reframe.core.exceptions import JobError
from reframe.core.schedulers.pbs import PbsJobScheduler
from reframe.frontend.loader import RegressionCheckLoader

from clustergate.core.reasons import Words

DELIVERY_S = 60.0
"""How late a file system that nodes share may show the output of a job that has ended."""
UNDELIVERED = Words(
    "pbs.undelivered",
    "PBS has ended the job and delivered no output",
    cause="a node of it may have failed, or an operator deleted it",
    remedy="`pbsnodes -aS` shows the nodes",
)
_load, _poll = RegressionCheckLoader.load_from_file, PbsJobScheduler.poll


def load_once(loader: Any, filename: str, force: bool = False) -> Any:
    """Load a file of tests, never by force.

    By force a module that is installed beside ReFrame is imported anew, though other tests have its
    classes already, and Python takes the two copies for different classes. ReFrame's command line
    asks for that on behalf of ReFrame's own unit tests alone.
    """
    return _load(loader, filename)


def poll(scheduler: Any, *jobs: Any) -> None:
    """Ask PBS for jobs, and have one fail that it knows no more and that delivered nothing.

    ReFrame would wait for its output for ever.
    """
    _poll(scheduler, *jobs)
    for job in filter(None, jobs):
        if job.state == "COMPLETED" and not job.completed:
            job.gone_s = getattr(job, "gone_s", time.monotonic())
            if time.monotonic() - job.gone_s > DELIVERY_S:
                job._completed, job._exception = True, JobError(str(UNDELIVERED()), job.jobid)


RegressionCheckLoader.load_from_file = load_once
PbsJobScheduler.poll = poll
