"""Recorded launches as the runs of a check, and the judge's answer to them. Pure.

Runs are made, put into a baseline, written into a reference file and judged by the code that a
check uses. What a mode measures besides the recorded figures stands in the reference file as well,
so that the chance of error is divided among as many figures as in a run of that mode.
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from clustergate.benchmarks import imb
from clustergate.benchmarks.budget import Budget
from clustergate.benchmarks.imb.command import MPI1_BENCHMARKS, ImbEffort
from clustergate.benchmarks.registry import every_check
from clustergate.core import model
from clustergate.core.figures import name_of, same_measurement, samples_of
from clustergate.core.model import (
    METRICS,
    Better,
    Case,
    CaseId,
    CaseRecord,
    Figure,
    Group,
    Metric,
    Row,
    Sample,
    Verdict,
)
from clustergate.judge.baselines.proposals import Rule
from clustergate.judge.baselines.writer import Entry, Measured, updated
from clustergate.judge.confirmation import FIGURE_SAME_MEASUREMENT
from clustergate.judge.history.series import CaseKey
from clustergate.judge.history.stored_runs import PastRun
from clustergate.judge.references.lookup import References, parse_references
from clustergate.judge.rules import FIGURE_EXCUSED
from clustergate.launch.disturbance import without_moved_cores
from clustergate.launch.estimation import widest_interval
from clustergate.launch.stopping import is_enough
from clustergate.sites.description import Partition
from clustergate.sites.modes import MODES, Mode, effort_of
from tools.bench import judge
from tools.bench.launches import TIME, Launch

CHECK, WHERE, SOURCE = "ImbMpi1Check", "recorded:node", Path("recorded.yaml")
_LAYOUT = "2-ranks-packed"
_PARAMETERS = (("node_usage", "packed"), ("process_count", "2"))
# HPL leaves 4 figures, HPCC 35 in smoke, and six more of RandomAccess in the other modes.
OF_HPL_AND_HPCC = {"smoke": 39, "maintenance": 45, "acceptance": 45}
_EMPTY = {"bandwidth_mb_s"}

Slowed = Mapping[tuple[str, int], float]
"""By how many times a figure such as ``PingPong/8`` is slower in a launch, by its order."""


@dataclass(frozen=True)
class Run:
    """A run of a check: of each stack the launches that it took, in their order.

    ``recording`` is where they come from.
    """

    recording: str
    launches: Mapping[str, Sequence[Launch]]

    @property
    def started(self) -> datetime.datetime:
        """When the first of its launches began."""
        first = min(of_stack[0].time_s for of_stack in self.launches.values())
        return datetime.datetime.fromtimestamp(first, datetime.timezone.utc)

    @property
    def seconds(self) -> float:
        """How long its launches took together, disturbed ones too."""
        return sum(x.noted.seconds for some in self.launches.values() for x in some)


def runs_of(
    recording: str, launches: Sequence[Launch], stacks: Sequence[str], budget: Budget
) -> list[Run]:
    """Return the runs that the launches of a recording make, as often as the budget asks for.

    No launch is in two of them, and all of a run come before those of the next. What is left over
    at the end makes no run.
    """
    found: list[Run] = []
    place = 0
    while True:
        jobs: dict[str, Sequence[Launch]] = {}
        ends = []
        for stack in stacks:
            mine = [(k, x) for k, x in enumerate(launches[place:], place) if x.stack == stack]
            taken = _job([x for _, x in mine], budget)
            if not taken:
                return found
            jobs[stack] = taken
            ends.append(mine[len(taken) - 1][0])
        found.append(Run(recording, jobs))
        place = max(ends) + 1


def _job(launches: Sequence[Launch], budget: Budget) -> Sequence[Launch]:
    """Return the launches that a job takes, none where there are too few."""
    for count in range(budget.at_least, min(len(launches), budget.at_most) + 1):
        taken = launches[:count]
        noted = _noted(taken)
        undisturbed = sum(not x.disturbed for x in noted)
        widest = functools.partial(lambda a, b: widest_interval(samples_of_run(a), b), taken, noted)
        if is_enough(budget, [x.seconds for x in noted], undisturbed, widest):
            return taken
    return ()


def _noted(launches: Sequence[Launch], known_ns: float | None = None) -> list[model.Launch]:
    noted = without_moved_cores([x.noted for x in launches], nearest_ns(launches), known_ns)
    return [dataclasses.replace(x, order=k) for k, x in enumerate(noted)]


def nearest_ns(launches: Sequence[Launch]) -> float | None:
    """Return the shortest round trip between two cores, None where none was measured."""
    told = [ns for x in launches for ns in x.distances_ns or (x.noted.core_distance_ns,) if ns]
    return min(told, default=None)


def samples_of_run(launches: Sequence[Launch], slowed: Slowed | None = None) -> list[Sample]:
    """Return what a benchmark printed in some launches, or would have, being slower."""
    found: list[Sample] = []
    for order, launch in enumerate(launches):
        rows = []
        for name, printed in launch.printed.items():
            benchmark, _, size = name.partition("/")
            factor = (slowed or {}).get((name, order), 1.0)
            values = {
                metric: round(value / factor if _is_rate(metric) else value * factor, 2)
                for metric, value in _printed(benchmark, int(size), printed).items()
            }
            rows.append(Row("IMB-MPI1", benchmark, {"processes": 2, "bytes": int(size)}, values))
        found += samples_of(rows, order=order)
    return found


def _is_rate(metric: str) -> bool:
    return METRICS[metric].better is Better.HIGHER


def _printed(benchmark: str, size: int, printed: Mapping[str, float]) -> Mapping[str, float]:
    """Return what IMB prints, which has two decimals; the launcher before kept the time alone."""
    if TIME not in printed:
        return {metric: value for metric, value in printed.items() if metric not in _SPREAD}
    time_us = printed[TIME]
    times = {"latency_us" if benchmark == "PingPong" else "t_avg_us": time_us}
    messages = {"PingPong": 1, "Sendrecv": 2}.get(benchmark)
    return {**times, "bandwidth_mb_s": messages * size / time_us} if messages else times


_SPREAD = ("t_min_us", "t_max_us")


def record_of(
    run: Run, stack: str, mode: Mode, known_ns: float | None = None, slowed: Slowed | None = None
) -> CaseRecord:
    """Return what the case of a stack left behind; ``known_ns`` is the baseline's core distance."""
    launches = run.launches[stack]
    return CaseRecord(
        name=f"{CHECK}-node-{stack}",
        check=CHECK,
        stack=stack,
        partition=WHERE,
        conditions={
            "mode": mode.name,
            "ranks": 2,
            "ranks_per_node": 2,
            "nodes": 1,
            "placement": "packed",
            "cores_per_rank": 1,
            "bound": True,
            "settings": "",
        },
        samples=samples_of_run(launches, slowed),
        launches=_noted(launches, known_ns),
        launches_needed=effort(mode).budget.at_least,
        details={
            "build_key": "recorded",
            "proof": {"hosts": ["recorded"]},
            "core_distance_ns": nearest_ns(launches),
        },
    )


def effort(mode: Mode) -> ImbEffort:
    """Return what a mode spends on IMB."""
    found = effort_of(mode, imb.BENCHMARK)
    if not isinstance(found, ImbEffort):
        raise TypeError(f"IMB's effort in {mode.name} is none of its own")
    return found


# --- the reference file -------------------------------------------------------------------------


def figures_of_mode(mode: Mode) -> list[str]:
    """Return the names of the figures of IMB-MPI1 that a run of a mode compares of a stack."""
    spent = effort(mode)
    sizes = spent.sizes or (0, *(1 << k for k in range(spent.largest_bytes.bit_length())))
    found = []
    for benchmark in MPI1_BENCHMARKS:
        if benchmark == "Barrier":
            found.append("Barrier.2p.t_avg_us")
            continue
        reduces = "educe" in benchmark  # of MPI_FLOAT
        for metric, size in itertools.product(_metrics_of(benchmark), sizes):
            if not ((metric in _EMPTY and size == 0) or (reduces and size % 4)):
                found.append(f"{benchmark}.2p.{size}B.{metric}")
    return list(_measured_once(found))


def _measured_once(names: Iterable[str]) -> tuple[str, ...]:
    known = dict.fromkeys(names)
    return tuple(n for n in known if not any(one in known for one in same_measurement(n)))


def _metrics_of(benchmark: str) -> tuple[str, ...]:
    if benchmark.startswith("Ping"):
        return ("latency_us", "bandwidth_mb_s")
    if benchmark in ("Uniband", "Biband"):
        return ("message_rate_per_s", "bandwidth_mb_s")
    pairs = benchmark in ("Sendrecv", "Exchange")
    return ("t_avg_us", "bandwidth_mb_s") if pairs else ("t_avg_us",)


@functools.lru_cache(maxsize=8)
def rest_of_mode(name: str, stacks: tuple[str, ...], recorded: tuple[str, ...]) -> References:
    """Return references of what a run of a mode has beside ``recorded``, by way of their file.

    It stands under other stacks, so that nothing of it is missing in a run of these ``stacks``.
    """
    mode = MODES[name]
    more = len(figures_of_mode(mode)) + OF_HPL_AND_HPCC[mode.name] - len(recorded)
    benchmarks = {name.partition(".")[0] for name in recorded}
    names = [n for n in figures_of_mode(mode) if n.partition(".")[0] not in benchmarks][:more]
    # The recorded benchmarks have more sizes in the mode than were recorded.
    names += [f"Exchange.{p}p.8B.t_avg_us" for p in range(1000, 1000 + more - len(names))]
    measured = [
        Measured(
            case=CaseKey(CHECK, WHERE, f"rest-of-{stack}", _LAYOUT, mode.name),
            entries={name: _entry(METRICS[name.rpartition(".")[2]]) for name in names},
            runs=["first", "second"],
            days=2 * [datetime.date(2026, 11, 21)],
            launches=2,
            rule="as many figures as the mode has",
            build="recorded",
            nodes=["recorded"],
            values={names[0]: (1.0, 1.0)},
        )
        for stack in stacks
    ]
    return parse_references(updated("", measured), SOURCE, every_check())


def _entry(metric: Metric) -> Entry:
    bounds = (-0.05, None) if metric.better is Better.HIGHER else (None, 0.05)
    return (1.0, *bounds, metric.unit)


@dataclass(frozen=True)
class Judge:
    """What a baseline of recorded runs made, whose cases are judged one by one."""

    stacks: Sequence[str]
    whole: judge.Judge

    @property
    def references(self) -> References:
        """Those of the recorded figures, and of the rest of the mode."""
        return self.whole.references

    @property
    def refused(self) -> int:
        """How many of the recorded figures got no reference."""
        return self.whole.refused

    def record(self, run: Run, stack: str, slowed: Slowed | None = None) -> CaseRecord:
        """Return what a stack of a run left, some of whose figures are ``slowed``."""
        plain = record_of(run, stack, self.whole.mode)
        known = judge.nearest_ns(self.whole, plain)
        return record_of(run, stack, self.whole.mode, known, slowed)

    def case(self, run: Run, stack: str, slowed: Slowed | None = None) -> Case:
        """Judge one stack of a run, some of whose figures are ``slowed``."""
        return judge.case_of(self.whole, self.record(run, stack, slowed))

    def judged(self, records: Sequence[CaseRecord], again: judge.Again) -> judge.Judged:
        """Judge a run of all stacks."""
        return judge.judge_run(self.whole, records, again)

    def replayed_figures(self) -> float:
        """Return the share of the figures that were replayed which have a reference."""
        held = sum(path[2] in self.stacks for path in self.references.paths())
        return held / max(held + self.refused, 1)

    def exit_status(self, cases: Sequence[Case]) -> int:
        """Return the exit status of a check of which these are the cases."""
        return judge.status_of(self.whole, cases)


def judge_of(runs: Sequence[Run], mode: Mode, stacks: Sequence[str], rule: Rule) -> Judge:
    """Return the judge that a baseline of some runs makes, by way of a reference file.

    What else the mode measures has a file of its own, written once, whose lines are added.
    """
    past = [
        PastRun(
            f"{run.started:%Y%m%dT%H%M%SZ}-r{k}",
            run.started,
            [record_of(run, stack, mode) for stack in stacks],
        )
        for k, run in enumerate(sorted(runs, key=lambda run: run.started), start=1)
    ]
    recorded = _measured_once(map(name_of, past[0].records[0].samples))
    system, _, name = WHERE.partition(":")
    partition = Partition(
        name=name,
        scheduler="local",
        environs=stacks,
        cores_per_node=2,
        memory_bytes_per_node=24 << 30,
        nominal_gflops_per_core=50.0,
        nodes=1,
        system=system,
    )
    expected = [CaseId(CHECK, WHERE, stack, _PARAMETERS) for stack in stacks]
    rest = rest_of_mode(mode.name, tuple(stacks), recorded)
    return Judge(stacks, judge.make_judge(past, mode, expected, partition, rule, rest))


# --- what is said of a change -------------------------------------------------------------------

FOUND, PASSED, INCONCLUSIVE, DISTURBED, NO_REFERENCE = ANSWERS = (
    "found", "passed", "inconclusive", "disturbed", "no reference",
)  # fmt: skip


def answer(cases: Sequence[Case], affected: Mapping[str, Sequence[str]]) -> str:
    """Return what verdicts say of some figures, by stack and names such as ``PingPong/8``.

    A regression of any of them, or of a benchmark as a whole, is found. Nothing is passed while a
    figure is inconclusive or has no reference. It is disturbed where most of the inconclusive ones
    are so for too few undisturbed launches.
    """
    seen: set[Verdict] = set()
    excused: list[bool] = []
    for case in cases:
        names = set(affected.get(case.stack, ()))
        benchmarks = {name.partition("/")[0] for name in names}
        whole = {g.judgement.verdict for g in case.groups if benchmarks & benchmarks_of(g)}
        seen |= whole & {Verdict.REGRESSION}
        mine = [one for one in case.figures if _called(one) in names]
        seen |= {one.judgement.verdict for one in mine}
        excused += [
            FIGURE_EXCUSED.code in {why.code for why in one.judgement.reasons}
            for one in mine
            if one.judgement.verdict is Verdict.INCONCLUSIVE
            and one.judgement.reasons[0].code != FIGURE_SAME_MEASUREMENT.code
        ]
    if Verdict.REGRESSION in seen:
        return FOUND
    if Verdict.NO_REFERENCE in seen and seen <= {Verdict.NO_REFERENCE, *_DECIDED}:
        return NO_REFERENCE
    if seen and seen <= set(_DECIDED):
        return PASSED
    return DISTURBED if 2 * sum(excused) > len(excused) else INCONCLUSIVE


def benchmarks_of(group: Group) -> set[str]:
    """Return the benchmarks of which a group has figures."""
    return {name.partition(".")[0] for name in group.names} or {group.benchmark}


_DECIDED = (Verdict.PASS, Verdict.IMPROVEMENT)


def _called(figure: Figure) -> str:
    return f"{figure.benchmark}/{figure.conditions.get('bytes')}"


def decided(cases: Sequence[Case]) -> float:
    """Return the share of figures of some cases that a verdict decided, one way or the other."""
    verdicts = [one.judgement.verdict for case in cases for one in case.figures]
    return sum(v in (*_DECIDED, Verdict.REGRESSION) for v in verdicts) / max(len(verdicts), 1)
