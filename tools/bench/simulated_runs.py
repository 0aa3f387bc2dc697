"""Runs of a simulated cluster, as they are stored. Pure: all that is drawn has a seed.

Figures, conditions and what they usually are come from a captured run; how they scatter says
:mod:`tools.bench.simulated_noise`. A case can be launched again on the day of its run.
"""

from __future__ import annotations

import datetime
import functools
import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from clustergate.benchmarks.budget import Budget
from clustergate.benchmarks.hpcc.output import METRICS as OF_HPCC
from clustergate.benchmarks.hpcc.output import parse_hpcc
from clustergate.benchmarks.registry import descriptor_of
from clustergate.core.figures import name_of, reported, same_measurement, samples_of
from clustergate.core.model import DISTANCES, Better, CaseId, CaseRecord, Launch, Sample
from clustergate.core.paths import checkout
from clustergate.judge.history.stored_runs import PastRun
from clustergate.launch.stopping import is_enough, undisturbed_needed
from clustergate.sites.description import Partition
from clustergate.sites.modes import MODES, Mode, effort_of
from tools.bench.runs import effort
from tools.bench.simulated_noise import (
    BANDWIDTH,
    COLLECTIVE,
    COMPUTE,
    LARGE_BYTES,
    LATENCY,
    MEMORY,
    Array,
    Machine,
    day_of,
    launches_of,
    level_of,
)
from tools.bench.slowdowns import (
    ALL_COMPUTE,
    BENCHMARK,
    HPL,
    SIZE,
    STACK,
    UPGRADED,
    UPGRADED_LATENCY,
    WINDOW,
    Change,
)

HPL_CHECK, HPCC_CHECK, IMB_CHECK = "HplCheck", "HpccCheck", "ImbMpi1Check"
SYSTEM, NODE = "metal", "node"
_DATA = checkout() / "tests" / "data"
_FIRST_DAY = datetime.datetime(2026, 3, 2, 6, tzinfo=datetime.timezone.utc)
# Of a launch on each node, by check: what it takes in smoke and in the longer modes.
_SECONDS = {HPL_CHECK: (6.0, 90.0), HPCC_CHECK: (12.0, 90.0), IMB_CHECK: (3.0, 9.0)}
# One launch in figures of one measurement; what HPCC tells of its HPL and of PTRANS in other words.
_ALIKE = {"HPL_Tflops": "HPL", "HPL_time": "HPL", "PTRANS_time": "PTRANS_GBs"}
_DIGITS = 6


@dataclass(frozen=True)
class Setting:
    """What runs: a mode with some stacks on so many nodes."""

    name: str
    mode: Mode
    stacks: Sequence[str]
    nodes: int = 1

    def partition(self, *, exclusive: bool) -> Partition:
        """Return the partition that runs it, as a site config would have it."""
        return Partition(
            name=NODE, scheduler="slurm", environs=self.stacks, cores_per_node=2,
            memory_bytes_per_node=24 << 30, nominal_gflops_per_core=50.0, nodes=self.nodes,
            system=SYSTEM, exclusive=exclusive,
        )  # fmt: skip


TWO, THREE = ("intel-mpi", "mpich"), ("intel-mpi", "mpich", "openmpi")
SETTINGS: Mapping[str, Setting] = {
    one.name: one
    for one in (
        Setting("smoke", MODES["smoke"], TWO),
        Setting("smoke, three stacks, two nodes", MODES["smoke"], THREE, 2),
        Setting("smoke, 64 nodes", MODES["smoke"], TWO, 64),
        Setting("maintenance", MODES["maintenance"], TWO),
        Setting("gate of 16 nodes", MODES["maintenance"], THREE, 16),
    )
}


@dataclass(frozen=True)
class Measured:
    """What a launch measures once, however many figures tell it; ``size`` -1 without messages."""

    check: str
    stack: str
    benchmark: str
    size: int
    kind: str


@dataclass(frozen=True, eq=False)
class CaseForm:
    """A case: its samples of a launch, and of each what is measured there (``places``).

    ``usual`` are the values without any disturbance, ``sign`` is -1 for rates; ``decimals`` are
    those that are printed, negative for so many digits in all. ``compared`` are the samples that
    stand for a measurement each.
    """

    key: CaseId
    conditions: Mapping[str, str | int | float | bool]
    budget: Budget
    seconds: float
    samples: Sequence[Sample]
    usual: Array
    sign: Array
    decimals: Array
    places: NDArray[np.int64]
    compared: NDArray[np.int64]

    @functools.cached_property
    def benchmarks(self) -> Sequence[NDArray[np.int64]]:
        """Of each benchmark the places of its figures among the compared ones."""
        of: dict[str, list[int]] = {}
        for place, k in enumerate(self.compared):
            of.setdefault(self.samples[k].benchmark, []).append(place)
        return [np.array(places) for places in of.values()]

    @functools.cached_property
    def names(self) -> Sequence[str]:
        """The names of its figures, of several that tell the same measurement all."""
        return list(map(name_of, self.samples))


@dataclass(frozen=True, eq=False)
class Form:
    """All cases of a run, and all that they measure."""

    setting: Setting
    cases: Sequence[CaseForm]
    measured: Sequence[Measured]

    @functools.cached_property
    def kinds(self) -> Sequence[str]:
        """Of each measurement its kind."""
        return [one.kind for one in self.measured]


# --- what a run has -----------------------------------------------------------------------------


@functools.cache
def form_of(setting: str) -> Form:
    """Return what a run of a setting has."""
    of = SETTINGS[setting]
    cases: list[CaseForm] = []
    measured: list[Measured] = []
    for check, stack in itertools.product((HPL_CHECK, HPCC_CHECK, IMB_CHECK), of.stacks):
        samples = _samples(check, stack, of.mode)
        cases.append(_case(of, check, stack, samples, measured))
    return Form(of, cases, measured)


def _case(
    of: Setting, check: str, stack: str, samples: Sequence[Sample], measured: list[Measured]
) -> CaseForm:
    imb = check == IMB_CHECK
    first: dict[object, int] = {}
    places = []
    for one in samples:
        benchmark = _ALIKE.get(one.benchmark, one.benchmark)
        key = (benchmark, one.conditions.get("bytes"))
        if key not in first:
            first[key] = len(measured)
            size = int(one.conditions.get("bytes", -1))
            measured.append(Measured(check, stack, benchmark, size, _kind(check, one)))
        places.append(first[key])
    names = {name_of(one) for one in reported(samples)}
    once: dict[int, int] = {}
    for k, one in enumerate(samples):
        name = name_of(one)
        if name in names and not any(other in names for other in same_measurement(name)):
            once.setdefault(places[k], k)
    ranks, placement = (
        (max(2, of.nodes), "one-per-node" if of.nodes > 1 else "packed")
        if imb
        else (2 * of.nodes, "packed")
    )
    parameters = (("node_usage", placement), ("process_count", str(ranks))) if imb else ()
    decimals = np.array([_decimals(check, one) for one in samples])
    # What is printed is nowhere in the middle of its last digit's step.
    lot = np.random.default_rng([len(measured), len(samples)])
    printed = np.array([one.value > 0 for one in samples]) & (decimals >= 0)
    hidden = lot.uniform(-0.5, 0.5, len(samples)) * np.where(printed, 0.1**decimals, 0.0)
    return CaseForm(
        key=CaseId(check, f"{SYSTEM}:{NODE}", stack, parameters),
        conditions={
            "mode": of.mode.name,
            "ranks": ranks,
            "ranks_per_node": ranks // of.nodes,
            "nodes": of.nodes,
            "placement": placement,
            "cores_per_rank": 1,
            "bound": True,
            "settings": "",
        },
        budget=effort_of(of.mode, descriptor_of(check)).budget,
        seconds=_SECONDS[check][of.mode.name != "smoke"],
        samples=samples,
        usual=np.array([one.value for one in samples]) + hidden,
        sign=np.array([-1.0 if one.better is Better.HIGHER else 1.0 for one in samples]),
        decimals=decimals,
        places=np.array(places),
        compared=np.array(list(once.values())),
    )


def _decimals(check: str, sample: Sample) -> int:
    if check != IMB_CHECK:
        return -_DIGITS
    return 0 if sample.metric == "message_rate_per_s" else 2


_BETWEEN_TWO = ("PingPong", "PingPing", "Sendrecv", "Exchange", "Uniband", "Biband")


def _kind(check: str, sample: Sample) -> str:
    name = sample.benchmark
    if check == IMB_CHECK:
        if not name.startswith(_BETWEEN_TWO):
            return COLLECTIVE
        return BANDWIDTH if int(sample.conditions["bytes"]) >= LARGE_BYTES else LATENCY
    if "Latency" in name or name.startswith("MPIRandomAccess"):
        return LATENCY
    if "Bandwidth" in name or name.startswith(("PTRANS", "MPIFFT")):
        return BANDWIDTH
    return MEMORY if "STREAM" in name or "RandomAccess" in name else COMPUTE


# Of Open MPI there was no IMB: it has the figures of MPICH, each so many times.
_LACKED = "openmpi"


def _samples(check: str, stack: str, mode: Mode) -> list[Sample]:
    of = "mpich" if (check, stack) == (IMB_CHECK, _LACKED) else stack
    path = _DATA / "runs" / "smoke" / f"{check}-node-{of}.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    samples = [Sample(**{**one, "better": Better(one["better"])}) for one in content["samples"]]
    if check == IMB_CHECK and mode.name != "smoke":
        samples = list(_of_all_sizes(samples, effort(mode).largest_bytes))
    if check == HPCC_CHECK and mode.name != "smoke":
        samples += _random_access()
    if of != stack:
        times = np.random.default_rng(1).uniform(0.8, 1.25, len(samples))
        samples = [replace(s, value=s.value * by) for s, by in zip(samples, times, strict=True)]
    return samples


def _random_access() -> list[Sample]:
    text = (_DATA / "hpcc" / "hpcc-1.5.0-mpich.txt").read_text(encoding="utf-8")
    rows = (row for row in parse_hpcc(text.splitlines()) if "RandomAccess" in row.benchmark)
    return reported(samples_of(rows, OF_HPCC))


def _of_all_sizes(samples: Sequence[Sample], largest: int) -> Iterator[Sample]:
    """Yield the figures of all powers of two, between the sizes that were captured."""
    curves: dict[tuple[str, str], list[Sample]] = {}
    for one in samples:
        curves.setdefault((one.benchmark, one.metric), []).append(one)
    sizes = [0, *(1 << k for k in range(largest.bit_length()))]
    for (benchmark, metric), curve in curves.items():
        if "bytes" not in curve[0].conditions:
            yield from curve
            continue
        known = {int(one.conditions["bytes"]): one for one in curve if one.value > 0}
        logs = [math.log2(size + 1) for size in known]
        times = [math.log(_time(metric, size, one.value)) for size, one in known.items()]
        for size in sizes:
            if "educe" in benchmark and size % 4:  # of MPI_FLOAT
                continue
            conditions = {**curve[0].conditions, "bytes": size}
            time = math.exp(float(np.interp(math.log2(size + 1), logs, times)))
            yield replace(curve[0], conditions=conditions, value=_value(metric, size, time))


def _time(metric: str, size: int, value: float) -> float:
    return {"bandwidth_mb_s": size / value, "message_rate_per_s": 1 / value}.get(metric, value)


def _value(metric: str, size: int, time: float) -> float:
    return {"bandwidth_mb_s": size / time, "message_rate_per_s": 1 / time}.get(metric, time)


# --- what is put in -----------------------------------------------------------------------------


def affected_by(change: Change, form: Form, lot: np.random.Generator) -> NDArray[np.bool_]:
    """Return which measurements a change affects, where chance chooses one of several."""
    stack = str(lot.choice(form.setting.stacks))
    of_imb: dict[str, list[int]] = {}
    for place, one in enumerate(form.measured):
        if one.check == IMB_CHECK and one.stack == stack and one.size >= 0:
            of_imb.setdefault(one.benchmark, []).append(place)
    curve = of_imb[str(lot.choice(sorted(of_imb)))]
    first = int(lot.integers(0, len(curve)))
    window = min(first, len(curve) - 3)
    hit = {
        SIZE: [curve[first]],
        WINDOW: curve[window : window + 3],
        BENCHMARK: curve,
    }.get(change.where, [])
    affected = np.zeros(len(form.measured), dtype=bool)
    affected[hit] = True
    for place, one in enumerate(form.measured):
        of_stack = one.stack == stack
        affected[place] |= {
            HPL: one.check == HPL_CHECK,
            ALL_COMPUTE: one.kind == COMPUTE,
            STACK: of_stack,
            UPGRADED: of_stack,
            UPGRADED_LATENCY: of_stack and one.kind == LATENCY,
        }.get(change.where, False)
    return affected


# --- runs ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Taken:
    """What a case left: its record, and of each launch the compared figures.

    ``printed`` and ``true`` are logarithms, positive is worse: as they were printed, and as they
    were drawn, without the distance of the nodes, both against the usual. ``spikes`` are those of
    all measurements, ``spiked`` tells which of the compared figures had one.
    """

    record: CaseRecord
    printed: Array
    true: Array
    spikes: Array
    spiked: NDArray[np.bool_]

    @property
    def launches(self) -> int:
        """How often it was launched."""
        return len(self.printed)

    @property
    def node_seconds(self) -> float:
        """What its launches took of all its nodes together."""
        nodes = int(self.record.conditions["nodes"])
        return nodes * sum(one.seconds for one in self.record.launches)


@dataclass(eq=False)
class SimulatedRun:
    """A run of a machine on a day of its own: all that is drawn follows from its ``seed``.

    ``slower`` is by how much each measurement is slower than usual, as logarithms, in each launch
    or in one of ``every`` so many, which chance chooses. ``level`` is that of small messages.
    """

    form: Form
    machine: Machine
    started: datetime.datetime
    seed: Sequence[int]
    day: Array
    slower: Array
    every: int = 1
    level: int = 0
    on_bad_day: bool = False
    _taken: dict[tuple[CaseId, int], Taken] = field(default_factory=dict)

    @property
    def taken(self) -> Mapping[CaseId, Taken]:
        """What its cases left, each launched as often as its budget asks for."""
        return {case.key: self.again(case.key, 0) for case in self.form.cases}

    @property
    def records(self) -> list[CaseRecord]:
        """The records of its cases."""
        return [one.record for one in self.taken.values()]

    def again(self, key: CaseId, turn: int = 1) -> Taken:
        """Launch a case again, alone, on the same day and nodes, for the first or a later time."""
        if (key, turn) not in self._taken:
            place = [case.key for case in self.form.cases].index(key)
            before = self.again(key, turn - 1) if turn else None
            self._taken[key, turn] = self._launched(place, turn, before)
        return self._taken[key, turn]

    def with_change(self, change: Change, affected: NDArray[np.bool_]) -> SimulatedRun:
        """Return the same run with a change in some measurements; other cases stay as they are."""
        faster = change.where in (UPGRADED, UPGRADED_LATENCY)
        by = math.log(change.factor) * (-1.0 if faster else 1.0)
        self.taken  # noqa: B018 - drawn once for all changes
        hit = {c.key for c in self.form.cases if affected[slice(*_range(c))].any()}
        alike = {(key, turn): of for (key, turn), of in self._taken.items() if key not in hit}
        return replace(self, slower=by * affected.astype(float), every=change.every, _taken=alike)

    def _launched(self, place: int, turn: int, before: Taken | None) -> Taken:
        case = self.form.cases[place]
        lot = np.random.default_rng([*self.seed, place, turn])
        first, last = _range(case)
        kinds = self.form.kinds[first:last]
        level = math.log(self.machine.levels[self.level][0]) if self.form.setting.nodes > 1 else 0.0
        of_level = level * np.array([kind == LATENCY for kind in kinds])
        most = case.budget.at_most
        last_spikes = before.spikes if before else None
        noise, spikes = launches_of(self.machine, kinds, most, lot, last_spikes)
        slow = lot.random(most) < 1.0 / self.every
        logs = noise + self.day[first:last] + np.outer(slow, self.slower[first:last])
        values = _printed(case, (logs + of_level)[:, case.places - first])
        count = _launches_taken(case, values)
        values, logs, spikes = values[:count], logs[:count], spikes[:count]
        compared = case.places[case.compared] - first
        worse = case.sign * np.log(np.maximum(values, 1e-300) / np.maximum(case.usual, 1e-300))
        began = self.started.timestamp() + 1000.0 * place + 100_000.0 * turn
        return Taken(
            self._record(case, values, began),
            worse[:, case.compared],
            logs[:, compared],
            spikes,
            spikes[:, compared] > 0,
        )

    def _record(self, case: CaseForm, values: Array, began: float) -> CaseRecord:
        key, setting = case.key, self.form.setting
        samples = [
            Sample(s.benchmark, s.metric, s.unit, s.better, s.conditions, value, order)
            for order, of_launch in enumerate(values.tolist())
            for s, value in zip(case.samples, of_launch, strict=True)
        ]
        launches = [
            Launch(order, began + order * (case.seconds + 1.0), case.seconds, "n1", 0.0, 0.0)
            for order in range(len(values))
        ]
        hosts = [f"n{k + 1}" for k in range(setting.nodes)]
        details: dict[str, object] = {"build_key": "simulated", "proof": {"hosts": hosts}}
        if setting.nodes > 1:
            # From the first that is of several nodes on.
            details["distance"] = DISTANCES[1 + self.level]
        return CaseRecord(
            name=f"{key.check}-{NODE}-{key.stack}",
            check=key.check,
            stack=key.stack,
            partition=key.partition,
            conditions=case.conditions,
            samples=samples,
            launches=launches,
            launches_needed=undisturbed_needed(case.budget, case.budget),
            details=details,
        )


def _range(case: CaseForm) -> tuple[int, int]:
    return int(case.places.min()), int(case.places.max()) + 1


def _printed(case: CaseForm, logs: Array) -> Array:
    values = case.usual * np.exp(case.sign * logs)
    digits = -case.decimals - 1 - np.floor(np.log10(np.maximum(values, 1e-300)))
    scale = 10.0 ** np.where(case.decimals < 0, digits, case.decimals)
    return np.round(values * scale) / scale


def _launches_taken(case: CaseForm, values: Array) -> int:
    """Return how often a job launches that has so much time."""
    budget = case.budget
    for count in range(budget.at_least, budget.at_most):
        widest = functools.partial(_widest, case, values[:count])
        if is_enough(budget, [case.seconds] * count, count, widest):
            return count
    return budget.at_most


def _widest(case: CaseForm, values: Array) -> float:
    """Return what :func:`clustergate.launch.estimation.widest_interval` does of all samples."""
    of = values[:, case.compared]
    best, second = np.sort(of * case.sign[case.compared], axis=0)[:2]
    widths = (second - best) / 2 / np.abs(best)
    return max(float(widths[places].mean()) for places in case.benchmarks)


# --- baselines ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Baseline:
    """So many runs on so many days; one day of them may be slower, so many times, in all."""

    name: str
    days: int
    runs_a_day: int = 1
    bad_day: float = 1.0


BASELINES: Mapping[str, Baseline] = {
    one.name: one
    for one in (
        Baseline("1 day", 1, 5),
        Baseline("5 days", 5),
        Baseline("20 days", 20),
        Baseline("5 days, one of them bad", 5, bad_day=1.3),
        Baseline("20 days, one of them bad", 20, bad_day=1.3),
    )
}


def baseline_runs(
    form: Form, machine: Machine, baseline: Baseline, seed: Sequence[int]
) -> list[SimulatedRun]:
    """Return the runs of a baseline, in their order."""
    lot = np.random.default_rng(seed)
    bad = int(lot.integers(0, baseline.days))
    nothing = np.zeros(len(form.measured))
    made = []
    for day in range(baseline.days):
        of_day = day_of(machine, form.kinds, lot)
        is_bad = day == bad and baseline.bad_day > 1.0
        if is_bad:
            of_day = of_day + math.log(baseline.bad_day)
        for k in range(baseline.runs_a_day):
            started = _FIRST_DAY + datetime.timedelta(days=day, hours=0.5 * k)
            of_run, level = [*seed, day, k], level_of(machine, lot)
            run = SimulatedRun(form, machine, started, of_run, of_day, nothing, level=level)
            made.append(replace(run, on_bad_day=is_bad))
    return made


def past_runs(runs: Sequence[SimulatedRun]) -> list[PastRun]:
    """Return runs as they were stored."""
    return [
        PastRun(f"{run.started:%Y%m%dT%H%M%SZ}-r{k}", run.started, run.records)
        for k, run in enumerate(runs, start=1)
    ]


def later_run(form: Form, machine: Machine, seed: Sequence[int]) -> SimulatedRun:
    """Return an unchanged run of a later day."""
    lot = np.random.default_rng(seed)
    day, level = day_of(machine, form.kinds, lot), level_of(machine, lot)
    started = _FIRST_DAY + datetime.timedelta(days=60)
    nothing = np.zeros(len(form.measured))
    return SimulatedRun(form, machine, started, seed, day, nothing, level=level)
