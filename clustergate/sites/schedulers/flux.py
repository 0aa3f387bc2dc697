"""Flux: by ``flux queue`` and ``flux resource``.

No Flux was there: this was tested on text alone, in the form of flux-queue(1), flux-resource(1) and
RFC 20. ReFrame's backend submits to the default queue and heeds no ``access``.

    $ flux queue list -n -o '{queuem}|{limits.timelimit}|{limits.max.nnodes}|{started.ascii}'
    batch*|28800.0|16|y
    $ flux resource status -n -o '{statex}|{status}|{nodelist}|{reason}'
    drained|online|n3|broken fan
    $ flux resource R -s all -q batch
    {"version": 1, "execution": {"R_lite": [{"rank": "0-3", "children": {"core": "0-63"}}],
        "nodelist": ["n[1-4]"]}}
    $ flux jobs -n -o '{state}|{urgency}|{sched.reason_pending}|{dependencies}|{cwd}'
    SCHED|16|||/home/user/stage
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from clustergate.core.model import ClustergateError
from clustergate.core.reasons import Reason, Words
from clustergate.launch.hostfiles import HostfileError, expand, fold
from clustergate.machine.node import parse_cpu_list
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

_STOPPED = "its queue is stopped"
_USED = frozenset({"avail", "allocated", "housekeeping"})
_UNIT_S = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)([smhd]?)")
_LISTED = "{queuem}|{limits.timelimit}|{limits.max.nnodes}|{started.ascii}"
_QUEUES = ("queue", "list", "-n", "-o", _LISTED)
_JOBS = "{state}|{urgency}|{sched.reason_pending}|{dependencies}|{cwd}"
# Those of flux-jobs(1) before a job runs.
_WAITING = {"DEPEND": "dependencies", "PRIORITY": "its priority", "SCHED": "queued"}
_STATUS = "{statex}|{status}|{nodelist}|{reason}"

NO_ANSWER = Words(
    "flux.no-answer",
    "Flux could not be asked for its nodes: {why}",
    remedy="run this on a login node of the Flux system; there `flux uptime` shows whether it runs",
)
LIMIT_QUEUE = Words(
    "flux.limit",
    "the queue {name} limits jobs to {seconds:g} s",
    remedy="raise its policy.limits.duration if that is too little",
)
NOT_USED = Words(
    "flux.not-used",
    "Flux does not use {nodes}: {causes}",
    remedy="{remedy}",
)


class Flux(Scheduler):
    """A system instance of Flux."""

    reframe_names = ("flux",)
    command = "flux"
    lists_nodes = True
    no_answer = NO_ANSWER
    drain_file = "flux.sh"
    lists_sizes = "`flux resource list` tells nodes and cores"
    most_nodes = "policy.limits.job-size.max.nnodes"
    lists_unused = "flux resource status"
    lists_names = "`flux resource list` lists the names"

    def limits(self, access: Sequence[str]) -> Limits:
        try:
            return limits_in(_ask(*_QUEUES))
        except ClustergateError:
            return Limits()

    def queues(self, seconds: float = SECONDS) -> Queues:
        listed = _ask(*_QUEUES, seconds=seconds)
        status = _ask("resource", "status", "-n", "-o", _STATUS, seconds=seconds)
        names = [line.partition("|")[0].rstrip("*") for line in listed.splitlines()]

        def resources(queue: str) -> str:
            named = ["-q", queue] if queue else []
            return _ask("resource", "R", "-s", "all", *named, seconds=seconds)

        with ThreadPoolExecutor() as pool:
            sets = dict(zip(names, pool.map(resources, names), strict=True))
        return queues_in(listed, status, sets)

    def not_used(self, nodes: str, causes: str) -> Reason:
        started = "an operator starts it: `flux queue start QUEUE`"
        remedy = started if causes == _STOPPED else self.repaired(nodes)
        return NOT_USED(nodes=nodes, causes=causes, remedy=remedy)

    def waits_for(self, folder: Path) -> str | None:
        try:
            return waits_for(_ask("jobs", "-n", "-o", _JOBS), folder)
        except ClustergateError:
            return None

    def drain_line(self, nodes: Sequence[str], reason: str) -> str:
        return shlex.join(["flux", "resource", "drain", fold(nodes), reason])

    def resume_line(self, nodes: str) -> str:
        return f"flux resource undrain {nodes}"


def _ask(*words: str, seconds: float = SECONDS) -> str:
    return answer(["flux", *words], NO_ANSWER, seconds)


def limits_in(listed: str) -> Limits:
    """Return the limits of the default queue in lines of ``flux queue list``."""
    for line in listed.splitlines():
        name, *rest = line.strip().split("|")
        if len(rest) == 3 and (name.endswith("*") or len(listed.splitlines()) == 1):
            time, nodes, _ = rest
            match = _DURATION.fullmatch(time)
            seconds = float(match[1]) * _UNIT_S[match[2]] if match else None
            most = int(nodes) if nodes.isdecimal() else None
            named = name.rstrip("*") or "(default)"
            why = None if seconds is None else LIMIT_QUEUE(name=named, seconds=seconds)
            return Limits(seconds, most, why=why)
    return Limits()


def queues_in(listed: str, status: str, resources: Mapping[str, str]) -> Queues:
    """Return the nodes of each queue in what flux prints; the only one is the default one.

    ``resources`` is the set of each queue, by its name. Raises :class:`ClustergateError` for text
    that is no such output.
    """
    causes: dict[str, str] = {}
    for line in filter(str.strip, status.splitlines()):
        state, *rest = line.strip().split("|", 3)
        if len(rest) != 3:
            raise _unread("resource status", line)
        online, names, why = rest
        bad = [*([] if state in _USED else [state]), *(["offline"] if online == "offline" else [])]
        if bad and names:
            causes |= dict.fromkeys(expand(names), ", ".join(filter(None, [*bad, why])))
    queues: dict[str, Queue] = {}
    lines = [line.strip().split("|") for line in listed.splitlines() if line.strip()]
    for name, *rest in lines:
        if len(rest) != 3:
            raise _unread("queue list", "|".join([name, *rest]))
        stopped = "" if rest[2] == "y" else _STOPPED
        queue = queues[name.rstrip("*")] = Queue.of(
            (node, cores, stopped or causes.get(node, ""))
            for node, cores in cores_in(resources[name.rstrip("*")]).items()
        )
        if name.endswith("*") or len(lines) == 1:
            queues[DEFAULT] = queue
    if not queues:
        raise _unread("queue list", listed)
    return queues


def waits_for(text: str, folder: Path) -> str | None:
    """Return what a job within a folder waits for, nothing for one that runs, None without one.

    ``text`` are lines of ``flux jobs``: state, urgency, why, dependencies and folder of each job.
    """

    def waiting(state: str, urgency: str, why: str, dependencies: str) -> str:
        held = "held" if urgency == "0" else ""
        return (why or dependencies or held or _WAITING[state]) if state in _WAITING else ""

    lines = (line.split("|", 4) for line in text.splitlines())
    jobs = ((waiting(*about), where) for *about, where in lines if len(about) == 4)
    return why_waiting(jobs, folder)


def cores_in(text: str) -> dict[str, int]:
    """Return the cores of each node in a resource set of RFC 20; raises as :func:`queues_in`."""
    try:
        execution = json.loads(text)["execution"]
        names = expand(",".join(execution["nodelist"]))
        cores: dict[int, int] = {}
        for of_ranks in execution["R_lite"]:
            count = len(parse_cpu_list(of_ranks["children"]["core"]))
            cores |= dict.fromkeys(parse_cpu_list(of_ranks["rank"]), count)
        # Nodes are in the order of their ranks.
        return dict(zip(names, (cores[rank] for rank in sorted(cores)), strict=True))
    except (ValueError, KeyError, TypeError, HostfileError):
        raise _unread("resource R", text) from None


def _unread(command: str, text: str) -> ClustergateError:
    return ClustergateError(NO_ANSWER(why=f"flux {command} printed {text.strip()[:60]!r}"))
