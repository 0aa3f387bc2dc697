"""PBS Professional and OpenPBS: by ``pbsnodes``, ``qstat`` and ``qselect``.

Torque is another one, and has no ``place``. The suite ran under OpenPBS 23.06, which answers so:

    $ pbsnodes -a -F json
    {"nodes": {"n1": {"state": "free", "queue": "big", "resources_available": {"ncpus": 64}}}}
    $ qstat -Q -f -F json
    {"Queue": {"big": {"queue_type": "Execution", "enabled": "True", "started": "True",
        "resources_max": {"walltime": "24:00:00", "nodect": 8}}}}
    $ qstat -B -f -F json
    {"Server": {"head": {"default_queue": "big"}}}
    $ qstat -f -F json 7.head
    {"Jobs": {"7.head": {"job_state": "Q", "comment": "Not Running: Insufficient amount of ...",
        "Variable_List": {"PBS_O_WORKDIR": "/home/user/stage"}}}}
"""

from __future__ import annotations

import functools
import getpass
import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from clustergate.core.model import ClustergateError
from clustergate.core.reasons import Reason, Words
from clustergate.launch.hostfiles import HostfileError, expand
from clustergate.sites.schedulers.job_options import JobOptions
from clustergate.sites.schedulers.scanned import Scanned, ScannedNode, ScannedQueue
from clustergate.sites.schedulers.scheduler import (
    DEFAULT,
    SECONDS,
    Limits,
    Queue,
    Queues,
    Scheduler,
    answer,
    why_waiting,
)

# -l place=excl, or place=scatter:exclhost, alone or beside other resources.
_EXCLUSIVE = re.compile(r"(?:^|[\s,])place=(?:\w+:)?excl(?:host)?\b")
_QUEUE = re.compile(r"(?:^|\s)-q *[\"']?([^\s\"'@]+)")
# Resources of a whole job: they do not tell its nodes from others.
_OF_JOBS = frozenset({"place", "walltime", "cput", "min_walltime", "max_walltime"})
# Vnode states (PBS Reference Guide) of nodes that jobs get, perhaps after another one; a node that
# sleeps is woken.
_USED = frozenset(
    ("free", "busy", "job-busy", "job-exclusive", "job-sharing", "resv-exclusive", "sleep")
)
# Job states: queued, held, waiting for its time, moved, suspended by the server or by its user.
_WAITING = {
    **{"Q": "queued", "H": "held", "W": "waiting for its time", "T": "in transit"},
    **{"S": "suspended", "U": "suspended"},
}
_CLOSED_QUEUE = "its queue is not "

NO_ANSWER = Words(
    "pbs.no-answer",
    "PBS could not be asked for its nodes: {why}",
    remedy=(
        "run this on a login node of the PBS system; there `qstat -B` shows whether its server "
        "answers"
    ),
)
LIMIT_QUEUE = Words(
    "limit.queue",
    "the queue {name} limits jobs to {seconds:g} s",
    remedy="raise its resources_max.walltime if that is too little",
)
NOT_USED = Words("pbs.not-used", "PBS does not use {nodes}: {causes}", remedy="{remedy}")


class Pbs(Scheduler):
    """PBS, by ReFrame's two backends for it."""

    reframe_names = ("pbs", "pbspro")
    command = "pbsnodes"
    scans = (("pbsnodes", "-a", "-F", "json"), ("qstat", "-Q", "-f", "-F", "json"))
    lists_nodes = True
    # It has ncpus: cores, or their hardware threads.
    counts_threads = True
    no_answer = NO_ANSWER
    lists_sizes = "`pbsnodes -aSj` tells the ncpus of each node"
    lists_names = "`pbsnodes -aS` lists the names"
    lists_unused = "pbsnodes -l"
    most_nodes = "resources_max.nodect"
    narrows = "give these nodes a queue of their own, and name it by -q"
    drain_file = "pbsnodes.sh"
    job_options = frozenset({"account"})

    def limits(self, access: Sequence[str]) -> Limits:
        return limits_of(self.queue_in(access))

    def queues(self, seconds: float = SECONDS) -> Queues:
        return queues_in(*ask(["pbsnodes -a", "qstat -Q -f", "qstat -B -f"], seconds))

    def not_used(self, nodes: str, causes: str) -> Reason:
        remedy = f"it comes back when its pbs_mom answers; else exclude {nodes} in the hostfile"
        if "offline" in causes:
            remedy = self.repaired(nodes)
        if causes.startswith(_CLOSED_QUEUE):
            remedy = "an operator opens it: `qmgr -c 'set queue NAME started=true,enabled=true'`"
        return NOT_USED(nodes=nodes, causes=causes, remedy=remedy)

    def waits_for(self, folder: Path) -> str | None:
        try:
            jobs = answer(["qselect", "-u", getpass.getuser()], NO_ANSWER).split()
            return waits_for(ask([f"qstat -f {' '.join(jobs)}"])[0] if jobs else "", folder)
        except ClustergateError:
            return None

    def queue_in(self, access: Iterable[str]) -> str:
        return [DEFAULT, *map(str, _QUEUE.findall(" ".join(access)))][-1]

    def allowed_in(self, queue: Queue, access: Sequence[str]) -> Queue | None:
        """Return all nodes of the queue, None where ``access`` asks for some kind of chunks."""
        for option in access:
            resources = re.findall(r"(?:^|\s)-l *(\S+)", option)
            names = {part.partition("=")[0] for text in resources for part in text.split(",")}
            # ReFrame makes what is no option a resource of the chunks.
            if names - _OF_JOBS or not option.startswith("-"):
                return None
        return queue

    def is_exclusive(self, access: Iterable[str]) -> bool:
        return _EXCLUSIVE.search(" ".join(access)) is not None

    def completed(self, access: Sequence[str]) -> list[str]:
        # Else PBS puts what should lie on several nodes on one. A job that it started again would
        # find the folder of its first start.
        placed = any("place=" in option for option in access)
        return [*access, *([] if placed else ["-l place=scatter"]), "-r n"]

    def words(self, options: JobOptions) -> list[str]:
        return [f"A={options.account}"] if options.account else []

    def overriding(self, environ: Iterable[str], words: Iterable[str]) -> list[str]:
        # With it, what begins with #PBS is a comment: qsub(1B).
        return [name for name in environ if name == "PBS_DPREFIX"]

    def scanned(self, nodes: str, queues: str) -> Scanned:
        return scanned_nodes(nodes), scanned_queues(nodes, queues)

    def has_printed(self, text: str) -> bool:
        return '"pbs_version"' in text

    def access_to(self, queue: str, choosing: str) -> list[str]:
        return [f"-q {queue}", "-l place=scatter:excl"]

    def drain_line(self, nodes: Sequence[str], reason: str) -> str:
        return shlex.join(["pbsnodes", "-o", "-C", reason, *nodes])

    def resume_line(self, nodes: str) -> str:
        # Else its comment stays, and is told as the cause when the node is next out of use.
        return shlex.join(["pbsnodes", "-r", "-C", "", *expand(nodes)])


# --- asking -----------------------------------------------------------------------------------


def ask(commands: Sequence[str], seconds: float = SECONDS) -> list[str]:
    """Return the JSON that each of these commands prints, asked at once."""
    words = [[*command.split(), "-F", "json"] for command in commands]
    with ThreadPoolExecutor() as pool:
        return [*pool.map(partial(answer, no_answer=NO_ANSWER, seconds=seconds), words)]


# --- reading ----------------------------------------------------------------------------------


def objects_in(text: str, kind: str) -> dict[str, dict[str, Any]]:
    """Return the attributes of each node, queue, server or job (``kind``) in output with -F json.

    Raises :class:`ClustergateError` for text that is no such output: of what it may be about
    nothing is known.
    """
    try:
        # Variables of a job's environment stand there with their control characters.
        content = json.loads(text, strict=False)
        objects = content.get(kind, {})
        return {name: {**attributes} for name, attributes in objects.items()}
    except (ValueError, AttributeError, TypeError):
        why = f"{kind} in {text.strip()[:60]!r} cannot be read"
        raise ClustergateError(NO_ANSWER(why=why)) from None


def queues_in(nodes: str, queues: str, server: str) -> Queues:
    """Return the nodes of each queue, as ``pbsnodes -a`` and ``qstat -Q``, ``-B`` print them.

    A queue has the nodes whose ``queue`` it is, or whose Qlist names it, else all that no queue has
    for itself (Administrator's Guide, "Associating Vnodes with Queues"). A routing queue has those
    of its destinations. Raises what :func:`objects_in` does.
    """
    known, every = objects_in(queues, "Queue"), objects_in(nodes, "nodes")
    if not known or not every:
        raise ClustergateError(NO_ANSWER(why="it has no queues or no nodes"))
    own = {name: _nodes_of(name, queue, every) for name, queue in known.items()}
    for name, queue in known.items():
        if queue.get("queue_type") == "Route":
            ways = str(queue.get("route_destinations", "")).split(",")
            own[name] = {k: v for way in ways for k, v in own.get(way.split("@")[0], {}).items()}
    filled = {
        name: Queue.of(_cores_and_causes(own[name], _closed(queue)))
        for name, queue in known.items()
    }
    for attributes in objects_in(server, "Server").values():
        if (default := attributes.get("default_queue")) in filled:
            filled[DEFAULT] = filled[default]
    return filled


def scanned_nodes(text: str) -> dict[str, ScannedNode]:
    """Return the nodes that ``pbsnodes -a`` printed; raises what :func:`objects_in` does."""
    every = objects_in(text, "nodes")
    cores = {name: count for name, count, _ in _cores_and_causes(every, "")}
    return {
        name: ScannedNode(
            name,
            cores[name],
            _bytes(str(_resource(node, "resources_available", "mem"))),
            cores[name],
            host=str(node.get("Mom", "")),
        )
        for name, node in every.items()
    }


def scanned_queues(nodes: str, queues: str) -> list[ScannedQueue]:
    """Return the queues with nodes that ``qstat -Q -f`` printed; raises as :func:`queues_in`."""
    filled = queues_in(nodes, queues, "{}")
    scanned = []
    for name, queue in objects_in(queues, "Queue").items():
        names = [node for group in filled[name].groups for node in expand(group.names)]
        most = str(_resource(queue, "resources_max", "nodect"))
        held = str(queue.get("acl_group_enable")) == "True"
        groups = str(queue.get("acl_groups", "")).split(",") if held else []
        limit = int(most) if most.isdecimal() else None
        up = not _closed(queue)
        scanned.append(ScannedQueue(name, tuple(names), limit, frozenset(groups), is_up=up))
    return [queue for queue in scanned if queue.nodes]


def _bytes(size: str) -> int:
    """Return the bytes of ``16326440kb``; 0 for what is no size, or in words."""
    match = re.fullmatch(r"(\d+)([kmgt]?)b", size)
    return int(match[1]) << 10 * " kmgt".index(match[2] or " ") if match else 0


def _nodes_of(
    name: str, queue: Mapping[str, Any], nodes: Mapping[str, Mapping[str, Any]]
) -> dict[str, Mapping[str, Any]]:
    listed = _resource(queue, "default_chunk", "Qlist")
    by_name = {k: v for k, v in nodes.items() if v.get("queue") == name}
    if by_name:
        return by_name
    if listed:
        return {
            k: v
            for k, v in nodes.items()
            if listed in str(_resource(v, "resources_available", "Qlist")).split(",")
        }
    return {k: v for k, v in nodes.items() if not v.get("queue")}


def _resource(attributes: Mapping[str, Any], kind: str, name: str) -> Any:
    resources = attributes.get(kind)
    return resources.get(name, "") if isinstance(resources, Mapping) else ""


def _closed(queue: Mapping[str, Any]) -> str:
    """Return why no job of a queue would run, empty where it is open."""
    closed = [word for word in ("enabled", "started") if str(queue.get(word)) == "False"]
    return f"{_CLOSED_QUEUE}{' and not '.join(closed)}" if closed else ""


def _cores_and_causes(
    nodes: Mapping[str, Mapping[str, Any]], closed: str
) -> Iterator[tuple[str, int, str]]:
    for name, node in nodes.items():
        try:
            cpus = int(_resource(node, "resources_available", "ncpus") or node.get("pcpus", 0))
            (checked,) = expand(name)
        except (ValueError, HostfileError) as error:
            raise ClustergateError(NO_ANSWER(why=f"of node {name[:60]!r}, {error}")) from None
        yield checked, cpus, closed or causes(node)


def causes(node: Mapping[str, Any]) -> str:
    """Return why PBS does not use a node, empty where it does."""
    states = str(node.get("state") or "state-unknown").split(",")
    bad = [state.strip() for state in states if state.strip() not in _USED]
    return ", ".join([*bad, *filter(None, [str(node.get("comment", ""))])]) if bad else ""


@functools.cache
def limits_of(queue: str) -> Limits:
    """Ask PBS for the limits of a queue, the default one if none is named; none if it is silent."""
    try:
        queues, server = ask(["qstat -Q -f", "qstat -B -f"])
        return limits_in(queues, server, queue)
    except ClustergateError:
        return Limits()


def limits_in(queues: str, server: str, queue: str = DEFAULT) -> Limits:
    """Return the limits (resources_max) of a queue, or of the server where it sets none.

    Raises what :func:`objects_in` does.
    """
    known = objects_in(queues, "Queue")
    (of_server, *_) = [*objects_in(server, "Server").values(), {}]
    name = queue or str(of_server.get("default_queue", ""))
    of_queue = known.get(name, {})

    def most(resource: str) -> Any:
        own = _resource(of_queue, "resources_max", resource)
        return own or _resource(of_server, "resources_max", resource)

    nodes, seconds = str(most("nodect")), _seconds(most("walltime"))
    why = None if seconds is None else LIMIT_QUEUE(name=name, seconds=seconds)
    return Limits(seconds, int(nodes) if nodes.isdecimal() else None, why=why)


def _seconds(walltime: str | int) -> float | None:
    """Return the seconds of ``24:00:00``, ``30:00`` or 3600; None of what is none."""
    parts = str(walltime).split(":")
    if not all(part.isdecimal() for part in parts) or len(parts) > 3:
        return None
    return float(sum(int(part) * 60**power for power, part in enumerate(reversed(parts))))


def waits_for(text: str, folder: Path) -> str | None:
    """Return what a job within a folder waits for, nothing for one that runs, None without one.

    ``text`` is what ``qstat -f -F json`` prints of jobs. Raises what :func:`objects_in` does.
    """
    jobs = objects_in(text, "Jobs") if text else {}

    def waiting(job: Mapping[str, Any]) -> str:
        state = _WAITING.get(str(job.get("job_state")), "")
        why = str(job.get("comment", "")).removeprefix("Not Running: ").strip()
        return (why or state) if state else ""

    def submitted_in(job: Mapping[str, Any]) -> str:
        return str(_resource(job, "Variable_List", "PBS_O_WORKDIR"))

    return why_waiting(((waiting(job), submitted_in(job)) for job in jobs.values()), folder)
