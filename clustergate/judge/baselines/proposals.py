"""A baseline: references made from stored runs by a stated rule, or a sentence why not. Pure.

The rule, per figure: runs of the same build on the same nodes, the newest first; enough of them,
over enough time; the value is the best that a launch reached, as others slow launches down and
never speed them up; what is tolerated on the worse side follows from how far above it the runs were
(:mod:`clustergate.judge`). A figure that is worse than its reference by more than is
tolerated keeps that reference until somebody says why the new one is right.
"""

from __future__ import annotations

import datetime
import itertools
import math
import statistics
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from clustergate.benchmarks.registry import descriptor_of
from clustergate.core.figures import same_measurement
from clustergate.core.model import (
    DISTANCES,
    MEASURED,
    UNKNOWN_DISTANCE,
    Anchor,
    BaselineRuns,
    Better,
    NodeFacts,
    Reference,
    order_of_run,
)
from clustergate.core.notation import counted, listed
from clustergate.judge.bad_days import bad_days
from clustergate.judge.baselines.writer import Entry, Measured
from clustergate.judge.case import NO_NODES, Nodes
from clustergate.judge.changes import FALSE_ALARM, Change, Judge
from clustergate.judge.creeping import Accepted, accepted_after, crept, slower_than_before
from clustergate.judge.disproof import beyond_gain
from clustergate.judge.history.series import CaseKey, Point, Series
from clustergate.judge.history.trends import percent
from clustergate.judge.references.lookup import References
from clustergate.judge.references.validation import PERCENT, compared, mode_of, unlike
from clustergate.judge.runs import (
    SMALLEST_BASELINE,
    best_level,
    past_of,
    printed_step,
    spread,
    usual,
    worse_by,
)
from clustergate.judge.scatter import widest_between
from clustergate.launch.disturbance import are_far, nearest_of
from clustergate.stats.one_thread import scipy
from clustergate.stats.slow_share import FEWEST_LAUNCHES, slow_launches

_DIGITS = 5
_MOST_OF_IT = 0.8
LEAST_TOLERANCE = math.log(1.05)
"""A logarithm: no figure is called worse for less than that, however well it is known."""


@dataclass(frozen=True)
class Rule:
    """Which runs a baseline is made of: the newest ``most_runs``, and how many are too few."""

    fewest_runs: int = SMALLEST_BASELINE
    most_runs: int = 30
    shortest: datetime.timedelta = datetime.timedelta(hours=1)


@dataclass(frozen=True)
class Acceptance:
    """Which figures may become worse by their names, and why; and which much better."""

    accepts: Callable[[str], bool] = lambda name: False
    because: str = ""
    accepts_better: Callable[[str], bool] = lambda name: False


@dataclass(frozen=True)
class Refusal:
    """Figures of a case that get no new reference, and why; ``missing`` runs of it would do."""

    case: CaseKey
    names: tuple[str, ...]
    reason: str
    missing: int = 0

    def __str__(self) -> str:
        return f"{self.case}: {listed(self.names)}: {self.reason}"


@dataclass(frozen=True)
class Drift:
    """A figure against the reference it had.

    ``worse_by`` is the natural logarithm of the ratio, positive where worse.
    """

    case: CaseKey
    name: str
    before: Reference
    after: Entry
    worse_by: float
    refused: bool


@dataclass
class Baseline:
    """What became of the figures: new references, refusals, and how far the old ones were off.

    ``runs`` are the ids of those that were used, in the order of their start. ``silent`` counts
    figures that are always zero, of which nothing can be said. ``left_out`` are the days (ISO 8601)
    of a case that were slow, each with what was slower on it. ``anchors`` are those that are to
    stand in the file, None for a figure whose reference is its own.
    """

    measured: list[Measured] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    drifts: list[Drift] = field(default_factory=list)
    runs: tuple[str, ...] = ()
    silent: int = 0
    left_out: dict[CaseKey, dict[str, str]] = field(default_factory=dict)
    anchors: dict[CaseKey, dict[str, Anchor | None]] = field(default_factory=dict)


_Usable = tuple[Series, Sequence[Point]]
"""A figure, and what its runs were that count."""


@dataclass
class _Candidate:
    """A figure on its way to a reference: ``reached`` is the best level of its runs."""

    series: Series
    points: Sequence[Point]
    value: float
    reached: float
    runs: BaselineRuns
    tolerance: float
    remark: str = ""

    @property
    def entry(self) -> Entry:
        """The reference as it will stand in the file."""
        return _entry(self.series, self.value, self.tolerance)

    @property
    def launches(self) -> tuple[tuple[str, int], ...]:
        """The runs it comes from, with the launches of each."""
        return tuple((point.run_id, point.estimate.samples) for point in self.points)


_NOTHING = Acceptance()


def make_baseline(
    series: Sequence[Series],
    known: References,
    rule: Rule,
    acceptance: Acceptance = _NOTHING,
    nodes: Nodes = NO_NODES,
) -> Baseline:
    """Return new references for the figures of some cases, and a refusal for each without one.

    ``known`` are the references that the system has so far; ``nodes`` tell where jobs have theirs
    for themselves.
    """
    series = _measured_once(series)
    paths = {(*s.case.parts, s.name) for s in series if not _is_silent(s.points)}
    paths |= set(known.paths())
    comparisons = {mode: compared(paths, mode) for mode in {mode_of(s.case.effort) for s in series}}
    outcome = Baseline()
    ordered = sorted(series, key=lambda s: (s.case.partition, s.case.effort, s.case))
    used: dict[str, datetime.datetime] = {}
    for (partition, effort), alike in itertools.groupby(
        ordered, key=lambda s: (s.case.partition, s.case.effort)
    ):
        exclusive = bool(nodes.get(partition, NodeFacts()).exclusive)
        of = comparisons[mode_of(effort)]
        by_case = {
            case: list(_usable(case, list(some), known, rule, outcome))
            for case, some in itertools.groupby(alike, key=lambda s: s.case)
        }
        candidates: dict[CaseKey, list[_Candidate]] = {}
        for case, some in _without_bad_days(by_case, outcome, exclusive=exclusive).items():
            best = _best_so_far(case, known, acceptance)
            made = [_candidate(*one, of, best.get(one[0].name)) for one in some]
            candidates[case] = list(_with_tolerances(case, made, outcome, exclusive=exclusive))
        every = [*itertools.chain(*candidates.values())]
        slower = _slower(every, known, exclusive=exclusive)
        for case, made in candidates.items():
            accepted = list(
                _without_moved(case, made, known, acceptance, outcome, slower, exclusive=exclusive)
            )
            outcome.measured += _batches(case, accepted, outcome.left_out.get(case, {}))
            used.update((p.run_id, p.started) for c in accepted for p in c.points)
    outcome.measured.sort(key=lambda batch: batch.case)
    outcome.refusals.sort(key=lambda refusal: refusal.case)
    outcome.runs = tuple(sorted(used, key=lambda run_id: (used[run_id], run_id)))
    return outcome


def measured_references(
    series: Sequence[Series], exclusive: Collection[str], rule: Rule, *, compared: int = 0
) -> dict[tuple[CaseKey, str], Reference]:
    """Return a reference of each figure with runs enough, by its case and name, with these runs.

    Its jobs may have had any nodes of their partition: somebody's suite takes those that it gets.
    ``exclusive`` are the partitions where a job has its nodes for itself, and so many figures at
    least are ``compared`` with theirs.
    """
    references = {}
    for case, made, is_exclusive in _by_case(series, exclusive, rule, compared):
        for c in _with_tolerances(case, made, Baseline(), exclusive=is_exclusive):
            value, lower, upper, unit = c.entry
            days = c.runs.days
            origin = f"{MEASURED} in {counted(len(days), 'run')}, {days[0]} to {days[-1]}"
            references[case, c.series.name] = Reference(
                value, lower, upper, unit, origin, baseline=c.runs
            )
    return references


def measured_runs(
    series: Sequence[Series], exclusive: Collection[str], rule: Rule
) -> dict[tuple[CaseKey, str], BaselineRuns]:
    """Return the runs that :func:`measured_references` would make references of."""
    by_case = _by_case(series, exclusive, rule)
    return {(case, c.series.name): c.runs for case, made, _ in by_case for c in made}


def _by_case(
    series: Sequence[Series], exclusive: Collection[str], rule: Rule, compared: int = 0
) -> Iterator[tuple[CaseKey, list[_Candidate], bool]]:
    """Yield cases with their figures that have runs enough, and whether nodes are exclusive."""
    together: dict[tuple[str, str], dict[CaseKey, list[_Usable]]] = {}
    for one in _measured_once(series):
        points = [point for point in one.points if point.counts][-rule.most_runs :]
        enough = len(points) >= rule.fewest_runs and one.better is not Better.NEITHER
        if enough and all(point.estimate.value > 0 for point in points):
            cases = together.setdefault((one.case.partition, one.case.effort), {})
            cases.setdefault(one.case, []).append((one, points))
    for (partition, _), by_case in together.items():
        is_exclusive = partition in exclusive
        compared_figures = max(compared, sum(map(len, by_case.values())))
        for case, some in _without_bad_days(by_case, Baseline(), exclusive=is_exclusive).items():
            made = [_candidate(*one, compared_figures, None) for one in some if one[1]]
            yield case, made, is_exclusive


def _measured_once(series: Sequence[Series]) -> list[Series]:
    """Leave out what another figure of the same case measures as well."""
    known = {(s.case, s.name) for s in series if s.points and not _is_silent(s.points)}
    return [s for s in series if known.isdisjoint((s.case, n) for n in same_measurement(s.name))]


# --- runs -------------------------------------------------------------------------------------


def _usable(
    case: CaseKey, of_case: Sequence[Series], known: References, rule: Rule, outcome: Baseline
) -> Iterator[_Usable]:
    """Yield the figures of a case that get a reference, each with its runs; refuse the others."""
    names = tuple(s.name for s in of_case)
    runs = runs_alike(of_case, rule.most_runs)
    if reason := _pattern(case, known):
        outcome.refusals.append(Refusal(case, names, reason))
        return
    if reason := _too_few(case, of_case, runs, rule):
        missing = max(1, rule.fewest_runs - len(runs))
        outcome.refusals.append(Refusal(case, names, reason, missing))
        return
    refused: dict[str, list[str]] = {}
    for figure in of_case:
        points = [point for point in figure.points if point.run_id in runs and point.counts]
        if _is_silent(points):
            outcome.silent += 1
        elif reason := _too_few_values(figure, points, runs, rule):
            refused.setdefault(reason, []).append(figure.name)
        else:
            yield figure, points
    outcome.refusals += [Refusal(case, tuple(some), reason) for reason, some in refused.items()]


def _without_bad_days(
    by_case: Mapping[CaseKey, Sequence[_Usable]], outcome: Baseline, *, exclusive: bool
) -> dict[CaseKey, list[_Usable]]:
    """Return the figures of some cases, which run together, without the days that were slow.

    It is asked once, of all of them: what a check reads of the file has no such day.
    """
    known = [
        (figure.figure, runs_of(figure, points, 1), figure.better)
        for some in by_case.values()
        for figure, points in some
    ]
    days = sorted({day for _, of, _ in known for day in of.days})
    bad = bad_days(past_of(known, exclusive=exclusive)) if known else []
    outcome_of = {days[day]: _how_slow(changes) for day, changes in bad}
    kept: dict[CaseKey, list[_Usable]] = {}
    for case, some in by_case.items():
        kept[case] = [(f, [p for p in points if _day(p) not in outcome_of]) for f, points in some]
        of_case = {_day(p) for _, points in some for p in points}
        left_out = {day: why for day, why in outcome_of.items() if day in of_case}
        if left_out:
            outcome.left_out[case] = left_out
    return kept


def _how_slow(changes: Sequence[Change]) -> str:
    worst = max(changes, key=lambda one: one.by)
    more = f", and {len(changes) - 1} more" if len(changes) > 1 else ""
    return f"{worst.hypothesis.name} {percent(worst.by)} slower than on the other days{more}"


def _day(point: Point) -> str:
    return point.started.date().isoformat()


def runs_alike(of_case: Sequence[Series], most: int) -> dict[str, Point]:
    """Return the newest runs that may be compared with the newest of all, by their ids."""
    near = _near(_alike(of_case))
    return {point.run_id: point for point in near[-most:]}


def _alike(of_case: Sequence[Series]) -> list[Point]:
    """Return a point of each run that is like the newest in all that a reference is of, in order.

    A run that was so disturbed that no figure of it counts is none of them.
    """
    points = {p.run_id: p for figure in of_case for p in figure.points if p.counts}
    ordered = sorted(points.values(), key=lambda point: order_of_run(point.run_id, point.started))
    return [p for p in ordered if _identity(p) == _identity(ordered[-1])]


def _identity(point: Point) -> tuple[object, ...]:
    # Where it is known how far the nodes are from each other, others that are as many will do.
    placed = len(point.nodes) > 1 and point.distance != UNKNOWN_DISTANCE
    nodes = len(point.nodes) if placed else point.nodes
    return point.build, nodes, point.processors, point.method


def _nearest_ns(points: Sequence[Point]) -> float | None:
    return nearest_of(p.nearest_ns for p in points if p.nearest_ns is not None)


def _near(points: Sequence[Point]) -> list[Point]:
    """Leave out the runs during which the cores were farther from each other than in others."""
    nearest = _nearest_ns(points)
    if nearest is None:
        return list(points)
    return [p for p in points if p.nearest_ns is None or not are_far(p.nearest_ns, nearest)]


def _pattern(case: CaseKey, known: References) -> str:
    chosen = known.chosen(*case.parts)
    for depth, (key, wanted) in enumerate(zip(chosen, case.parts, strict=False), 1):
        if key != wanted:
            line = known.document.line(chosen[:depth])
            return (
                f"{known.source}:{line}: their references stand under the pattern {key!r}, which "
                f"the key {wanted!r} would hide; write that key out in its place"
            )
    return ""


def _too_few(
    case: CaseKey, of_case: Sequence[Series], runs: Mapping[str, Point], rule: Rule
) -> str:
    usable = {point.run_id for figure in of_case for point in figure.points}
    why = {one: why for f in of_case for one, why in f.left_out.items() if one not in usable}
    quiet = {p.run_id for figure in of_case for p in figure.points if p.counts}
    alike = {point.run_id for point in _alike(of_case)}
    near = {point.run_id for point in _near(_alike(of_case))}
    others = [
        ({*why}, f"did not count: {why[max(why)] if why else ''}"),
        (usable - quiet, "had too few undisturbed launches: free the node of other work"),
        (
            quiet - alike,
            "had another build, other nodes or processors, or were measured another way",
        ),
        (alike - near, "had a longer core-to-core latency, as the hypervisor moved the cores"),
    ]
    more = " more" if runs else ""
    excluded = "".join(f"; {len(ids)}{more} {why} ({_newest(ids)})" for ids, why in others if ids)
    again = (
        f"`clustergate check --mode {case.effort.partition('+')[0]} --check {case.check} "
        f"--stack {case.stack}`"
    )
    if not runs:
        return f"it has no usable run{excluded}; run {again} {rule.fewest_runs} times"
    newest = list(runs.values())[-1]
    if not newest.build or not newest.nodes:
        return f"its runs record neither build nor nodes; run {again}"
    if len(runs) < rule.fewest_runs:
        missing = rule.fewest_runs - len(runs)
        return (
            f"{counted(len(runs), 'run')} of build {newest.build} on {', '.join(newest.nodes)}, "
            f"and a baseline needs {rule.fewest_runs}{excluded}; run {again} "
            f"{counted(missing, 'more time')}"
        )
    span = _span(runs.values())
    if span < rule.shortest:
        return (
            f"its {len(runs)} runs span {_hours(span)}, and a baseline needs "
            f"{_hours(rule.shortest)} to cover more than one state of the machine; run {again} "
            "again later"
        )
    return ""


def _newest(ids: Collection[str]) -> str:
    """Return the newest of some runs, and how many there are before it."""
    ordered = sorted(ids)
    return ordered[-1] + (f" and {len(ids) - 1} before it" if len(ids) > 1 else "")


def _span(points: Iterable[Point]) -> datetime.timedelta:
    started = [point.started for point in points]
    return max(started) - min(started)


def _hours(span: datetime.timedelta) -> str:
    hours = span.total_seconds() / 3600
    return f"{hours:.1f} h" if hours < 48 else f"{hours / 24:.0f} days"


def _is_silent(points: Sequence[Point]) -> bool:
    """Tell whether a figure is always zero, as is a bandwidth of messages without content."""
    return bool(points) and all(point.estimate.value == 0 for point in points)


def _too_few_values(
    figure: Series, points: Sequence[Point], runs: Mapping[str, Point], rule: Rule
) -> str:
    if len(points) < rule.fewest_runs:
        because = [why for run_id, why in figure.left_out.items() if run_id in runs]
        example = f"; one was left out: {because[-1]}" if because else ""
        disturbed = sum(p.run_id in runs and not p.counts for p in figure.points)
        if disturbed:
            example += f"; {disturbed} had too many disturbed launches: run them on an idle node"
        return (
            f"{len(points)} of {len(runs)} runs have a value that counts, and a baseline needs "
            f"{rule.fewest_runs}{example}"
        )
    launches = [point.estimate.samples for point in points]
    if descriptor_of(figure.case.check).repeated and min(launches) < FEWEST_LAUNCHES:
        return (
            f"a run of it has {counted(min(launches), 'launch')}, and a baseline needs "
            f"{FEWEST_LAUNCHES} in each"
        )
    if any(point.estimate.value <= 0 for point in points):
        return "it must be positive in every run"
    return ""


# --- values -----------------------------------------------------------------------------------


def _best_so_far(case: CaseKey, known: References, acceptance: Acceptance) -> dict[str, Reference]:
    """Return the measured references that stay the aim: else each baseline could be a bit worse."""
    here = {path[-1] for path in known.paths() if tuple(path[:-1]) == case.parts}
    before = {name: known.at((*case.parts, name)) for name in here if not acceptance.accepts(name)}
    return {name: one for name, one in before.items() if one.origin.startswith(MEASURED)}


def _candidate(
    figure: Series, points: Sequence[Point], comparisons: int, best: Reference | None
) -> _Candidate:
    launches = [value for point in points for value in point.launches]
    reached = value = best_level(launches, figure.better)
    remark = ""
    newest = points[-1]
    if best and _is_elsewhere(best, newest):
        best = None
    if best and figure.better.worse_by(_rounded(reached), best.value) > 0:
        value, remark = best.value, "value of an earlier baseline, not reached by these runs"
    values = [point.estimate.value for point in points]
    step = printed_step(figure.case.check, values) / value
    runs = runs_of(figure, points, comparisons)
    return _Candidate(figure, points, value, reached, runs, 1.5 * step, remark)


def runs_of(figure: Series, points: Sequence[Point], comparisons: int) -> BaselineRuns:
    return BaselineRuns(
        runs=tuple(point.run_id for point in points),
        days=tuple(map(_day, points)),
        values=tuple(_rounded(point.estimate.value) for point in points),
        launches=max(1, sum(point.estimate.samples for point in points) // len(points)),
        compared=comparisons,
        repeated=descriptor_of(figure.case.check).repeated,
        distances=_distances(points),
    )


def _distances(points: Sequence[Point]) -> tuple[str, ...]:
    """Return how far nodes were from each other in each run; none where that is not known."""
    each = tuple(point.distance for point in points)
    known = UNKNOWN_DISTANCE not in each and {*each} != {DISTANCES[0]}
    return each if known else ()


def _is_elsewhere(before: Reference, newest: Point) -> bool:
    """Tell whether a reference is of another machine than a run, or was measured otherwise."""
    return (
        not {*before.processors} <= {*newest.processors}
        or before.method != newest.method
        or before.nodes not in (0, len(newest.nodes))
    )


def _with_tolerances(
    case: CaseKey, candidates: Sequence[_Candidate], outcome: Baseline, *, exclusive: bool
) -> Iterator[_Candidate]:
    """Yield the figures of a case with what each tolerates, seen by itself; refuse too much.

    It is what ReFrame fails it by. The judge sees it beside its neighbours, and more.
    """
    if not candidates:
        return
    known = [(c.series.figure, c.runs, c.series.better) for c in candidates]
    compared = max(c.runs.compared for c in candidates)
    tolerances = Judge(past_of(known, exclusive=exclusive)).tolerances(compared)
    for c, own in zip(candidates, tolerances, strict=True):
        # Against the best of the runs, of which most are a little worse. A few days tell badly how
        # they differ: it is no more than any machine's are known to, beside what these runs did.
        above = usual(c.runs, c.value, c.series.better)
        seen = widest_between(FALSE_ALARM / max(compared, 1), c.series.figure.kind)
        by = above + min(own, max(_like_others(c.runs, compared), seen - above))
        c.tolerance = max(math.expm1(max(by, LEAST_TOLERANCE)), c.tolerance)
        # As it is written: what is rounded up to it is refused when it is read.
        if _up(c.tolerance) < PERCENT:
            yield c
        else:
            outcome.refusals.append(Refusal(case, (c.series.name,), _too_wide(c)))


def _like_others(known: BaselineRuns, compared: int) -> float:
    """Return by how much one more run like these may be worse than their mean."""
    runs = len(known.values)
    # Figures have more degrees of freedom together.
    quantile = -float(scipy.special.stdtrit(max(runs - 1.0, 10.0), FALSE_ALARM / max(compared, 1)))
    return quantile * spread(known) * math.sqrt(1 + 1 / runs)


def _residuals(figure: Series, points: Iterable[Point], value: float) -> list[float]:
    return worse_by([one for point in points for one in point.launches], value, figure.better)


def _entry(figure: Series, value: float, tolerance: float) -> Entry:
    value = _rounded(value)
    if figure.better is Better.HIGHER:
        return (value, -_up(1 - 1 / (1 + tolerance)), None, figure.unit)
    return (value, None, _up(tolerance), figure.unit)


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


def _up(fraction: float) -> float:
    """Round up to a tenth of a percent; noise of the arithmetic does not count."""
    return math.ceil(fraction * 1000 - 1e-6) / 1000


def _too_wide(candidate: _Candidate) -> str:
    values = candidate.runs.values
    return (
        f"its {len(values)} runs spread by {100 * spread(candidate.runs):.1f} %, from "
        f"{min(values):.4g} to {max(values):.4g} {candidate.series.unit}; with what figures like "
        f"it spread by, nothing below {1 + PERCENT:.0f} x would be seen; look for disturbance, "
        "such as other jobs on the node or unbound ranks, and use runs without it (--since)"
    )


# --- drift ------------------------------------------------------------------------------------


def _without_moved(
    case: CaseKey,
    candidates: Sequence[_Candidate],
    known: References,
    acceptance: Acceptance,
    outcome: Baseline,
    slower: Mapping[str, str],
    *,
    exclusive: bool,
) -> Iterator[_Candidate]:
    """Yield the figures that may have their new value; refuse those that moved too far.

    ``slower`` says by their keys as a path how figures are slower that the judge can tell of.
    """
    paths = set(known.paths())
    together: dict[str, list[Series]] = {}
    for c in candidates:
        name = c.series.name
        anchors = outcome.anchors.setdefault(case, {})
        if (*case.parts, name) not in paths:
            yield c
            continue
        before = known.at((*case.parts, name))
        moved = c.series.better.worse_by(c.reached, before.value)
        anchor = _anchor_of(c, known)
        if anchor and unlike(anchor.baseline.values, c.entry, name):
            # What creeps back to it is beyond the bound before.
            anchor = None
        said = slower.get(case.path(name))
        worse = _worse(c, before, moved) if said is None else said
        better = _better(c, before, moved, exclusive=exclusive)
        accepted = bool(worse) and acceptance.accepts(name)
        refused = bool(worse) and not accepted
        if accepted:
            c.remark = f"accepted as {worse}: {acceptance.because}"
        elif refused:
            together.setdefault(worse, []).append(c.series)
        elif better and not acceptance.accepts_better(name):
            refused = True
            why = f"{better}; if it is to stay, accept it with --accept-better '{name}'"
            outcome.refusals.append(Refusal(case, (name,), why))
        by_person = accepted or acceptance.accepts_better(name)
        anew = by_person or _is_elsewhere(before, c.points[-1])
        if not refused and (anew or anchor is None or anchor.baseline.runs == c.runs.runs):
            if before.anchor or (anew and name in known.anchors_at(case.parts)):
                anchors[name] = None
        elif not refused:
            anchors[name] = anchor
        outcome.drifts.append(Drift(case, name, before, c.entry, moved, refused))
        if not refused:
            yield c
    for worse, some in together.items():
        why = (
            f"{worse}; find out what changed, or accept it with "
            f"--accept-worse '{_pattern_of(some)}' --because 'why it is right'"
        )
        outcome.refusals.append(Refusal(case, tuple(one.name for one in some), why))


def _pattern_of(figures: Sequence[Series]) -> str:
    """Return a pattern of the names of some figures, for a person to narrow."""
    if len(figures) == 1:
        return figures[0].name
    benchmarks = {one.benchmark for one in figures}
    return f"{benchmarks.pop()}.*" if len(benchmarks) == 1 else "*"


def _anchor_of(c: _Candidate, known: References) -> Anchor | None:
    """Return the first accepted baseline of a figure of this machine, with those after it."""
    path = (*c.series.case.parts, c.series.name)
    before = known.at(path)
    of_before = known.runs_of(path)
    if not before.origin.startswith(MEASURED) or _is_elsewhere(before, c.points[-1]):
        return None
    if of_before is None or of_before.runs == c.runs.runs:
        own = None if of_before is None else Anchor(of_before)
        return before.anchor or own
    return accepted_after(before.anchor, of_before) if before.anchor else Anchor(of_before)


def _slower(
    candidates: Sequence[_Candidate], known: References, *, exclusive: bool
) -> dict[str, str]:
    """Return by their paths how figures are slower than in baselines before, empty for not.

    What nobody can judge so is missing.
    """
    paths = set(known.paths())
    figures = [
        Accepted(c.series.figure, c.series.better, anchor, before, c.runs)
        for c in candidates
        if (path := (*c.series.case.parts, c.series.name)) in paths
        and (anchor := _anchor_of(c, known))
        and (before := known.runs_of(path))
    ]
    moved, unjudged = slower_than_before(figures, exclusive=exclusive)
    said = {place: "" for place in range(len(figures)) if place not in unjudged}
    at_once = {place: one.by for one in moved for place in one.hypothesis.places}
    for one in (*moved, *crept(figures, exclusive=exclusive)):
        places = one.hypothesis.places
        how = f"{one.hypothesis.name} is {percent(one.by)} slower than in its last"
        if one not in moved:
            # What became slower at once did not creep.
            places = tuple(x for x in places if at_once.get(x, 0.0) < _MOST_OF_IT * one.by)
            how = f"{one.hypothesis.name} crept: {percent(one.by)} slower than in its first"
        said |= dict.fromkeys(places, f"{how} accepted baseline, since {one.since}")
    return {"/".join((*figures[x].figure.case, figures[x].figure.name)): said[x] for x in said}


def _better(c: _Candidate, before: Reference, moved: float, *, exclusive: bool) -> str:
    if not before.origin.startswith(MEASURED) or _is_elsewhere(before, c.points[-1]):
        return ""
    if -moved <= beyond_gain(c.series.figure.kind, c.runs, exclusive=exclusive):
        return ""
    return (
        f"{percent(moved)} better than the reference {before.value:g} {before.unit}, more than an "
        "unchanged machine: the machine was changed, or the reference is wrong"
    )


def _worse(c: _Candidate, before: Reference, moved: float) -> str:
    tolerated = abs(math.log1p(before.side(c.series.better) or 0.0))
    was = f"{before.value:g} {before.unit}"
    # Two bests differ by little, whatever the runs above them scatter by.
    if moved > min(tolerated, LEAST_TOLERANCE):
        return f"{percent(moved)} worse than the reference {was}"
    # Made of runs that were regressions, it would tolerate the next ones. One may be a false alarm.
    levels = [point.estimate.value for point in c.points]
    slower = [by for by in worse_by(levels, before.value, c.series.better) if by > tolerated]
    if len(slower) < 2 or not before.origin.startswith(MEASURED):
        return ""
    return (
        f"{len(slower)} of its {len(c.points)} runs are worse than the reference {was} tolerates, "
        f"by up to {percent(max(slower))}"
    )


# --- what is said of them ---------------------------------------------------------------------


def _batches(
    case: CaseKey, candidates: Sequence[_Candidate], left_out: Mapping[str, str]
) -> Iterator[Measured]:
    """Return the new references, those together of which the same is to be said."""
    without = [f"{day} left out: {why}" for day, why in sorted(left_out.items())]
    alike: dict[object, list[_Candidate]] = {}
    for c in candidates:
        alike.setdefault((c.launches, c.remark), []).append(c)
    for some in alike.values():
        points = some[0].points
        groups: dict[str, list[_Candidate]] = {}
        for c in some:
            groups.setdefault(c.series.benchmark, []).append(c)
        residuals = {c.series.name: _residuals(c.series, c.points, c.value) for c in some}
        residuals |= {name: _of_launches(of) for name, of in groups.items() if len(of) > 1}
        slow = {
            name: round(100 * (len(slow_launches(of)) / max(len(of), 1)), 2)
            for name, of in residuals.items()
        }
        nearest = _nearest_ns(points)
        yield Measured(
            case=case,
            entries={c.series.name: c.entry for c in some},
            runs=some[0].runs.runs,
            days=[point.started.date() for point in points],
            distances=some[0].runs.distances,
            launches=sum(point.estimate.samples for point in points),
            rule=_rule_text(points),
            build=points[-1].build,
            nodes=points[-1].nodes,
            processors=points[-1].processors,
            method=points[-1].method,
            matrix_order=points[-1].matrix_order,
            values={c.series.name: c.runs.values for c in some},
            slow_percent={name: share for name, share in slow.items() if share},
            core_distance_ns=nearest and round(nearest, 1),
            remark="; ".join(filter(None, [some[0].remark, *without])),
        )


def _rule_text(points: Sequence[Point]) -> str:
    return (
        f"best of {len(points)} runs over {_hours(_span(points))}; tolerated is what unchanged "
        "runs are above it, and 5 % at least"
    )


def _of_launches(group: Sequence[_Candidate]) -> list[float]:
    """Return by how much a benchmark is worse, in the mean, in each launch that has it whole."""
    by_run = [[_residuals(c.series, [point], c.value) for point in c.points] for c in group]
    return [
        statistics.fmean(residuals)
        for of_run in zip(*by_run, strict=True)
        if len({len(launches) for launches in of_run}) == 1
        for residuals in zip(*of_run, strict=True)
    ]
