"""``python -m tools.bench.rolling``: a month of nodes under users, rolled or screened nightly.

Simulated: users' jobs, the nodes' figures and eight faults, all from one seed. The planner, the
looks, the evidence and the accusations are those of ``clustergate roll``. Screened nightly, each
node is measured at its first idle moment after two o'clock, before any user; "one night" accuses
whoever is slow once.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from clustergate.studies.roll.decision import accusations, looks
from clustergate.studies.roll.planner import Bounds, next_jobs
from clustergate.studies.roll.state import ALONE, APART_S, PAIR, State
from clustergate.studies.screen.measures import MEASURES, Result

SEED = 53
NODES, DAYS = 500, 30
_TICK_S, _DAY_S = 300.0, 86_400.0
_TICKS_A_DAY = int(_DAY_S / _TICK_S)
_BEGIN_S = 20_000 * _DAY_S
_SCANNED = 50
# Sizes of users' jobs and their shares; hours: median, logarithm's sd, most; of all nodes, used.
_SIZES, _SHARES = (1, 2, 4, 8, 16, 32, 64), (0.50, 0.15, 0.15, 0.10, 0.06, 0.03, 0.01)
_HOURS, _SIGMA, _MOST_HOURS, _LOAD = 2.0, 1.2, 24.0, 0.90
# A job of screening holds its nodes for so long.
SCREENING_S = 120.0
_USUAL = {
    "fma_peak_gflops": 3000.0,
    "triad_gb_s": 400.0,
    "pingpong_latency_us": 1.5,
    "pingpong_bandwidth_mb_s": 24_000.0,
}
# Standard deviations of a look and between nodes, as on exclusive bare metal; looks that something
# disturbs, and by how much: from 10 to 35 %.
_SD = {
    "fma_peak_gflops": (0.009, 0.005),
    "triad_gb_s": (0.011, 0.005),
    "pingpong_latency_us": (0.028, 0.01),
    "pingpong_bandwidth_mb_s": (0.011, 0.005),
}
_DISTURBED, _MOST_DISTURBED = 0.01, 0.30


@dataclass(frozen=True)
class Fault:
    """What a node has from a day on: how much a measure is worse (a logarithm), how often."""

    title: str
    node: int
    day: float
    measure: str
    worse: float
    share: float = 1.0


FAULTS = (
    Fault("memory 20 % slower", 17, 2.3, "triad_gb_s", -math.log(0.80)),
    Fault("clock 40 % lower, one look in three", 88, 3.9, "fma_peak_gflops", -math.log(0.6), 1 / 3),
    Fault("clock 15 % lower", 141, 5.1, "fma_peak_gflops", -math.log(0.85)),
    Fault("memory 12 % slower", 203, 7.0, "triad_gb_s", -math.log(0.88)),
    Fault("link at half its bandwidth", 264, 9.6, "pingpong_bandwidth_mb_s", math.log(2)),
    Fault("latency 1.5 times", 325, 11.2, "pingpong_latency_us", math.log(1.5)),
    Fault("half of the launches fail", 386, 13.4, "", 0.0, 0.5),
    Fault("clock 30 % lower, late", 447, 20.0, "fma_peak_gflops", -math.log(0.7)),
)  # fmt: skip


@dataclass
class Month:
    """What a month came to: who was accused when (days), by looks over days and by one look."""

    accused: list[tuple[int, float]] = field(default_factory=list)
    slow_once: dict[int, float] = field(default_factory=dict)
    node_hours: float = 0.0
    looks: int = 0
    waited_h: float = 0.0
    user_node_hours: float = 0.0
    longest_unseen_h: float = 0.0


class Machine:
    """Nodes whose figures are drawn; a node is the same whoever looks at it."""

    def __init__(self, nodes: int, faults: Sequence[Fault], lot: np.random.Generator) -> None:
        self._lot, self._faults = lot, faults
        self._own = {key: lot.normal(size=nodes) * sd[1] for key, sd in _SD.items()}

    def results(self, members: Sequence[int], day: float) -> Iterator[Result]:
        """Yield what a job on one or two nodes measures."""
        faults = [
            one
            for one in self._faults
            if one.node in members and day >= one.day and self._lot.random() < one.share
        ]
        for node in members:
            own = [one for one in faults if one.node == node]
            if any(not one.measure for one in own):
                yield Result((_name(node),), "peaks", 0, failed="exit status 1")
            else:
                keys = ("fma_peak_gflops", "triad_gb_s")
                yield Result((_name(node),), "peaks", 0, self._values(keys, [node], own))
        if len(members) == 2:
            names = tuple(map(_name, members))
            if any(not one.measure for one in faults):
                yield Result(names, "pingpong", 1, failed="exit status 1")
            else:
                keys = ("pingpong_latency_us", "pingpong_bandwidth_mb_s")
                yield Result(names, "pingpong", 1, self._values(keys, members, faults))

    def _values(
        self, keys: Sequence[str], members: Sequence[int], faults: Sequence[Fault]
    ) -> dict[str, float]:
        disturbed = self._lot.random() < _DISTURBED
        more = disturbed * self._lot.uniform(0.1, _MOST_DISTURBED)
        values = {}
        for key in keys:
            level = MEASURES[key].level(_USUAL[key]) + more
            level += sum(self._own[key][node] for node in members)
            level += self._lot.normal() * _SD[key][0]
            level += sum(one.worse for one in faults if one.measure == key)
            values[key] = MEASURES[key].value(float(level))
        return values


def _name(node: int) -> str:
    return f"n{node:03}"


def _users(nodes: int, days: int, lot: np.random.Generator) -> list[tuple[int, int, int]]:
    """Return users' jobs: the tick of their submission, their nodes, their ticks."""
    sizes = [min(size, nodes) for size in _SIZES]
    hours = np.minimum(lot.lognormal(math.log(_HOURS), _SIGMA, 100_000), _MOST_HOURS)
    mean = float(np.dot(sizes, _SHARES)) * float(hours.mean())
    count = lot.poisson(_LOAD * nodes * 24 * (days + 2) / mean)
    # The machine is full when the month begins.
    at = np.sort(lot.integers(-2 * _TICKS_A_DAY, days * _TICKS_A_DAY, count))
    of = lot.choice(sizes, count, p=_SHARES)
    ticks = np.maximum(hours[:count] * 3600 / _TICK_S, 1).astype(int)
    return list(zip(at.tolist(), of.tolist(), ticks.tolist(), strict=True))


def simulate(
    how: str, nodes: int = NODES, days: int = DAYS, faults: Sequence[Fault] = FAULTS
) -> Month:
    """Return a month of ``roll``, of ``nightly`` screenings, or of ``none``."""
    lots = [np.random.default_rng([SEED, k]) for k in range(3)]
    jobs, machine, place = _users(nodes, days, lots[0]), Machine(nodes, faults, lots[1]), lots[2]
    month, state = Month(), State()
    names = [_name(node) for node in range(nodes)]
    free_at = np.full(nodes, -3 * _TICKS_A_DAY)
    queue: list[tuple[int, int, int]] = []
    due_tonight: list[int] = []
    arriving = iter(jobs)
    upcoming = next(arriving, None)
    for tick in range(-2 * _TICKS_A_DAY, days * _TICKS_A_DAY):
        at, day = _BEGIN_S + tick * _TICK_S, tick / _TICKS_A_DAY
        while upcoming is not None and upcoming[0] <= tick:
            queue.append(upcoming)
            upcoming = next(arriving, None)
        if tick >= 0 and how == "nightly":
            if tick % _TICKS_A_DAY == 2 * _TICKS_A_DAY // 24:
                due_tonight = place.permutation(nodes).tolist()
            idle = [node for node in due_tonight if free_at[node] <= tick]
            for two in _twos(idle):
                _screen(state, machine, [*two], at, day, month)
                free_at[[*two]] = tick + 1
            due_tonight = [node for node in due_tonight if node not in {*idle}]
        _start(queue, free_at, tick, place, month)
        if tick >= 0 and how == "roll":
            free = [names[node] for node in np.flatnonzero(free_at <= tick)]
            for job in next_jobs(state, free, names, Bounds(), at):
                members = [int(name[1:]) for name in job.nodes]
                if not job.waits:
                    _screen(state, machine, members, at, day, month)
                    free_at[members] = tick + 1
        if tick >= _TICKS_A_DAY and state.nodes and tick % 12 == 0:
            seen = [of.looked_at.get(ALONE, _BEGIN_S) for of in state.nodes.values()]
            month.longest_unseen_h = max(month.longest_unseen_h, (at - min(seen)) / 3600)
    return month


def _twos(nodes: Sequence[int]) -> Iterator[Sequence[int]]:
    return (nodes[k : k + 2] for k in range(0, len(nodes), 2))


def _start(
    queue: list[tuple[int, int, int]],
    free_at: np.ndarray[tuple[int], np.dtype[np.int64]],
    tick: int,
    place: np.random.Generator,
    month: Month,
) -> None:
    """Start the jobs of users that fit, the first of the queue first."""
    free = np.flatnonzero(free_at <= tick)
    for job in queue[:_SCANNED]:
        submitted, size, ticks = job
        if size <= len(free):
            taken = place.choice(free, size, replace=False)
            free_at[taken] = tick + ticks
            free = np.setdiff1d(free, taken)
            queue.remove(job)
            if submitted >= 0:
                month.waited_h += (tick - submitted) * _TICK_S / 3600 * size
                month.user_node_hours += size


def _screen(
    state: State, machine: Machine, members: Sequence[int], at: float, day: float, month: Month
) -> None:
    month.node_hours += len(members) * SCREENING_S / 3600
    for event in [*looks(state, "j", machine.results(members, day), at)]:
        month.looks += 1
        state.apply(event)
        for node in (int(name[1:]) for name in event["nodes"] if event["slow"]):
            if event["kind"] == ALONE or not state.of(_name(node)).good_at.get(PAIR, 0) > at - 60:
                month.slow_once.setdefault(node, day)
    for event in [*accusations(state, at, 1.0)]:
        state.apply(event)
        if event["event"] == "accused":
            month.accused.append((int(event["node"][1:]), day))


def found(faults: Sequence[Fault], times: Mapping[int, float]) -> list[str]:
    """Return after how many days each fault was accused, in words."""
    return [
        f"{times[one.node] - one.day:.1f}" if times.get(one.node, -1) >= one.day else "never"
        for one in faults
    ]


def table(faults: Sequence[Fault] = FAULTS, nodes: int = NODES, days: int = DAYS) -> str:
    """Return the months side by side, as a table in Markdown."""
    rolled, nightly, none = (
        simulate(how, nodes, days, faults) for how in ("roll", "nightly", "none")
    )
    bad = {one.node for one in faults}
    columns = []
    for month, times in (
        (rolled, dict(reversed(rolled.accused))),
        (nightly, dict(reversed(nightly.accused))),
        (nightly, nightly.slow_once),
    ):
        wrong = len(times.keys() - bad)
        early = sum(times.get(one.node, days) < one.day for one in faults)
        cells = [f"{month.node_hours:.0f}", f"{month.looks}", f"{month.longest_unseen_h:.0f}"]
        wait = 60 * month.waited_h / month.user_node_hours
        columns.append([*cells, f"{wait:.0f}", *found(faults, times), f"{wrong + early}"])
    idle_wait = 60 * none.waited_h / none.user_node_hours
    heads = ["node-hours of screening", "looks", "longest time a node was not seen, h"]
    heads += [f"mean wait of a user's node, min (without screening: {idle_wait:.0f})"]
    heads += [f"days to find: {one.title}" for one in faults] + ["sound nodes accused"]
    lines = [
        "| | rolling | nightly, same evidence | nightly, slow in one night |",
        "|---|---|---|---|",
    ]
    lines += [f"| {head} | {' | '.join(of)} |" for head, *of in zip(heads, *columns, strict=True)]
    return "\n".join(lines)


def main() -> None:
    """Simulate, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--days", type=int, default=DAYS)
    arguments = parser.parse_args()
    print(
        f"seed {SEED}, {arguments.nodes} nodes, {arguments.days} days, {APART_S / 3600:g} h apart"
    )
    faults = [replace(one, node=one.node % arguments.nodes) for one in FAULTS]
    print(table(faults, arguments.nodes, arguments.days))


if __name__ == "__main__":
    main()
