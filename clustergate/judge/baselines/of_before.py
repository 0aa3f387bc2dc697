"""References of before, with what their runs were where these are still stored.

Their files hold how figures scattered, and not what they were in each run, of which the judge makes
its own. They say on which days, of which build and on which nodes how many runs and launches were
made, and how much worse than the reference those were in the mean: only runs that fit all of that
are taken for theirs. Where none do, such references are judged by their bounds, as written.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from clustergate.core.files.marked_yaml import Document
from clustergate.core.model import BaselineRuns
from clustergate.judge.case import NO_NODES, Nodes
from clustergate.judge.history.series import Point, Series, collect
from clustergate.judge.history.stored_runs import PastRun, stored_runs
from clustergate.judge.references.lookup import References, references_of
from clustergate.judge.references.validation import PROVENANCE, STATISTICS, VALUES
from clustergate.judge.runs import usual

_Entries = Mapping[str, Mapping[str, Any]]
# What rounding leaves of a mean in percent.
_ROUNDED = 0.02


def judging_references(system: str, nodes: Nodes) -> References:
    """Return the references of one of the site's systems, those of before with their runs."""
    return completed(references_of(system), stored_runs, nodes)


def completed(
    known: References,
    runs_since: Callable[[datetime.datetime], Iterable[PastRun]],
    nodes: Nodes = NO_NODES,
) -> References:
    """Return references, to those of before of which are added what their stored runs were."""
    data = known.document.data or {}
    statistics: _Entries = data.get(STATISTICS, {})
    lacking = {path for path, entry in statistics.items() if VALUES not in entry}
    origins = {path: data[PROVENANCE][path] for path in lacking}
    if not lacking:
        return known
    dates = {str(day) for origin in origins.values() for day in origin["dates"]}
    since = datetime.datetime.fromisoformat(min(dates)).replace(tzinfo=datetime.timezone.utc)
    past = [one for one in runs_since(since) if one.started.date().isoformat() in dates]
    by_case: dict[str, list[Series]] = {}
    for one in collect(past, nodes):
        by_case.setdefault(one.case.path(), []).append(one)
    whole: dict[str, Any] = {**statistics}
    for path, origin in origins.items():
        case = "/".join(path.split("/")[:5])
        own = [_only(one, origin) for one in by_case.get(case, [])]
        whole[path] = _with_runs(statistics[path], own, known) or statistics[path]
    document = Document({**data, STATISTICS: whole}, known.document.lines)
    return References(known.source, document, known.earlier)


def _only(series: Series, origin: Mapping[str, Any]) -> Series:
    """Leave what was not measured as the provenance says."""
    days, nodes = set(map(str, origin["dates"])), tuple(sorted(map(str, origin["nodes"])))

    def fits(point: Point) -> bool:
        return (point.build, point.nodes) == (str(origin["build"]), nodes) and (
            point.started.date().isoformat() in days
        )

    points = tuple(filter(fits, series.points))
    return Series(**{**vars(series), "points": points})


def _with_runs(
    entry: Mapping[str, Any], of_case: Sequence[Series], known: References
) -> dict[str, Any] | None:
    """Return statistics of today's form, None where no stored runs fit those of before."""
    # Slow to load, and few files are of before.
    from clustergate.judge.baselines.proposals import runs_alike

    figures = [one for one in of_case if one.name in entry["usual_percent"]]
    if len(figures) < len(entry["usual_percent"]):
        return None
    ordered = [*runs_alike(figures, sum(len(one.points) for one in figures))]
    for last in range(len(ordered), entry["runs"] - 1, -1):
        runs = set(ordered[last - entry["runs"] : last])
        own = {one.name: _own(one, runs, entry, known) for one in figures}
        if all(own.values()):
            first = next(filter(None, own.values()))
            kept = ("launches", "core_distance_ns", "slow_percent")
            return {
                **{key: entry[key] for key in kept if key in entry},
                "runs": list(first.runs),
                "days": list(first.days),
                VALUES: {name: list(one.values) for name, one in own.items() if one},
            }
    return None


def _own(
    series: Series, runs: set[str], entry: Mapping[str, Any], known: References
) -> BaselineRuns | None:
    """Return what a figure was in some runs, None where they are not those of its reference."""
    from clustergate.judge.baselines.proposals import runs_of

    points = [one for one in series.points if one.run_id in runs and one.counts]
    if (
        len(points) < entry["runs"]
        or sum(one.estimate.samples for one in points) != entry["launches"]
    ):
        return None
    of = runs_of(series, points, 1)
    value = known.at((*series.case.parts, series.name)).value
    stated = entry["usual_percent"][series.name]
    return of if abs(100 * usual(of, value, series.better) - stated) <= _ROUNDED else None
