"""Public results of real machines, judged by the way of a check. Pure but for reading the files.

A folder holds tables of repeated results (CSV, gzip), a figure and launch a line. What was measured
on a day on the nodes of a machine is a run; the first days make a baseline, and later ones are
judged by it. Each figure takes the place of one that the suite knows, of the same kind, and its
first value that of a usual one, which no physical limit meets.
"""

from __future__ import annotations

import csv
import dataclasses
import datetime
import gzip
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from clustergate.benchmarks.hpcc.output import METRICS as OF_HPCC
from clustergate.core.figures import name_of
from clustergate.core.model import METRICS, Better, CaseId, CaseRecord, Launch, Sample, Verdict
from clustergate.judge.baselines.proposals import Rule
from clustergate.judge.history.stored_runs import PastRun
from clustergate.sites.description import Partition
from clustergate.sites.modes import MODES
from tools.bench.judge import judge_run, make_judge, of_figures, regressions
from tools.bench.launches import RecordingError
from tools.bench.simulated_noise import (
    BANDWIDTH,
    COLLECTIVE,
    COMPUTE,
    KINDS,
    LARGE_BYTES,
    LATENCY,
    MEMORY,
)
from tools.bench.simulated_runs import HPCC_CHECK, HPL_CHECK, IMB_CHECK

# Machines that known changes or faults make other machines than they were, by data set, machine and
# benchmark: known_changes.csv tells them. Days are the first and the last that are left out.
_CHANGED = (
    ("mghpcc-aicr", "aicr-compute", "osu_bibw", "20260519", "20260519"),
    ("mghpcc-aicr", "aicr-gpu2", "osu_bibw", "", "20260416"),
    ("simgrid-calibration", "stampede", "", "", "9"),
    ("simgrid-calibration", "sirocco", "", "", "9"),
    ("hpcuk", "ARCHER2_CrayMPICH8015", "", "", "9"),
    ("cc-clouds", "azure-cyclecloud-cpu", "osu_allreduce", "", "9"),
    ("cc-clouds", "google-compute-engine-cpu", "osu_bw", "", "9"),
)
_PARTITION, _MODE = "node", MODES["smoke"]
# More days than this make no better baseline of machines whose days are alike.
_FEWEST_DAYS, _BASELINE_DAYS, _SHARE = 3, 5, 4
# A judged day takes a second for so many nodes or pairs; the first ones by name stand for all.
_MOST_PLACES = 16
_RULE = Rule(fewest_runs=2, shortest=datetime.timedelta(0))


@dataclass(frozen=True)
class Value:
    """A line of a table; ``bytes`` is -1 where a figure has no messages."""

    dataset: str
    machine: str
    kind: str
    nodes: int
    benchmark: str
    metric: str
    bytes: int
    better: str
    place: str
    day: str
    value: float

    @property
    def figure_kind(self) -> str:
        """What it measures, as the noise is told of."""
        name = self.benchmark.lower()
        if re.search("allreduce|allgather|alltoall|bcast|barrier|reduce|gather|scatter", name):
            return COLLECTIVE
        if self.bytes >= 0:
            return BANDWIDTH if self.bytes >= LARGE_BYTES else LATENCY
        return MEMORY if "stream" in name else COMPUTE


def read_values(folder: Path) -> Iterator[Value]:
    """Yield the lines of all tables but for changed machines; raises :class:`RecordingError`."""
    paths = sorted(folder.glob("*.csv.gz"))
    if not paths:
        raise RecordingError(f"{folder} holds no tables (*.csv.gz)")
    for path in paths:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            for line, row in enumerate(csv.DictReader(file), 2):
                try:
                    one = _value(row)
                except (KeyError, ValueError, TypeError):
                    raise RecordingError(f"{path}:{line}: no figure stands here") from None
                if one.value > 0 and len(one.day) == 8 and not _is_changed(one):
                    yield one


def _value(row: dict[str, str]) -> Value:
    session = row["job_or_session"]
    period = session.partition("/")[0] if session.startswith("period") else ""
    return Value(
        row["dataset"],
        " ".join(filter(None, [row["machine"], period])),
        row["kind"],
        int(row["nodes"] or 1),
        row["benchmark"],
        row["metric"],
        int(float(row["bytes"])) if row["bytes"] else -1,
        row["better"],
        row["node_or_nodeset"],
        row["day"],
        float(row["value"]),
    )


def _is_changed(one: Value) -> bool:
    return any(
        (one.dataset, one.machine) == (dataset, machine)
        and one.benchmark.startswith(benchmark)
        and first <= one.day <= last
        for dataset, machine, benchmark, first, last in _CHANGED
    )


# --- what the suite would have stored -----------------------------------------------------------


@dataclass(frozen=True)
class System:
    """Nodes of a machine in jobs of one size with one benchmark: its values by day."""

    dataset: str
    machine: str
    kind: str
    nodes: int
    benchmark: str
    days: dict[str, list[Value]]


def systems(values: Iterable[Value]) -> list[System]:
    """Return the systems that were measured on days enough."""
    by_system: dict[tuple[str, str, str, int, str], list[Value]] = {}
    for one in values:
        key = (one.dataset, one.machine, one.kind, one.nodes, one.benchmark)
        by_system.setdefault(key, []).append(one)
    found = (System(*key, _days(mine)) for key, mine in by_system.items())
    return [system for system in found if len(system.days) >= _FEWEST_DAYS]


def _days(values: Sequence[Value]) -> dict[str, list[Value]]:
    """Return by day the figures that were measured on days enough, of some nodes."""
    of_series: dict[object, set[str]] = {}
    for one in values:
        of_series.setdefault(_series(one), set()).add(one.day)
    often = [one for one in values if len(of_series[_series(one)]) >= _FEWEST_DAYS]
    places = sorted({one.place for one in often})[:_MOST_PLACES]
    days: dict[str, list[Value]] = {}
    for one in sorted(often, key=lambda one: one.day):
        if one.place in places:
            days.setdefault(one.day, []).append(one)
    return days


def _series(one: Value) -> tuple[str, str, int, str]:
    return one.benchmark, one.metric, one.bytes, one.place


def records_of(system: System, day: str, first: dict[object, float]) -> list[CaseRecord]:
    """Return the cases of a day; ``first`` are the first values of all figures."""
    cases: dict[tuple[str, str], list[Value]] = {}
    for one in system.days[day]:
        cases.setdefault((_check(one), _stack(one)), []).append(one)
    began = datetime.datetime.strptime(day, "%Y%m%d").replace(tzinfo=datetime.timezone.utc)
    return [
        _record(system, key, values, began.timestamp() + 1000.0 * place, first)
        for place, (key, values) in enumerate(sorted(cases.items()))
    ]


def _check(one: Value) -> str:
    if one.figure_kind == COMPUTE:
        return HPL_CHECK
    return HPCC_CHECK if one.figure_kind == MEMORY else IMB_CHECK


def _stack(one: Value) -> str:
    """Return what stands for the stack: nodes, and the program where it has no name here."""
    named = one.place if one.figure_kind in (LATENCY, BANDWIDTH, COLLECTIVE) else ""
    name = named or f"{one.benchmark}-{one.metric if _check(one) == HPL_CHECK else ''}-{one.place}"
    return re.sub(r"[^\w.-]+", "-", name)


def _record(
    system: System,
    key: tuple[str, str],
    values: Sequence[Value],
    began: float,
    first: dict[object, float],
) -> CaseRecord:
    check, stack = key
    orders: dict[object, int] = {}
    samples = []
    for one in values:
        order = orders.get(_series(one), -1) + 1
        orders[_series(one)] = order
        worse = one.value / first[_series(one)]
        samples.append(_sample(one, worse if one.better == "lower" else 1.0 / worse, order))
    count = max(orders.values()) + 1
    return CaseRecord(
        name=f"{check}-{_PARTITION}-{stack}",
        check=check,
        stack=stack,
        partition=f"{_name(system)}:{_PARTITION}",
        conditions={
            "mode": _MODE.name,
            "ranks": max(system.nodes, 2),
            "ranks_per_node": 1 if system.nodes > 1 else 2,
            "nodes": system.nodes,
            "placement": "one-per-node" if system.nodes > 1 else "packed",
            "cores_per_rank": 1,
            "bound": True,
            "settings": "",
        },
        samples=samples,
        launches=[Launch(k, began + k, 1.0, "n1", 0.0, 0.0) for k in range(count)],
        launches_needed=1,
        details={
            "build_key": "published",
            "proof": {"hosts": [f"{stack}-{k}" for k in range(system.nodes)]},
        },
    )


_OF_HPCC = {"ranks": 2, "threads": 1, "vector_size": 1 << 23}
_MESSAGES = {"bibw": "Exchange", "bw": "Uniband", "latency": "PingPong"}


def _sample(one: Value, worse: float, order: int) -> Sample:
    """Return the figure that takes the place of one that is so many times worse than at first."""
    kind = one.figure_kind
    if kind == COMPUTE:
        metric = METRICS["performance_gflops"]
        return Sample("HPL", metric.name, metric.unit, metric.better, {}, 20.0 / worse, order)
    if kind == MEMORY:
        name = f"StarSTREAM_{one.metric.rpartition('_')[2].capitalize()}"
        metric = OF_HPCC.get(name, OF_HPCC["StarSTREAM_Triad"])
        of = (metric.name, metric.name, metric.unit, metric.better, _OF_HPCC)
        return Sample(*of, 10.0 / worse, order)
    benchmark = one.benchmark.rpartition("_")[2].lower()
    name = benchmark.capitalize() if kind == COLLECTIVE else _MESSAGES.get(benchmark, "PingPong")
    usual_us = 5.0 + max(one.bytes, 0) / 5000.0
    is_rate = one.better == "higher" and one.bytes > 0
    metric = METRICS["bandwidth_mb_s" if is_rate else "t_avg_us"]
    if not is_rate and kind != COLLECTIVE:
        metric = METRICS["latency_us"]
    value = one.bytes / usual_us / worse if metric.better is Better.HIGHER else usual_us * worse
    conditions = {"processes": 2, "groups": 1, "bytes": max(one.bytes, 0)}
    return Sample(name, metric.name, metric.unit, metric.better, conditions, value, order)


def _name(system: System) -> str:
    return re.sub(
        r"[^\w]+", "-", f"{system.dataset}-{system.machine}-{system.nodes}-{system.benchmark}"
    )


# --- what is said of later days -----------------------------------------------------------------


@dataclass(frozen=True)
class Told:
    """What was said of the figures of a kind of a system on its later days.

    ``alarms`` are the days on which one of them was called a regression.
    """

    system: str
    machine: str
    kind: str
    baseline_days: int
    days: int
    alarms: int
    figures: int
    regressions: int
    passed: int
    without: int


def told_of(system: System) -> list[Told]:
    """Return what is said of the later days of a system, by the kinds of its figures."""
    days = list(system.days)
    first: dict[object, float] = {}
    for one in (one for day in days for one in system.days[day]):
        first.setdefault(_series(one), one.value)
    count = min(max(_BASELINE_DAYS, len(days) // _SHARE), len(days) - 1)
    stored = [(day, records_of(system, day, first)) for day in days]
    past = [
        PastRun(f"{day}T000000Z-r{k}", _noon(day), records)
        for k, (day, records) in enumerate(stored[:count], 1)
    ]
    partition = Partition(
        name=_PARTITION, scheduler="slurm", cores_per_node=2, memory_bytes_per_node=24 << 30,
        environs=sorted({record.stack for _, records in stored for record in records}),
        nominal_gflops_per_core=50.0, nodes=system.nodes, system=_name(system),
        exclusive=system.kind != "shared-vm",
    )  # fmt: skip
    judge = make_judge(past, _MODE, [], partition, _RULE)
    kinds = {_key(one): one.figure_kind for day in days for one in system.days[day]}
    sums = {kind: [0] * 6 for kind in KINDS if kind in kinds.values()}
    for place, (_, records) in enumerate(stored[count:], count):
        keys = [CaseId(r.check, r.partition, r.stack) for r in records]
        again = _later([records for _, records in stored[place + 1 :]])
        said = judge_run(dataclasses.replace(judge, expected=keys), records, again)
        called = {key for one in regressions(said.cases) for key in one}
        verdicts = of_figures(said.cases)
        for kind, counts in sums.items():
            mine = [verdict for key, verdict in verdicts.items() if kinds.get(key) == kind]
            slow = [key for key in called if kinds.get(key) == kind]
            passed = sum(v in (Verdict.PASS, Verdict.IMPROVEMENT) for v in mine)
            without = mine.count(Verdict.NO_REFERENCE)
            more = (bool(mine), bool(slow), len(mine), len(slow), passed, without)
            sums[kind] = [a + b for a, b in zip(counts, more, strict=True)]
    named = f"{system.dataset}: {system.machine}, {system.benchmark} on {system.nodes} nodes"
    return [Told(named, system.kind, kind, count, *of_kind) for kind, of_kind in sums.items()]


def _key(one: Value) -> tuple[str, str, str]:
    return _check(one), _stack(one), name_of(_sample(one, 1.0, 0))


def _noon(day: str) -> datetime.datetime:
    return datetime.datetime.strptime(f"{day}12", "%Y%m%d%H").replace(tzinfo=datetime.timezone.utc)


def _later(days: Sequence[Sequence[CaseRecord]]) -> Callable[[CaseId], CaseRecord | None]:
    """Return how a case is launched again of which there are results alone: the next days do."""
    turns: dict[CaseId, Iterator[CaseRecord]] = {}

    def again(key: CaseId) -> CaseRecord | None:
        of_case = (r for day in days for r in day if (r.check, r.stack) == (key.check, key.stack))
        return next(turns.setdefault(key, of_case), None)

    return again


HEADS = (
    "machines", "figures", "systems", "days judged", "with an alarm", "figures judged",
    "called slower", "passed", "without a reference",
)  # fmt: skip


def rows(told: Sequence[Told]) -> list[tuple[str, ...]]:
    """Return a row for each kind of machine and of figure."""
    found = []
    for machine, kind in dict.fromkeys((one.machine, one.kind) for one in told):
        some = [one for one in told if (one.machine, one.kind) == (machine, kind)]
        days, alarms, figures, slow, passed, without = (
            sum(getattr(one, name) for one in some)
            for name in ("days", "alarms", "figures", "regressions", "passed", "without")
        )
        share = [f"{100 * x / max(figures, 1):.1f} %" for x in (slow, passed, without)]
        found.append((machine, kind, str(len(some)), str(days), str(alarms), str(figures), *share))
    return sorted(found)
