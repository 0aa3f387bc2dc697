"""Who else works on this node: other processes by name, before a run and while it goes on.

The ranks' records tell how much others used of a launch (:mod:`clustergate.launching.disturbance`);
nobody there can tell who they were.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import psutil

from clustergate.machine.load import DISTURBING_CORES
from clustergate.wording.notation import listed
from clustergate.wording.reasons import Fact, reason

_LOOK_S = 1.0
_NAMED = 3
_Process = tuple[int, float]
"""A process id, which comes again, and when the process began."""


@dataclass(frozen=True)
class Busy:
    """What others used of a node, in cores' worth: 1 for one core all the time.

    ``by_name`` is what was used by processes that can be seen, ``cores`` by all, those that a
    hypervisor gave to other machines among them.
    """

    cores: float
    by_name: Mapping[str, float] = field(default_factory=dict)

    @property
    def facts(self) -> dict[str, Fact]:
        """What a reason says of it."""
        names = [
            f"{name} {cores:.2f}"
            for name, cores in sorted(self.by_name.items(), key=lambda one: -one[1])
            if cores >= DISTURBING_CORES / _NAMED
        ]
        by = listed(names, _NAMED) if names else "no process that can be seen here"
        return {"lost_cores": round(self.cores, 4), "by": by}


def look(seconds: float = _LOOK_S) -> Busy:
    """Return what others than this process and its children use of this node for some seconds."""
    spent, used = psutil.cpu_times(), used_by_others()
    begun = time.monotonic()
    time.sleep(seconds)
    passed = time.monotonic() - begun
    now = psutil.cpu_times()
    kinds = ("user", "nice", "system", "steal")
    cores = sum(getattr(now, kind, 0.0) - getattr(spent, kind, 0.0) for kind in kinds) / passed
    by_name = _between(used, used_by_others())
    return Busy(cores, {name: cpu_s / passed for name, cpu_s in by_name.items()})


def wait_for_quiet(
    limit_s: float, say: Callable[[str], None], look: Callable[[], Busy] = look
) -> None:
    """Wait until others leave this node alone, for so many seconds at most; say whom it waits for.

    Each ``look`` takes a second.
    """
    waited_s = 0.0
    while waited_s < limit_s:
        seen = look()
        if seen.cores <= DISTURBING_CORES:
            return
        if not waited_s:
            say(str(reason("node.waiting", limit_s=limit_s, **seen.facts)))
        waited_s += _LOOK_S
        if waited_s >= limit_s:
            say(str(reason("node.not-quiet", **seen.facts)))


def used_by_others() -> dict[_Process, tuple[str, float]]:
    """Return the name of each process that can be seen, and the seconds of CPU time it used.

    This process and its own children are not among them. Of a child that ended, its parent would
    get the time of its whole life at once, so that only those that go on are told.
    """
    me = psutil.Process()
    own = {me.pid, *(child.pid for child in me.children(recursive=True))}
    used = {}
    for process in psutil.process_iter(["name", "username", "create_time", "cpu_times"]):
        facts = process.info
        if process.pid not in own and facts["cpu_times"] is not None:
            name = f"{facts['name']} of {facts['username']}"
            used[process.pid, facts["create_time"]] = (name, sum(facts["cpu_times"][:2]))
    return used


def _between(
    before: Mapping[_Process, tuple[str, float]], after: Mapping[_Process, tuple[str, float]]
) -> dict[str, float]:
    """Return the seconds of CPU time between two moments by name; of who came since, all of it."""
    used: dict[str, float] = {}
    for process, (name, seconds) in after.items():
        since = max(0.0, seconds - before.get(process, (name, 0.0))[1])
        used[name] = used.get(name, 0.0) + since
    return used


class Watch:
    """Notes who else works on this node, from one sentence of a run's progress to the next."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._used: dict[str, float] = {}
        self._begun = time.monotonic()
        self._last = used_by_others()

    def say(self, sentence: str) -> None:
        """Pass a sentence on, and look."""
        self._look()
        self._say(sentence)

    def _look(self) -> None:
        now = used_by_others()
        for name, seconds in _between(self._last, now).items():
            self._used[name] = self._used.get(name, 0.0) + seconds
        self._last = now

    def sentences(self, more_than_cores: float = 0.0) -> list[str]:
        """Return in a sentence who worked beside the run, on average; none where it was alone.

        None either where that is not ``more_than_cores``: what the worst launch lost says more then
        than an average over all of the run.
        """
        self._look()
        passed = max(time.monotonic() - self._begun, _LOOK_S)
        by_name = {name: cpu_s / passed for name, cpu_s in self._used.items()}
        seen = Busy(sum(by_name.values()), by_name)
        if seen.cores <= max(DISTURBING_CORES / 2, more_than_cores):
            return []
        return [str(reason("node.beside", **seen.facts))]
