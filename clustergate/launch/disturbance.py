"""What disturbed a launch: others that used its nodes, cores that were moved. Pure.

The kernel counts for each node the time that its CPUs worked (``/proc/stat``), and for each rank
the time that this rank worked (``getrusage``). The ranks' records hold both, at MPI_Init and at
MPI_Finalize: what is left between them was somebody else's. The time that a hypervisor gave to
other machines is counted by itself, and is somebody else's too. Interrupts are not: a network
without offloading works in them, for the ranks.

A hypervisor may also move a machine's cores to other places: messages between them then take
several times as long, and no counter says so. What does is the time that a cache line takes to and
fro, measured between launches.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from clustergate.core.model import Launch
from clustergate.core.reasons import Reason, Words
from clustergate.launch.proof.ranks import Moment, RankProof
from clustergate.machine.load import disturbing_cores

# USER_HZ, the unit of /proc/stat: 100 on all of today's architectures, time(7).
TICKS_PER_SECOND = 100
# Counters are cut to whole ticks: two differences of them, of the work and of what was stolen.
_TICKS_IN_DOUBT = 2
# One rank that lost so much of its own core holds up all others, however many they are. Below that,
# it may have slept while daemons worked elsewhere.
_HELD_UP = 0.25
# Between reading one clock and the other a rank may lose its core for a moment.
_CLOCK_DOUBT_S = 0.02
# Times the shortest distance of the job. Of 12,000 recorded launches on virtual machines those from
# 3.5 times on, another core complex, took twice as long, and nothing lay between that and 2.5.
# Those from 1.5 times on, a quarter, were no slower than the nearer ones.
_MOVED = 2.5


NODE_SHARED = Words("node.shared", "others used {lost_cores:.2f}{cores:of} cores of {host}")
NODE_STOLEN = Words(
    "node.stolen",
    (
        "others used {lost_cores:.2f}{cores:of} cores of {host}, {stolen_cores:.2f} of them "
        "stolen by the hypervisor"
    ),
)


@dataclass(frozen=True)
class NodeLoad:
    """What others took of a node between the first MPI_Init and the last MPI_Finalize on it.

    ``others_cores`` is the work of other processes, ``stolen_cores`` that of other machines on the
    same host, both in cores' worth: 1 for one core all the time. ``seconds`` is how long it was,
    ``cores`` how many the node has (0: unknown).

    ``kept_off`` is the largest share of the time that a rank can have been kept off its core,
    ``all_on`` that in which all of them had theirs. Where others worked on cores that no rank had,
    they took of caches and memory; at most they shared alike with the ranks.
    ``own_cores`` is the work of the ranks themselves, None where that is not known.
    """

    host: str
    seconds: float
    others_cores: float
    stolen_cores: float
    cores: int = 0
    kept_off: float = 0.0
    all_on: float = 1.0
    own_cores: float | None = None

    @property
    def lost_cores(self) -> float:
        """What processes and machines of others took together."""
        return self.others_cores + self.stolen_cores

    @property
    def disturbed(self) -> bool:
        """Whether it was so much that the figures tell of the others, not of the node."""
        in_doubt = _TICKS_IN_DOUBT / TICKS_PER_SECOND / self.seconds
        lost = self.lost_cores - in_doubt
        held_up = lost > disturbing_cores(None) and self.kept_off > _HELD_UP
        return held_up or lost > disturbing_cores(self.own_cores)

    @property
    def why(self) -> Reason:
        """What others took, as a reason why figures do not count."""
        return (NODE_STOLEN if self.stolen_cores >= 0.01 else NODE_SHARED)(
            host=self.host,
            lost_cores=round(self.lost_cores, 4),
            stolen_cores=round(self.stolen_cores, 4),
            cores=self.cores,
        )


def node_loads(proofs: Sequence[RankProof]) -> list[NodeLoad]:
    """Return what others took of each node, in the order of the nodes' first ranks.

    Nodes that share a kernel (containers, namespaces) are one, under the name of the first. One of
    which a rank did not come to its end, or whose kernel shows no such counters, is left out:
    nothing is known of it.
    """
    by_host: dict[str, list[RankProof]] = {}
    for proof in proofs:
        by_host.setdefault(proof.hostname, []).append(proof)
    kernels: list[list[RankProof]] = []
    for ranks in by_host.values():
        shared = next((known for known in kernels if _share_a_kernel(known[0], ranks[0])), None)
        if shared is None:
            kernels.append(ranks)
        else:
            shared += ranks
    loads = map(_load, kernels)
    return [load for load in loads if load is not None]


def worst_load(loads: Iterable[NodeLoad]) -> NodeLoad | None:
    """Return the node of which others took most, None when nothing is known of any."""
    return max(loads, key=lambda load: load.lost_cores, default=None)


def kept_off(loads: Sequence[NodeLoad]) -> tuple[float | None, float | None]:
    """Return :attr:`Launch.kept_off` and :attr:`Launch.any_kept_off` of a launch on these nodes.

    When one rank of many waits for its core is another's affair, so that the shares in which all
    have theirs are multiplied, as of independent ones.
    """
    if not loads:
        return None, None
    return max(x.kept_off for x in loads), 1.0 - math.prod(x.all_on for x in loads)


def launch_of(loads: Sequence[NodeLoad], order: int, started: float, seconds: float) -> Launch:
    """Return a launch with what others took of its nodes meanwhile."""
    lost, (one, anyone) = worst_load(loads), kept_off(loads)
    return Launch(
        order=order,
        started=round(started, 3),
        seconds=round(seconds, 4),
        host=lost.host if lost else "",
        lost_cores=round(lost.lost_cores, 4) if lost else None,
        stolen_cores=round(lost.stolen_cores, 4) if lost else None,
        own_cores=round(lost.own_cores, 4) if lost and lost.own_cores is not None else None,
        disturbed=lost.why if lost and lost.disturbed else None,
        kept_off=None if one is None else round(one, 4),
        any_kept_off=None if anyone is None else round(anyone, 4),
    )


MOVED_CORES = Words(
    "node.moved-cores",
    "core-to-core latency was {times:.1f} x its minimum",
    cause="the hypervisor moved the cores, or the job was given others",
)
OTHER_CORES = Words(
    "node.other-cores",
    "core-to-core latency was {times:.1f} x the baseline's",
    cause="the hypervisor moved the cores, or the job was given others",
)


def without_moved_cores(
    launches: Sequence[Launch], nearest_ns: float | None, known_ns: float | None = None
) -> list[Launch]:
    """Return the launches of a job, those marked during which the cores were far from each other.

    That is against ``nearest_ns``, the shortest round trip of the whole job, so it shows only
    afterwards; and against ``known_ns``, that of the baseline, as all launches may be far.
    """
    marked = list(launches)
    for ns, words in ((nearest_ns, MOVED_CORES), (known_ns, OTHER_CORES)):
        marked = [_marked(launch, ns, words) if ns else launch for launch in marked]
    return marked


def overlapping(launches: Mapping[str, Sequence[Launch]]) -> dict[str, list[Launch]]:
    """Return the launches of a run's cases, by their names, those marked that shared a node.

    Two of different cases did that overlapped in time on one host.
    """
    every = [
        (one.host, one.started, one.started + one.seconds, name)
        for name, of_case in launches.items()
        for one in of_case
        if one.host
    ]
    every.sort()
    beside: dict[tuple[str, float], str] = {}
    for place, (host, started, ended, name) in enumerate(every):
        for other in every[place + 1 :]:
            if other[0] != host or other[1] >= ended:
                break
            if other[3] != name:
                beside.setdefault((name, started), other[3])
                beside.setdefault((other[3], other[1]), name)
    return {
        name: [_overlapped(one, beside.get((name, one.started), "")) for one in of_case]
        for name, of_case in launches.items()
    }


LAUNCH_OVERLAPPED = Words(
    "launch.overlapped",
    "{other} was launched on {host} at the same time",
    remedy="set `max_jobs` of the partition to 1 in the site config",
)


def _overlapped(launch: Launch, other: str) -> Launch:
    if not other or launch.disturbed:
        return launch
    why = LAUNCH_OVERLAPPED(host=launch.host, other=other)
    return dataclasses.replace(launch, disturbed=why)


def most_disturbed(launches: Iterable[Launch]) -> Reason | None:
    """Return what disturbed the launch of which others took most, else that on the furthest cores.

    None when no launch was disturbed.
    """
    disturbed = [launch for launch in launches if launch.disturbed]

    def extent(launch: Launch) -> tuple[float, float]:
        moved_alone = launch.disturbed is not None and "times" in launch.disturbed.facts
        return 0.0 if moved_alone else launch.lost_cores or 0.0, launch.far

    return max(disturbed, key=extent).disturbed if disturbed else None


def nearest_of(distances_ns: Iterable[float]) -> float | None:
    """Return the shortest distance that a quarter of them confirm, None of none.

    A hypervisor may have both cores on the threads of a single one for a moment, three times as
    near: of 11,000 recorded distances 3 were so. Beside such a one all later launches would be far.
    """
    known = sorted(distances_ns)
    confirmed = (
        ns for ns in known if sum(ns <= x and not are_far(x, ns) for x in known) >= len(known) / 4
    )
    return next(confirmed, None)


def are_far(distance_ns: float, nearest_ns: float) -> bool:
    """Tell whether cores so far from each other are not where they were when they were nearest."""
    return distance_ns > _MOVED * nearest_ns


def _marked(launch: Launch, nearest_ns: float, words: Words[...]) -> Launch:
    distance = launch.core_distance_ns
    if distance is None or not are_far(distance, nearest_ns):
        return launch
    far = max(launch.far, distance / nearest_ns)
    why = launch.disturbed or words(times=distance / nearest_ns)
    return dataclasses.replace(launch, disturbed=why, far=far)


def _load(ranks: Sequence[RankProof]) -> NodeLoad | None:
    inits = [rank.at_init for rank in ranks if rank.at_init is not None]
    ends = [rank.at_finalize for rank in ranks if rank.at_finalize is not None]
    if len(inits) < len(ranks) or len(ends) < len(ranks):
        return None
    first = min(inits, key=lambda moment: moment.monotonic_s)
    last = max(ends, key=lambda moment: moment.monotonic_s)
    seconds = last.monotonic_s - first.monotonic_s
    early, late = _ticks(first), _ticks(last)
    if early is None or late is None or seconds <= 0:
        return None
    own_s = sum(map(_used_s, ends)) - sum(map(_used_s, inits))
    # A rank works before it says that it has begun, and after it says that it ends; nobody counts
    # that, so all of it is taken for work.
    own_s += sum(moment.monotonic_s - first.monotonic_s for moment in inits)
    own_s += sum(last.monotonic_s - moment.monotonic_s for moment in ends)
    worked_s, stolen_s = ((b - a) / TICKS_PER_SECOND for a, b in zip(early, late, strict=True))
    others, stolen = max(0.0, worked_s - own_s) / seconds, max(0.0, stolen_s / seconds)
    own = max(own_s / seconds, 1 / TICKS_PER_SECOND)
    off = [min(_off_core(rank) + stolen, others + stolen, 1.0) for rank in ranks]
    # What others worked beside the ranks, for each second of work of the ranks.
    beside = 1.0 + max(0.0, others + stolen - sum(off)) / own
    return NodeLoad(
        ranks[0].hostname,
        seconds,
        others,
        stolen,
        cores=len(first.steal_by_cpu or ()),
        kept_off=1.0 - (1.0 - max(off)) / beside,
        all_on=math.prod(1.0 - share for share in off) / beside,
        own_cores=own,
    )


def _off_core(rank: RankProof) -> float:
    """Return the share of its time that a rank did not compute, so that others may have kept it.

    A rank that waits for a message computes, too: MPI libraries poll. One that sleeps instead
    seems to be kept off; whoever asks bounds that by what others used.
    """
    begun, ended = rank.at_init, rank.at_finalize
    if begun is None or ended is None or ended.monotonic_s <= begun.monotonic_s:
        return 1.0
    threads = rank.blas.threads if rank.blas and rank.blas.threads > 0 else ended.threads
    lanes = max(1, min(len(begun.affinity), threads))
    used_s = _used_s(ended) - _used_s(begun)
    return max(0.0, 1.0 - used_s / (ended.monotonic_s - begun.monotonic_s) / lanes)


def _used_s(moment: Moment) -> float:
    return moment.user_s + moment.system_s


def _ticks(moment: Moment) -> tuple[int, int] | None:
    """Return the ticks in which CPUs worked, interrupts left out, and those that were stolen."""
    # user nice system idle iowait irq softirq steal: the aggregate line of /proc/stat, proc(5).
    ticks = [int(word) for word in (moment.cpu_times or "").split()[1:9]]
    return (sum(ticks[:3]), ticks[7]) if len(ticks) == 8 else None


def _share_a_kernel(one: RankProof, other: RankProof) -> bool:
    """Tell whether two hosts read the same counters: they booted at once and worked alike."""
    if one.at_init is None or other.at_init is None:
        return False
    booted = [m.realtime_s - m.monotonic_s for m in (one.at_init, other.at_init)]
    if abs(booted[0] - booted[1]) > _CLOCK_DOUBT_S:
        return False
    early, late = sorted((one.at_init, other.at_init), key=lambda moment: moment.monotonic_s)
    first, last = _ticks(early), _ticks(late)
    if first is None or last is None:
        return False
    passed = (late.monotonic_s - early.monotonic_s) * len(late.steal_by_cpu or ())
    return 0 <= last[0] - first[0] <= passed * TICKS_PER_SECOND + _TICKS_IN_DOUBT
