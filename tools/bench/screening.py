"""``python -m tools.bench.screening``: what a screening finds, in how many rounds.

Simulated, on clusters of which the truth is known (:mod:`tools.bench.simulated_clusters`), with
the planning, the localisation and the repetitions of doubts that a real screening has. Only how
long the planning takes is measured.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from clustergate import store
from clustergate.cli.streams import progress
from clustergate.paths import state_dir
from clustergate.report.terminal import width
from clustergate.screening.localisation import Unit
from clustergate.screening.rounds import number_of_rounds, rounds
from tools.bench.simulated_clusters import Cluster, screen

# A round as it is on a real network: reaching two nodes, starting, half a second of messages.
ROUND_S = 5.0
SLOWER = 1.5
# Of the launches of an undisturbed machine, and by how much something else makes them longer.
DISTURBED, DISTURBANCE = 0.01, math.log(1.5)
_PLANNED_NODES = 10_000
_SWITCH = 16


@dataclass(frozen=True)
class Scenario:
    """A cluster with faults, and how many rounds of pairs it is given; None for all of them."""

    nodes: int
    rounds: int | None
    bad_nodes: int
    bad_links: int


SCENARIOS = (
    *(Scenario(32, r, 1, 1) for r in (1, 3, 6, None)),
    Scenario(32, None, 0, 0),
    *(Scenario(128, r, 2, 2) for r in (1, 3, 6, 20, None)),
    *(Scenario(1000, r, 5, 5) for r in (1, 3, 6, 20)),
    Scenario(1000, 3, 0, 0),
    *(Scenario(10_000, r, 20, 20) for r in (1, 3)),
)


@dataclass(frozen=True)
class Found:
    """What many simulated screenings of one scenario found.

    Shares are of the faults that there were, ``wrong`` is the share of the screenings that accused
    anybody else; ``further`` the mean number of rounds for doubts.
    """

    scenario: Scenario
    screenings: int
    nodes: float
    links: float
    wrong: float
    further: float

    @property
    def node_minutes(self) -> float:
        """What it takes: every node, in every round."""
        first = self.scenario.rounds
        all_rounds = number_of_rounds(self.scenario.nodes) if first is None else first
        return (all_rounds + self.further) * self.scenario.nodes * ROUND_S / 60


def simulate(scenario: Scenario, screenings: int) -> Found:
    """Screen so many clusters with other faults each."""
    nodes_found = links_found = wrong = further = 0
    for seed in range(screenings):
        random = np.random.default_rng([seed, scenario.nodes, scenario.rounds or 0])
        chosen = random.choice(
            scenario.nodes, scenario.bad_nodes + 2 * scenario.bad_links, replace=False
        ).tolist()
        bad = chosen[: scenario.bad_nodes]
        ends = chosen[scenario.bad_nodes :]
        links = [(min(p), max(p)) for p in zip(ends[::2], ends[1::2], strict=True)]
        cluster = Cluster(
            scenario.nodes,
            [n // _SWITCH for n in range(scenario.nodes)],
            crossing=1.1,
            disturbed=DISTURBED,
            disturbance=DISTURBANCE,
            bad_nodes=dict.fromkeys(bad, SLOWER),
            links=dict.fromkeys(links, SLOWER),
        )
        outcome = screen(cluster, scenario.rounds, random)
        accused = {(b.unit, b.nodes) for b in outcome.located.blames}
        right = {(Unit.NODE, (n,)) for n in bad} | {(Unit.LINK, link) for link in links}
        nodes_found += sum((Unit.NODE, (n,)) in accused for n in bad)
        links_found += sum((Unit.LINK, link) in accused for link in links)
        wrong += bool(accused - right)
        further += outcome.further
    return Found(
        scenario,
        screenings,
        nodes_found / max(1, screenings * scenario.bad_nodes),
        links_found / max(1, screenings * scenario.bad_links),
        wrong / screenings,
        further / screenings,
    )


def planning_seconds(repetitions: int) -> list[float]:
    """Return how long the plan of all pairs of 10,000 nodes takes, each time."""
    found = []
    for seed in range(repetitions):
        begun = time.perf_counter()
        pairs = sum(len(members) for members in rounds(_PLANNED_NODES, seed=seed))
        found.append(time.perf_counter() - begun)
        assert pairs == _PLANNED_NODES * (_PLANNED_NODES - 1) // 2
    return found


def _rows(found: Sequence[Found]) -> Iterator[tuple[str, ...]]:
    for one in found:
        scenario = one.scenario
        planned = number_of_rounds(scenario.nodes)
        yield (
            str(scenario.nodes),
            f"{scenario.bad_nodes}, {scenario.bad_links}",
            f"all {planned}" if scenario.rounds is None else str(scenario.rounds),
            f"{one.further:.1f}",
            f"{one.node_minutes:.0f}",
            f"{100 * one.nodes:.0f} %" if scenario.bad_nodes else "",
            f"{100 * one.links:.0f} %" if scenario.bad_links else "",
            f"{100 * one.wrong:.1f} % of {one.screenings}",
        )


COLUMNS = (
    "nodes",
    "bad nodes, links",
    "rounds",
    "for doubts",
    "node-minutes",
    "nodes found",
    "links found",
    "wrongly accused",
)


def markdown(found: Sequence[Found]) -> str:
    """Return the table as it stands in docs/screening.md."""
    lines = [f"| {' | '.join(COLUMNS)} |", f"|{'---|' * len(COLUMNS)}"]
    lines += [f"| {' | '.join(row)} |" for row in _rows(found)]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Simulate, print the table, keep it as JSON."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.bench.screening",
        description="What a screening finds in how many rounds, by simulation.",
    )
    parser.add_argument("--screenings", type=int, default=100, help="of each scenario")
    parser.add_argument("--markdown", action="store_true", help="print the table for the docs")
    arguments = parser.parse_args()
    say = progress()
    seconds = planning_seconds(3)
    found = []
    for scenario in SCENARIOS:
        say(f"{scenario.nodes} nodes, {scenario.rounds or 'all'} rounds")
        # Fewer of the large ones: they take seconds each.
        count = arguments.screenings if scenario.nodes <= 1000 else arguments.screenings // 10
        found.append(simulate(scenario, max(count, 1)))
    if arguments.markdown:
        print(markdown(found), end="")
    else:
        table = Table(*COLUMNS, box=box.SIMPLE, show_edge=False)
        for row in _rows(found):
            table.add_row(*row)
        Console(width=max(width(), 110), highlight=False, markup=False).print(table)
    print(
        f"planning all pairs of {_PLANNED_NODES} nodes: {min(seconds):.2f} to {max(seconds):.2f} s"
    )
    started = datetime.datetime.now().astimezone()
    path = state_dir() / "bench" / f"screening-{started:%Y%m%dT%H%M%S}.json"
    record = {"planning_s": seconds, "found": [dataclasses.asdict(one) for one in found]}
    store.write_json(path, record)
    print(f"measurements: {path}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
