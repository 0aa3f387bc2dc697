"""What will work here and what will not, seen in seconds: nothing is measured or set up."""

from __future__ import annotations

import itertools
import math
import os
import resource
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from clustergate.benchmarks.registry import builds_on_request, lost_tests, not_loaded
from clustergate.core.files.shared import Mount, mount_of
from clustergate.core.model import CaseId, ClustergateError, Say
from clustergate.core.notation import counted, did_you_mean, nearest
from clustergate.core.paths import HOME, state_dir
from clustergate.core.reasons import Reason, Words, reason_as_json
from clustergate.core.store import require_home, run_folder
from clustergate.judge.history.node_states import HERE, astray_nodes, read_states, recorded_runs
from clustergate.judge.references.lookup import References, references_of
from clustergate.judge.standings import impossible, never_compared
from clustergate.launch.hostfiles import Hostfile, expand, fold
from clustergate.machine.node import read_node
from clustergate.run.prepare import foresee
from clustergate.run.request import Request
from clustergate.sites import choice, exclusions
from clustergate.sites import configs as sites
from clustergate.sites.description import Partition, Site, Stack
from clustergate.sites.modes import Mode, expected_cases, mode_named
from clustergate.sites.schedulers import scheduler_of
from clustergate.sites.schedulers.scheduler import DEFAULT, SECONDS, Queue, Queues, Scheduler
from clustergate.stacks import PROVIDERS, lacking, lacks
from clustergate.stacks.golden import builds as golden
from clustergate.stacks.golden.builds import GOLDEN_NOT_WHOLE
from clustergate.stacks.lacking import STACK_LACKS
from clustergate.stacks.manifest import Manifest, ManifestError, manifest_path, read_manifest
from clustergate.stacks.provider import TooSlow

OK, WARN, FAIL = "ok", "warn", "fail"
_STACK = "stack "
_OF_NODES = ("partition", "nodes", "hostfile", "cores")
# What three stacks take with their downloads, rounded up, and a run.
_ROOM_MB = 1000
_RUN_MB = 20
# Linux' default; ranks with less were not tried.
_STACK_KIB = 8192
# For schedulers and what all stacks come from, which are asked at once.
_ASKING_S = 3.0
# The newest runs, for when each node was looked at last.
_RUNS_LOOKED_AT = 30
# How often a gate asks a scheduler that does not answer, and how long it waits in between.
_ATTEMPTS, _PAUSE_S = 3, 2.0
_FABRICS = Path("/sys/class/infiniband")


@dataclass(frozen=True)
class Finding:
    """What was looked at, ``ok``, ``warn`` or ``fail``, and what it is, or why not and a remedy."""

    what: str
    status: str
    says: str | Reason

    @property
    def is_of_nodes(self) -> bool:
        """Tell whether it speaks of which nodes and cores there are, and are measured."""
        return self.what.partition(" ")[0] in _OF_NODES

    def plain(self) -> dict[str, Any]:
        """Return it for JSON; ``reason`` is None where it is ok."""
        why = reason_as_json(self.says) if isinstance(self.says, Reason) else None
        return {"what": self.what, "status": self.status, "says": str(self.says), "reason": why}


# --- what was read, and what it means: pure -----------------------------------------------------


NOT_WRITABLE = Words(
    "doctor.not-writable",
    "{folder} is not writable",
    remedy="name another folder in CLUSTERGATE_HOME",
)
NEW_HOME = Words(
    "doctor.new-home",
    "new, empty home {folder} (made just now): no stack and no result is there",
    cause="CLUSTERGATE_HOME names it",
    remedy="correct that if it is mistyped; else all is set up anew",
)
NOT_EXECUTABLE = Words(
    "doctor.not-executable",
    "no program can be started in {folder}",
    cause="its file system is mounted noexec",
    remedy="name another folder in CLUSTERGATE_HOME",
)
LITTLE_ROOM = Words(
    "doctor.little-room",
    "{folder} has {free_mb:.0f} MB free",
    cause="three stacks and their downloads take {needed_mb:.0f} MB",
    remedy="free some space, or name a folder on a larger disk in CLUSTERGATE_HOME",
)


def check_home(
    folder: Path, free_mb: float, *, writable: bool, executable: bool, is_new: bool = False
) -> Finding:
    """Return whether stacks can be set up in a folder, and results kept there.

    One that ``is_new`` was named by somebody, and nothing was ever made in it.
    """
    if not writable:
        return Finding("home", FAIL, NOT_WRITABLE(folder=folder))
    if not executable:
        return Finding("home", FAIL, NOT_EXECUTABLE(folder=folder))
    if free_mb < _ROOM_MB:
        little = LITTLE_ROOM(folder=folder, free_mb=free_mb, needed_mb=_ROOM_MB)
        return Finding("home", FAIL if free_mb < _RUN_MB else WARN, little)
    if is_new:
        return Finding("home", WARN, NEW_HOME(folder=folder))
    return Finding("home", OK, f"{folder}, {free_mb / 1000:.1f} GB free")


LOCAL_LOCKS = Words(
    "doctor.local-locks",
    "{folder} is on {kind}, mounted so that its locks may hold on this node alone",
    cause="two nodes could set a stack up at the same time, or take one number for two runs",
    remedy="start clustergate on one node at a time, or mount it with locks that all nodes see",
)


def check_locks(folder: Path, mount: Mount) -> list[Finding]:
    """Return that another node may hold a lock of a folder at the same time."""
    if not mount.locks_locally:
        return []
    kind = LOCAL_LOCKS(folder=folder, kind=mount.kind)
    return [Finding("locks", WARN, kind)]


DOCTOR_LOCKED = Words(
    "doctor.locked",
    "a rank can lock only {limit} of memory (ulimit -l)",
    cause="InfiniBand registers its buffers, which locks them",
    remedy=(
        "set memlock to unlimited below /etc/security/limits.d, and for Slurm's jobs "
        "LimitMEMLOCK=infinity for slurmd"
    ),
)
STACK_SIZE = Words(
    "doctor.stack-size",
    "a process may have a stack of {limit} (ulimit -s), less than the usual {usual_kib} KiB",
    remedy="`ulimit -s {usual_kib}`",
)


def check_limits(locked_kib: float, stack_kib: float, *, fabric: bool) -> list[Finding]:
    """Return what the limits on locked memory and on the stack of a process mean for ranks."""
    locked = Finding("locked memory", OK, _kib(locked_kib))
    if fabric and locked_kib != float("inf"):
        locked = Finding("locked memory", WARN, DOCTOR_LOCKED(limit=_kib(locked_kib)))
    stack = Finding("stack size", OK, _kib(stack_kib))
    if stack_kib < _STACK_KIB:
        little = STACK_SIZE(limit=_kib(stack_kib), usual_kib=_STACK_KIB)
        stack = Finding("stack size", WARN, little)
    return [locked, stack]


DOCTOR_LOCALE = Words(
    "doctor.locale",
    "standard output is {encoding}",
    cause="characters that it lacks are replaced, or printed as ?",
    remedy="`export LC_ALL=C.UTF-8`",
)


def check_locale(encoding: str) -> Finding:
    """Return whether standard output takes all signs of the tables."""
    if encoding.lower().replace("-", "") == "utf8":
        return Finding("locale", OK, encoding)
    return Finding("locale", WARN, DOCTOR_LOCALE(encoding=encoding))


DOCTOR_UNAVAILABLE = Words("doctor.unavailable", "{names:names}: not available here", cause="{why}")


def check_stack(name: str, manifest: Manifest, on_request: Collection[str]) -> list[Finding]:
    """Return whether a stack that was set up is there, with all programs but those on request."""
    what, launcher = _STACK + name, manifest.launcher
    if why := manifest.unavailable:
        return [Finding(what, WARN, DOCTOR_UNAVAILABLE(names=[name], why=why))]
    # That of a site may have no path of its own.
    if os.path.isabs(launcher) and not os.access(launcher, os.X_OK):
        return [Finding(what, FAIL, GOLDEN_NOT_WHOLE(stack=name, path=launcher))]
    absent: dict[str, list[str]] = {}
    for program, one in manifest.programs.items():
        if one.unavailable and program not in on_request:
            absent.setdefault(one.unavailable, []).append(program)
    version = f"{manifest.mpi_name} {manifest.mpi_version}".strip()
    return [
        Finding(what, OK, f"{version}, set up by {manifest.provider}"),
        *(
            Finding(what, WARN, DOCTOR_UNAVAILABLE(names=names, why=why))
            for why, names in absent.items()
        ),
    ]


REFERENCES_NONE = Words(
    "references.none",
    "there are no references of {system}",
    cause="figures are judged against physical limits alone, and the gate does not open",
    remedy="`clustergate baseline`, after five runs over at least an hour, makes them",
)
EXPECTATIONS_ALONE = Words(
    "references.expectations-alone",
    "{system} has {expectations:expectation|expectations} and no references",
    cause="all other figures are judged against physical limits alone, and the gate does not open",
    remedy="`clustergate baseline`, after five runs over at least an hour, makes them",
)


def without_references(system: str, known: References) -> Reason:
    """Return what to say of a system without references, which may have expectations."""
    if count := len(known.expects):
        return EXPECTATIONS_ALONE(system=system, expectations=count)
    return REFERENCES_NONE(system=system)


NOT_OF_THESE = Words(
    "references.not-of-these",
    "there are references of {figures:figure|figures}, but none of {of_mode} for {cases:names}",
    cause="these are judged against physical limits alone",
    remedy="`clustergate baseline`, after five runs of this mode over at least an hour, makes them",
)


def check_references(
    system: str,
    known: References,
    planned: Sequence[CaseId] = (),
    mode: str = "",
    stacks: Collection[str] = (),
    partitions: Sequence[Partition] = (),
) -> Finding:
    """Return whether there are references, of all that is planned in a mode where one is named."""
    whys = [why for one in known.expects if (why := impossible(one, stacks))]
    # A site config that cannot be read is told by itself.
    never = never_compared(known, partitions) if partitions else {}
    if whys := [*whys, *never.values()]:
        return Finding("references", FAIL, whys[0])
    count, expected = len(known.paths()), counted(len(known.expects), "expectation")
    if not count and known.expects:
        return Finding("references", OK, expected)
    if not count:
        return Finding("references", WARN, without_references(system, known))
    if without := known.without(planned, mode):
        cases = dict.fromkeys(f"{one.check} with {one.stack} on {one.partition}" for one in without)
        why = NOT_OF_THESE(figures=count, of_mode=mode, cases=[*cases])
        return Finding("references", WARN, why)
    beside = f"; {expected}" if known.expects else ""
    return Finding("references", OK, f"{counted(count, 'figure')}, {known.blessed}{beside}")


NO_GOLDEN = Words(
    "doctor.no-golden",
    "no golden build of {stacks:list}",
    cause="slower software cannot be distinguished from slower hardware",
    remedy="`clustergate golden pin STACK` keeps one, once it is accepted",
)


def check_golden(stacks: Sequence[str], pinned: Collection[str]) -> Finding:
    if without := [stack for stack in stacks if stack not in pinned]:
        return Finding("golden builds", WARN, NO_GOLDEN(stacks=without))
    return Finding("golden builds", OK, ", ".join(stacks))


NO_PARTITION = Words(
    "doctor.no-partition",
    "{scheduler} has no {queue} {name!r}, which `access` of the partition {partition} names",
    remedy="known: {known:list}{meant}",
)
FEWER_CORES = Words(
    "doctor.fewer-cores",
    "the site config states {used} of the {cores} cores that {scheduler} has of each node",
    cause="the others are not measured",
    remedy=(
        "correct `cores_per_node`; what no job gets, such as the system's own cores, is "
        "`reserved_cores_per_node`: {others}"
    ),
)
NO_STACK = Words(
    "doctor.no-stack",
    "the partition {name} has no stack: {nodes}",
    cause="they are never measured",
    remedy=(
        "name stacks in its environs, or let its extras say why a gate need not judge it: "
        '"waived": "the reason"'
    ),
)
OTHER_NODES = Words(
    "doctor.other-nodes",
    "the site config says {stated}, and {scheduler} has {has}",
    cause=(
        "jobs that request too many nodes or cores never start, and nodes beyond those stated "
        "are not measured"
    ),
    remedy="correct whichever is wrong: {tells}",
)


def check_nodes(partition: Partition, queues: Queues | None = None) -> Finding:
    """Return the size of a partition, and whether its scheduler has its nodes.

    ``queues`` are those of the scheduler, if it tells them.
    """
    scheduler = scheduler_of(partition.scheduler)
    what, shape = f"partition {partition.name}", partition.shape
    excluded = f", {shape.excluded} more excluded" if shape.excluded else ""
    size = f"{_size(shape.nodes, shape.cores_per_node)}, by {partition.scheduler}{excluded}"
    # Of one whose nodes are all left out of this run nothing else is left.
    none_left = shape.nodes == 1 and shape.excluded
    if partition.environs == () and not (partition.waived or not scheduler.is_batch or none_left):
        nodes = _size(shape.nodes, shape.cores_per_node)
        return Finding(what, WARN, NO_STACK(name=partition.name, nodes=nodes))
    if queues is None or partition.environs == ():
        return Finding(what, OK, size)
    asked = {"scheduler": scheduler.name, "queue": scheduler.queue_word}
    name = scheduler.queue_in(partition.access)
    if name not in queues:
        meant = did_you_mean(nearest(name, known := sorted({*queues} - {DEFAULT})))
        facts = {"name": name or "(default)", "known": known, "meant": meant, **asked}
        return Finding(what, FAIL, NO_PARTITION(partition=partition.name, **facts))
    allowed = scheduler.allowed_in(queues[name], partition.access)
    has = (allowed or queues[name]).by_cores
    # Those that are excluded are so by `access`.
    stated = shape.nodes + (shape.excluded if allowed is None else 0)
    whole = partition.physical_cores_per_node
    narrowed = has != queues[name].by_cores
    if scheduler.counts_threads:
        has = _in_cores(has, whole)
    alike = has[whole]
    if len(has) == 1 and shape.nodes <= sum(has.values()) <= stated and min(has) > whole:
        of_each = {"used": whole, "cores": min(has), "others": min(has) - shape.cores_per_node}
        return Finding(what, WARN, FEWER_CORES(scheduler=scheduler.name, **of_each))
    # Of more than it counts a job may get others, of another kind among them, and some are measured
    # by nobody.
    if alike < shape.nodes or (sum(has.values()) > stated and allowed is not None):
        each = " and ".join(_size(count, cores) for cores, count in sorted(has.items()))
        of = {"stated": _size(stated, whole), "has": each or "no node"}
        of["has"] += " for what `access` asks" if narrowed else ""
        of |= {"scheduler": scheduler.name, "tells": scheduler.lists_sizes}
        return Finding(what, WARN if has else FAIL, OTHER_NODES(**of))
    return Finding(what, OK, size)


def _in_cores(has: Counter[int], whole: int) -> Counter[int]:
    """Return counts by cores: 2 or 4 times ``whole`` CPUs are the hardware threads of these."""
    cores: Counter[int] = Counter()
    for cpus, count in has.items():
        cores[whole if cpus in (2 * whole, 4 * whole) else cpus] += count
    return cores


def check_unused_nodes(
    partition: Partition, queues: Queues, out: Collection[str] = ()
) -> list[Finding]:
    """Return which nodes of a partition its scheduler gives to nobody, but for those ``out``."""
    scheduler = scheduler_of(partition.scheduler)
    has = queues.get(scheduler.queue_in(partition.access), Queue())
    unused = (scheduler.allowed_in(has, partition.access) or has).unused
    left = {
        fold(names): causes
        for nodes, causes in unused.items()
        if (names := [name for name in expand(nodes) if name not in out])
    }
    what = f"partition {partition.name}"
    return [
        Finding(what, WARN, scheduler.not_used(nodes, causes)) for nodes, causes in left.items()
    ]


UNREACHED_NODES = Words(
    "doctor.unreached-nodes",
    "no partition of the site config contains {nodes} of {scheduler}'s {queue} {name}",
    cause="they are never measured",
    remedy=(
        'add the partition that `clustergate site scan` writes ("waived": "the reason" in extras '
        "where no gate judges it); or exclude them in the hostfile"
    ),
)
UNTOLD_NODES = Words(
    "doctor.untold-nodes",
    (
        "`access` of the partition {partition} does not name its nodes: {scheduler} has {nodes}, "
        "the site config states {stated}"
    ),
    cause="the nodes beyond those are never measured",
    remedy="{narrow}",
)


def check_unreached_nodes(
    partitions: Sequence[Partition],
    scheduler: Scheduler,
    queues: Queues,
    out: Collection[str] = (),
) -> list[Finding]:
    """Return which nodes of a scheduler none of its partitions reaches, but for those left ``out``.

    Where it alone can tell which nodes `access` allows, those beyond what is stated are told.
    """
    reached, findings = {*out}, []
    for partition in partitions:
        has = queues.get(scheduler.queue_in(partition.access), Queue())
        allowed = scheduler.allowed_in(has, partition.access)
        names = _names_in(allowed or has)
        reached |= names
        stated = partition.shape.nodes + partition.shape.excluded
        if allowed is None and len(names - {*out}) > stated:
            by = {"scheduler": scheduler.name, "narrow": scheduler.narrows}
            counts = {"nodes": len(names), "stated": stated}
            untold = UNTOLD_NODES(partition=partition.name, **by, **counts)
            findings.append(Finding("nodes", WARN, untold))
    for name, has in queues.items():
        if rest := _names_in(has) - reached:
            reached |= rest
            by = {"scheduler": scheduler.name, "queue": scheduler.queue_word, "name": name}
            unreached = UNREACHED_NODES(nodes=fold(sorted(rest)), **by)
            findings.append(Finding("nodes", WARN, unreached))
    return findings


def _names_in(has: Queue) -> set[str]:
    return {name for line in has.groups for name in expand(line.names)}


UNKNOWN_NODES = Words(
    "doctor.unknown-nodes",
    "{source} lists {nodes}, which {scheduler} does not have: it has {known}",
    cause=(
        "{scheduler} refuses jobs that name unknown nodes, and jobs on more nodes than it has "
        "never start"
    ),
    remedy="correct the hostfile: {names}",
)
OTHER_SLOTS = Words(
    "doctor.other-slots",
    "{source} says slots={slots} of {nodes}, and the site config {stated:list} cores per node",
    cause="cores without slots stay idle, and ranks beyond the cores share them",
    remedy="correct whichever is wrong",
)


def check_hostfile(
    hostfile: Hostfile, cores: Collection[int], queues_of: Mapping[Scheduler, Queues]
) -> list[Finding]:
    """Return whether a hostfile names the nodes that schedulers have, with as many slots as cores.

    ``cores`` are those of a node of each partition of the site.
    """
    what, source = "hostfile", hostfile.source
    listed = [node.name for node in hostfile.nodes]
    findings = []
    for scheduler, queues in queues_of.items():
        lists = dict.fromkeys(x.names for one in queues.values() for x in one.groups)
        known = {name for nodes in lists for name in expand(nodes)}
        # Either may know a node by a longer name.
        short = {name.partition(".")[0] for name in known}
        unknown = [name for name in listed if name.partition(".")[0] not in short]
        if unknown and known:
            facts = {"source": source, "nodes": fold(unknown), "known": fold(known)}
            facts |= {"scheduler": scheduler.name, "names": scheduler.lists_names}
            status = FAIL if len(unknown) == len(listed) else WARN
            findings.append(Finding(what, status, UNKNOWN_NODES(**facts)))
    other: dict[int, list[str]] = {}
    for node in hostfile.nodes:
        if node.slots not in cores:
            other.setdefault(node.slots, []).append(node.name)
    for slots, names in other.items():
        stated = [str(count) for count in sorted({*cores})]
        of = {"source": source, "nodes": fold(names)}
        other_slots = OTHER_SLOTS(slots=slots, stated=stated, **of)
        findings.append(Finding(what, WARN, other_slots))
    return findings or [Finding(what, OK, f"{counted(len(listed), 'node')}, {source}")]


DOCTOR_ASTRAY = Words(
    "doctor.astray",
    "{says}",
    remedy=(
        "put that right, or exclude those nodes in the hostfile; `clustergate screen --quick` "
        "then shows whether that was all"
    ),
)
NOT_LOOKED_AT = Words(
    "doctor.not-looked-at",
    "no recent run covered {nodes}, of {known} nodes",
    remedy="`clustergate screen --quick` tests every node",
)


def check_node_states(
    known: Sequence[str], looked_at: Mapping[str, str], astray: Sequence[str] = ()
) -> list[Finding]:
    """Return which of the ``known`` nodes no recent run looked at, and which were not as before.

    ``looked_at`` are the newest runs that kept the state of a node, by its short name.
    """
    rest = [name for name in known if name.partition(".")[0] not in looked_at]
    findings = [Finding("states", WARN, DOCTOR_ASTRAY(says=one)) for one in astray]
    if rest:
        unseen = NOT_LOOKED_AT(nodes=fold(rest), known=len(known))
        findings.append(Finding("states", WARN, unseen))
    if findings or not known:
        return findings
    runs = sorted({looked_at[name.partition(".")[0]] for name in known})
    return [Finding("states", OK, f"{counted(len(known), 'node')}, last seen by {runs[-1]}")]


def _size(nodes: int, cores: int) -> str:
    return f"{counted(nodes, 'node')} of {counted(cores, 'core')}"


def _kib(limit: float) -> str:
    return "unlimited" if limit == float("inf") else f"{limit:.0f} KiB"


# --- looking ------------------------------------------------------------------------------------

NOT_SET_UP = Words(
    "doctor.not-set-up",
    "{stack} is not set up yet",
    remedy="`clustergate check`, `gate` and `ab` do so, and `clustergate setup` does it alone",
)
# What the plan of a run says as well, or what the run does itself.
_IN_THE_PLAN = (NOT_SET_UP.code, REFERENCES_NONE.code)


def look(named: str | None = None, mode: Mode | None = None) -> list[Finding]:
    """Look at this machine and at a site, that of this name or the one that fits.

    With a mode, the last finding is the plan of a run that starts now.
    """
    state = state_dir()
    problems = [*_of_machine(state), *_of_site(named, state, mode)]
    # What keeps a run from being planned was told where it was found.
    sentences = [one.says for one in problems if one.what != "plan"]
    return [one for one in problems if one.what != "plan" or one.says not in sentences]


def say_in_the_way(
    say: Say, site: Path, stacks: Collection[str] = (), *, software: bool = False
) -> list[Finding]:
    """Say what a run on a site will meet, before anything is set up or measured; return it.

    It is with these of the site's stacks, or with all of them; ``software`` is for one that holds
    golden builds against today's.
    """
    require_home()
    sites.require_reframe()
    others = _IN_THE_PLAN if software else (*_IN_THE_PLAN, NO_GOLDEN.code)
    whose: dict[tuple[str, Reason], list[str]] = {}
    for one in look(str(site)):
        if not isinstance(one.says, Reason) or one.says.code in others:
            continue
        if not stacks or not one.what.startswith(_STACK) or one.what[len(_STACK) :] in stacks:
            whose.setdefault((one.status, one.says), []).append(one.what)
    for (status, why), what in whose.items():
        say(f"{status}: {', '.join(what)}: {why}")
    return [Finding(what[0], status, why) for (status, why), what in whose.items()]


def nodes_in_the_way(site: Site, seconds: float | None, say: Say) -> list[Reason]:
    """Return what speaks against the nodes of a site as they are now.

    A scheduler is asked until it answers, a few times at most and within so many ``seconds``.
    """
    asked: dict[Scheduler, Future[Queues]] = {one: Future() for one in _listing(site)}
    until = math.inf if seconds is None else time.monotonic() + seconds
    for scheduler, queues in asked.items():
        for attempt in range(_ATTEMPTS):
            left_s = until - time.monotonic()
            try:
                queues.set_result(scheduler.queues(max(min(left_s, SECONDS), _ASKING_S)))
                break
            except ClustergateError as error:
                if attempt + 1 == _ATTEMPTS or left_s < _ASKING_S:
                    queues.set_exception(error)
                    break
                say(f"{error.reason.without_remedy}; asking again")
                time.sleep(_PAUSE_S)
    return [
        one.says
        for one in _of_nodes(site, asked)
        if one.is_of_nodes and isinstance(one.says, Reason)
    ]


def _listing(site: Site) -> list[Scheduler]:
    return [one for one in site.schedulers if one.lists_nodes]


def _tried(what: str, look: Callable[[], Sequence[Finding]]) -> Sequence[Finding]:
    try:
        return look()
    except ClustergateError as error:
        return [Finding(what, WARN if isinstance(error, TooSlow) else FAIL, error.reason)]


def _of_machine(state: Path) -> Iterator[Finding]:
    there = next(folder for folder in (state, *state.parents) if folder.is_dir())
    mounted = os.statvfs(there)
    try:
        require_home(state)
    except ClustergateError as error:
        yield Finding("home", FAIL, error.reason)
    yield check_home(
        state,
        shutil.disk_usage(there).free / 1e6,
        writable=os.access(there, os.W_OK | os.X_OK),
        executable=not mounted.f_flag & os.ST_NOEXEC,
        is_new=bool(os.environ.get(HOME))
        and not any((state / name).exists() for name in ("manifests", "results/runs")),
    )
    yield from check_locks(state, mount_of(there))
    try:
        sites.require_reframe()
    except ClustergateError as error:
        yield Finding("ReFrame", FAIL, error.reason)
    for package, why in not_loaded().items():
        yield Finding(f"package {package}", FAIL, why)
    for why in dict.fromkeys(lost_tests().values()):
        yield Finding("package", FAIL, why)
    broken = lacking.broken_compiler()
    lacked = STACK_LACKS(lacks=lacking.sentence_of(broken))
    compiler = shutil.which("cc") or shutil.which("gcc") or lacking.C
    yield Finding("compiler", FAIL if broken else OK, lacked if broken else compiler)
    yield from check_limits(
        _limit_kib(resource.RLIMIT_MEMLOCK),
        _limit_kib(resource.RLIMIT_STACK),
        fabric=_FABRICS.is_dir() and any(_FABRICS.iterdir()),
    )
    yield check_locale(sys.stdout.encoding or "ascii")


def _limit_kib(which: int) -> float:
    soft, _ = resource.getrlimit(which)
    return float("inf") if soft == resource.RLIM_INFINITY else soft / 1024


def _of_site(named: str | None, state: Path, mode: Mode | None) -> Iterator[Finding]:
    try:
        chosen = choice.choose(named)
        site = sites.load(chosen.path)
    except ClustergateError as error:
        yield Finding("site", FAIL, error.reason)
        return
    yield Finding("site", OK, str(chosen).removeprefix("site "))
    on_request = {name for one in builds_on_request().values() for name in one.programs}
    # A run that begins sets stacks up itself.
    look = partial(_look_at, state, on_request, chosen.path if mode else None)
    with ThreadPoolExecutor() as pool:
        asked = {one: pool.submit(one.queues, _ASKING_S) for one in _listing(site)}
        looks = [partial(look, stack) for stack in site.stacks]
        of_stacks = pool.map(_tried, [_STACK + stack.name for stack in site.stacks], looks)
    yield from _of_nodes(site, asked)
    yield from _tried("states", partial(_look_at_states, site))
    yield from itertools.chain.from_iterable(of_stacks)
    judged_by = cache(partial(references_of, site.name))
    mode = mode and mode_named(mode.name, site.checks)
    planned = expected_cases(mode.checks, site.partitions, mode) if mode else []
    stacks = [stack.name for stack in site.stacks]
    of = (planned, mode.name if mode else "", stacks, site.partitions)
    yield from _tried("references", lambda: [check_references(site.name, judged_by(), *of)])
    yield from _tried("golden builds", lambda: [_look_at_golden(site, state)])
    if mode:
        run = Request(mode, chosen.path)
        yield from _tried("plan", lambda: [Finding("plan", OK, foresee(run, site, judged_by())[2])])


DOCTOR_RESTRICTED = Words(
    "doctor.restricted",
    "{restriction}",
    cause="only these are measured",
    remedy="start it with the whole node available, or restrict every run in the same way",
)


def _of_nodes(site: Site, asked: Mapping[Scheduler, Future[Queues]]) -> Iterator[Finding]:
    hostfile = exclusions.hostfile_of(site.name)
    out = {*(hostfile.excluded if hostfile else ()), *exclusions.nodes_left_out()}
    for one in site.partitions:
        queues = asked.get(scheduler_of(one.scheduler))
        yield from _tried(f"partition {one.name}", partial(_look_at_nodes, one, queues, out))
    # That a scheduler does not answer was said of its partitions.
    known = {
        scheduler: has
        for scheduler, queues in asked.items()
        if not queues.exception() and (has := queues.result())
    }
    for scheduler, has in known.items():
        own = [one for one in site.partitions if scheduler_of(one.scheduler) is scheduler]
        yield from _tried("nodes", partial(check_unreached_nodes, own, scheduler, has, out))
    if hostfile:
        cores = [one.shape.cores_per_node for one in site.partitions]
        yield from _tried("hostfile", partial(check_hostfile, hostfile, cores, known))
    node = read_node() if sites.partitions_here(site) else None
    if node and (restriction := node.restriction()):
        what = "cores" if node.lacks_cores else "memory"
        yield Finding(what, WARN, DOCTOR_RESTRICTED(restriction=restriction))


def _look_at_states(site: Site) -> list[Finding]:
    """Say which nodes of several the newest runs looked at: a smoke test is on one of them."""
    hostfile = exclusions.hostfile_of(site.name)
    known = [node.name for node in hostfile.usable] if hostfile else []
    if not known:
        known = [name for one in site.schedulers for name in one.node_names()]
    if len(known) < 2:
        return []
    looked_at: dict[str, str] = {}
    astray: list[str] = []
    for run in recorded_runs()[: -_RUNS_LOOKED_AT - 1 : -1]:
        names = {node.partition(".")[0] for node in read_states(run_folder(run)) if node != HERE}
        # Of the newest run that had a node it is told what that was like.
        if names - looked_at.keys() & {name.partition(".")[0] for name in known}:
            astray += astray_nodes(run_folder(run), first_too=False) if not looked_at else []
            looked_at = {**dict.fromkeys(names, run), **looked_at}
    return check_node_states(known, looked_at, astray)


def _look_at_nodes(
    one: Partition, asked: Future[Queues] | None, out: Collection[str]
) -> list[Finding]:
    queues = asked.result() if asked else None
    return [check_nodes(one, queues), *(check_unused_nodes(one, queues, out) if queues else [])]


def _look_at(
    state: Path, on_request: Collection[str], site_config: Path | None, stack: Stack
) -> list[Finding]:
    """Look at a stack; where the site config is given, at what it is set up from, too."""
    if site_config:
        try:
            PROVIDERS[stack.provider].require_source(stack.settings, _ASKING_S)
        except ClustergateError as error:
            raise error.at(f"{site_config}: stack {stack.name}") from None
    try:
        return check_stack(stack.name, read_manifest(state, stack.name), on_request)
    except ManifestError as error:
        there = manifest_path(state, stack.name).exists()
        not_set_up = error.reason if there else NOT_SET_UP(stack=stack.name)
    if lacked := lacks(stack.request, state, seen=True):
        not_set_up = STACK_LACKS(lacks=lacking.sentence_of(lacked))
        return [Finding(_STACK + stack.name, FAIL, not_set_up)]
    return [Finding(_STACK + stack.name, WARN, not_set_up)]


def _look_at_golden(site: Site, state: Path) -> Finding:
    pinned = golden.pinned_stacks(state)
    for stack in pinned:
        # Whether its files are what was pinned takes longer: `clustergate golden verify` tells.
        golden.read(state, stack)
    return check_golden([stack.name for stack in site.stacks], pinned)
