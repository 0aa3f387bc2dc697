"""``python -m tools.bench.screening``: what a screening finds, at what cost, beside simple rules.

Simulated, on clusters of which the truth is known (:mod:`tools.bench.simulated_clusters`), with
the campaign, the localisation and the repetitions of doubts that a real screening has, under noise
that is simulated, or was recorded. Only how long the planning takes is measured.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.table import Table

from clustergate.cli.progress import Progress
from clustergate.core import store
from clustergate.core.paths import checkout
from clustergate.report.console import width
from clustergate.stats import MAD
from clustergate.studies.screen.evidence import grouped_medians
from clustergate.studies.screen.findings import analyse
from clustergate.studies.screen.localisation import Unit
from clustergate.studies.screen.measures import MEASURES, Result
from clustergate.studies.screen.plan import Log
from clustergate.studies.screen.rounds import number_of_rounds, rounds
from clustergate.studies.screen.wording import exit_status
from tools.bench.launches import RECORDED, read_launches
from tools.bench.simulated_clusters import BANDWIDTH, LATENCY, ROUND_S, Cluster, recorded, screen
from tools.bench.workspace import file_for

Accused = tuple[Unit, tuple[int, ...]]
Levels = Sequence[tuple[float, float]]
"""What sound launches had of latency and of bandwidth, one after the other."""

_PLANNED_NODES = 10_000
# What a screening may take, in seconds: of all pairs, and of a few rounds.
_BUDGET_S, _BUDGET_OF_FEW_S = 1200.0, 300.0
# So often a link is launched that a fault in a third of its launches hardly ever stays away.
_OFTEN = 7
# Of sound clusters so many times more are screened: there every accusation is a wrong one.
_SOUND = 5
_SIMPLE_PARTS = 3


# --- noise --------------------------------------------------------------------------------------


def screening_evidence(results: Sequence[Result]) -> Levels:
    """Return the levels of the pairs of a screening of sound nodes, around their median."""
    pairs = [result.values for result in results if len(result.nodes) == 2 and result.values]
    return _centred([[MEASURES[key].level(v[key]) for key in (LATENCY, BANDWIDTH)] for v in pairs])


def of_one_node() -> Levels:
    """Return the levels of PingPong between two cores, on a night when little else ran."""
    launches = read_launches(RECORDED / "two-core-vm-night.jsonl.gz")
    times = [launch.microseconds for launch in launches if launch.stack == "mpich"]
    return _centred(
        [[math.log(t["PingPong/8"]), math.log(t["PingPong/1048576"])] for t in times if t]
    )


def _centred(levels: Sequence[Sequence[float]]) -> Levels:
    values = np.array(levels)
    return [(late, level) for late, level in (values - np.median(values, axis=0)).tolist()]


RECORDINGS = checkout() / "tests" / "data" / "screening"
LOADED, SLOW = (RECORDINGS / f"{name}-under-load.jsonl" for name in ("sound", "one-node-100mbit"))
NO_FAULT = "replay: none"


def noises() -> dict[str, Mapping[str, Any]]:
    """Return what makes the noise of a cluster, by name."""
    return {
        "simulated": {"disturbed": 0.01},
        "quiet": {"recorded": of_one_node()},
        "loaded": {"recorded": screening_evidence(recorded(LOADED)[1])},
    }


# --- faults -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scenario:
    """Clusters of so many nodes with a fault, in so many rounds of pairs; None for all of them.

    ``culprits`` are to be named, each by one of some accusations.
    """

    nodes: int
    rounds: int | None
    fault: str
    truth: Mapping[str, Any] = field(default_factory=dict)
    culprits: Sequence[frozenset[Accused]] = ()


def scenarios(nodes: int, number: int | None) -> Iterator[Scenario]:
    """Yield the faults that a cluster of that size can have."""
    last = nodes - 1

    def node(n: int) -> frozenset[Accused]:
        return frozenset({(Unit.NODE, (n,))})

    def link(a: int, b: int) -> frozenset[Accused]:
        return frozenset({(Unit.LINK, (a, b))})

    def of(fault: str, culprits: Sequence[frozenset[Accused]] = (), **truth: Any) -> Scenario:
        return Scenario(nodes, number, fault, truth, culprits)

    yield of("none")
    for factor in (1.5, 3.0, 20.0):
        yield of(f"node, {factor:g} times", [node(1)], bad_nodes={1: factor})
    part = node(1) | {(Unit.PART_OF_NODE, (1,))}
    yield of("node, 5 times in a third of launches", [part], bad_nodes={1: 5.0}, acts=1 / 3)
    if nodes >= 8:
        both = {1: 3.0, last: 3.0}
        yield of("two nodes, 3 times", [node(1), node(last)], bad_nodes=both)
    if number is None and nodes > 3:
        for factor in (3.0, 20.0):
            yield of(f"link, {factor:g} times", [link(0, 2)], links={(0, 2): factor})
        yield of("link, 5 times one way", [link(0, 2)], directed={(2, 0): 5.0})
        comes_and_goes = of(
            "link, 5 times in a third of launches", [link(0, 2)], links={(0, 2): 5.0}, acts=1 / 3
        )
        yield comes_and_goes
        fault, often = (
            f"{comes_and_goes.fault}, each {_OFTEN} times",
            _OFTEN * number_of_rounds(nodes),
        )
        yield dataclasses.replace(comes_and_goes, fault=fault, rounds=often)
    if nodes >= 16:
        leaves = [n // 8 for n in range(nodes)]
        culprit: frozenset[Accused] = frozenset({(Unit.SWITCH, (1,))})
        yield of("switch, 3 times", [culprit], uplinks={1: 3.0}, switches=leaves)


SIZES: Sequence[tuple[int, int | None]] = ((3, None), (4, None), (8, None), (32, None), (1000, 3))


# --- simple rules -------------------------------------------------------------------------------

Rule = Callable[[NDArray[np.float64], NDArray[np.int64], int], NDArray[np.bool_]]
"""From levels in the order of time and the place of each, whether each place is bad."""


def _by_a_fifth(levels: NDArray[np.float64], at: NDArray[np.int64], places: int) -> Any:
    medians = grouped_medians(levels, at, places)
    return medians > np.median(medians) + math.log(1.2)


def _by_three_sigma(levels: NDArray[np.float64], at: NDArray[np.int64], places: int) -> Any:
    medians = grouped_medians(levels, at, places)
    beyond = medians - np.median(medians)
    return beyond > 3 * MAD * np.median(np.abs(beyond))


def _always_the_worst(levels: NDArray[np.float64], at: NDArray[np.int64], places: int) -> Any:
    part = np.arange(len(levels)) * _SIMPLE_PARTS // len(levels)
    means = grouped_medians(levels, at * _SIMPLE_PARTS + part, places * _SIMPLE_PARTS)
    worst = means.reshape(places, _SIMPLE_PARTS).argmax(axis=0)
    return (np.arange(places) == worst[0]) & (worst == worst[0]).all()


RULES: Mapping[str, Rule] = {
    "median and 20 %": _by_a_fifth,
    "MAD and 3 sigma": _by_three_sigma,
    f"worst of {_SIMPLE_PARTS}": _always_the_worst,
}


LAST = list(RULES)[-1]
"""The rule that takes all launches, the others those of the planned rounds."""


def simply(results: Sequence[Result], planned: int, nodes: int) -> dict[str, set[Accused]]:
    """Return whom each simple rule accuses: by the planned rounds, the last by all."""
    first = [r for r in results if r.turn <= planned]
    seen = [*[first] * (len(RULES) - 1), results]
    return {k: _simply(r, s, nodes) for (k, r), s in zip(RULES.items(), seen, strict=True)}


def _simply(rule: Rule, results: Sequence[Result], nodes: int) -> set[Accused]:
    """Return whom a simple rule accuses by the bandwidth of pairs: nodes, then links of others."""
    pairs = [r for r in results if len(r.nodes) == 2 and r.values]
    ends = np.sort(np.array([[int(name) for name in r.nodes] for r in pairs]), axis=1)
    levels = np.array([MEASURES[BANDWIDTH].level(r.values[BANDWIDTH]) for r in pairs])
    bad = rule(np.repeat(levels, 2), ends.ravel(), nodes)
    keys, at = np.unique(ends @ np.array([nodes, 1]), return_inverse=True)
    links = keys[rule(levels, at, len(keys))]
    accused: set[Accused] = {(Unit.NODE, (n,)) for n in np.flatnonzero(bad).tolist()}
    for a, b in zip((links // nodes).tolist(), (links % nodes).tolist(), strict=True):
        if not (bad[a] or bad[b]):
            accused.add((Unit.LINK, (a, b)))
    return accused


# --- what is found ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    """What screenings of one scenario under one noise found.

    ``named`` of the ``screenings`` named every culprit, ``wrong`` accused anybody else, and
    ``clean`` ended with "no faults found". Of each
    simple rule there is how often it was right, which is both, and how often it accused somebody
    wrongly: the first two on the launches of the planned rounds, which take ``simple_node_s``, the
    third on all. ``rounds``, ``node_s`` and ``simple_node_s`` are means.
    """

    nodes: int
    fault: str
    noise: str
    screenings: int
    named: int
    wrong: int
    clean: int
    rounds: float
    node_s: float
    simple: Mapping[str, tuple[int, int]]
    simple_node_s: float


def simulate(scenario: Scenario, noise: str, screenings: int, first_seed: int) -> Found:
    """Screen so many clusters of one kind."""
    counted = {rule: [0, 0] for rule in RULES}
    named = wrong = clean = 0
    taken = []
    makes_noise = noises()[noise]
    right: set[Accused] = set().union(*scenario.culprits)
    for seed in range(first_seed, first_seed + screenings):
        random = np.random.default_rng([seed, scenario.nodes])
        cluster = Cluster(scenario.nodes, **scenario.truth, **makes_noise)
        few = scenario.rounds is not None and scenario.rounds < number_of_rounds(scenario.nodes)
        seconds = _BUDGET_OF_FEW_S if few else _BUDGET_S
        outcome = screen(cluster, scenario.rounds, random, seconds=seconds)
        blames = [b for one in outcome.screening.located.values() for b in one.blames]
        accused = {(b.unit, b.switches or b.nodes) for b in blames}
        named += all(culprit & accused for culprit in scenario.culprits)
        wrong += bool(accused - right)
        clean += exit_status(Log(ended=True), outcome.screening) == 0
        for rule, them in simply(outcome.results, outcome.rounds, scenario.nodes).items():
            all_named = all(culprit & them for culprit in scenario.culprits)
            counted[rule][0] += all_named and them <= right
            counted[rule][1] += not them <= right
        simple_node_s = (1 + outcome.rounds) * ROUND_S * scenario.nodes
        taken.append((outcome.rounds + outcome.further, outcome.node_s, simple_node_s))
    rounds_taken, node_s, simple_node_s = np.mean(taken, axis=0).tolist()
    simple = {rule: (a, b) for rule, (a, b) in counted.items()}
    return Found(
        *(scenario.nodes, scenario.fault, noise, screenings, named, wrong, clean),
        *(rounds_taken, node_s, simple, simple_node_s),
    )


def replay(recording: Path, culprits: frozenset[Accused]) -> Found:
    """Return what is found, and when, in a real screening, whose launches ran one at a time."""
    nodes, launches = recorded(recording)
    number = {name: str(at) for at, name in enumerate(nodes)}
    results = [replace(r, nodes=tuple(number[n] for n in r.nodes)) for r in launches]
    names, turns = list(number.values()), sorted({r.turn for r in results})
    for turn in turns:
        known = [r for r in results if r.turn <= turn]
        located = analyse(names, known).located.values()
        accused = {(b.unit, b.switches or b.nodes) for one in located for b in one.blames}
        if accused:
            break
    planned = [r for r in results if r.turn < len(names)]
    by_rule = simply(known, len(names) - 1, len(names))
    simple = {k: (int(culprits == them), int(bool(them - culprits))) for k, them in by_rule.items()}
    node_s, simple_node_s = (len(names) * sum(r.seconds for r in rs) for rs in (known, planned))
    named, wrong = int(culprits <= accused), int(bool(accused - culprits))
    fault = "replay: one node at 100 Mbit/s" if culprits else NO_FAULT
    clean = int(exit_status(Log(ended=True), analyse(names, results)) == 0)
    told = len(names), fault, "loaded", 1, named, wrong, clean, float(turn), node_s
    return Found(*told, simple, simple_node_s)


def planning_seconds(repetitions: int) -> list[float]:
    """Return how long the plan of all pairs of 10,000 nodes takes, each time."""
    found = []
    for seed in range(repetitions):
        begun = time.perf_counter()
        pairs = sum(len(members) for members in rounds(_PLANNED_NODES, seed=seed))
        found.append(time.perf_counter() - begun)
        assert pairs == _PLANNED_NODES * (_PLANNED_NODES - 1) // 2
    return found


def columns(names: Sequence[str]) -> list[str]:
    """Return the heads of the table for noises of these names."""
    told = ", ".join(names)
    return [
        *("nodes", "fault", f"named, % ({told})", "wrongly accused"),
        f"no faults found, % ({told})",
        *(f"rounds ({told})", f"node-seconds per right answer ({told})"),
        *(f"{rule}: right, wrong, %; node-seconds per right answer" for rule in RULES),
    ]


def rows(found: Sequence[Found]) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the table: those of one fault under all noises together."""
    by_fault: dict[tuple[int, str], list[Found]] = {}
    for one in found:
        by_fault.setdefault((one.nodes, one.fault), []).append(one)
    for (nodes, fault), them in by_fault.items():
        screenings = sum(one.screenings for one in them)
        sound = fault in ("none", NO_FAULT)
        simple = []
        for rule in RULES:
            right, wrong = np.sum([one.simple[rule] for one in them], axis=0) / screenings
            cost = float(np.mean([o.node_s if rule == LAST else o.simple_node_s for o in them]))
            simple.append(f"{100 * right:.0f}, {100 * wrong:.0f}; {_per(cost, right)}")
        yield (
            *(str(nodes), fault),
            "" if sound else ", ".join(f"{100 * o.named / o.screenings:.0f}" for o in them),
            f"{sum(one.wrong for one in them)} of {screenings}",
            ", ".join(f"{100 * o.clean / o.screenings:.0f}" for o in them),
            ", ".join(f"{one.rounds:.0f}" for one in them),
            ", ".join(_per(o.node_s, (1 if sound else o.named / o.screenings)) for o in them),
            *simple,
        )


def _per(node_s: float, right: float) -> str:
    """Return the node-seconds of a right answer, when such a share of screenings is right."""
    return f"{node_s / right:.0f}" if right else "never"


def _simulated(arguments: tuple[Scenario, str, int, int]) -> Found:
    return simulate(*arguments)


def main() -> int:
    """Simulate, print the table, keep it as JSON."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.bench.screening",
        description="What a screening finds at what cost, beside simple rules, by simulation.",
    )
    parser.add_argument("--screenings", type=int, default=20, help="of each scenario and noise")
    parser.add_argument("--nodes", type=int, nargs="*", help="sizes of clusters; all by default")
    parser.add_argument("--fault", help='only this one, as the table calls it, such as "none"')
    parser.add_argument("--first-seed", type=int, default=0, help="of each scenario and noise")
    parser.add_argument("--markdown", action="store_true", help="print the table for the docs")
    arguments = parser.parse_args()
    say = Progress()
    wanted = [
        (scenario, noise, _times(scenario, arguments.screenings), arguments.first_seed)
        for nodes, number in SIZES
        if not arguments.nodes or nodes in arguments.nodes
        for scenario in scenarios(nodes, number)
        if arguments.fault in (None, scenario.fault)
        for noise in noises()
    ]
    found = []
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for one in pool.map(_simulated, wanted):
            say(f"{one.nodes} nodes, {one.fault}, {one.noise} noise")
            found.append(one)
    found += [replay(SLOW, frozenset({(Unit.NODE, (2,))})), replay(LOADED, frozenset())]
    heads = columns(list(noises()))
    if arguments.markdown:
        for row in (heads, ["---"] * len(heads), *rows(found)):
            print(f"| {' | '.join(row)} |")
    else:
        table = Table(*heads, box=box.SIMPLE, show_edge=False)
        for cells in rows(found):
            table.add_row(*cells)
        Console(width=max(width(), 160), highlight=False, markup=False).print(table)
    seconds = planning_seconds(3)
    print(
        f"planning all pairs of {_PLANNED_NODES} nodes: {min(seconds):.2f} to {max(seconds):.2f} s"
    )
    started = datetime.datetime.now().astimezone()
    path = file_for(started, "screening-")
    record = {"planning_s": seconds, "found": [dataclasses.asdict(one) for one in found]}
    store.write_json(path, record)
    print(f"measurements: {path}")
    return 0


def _times(scenario: Scenario, screenings: int) -> int:
    """Return how many clusters of a kind are screened: fewer of the large ones take as long."""
    more = screenings if scenario.culprits else _SOUND * screenings
    return max(more // (1 + (scenario.nodes > 8) + 2 * (scenario.nodes > 32)), 1)


if __name__ == "__main__":
    raise SystemExit(main())
