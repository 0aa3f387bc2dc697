"""The figures of stored runs as series: what one figure of one case said, run after run.

Pure: records of runs come in as data. A figure counts as in the report of its run, by the same
estimate, and not at all where its case did not prove itself or where the figure cannot be.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clustergate.benchmarks.registry import descriptor_of
from clustergate.core.figures import matrix_order, name_of, reported
from clustergate.core.model import (
    DISTANCES,
    Better,
    Case,
    CaseRecord,
    Estimate,
    Figure,
    Verdict,
    order_of_run,
)
from clustergate.judge.assembly import figure_of
from clustergate.judge.case import NO_NODES, Nodes, measure_case
from clustergate.judge.history.stored_runs import PastRun
from clustergate.judge.kinds import FigureId
from clustergate.judge.references.lookup import effort_key, layout_key
from clustergate.judge.runs import figure_id


@dataclass(frozen=True, order=True)
class CaseKey:
    """What the references of a case depend on: the levels of a reference file, in their order."""

    check: str
    partition: str
    stack: str
    layout: str
    effort: str

    @property
    def parts(self) -> tuple[str, ...]:
        """The keys that lead to the figures of this case in a reference file."""
        return (self.check, self.partition, self.stack, self.layout, self.effort)

    def path(self, *further: str) -> str:
        """Return the keys with ``/`` between, as in the provenance of a reference file."""
        return "/".join((*self.parts, *further))

    def __str__(self) -> str:
        return f"{self.check} with {self.stack} ({self.partition}, {self.layout}, {self.effort})"


@dataclass(frozen=True)
class Point:
    """What a run says of a figure.

    ``launches`` are the values of its undisturbed launches in their order, ``build`` is the key
    of the program's build, ``nodes`` are sorted. ``nearest_ns`` is the shortest round trip between
    two cores during its case, None where none was measured, ``matrix_order`` of the case, and
    ``processors`` those of its nodes, as far as they told, ``method`` that of the case, and
    ``distance`` how far its nodes were from each other.
    """

    run_id: str
    started: datetime.datetime
    estimate: Estimate
    launches: tuple[float, ...]
    build: str
    nodes: tuple[str, ...]
    nearest_ns: float | None = None
    matrix_order: int | None = None
    processors: tuple[str, ...] = ()
    method: str = ""
    distance: str = DISTANCES[0]

    @property
    def counts(self) -> bool:
        """Whether the value is that of undisturbed launches; of too few of them it is of all."""
        return self.estimate.samples <= len(self.launches)


@dataclass(frozen=True)
class Series:
    """One figure of one case over runs, in the order of their start.

    ``left_out`` says of runs that had the case, but no value of this figure that counts, why.
    ``size_bytes`` is that of its messages, where it has any. ``is_share`` tells of a rate that it
    stands once more beside, as a share of a peak.
    """

    case: CaseKey
    name: str
    benchmark: str
    metric: str
    unit: str
    better: Better
    points: tuple[Point, ...]
    left_out: Mapping[str, str]
    size_bytes: object = None
    is_share: bool = False

    @property
    def figure(self) -> FigureId:
        """What the judge knows it by."""
        of = (self.benchmark, self.metric, self.size_bytes)
        return figure_id(self.case.parts, self.name, *of)


Wanted = Callable[[CaseRecord], bool]


def collect(
    runs: Iterable[PastRun],
    nodes: Nodes = NO_NODES,
    wanted: Wanted = lambda record: True,
) -> list[Series]:
    """Return a series for each figure of the wanted cases, in the order of cases and figures.

    ``nodes`` bound figures as in the report. A case that could not run, or has no layout, is
    passed over.
    """
    cases: dict[CaseKey, _Case] = {}
    for run in sorted(runs, key=lambda run: order_of_run(run.run_id, run.started)):
        for record in run.records:
            # Who was launched against another is no case of the suite.
            alone = "contender" not in record.details and not record.unavailable
            if wanted(record) and alone and "ranks" in record.conditions:
                cases.setdefault(key_of(record), _Case()).add(run, record, nodes)
    return [series for key in sorted(cases) for series in cases[key].series(key)]


def key_of(record: CaseRecord | Case) -> CaseKey:
    """Return the key of a case, stored or reported, whose launch is known."""
    return CaseKey(
        record.check,
        record.partition,
        record.stack,
        layout_key(record.conditions),
        effort_key(record.conditions),
    )


def figures_of(record: CaseRecord, nodes: Nodes = NO_NODES) -> dict[str, Figure]:
    """Return the figures of a record by name, judged as in the report without references."""
    if record.not_launched or record.complaints:
        return {}
    return {one.name: figure_of(one) for one in measure_case(record, nodes=nodes)}


COPY = "it is a copy of the run"


def copies(figures: Iterable[Series]) -> list[str]:
    """Return which runs are left out as they are copies of others, in sentences."""
    why = {run: why for figure in figures for run, why in figure.left_out.items()}
    return [f"{run} is left out: {of}" for run, of in sorted(why.items()) if of.startswith(COPY)]


class _Case:
    """What runs say of one case, by the names of its figures."""

    def __init__(self) -> None:
        self.figures: dict[str, Figure] = {}
        self.points: dict[str, list[Point]] = {}
        self.left_out: dict[str, dict[str, str]] = {}
        self.failed: dict[str, str] = {}
        self.seen: dict[str, None] = {}
        self.launched: dict[tuple[float, ...], str] = {}

    def add(self, run: PastRun, record: CaseRecord, nodes: Nodes) -> None:
        if run.run_id in self.seen:
            # A repetition within a run is no run of its own.
            return
        self.seen[run.run_id] = None
        if run.doubt is not None:
            self.failed[run.run_id] = str(run.doubt)
            return
        launched = tuple(launch.started for launch in record.launches if launch.started)
        # Launches of two runs never begin at the same moments.
        if launched and (other := self.launched.setdefault(launched, run.run_id)) != run.run_id:
            self.failed[run.run_id] = f"{COPY} {other}"
            return
        if record.complaints:
            self.failed[run.run_id] = str(record.complaints[0])
            return
        build = build_of(record)
        launches = _undisturbed(record)
        nearest: Any = record.details.get("core_distance_ns")
        order = matrix_order(record.samples, descriptor_of(record.check).matrix)
        for name, figure in figures_of(record, nodes).items():
            self.figures.setdefault(name, figure)
            why = _why_not(figure)
            if why or figure.estimate is None:
                self.left_out.setdefault(name, {})[run.run_id] = why
            else:
                point = Point(
                    run_id=run.run_id,
                    started=run.started,
                    estimate=figure.estimate,
                    launches=tuple(launches[name]),
                    build=build,
                    nodes=record.hosts,
                    nearest_ns=nearest,
                    matrix_order=order,
                    processors=record.processors,
                    method=record.method,
                    distance=record.distance,
                )
                self.points.setdefault(name, []).append(point)

    def series(self, key: CaseKey) -> list[Series]:
        return [
            Series(
                case=key,
                name=name,
                benchmark=figure.benchmark,
                metric=figure.metric,
                unit=figure.unit,
                better=figure.better,
                points=tuple(self.points.get(name, ())),
                left_out={**self.failed, **self.left_out.get(name, {})},
                size_bytes=figure.conditions.get("bytes"),
                is_share="against" in figure.conditions,
            )
            for name, figure in self.figures.items()
        ]


def build_of(record: CaseRecord) -> str:
    """Return the key of what a case ran: of its program where that has one, else of the stack."""
    program: Any = record.details.get("program") or {}
    unit = Path(program.get("path", "")).parent.parent
    of_stack = str(record.details.get("build_key", ""))
    return unit.name.rpartition("-")[2] if unit.parent.name == "builds" else of_stack


def _undisturbed(record: CaseRecord) -> dict[str, list[float]]:
    disturbed = {launch.order for launch in record.launches if launch.disturbed}
    by_figure: dict[str, list[float]] = {}
    for sample in sorted(reported(record.samples), key=lambda sample: sample.order):
        values = by_figure.setdefault(name_of(sample), [])
        if sample.order not in disturbed:
            values.append(sample.value)
    return by_figure


def _why_not(figure: Figure) -> str:
    if figure.judgement.verdict is Verdict.NO_REFERENCE and figure.estimate is not None:
        return ""
    return figure.judgement.sentence
