"""A ReFrame test that the judge fails: ``class MyTest(clustergate.Judged, …)``.

ReFrame's own environment needs clustergate for it. In the performance stage the test asks the judge
what its figures are beside those of its sessions before; what looks slow fails, so that
``--max-retries 2`` runs it again, and three slow attempts are a regression. Where it is to
``prove_ranks``, its ranks prove themselves as those of the suite's own checks do.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import functools
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import run_after, run_before, variable
from reframe.core.exceptions import PerformanceError, SanityError
from reframe.utility.osext import change_dir

from clustergate.core.model import ClustergateError, Verdict
from clustergate.core.notation import printable
from clustergate.core.reasons import sentence_of
from clustergate.judge.assembly import wrong_in
from clustergate.judge.confirmation import unconfirmed
from clustergate.suites import proving
from clustergate.suites.judging import NEWEST, OLDEST, judge_session
from clustergate.suites.places import default_place, sessions_at
from clustergate.suites.reports import nodes_of, values_of
from clustergate.suites.sessions import KEPT, Proven, Result, Session, as_text, from_text, named
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


# What a launcher's words depend on.
_OF_A_LAUNCH = (
    *("num_tasks", "num_tasks_per_node", "num_tasks_per_core", "num_tasks_per_socket"),
    *("num_cpus_per_task",),
)


class Judged(_Plugin):  # type: ignore[misc]
    """Mixed into a test, it fails what the judge calls slower than in the sessions before.

    ``judge_by`` is a database, a report file or a folder, ReFrame's own place by default. A test
    without five sessions before it passes, and so does one whose files cannot be read: the judge
    that runs behind ReFrame (``clustergate judge``) says so.

    With ``prove_ranks``, the proof library is preloaded into the ranks of an MPI test; what
    contradicts it fails the test, what disturbed it and its nodes' states are kept in the report,
    and a test that cannot be proven claims nothing. ``job_launches`` are how often the job launches
    the program: the judge sees all of them, and ReFrame the last.
    """

    judge_by = variable(str, value="", loggable=False)
    prove_ranks = variable(bool, value=False, loggable=False)
    job_launches = variable(int, value=1, loggable=False)
    clustergate_proof = variable(str, value="", loggable=True)

    @run_before("run", always_last=True)  # type: ignore[untyped-decorator]
    def launch_with_proof(self) -> None:
        """Let the job compile the proof library, tell its nodes' states and launch with it."""
        if not (self.prove_ranks or self.job_launches > 1) or self.is_dry_run() or not self.job:
            return
        if self.container_platform.image:
            proven = Proven(unproven=(proving.UNPROVEN_CONTAINER(),))
            self.clustergate_proof = as_text(proven)
            return
        for name in _OF_A_LAUNCH:
            # As ReFrame does, once this hook is through.
            setattr(self.job, name, getattr(self, name))
        stage, launcher = Path(self.stagedir), str(self.job.launcher.run_command(self.job))
        self._nonce = secrets.token_hex(8)
        own: Any = self
        words = [str(own.executable), *own.executable_opts]
        proving.make_folders(stage, self.job_launches)
        if self.prove_ranks:
            self.prerun_cmds += proving.job_lines(stage, launcher, self._compilers)
            self.keep_files += [KEPT]

        def proved(order: int) -> list[str]:
            front = proving.proving_words(stage, order, self._nonce) if self.prove_ranks else []
            return [*front, *words]

        self.prerun_cmds += [
            proving.launch_line(order, " ".join([launcher, *proved(order)]))
            for order in range(1, self.job_launches)
        ]
        own.executable, *own.executable_opts = proved(0)

    @property
    def _compilers(self) -> list[str]:
        return list(dict.fromkeys(filter(None, ["mpicc", self.current_environ.cc, "cc"])))

    @run_before("sanity")  # type: ignore[untyped-decorator]
    def require_proof(self) -> None:
        """Raise ReFrame's SanityError for what contradicts that this was the launch asked for."""
        self._proven = Proven()
        if not hasattr(self, "_nonce") or not self.prove_ranks:
            return
        job, is_local = self.job, self.job.scheduler.registered_name == "local"
        by = job.launcher.registered_name
        asked = proving.asked_of(
            # Whatever starts the ranks then, ReFrame does not.
            ranks=None if by == "local" else self.num_tasks,
            ranks_per_node=self.num_tasks_per_node,
            cores_per_rank=self.num_cpus_per_task,
            hosts=() if is_local else nodes_of(job.nodelist),
            own_cores=not self.use_multithreading,
            by_srun=by.startswith("srun"),
        )
        launches = self.job_launches
        of_job = Path(self.stagedir), self._nonce, launches, asked, self._compilers
        self._proven = proving.proven_by(*of_job, str(job.stdout), default_place())
        self.clustergate_proof = as_text(self._proven)
        if complaints := self._proven.complaints:
            raise SanityError(printable(sentence_of(complaints)))

    @run_after("sanity")  # type: ignore[untyped-decorator]
    def require_sanity_of_each(self) -> None:
        """Hold the other launches to what the test asks of its output."""
        for order in self._others:
            with self._output_of(order):
                sn.evaluate(self.sanity_patterns)

    @run_after("performance")  # type: ignore[untyped-decorator]
    def judge(self) -> None:
        """Raise ReFrame's PerformanceError with the judge's sentence for what looks slow."""
        values: dict[str, list[float]] = {x.name: [x.value] for x in values_of(self.perfvalues)}
        for order in self._others:
            with self._output_of(order):
                for name, of_each in values.items():
                    of_each.append(float(self.perf_variables[name].evaluate()))
        if self._others:
            tuples = {name: tuple(of_each) for name, of_each in values.items()}
            self._proven = dataclasses.replace(self._proven, values=tuples)
            self.clustergate_proof = as_text(self._proven)
        place = Path(self.judge_by) if self.judge_by else default_place()
        if sentence := slower(_result_of(self), _sessions(place)):
            raise PerformanceError(sentence)

    @property
    def _others(self) -> range:
        """The launches but for ReFrame's own."""
        return range(1, self.job_launches if hasattr(self, "_nonce") else 1)

    @contextlib.contextmanager
    def _output_of(self, order: int) -> Iterator[None]:
        """Let the test read the output of a launch as if it were the job's."""
        own = self.job._stdout, self.job._stderr
        self.job._stdout, self.job._stderr = proving.output_of(order)
        try:
            with change_dir(self.stagedir):
                yield
        finally:
            self.job._stdout, self.job._stderr = own


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
        proof=from_text(test.clustergate_proof),
    )
