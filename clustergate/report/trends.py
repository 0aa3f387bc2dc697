"""How trends are shown: what of them is worth a line, a line of text for the eye, a table."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from clustergate.benchmarks.registry import every_headline
from clustergate.core import store
from clustergate.core.model import Run
from clustergate.core.notation import number
from clustergate.judge.history import series
from clustergate.judge.history.node_states import changed_between
from clustergate.judge.history.stored_runs import left_out, stored_runs
from clustergate.judge.history.trends import Event, Trend, events, node_names, sentence, trends
from clustergate.report import console

_EVENTS_SHOWN = 12
# Of what changed on a node, the likeliest explanations come first.
_CAUSES_SHOWN = 2
_RUNS_IN_A_REPORT = 60
_BLOCKS = "▁▂▃▄▅▆▇█"
_COLUMNS = 32
# A line shows this share of change over its whole height at least, or noise would fill it.
SMALLEST_HEIGHT = 0.10


@dataclass(frozen=True)
class History:
    """What a report shows of earlier runs: trends, and what changed in sentences."""

    trends: Sequence[Trend] = ()
    changes: Sequence[str] = ()


def worth_showing(candidates: Iterable[Trend]) -> list[Trend]:
    """Return the trends that shifted, and those that stand for all others."""
    headlines = {(line.check, line.benchmark, line.metric) for line in every_headline()}
    return [
        trend
        for trend in candidates
        if trend.shifts or (trend.case.check, trend.benchmark, trend.metric) in headlines
    ]


def sparkline(levels: Sequence[float], columns: int = _COLUMNS) -> str:
    """Return a line of blocks that is high where the machine was fast.

    ``levels`` are positive where worse. Of more runs than columns, each column is the median of
    its neighbours.
    """
    if not levels:
        return ""
    count = min(len(levels), columns)
    edges = [round(i * len(levels) / count) for i in range(count + 1)]
    medians = [-statistics.median(levels[a:b]) for a, b in itertools.pairwise(edges)]
    low, high = min(medians), max(medians)
    height = max(high - low, SMALLEST_HEIGHT)
    top = len(_BLOCKS) - 1
    return "".join(_BLOCKS[top - round((high - m) / height * top)] for m in medians)


def render(shown: Sequence[Trend], *, width: int) -> str:
    """Return a table of trends for each case, below its name."""
    out = console.new_console(width)
    with out.capture() as captured:
        for case, of_case in itertools.groupby(shown, key=lambda trend: trend.case):
            out.print(Text(str(case)), soft_wrap=True)
            out.print(_table(list(of_case)))
    return captured.get()


def _table(rows: Sequence[Trend]) -> Table:
    lines = (sparkline([moment.level for moment in trend.moments]) for trend in rows)
    rows_of_trends = [
        (name(trend), line, *cells(trend)) for trend, line in zip(rows, lines, strict=True)
    ]
    return console.table(COLUMNS, rows_of_trends, range(2, len(COLUMNS)))


COLUMNS = ("trend of", "faster ↑", "figures", "runs", "spread", "last run", "value")
"""What :func:`name`, a line and :func:`cells` of a trend tell."""


def name(trend: Trend) -> str:
    """Return what a trend is of, with its nodes where it is of those alone."""
    return f"{trend.title} on {node_names(trend.nodes)}" if trend.nodes else trend.title


def cells(trend: Trend) -> tuple[str, ...]:
    """Return the numbers of a trend: figures, runs, spread, last run and its value.

    The spread is the standard deviation over the runs; the last run is told against their median.
    Of several figures the value is the least and the largest. A dash stands for what there is not.
    """
    levels = [moment.level for moment in trend.moments]
    return (
        str(len(trend.figures)),
        str(len(levels)),
        f"{100 * statistics.stdev(levels):.1f} %" if len(levels) > 1 else "-",
        _against_median(100 * math.expm1(levels[-1])),
        _value(trend),
    )


def _value(trend: Trend) -> str:
    last = trend.moments[-1]
    values = last.ends if last.value is None else (last.value,)
    shown = dict.fromkeys(map(number, values or ()))
    return f"{' … '.join(shown)} {trend.unit}".strip() if shown else "-"


def _against_median(slower_percent: float) -> str:
    percent = f"{abs(slower_percent):.1f} %"
    return (
        f"{percent} {'slower' if slower_percent > 0 else 'faster'}" if percent != "0.0 %" else "="
    )


ValuesBefore = Mapping[tuple[object, str], float]


def history_of(run: Run) -> tuple[History, ValuesBefore]:
    """Return what a report shows of the newest runs of its system, and its :attr:`Run.before`.

    Of checks and stacks that the run is not of, it shows nothing.
    """
    here = {(case.check, case.stack) for case in run.cases}
    try:
        past = [*stored_runs(newest=_RUNS_IN_A_REPORT)]
        doubted = left_out(one.doubt for one in past)
        past_series = series.collect(
            past,
            wanted=lambda record: (
                record.partition.partition(":")[0] == run.system
                and (record.check, record.stack) in here
            ),
        )
    except store.StoreError as error:
        return History(changes=(f"earlier runs are not shown: {error}",)), {}
    shown = [trend for trend in trends(past_series) if len(trend.moments) > 1]
    if not shown:
        return History(changes=doubted), {}
    before = _values_before(run.run_id, past_series)
    changes = [*event_sentences(events(shown)), *doubted]
    return History(worth_showing(shown), changes), before


def _values_before(run_id: str, past: Iterable[series.Series]) -> ValuesBefore:
    values: dict[tuple[object, str], float] = {}
    for one in past:
        runs = [point.run_id for point in one.points]
        before = one.points[: runs.index(run_id)] if run_id in runs else one.points
        # What was measured beside something else is nobody's standard.
        earlier = [point for point in before if point.launches]
        if earlier:
            values[one.case, one.name] = earlier[-1].estimate.value
    return values


def event_sentences(recent: Sequence[Event]) -> list[str]:
    """Return what happened in sentences, the newest first, and how many more there are."""
    if not recent:
        return ["no change detected over these runs"]
    sentences = [sentence(event, what_changed) for event in recent[:_EVENTS_SHOWN]]
    if left := len(recent) - len(sentences):
        sentences.append(f"and {left} earlier changes (--since, --json)")
    return sentences


def what_changed(before: str, since: str) -> str:
    """Return what changed on the node between two runs, the likeliest explanations alone."""
    return "; ".join(changed_between(before, since)[:_CAUSES_SHOWN])
