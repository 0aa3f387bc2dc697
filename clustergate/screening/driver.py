"""Carry out a screening: rounds of launches at once, each with a time limit. Runs inside the job.

Every result is noted as it comes, so that a job that was killed can be taken up again by the same
plan in the same folder. A launch that fails or takes too long is a result, too.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from clustergate.benchmarks.hpl.output import parse_hpl
from clustergate.benchmarks.imb.command import SIZES_FILE
from clustergate.benchmarks.imb.output import ImbExpectation, parse_imb
from clustergate.benchmarks.sizing import hpl_expectation, parse_hpl_dat
from clustergate.kernels.peaks import parse_peaks
from clustergate.launching.allocation import allocated_hosts
from clustergate.launching.ending import exit_status
from clustergate.launching.engine import Engine, LaunchError
from clustergate.launching.hostfiles import HostNode, fold, render
from clustergate.launching.node_failures import first_node_failure
from clustergate.launching.plan import (
    ERRORS,
    LOG,
    OUTPUT,
    Contender,
    launch_folder,
    proof_folder,
)
from clustergate.launching.reading import lines_of, read_launch
from clustergate.machine.configuration import described
from clustergate.machine.node import core_cpus
from clustergate.model import ClustergateError, Row
from clustergate.proof.ranks import ProofExpectation, read_proofs
from clustergate.screening.campaign import Campaign, Task
from clustergate.screening.measures import Result, hpl_values, peak_values, pingpong_values
from clustergate.screening.plan import (
    CPUS,
    HOSTFILE,
    NODES,
    RESULTS,
    Order,
    Plan,
    line_of,
    read_log,
    read_plan,
    whole_lines,
)

CORE = "core"
_HOSTFILE = "hostfile"


class DriverError(ClustergateError):
    """A screening cannot be carried out here."""


def main(arguments: Sequence[str]) -> int:
    """Carry out the plan in the file named first, beside it; return the job's exit status.

    It is 0 whatever was found: findings are results. 128 and the number of a signal that ended it,
    2 when nothing could be screened.
    """
    return exit_status(lambda: _carried_out(Path(arguments[0]).absolute()))


def _carried_out(path: Path) -> int:
    carry_out(read_plan(path), path.parent)
    return 0


def carry_out(plan: Plan, job: Path) -> None:
    """Screen what the plan names, or go on where an earlier job of this folder was stopped.

    Raises :class:`DriverError` when there is nobody to screen.
    """
    path = job / RESULTS
    whole_lines(path)
    whole_lines(job / LOG)
    before = read_log(path)
    names = before.names or _names(plan)
    begun = time.monotonic()
    used = sum(r.seconds for r in before.results) / max(len(names), 1)
    with path.open("a", encoding="utf-8") as file, (job / LOG).open("a", encoding="utf-8") as log:

        def note(kind: str, entry: object) -> None:
            file.write(line_of(kind, entry))
            file.flush()

        if not before.names:
            note("names", names)
        launcher = Launcher(plan, job)
        launcher.engine.note_in(log)
        for sentence in described(launcher.engine.keep_home_out()):
            if sentence not in before.notes:
                note("note", sentence)
        # A resumed job makes folders of its own: what lies there was cut off.
        launcher.first = 1 + max(
            (int(p.name.rpartition("-")[2]) for p in job.glob("launch-*")), default=-1
        )
        for number, order in enumerate(plan.whole):
            if number >= len(before.whole):
                note("whole", launcher.launch(Task(order, (os.uname().nodename,), number, number)))
        launcher.first += len(plan.whole)
        campaign = Campaign(
            plan,
            names,
            before.results,
            launcher.batch,
            note,
            lambda: used + time.monotonic() - begun,
        )
        campaign.run()
        note("ended", True)


def _names(plan: Plan) -> tuple[str, ...]:
    if plan.what == CORE:
        return tuple(f"{CORE}{cpu}" for cpu in core_cpus())
    if not plan.scheduled:
        return tuple(plan.nodes)
    # Nodes that were not given to this job may be working for somebody else.
    given = allocated_hosts(os.environ)
    if given is None:
        raise DriverError("no scheduler names the nodes of this job (Slurm, PBS and LSF would)")
    wanted = [n for n in given if n not in plan.excluded and (not plan.nodes or n in plan.nodes)]
    if not wanted:
        raise DriverError(f"none of the nodes to screen was given to this job ({fold(given)})")
    return tuple(wanted)


class Launcher:
    """Starts what is planned, each launch in a folder of its own, and reads what it left."""

    def __init__(self, plan: Plan, job: Path) -> None:
        self._plan = plan
        self._job = job
        # What this node goes through tells nothing of launches on others, and reading it for all
        # of them at once would disturb the launch on this one.
        self.engine = Engine(job, plan.nonce, notes_node=False)
        self.first = 0

    def batch(self, tasks: Sequence[Task]) -> Iterator[Result]:
        """Run launches at once and yield their results as they come; end them all on an error."""
        begun = time.monotonic()
        failed = 0
        with ThreadPoolExecutor(min(self._plan.at_once, len(tasks))) as pool:
            futures = [pool.submit(self.launch, task) for task in tasks]
            try:
                for future in as_completed(futures):
                    result = future.result()
                    failed += bool(result.failed)
                    yield result
            except BaseException:
                self.engine.end_all()
                for future in futures:
                    future.cancel()
                raise
        kind = "pairs" if len(tasks[0].nodes) == 2 else f"{self._plan.what}s alone"
        print(
            f"round {tasks[0].turn}: {len(tasks)} {kind}, {tasks[0].order.kind}, "
            f"{time.monotonic() - begun:.1f} s, {failed} failed",
            flush=True,
        )

    def launch(self, task: Task) -> Result:
        """Launch once and return what it left; what goes wrong is told, not raised."""
        order = self.first + task.number
        begun = time.monotonic()
        try:
            self._run(task, order)
            values, failed = self._values(task, order), ""
        except (_Failed, ClustergateError, OSError, ValueError) as error:
            values, failed = {}, str(error)
        seconds = round(time.monotonic() - begun, 3)
        return Result(task.nodes, task.order.kind, task.turn, values, failed, seconds)

    def _run(self, task: Task, order: int) -> None:
        folder = launch_folder(self._job, order)
        contender = self._contender(task, folder / _HOSTFILE)
        try:
            status = self.engine.launch(contender, order, task.turn).status
        except LaunchError as error:
            told = str(error)
        else:
            told = f"it ended with exit status {status}" if status else ""
        if told:
            raise _Failed(f"{told}{_last_words(folder, self._hosts(task.nodes))}")

    def _contender(self, task: Task, hostfile: Path) -> Contender:
        """Return what is launched on the nodes of a task, or on its cores."""
        order, inputs, hosts = task.order, dict(task.order.inputs), self._hosts(task.nodes)
        if not self._of_cores(task.nodes):
            listed = [HostNode(name, self._plan.slots) for name in hosts]
            inputs[_HOSTFILE] = render(listed, self._plan.hostfile_dialect)
        by = {
            HOSTFILE: str(hostfile),
            NODES: ",".join(hosts),
            CPUS: ",".join(name.removeprefix(CORE) for name in task.nodes),
        }
        return Contender(
            name=order.kind,
            launcher=[_replaced(word, by) for word in order.launcher],
            program=[_replaced(word, by) for word in order.program],
            proof_library=self._plan.identity.proof_library,
            environment=self._plan.environment,
            inputs=inputs,
            proves=bool(order.ranks),
            seconds=order.seconds,
        )

    def _values(self, task: Task, order: int) -> dict[str, float]:
        """Return the figures of a launch that proved to be the one asked for."""
        if task.order.ranks:
            rows = self._proven_rows(task, order)
        else:
            lines = list(lines_of(launch_folder(self._job, order) / OUTPUT))
            host = lines.pop(0).strip() if lines else ""
            if host.partition(".")[0] != self._hosts(task.nodes)[0].partition(".")[0]:
                raise _Failed(f"it ran on {host or 'an unknown host'}, not on {task.nodes[0]}")
            rows = rows_of(task.order, lines)
        return _VALUES[task.order.kind](rows)

    def _proven_rows(self, task: Task, order: int) -> list[Row]:
        hosts, of_cores = self._hosts(task.nodes), self._of_cores(task.nodes)
        expected = ProofExpectation(
            nonce=self.engine.nonce_of(order),
            ranks=task.order.ranks,
            nodes=len(hosts),
            hosts=hosts,
            ranks_per_node=task.order.ranks // len(hosts),
            mpi_library=self._plan.identity.mpi_library,
            library_pattern=self._plan.identity.library_pattern,
            cores_per_rank=task.order.cores_per_rank,
            # The ranks of two cores share both, and the kernel gives one to each.
            own_cores=not of_cores,
            bound=task.order.bound,
            by_srun=self._plan.by_srun,
        )
        complaints, rows = read_launch(
            self._job, order, expected, lambda lines, _: rows_of(task.order, lines)
        )
        if of_cores:
            wanted = {int(name.removeprefix(CORE)) for name in task.nodes}
            proofs = read_proofs(proof_folder(self._job, order))
            allowed = {cpu for p in proofs if p.at_init for cpu in p.at_init.affinity}
            if allowed != wanted:
                complaints.append(f"it ran on the CPUs {sorted(allowed)}, not on {sorted(wanted)}")
        if complaints:
            raise _Failed("; ".join(complaints))
        return rows

    def _of_cores(self, nodes: Sequence[str]) -> bool:
        """Tell whether a launch is on cores; on all of the node before them it is on the node."""
        return self._plan.what == CORE and nodes[0].startswith(CORE)

    def _hosts(self, nodes: Sequence[str]) -> tuple[str, ...]:
        return (os.uname().nodename,) if self._plan.what == CORE else tuple(nodes)


def rows_of(order: Order, lines: Iterable[str]) -> list[Row]:
    """Return the rows in the output of an order.

    Raises :class:`~clustergate.model.OutputError` unless it is whole, and of the order's own call
    and input.
    """
    if order.kind == "pingpong":
        call = ImbExpectation(
            bytes=tuple(map(int, order.inputs[SIZES_FILE].split())),
            arguments=tuple(order.program[1:]),
            ranks=order.ranks,
        )
        return list(parse_imb(lines, expect=call))
    if order.kind == "hpl":
        problem = hpl_expectation(parse_hpl_dat(order.inputs["HPL.dat"]))
        return list(parse_hpl(lines, expect=problem))
    return list(parse_peaks(lines))


_VALUES = {"pingpong": pingpong_values, "hpl": hpl_values, "peaks": peak_values}


class _Failed(Exception):
    """A launch was not the one asked for, or came to no good end."""


def _replaced(word: str, by: Mapping[str, str]) -> str:
    for what, text in by.items():
        word = word.replace(what, text)
    return word


def _last_words(folder: Path, hosts: Sequence[str]) -> str:
    """Return what a failed launch said of its nodes, else the last that it said."""
    said = {
        name: [*lines_of(folder / name)] if (folder / name).exists() else []
        for name in (ERRORS, OUTPUT)
    }
    for lines in said.values():
        if first := first_node_failure(lines, hosts):
            return f"; it said: {first}"
    for lines in said.values():
        spoken = [line.strip() for line in lines if line.strip()]
        if spoken:
            return f"; its last words: {spoken[-1][:200]}"
    return ""
