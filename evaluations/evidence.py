"""What runs of this suite measured, as conclusions and figures ask for it. Pure."""

from __future__ import annotations

import fnmatch
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from clustergate.core.figures import name_of
from clustergate.core.model import Better, CaseRecord, Sample
from clustergate.core.notation import counted
from clustergate.judge.references.lookup import layout_key
from clustergate.launch.estimation import doubt_of, estimate_of

HPCC_CHECK = "HpccCheck"
RANDOM_ACCESS = ("updates_per_flop", "MPIRandomAccess_GUPs")
"""The figures of a benchmark that is another one in another version of HPCC."""

COUNTS = ("processes", "ranks")
"""The conditions that say how many processes a figure is of."""


@dataclass(frozen=True)
class Suite:
    """How this suite calls what was printed.

    ``figure`` is a figure's name (:func:`clustergate.core.figures.name_of`), in which ``*`` stands
    for what the paper does not state; of several figures that fit, the best is meant. ``layout`` is
    the key of the launch (:func:`clustergate.judge.references.lookup.layout_key`), empty where it
    is not stated. The printed value times ``factor`` has the unit of the figure. ``asserted`` is
    set where a doubtful value can be true of this launch alone. ``conditions`` are those of the
    figure that its name does not tell. ``relative`` says of a printed ratio which of the two is
    above (``TO_BASELINE`` and its like in :mod:`evaluations.facts`). ``of`` are the systems of
    which it is, where it is not of all of its kind; a ``*`` in the ``layout`` stands for each
    number of processes that was run.
    """

    check: str
    figure: str
    layout: str = ""
    factor: float = 1.0
    asserted: bool = False
    relative: str = ""
    of: Sequence[str] = ()
    conditions: Mapping[str, Any] = field(default_factory=dict)


class Shape(NamedTuple):
    """Who took part in a figure: two processes on two nodes are another thing than on one.

    ``nodes`` are told of launches of two ranks alone, 0 for others.
    """

    processes: int
    nodes: int


@dataclass(frozen=True)
class Measured:
    """One measured figure: ``conditions`` are those of its launch and its own together.

    ``value`` is that of the best launch, ``of_launches`` are those of all undisturbed ones, in
    their order; ``doubt`` is the sentence why its launches support no conclusion, empty when they
    do. Of runs that launched each case once, in an order drawn by lot, ``rounds`` are the values by
    their run: those of several such runs all count where stacks are compared, since what disturbs a
    round disturbs all who were launched in it. ``disturbed`` are the rounds that were, ``runs``
    those that it was measured in.
    """

    benchmark: str
    metric: str
    unit: str
    better: Better
    value: float
    conditions: Mapping[str, Any]
    name: str
    layout: str
    doubt: str = ""
    of_launches: Sequence[float] = ()
    rounds: Mapping[str, float] = field(default_factory=dict)
    disturbed: frozenset[str] = frozenset()
    runs: frozenset[str] = frozenset()

    @property
    def shape(self) -> Shape:
        """Return who took part in it."""
        ranks = int(self.conditions.get("ranks", 0))
        nodes = int(self.conditions.get("nodes", 1)) if ranks == 2 else 0
        return Shape(int(self.conditions.get("processes", ranks)), nodes)

    @property
    def launch(self) -> tuple[int, str]:
        """Return how many processes it is of, and how they were placed."""
        return self.shape.processes, str(self.conditions.get("placement", ""))

    def goes_before(self, other: Measured) -> bool:
        """Tell which of two of the same is meant: the one beyond doubt, then the better."""
        if bool(self.doubt) != bool(other.doubt):
            return not self.doubt
        higher = self.better is Better.HIGHER
        return self.value > other.value if higher else self.value < other.value


@dataclass(frozen=True)
class Subject:
    """What one stack measured in one run: a system under one MPI library.

    ``version_of`` are versions of the programs by their check, ``trials`` single trials as
    :func:`clustergate.benchmarks.mpi_trials.output.single_trials` tells them, ``runs`` those that
    it was measured in.
    """

    name: str
    stack: str
    system: str
    figures: Sequence[Measured]
    version_of: Mapping[str, str] = field(default_factory=dict)
    trials: Sequence[Mapping[str, Any]] = ()
    runs: frozenset[str] = frozenset()

    @functools.cached_property
    def by_launch(self) -> Sequence[Subject]:
        """Return the same of each launch alone: what follows from figures is sampled with them."""
        launches = [one.of_launches or [one.value] for one in self.figures]
        figures = list(zip(self.figures, launches, strict=True))
        return [
            replace(self, figures=[replace(one, value=of[k]) for one, of in figures if k < len(of)])
            for k in range(max(map(len, launches), default=1))
        ]

    @functools.cached_property
    def undisturbed(self) -> Subject:
        """Return the same without disturbed rounds, which tell nothing of one stack alone."""
        return replace(self, figures=[_undisturbed(one) for one in self.figures])

    @functools.cached_property
    def beyond_doubt(self) -> Subject:
        """Return the same as if nothing were doubtful: it tells where something was measured."""
        return replace(self, figures=[replace(one, doubt="") for one in self.figures])

    @property
    def rounds(self) -> frozenset[str]:
        """Return the rounds in which anything was measured."""
        return frozenset(run for one in self.figures for run in one.rounds)

    def in_rounds(self, runs: Set[str]) -> Subject:
        """Return the same with the launches of these rounds, in their order, of what has them."""
        order = sorted(runs)
        figures = [
            replace(one, value=one.rounds[order[0]], of_launches=[one.rounds[run] for run in order])
            for one in self.figures
            if runs <= one.rounds.keys()
        ]
        return replace(self, figures=figures)

    @property
    def outside_rounds(self) -> Subject:
        """Return the same with what was not launched in rounds."""
        return replace(self, figures=[one for one in self.figures if not one.rounds])

    def launched_as(self, launches: Set[tuple[int, str]]) -> Subject:
        """Return the same with what was measured in such launches alone."""
        return replace(self, figures=[one for one in self.figures if one.launch in launches])

    @functools.cached_property
    def _flushed(self) -> frozenset[str]:
        """Return the names of what was measured with flushed caches, as paper 004 has it."""
        flushed = (one for one in self.figures if one.conditions.get("flush_bytes"))
        return frozenset(one.name for one in flushed if not _is_aside(one))

    def values(self, conditions: Mapping[str, Any], **more: Any) -> list[Measured]:
        """Return the figures of a benchmark and metric under these conditions, beyond doubt.

        What was measured without flushed caches, or with other trials, too, is not meant.
        """
        return [figure for figure in self._asked({**conditions, **more}) if not figure.doubt]

    def is_disturbed(self, conditions: Mapping[str, Any], **more: Any) -> bool:
        """Tell whether figures asked for were measured, in disturbed launches alone."""
        return bool(self._asked({**conditions, **more})) and not self.values(conditions, **more)

    @functools.cached_property
    def _by_kind(self) -> Mapping[tuple[str, str], Sequence[Measured]]:
        found: dict[tuple[str, str], list[Measured]] = {}
        for one in self.figures:
            found.setdefault((one.benchmark, one.metric), []).append(one)
        return found

    def _asked(self, of: Mapping[str, Any]) -> list[Measured]:
        wanted = {key: value for key, value in of.items() if value is not None}
        kind = (wanted.pop("benchmark"), wanted.pop("metric"))
        return [
            figure
            for figure in self._by_kind.get(kind, ())
            if all(figure.conditions.get(key) == value for key, value in wanted.items())
            and not (_is_aside(figure) and figure.name in self._flushed)
        ]

    def shapes(self, conditions: Mapping[str, Any], along: str, **more: Any) -> set[Shape]:
        """Return who took part in each figure that has a place along a condition."""
        return {f.shape for f in self.values(conditions, **more) if along in f.conditions}

    def series(
        self, conditions: Mapping[str, Any], along: str, shape: Shape | None = None, **more: Any
    ) -> dict[Any, float]:
        """Return values along a condition, such as "processes" or "bytes", in its order.

        ``along`` may be a figure of the same case, such as ``HPL_Tflops``. Along all but the number
        of processes a line is of one ``shape``, else of that of the most processes: fewer are
        faster in a collective, and would stand for all. Where several figures stand at one place,
        of other placements, the best is meant.
        """
        figures = self.values(conditions, **more)
        if along not in COUNTS and (shapes := self.shapes(conditions, along, **more)):
            meant = shape or max(shapes)
            figures = [figure for figure in figures if figure.shape == meant]
        found: dict[Any, float] = {}
        for figure in figures:
            at = figure.conditions.get(along)
            at = self._beside(figure, along) if at is None else at
            if at is not None:
                better = max if figure.better is Better.HIGHER else min
                found[at] = better(found.get(at, figure.value), figure.value)
        return dict(sorted(found.items()))

    def by(self, statistic: Callable[[Sequence[float]], float]) -> Subject:
        """Return the same with another value of each figure's launches than the best one."""
        figures = [
            replace(one, value=statistic(one.of_launches)) if one.of_launches else one
            for one in self.figures
        ]
        return replace(self, figures=figures)

    def _beside(self, figure: Measured, name: str) -> float | None:
        ranks = figure.conditions.get("ranks")
        beside = [
            other.value
            for other in self.figures
            if other.metric == name and other.conditions.get("ranks") == ranks
        ]
        return beside[0] if beside else None

    def fitting(self, suite: Suite) -> list[Measured]:
        """Return the figures that are the same quantity as a printed value, of any launch."""
        return [
            figure
            for figure in self.figures
            if fnmatch.fnmatchcase(figure.name, suite.figure)
            and suite.conditions.items() <= figure.conditions.items()
        ]

    def named(self, suite: Suite) -> Measured | None:
        """Return the figure that is the same quantity as a printed value; the best of several.

        A figure of the stated launch goes before those of others, one beyond doubt before others.
        """
        fitting = self.fitting(suite)
        fitting = [figure for figure in fitting if figure.layout == suite.layout] or fitting
        best = None
        for figure in fitting:
            if best is None or figure.goes_before(best):
                best = figure
        return best


def _undisturbed(figure: Measured) -> Measured:
    if not figure.disturbed:
        return figure
    left = [value for run, value in figure.rounds.items() if run not in figure.disturbed]
    if not left:
        told = f"{counted(len(figure.rounds), 'launch')} of it were all disturbed"
        return replace(figure, of_launches=left, doubt=told)
    best = (max if figure.better is Better.HIGHER else min)(left)
    return replace(figure, of_launches=left, value=best, doubt="")


def _is_aside(figure: Measured) -> bool:
    """Tell whether trials were not those of the paper's tables: unflushed, or of another number."""
    others = str(figure.conditions.get("settings", ""))
    return figure.conditions.get("flush_bytes") == 0 or "trials=" in others


# What tells the results of one launch of HPL apart that tries many ways, which have one name.
_TILING = ("n", "nb", "p", "q", "nbmin")


def subjects_in_run(
    run: str, records: Iterable[CaseRecord], only_stack: str = "", *, by_lot: bool = False
) -> list[Subject]:
    """Return what each stack of a run measured, of the cases that proved themselves.

    A subject is named ``run:stack``. Its system is that of the partition. ``by_lot`` tells that the
    order of the cases was drawn, so that single launches of them are a round.
    """
    by_stack: dict[str, list[CaseRecord]] = {}
    for record in records:
        if not (record.complaints or record.unavailable) and only_stack in ("", record.stack):
            by_stack.setdefault(record.stack, []).append(record)
    return [
        Subject(
            name=f"{run}:{stack}",
            stack=stack,
            system=found[0].partition.partition(":")[0],
            figures=[figure for record in found for figure in _figures(run, record, by_lot)],
            version_of={record.check: _version(record) for record in found},
            trials=[one for record in found for one in case_trials(record)],
            runs=frozenset({run}),
        )
        for stack, found in sorted(by_stack.items())
    ]


def merged(subjects: Iterable[Subject]) -> list[Subject]:
    """Return one subject for each stack of each system, with the figures of all its runs.

    They are named by their stacks, where all are of one system.
    """
    groups: dict[tuple[str, str], list[Subject]] = {}
    for subject in subjects:
        groups.setdefault((subject.system, subject.stack), []).append(subject)
    is_one_system = len({system for system, _ in groups}) == 1
    return [
        Subject(
            name=stack if is_one_system else f"{system}:{stack}",
            stack=stack,
            system=system,
            figures=_pooled(figure for one in found for figure in one.figures),
            version_of=_versions(found),
            trials=[trial for one in found for trial in one.trials],
            runs=frozenset(run for one in found for run in one.runs),
        )
        for (system, stack), found in groups.items()
    ]


def _pooled(figures: Iterable[Measured]) -> list[Measured]:
    """Return figures with the launches of all runs, of which those beyond doubt go first.

    Rounds count as they are.
    """
    pools: dict[object, list[Measured]] = {}
    for one in figures:
        told = one.conditions.items()
        known = tuple(sorted((key, str(value)) for key, value in told if key != "repetitions"))
        pools.setdefault((one.benchmark, one.metric, one.layout, known), []).append(one)
    found = []
    for alike in pools.values():
        rounds = dict(sorted(pair for one in alike for pair in one.rounds.items()))
        if len(rounds) > 1:
            alike = [replace(one, doubt="") for one in alike if one.rounds]
        best = functools.reduce(lambda a, b: b if b.goes_before(a) else a, alike)
        if len(rounds) > 1:
            disturbed = frozenset(run for one in alike for run in one.disturbed)
            of_launches = list(rounds.values())
            rounded = replace(best, of_launches=of_launches, rounds=rounds, disturbed=disturbed)
            found.append(replace(rounded, runs=frozenset(rounds)))
            continue
        pool = [one for one in alike if not one.doubt] or alike
        runs = frozenset(run for one in pool for run in one.runs)
        of_launches = [value for one in pool for value in one.of_launches]
        found.append(replace(best, of_launches=of_launches, runs=runs))
    return found


def _versions(subjects: Sequence[Subject]) -> dict[str, str]:
    """Return the version of each program, several of which are none where they differ in kind."""
    found: dict[str, dict[str, None]] = {}
    for one in subjects:
        for check, version in one.version_of.items():
            found.setdefault(check, {})[version] = None
    return {
        check: f"several: {', '.join(of)}" if len({v[:1] for v in of}) > 1 else list(of)[-1]
        for check, of in found.items()
    }


def _figures(run: str, record: CaseRecord, by_lot: bool) -> list[Measured]:
    """Return the best value of each figure over the undisturbed launches, judged or not."""
    disturbed = frozenset(launch.order for launch in record.launches if launch.disturbed)
    doubt = doubt_of(record.launches, record.launches_needed, record.check)
    by_name: dict[tuple[Any, ...], list[Sample]] = {}
    for sample in record.samples:
        tiling = map(sample.conditions.get, _TILING)
        by_name.setdefault((name_of(sample), *tiling), []).append(sample)
    is_round = by_lot and len({sample.order for sample in record.samples}) == 1
    return [
        Measured(
            benchmark=alike[0].benchmark,
            metric=alike[0].metric,
            unit=alike[0].unit,
            better=alike[0].better,
            value=estimate_of(alike, disturbed).value,
            conditions={**record.conditions, **alike[0].conditions},
            name=name,
            layout=layout_key(record.conditions),
            doubt=str(doubt or ""),
            of_launches=[
                one.value
                for one in sorted(alike, key=lambda one: one.order)
                if one.order not in disturbed
            ],
            rounds={run: alike[0].value} if is_round else {},
            disturbed=frozenset({run}) if is_round and doubt else frozenset(),
            runs=frozenset({run}),
        )
        for (name, *_), alike in by_name.items()
    ]


def case_trials(record: CaseRecord) -> Sequence[Mapping[str, Any]]:
    """Return the single trials of a case, those of its first launch, and if that was disturbed."""
    disturbed = any(launch.disturbed for launch in record.launches[:1])
    kept = record.details.get("trials", ())
    return [{**one, "disturbed": disturbed} for one in kept] if isinstance(kept, list) else ()


def _version(record: CaseRecord) -> str:
    program = record.details.get("program")
    return str(program.get("version", "")) if isinstance(program, Mapping) else ""
