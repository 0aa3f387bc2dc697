"""Who else works on this node: other processes by name, before a run and while it goes on.

The ranks' records tell how much others used of a launch (:mod:`clustergate.launch.disturbance`);
nobody there can tell who they were.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import psutil

from clustergate.core.notation import listed
from clustergate.core.reasons import Facts, Words
from clustergate.machine.load import DISTURBING_CORES, disturbing_cores

_LOOK_S = 1.0
_NAMED = 3
_Process = tuple[int, float]
"""A process id, which comes again, and when the process began."""
_INIT = 1


@dataclass(frozen=True)
class ProcessUsage:
    """The seconds of CPU time that a process used itself, and those of its ended children."""

    name: str
    cpu_s: float
    children_s: float = 0.0
    parent: int = _INIT


@dataclass(frozen=True)
class OtherLoad:
    """What others used of a node, in cores' worth: 1 for one core all the time.

    ``by_name`` is what was used by processes that can be seen, ``cores`` by all, those that a
    hypervisor gave to other machines among them.
    """

    cores: float
    by_name: Mapping[str, float] = field(default_factory=dict)

    @property
    def facts(self) -> Facts:
        """What a reason says of it."""
        names = [
            f"{name} {cores:.2f}"
            for name, cores in sorted(self.by_name.items(), key=lambda one: -one[1])
            if cores >= DISTURBING_CORES / _NAMED
        ]
        by = listed(names, _NAMED) if names else "no process that can be seen here"
        return {"lost_cores": round(self.cores, 4), "by": by}


def sample_other_load(seconds: float = _LOOK_S) -> OtherLoad:
    """Return what others than this process and its children use of this node for some seconds."""
    spent, used = psutil.cpu_times(), used_by_others()
    begun = time.monotonic()
    time.sleep(seconds)
    passed = time.monotonic() - begun
    now = psutil.cpu_times()
    kinds = ("user", "nice", "system", "steal")
    cores = sum(getattr(now, kind, 0.0) - getattr(spent, kind, 0.0) for kind in kinds) / passed
    by_name = used_between(used, used_by_others())
    return OtherLoad(cores, {name: cpu_s / passed for name, cpu_s in by_name.items()})


# The first account of a person (login.defs); the kernel's largest is nobody.
_FIRST_PERSON, _NOBODY = 1000, 65534
_STEP = re.compile(r"slurmstepd: \[(\d+)\.")


def jobs_beside(own: str) -> list[str]:
    """Return the jobs of Slurm that have a step on this node, but the job ``own``."""
    said = (" ".join(one.info["cmdline"] or ()) for one in psutil.process_iter(["cmdline"]))
    jobs = dict.fromkeys(step[1] for text in said if (step := _STEP.match(text)))
    return [job for job in jobs if job != own]


def people_in(seen: OtherLoad) -> OtherLoad:
    """Return what other people used of that: neither this account, nor root, nor a service.

    What no process shows that can be seen counts: theirs may be hidden.
    """
    by_user: dict[str, float] = {}
    for name, cores in seen.by_name.items():
        by_user[name.rpartition(" of ")[2]] = by_user.get(name.rpartition(" of ")[2], 0.0) + cores
    people = {f"{user}'s processes": cores for user, cores in by_user.items() if _is_person(user)}
    hidden = max(0.0, seen.cores - sum(by_user.values()))
    return OtherLoad(sum(people.values()) + hidden, people)


def _is_person(user: str) -> bool:
    with contextlib.suppress(KeyError):
        number = int(user) if user.isdigit() else pwd.getpwnam(user).pw_uid
        return _FIRST_PERSON <= number != _NOBODY and number != os.getuid()
    return True


NODE_WAITING = Words(
    "node.waiting",
    "waiting up to {limit_s:.0f} s for this node to be idle",
    cause="others use {lost_cores:.2f} cores, {by}",
)
NOT_QUIET = Words(
    "node.not-quiet",
    "this node is busy; measuring anyway, which takes longer than announced",
    cause="others use {lost_cores:.2f} cores, {by}",
)


def wait_for_quiet(
    limit_s: float,
    say: Callable[[str], None],
    look: Callable[[], OtherLoad] = sample_other_load,
    cores: int | None = None,
) -> bool:
    """Wait until others leave this node alone, for so many seconds at most; say whom it waits for.

    Return whether they still did not. Each ``look`` takes a second. ``cores`` are those that will
    be measured, None: all there are.
    """
    cores = _cores() if cores is None else cores
    waited_s, begun = 0.0, time.monotonic()
    while waited_s < limit_s:
        seen = look()
        if seen.cores <= disturbing_cores(cores):
            return False
        if not waited_s:
            say(str(NODE_WAITING(limit_s=limit_s, **seen.facts)))
        # On a busy node a look takes longer than it lasts.
        waited_s = max(waited_s + _LOOK_S, time.monotonic() - begun)
        if waited_s >= limit_s:
            say(str(NOT_QUIET(**seen.facts)))
    return limit_s > 0


def _cores() -> int:
    return psutil.cpu_count(logical=False) or psutil.cpu_count() or 1


def used_by_others() -> dict[_Process, ProcessUsage]:
    """Return what each process that can be seen used; this one and its children are not told."""
    me = psutil.Process()
    own = {me.pid, *(child.pid for child in me.children(recursive=True))}
    used = {}
    for process in psutil.process_iter(["name", "username", "create_time", "cpu_times", "ppid"]):
        facts, times = process.info, process.info["cpu_times"]
        if process.pid not in own and times is not None:
            name = f"{facts['name']} of {facts['username']}"
            children_s = times.children_user + times.children_system
            one = ProcessUsage(name, times.user + times.system, children_s, facts["ppid"])
            used[process.pid, facts["create_time"]] = one
    return used


def used_between(
    before: Mapping[_Process, ProcessUsage], after: Mapping[_Process, ProcessUsage]
) -> dict[str, float]:
    """Return the seconds of CPU time between two moments by name; of who came since, all of it.

    What processes used that ended meanwhile is their parent's: it got the time of their whole lives
    then, of which what was seen before is taken off. Init gets that of processes it never started.
    """
    used: dict[str, float] = {}
    waited_for = {key[0]: one.children_s for key, one in after.items() if key[0] != _INIT}
    for key, one in before.items():
        if key in after and key[0] in waited_for:
            waited_for[key[0]] -= one.children_s
    parents = {key[0]: one.parent for key, one in before.items()}
    for key in before.keys() - after.keys():
        ancestor = parents[key[0]]
        while ancestor in parents and ancestor not in waited_for:
            ancestor = parents[ancestor]
        if ancestor in waited_for:
            waited_for[ancestor] -= before[key].cpu_s + before[key].children_s
    for key, one in after.items():
        # A process may change its name: the kernel's workers are called after what they work on.
        own_s = one.cpu_s - before[key].cpu_s if key in before else one.cpu_s
        seconds = max(0.0, own_s) + max(0.0, waited_for.get(key[0], 0.0))
        used[one.name] = used.get(one.name, 0.0) + seconds
    return used


NODE_BESIDE = Words(
    "node.beside",
    "other programs used {lost_cores:.2f} of {cores:core|cores}",
    cause="{by}",
)


class Watch:
    """Notes who else works on this node, from one sentence of a run's progress to the next."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._cores = _cores()
        self._used: dict[str, float] = {}
        self._begun = time.monotonic()
        self._last = used_by_others()

    def say(self, sentence: str) -> None:
        """Pass a sentence on, and look."""
        self._look()
        self._say(sentence)

    def _look(self) -> None:
        now = used_by_others()
        for name, seconds in used_between(self._last, now).items():
            self._used[name] = self._used.get(name, 0.0) + seconds
        self._last = now

    def sentences(self) -> list[str]:
        """Return in a sentence who worked beside the run, on average; none where it was alone."""
        self._look()
        passed = max(time.monotonic() - self._begun, _LOOK_S)
        by_name = {name: cpu_s / passed for name, cpu_s in self._used.items()}
        seen = OtherLoad(sum(by_name.values()), by_name)
        if seen.cores <= disturbing_cores(self._cores) / 2:
            return []
        return [str(NODE_BESIDE(**seen.facts, cores=self._cores))]
