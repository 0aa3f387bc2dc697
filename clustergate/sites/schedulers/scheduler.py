"""What a scheduler tells of its nodes and jobs, and what its jobs are given."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from clustergate.core.model import ClustergateError, Launch
from clustergate.core.reasons import Reason, Words
from clustergate.launch.hostfiles import expand, fold
from clustergate.machine.power import Power
from clustergate.machine.processes import capture
from clustergate.sites.schedulers.job_options import JobOptions
from clustergate.sites.schedulers.scanned import Scanned

SECONDS = 10.0
"""What a scheduler's command may take: a server that is down must not hold up the verdict."""
SHORTEST_S = 60.0
"""The shortest time limit that a job is submitted with: Slurm counts in whole minutes."""
DEFAULT = ""
"""Stands for the queue that a job goes to that names none."""
_MOST = 5
# Of Slurm and Flux, alone or beside other options in one word; exclusive to a user is shared.
_EXCLUSIVE = re.compile(r"(?:^|\s)--exclusive(?=\s|$)")


@dataclass(frozen=True)
class Limits:
    """The longest time in seconds and the most nodes of a job; None for what nobody limits.

    ``why`` is what gives a job no more time. ``until`` is when all jobs end, in seconds since the
    epoch, where the end of a reservation is what leaves a job ``seconds``.
    """

    seconds: float | None = None
    nodes: int | None = None
    until: float | None = None
    why: Reason | None = field(default=None, compare=False)


class NodeGroup(NamedTuple):
    """How many nodes a scheduler has of so many cores, their names as a list such as ``n[1-4]``.

    With them come their features, and why it does not use them, empty where it does.
    """

    nodes: int
    cores: int
    names: str
    features: str
    causes: str


@dataclass(frozen=True)
class PinnedJob:
    """A job on whole nodes that are named; ``nice`` is by how much others go before it."""

    name: str
    nodes: tuple[str, ...]
    script: Path
    folder: Path
    tasks_per_node: int
    seconds: float
    nice: int


class QueuedJob(NamedTuple):
    """A job that waits or runs: its number, its name, why it waits (empty where it runs)."""

    number: str
    name: str
    waits: str


class NodeState(NamedTuple):
    """Whether a node has no job, has jobs, or takes none; and the reason that somebody gave.

    One that is down, or in a reservation, is none of these.
    """

    idle: bool
    busy: bool
    drained: bool
    reason: str


@dataclass
class Queue:
    """The nodes of a queue; Slurm calls it a partition."""

    groups: list[NodeGroup] = field(default_factory=list)

    @classmethod
    def of(cls, nodes: Iterable[tuple[str, int, str]]) -> Queue:
        """Return a queue of nodes, each with its cores and why it is not used, alike ones as one.

        Raises :class:`HostfileError` for what is no name of a node.
        """
        alike: dict[tuple[int, str], list[str]] = {}
        for name, cores, causes in nodes:
            alike.setdefault((cores, causes), []).append(name)
        return cls(
            [
                NodeGroup(len(names), cores, fold(names), "", causes)
                for (cores, causes), names in alike.items()
            ]
        )

    @property
    def by_cores(self) -> Counter[int]:
        """How many nodes it has of how many cores."""
        counts: Counter[int] = Counter()
        for group in self.groups:
            counts[group.cores] += group.nodes
        return counts

    @property
    def unused(self) -> dict[str, str]:
        """Why the scheduler does not use some nodes, by lists of them."""
        return {group.names: group.causes for group in self.groups if group.causes}


Queues = Mapping[str, Queue]
"""A scheduler's queues by their names."""


class Scheduler:
    """A scheduler that ReFrame submits to, and of which nothing more is known.

    Each one that the suite knows overrides what it tells; what it does not tell is not asked for.
    ``access`` is that of a partition of the site config: options of the scheduler's submit command.
    """

    reframe_names: tuple[str, ...] = ()
    """What ReFrame calls it in a partition's ``scheduler``."""
    command = ""
    """A command that is on PATH wherever it is installed."""
    no_system = ""
    """What that command says on a machine that belongs to no system of it."""
    is_batch = True
    """Whether jobs wait in its queue and run on nodes that it chooses."""
    pins_jobs = False
    """Whether the suite can submit jobs to named nodes by itself."""
    lists_nodes = False
    """Whether :meth:`queues` and :meth:`node_names` tell its nodes."""
    takes_free_nodes = False
    """Whether ReFrame can ask it for all nodes that are free."""
    counts_threads = False
    """Whether what it calls the cores of a node may be their hardware threads."""
    hold_is_gone = ""
    """What :meth:`release_line` says of what is not held any more."""
    drain_file = ""
    """The file of a screening for :meth:`drain_line`, empty for a scheduler without."""
    scans: tuple[tuple[str, ...], ...] = ()
    """The commands that tell nodes and queues to `site scan`, where it can read them."""
    no_answer: Words[...] | None = None
    """The reason when it cannot be asked."""
    queue_word = "queue"
    """What it calls a queue."""
    lists_sizes = lists_names = narrows = ""
    """What tells an operator the sizes and the names of its nodes, and how `access` names some."""
    lists_unused = ""
    """The command that lists the nodes that it does not use."""
    most_nodes = "what it gives a job at most"
    """What an operator raises to give a job more nodes."""
    job_options: frozenset[str] = frozenset()
    """The fields of :class:`JobOptions` that its jobs can be submitted with."""
    reframe_options: Mapping[str, Any] = {}
    """ReFrame's ``sched_options`` of its partitions, where the site config sets none."""

    def __init__(self, name: str) -> None:
        self.name = name

    # --- limits, nodes, energy, and the queue ---

    def limits(self, access: Sequence[str]) -> Limits:
        """Return what a job may take; nothing is limited where the scheduler does not say."""
        return Limits()

    def queues(self, seconds: float = SECONDS) -> Queues:
        """Return the nodes of each queue.

        Raises :class:`ClustergateError` with :attr:`no_answer` if it does not answer in time.
        """
        return {}

    def node_names(self, access: Sequence[str] = ()) -> list[str]:
        """Return all its nodes, or those that ``access`` allows; none if it does not say."""
        try:
            queues = self.queues()
        except ClustergateError:
            return []
        named: Iterable[Queue] = queues.values()
        if access:
            queue = queues.get(self.queue_in(access), Queue())
            named = [self.allowed_in(queue, access) or queue]
        groups = (group for queue in named for group in queue.groups)
        return list(dict.fromkeys(name for group in groups for name in expand(group.names)))

    def unused_notes(self) -> list[str]:
        """Return a sentence for each reason why nodes are unused, or one if it is silent."""
        try:
            queues = self.queues()
        except ClustergateError as error:
            return [str(error)]
        by_cause: dict[str, set[str]] = {}
        for names, causes in (pair for has in queues.values() for pair in has.unused.items()):
            by_cause.setdefault(causes, set()).update(expand(names))
        notes = [str(self.not_used(fold(names), causes)) for causes, names in by_cause.items()]
        more = len(notes) - _MOST
        see = [f"and {more} more reasons: see {self.lists_unused}"] if more > 0 else []
        return [*notes[:_MOST], *see]

    def not_used(self, nodes: str, causes: str) -> Reason:
        """Return that some of the nodes of :meth:`queues` are not used, why, and the remedy."""
        raise NotImplementedError

    def repaired(self, nodes: str) -> str:
        """Return the remedy for nodes that an operator took out of use."""
        back = self.resume_line(nodes)
        return f"repair {nodes} and run `{back}`, or exclude {nodes} in the hostfile"

    def powers(self, job: str, launches: Sequence[Launch]) -> dict[int, Power]:
        """Return the mean power of a job's launches by their order, where energy is counted."""
        return {}

    def waits_for(self, folder: Path) -> str | None:
        """Return why a job below a folder waits; empty if it runs, None if there is none."""
        return ""

    def topology(self) -> str:
        """Return its switches and their nodes in the form of topology.conf(5), if it has any.

        Raises :class:`ClustergateError` if it does not answer.
        """
        return ""

    def drain_line(self, nodes: Sequence[str], reason: str) -> str:
        """Return the command that gives nodes to no further job; the reason has 80 characters."""
        raise NotImplementedError

    def resume_line(self, nodes: str) -> str:
        """Return the command that gives a list of nodes to jobs again, empty if none is known."""
        return ""

    # --- jobs on named nodes, which the suite submits by itself ---

    def submit(self, job: PinnedJob, access: Sequence[str], words: Iterable[str]) -> str:
        """Submit a job with these :meth:`words` and return its number.

        Raises :class:`ClustergateError` where it is refused.
        """
        raise NotImplementedError

    def queued_jobs(self) -> list[QueuedJob]:
        """Return this user's jobs; raises :class:`ClustergateError` where it does not answer."""
        raise NotImplementedError

    def cancel(self, numbers: Sequence[str]) -> None:
        """Cancel jobs; raises :class:`ClustergateError` where it does not answer."""
        raise NotImplementedError

    def node_states(self) -> dict[str, NodeState]:
        """Return the state of each node; raises :class:`ClustergateError` without an answer."""
        raise NotImplementedError

    def hold_lines(self, name: str, node: str, number: str, seconds: float) -> list[list[str]]:
        """Return the commands that keep a node for a job, so that no other begins there."""
        raise NotImplementedError

    def release_line(self, name: str) -> list[str]:
        """Return the command that ends what :meth:`hold_lines` began."""
        raise NotImplementedError

    # --- what `site scan` reads ---

    def scanned(self, nodes: str, queues: str) -> Scanned:
        """Return what the two commands of :attr:`scans` printed.

        Raises :class:`ClustergateError` for what is no such output.
        """
        return {}, []

    def says_more(self, command: Sequence[str]) -> str:
        """Return what tells more than one of :attr:`scans`, empty where nothing does."""
        return ""

    def has_printed(self, text: str) -> bool:
        """Tell whether a text is what one of :attr:`scans` prints."""
        return False

    def choosing(self, features: Sequence[str], others: Sequence[str]) -> str:
        """Return the option for nodes that alone have features; without any, for no ``others``."""
        return ""

    def access_to(self, queue: str, choosing: str) -> list[str]:
        """Return the options for whole nodes of a queue, and for some of them."""
        return [choosing]

    # --- access ---

    def queue_in(self, access: Iterable[str]) -> str:
        """Return the queue that options name, empty where they leave it to the scheduler."""
        return DEFAULT

    def allowed_in(self, queue: Queue, access: Sequence[str]) -> Queue | None:
        """Return those nodes of a queue that options allow, None where it alone can tell."""
        return queue

    def is_exclusive(self, access: Iterable[str]) -> bool:
        """Tell whether options ask for nodes on which no other job runs."""
        return _EXCLUSIVE.search(" ".join(access)) is not None

    def given_twice(self, access: Sequence[str]) -> str:
        """Return the option that has two values of which one is lost, empty if there is none."""
        return ""

    def completed(self, access: Sequence[str]) -> list[str]:
        """Return options with those that every job of the suite needs."""
        return [*access]

    def excluding(self, access: Sequence[str], names: Iterable[str]) -> list[str]:
        """Return options that keep out nodes, beside those that they keep out already.

        Raises :class:`HostfileError` where these are not a list of names.
        """
        return [*access]

    def excluded_by(self, access: Sequence[str]) -> set[str]:
        """Return the nodes that options keep out; raises as :meth:`excluding` does."""
        return set()

    # --- what a user wants of all jobs of a command ---

    def words(self, options: JobOptions) -> list[str]:
        """Return the options for ReFrame's ``--job-option``."""
        return []

    def require_permitted(self, partition: str, access: Sequence[str], options: JobOptions) -> None:
        """Raise :class:`ClustergateError` if it gives this user no such jobs in a partition."""

    def note_words(self, words: Iterable[str]) -> None:
        """Let :meth:`limits` know of :meth:`words`; raises :class:`ClustergateError` for none."""

    def chooses_nodes(self, options: Iterable[str]) -> str:
        """Return which of the options for ReFrame replaces a job's nodes, empty if none does."""
        return ""

    def overriding(self, environ: Iterable[str], words: Iterable[str]) -> list[str]:
        """Return the variables that replace what job scripts ask for, unless a user means them."""
        return []


def answer(
    command: Sequence[str],
    no_answer: Words[...],
    seconds: float = SECONDS,
    env: Mapping[str, str] | None = None,
) -> str:
    """Return what a scheduler's command prints within so many seconds.

    Raises :class:`ClustergateError` with ``no_answer`` and why if it fails or is late.
    """
    try:
        ended = capture(command, env=env, timeout=seconds)
    except FileNotFoundError:
        raise ClustergateError(no_answer(why=f"there is no {command[0]} on PATH")) from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ClustergateError(no_answer(why=error)) from None
    if ended.returncode:
        last = (ended.stderr.strip().splitlines() or [f"{command[0]} failed"])[-1]
        raise ClustergateError(no_answer(why=last))
    return ended.stdout


def why_waiting(jobs: Iterable[tuple[str, str]], folder: Path) -> str | None:
    """Return why the first job within a folder waits, empty if it runs, None if there is none.

    ``jobs`` are why each waits, empty where it runs, and the folder that it was submitted in.
    """
    return next((why for why, where in jobs if folder in Path(where).parents), None)
