"""History: how figures went over the stored runs, and since when they are otherwise. Pure.

A trend is one figure, or all sizes of a benchmark's metric together: what hits all of them shows
earlier in their median than in any of them. Levels are natural logarithms against the median over
the runs, turned so that positive is worse: 0.1 is about 10 % worse.
"""

from __future__ import annotations

import dataclasses
import datetime
import itertools
import math
import re
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ClusterShell.NodeSet import NodeSet, NodeSetException

from clustergate.core.model import Better, order_of_run
from clustergate.judge.history.series import CaseKey, Point, Series
from clustergate.stats.change_points import change_points

# Over all trends that are looked at together: how sure it is that none of the changes is chance.
CONFIDENCE = 0.99
# Runs of one hour share its noise, however many there are: together they are one value.
SESSION = datetime.timedelta(hours=1)
# Nodes that a case ran on at least so often have a trend of their own.
FEWEST_OF_NODES = 6
_NAMED_IN_A_SENTENCE = 3


@dataclass(frozen=True)
class Moment:
    """A run as it stands in a trend: ``level`` is against the median, positive where worse.

    ``value`` is None where the trend is of several figures, the ``ends`` are their least and their
    largest value.
    """

    run_id: str
    started: datetime.datetime
    level: float
    value: float | None
    build: str
    nodes: tuple[str, ...]
    ends: tuple[float, float] | None = None


@dataclass(frozen=True)
class Shift:
    """From the run ``since`` on, the level is worse by so much, between ``low`` and ``high``.

    The interval is None where the runs are too few for one. ``before`` is the last run before it.
    ``nodes`` and ``nodes_before``, ``builds`` and ``builds_before`` are those of the runs up to the
    next shift and from the last one.
    """

    since: Moment
    before: Moment
    worse_by: float
    low: float | None
    high: float | None
    nodes: tuple[str, ...]
    nodes_before: tuple[str, ...]
    builds: tuple[str, ...]
    builds_before: tuple[str, ...]


@dataclass(frozen=True)
class Trend:
    """What some figures of a case did, run after run; ``nodes`` where it is of those alone."""

    case: CaseKey
    benchmark: str
    metric: str
    unit: str
    better: Better
    figures: tuple[str, ...]
    nodes: tuple[str, ...]
    moments: tuple[Moment, ...]
    shifts: tuple[Shift, ...]

    @property
    def title(self) -> str:
        """How the trend is called: its figure, or its benchmark and metric."""
        if len(self.figures) == 1:
            return self.figures[0]
        return (
            self.benchmark if self.metric == self.benchmark else f"{self.benchmark} {self.metric}"
        )


@dataclass(frozen=True)
class Event:
    """What shifted in a case with one run and in one direction, the most first."""

    case: CaseKey
    shifts: tuple[tuple[Trend, Shift], ...]

    @property
    def shift(self) -> Shift:
        """What shifted most."""
        return self.shifts[0][1]

    @property
    def lasts(self) -> bool:
        """Whether it is as it stands now: none of its trends shifted again."""
        return all(trend.shifts[-1] is shift for trend, shift in self.shifts)


def trends(series: Iterable[Series], *, by_figure: bool = False) -> list[Trend]:
    """Return the trends of some figures, with their shifts.

    A run is one value, whatever its launches, and the runs of a :data:`SESSION` are one in the
    search for shifts: ten runs of three minutes in each of eight hours would show each hour as a
    shift. Figures that are not above zero in every run have no trend. The confidence of
    :data:`CONFIDENCE` is that of all trends together, looked at after every run.
    """
    groups: dict[object, list[Series]] = {}
    for one in series:
        if one.points and all(point.estimate.value > 0 for point in one.points):
            what = one.name if by_figure else (one.benchmark, one.metric)
            groups.setdefault((one.case, what), []).append(one)
    split = [part for group in groups.values() for part in _by_nodes(group)]
    return [_trend(group, nodes, comparisons=len(split)) for group, nodes in split]


def _by_nodes(group: Sequence[Series]) -> Iterator[tuple[list[Series], tuple[str, ...]]]:
    """Yield a group as it is, or for each set of nodes that often served in turn with another.

    Of nodes that served one after the other, the change from one to the other is to be seen.
    """
    served: dict[tuple[str, ...], set[datetime.datetime]] = {}
    for one in group:
        for point in one.points:
            served.setdefault(point.nodes, set()).add(point.started)
    often = sorted(nodes for nodes, when in served.items() if len(when) >= FEWEST_OF_NODES)
    in_turn = any(
        min(served[one]) < max(served[other]) and min(served[other]) < max(served[one])
        for one, other in itertools.combinations(often, 2)
    )
    if not in_turn:
        yield list(group), ()
        return
    for nodes in often:
        yield [_narrowed(one, nodes) for one in group], nodes


def _narrowed(one: Series, nodes: tuple[str, ...]) -> Series:
    points = tuple(point for point in one.points if point.nodes == nodes)
    return dataclasses.replace(one, points=points)


def _trend(group: Sequence[Series], nodes: tuple[str, ...], comparisons: int) -> Trend:
    first = group[0]
    moments = _moments(group)
    return Trend(
        case=first.case,
        benchmark=first.benchmark,
        metric=first.metric,
        unit=first.unit,
        better=first.better,
        figures=tuple(one.name for one in group),
        nodes=nodes,
        moments=moments,
        shifts=tuple(_shifts(moments, comparisons)),
    )


def _moments(group: Sequence[Series]) -> tuple[Moment, ...]:
    levels: dict[str, list[float]] = {}
    values: dict[str, list[float]] = {}
    points: dict[str, Point] = {}
    for one in group:
        if not one.points:
            continue
        centre = statistics.median(point.estimate.value for point in one.points)
        for point in one.points:
            points[point.run_id] = point
            values.setdefault(point.run_id, []).append(point.estimate.value)
            level = one.better.worse_by(point.estimate.value, centre)
            levels.setdefault(point.run_id, []).append(level)
    return tuple(
        Moment(
            run_id=point.run_id,
            started=point.started,
            level=statistics.median(levels[point.run_id]),
            value=point.estimate.value if len(group) == 1 else None,
            build=point.build,
            nodes=point.nodes,
            ends=(min(values[point.run_id]), max(values[point.run_id])),
        )
        for point in sorted(
            points.values(), key=lambda point: order_of_run(point.run_id, point.started)
        )
    )


def _shifts(moments: Sequence[Moment], comparisons: int) -> Iterator[Shift]:
    firsts = _firsts_of_sessions(moments)
    levels = [
        statistics.median(moment.level for moment in moments[start:end])
        for start, end in itertools.pairwise([*firsts, len(moments)])
    ]
    changes = change_points(levels, confidence=CONFIDENCE, comparisons=comparisons)
    edges = [0, *(firsts[change.index] for change in changes), len(moments)]
    for number, change in enumerate(changes, 1):
        earlier = moments[edges[number - 1] : edges[number]]
        later = moments[edges[number] : edges[number + 1]]
        yield Shift(
            since=later[0],
            before=earlier[-1],
            worse_by=change.shift,
            low=change.low,
            high=change.high,
            nodes=_all_nodes(later),
            nodes_before=_all_nodes(earlier),
            builds=tuple(sorted({moment.build for moment in later})),
            builds_before=tuple(sorted({moment.build for moment in earlier})),
        )


def _firsts_of_sessions(moments: Sequence[Moment]) -> list[int]:
    firsts: list[int] = []
    for k, moment in enumerate(moments):
        if not firsts or moment.started - moments[firsts[-1]].started >= SESSION:
            firsts.append(k)
    return firsts


def _all_nodes(moments: Iterable[Moment]) -> tuple[str, ...]:
    return tuple(sorted({node for moment in moments for node in moment.nodes}))


# --- in words ---------------------------------------------------------------------------------


def events(shifted: Iterable[Trend]) -> list[Event]:
    """Return what shifted, what is said of one case and run together; the newest first."""
    alike: dict[Any, list[tuple[Trend, Shift]]] = {}
    for trend in shifted:
        for shift in trend.shifts:
            key = (trend.case, trend.nodes, shift.since.run_id, shift.worse_by > 0)
            alike.setdefault(key, []).append((trend, shift))
    ordered = [
        Event(key[0], tuple(sorted(shifts, key=lambda pair: -abs(pair[1].worse_by))))
        for key, shifts in alike.items()
    ]
    return sorted(ordered, key=lambda event: event.shifts[0][1].since.started, reverse=True)


Explanation = Callable[[str, str], str]
"""What changed on the node between two runs, by their ids; empty when nothing is known."""


def sentence(event: Event, explain: Explanation = lambda before, since: "") -> str:
    """Return what happened and since when, on which nodes, and what else changed then."""
    shift = event.shift
    moves = [_described_shift(trend, shift) for trend, shift in event.shifts[:_NAMED_IN_A_SENTENCE]]
    if len(event.shifts) > len(moves):
        moves.append(f"and {len(event.shifts) - len(moves)} more")
    parts = [
        f"{event.case}: since the run of {day_and_time(shift.since.started)}, {', '.join(moves)}, "
        f"on {node_names(shift.nodes)}"
    ]
    return "; ".join([*parts, *changed_with(event, explain)])


def briefly(event: Event) -> str:
    """Return what happened and since when: of the figures that shifted, the most that one did."""
    trend, shift = event.shifts[0]
    more = f" and {len(event.shifts) - 1} more" * (len(event.shifts) > 1)
    since = day_and_time(shift.since.started)
    return f"{event.case.stack}: {_described_shift(trend, shift)}{more}, since {since}"


def changed_with(event: Event, explain: Explanation) -> list[str]:
    """Return what else changed then: nodes, build, and what ``explain`` knows."""
    shift, parts = event.shift, []
    if shift.nodes != shift.nodes_before:
        parts.append(f"the runs before it were on {node_names(shift.nodes_before)}")
    if shift.builds != shift.builds_before:
        parts.append(f"build {', '.join(shift.builds)} instead of {', '.join(shift.builds_before)}")
    return [*parts, *filter(None, [explain(shift.before.run_id, shift.since.run_id)])]


def _described_shift(trend: Trend, shift: Shift) -> str:
    change = f"{trend.title} {percent(shift.worse_by)} {_word(trend, shift)}"
    if shift.low is None or shift.high is None:
        return change
    sign = 1 if shift.worse_by > 0 else -1
    low, high = sorted(100 * math.expm1(sign * end) for end in (shift.low, shift.high))
    return f"{change} ({100 * CONFIDENCE:.0f} % interval: {low:.1f} to {high:.1f} %)"


def _word(trend: Trend, shift: Shift) -> str:
    if trend.unit == "%":
        return "worse" if shift.worse_by > 0 else "better"
    return "slower" if shift.worse_by > 0 else "faster"


def percent(worse_by: float) -> str:
    """Return the logarithm of a ratio in percent, without a sign."""
    return f"{100 * math.expm1(abs(worse_by)):.1f} %"


def day_and_time(moment: datetime.datetime) -> str:
    """Return a moment as a person writes it, ``3 May 2026 14:05 UTC``; ``moment`` is in UTC."""
    return f"{moment.day} {moment:%B %Y %H:%M} UTC"


def node_names(nodes: Sequence[str]) -> str:
    """Return nodes as a person writes them: ``nodes n17 to n32``; else as ClusterShell folds."""
    if len(nodes) < 2:
        return f"node {nodes[0]}" if nodes else "unknown nodes"
    try:
        folded = str(NodeSet.fromlist(list(nodes)))
    except NodeSetException:
        folded = ", ".join(nodes)
    if match := re.fullmatch(r"([^\[\],]*)\[(\d+)-(\d+)\]([^\[\],]*)", folded):
        before, first, last, after = match.groups()
        return f"nodes {before}{first}{after} to {before}{last}{after}"
    return f"nodes {folded}"


def as_record(trend: Trend) -> Mapping[str, object]:
    """Return a trend as JSON holds it; shares are in percent, positive where worse."""
    return {
        **dataclasses.asdict(trend.case),
        "benchmark": trend.benchmark,
        "metric": trend.metric,
        "unit": trend.unit,
        "better": trend.better.value,
        "figures": list(trend.figures),
        "runs": [
            {
                "run": moment.run_id,
                "started": moment.started.isoformat(),
                "value": moment.value,
                "worse_by_percent": _share(moment.level),
                "build": moment.build,
                "nodes": list(moment.nodes),
            }
            for moment in trend.moments
        ],
        "changes": [
            {
                "since": shift.since.run_id,
                "started": shift.since.started.isoformat(),
                "worse_by_percent": _share(shift.worse_by),
                "low_percent": None if shift.low is None else _share(shift.low),
                "high_percent": None if shift.high is None else _share(shift.high),
                "nodes": list(shift.nodes),
                "nodes_before": list(shift.nodes_before),
                "builds": list(shift.builds),
                "builds_before": list(shift.builds_before),
            }
            for shift in trend.shifts
        ],
    }


def _share(level: float) -> float:
    return round(100 * math.expm1(level), 3)
