"""Screen nodes while users work: submit, collect, decide, act, turn after turn.

All that is known is in the ledger: who begins anew goes on with the jobs that are there. A job is
noted before it is submitted, and has a name by which it is found again.
"""

from __future__ import annotations

import contextlib
import functools
import secrets
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from clustergate.core import store
from clustergate.core.files.shared import refresh_listing
from clustergate.core.model import A_DAY_S, ClustergateError, Say
from clustergate.core.notation import counted
from clustergate.core.reasons import Words
from clustergate.core.texts import duration
from clustergate.judge.history.node_states import keep_states
from clustergate.launch.dialects import srun_environment
from clustergate.launch.hostfiles import fold
from clustergate.launch.plan import NODES, PLAN
from clustergate.machine.fingerprint import Fingerprint
from clustergate.machine.fleet import product_of
from clustergate.run import actions
from clustergate.run.actions import HOLD, INTENT, UNDONE, Doer, Limits
from clustergate.sites.configs import preparation
from clustergate.sites.description import Partition, Stack
from clustergate.sites.schedulers import Scheduler
from clustergate.sites.schedulers.scheduler import NodeState, PinnedJob, QueuedJob
from clustergate.stacks.manifest import Manifest
from clustergate.stats.sequential import log_bound
from clustergate.studies.roll.decision import accusations, looks
from clustergate.studies.roll.ledger import Event
from clustergate.studies.roll.planner import Bounds, NextJob, next_jobs
from clustergate.studies.roll.state import KINDS, Book, Job, State
from clustergate.studies.screen import folder as screenings
from clustergate.studies.screen import planning
from clustergate.studies.screen.plan import is_screening, read_screened
from clustergate.studies.screen.switches import distance_of

JOBS = "jobs"
JOB_S = 300.0
"""The time limit of a job: its launches take some tens of seconds, and it fits into small gaps."""
# A job for an idle node that does not begin is cancelled: somebody was faster.
_TAKEN_S = 120.0
# A submitted job may not be listed at once.
_UNSEEN_S = 120.0
NICE = 10_000

NO_PINNED_JOBS = Words(
    "roll.no-jobs",
    "{scheduler} gives the suite no jobs on named nodes",
    cause="rolling knows those of Slurm",
    remedy="`clustergate screen` screens in one job",
)


@dataclass(frozen=True)
class Rolling:
    """What rolling is asked for; ``hold_after_s`` None where no node is kept from its users.

    ``doers`` are the actions that are done, others only said. ``false_alarms`` are granted to 1000
    nodes in a month.
    """

    bounds: Bounds = field(default_factory=Bounds)
    limits: Limits = field(default_factory=Limits)
    false_alarms: float = 1.0
    doers: Sequence[Doer] = ()
    hold_after_s: float | None = None
    nice: int = NICE

    @property
    def log_bound(self) -> float:
        """The logarithm of the evidence from which on a node is accused."""
        return log_bound(self.false_alarms, len(KINDS))


Write = Callable[[Path, Sequence[str]], None]
"""Writes the plan of a job on these nodes into its folder."""


class Roller:
    """Rolls a partition turn by turn.

    ``access`` are the scheduler's options of its jobs, ``words`` those that the user adds.
    ``write_plan`` writes what a job does; ``now`` tells the seconds since the epoch.
    """

    def __init__(
        self,
        book: Book,
        scheduler: Scheduler,
        partition: Partition,
        asked: Rolling,
        write_plan: Write,
        say: Say,
        words: Sequence[str] = (),
        fabric: Path = Path("/nonexistent"),
        now: Callable[[], float] = time.time,
    ) -> None:
        if not scheduler.pins_jobs:
            raise ClustergateError(NO_PINNED_JOBS(scheduler=scheduler.name))
        self._book, self._scheduler, self._partition = book, scheduler, partition
        self._asked, self._write_plan, self._say = asked, write_plan, say
        self._words, self._fabric, self._now = words, fabric, now
        self._folder = book.ledger.path.parent
        self._told: set[str] = set()
        self._size = 0

    @property
    def state(self) -> State:
        """What the ledger amounts to."""
        return self._book.state

    def turn(self) -> None:
        """Take in what ended, decide, act, and submit what comes next.

        Raises :class:`ClustergateError` where the scheduler does not answer, or the ledger cannot
        be written; nothing is lost then.
        """
        self._book.catch_up()
        if self._book.ledger.torn:
            self._once(str(self._book.ledger.torn))
        if not self.state.identity:
            self._note({"event": "begun", "ledger": secrets.token_hex(3)})
        nodes = self._nodes()
        self._size = len(nodes)
        queued = {one.name: one for one in self._scheduler.queued_jobs()}
        for job in [*self.state.jobs.values()]:
            self._follow(job, queued.get(self._name(job.key)))
        self._release()
        for event in [*accusations(self.state, self._now(), self._asked.false_alarms)]:
            self._note(event)
            self._say_accusation(event)
        self._act()
        self._submit(nodes)

    def stop(self) -> None:
        """Cancel what waits, by its number; what runs is taken in by the next start."""
        queued = {one.name: one for one in self._scheduler.queued_jobs()}
        for job in [*self.state.jobs.values()]:
            of = queued.get(self._name(job.key))
            if of and of.waits:
                self._cancel(job, of, "stopped")

    def summary(self) -> str:
        """Return in a line how far it is."""
        state, now = self.state, self._now()
        every_s = self._asked.bounds.every_s
        good = [one for one in state.nodes.values() if now - one.good_alone_and_paired <= every_s]
        lemons = [one for one in state.accusations.values() if not one.closed]
        on = sum(len(job.nodes) for job in state.jobs.values())
        return (
            f"screening {counted(on, 'node')} in {counted(len(state.jobs), 'job')}; {len(good)} of "
            f"{counted(len(state.nodes), 'node')} seen good within {duration(every_s)}; "
            f"{len(lemons)} accused"
        )

    # --- what ended -------------------------------------------------------------------------------

    def _follow(self, job: Job, queued: QueuedJob | None) -> None:
        age_s = self._now() - job.at
        if queued is not None:
            if not job.number:
                self._note({"event": "submitted", "job": job.key, "number": queued.number})
            if queued.waits and job.waits:
                self._hold(job, queued, age_s)
            elif queued.waits and age_s > _TAKEN_S:
                self._cancel(job, queued, "others were faster")
        elif job.number or age_s > _UNSEEN_S:
            self._collect(job)

    def _collect(self, job: Job) -> None:
        """Take in what a job left behind, and remove that unless it accuses somebody."""
        where = self._folder / JOBS / job.key
        refresh_listing(where)
        now = self._now()
        events: list[Event] = []
        why, seconds = "", 0.0
        try:
            results = read_screened(where)[1].results if is_screening(where) else ()
            states = keep_states(where / NODES, self._folder)
            hardware = {node: _hardware(state) for node, state in states.items()}
            virtual = any(_is_virtual(state) for state in states.values())
            fabric = self._partition.fabric
            far = distance_of(job.nodes, self._partition.scheduler, self._fabric, fabric)
            of_job = job.key, results, now, hardware, far, virtual
            events = [*looks(self.state, *of_job, self._asked.bounds.apart_s)]
            seconds = sum(one.seconds * len(one.nodes) for one in results)
            if not results:
                why = _last_line(where / "job.err")
        except (ClustergateError, OSError) as error:
            why = str(error)
        lost = not events
        ended = _ended(job.key, why, lost=lost, seconds=seconds, measured=not lost)
        self._note(*events, ended)
        if lost:
            self._say(f"{fold(job.nodes)} could not be screened: {why or 'the job left nothing'}")
        elif not any(event["slow"] for event in events):
            shutil.rmtree(where, ignore_errors=True)

    def _cancel(self, job: Job, queued: QueuedJob, why: str) -> None:
        self._scheduler.cancel([queued.number])
        self._note(_ended(job.key, why))
        shutil.rmtree(self._folder / JOBS / job.key, ignore_errors=True)

    # --- what is done -----------------------------------------------------------------------------

    def _say_accusation(self, event: Event) -> None:
        if event["event"] == "accused":
            self._say(f"{event['node']} is accused ({event['name']}): {event['why']}")
        else:
            self._say(f"{event['name']} no longer holds: {event['why']}")

    def _act(self) -> None:
        asked, now = self._asked, self._now()
        of = self._book, asked.doers, self._size, asked.limits, asked.log_bound
        actions.act(*of, now, self._say)
        would = actions.drain(self._scheduler)
        for one in self.state.accusations.values():
            if not one.closed and not asked.doers:
                self._once(f"{one.name}: --act drain would run `{would.plan(one)}`")

    def _hold(self, job: Job, queued: QueuedJob, age_s: float) -> None:
        """Let nobody else begin on the node of a job that waits too long, if that is asked for."""
        after_s, (node,), name = self._asked.hold_after_s, job.nodes, self._name(job.key)
        if after_s is None or age_s < after_s:
            return
        limits, now = self._asked.limits, self._now()
        if actions.why_not(self.state, job.key, node, HOLD, self._size, limits, now):
            return
        lines = self._scheduler.hold_lines(name, node, queued.number, A_DAY_S)

        own = job.key, HOLD, self._scheduler.name, node
        actions.note(self._book, *own, INTENT, now)
        outcome, said = actions.attempt(lambda: "; ".join(map(actions.ran, lines)))
        actions.note(self._book, *own, outcome, now, said)
        self._say(f"{node} takes no new jobs until it was screened: {outcome}: {said}")

    def _release(self) -> None:
        """Give back the nodes that were held for jobs which have ended."""
        for held in [*self.state.actions.values()]:
            if held.kind != HOLD or held.outcome == UNDONE or held.of in self.state.jobs:
                continue
            line = self._scheduler.release_line(self._name(held.of))
            outcome, said = actions.attempt(functools.partial(actions.ran, line), UNDONE)
            if outcome == UNDONE or self._scheduler.hold_is_gone in said:
                own = held.of, HOLD, held.target, held.node, UNDONE, self._now(), said
                actions.note(self._book, *own)
                self._say(f"{held.node} takes jobs again: {said}")
            else:
                # It ends by itself, too.
                self._once(f"{held.node} is still held: {said}")

    # --- what comes next --------------------------------------------------------------------------

    def _nodes(self) -> dict[str, NodeState]:
        """Return the partition's nodes that take jobs, each with its state."""
        states = self._scheduler.node_states()
        mine = self._scheduler.node_names(self._partition.access)
        return {name: states[name] for name in mine if name in states}

    def _submit(self, nodes: Mapping[str, NodeState]) -> None:
        usable = [name for name, one in nodes.items() if one.idle or one.busy]
        idle = [name for name in usable if nodes[name].idle]
        for name in usable:
            self.state.of(name)
        for job in next_jobs(self.state, idle, usable, self._asked.bounds, self._now()):
            self._start(job)

    def _start(self, job: NextJob) -> None:
        key = f"j{self.state.jobs_planned + 1}"
        where = self._folder / JOBS / key
        shutil.rmtree(where, ignore_errors=True)
        store.make_folder(where)
        self._note({"event": "planned", "job": key, "nodes": [*job.nodes], "waits": job.waits})
        self._write_plan(where, job.nodes)
        script = where / "job.sh"
        command = [sys.executable, "-I", "-m", "clustergate.studies.screen", str(where / PLAN)]
        lines = ["#!/bin/bash", *preparation(), f"exec {shlex.join(command)}"]
        store.write_text(script, "\n".join(lines) + "\n")
        pinned = PinnedJob(
            *(self._name(key), job.nodes, script, where),
            tasks_per_node=self._partition.cores_per_node,
            seconds=JOB_S,
            nice=self._asked.nice,
        )
        try:
            number = self._scheduler.submit(pinned, self._partition.access, self._words)
        except ClustergateError as error:
            self._note(_ended(key, str(error)))
            raise
        self._note({"event": "submitted", "job": key, "number": number})

    def _name(self, key: str) -> str:
        return f"roll-{self.state.identity}-{key}"

    def _note(self, *events: Event) -> None:
        self._book.note(*({"at": self._now(), **event} for event in events))

    def _once(self, sentence: str) -> None:
        if sentence not in self._told:
            self._told.add(sentence)
            self._say(sentence)


def _ended(
    key: str, why: str, *, lost: bool = False, measured: bool = False, seconds: float = 0.0
) -> Event:
    said = {"job": key, "why": why, "lost": lost, "measured": measured}
    return {"event": "ended", **said, "node_seconds": seconds}


def plan_writer(manifest: Manifest, stack: Stack, partition: Partition, pmi: str | None) -> Write:
    """Return what writes the plan of a job: each node alone, and the pair of two."""
    # What knows ReFrame's launchers is slow to load.
    from clustergate.launch import launchers

    bound = srun_environment(manifest.dialect) if pmi is not None else {}
    site = {
        **dict(partition.reframe.get("env_vars", ())),
        **dict(stack.reframe.get("env_vars", ())),
    }
    environment = {**site, **launchers.exports(manifest, 1), **bound}

    def write(where: Path, nodes: Sequence[str]) -> None:
        asked = planning.ScreenRequest(rounds=1, seconds=JOB_S / 2, hpl_seconds=0.0)
        plan = planning.plan_screening(
            *(manifest, partition, asked),
            nonce=secrets.token_hex(8),
            seed=secrets.randbits(31),
            environment=environment,
            pmi=pmi,
        )
        # Doubts are for later looks, and for others who are asked beside these.
        plan = replace(plan, nodes=tuple(nodes), foreseen=len(nodes), most_further=0)
        screenings.start_or_resume(where, plan)

    return write


def _hardware(state: Fingerprint) -> str:
    return " ".join(str(value or "") for value in product_of(state)).strip()


def _is_virtual(state: Fingerprint) -> bool:
    return bool(state.get("hardware", {}).get("virtual_machine"))


def _last_line(path: Path) -> str:
    with contextlib.suppress(OSError):
        lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1] if lines else ""
    return ""
