"""Clusters that do not exist, of which the truth is known: for tests, and to plan a screening."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clustergate.benchmarks.budget import Budget
from clustergate.launch.plan import Contender
from clustergate.studies.screen.campaign import Campaign, Task
from clustergate.studies.screen.findings import Screening
from clustergate.studies.screen.localisation import Located
from clustergate.studies.screen.measures import PAIRS, Result
from clustergate.studies.screen.plan import EACH, TWO, Plan
from clustergate.studies.screen.rounds import number_of_rounds

LATENCY, BANDWIDTH = (measure.key for measure in PAIRS)
# A round as it is on a real network: reaching two nodes, starting, half a second of messages.
ROUND_S = 5.0
# How nodes alone differ from launch to launch.
_ALONE_NOISE = 0.01

Link = tuple[int, int]


@dataclass(frozen=True)
class Cluster:
    """What is true of a cluster; factors are how many times longer something takes.

    ``noise`` is the standard deviation of the logarithm of a time, ``spread`` that of sound nodes;
    instead of it ``recorded`` may hold levels of sound launches one after the other, those of
    latency and of bandwidth. Faults are in bandwidth, and show in a share ``acts`` of the launches.
    ``disturbed`` is the share of measurements that something else makes longer, by an exponential
    of the mean ``disturbance`` (of the logarithm). ``crossing`` is by how many times a pair on two
    switches takes longer. ``links`` are slow both ways, ``directed`` one way only, ``lost`` nodes
    and ``cut`` links do not work. A pair is as slow as the slowest part of its way, and takes the
    mean of both directions, as a ping-pong does.
    """

    nodes: int
    switches: Sequence[int] | None = None
    noise: float = 0.03
    spread: float = 0.01
    recorded: Sequence[tuple[float, float]] = ()
    acts: float = 1.0
    disturbed: float = 0.0
    disturbance: float = math.log(1.5)
    crossing: float = 1.0
    bad_nodes: Mapping[int, float] = field(default_factory=dict)
    links: Mapping[Link, float] = field(default_factory=dict)
    directed: Mapping[Link, float] = field(default_factory=dict)
    uplinks: Mapping[int, float] = field(default_factory=dict)
    between: Mapping[Link, float] = field(default_factory=dict)
    inside: Mapping[int, float] = field(default_factory=dict)
    lost: frozenset[int] = frozenset()
    cut: frozenset[Link] = frozenset()


def observe(cluster: Cluster, pairs: ArrayLike, random: np.random.Generator) -> NDArray[np.float64]:
    """Return the levels of bandwidth of pairs, measured once each; infinite where they fail."""
    ends = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    effects = np.random.default_rng(cluster.nodes).normal(0.0, cluster.spread, cluster.nodes)
    slow = np.ones(cluster.nodes)
    slow[list(cluster.bad_nodes)] = list(cluster.bad_nodes.values())
    way = np.maximum(slow[ends[:, 0]], slow[ends[:, 1]])
    ordered = np.sort(ends, axis=1)
    usual = np.ones(len(ends))
    for link, factor in cluster.links.items():
        way = np.where((ordered == sorted(link)).all(axis=1), np.maximum(way, factor), way)
    if cluster.switches is not None:
        at = np.asarray(cluster.switches)[ends]
        crosses = at[:, 0] != at[:, 1]
        usual = np.where(crosses, cluster.crossing, 1.0)
        for switch, factor in cluster.uplinks.items():
            concerned = crosses & (at == switch).any(axis=1)
            way = np.where(concerned, np.maximum(way, factor), way)
        for switch, factor in cluster.inside.items():
            way = np.where((at == switch).all(axis=1), np.maximum(way, factor), way)
        for block, factor in cluster.between.items():
            concerned = (np.sort(at, axis=1) == sorted(block)).all(axis=1)
            way = np.where(concerned, np.maximum(way, factor), way)
    shows = random.random(len(ends)) < cluster.acts
    way = np.where(shows, way, 1.0)
    there, back = way.copy(), way.copy()
    for link, factor in cluster.directed.items():
        for one_way, direction in ((there, ends), (back, ends[:, ::-1])):
            same = (direction == link).all(axis=1)
            one_way[same] = np.maximum(one_way[same], factor)
    levels = np.log(usual * (there + back) / 2) + effects[ends].sum(axis=1)
    if not cluster.recorded:
        levels += _noise(cluster, len(ends), random)
    failed = np.isin(ends, list(cluster.lost)).any(axis=1)
    for link in cluster.cut:
        failed |= (ordered == sorted(link)).all(axis=1)
    return np.where(failed, math.inf, levels)


def _noise(cluster: Cluster, number: int, random: np.random.Generator) -> NDArray[np.float64]:
    hit = random.random(number) < cluster.disturbed
    disturbed = np.where(hit, random.exponential(cluster.disturbance, number), 0.0)
    return np.asarray(random.normal(0.0, cluster.noise, number) + disturbed)


class Simulated:
    """Launches on a cluster that does not exist; ``seconds`` is what they would have taken."""

    def __init__(self, cluster: Cluster, random: np.random.Generator) -> None:
        self._cluster, self._random = cluster, random
        self.seconds = 0.0
        # A recording is played from somewhere on, again and again.
        start = int(random.integers(len(cluster.recorded) or 1))
        self._noise = itertools.islice(itertools.cycle(cluster.recorded), start, None)

    def run(self, tasks: Sequence[Task]) -> Iterator[Result]:
        """Yield what disjoint launches, made at once, leave behind."""
        self.seconds += ROUND_S
        kind, turn = tasks[0].contender.name, tasks[0].turn
        if len(tasks[0].nodes) == 1:
            for task in tasks:
                value = math.exp(self._random.normal(0.0, _ALONE_NOISE))
                yield Result(task.nodes, kind, turn, {"fma_peak_gflops": value}, "", ROUND_S)
            return
        pairs = [[int(name) for name in task.nodes] for task in tasks]
        bandwidth = observe(self._cluster, pairs, self._random)
        latency = _noise(self._cluster, len(tasks), self._random)
        if self._cluster.recorded:
            latency, more = np.array(list(itertools.islice(self._noise, len(tasks)))).T
            bandwidth = bandwidth + more
        for task, late, level in zip(tasks, latency.tolist(), bandwidth.tolist(), strict=True):
            if math.isinf(level):
                yield Result(task.nodes, kind, turn, {}, "it took longer than 60 s", ROUND_S)
                continue
            values = {LATENCY: math.exp(late), BANDWIDTH: math.exp(-level)}
            yield Result(task.nodes, kind, turn, values, "", ROUND_S)


def recorded(path: Path) -> tuple[tuple[str, ...], tuple[Result, ...]]:
    """Return the nodes of a real screening that was recorded, and its launches in their order."""
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    results = [entry["result"] for entry in entries if "result" in entry]
    names = next(entry["names"] for entry in entries if "names" in entry)
    return tuple(names), tuple(Result(**{**r, "nodes": tuple(r["nodes"])}) for r in results)


@dataclass(frozen=True)
class Outcome:
    """What a simulated screening found, ``located`` by the bandwidth of pairs.

    ``rounds`` of pairs were planned, ``further`` came after them; ``node_s`` is how long the nodes
    were taken, all of them together: a job holds them to its end.
    """

    screening: Screening
    results: Sequence[Result]
    rounds: int
    further: int
    node_s: float

    @property
    def located(self) -> Located:
        """What the bandwidth of pairs says."""
        return self.screening.located[BANDWIDTH]


def screen(
    cluster: Cluster,
    number: int | None,
    random: np.random.Generator,
    *,
    most_further: int = 60,
    seconds: float = math.inf,
) -> Outcome:
    """Screen a cluster as the driver does, in so many rounds (None for all) and what follows."""
    names = [str(node) for node in range(cluster.nodes)]
    on = cluster.switches
    plan = Plan(
        nonce="",
        contenders=[
            Contender("peaks", [], [""], "", on=EACH),
            Contender("pingpong", [], [""], "", on=TWO),
        ],
        seed=int(random.integers(2**31)),
        budget=Budget(seconds=seconds),
        rounds=number,
        most_further=most_further,
        # Names of one length keep the order of the switches.
        switches={} if on is None else {n: f"{at:06d}" for n, at in zip(names, on, strict=True)},
    )
    machine = Simulated(cluster, random)
    campaign = Campaign(plan, names, [], machine.run, lambda _: None, lambda: machine.seconds)
    screening = campaign.run()
    turns = {result.turn for result in campaign.results if len(result.nodes) == 2}
    planned = number_of_rounds(cluster.nodes)
    wanted = planned if number is None else number
    return Outcome(
        screening,
        campaign.results,
        min(wanted, len(turns)),
        max(len(turns) - wanted, 0),
        machine.seconds * cluster.nodes,
    )
