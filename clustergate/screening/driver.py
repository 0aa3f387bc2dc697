"""Carry out a screening: rounds of launches at once, each with a time limit. Runs inside the job.

Every result is noted as it comes, so that a job that was killed can be taken up again by the same
plan in the same folder. A launch that fails or takes too long is a result, too.
"""

from __future__ import annotations

import os
import subprocess
import threading
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
from clustergate.launching.ending import end, exit_status
from clustergate.launching.hostfiles import HostNode, fold, render
from clustergate.launching.node_failures import first_node_failure
from clustergate.launching.plan import ERRORS, OUTPUT, empty_home, environment_with, preloading
from clustergate.machine.configuration import described
from clustergate.machine.node import core_cpus
from clustergate.model import ClustergateError, Row
from clustergate.proof import provenance
from clustergate.proof.ranks import ProofExpectation, RankProof, check_proofs, read_proofs
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
    before = read_log(path)
    names = before.names or _names(plan)
    begun = time.monotonic()
    used = sum(r.seconds for r in before.results) / max(len(names), 1)
    with path.open("a", encoding="utf-8") as file:

        def note(kind: str, entry: object) -> None:
            file.write(line_of(kind, entry))
            file.flush()

        if not before.names:
            note("names", names)
        launcher = Launcher(plan, job)
        launcher.home, kept_out = empty_home(job, os.environ)
        for sentence in described(kept_out):
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
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._stopped = False
        self.first = 0
        self.home: list[str] = []

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
                self._end_all()
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
        folder = self._job / f"launch-{self.first + task.number:06d}"
        begun = time.monotonic()
        try:
            proofs = folder / "proof"
            proofs.mkdir(parents=True)
            nonce = f"{self._plan.nonce}-{folder.name}"
            status = self._run(task, folder, proofs, nonce)
            if status:
                raise _Failed(f"{status}{_last_words(folder, self._hosts(task.nodes))}")
            values, failed = self._values(task, folder, proofs, nonce), ""
        except (_Failed, ClustergateError, OSError, ValueError) as error:
            values, failed = {}, str(error)
        seconds = round(time.monotonic() - begun, 3)
        return Result(task.nodes, task.order.kind, task.turn, values, failed, seconds)

    def _run(self, task: Task, folder: Path, proofs: Path, nonce: str) -> str:
        """Run a launch to its end and return what is wrong with how it ended, empty if nothing."""
        order = task.order
        for name, text in order.inputs.items():
            (folder / name).write_text(text, encoding="utf-8")
        hostfile = folder / "hostfile"
        cores = self._plan.what == CORE and task.nodes[0].startswith(CORE)
        hosts = (os.uname().nodename,) if cores else task.nodes
        if not cores:
            listed = [HostNode(name, self._plan.slots) for name in hosts]
            hostfile.write_text(render(listed, self._plan.hostfile_dialect), encoding="utf-8")
        replaced = {
            HOSTFILE: str(hostfile),
            NODES: ",".join(hosts),
            CPUS: ",".join(name.removeprefix(CORE) for name in task.nodes),
        }
        environment = environment_with(self._plan.environment)
        proving = []
        if order.ranks:
            proving = [
                "env",
                *self.home,
                *preloading(self._plan.identity.proof_library, environment),
                f"CLUSTERGATE_PROOF_DIR={proofs}",
                f"CLUSTERGATE_PROOF_NONCE={nonce}",
            ]
        command = [
            _replaced(word, replaced) for word in (*order.launcher, *proving, *order.program)
        ]
        with (folder / OUTPUT).open("xb") as said, (folder / ERRORS).open("xb") as complained:
            with self._lock:
                if self._stopped:
                    return "it was not started any more"
                try:
                    process = subprocess.Popen(
                        command,
                        env=environment,
                        cwd=folder,
                        stdin=subprocess.DEVNULL,
                        stdout=said,
                        stderr=complained,
                    )
                except OSError as error:
                    return f"{command[0]} cannot be started: {error.strerror}"
                self._running.add(process)
            try:
                status = process.wait(order.seconds)
            except subprocess.TimeoutExpired:
                end(process)
                return f"it took longer than {order.seconds:g} s"
            finally:
                with self._lock:
                    self._running.discard(process)
        return f"it ended with exit status {status}" if status else ""

    def _end_all(self) -> None:
        with self._lock:
            self._stopped = True
            running = list(self._running)
        for process in running:
            process.terminate()

    def _values(self, task: Task, folder: Path, proofs: Path, nonce: str) -> dict[str, float]:
        """Return the figures of a launch that proved to be the one asked for."""
        order = task.order
        lines = (folder / OUTPUT).read_text(encoding="utf-8", errors="replace").splitlines(True)
        records = read_proofs(proofs)
        if order.ranks:
            self._prove(order, task.nodes, records, nonce)
        else:
            host = lines.pop(0).strip() if lines else ""
            if host.partition(".")[0] != self._hosts(task.nodes)[0].partition(".")[0]:
                raise _Failed(f"it ran on {host or 'an unknown host'}, not on {task.nodes[0]}")
        rows = rows_of(order, lines)
        if order.ranks and (told := "; ".join(provenance.complaints(records, nonce, rows, lines))):
            raise _Failed(told)
        return _VALUES[order.kind](rows)

    def _hosts(self, nodes: Sequence[str]) -> tuple[str, ...]:
        return (os.uname().nodename,) if self._plan.what == CORE else tuple(nodes)

    def _prove(
        self, order: Order, nodes: Sequence[str], proofs: Sequence[RankProof], nonce: str
    ) -> None:
        hosts = self._hosts(nodes)
        of_cores = nodes[0].startswith(CORE) and self._plan.what == CORE
        complaints = check_proofs(
            proofs,
            ProofExpectation(
                nonce=nonce,
                ranks=order.ranks,
                nodes=len(hosts),
                hosts=hosts,
                ranks_per_node=order.ranks // len(hosts),
                mpi_library=self._plan.identity.mpi_library,
                library_pattern=self._plan.identity.library_pattern,
                cores_per_rank=order.cores_per_rank,
                # The ranks of two cores share both, and the kernel gives one to each.
                own_cores=not of_cores,
                bound=order.bound,
                by_srun=self._plan.by_srun,
            ),
        )
        if of_cores:
            wanted = {int(name.removeprefix(CORE)) for name in nodes}
            allowed = {cpu for p in proofs if p.at_init for cpu in p.at_init.affinity}
            if allowed != wanted:
                complaints.append(f"it ran on the CPUs {sorted(allowed)}, not on {sorted(wanted)}")
        if complaints:
            raise _Failed("; ".join(complaints))


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
        name: (folder / name).read_text(encoding="utf-8", errors="replace").splitlines()
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
