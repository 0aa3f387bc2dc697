"""The plan of a screening, and what its log says: those of any job, and a little more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from clustergate.launch.plan import (
    LOG,
    PLAN,
    PLAN_DAMAGED_LOG,
    Contender,
    JobLog,
    Launched,
    PlanError,
    read_log,
    read_plan,
)
from clustergate.launch.plan import Plan as JobPlan
from clustergate.machine.configuration import described
from clustergate.studies.screen.measures import ALONE, MEASURES, Result

HOSTFILE, NODES, CPUS, STATES = "{hostfile}", "{nodes}", "{cpus}", "{states}"
"""What stands in a command for the hostfile, the nodes (comma between) and the CPUs of a launch,
and for the folder in which nodes say what they are like."""

START = "{start}"
"""What stands there for the second (since the epoch) at which nodes begin to measure together."""

EACH, TWO = "each", "two"
"""Where a contender is launched: on each node (or core), on two."""

_NODES_OF = {measure.kind: 1 if measure in ALONE else 2 for measure in MEASURES.values()}

AT_ONCE = 256
"""Launches at a time, where nobody says otherwise: each is a process of the job's first node."""


def named_by(partition: str, stack: str) -> str:
    """Return how a plan names who screens, so that later screenings find those of the same."""
    return f"{partition} with {stack}"


@dataclass(frozen=True)
class Plan(JobPlan):
    """All that the job of a screening does.

    ``system`` is screened, ``by`` whom says :func:`named_by`. ``nodes`` are names; of a
    ``scheduled`` job only those that were given to it, all of them where none are named.
    ``foreseen`` is how many nodes there should be, ``scheduler`` that of their partition.
    ``switches`` are the switch of each node as far as it is known, ``no_topology`` why that did
    not say it, ``excluded`` why others take no part. ``what`` says what is screened: nodes, or the
    cores of one. The contenders' names say how their output is read: ``peaks``, ``hpl`` or
    ``pingpong``. ``rounds`` None stands for all pairs. The budget's ``seconds`` are what all of it
    may take; ``most_further`` is how often doubts may be measured again. ``at_once`` bounds the
    launches at a time, ``launches`` are the fewest of each node's raw kernels, and with others.
    A ``quick`` one launches once on each node.
    """

    system: str = ""
    by: str = ""
    nodes: Sequence[str] = ()
    what: str = "node"
    scheduled: bool = False
    foreseen: int = 0
    rounds: int | None = None
    most_further: int = 60
    at_once: int = AT_ONCE
    launches: int = 0
    scheduler: str = ""
    switches: Mapping[str, str] = field(default_factory=dict)
    no_topology: str = ""
    excluded: Mapping[str, str] = field(default_factory=dict)
    quick: bool = False

    def launched(self, on: str) -> list[Contender]:
        """Return what is launched there."""
        return [contender for contender in self.contenders if contender.on == on]

    @property
    def pair(self) -> Contender | None:
        """What is launched on two nodes, if anything is."""
        return next(iter(self.launched(TWO)), None)

    def switch_of(self, names: Sequence[str]) -> dict[str, str] | None:
        """Return the switch of each of these nodes, None where no two are known to share one.

        A node whose switch is not known has one of its own, which is never blamed.
        """
        known = self._known_switch_of(names)
        if max(Counter(known.values()).values(), default=0) < 2:
            return None
        return {name: known.get(name, f"unknown, of {name}") for name in names}

    def unplaced(self, names: Sequence[str]) -> list[str]:
        """Return the nodes whose switch is not known, none where no node's is asked about."""
        known = self._known_switch_of(names)
        asked = self.switches or self.no_topology
        return [name for name in names if name not in known] if asked else []

    def _known_switch_of(self, names: Sequence[str]) -> dict[str, str]:
        # The fabric knows nodes by their short names.
        named = (
            (name, name if name in self.switches else name.partition(".")[0]) for name in names
        )
        return {name: self.switches[known] for name, known in named if known in self.switches}


@dataclass(frozen=True)
class Log:
    """What was noted so far: who was screened, what each launch left behind, how it went.

    ``notes`` are sentences, such as why not all rounds were done; ``ended`` tells that the driver
    came to its end. ``span_s`` lies between the first launch and the last.
    """

    names: tuple[str, ...] = ()
    results: tuple[Result, ...] = ()
    notes: tuple[str, ...] = ()
    ended: bool = False
    span_s: float = 0.0


def result_of(made: Launched) -> Result:
    """Return what a launch left behind."""
    seconds = round(made.launch.seconds, 3)
    return Result(made.nodes, made.contender, made.turn, made.values, made.failed, seconds)


def log_of(job: JobLog) -> Log:
    """Return what the log of a screening's job says."""
    started = [made.launch.started for made in job.launches]
    return Log(
        job.names,
        tuple(map(result_of, job.launches)),
        (*described(job.kept_out), *job.notes),
        job.ended,
        max(started, default=0.0) - min(started, default=0.0),
    )


def log_in(folder: Path) -> Log:
    """Return the log in a folder, if it is of launches that a screening makes.

    Raises :class:`~clustergate.launch.plan.PlanError` for others and for a damaged log.
    """
    log = log_of(read_log(folder))
    for result in log.results:
        if _NODES_OF.get(result.kind) != len(result.nodes):
            why = f"no screening launches {result.kind} on {', '.join(result.nodes) or 'no node'}"
            raise PlanError(PLAN_DAMAGED_LOG(at=folder / LOG, why=why))
    return log


def is_screening(folder: Path) -> bool:
    """Tell whether a screening was planned in a folder."""
    return (folder / PLAN).is_file()


def read_screened(folder: Path) -> tuple[Plan, Log]:
    """Return the plan and the log of a screening.

    Raises :class:`~clustergate.launch.plan.PlanError` for a damaged file.
    """
    return read_plan(folder / PLAN, Plan), log_in(folder)
