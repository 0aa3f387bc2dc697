"""Launch what is planned, again and again, until it is enough. Runs inside the job.

It starts on the job's first node, where a plain launch would have been, and imports little: its
start is part of what the suite costs. The :mod:`engine <clustergate.launch.engine>` launches and
notes what happened.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import importlib
import os
import random
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from clustergate.core.model import ClustergateError, Launch, Sample
from clustergate.core.notation import printable
from clustergate.core.reasons import Words
from clustergate.launch.allocation import allocated_hosts, hostfile_text
from clustergate.launch.disturbance import without_moved_cores
from clustergate.launch.ending import exit_status
from clustergate.launch.engine import Engine
from clustergate.launch.node_measurements import NodeMeasurements
from clustergate.launch.plan import (
    ERRORS,
    LOG,
    OUTPUT,
    Contender,
    JobLog,
    Launched,
    Plan,
    environment_with,
    launch_folder,
    output_in,
    proof_folder,
    read_plan,
)
from clustergate.launch.proof.ranks import ProofError, read_proofs
from clustergate.launch.stopping import is_enough
from clustergate.machine.configuration import (
    ends_of,
    is_beside,
    is_of_a_node,
    linked_files,
    mapped_files,
    site_files,
)

_LAST_LINES = 20
ASIDE_ENDED = "ended with exit status"
"""What is said on standard error of a program beside the launches that failed."""


class _Failed(Exception):
    """A program ended with that exit status, and with it the job."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


def main(arguments: Sequence[str]) -> int:
    """Carry out the plan in the file named first, beside it, and return the job's exit status.

    That is the status of the first launch that failed, after which no other is made, or 128 and the
    number of the signal that ended it.
    """
    return exit_status(lambda: _carry_out(Path(arguments[0]).absolute()))


def _carry_out(path: Path) -> int:
    try:
        Driver(read_plan(path, Plan), path.parent).run()
    except _Failed as failed:
        return failed.status if failed.status > 0 else 128 - failed.status
    return 0


@contextlib.contextmanager
def cores_held(kept_in: str) -> Iterator[None]:
    """Wait until no other job of the run launches on this node, and keep the others waiting.

    ``kept_in`` is the folder that the jobs of a run share, empty where they share none. On a file
    system without locks nobody waits, and launches that overlap are told by their times.
    """
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):
            if kept_in:
                path = Path(kept_in).with_name(f"cores-of-{socket.gethostname()}.lock")
                fcntl.flock(held.enter_context(path.open("w")), fcntl.LOCK_EX)
        yield


FOLDER_IN_USE = Words(
    "job.folder-in-use",
    "{path} exists already, so this folder belongs to another run",
    remedy="use an empty folder",
)


class Driver:
    """A plan and the folder of the job that carries it out."""

    def __init__(self, plan: Plan, job: Path) -> None:
        self._plan = plan
        self._job = job
        self._launches: list[Launched] = []
        self._engine = Engine(job, plan.nonce)
        self._samples: dict[int, tuple[Sample, ...]] = {}
        self._surveyed: set[str] = set()
        self._near_ns: float | None = None
        self._decider = _named(plan.decider)(**plan.deciding) if plan.decider else None

    def run(self) -> None:
        """Carry out the plan.

        Raises :class:`ClustergateError` when it was carried out in this folder before, and what
        :meth:`Engine.launch` raises.
        """
        if (self._job / LOG).exists():
            raise ClustergateError(FOLDER_IN_USE(path=self._job / LOG))
        self._engine.begin_log()
        self._note_nodes()
        self._engine.keep_home_out()
        plan, first = self._plan, self._plan.contenders[0]
        ranks = first.patience.ranks if first.patience else 1
        nodes = -(-ranks // max(plan.ranks_per_node, 1))
        self._engine.note_nodes(plan.on_each_node, first.environment, nodes)
        asides = NodeMeasurements(self._plan, self._job, self._aside)
        asides.before()
        self._near_ns = asides.near_ns
        environment = self._plan.contenders[0].environment
        self._engine.watch_distance(self._plan.core_distance, environment, self._near_ns)
        shuffle = random.Random(self._plan.seed).shuffle
        turn = 0
        while not self._is_enough():
            contenders = list(map(self._of_the_undecided, self._plan.contenders))
            shuffle(contenders)
            for contender in contenders:
                self._launch(contender, turn)
            turn += 1
        asides.after()
        asides.keep_distances(ns for made in self._launches for ns in made.distances_ns[-1:])

    def _of_the_undecided(self, contender: Contender) -> Contender:
        """Return a contender without the parts of its program that are decided."""
        decided = self._decider.without if self._decider else ()
        without = tuple(part for part in self._plan.parts if part in decided)
        program = [word for word in contender.program if word not in without]
        return dataclasses.replace(contender, program=program, without=without)

    def _is_decided(self, turns: Sequence[int]) -> bool:
        """Tell whether the rounds so far decided everything."""
        if self._decider is None or not turns:
            return False
        sides = []
        for contender in self._plan.contenders:
            mine = [made for made in self._launches if made.contender == contender.name]
            turn_of = {made.launch.order: made.turn for made in mine}
            try:
                sides.append(([s for order in turn_of for s in self._samples_of(order)], turn_of))
            except (ClustergateError, OSError):
                # Whoever judges the outputs says what is wrong with them.
                return False
        self._decider.look_at(sides, turns)
        return bool(self._decider.enough)

    def _note_nodes(self) -> None:
        hosts = allocated_hosts(os.environ)
        if hosts is not None:
            self._engine.note({"hosts": hosts})
        plan = self._plan
        if plan.hostfile:
            text = hostfile_text(hosts, plan.ranks_per_node, plan.hostfile_dialect)
            Path(plan.hostfile).write_text(text, encoding="utf-8")

    def _is_enough(self) -> bool:
        if self._is_decided(sorted({made.turn for made in self._launches})):
            return True
        log = JobLog(self._launches, near_ns=self._near_ns)
        launches = without_moved_cores(
            [made.launch for made in log.launches], log.nearest_of_run_ns
        )
        contenders: dict[str, list[Launch]] = {x.name: [] for x in self._plan.contenders}
        for made, launch in zip(self._launches, launches, strict=True):
            contenders[made.contender].append(launch)
        turns = list(zip(*contenders.values(), strict=True))
        return is_enough(
            self._plan.budget,
            [sum(launch.seconds for launch in turn) for turn in turns],
            sum(not any(launch.disturbed for launch in turn) for turn in turns),
            lambda: self._widest(contenders),
        )

    def _widest(self, contenders: Mapping[str, Sequence[Launch]]) -> float | None:
        """Return the widest interval of any figure; None when the outputs do not yield it."""
        # Only now, because it takes as long to import as everything else here together.
        from clustergate.launch.estimation import widest_interval

        try:
            widths = [
                widest_interval([s for x in launches for s in self._samples_of(x.order)], launches)
                for launches in contenders.values()
            ]
        except (ClustergateError, OSError):
            # Whoever judges the outputs says what is wrong with them; more launches do not help.
            return 0.0
        known = [width for width in widths if width is not None]
        return max(known) if len(known) == len(widths) else None

    def _samples_of(self, order: int) -> tuple[Sample, ...]:
        if order not in self._samples:
            from clustergate.benchmarks.registry import every_metric
            from clustergate.core.figures import samples_of

            reader = _named(self._plan.reader)
            path = output_in(launch_folder(self._job, order), self._plan.contenders[0].output)
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
            self._samples[order] = samples_of(reader(lines), every_metric(), order)
        return self._samples[order]

    def _launch(self, contender: Contender, turn: int) -> None:
        # Of programs in turn every round counts, whatever disturbed it.
        near = not self._plan.budget.spend_all
        with cores_held(self._plan.kept_in):
            launched = self._engine.launch(contender, len(self._launches), turn, near=near)
        self._launches.append(launched)
        order = launched.launch.order
        self._survey(contender, order)
        if launched.status:
            # Where people look for what a failed launch said last.
            folder = launch_folder(self._job, order)
            sys.stdout.write(_tail(folder / OUTPUT))
            sys.stderr.write(_tail(folder / ERRORS))
            raise _Failed(launched.status)

    def _survey(self, contender: Contender, order: int) -> None:
        """Note what a contender's first launch has mapped, and the site's files for it."""
        if contender.name in self._surveyed:
            return
        self._surveyed.add(contender.name)
        try:
            proofs = read_proofs(proof_folder(self._job, order))
            mapped = {path: None for proof in proofs for path in proof.objects}
        except ProofError:
            # Whoever judges the proofs says so.
            mapped = {}
        if not mapped and (program := next((w for w in contender.program if w[0] == "/"), "")):
            # It ended before a rank told what it has, which may be why.
            environment = environment_with(contender.environment, os.environ)
            mapped = dict.fromkeys(linked_files(program, environment))
        of_site = site_files([*contender.launcher[:1], *mapped])
        files = [dataclasses.asdict(file) for file in of_site]
        note: dict[str, Any] = {"contender": contender.name, "site_files": files}
        note["mapped"] = seen = mapped_files(mapped)
        # To read from all nodes what they share takes long: of that its size and both ends.
        own = {path: sha256 for path, sha256 in seen.items() if is_of_a_node(path)}
        shared = {path: ends_of(path) for path in seen if not (path in own or is_beside(path))}
        if words := self._plan.on_each_node:
            nodes = words, contender.environment
            note["unlike"] = self._engine.unlike(*nodes, own, shared, order)
        self._engine.note(note)

    def _aside(self, command: Sequence[str], output: str) -> str:
        """Run what is aside in the environment of the first contender; return what it said."""
        with cores_held(self._plan.kept_in):
            status = self._engine.run_aside(command, self._plan.contenders[0].environment, output)
        if status:
            sys.stderr.write(_tail(self._job / f"{output}.err"))
            print(f"{command[0]} {ASIDE_ENDED} {status}", file=sys.stderr)
            raise _Failed(status)
        return (self._job / output).read_text(encoding="utf-8", errors="replace")


def _named(text: str) -> Any:
    """Return what is named ``module:name``."""
    module, _, name = text.partition(":")
    return getattr(importlib.import_module(module), name)


def _tail(path: Path) -> str:
    # ReFrame prints the job's output where the job failed.
    text = printable(path.read_text(encoding="utf-8", errors="replace"))
    return "".join(text.splitlines(True)[-_LAST_LINES:])
