"""Systems by benchmarks over time: what each run said of itself, read from its verdicts alone.

A figure is judged once, when it was measured, by the references and expectations of that day;
nothing here judges again. All figures of a benchmark are one line: the median of how much better
than usual they were, in a run, against the median over the runs.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from clustergate.benchmarks.registry import every_headline, every_metric, title_of
from clustergate.core import store
from clustergate.core.model import Better, Standing, Verdict, worst
from clustergate.core.notation import number
from clustergate.core.texts import telling
from clustergate.judge.history.listing import VERDICTS, StoredRun


class FigureSaid(msgspec.Struct):
    """A figure as a run's verdicts have it."""

    name: str
    verdict: Verdict
    value: float | None = None


class _Case(msgspec.Struct):
    check: str
    stack: str
    partition: str = ""
    parameters: Mapping[str, str] = {}
    figures: Sequence[FigureSaid] = ()


class _Expected(msgspec.Struct):
    name: str
    standing: str


class _Answer(msgspec.Struct):
    """What is read of a run's verdicts: reasons, which are most of them, are passed over."""

    cases: Sequence[_Case] = ()
    expectations: Sequence[_Expected] = ()


@dataclass(frozen=True, order=True)
class LineKey:
    """Whose figures go together; ``layout`` are the parameters of the test."""

    system: str
    benchmark: str
    stack: str
    partition: str
    layout: str
    mode: str


@dataclass
class Line:
    """A benchmark of a system over its runs, the oldest first.

    ``levels`` are natural logarithms against the median over the runs, positive where better;
    ``figures`` are those of the last run, ``headlines`` its values that people know.
    """

    key: LineKey
    check: str
    runs: list[str] = field(default_factory=list)
    started: list[datetime.datetime] = field(default_factory=list)
    values: list[Mapping[str, float]] = field(default_factory=list)
    levels: Sequence[float] = ()
    figures: Sequence[FigureSaid] = ()
    headlines: Sequence[str] = ()

    @property
    def counts(self) -> Mapping[Verdict, int]:
        return Counter(one.verdict for one in self.figures)

    @property
    def verdict(self) -> Verdict:
        """The worst of the last run."""
        return worst(self.counts)


@dataclass(frozen=True)
class Stands:
    """How a system stands to what people expect of it, by the ``run`` that told it last."""

    system: str
    run: str
    met: int
    missed: tuple[str, ...]
    undecided: int


@dataclass(frozen=True)
class Overview:
    """All systems; ``unread`` are runs whose verdicts are damaged."""

    lines: Sequence[Line]
    expected: Sequence[Stands]
    unread: Sequence[str]


def overview(runs: Iterable[StoredRun]) -> Overview:
    """Return the lines of some runs, given the newest first; trials are no part of any."""
    lines: dict[LineKey, Line] = {}
    expected: dict[str, Stands] = {}
    unread = []
    decoder = msgspec.json.Decoder(_Answer)
    for run in reversed([*runs]):
        path = store.run_folder(run.run) / VERDICTS
        if run.trial or not path.is_file():
            continue
        try:
            answer = decoder.decode(path.read_bytes())
        except (OSError, ValueError):
            # As msgspec's own errors are.
            unread.append(run.run)
            continue
        for case in filter(lambda case: case.figures, answer.cases):
            key = _key(case, run)
            _add(lines.setdefault(key, Line(key, case.check)), run, case.figures)
        if stands := _stands(run, answer.expectations):
            expected[run.system] = stands
    for line in lines.values():
        line.levels = levels_of(line.values)
        line.headlines = [*_headlines(line.check, line.values[-1])]
        line.values.clear()
    return Overview(
        [lines[key] for key in sorted(lines)], [expected[one] for one in sorted(expected)], unread
    )


def _key(case: _Case, run: StoredRun) -> LineKey:
    layout = ", ".join(f"{name}={value}" for name, value in case.parameters.items())
    return LineKey(run.system, _title(case.check), case.stack, case.partition, layout, run.mode)


def _title(check: str) -> str:
    try:
        return title_of(check)
    except KeyError:
        # Of a package that is not installed here.
        return check


def _add(line: Line, run: StoredRun, figures: Sequence[FigureSaid]) -> None:
    if line.runs[-1:] == [run.run]:
        # A repetition within a run is no run of its own.
        return
    line.runs.append(run.run)
    line.started.append(run.started)
    line.values.append({one.name: one.value for one in figures if one.value and one.value > 0})
    line.figures = figures


def _headlines(check: str, values: Mapping[str, float]) -> Iterator[str]:
    """Yield the values of a check that people know a machine by, as far as names tell them."""
    for one in every_headline():
        if one.check == check and one.first and (said := telling(one.conditions)) is not None:
            metric = () if one.metric == one.benchmark else (one.metric,)
            words = " ".join([one.benchmark, *said, *metric]).split()
            matching = [
                value
                for name, value in values.items()
                if name.split()[:1] == words[:1] and {*words} <= {*name.split()}
            ]
            if matching:
                picked = one.picked(matching, every_metric()[one.metric].better) * one.scale
                yield f"{one.title} {number(picked)} {one.unit}"


def levels_of(values: Sequence[Mapping[str, float]]) -> list[float]:
    """Return of each run by how much its figures were better than usual, in the median.

    A figure's usual value is its median over the runs; the levels are natural logarithms. A run
    without a figure that has a better side is as usual: 0.
    """
    names = {name: k for k, name in enumerate(dict.fromkeys(n for run in values for n in run))}
    table = np.full((len(values), len(names)), np.nan)
    for row, run in enumerate(values):
        table[row, [names[name] for name in run]] = [*run.values()]
    signs = np.array([_sign(name) for name in names])
    table = np.log(table[:, signs != 0]) * signs[signs != 0]
    if not table.size:
        return [0.0] * len(values)
    levels = table - np.nanmedian(table, axis=0)
    measured = ~np.isnan(levels).all(axis=1)
    levels_by_run = np.zeros(len(values))
    levels_by_run[measured] = np.nanmedian(levels[measured], axis=1)
    return [float(level) for level in levels_by_run]


def _sign(name: str) -> int:
    words = name.split()
    metric = every_metric().get(words[-1]) or every_metric().get(words[0])
    return {Better.HIGHER: 1, Better.LOWER: -1}.get(metric.better, 0) if metric else 0


def _stands(run: StoredRun, expected: Sequence[_Expected]) -> Stands | None:
    of = [one for one in expected if one.standing != Standing.ELSEWHERE.value]
    missed = tuple(one.name for one in of if one.standing == Standing.MISSED.value)
    met = sum(one.standing == Standing.MET.value for one in of)
    left = len(of) - met - len(missed)
    return Stands(run.system, run.run, met, missed, left) if of else None
