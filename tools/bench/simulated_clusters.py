"""Clusters that do not exist, of which the truth is known: for tests, and to plan a screening."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clustergate.screening.further import further_rounds
from clustergate.screening.localisation import FAMILY_ERROR, Located, locate
from clustergate.screening.rounds import Pairs, rounds

Link = tuple[int, int]


@dataclass(frozen=True)
class Cluster:
    """What is true of a cluster; factors are how many times longer something takes.

    ``noise`` is the standard deviation of the logarithm of a time, ``spread`` that of sound nodes;
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
    """Return the levels of pairs as they would be measured once; infinite where they fail."""
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
    there, back = way.copy(), way.copy()
    for link, factor in cluster.directed.items():
        for one_way, direction in ((there, ends), (back, ends[:, ::-1])):
            same = (direction == link).all(axis=1)
            one_way[same] = np.maximum(one_way[same], factor)
    levels = np.log(usual * (there + back) / 2) + effects[ends].sum(axis=1)
    levels += random.normal(0.0, cluster.noise, len(ends))
    hit = random.random(len(ends)) < cluster.disturbed
    levels += np.where(hit, random.exponential(cluster.disturbance, len(ends)), 0.0)
    failed = np.isin(ends, list(cluster.lost)).any(axis=1)
    for link in cluster.cut:
        failed |= (ordered == sorted(link)).all(axis=1)
    return np.where(failed, math.inf, levels)


@dataclass(frozen=True)
class Outcome:
    """What a simulated screening found, after how many rounds, those of doubts among them."""

    located: Located
    rounds: int
    further: int
    pairs: int


def screen(
    cluster: Cluster,
    number: int | None,
    random: np.random.Generator,
    *,
    most_further: int = 24,
    error: float = FAMILY_ERROR,
) -> Outcome:
    """Screen a cluster as the driver does: rounds, then what is in doubt until it is settled."""
    seed = int(random.integers(2**31))
    planned = list(rounds(cluster.nodes, number, seed))
    ends: Pairs = np.concatenate([np.empty((0, 2), dtype=np.int64), *planned])
    turns = np.repeat(np.arange(len(planned)), [len(members) for members in planned])
    levels = observe(cluster, ends, random)
    located = locate(cluster.nodes, ends, levels, cluster.switches, turns=turns, error=error)
    further = 0
    while not located.settled and further < most_further:
        for members in further_rounds(cluster.nodes, ends, [located], random):
            ends = np.concatenate([ends, members])
            levels = np.concatenate([levels, observe(cluster, members, random)])
            turns = np.append(turns, np.full(len(members), len(planned) + further))
            further += 1
        located = locate(cluster.nodes, ends, levels, cluster.switches, turns=turns, error=error)
    return Outcome(located, len(planned), further, len(ends))
