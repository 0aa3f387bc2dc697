"""Flux: by ``flux queue`` and ``flux resource``.

No Flux was there: this was tested on text alone, in the form of flux-queue(1), flux-resource(1) and
RFC 20. ReFrame's backend submits to the default queue and heeds no ``access``; why a job waits is
not asked, as ``flux jobs`` tells no folder of it.

    $ flux queue list -n -o '{queuem}|{limits.timelimit}|{limits.max.nnodes}|{started.ascii}'
    batch*|28800.0|16|y
    $ flux resource status -n -o '{statex}|{status}|{nodelist}|{reason}'
    drained|online|n3|broken fan
    $ flux resource R -s all -q batch
    {"version": 1, "execution": {"R_lite": [{"rank": "0-3", "children": {"core": "0-63"}}],
        "nodelist": ["n[1-4]"]}}
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from clustergate.core.model import ClustergateError
from clustergate.core.reasons import Reason, Words
from clustergate.launch.hostfiles import HostfileError, expand, fold
from clustergate.sites.schedulers.scheduler import (
    DEFAULT,
    SECONDS,
    Limits,
    Queue,
    Queues,
    Scheduler,
    answer,
)

_STOPPED = "its queue is stopped"
_USED = frozenset({"avail", "allocated", "housekeeping"})
_UNIT_S = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)([smhd]?)")
_LISTED = "{queuem}|{limits.timelimit}|{limits.max.nnodes}|{started.ascii}"
_STATUS = "{statex}|{status}|{nodelist}|{reason}"

NO_ANSWER = Words(
    "flux.no-answer",
    "Flux could not be asked for its nodes: {why}",
    remedy="run this on a login node of the Flux system; there `flux uptime` shows whether it runs",
)
NOT_USED = Words(
    "flux.not-used",
    "Flux does not use {nodes}: {causes}",
    remedy="{remedy}",
)


class Flux(Scheduler):
    """A system instance of Flux."""

    reframe_names = ("flux",)
    lists_nodes = True
    no_answer = NO_ANSWER
    drain_file = "flux.sh"
    lists_sizes = "`flux resource list` tells nodes and cores"
    lists_unused = "flux resource status"
    lists_names = "`flux resource list` lists the names"

    def limits(self, access: Sequence[str]) -> Limits:
        try:
            return limits_in(_listed())
        except ClustergateError:
            return Limits()

    def queues(self, seconds: float = SECONDS) -> Queues:
        listed = _listed(seconds)
        status = _ask("resource", "status", "-n", "-o", _STATUS, seconds=seconds)
        names = [line.partition("|")[0].rstrip("*") for line in listed.splitlines()]
        with ThreadPoolExecutor() as pool:
            sets = pool.map(partial(_resources, seconds=seconds), names)
            return queues_in(listed, status, dict(zip(names, sets, strict=True)))

    def not_used(self, nodes: str, causes: str) -> Reason:
        out = f"repair {nodes} and run `{self.resume_line(nodes)}`, or exclude it in the hostfile"
        remedy = "an operator starts it: `flux queue start QUEUE`" if causes == _STOPPED else out
        return NOT_USED(nodes=nodes, causes=causes, remedy=remedy)

    def drain_line(self, nodes: Sequence[str], reason: str) -> str:
        return shlex.join(["flux", "resource", "drain", fold(nodes), reason])

    def resume_line(self, nodes: str) -> str:
        return f"flux resource undrain {nodes}"


def _ask(*words: str, seconds: float = SECONDS) -> str:
    return answer(["flux", *words], NO_ANSWER, seconds)


def _listed(seconds: float = SECONDS) -> str:
    return _ask("queue", "list", "-n", "-o", _LISTED, seconds=seconds)


def _resources(queue: str, seconds: float) -> str:
    named = ["-q", queue] if queue else []
    return _ask("resource", "R", "-s", "all", *named, seconds=seconds)


def limits_in(listed: str) -> Limits:
    """Return the limits of the default queue in lines of ``flux queue list``."""
    for line in listed.splitlines():
        name, *rest = line.strip().split("|")
        if len(rest) == 3 and (name.endswith("*") or len(listed.splitlines()) == 1):
            time, nodes, _ = rest
            match = _DURATION.fullmatch(time)
            seconds = float(match[1]) * _UNIT_S[match[2]] if match else None
            most = int(nodes) if nodes.isdecimal() else None
            return Limits(seconds, most, queue=name.rstrip("*") or "(default)")
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


def cores_in(text: str) -> dict[str, int]:
    """Return the cores of each node in a resource set of RFC 20; raises as :func:`queues_in`."""
    try:
        execution = json.loads(text)["execution"]
        names = expand(",".join(execution["nodelist"]))
        cores: dict[int, int] = {}
        for of_ranks in execution["R_lite"]:
            count = len(_numbers(of_ranks["children"]["core"]))
            cores |= dict.fromkeys(_numbers(of_ranks["rank"]), count)
        # Nodes are in the order of their ranks.
        return dict(zip(names, (cores[rank] for rank in sorted(cores)), strict=True))
    except (ValueError, KeyError, TypeError, HostfileError):
        raise _unread("resource R", text) from None


def _numbers(ids: str) -> list[int]:
    pairs = (part.partition("-") for part in ids.split(","))
    return [n for first, _, last in pairs for n in range(int(first), int(last or first) + 1)]


def _unread(command: str, text: str) -> ClustergateError:
    return ClustergateError(NO_ANSWER(why=f"flux {command} printed {text.strip()[:60]!r}"))
