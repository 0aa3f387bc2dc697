"""Carry out a screening: rounds of launches at once, each with a time limit. Runs inside the job.

Every launch is noted as it ends, with what was read of it, so that a job that was killed can be
taken up again by the same plan in the same folder. One that fails or takes too long is noted, too.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path

from clustergate.benchmarks.hpl import dat_file
from clustergate.benchmarks.hpl.output import parse_hpl
from clustergate.benchmarks.hpl.sizing import hpl_expectation
from clustergate.benchmarks.imb.command import SIZES_FILE
from clustergate.benchmarks.imb.output import parse_imb
from clustergate.benchmarks.imb.plan import ImbExpectation
from clustergate.core.files.stored import encode
from clustergate.core.model import ClustergateError, Launch, Row
from clustergate.core.reasons import Words, sentence_of
from clustergate.launch.allocation import allocated_hosts
from clustergate.launch.ending import exit_status
from clustergate.launch.engine import Engine
from clustergate.launch.hostfiles import HostNode, fold, render
from clustergate.launch.plan import (
    ERRORS,
    OUTPUT,
    Contender,
    Launched,
    launch_folder,
    proof_folder,
    read_plan,
    whole_lines,
)
from clustergate.launch.plan import NODES as STATES_FOLDER
from clustergate.launch.proof.ranks import read_proofs
from clustergate.launch.reading import ending_of, last_words, lines_of, read_planned
from clustergate.machine.kernels.peaks import parse_peaks
from clustergate.machine.node import core_cpus
from clustergate.studies.screen.campaign import Campaign, Task
from clustergate.studies.screen.measures import Result, hpl_values, peak_values, pingpong_values
from clustergate.studies.screen.plan import (
    CPUS,
    HOSTFILE,
    NODES,
    START,
    STATES,
    Plan,
    log_in,
    result_of,
)

CORE = "core"
_HOSTFILE = "hostfile"
# Nodes of an idle cluster are ready in tenths of a second, of a busy one in seconds; a wait is
# rounded up to whole ones.
_FIRST_LEAD_S, _LEAD_S, _LONGEST_LEAD_S = 3.0, 1.0, 5.0
_SIGNALS_SEEN_S = 1.0


def lead_s(ready_s: Sequence[float], at_once: int) -> float:
    """Return how long the next launches wait for each other, in seconds.

    ``ready_s`` are those after which the nodes of a round were ready, of which so many begin at
    once. A clock that is wrong makes nobody wait for long.
    """
    last = max(sorted(ready_s)[:at_once], default=0.0)
    return min(max(last, _LEAD_S), _LONGEST_LEAD_S)


def main(arguments: Sequence[str]) -> int:
    """Carry out the plan in the file named first, beside it; return the job's exit status.

    It is 0 whatever was found: findings are results. 128 and the number of a signal that ended it,
    2 when nothing could be screened.
    """
    path = Path(arguments[0]).absolute()
    return exit_status(lambda: carry_out(read_plan(path, Plan), path.parent))


OTHER_NODES = Words(
    "screening.other-nodes",
    "the screening cannot resume: the job was not given {nodes:names}, with which it began",
    remedy="start a new screening",
)


def carry_out(plan: Plan, job: Path) -> None:
    """Screen what the plan names, or go on where an earlier job of this folder was stopped.

    Raises :class:`ClustergateError` when there is nobody to screen.
    """
    whole_lines(job)
    before = log_in(job)
    names = before.names or _names(plan)
    begun = time.monotonic()
    used_s = sum(r.seconds for r in before.results) / max(len(names), 1)
    launcher = Launcher(plan, job)
    engine = launcher.engine
    engine.begin_log()
    (job / STATES_FOLDER).mkdir(exist_ok=True)
    if not before.names:
        engine.note({"names": names})
    elif plan.scheduled and (absent := [name for name in names if name not in _names(plan)]):
        # What was launched there now would fail, and accuse it.
        engine.note({"note": str(OTHER_NODES(nodes=absent))})
        return
    engine.keep_home_out()
    if plan.core_distance:
        engine.watch_distance(plan.core_distance, plan.contenders[0].environment)
    # A resumed job makes folders of its own: what lies there was cut off.
    launcher.first = 1 + max(
        (int(p.name.rpartition("-")[2]) for p in job.glob("launch-*")), default=-1
    )
    campaign = Campaign(
        plan,
        names,
        before.results,
        launcher.batch,
        lambda sentence: engine.note({"note": sentence}),
        lambda: used_s + time.monotonic() - begun,
    )
    campaign.run()
    engine.note({"ended": True})


ALLOCATION_UNKNOWN = Words(
    "allocation.unknown", "no scheduler names the nodes of this job (Slurm, PBS and LSF do)"
)
NONE_TO_SCREEN = Words(
    "allocation.none-to-screen", "none of the nodes to screen is in the allocation ({nodes})"
)


def _names(plan: Plan) -> tuple[str, ...]:
    if plan.what == CORE:
        return tuple(f"{CORE}{cpu}" for cpu in core_cpus())
    if not plan.scheduled:
        return tuple(plan.nodes)
    # Nodes that were not given to this job may be working for somebody else.
    given = allocated_hosts(os.environ)
    if given is None:
        raise ClustergateError(ALLOCATION_UNKNOWN())
    wanted = [n for n in given if n not in plan.excluded and (not plan.nodes or n in plan.nodes)]
    if not wanted:
        raise ClustergateError(NONE_TO_SCREEN(nodes=fold(given)))
    return tuple(wanted)


OTHER_CPUS = Words("proof.other-cpus", "it ran on the CPUs {ran}, not on {wanted}")


def _as_completed(futures: Collection[Future[Launched]]) -> Iterator[Future[Launched]]:
    """Yield futures as they complete, and look for signals meanwhile.

    Python runs the handler of a signal in its main thread alone, and one that comes just before
    this waits would be seen only when the wait ends.
    """
    left = set(futures)
    while left:
        done, left = wait(left, _SIGNALS_SEEN_S, FIRST_COMPLETED)
        yield from done


class Launcher:
    """Starts what is planned, each launch in a folder of its own, and reads what it left."""

    def __init__(self, plan: Plan, job: Path) -> None:
        self._plan = plan
        self._job = job
        # What this node goes through tells nothing of launches on others, and reading it for all
        # of them at once would disturb the launch on this one.
        self.engine = Engine(job, plan.nonce, at_once=True)
        self.first = 0
        self._lead_s = _FIRST_LEAD_S
        self._start = 0
        self._ready_at: list[int] = []

    def batch(self, tasks: Sequence[Task]) -> Iterator[Result]:
        """Run launches at once, note and yield their results as they come.

        On an error all of them are ended, and those that had not been noted never are.
        """
        begun, now = time.monotonic(), time.time()
        failed = 0
        together = self._plan.what != CORE and min(self._plan.at_once, len(tasks)) > 1
        self._start = math.ceil(now + self._lead_s) if together else 0
        self._ready_at = []
        with (
            self.engine.together(tasks[0].turn),
            ThreadPoolExecutor(min(self._plan.at_once, len(tasks))) as pool,
        ):
            futures = [pool.submit(self.launch, task) for task in tasks]
            try:
                for future in _as_completed(futures):
                    made = future.result()
                    self.engine.note(encode(made))
                    failed += bool(made.failed)
                    yield result_of(made)
            except BaseException:
                self.engine.end_all()
                for future in futures:
                    future.cancel()
                raise
        if self._ready_at:
            self._lead_s = lead_s([at - now for at in self._ready_at], self._plan.at_once)
        kind = "pairs" if len(tasks[0].nodes) == 2 else f"{self._plan.what}s alone"
        print(
            f"round {tasks[0].turn}: {len(tasks)} {kind}, {tasks[0].contender.name}, "
            f"{time.monotonic() - begun:.1f} s, {failed} failed",
            flush=True,
        )

    def launch(self, task: Task) -> Launched:
        """Launch once and return what it left; what goes wrong is told, not raised."""
        order = self.first + task.number
        made = Launched(
            task.contender.name, task.turn, 127, Launch(order, time.time(), 0.0), nodes=task.nodes
        )
        try:
            made = self.engine.attempt(self._ready(task, order), order, task.turn, task.nodes)
            folder, hosts = launch_folder(self._job, order), self._hosts(task.nodes)
            said = [folder / ERRORS, folder / OUTPUT]
            if made.failed:
                raise _Failed(made.failed + last_words(said, hosts, was_ended=True))
            if made.status:
                raise _Failed(ending_of(made.status, said, hosts))
            return self._with_values(task, made)
        except (_Failed, ClustergateError, OSError, ValueError) as error:
            return replace(made, values={}, failed=str(error))

    def _ready(self, task: Task, order: int) -> Contender:
        """Return what is launched on the nodes of a task, or on its cores."""
        inputs, hosts = dict(task.contender.inputs), self._hosts(task.nodes)
        if not self._of_cores(task.nodes):
            listed = [HostNode(name, self._plan.ranks_per_node) for name in hosts]
            inputs[_HOSTFILE] = render(listed, self._plan.hostfile_dialect)
        by = {
            HOSTFILE: str(launch_folder(self._job, order) / _HOSTFILE),
            NODES: ",".join(hosts),
            CPUS: ",".join(name.removeprefix(CORE) for name in task.nodes),
            STATES: str(self._job / STATES_FOLDER),
            START: str(self._start),
        }
        return replace(
            task.contender,
            launcher=[_replaced(word, by) for word in task.contender.launcher],
            program=[_replaced(word, by) for word in task.contender.program],
            inputs=inputs,
        )

    def _with_values(self, task: Task, made: Launched) -> Launched:
        """Return a launch with its figures, if it proved to be the one asked for."""
        if task.contender.expected:
            rows = self._proven_rows(task, made)
        else:
            lines = list(lines_of(launch_folder(self._job, made.launch.order) / OUTPUT))
            host, _, ready_at = lines.pop(0).strip().partition(" ") if lines else ("", "", "")
            self._ready_at += [int(ready_at)] if ready_at.isdigit() else []
            if host.partition(".")[0] != self._hosts(task.nodes)[0].partition(".")[0]:
                raise _Failed(f"it ran on {host or 'an unknown host'}, not on {task.nodes[0]}")
            rows = rows_of(task.contender, lines)
        return replace(made, values=_VALUES[task.contender.name](rows))

    def _proven_rows(self, task: Task, made: Launched) -> list[Row]:
        on_hosts = replace(made, nodes=self._hosts(task.nodes))
        complaints, rows = read_planned(
            self._job,
            self._plan.nonce,
            task.contender,
            on_hosts,
            lambda lines, _: rows_of(task.contender, lines),
        )
        if self._of_cores(task.nodes):
            wanted = {int(name.removeprefix(CORE)) for name in task.nodes}
            proofs = read_proofs(proof_folder(self._job, made.launch.order))
            allowed = {cpu for p in proofs if p.at_init for cpu in p.at_init.affinity}
            if allowed != wanted:
                facts = {"ran": sorted(allowed), "wanted": sorted(wanted)}
                complaints.append(OTHER_CPUS(**facts))
        if complaints:
            raise _Failed(sentence_of(complaints))
        return rows

    def _of_cores(self, nodes: Sequence[str]) -> bool:
        """Tell whether a launch is on cores; on all of the node before them it is on the node."""
        return self._plan.what == CORE and nodes[0].startswith(CORE)

    def _hosts(self, nodes: Sequence[str]) -> tuple[str, ...]:
        return (os.uname().nodename,) if self._plan.what == CORE else tuple(nodes)


def rows_of(contender: Contender, lines: Iterable[str]) -> list[Row]:
    """Return the rows in the output of a contender.

    Raises :class:`~clustergate.core.model.OutputError` unless it is whole, and of its own call and
    input.
    """
    if contender.name == "pingpong":
        assert contender.expected is not None
        call = ImbExpectation(
            bytes=tuple(map(int, contender.inputs[SIZES_FILE].split())),
            arguments=tuple(contender.program[1:]),
            ranks=contender.expected.ranks,
        )
        return list(parse_imb(lines, expect=call))
    if contender.name == "hpl":
        problem = hpl_expectation(dat_file.parse(contender.inputs["HPL.dat"]).input)
        return list(parse_hpl(lines, expect=problem))
    return list(parse_peaks(lines))


_VALUES = {"pingpong": pingpong_values, "hpl": hpl_values, "peaks": peak_values}


class _Failed(Exception):
    """A launch was not the one asked for, or came to no good end."""


def _replaced(word: str, by: Mapping[str, str]) -> str:
    for what, text in by.items():
        word = word.replace(what, text)
    return word
