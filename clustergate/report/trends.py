"""How trends are shown: what of them is worth a line, a line of text for the eye, a table."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from clustergate.benchmarks.registry import every_headline
from clustergate.core import store
from clustergate.core.model import Run
from clustergate.core.notation import counted, number
from clustergate.core.reasons import Reason
from clustergate.judge.history import series
from clustergate.judge.history.judged import HISTORY_SLOWER, HISTORY_UNJUDGED, NOT_CONFIRMED
from clustergate.judge.history.node_states import changed_between
from clustergate.judge.history.stored_runs import left_out, stored_runs
from clustergate.judge.history.trends import (
    Event,
    Trend,
    briefly,
    changed_with,
    events,
    node_names,
    sentence,
    trends,
)
from clustergate.report.summary import Cause, FirstScreen
from clustergate.report.terminal import Numbers

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
    """Return the trends that shifted, and those that stand for all others, in a screen's order."""
    lines = sorted(every_headline(), key=lambda one: not one.first)
    # Several lines may be of one metric, at different sizes.
    places = {(line.check, line.benchmark, line.metric): place for place, line in enumerate(lines)}
    last = len(lines)

    def place(trend: Trend) -> int:
        key = (trend.case.check, trend.benchmark, trend.metric)
        return places.get(key, last)

    shown = [one for one in candidates if one.shifts or place(one) < last]
    return sorted(shown, key=lambda one: (not one.shifts, place(one)))


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


def table(shown: Sequence[Trend]) -> Numbers:
    """Return a line for each trend: of which library, and in what else the trends differ."""
    varied = [
        field
        for field in ("stack", "layout", "partition", "effort")
        if field == "stack" or len({getattr(one.case, field) for one in shown}) > 1
    ]
    rows = [
        (
            name(trend),
            ", ".join(getattr(trend.case, field) for field in varied),
            sparkline([moment.level for moment in trend.moments]),
            *cells(trend)[1:],
        )
        for trend in shown
    ]
    columns = (COLUMNS[0], "library", COLUMNS[1], *COLUMNS[3:])
    # How they scatter, then of how many runs: it can be done without.
    return Numbers(columns, rows, range(3, len(columns)), (4, 3))


def head(trends: Sequence[Trend]) -> str:
    """Return of which system the trends are, of how many runs, and of which days."""
    when = {moment.run_id: moment.started for trend in trends for moment in trend.moments}
    systems = dict.fromkeys(trend.case.partition.partition(":")[0] for trend in trends)
    days = dict.fromkeys(
        f"{day.day} {day:%B %Y}" for day in (min(when.values()), max(when.values()))
    )
    of = f"{counted(len(when), 'run')}, {' to '.join(days)}"
    return "   ".join(["clustergate history", ", ".join(systems), of])


def first_screen(
    trends: Sequence[Trend], reasons: Sequence[Reason], left_out: Sequence[str] = ()
) -> FirstScreen:
    """Return what is said first of stored runs: what is slower than before, and what changed then.

    ``reasons`` is what runs say of those before them, ``left_out`` which trends are not shown.
    """
    happened = events(trends)
    lasting = [one for one in happened if one.lasts]
    worse = [one for one in lasting if one.shift.worse_by > 0]
    better = [one for one in lasting if one.shift.worse_by < 0]
    slower = [why for why in reasons if why.code == HISTORY_SLOWER.code]
    unsure = [why for why in reasons if why.code == NOT_CONFIRMED.code]
    causes = [
        *(_cause("regression", "slower", str(why), why.without_remedy) for why in slower),
        *(_cause("regression", "slower", sentence(one), briefly(one)) for one in worse),
        *(_cause("inconclusive", "not confirmed", str(why), why.without_remedy) for why in unsure),
        *(_cause("pass", "faster", sentence(one), briefly(one)) for one in better),
    ]
    beside = [str(why) for why in reasons if why not in (*slower, *unsure)]
    changed = [one for event in [*worse, *better][:1] for one in changed_with(event, what_changed)]
    if past := len(happened) - len(lasting):
        beside.append(f"{counted(past, 'earlier change')} did not last (--all)")
    look, word = "pass", "AS BEFORE"
    if causes:
        look, word = causes[0].css, causes[0].what.upper()
    elif any(why.code == HISTORY_UNJUDGED.code for why in reasons):
        look, word = "inconclusive", "NOT JUDGED"
    said = "" if causes or not beside else beside.pop(0)
    return FirstScreen(
        look,
        word,
        said,
        causes,
        _next_steps(trends, slower, worse, unsure),
        beside=[*(f"changed then: {one}" for one in changed), *beside, *left_out],
        told_by_cause=True,
    )


def _cause(css: str, what: str, sentence: str, short: str) -> Cause:
    return Cause(css, what, "", sentence, short)


def _next_steps(
    trends: Sequence[Trend],
    slower: Sequence[Reason],
    worse: Sequence[Event],
    unsure: Sequence[Reason],
) -> list[str]:
    """Return what tells more of what is slower: both runs between which it became so."""
    runs = sorted({(moment.started, moment.run_id) for trend in trends for moment in trend.moments})
    pairs = [(one.shift.before.run_id, one.shift.since.run_id) for one in worse]
    for why in slower:
        ids = [run for _, run in runs]
        at = ids.index(str(why.facts["since"])) if why.facts["since"] in ids else 0
        pairs = [(ids[at - 1], ids[at]), *pairs] if at else pairs
    for before, since in pairs[:1]:
        return [
            f"`clustergate machine --diff {before} {since}` shows what changed on the nodes",
            f"`clustergate compare {before} {since}` lists every result of both",
        ]
    return [f"`clustergate check`: {unsure[0].remedy}"] if unsure else []


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
