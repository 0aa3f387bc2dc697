"""What a run is called, against the runs of its baseline: the rules, in their order. Pure.

A figure is compared with its past, less what its nearest neighbours in the same run did, in units
of what that difference scattered by before. Nobody is accused who did not move himself. What looks
slow is launched again, twice, and is slower if it is so each time.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from clustergate.core.model import (
    BaselineRuns,
    Better,
    ComparedSet,
    Group,
    Judgement,
    Reference,
    Verdict,
)
from clustergate.core.reasons import Facts, Reason, Words
from clustergate.judge.changes import (
    HIDDEN,
    IN_DOUBT,
    Change,
    Judge,
    apart,
    by_place,
    slower,
    surest,
)
from clustergate.judge.kinds import FigureId
from clustergate.judge.runs import days, luck, past_of, with_common_runs

FIGURE_BETWEEN = Words(
    "figure.between",
    (
        "{value:number} {unit}, {ratio:compared} the reference {reference:number} ({origin}): "
        "worse than what passes, and within what it tolerates"
    ),
    remedy="see the reasons beside it: it could not be judged with the rest of the run",
)
FIGURE_EXCUSED = Words(
    "figure.excused",
    "{value:number} {unit}, {ratio:compared} the reference {reference:number} ({origin})",
)
EXPECTATION_MET = Words(
    "expectation.met",
    "{name} {value:number} {unit} is {ratio:compared} {expected:number} ({source})",
)
EXPECTATION_TOLERATED = Words(
    "expectation.tolerated",
    (
        "{name} {value:number} {unit} is {ratio:compared} {expected:number} ({source}), and "
        "{tolerance:percent} are tolerated"
    ),
)
LAUNCHES_SLOW_SHARE = Words(
    "launches.slow-share",
    (
        "{slow} of {launches:launch|launches} {slow:~is|are} {times:.1f} x worse than the "
        "reference, and {others:is|are} not"
    ),
    cause="something slows launches intermittently, so the best is not representative",
    remedy=(
        "find in the raw samples which are slow and what sets them apart: the cores and memory "
        "they were bound to, nodes, links, clocks"
    ),
)
LAUNCHES_ALL_SLOW = Words(
    "launches.all-slow",
    "all {launches:launch|launches} are {times:.1f} x worse than the reference",
    remedy="find what changed since then, or measure the node alone",
)

# As near to the best ever seen nothing hides, whatever the baseline scatters by: a tenth less the
# doubt whether it reached what the machine can do.
NEAR_THE_BEST = HIDDEN - IN_DOUBT
# Nodes of other groups take so many times as long for small messages, seen on public clusters.
FAR_NODES = math.log(1.5)
USUAL = 2.0
"""So many standard deviations are usual: nineteen of twenty."""


@dataclass(frozen=True)
class Compared:
    """A figure that a run is to be judged by: its best undisturbed launch, and its reference.

    ``shift`` is by how much runs whose nodes were as far from each other are worse than others, as
    a logarithm, and ``rarer`` by how many times the variance of its change is larger for that.
    """

    figure: FigureId
    value: float
    better: Better
    reference: Reference
    baseline: BaselineRuns
    shift: float = 0.0
    rarer: float = 1.0

    @property
    def bound(self) -> float:
        """From where on it is worse than its reference tolerates, seen by itself."""
        reference, higher = self.reference, self.better is Better.HIGHER
        side = reference.side(self.better)
        if side is None:
            return 0.0 if higher else math.inf
        return reference.value * (1 + side) * math.exp(-self.shift if higher else self.shift)

    @property
    def is_beyond_bound(self) -> bool:
        return self.value < self.bound if self.better is Better.HIGHER else self.value > self.bound

    @property
    def worse_than_best(self) -> float:
        return self.better.worse_by(self.value, self.reference.value) - self.shift

    @property
    def is_tolerated(self) -> bool:
        """Whether it is as good as people tolerate of its kind, and no better than they know."""
        tolerated = self.reference.tolerance is not None and not self.is_beyond_bound
        return tolerated and self.worse_than_best >= -HIDDEN

    @property
    def facts(self) -> Facts:
        return facts_of(self.reference, self.reference.unit, self.value)


# A run is judged by the same baseline each time that something of it was launched again.
@lru_cache(maxsize=8)
def _judge_of(
    known: tuple[tuple[FigureId, BaselineRuns, Better], ...],
    rarer: tuple[float, ...],
    *,
    exclusive: bool,
) -> Judge:
    past = past_of(known, exclusive=exclusive)
    return Judge(replace(past, rarer=np.array(rarer)))


@dataclass(frozen=True)
class Comparison:
    """The figures of a run against their baseline.

    ``watched`` are the sets that were slower when they were launched before: they have to confirm
    it, and are judged as a whole even where they do not.
    """

    figures: Sequence[Compared]
    exclusive: bool = False
    watched: Collection[frozenset[FigureId]] = ()

    @cached_property
    def judge(self) -> Judge:
        known = tuple((one.figure, one.baseline, one.better) for one in self.figures)
        rarer = tuple(one.rarer for one in self.figures)
        return _judge_of(known, rarer, exclusive=self.exclusive)

    @cached_property
    def changes(self) -> list[Change]:
        if not self.figures:
            return []
        values = [one.better.worse_by(one.value, 1.0) - one.shift for one in self.figures]
        return self.judge.changes(np.array(values), self.again)

    @cached_property
    def again(self) -> frozenset[tuple[int, ...]]:
        """The places of the sets that are watched."""
        places = {one.figure: place for place, one in enumerate(self.figures)}
        whole = [some for some in self.watched if some <= places.keys()]
        return frozenset(tuple(sorted(places[one] for one in some)) for some in whole)

    @property
    def suspected(self) -> frozenset[frozenset[FigureId]]:
        """The sets that are slower, by their figures."""
        return frozenset(
            frozenset(self.figures[place].figure for place in one.hypothesis.places)
            for one in self.slower
        )

    @cached_property
    def slower(self) -> list[Change]:
        """The sets of figures that are slower: each figure in one at most, the surest first."""
        return apart([*slower(self.changes), *slower(self.crept)])

    @cached_property
    def crept(self) -> list[Change]:
        """What is said of sets against their first accepted baseline, where that is another one."""
        firsts = [getattr(one.reference.anchor, "baseline", one.baseline) for one in self.figures]
        said = []
        for places in with_common_runs(firsts):
            if any(self.figures[place].reference.anchor for place in places):
                figures = [replace(self.figures[place], baseline=firsts[place]) for place in places]
                since = min(min(firsts[place].days) for place in places)
                changes = Comparison(figures, self.exclusive, self.watched).changes
                said += [one.moved(places, since) for one in changes]
        return said

    @cached_property
    def outdone(self) -> dict[int, Change]:
        """The figures, by their places, that are behind neighbours which became faster."""
        behind = surest(one for one in self.changes if one.is_outdone)
        return {place: one for one in behind for place in one.hypothesis.places}

    @cached_property
    def of_figure(self) -> list[list[Change]]:
        """Of each figure, what is said of the sets that hold it."""
        return by_place(self.changes, len(self.figures))


# --- the rules --------------------------------------------------------------------------------

Rule = Callable[[Comparison, int], Judgement | None]
"""What it says of the figure at a place, None where it does not apply."""


FIGURE_PART = Words("figure.part", "part of {name}, which is {by:percent} slower")


def became_slower(run: Comparison, place: int) -> Judgement | None:
    """A figure, or neighbouring sizes with it, became slower; of a larger set it is a part."""
    for change in run.slower:
        if place in change.hypothesis.places:
            if is_of_figures(change):
                return Judgement(Verdict.REGRESSION, (how_slow(run, change),))
            better = [run.figures[x].better for x in change.hypothesis.places]
            part = FIGURE_PART(name=change.hypothesis.name, by=slower_by(change, better)[0])
            return Judgement(Verdict.INCONCLUSIVE, (part,))
    return None


FIGURE_BEYOND_TOLERANCE = Words(
    "figure.beyond-tolerance",
    (
        "{value:number} {unit}, {ratio:compared} the reference {reference:number} ({origin}), "
        "beyond {bound:number}: {tolerance:percent} are tolerated"
    ),
    remedy="find what changed since then, or measure the node alone",
)


def beyond_tolerance(run: Comparison, place: int) -> Judgement | None:
    """It is worse than people tolerate of its kind."""
    one = run.figures[place]
    if one.reference.tolerance is None or not one.is_beyond_bound:
        return None
    facts = {**one.facts, "bound": one.bound, "tolerance": one.reference.tolerance}
    return Judgement(Verdict.REGRESSION, (FIGURE_BEYOND_TOLERANCE(**facts),))


FIGURE_AS_EXPECTED = Words(
    "figure.as-expected",
    "{value:number} {unit}, {ratio:compared} the reference {reference:number} ({origin})",
)


def near_the_best(run: Comparison, place: int) -> Judgement | None:
    """It comes near to the best that was ever seen, and no set that holds it looks slow.

    The best of many runs is a lucky one, which more days put further away. A printed digit hides
    what it is worth. Or it is as good as people tolerate of its kind, whatever may hide in that.
    """
    one = run.figures[place]
    most = HIDDEN - max(IN_DOUBT, math.log1p(run.judge.steps[place]))
    most += luck(one.baseline, one.better)
    near = -HIDDEN <= one.worse_than_best <= most and place not in run.outdone
    if (near and not any(change.is_slower for change in run.of_figure[place])) or one.is_tolerated:
        return Judgement(Verdict.PASS, (FIGURE_AS_EXPECTED(**one.facts),))
    return None


def is_unknown(run: Comparison, place: int) -> bool:
    """Tell whether nobody knows how a set that holds it scatters, as a whole machine by one day.

    It may be slower with all its neighbours, so that a bound is left which it must not exceed.
    """
    return not all(change.is_judged for change in run.of_figure[place])


FIGURE_REGRESSION = Words(
    "figure.regression",
    (
        "{value:number} {unit}, {ratio:compared} the reference {reference:number} ({origin}), "
        "beyond the tolerated {bound:number}"
    ),
    remedy="find what changed since then, or measure the node alone",
)


def beyond_its_bound(run: Comparison, place: int) -> Judgement | None:
    """Too little is known of it, and it is worse than its reference tolerates."""
    one = run.figures[place]
    if not (is_unknown(run, place) and one.is_beyond_bound):
        return None
    if one.figure.unplaced and one.better.worse_by(one.value, one.bound) < FAR_NODES:
        return None
    beyond = FIGURE_REGRESSION(**one.facts, bound=one.bound)
    return Judgement(Verdict.REGRESSION, (beyond,))


DISTANCE_UNTOLD = Words(
    "distance.untold",
    "the distance between its nodes is unknown",
    cause="far nodes and a slow network look alike",
    remedy=(
        "describe the topology in Slurm's topology.conf, or with switch= and rack= in the hostfile"
    ),
)
BASELINE_UNKNOWN = Words(
    "baseline.unknown",
    "a baseline of {days:day|days} does not show how much such figures vary",
    remedy=(
        "launch a golden build in turn with it (`clustergate golden pin`, `gate`), or run on "
        "more days and take a new baseline"
    ),
)


def unknown(run: Comparison, place: int) -> Judgement | None:
    """Too little is known of it."""
    if not is_unknown(run, place):
        return None
    one = run.figures[place]
    known = BASELINE_UNKNOWN(days=days(one.baseline))
    if one.figure.unplaced:
        known = DISTANCE_UNTOLD()
    return Judgement(Verdict.INCONCLUSIVE, (known,))


FIGURE_IMPROVEMENT = Words(
    "figure.improvement",
    "{value:number} {unit}, {ratio:compared} the reference {reference:number} ({origin})",
    remedy="if it stays, take a new baseline",
)


def faster(run: Comparison, place: int) -> Judgement | None:
    """It became faster, beyond chance and by its own doing."""
    one = run.figures[place]
    if one.worse_than_best < -HIDDEN:
        return Judgement(Verdict.IMPROVEMENT, (FIGURE_IMPROVEMENT(**one.facts),))
    return None


FIGURE_OUTDONE = Words(
    "figure.outdone",
    (
        "{value:number} {unit}, {ratio:compared} the reference {reference:number} ({origin}): "
        "{by:percent} slower than its neighbours, which became faster"
    ),
    remedy="take a new baseline of those, or find what this one lacks",
)


def outdone(run: Comparison, place: int) -> Judgement | None:
    """Its neighbours became faster, and it did not."""
    behind = run.outdone.get(place)
    if behind is None:
        return None
    by, facts = math.expm1(behind.by), run.figures[place].facts
    return Judgement(Verdict.INCONCLUSIVE, (FIGURE_OUTDONE(**facts, by=by),))


FIGURE_UNCLEAR = Words(
    "figure.unclear",
    (
        "{value:number} {unit}, {ratio:compared} the reference {reference:number} ({origin}); it "
        "may be {at_most:percent} slower than before"
    ),
    remedy="more days in the baseline show smaller changes",
)


def as_before(run: Comparison, place: int) -> Judgement:
    """No change of 10 % hides in any set that holds it; else what it may hide is told."""
    facts, hidden = run.figures[place].facts, [change.hidden for change in run.of_figure[place]]
    if all(one < HIDDEN for one in hidden):
        return Judgement(Verdict.PASS, (FIGURE_AS_EXPECTED(**facts),))
    may_be = FIGURE_UNCLEAR(**facts, at_most=math.expm1(max(hidden)))
    return Judgement(Verdict.INCONCLUSIVE, (may_be,))


RULES: tuple[Rule, ...] = (
    became_slower,
    beyond_tolerance,
    near_the_best,
    beyond_its_bound,
    faster,
    outdone,
    unknown,
    as_before,
)
"""In their order: the first that applies decides."""


def judgements(run: Comparison) -> Iterator[Judgement]:
    """Yield what each figure of a comparison is called."""
    for place in range(len(run.figures)):
        yield next(said for rule in RULES if (said := rule(run, place)) is not None)


def is_of_figures(change: Change) -> bool:
    """Tell whether a change is of one figure, or of neighbouring sizes, which are named."""
    return change.hypothesis.level in ("figure", "sizes") or len(change.hypothesis.places) == 1


CHANGE_SLOWER = Words(
    "change.slower",
    "{by:percent} slower than the rest of this run, usually within {usual:percent}",
    remedy="find what changed since then, or measure the node alone",
)
CHANGE_SLOWER_THAN_BEFORE = Words(
    "change.slower-than-before",
    "{by:percent} slower than in its baseline, usually within {usual:percent}",
    remedy="find what changed since then, or measure the node alone",
)
CHANGE_CREPT = Words(
    "change.crept",
    (
        "{by:percent} slower than in the first accepted baseline, since {since}, usually within "
        "{usual:percent}"
    ),
    cause="it became slower little by little",
    remedy=(
        "find out why, or accept it: `clustergate baseline --accept-worse PATTERN --because REASON`"
    ),
)


def how_slow(run: Comparison, change: Change) -> Reason:
    """Return how much slower a set is, and what is usual."""
    code = CHANGE_SLOWER if change.controlled else CHANGE_SLOWER_THAN_BEFORE
    by, usual = slower_by(change, [run.figures[x].better for x in change.hypothesis.places])
    if change.since:
        return CHANGE_CREPT(by=by, usual=usual, since=change.since)
    return code(by=by, usual=usual)


def slower_by(change: Change, better: Iterable[Better]) -> tuple[float, float]:
    """Return by what share a set is slower, of rates what is lost, and what is usual."""
    rates = all(one is Better.HIGHER for one in better)
    by = -math.expm1(-change.by) if rates else math.expm1(change.by)
    return by, math.expm1(USUAL * change.spread)


def groups(run: Comparison) -> Iterator[tuple[tuple[str, ...], Group]]:
    """Yield, with the keys of their case, the benchmarks, and what else is slower as a whole."""
    by_places = {change.hypothesis.places: change for change in run.changes}
    slow = [change for change in run.slower if not is_of_figures(change)]
    watched = [
        change
        for change in {x.hypothesis.places: x for x in (*run.crept, *run.changes)}.values()
        if change.hypothesis.places in run.again
        and not is_of_figures(change)
        and change.hypothesis.level != "benchmark of a case"
        and change not in slow
    ]
    taken = {place for change in slow for place in change.hypothesis.places}
    of_benchmark: dict[tuple[tuple[str, ...], str], list[int]] = {}
    for place, one in enumerate(run.figures):
        of_benchmark.setdefault((one.figure.case, one.figure.benchmark), []).append(place)
    benchmarks = [
        by_places[places]
        for places in map(tuple, of_benchmark.values())
        if len(places) > 1 and places in by_places and taken.isdisjoint(places)
    ]
    for change in (*slow, *watched, *benchmarks):
        judgement = _whole(run, change)
        if change.is_slower and (change in slow or change.hypothesis.places in run.again):
            judgement = Judgement(Verdict.REGRESSION, (how_slow(run, change),))
        by_case: dict[tuple[str, ...], list[str]] = {}
        for place in change.hypothesis.places:
            figure = run.figures[place].figure
            by_case.setdefault(figure.case, []).append(figure.name)
        bound = change.bound if change.is_judged else math.inf
        called, by = change.hypothesis.name, change.by
        for case, names in by_case.items():
            yield case, Group(called, len(names), by, bound, judgement, tuple(names))


def sets(run: Comparison) -> Iterator[ComparedSet]:
    """Yield what was compared as a whole, and which sizes are slower."""
    for change in (*run.changes, *(one for one in run.slower if one.since)):
        whole = change.hypothesis
        if change.is_judged and (change.is_slower or not is_of_figures(change)):
            doubt = change.at_most - change.by
            yield ComparedSet(
                level=whole.level,
                name=f"{whole.name}, since {change.since}" if change.since else whole.name,
                figures=len(whole.places),
                by=change.by,
                at_least=change.by - doubt,
                at_most=change.at_most,
                bound=change.bound,
                is_slower=change.is_slower,
            )


GROUP_AS_EXPECTED = Words(
    "group.as-expected",
    "{ratio:cost} than before, less what its neighbours are",
)
GROUP_IMPROVEMENT = Words(
    "group.improvement",
    "{ratio:cost} than before, less what its neighbours are",
    remedy="if it stays, take a new baseline",
)
GROUP_INCONCLUSIVE = Words(
    "group.inconclusive",
    "{ratio:cost} than before, less what its neighbours are; it may be {at_most:percent} slower",
)


def is_near_the_best(run: Comparison, places: Sequence[int]) -> bool:
    """Tell whether figures come near to the best ever seen, or are within what people tolerate."""
    near = _worse_than_best(run, places) <= NEAR_THE_BEST
    return near or all(run.figures[place].is_tolerated for place in places)


def _worse_than_best(run: Comparison, places: Sequence[int]) -> float:
    return statistics.fmean(run.figures[place].worse_than_best for place in places)


def _whole(run: Comparison, change: Change) -> Judgement:
    """Judge a benchmark as a whole that is not slower."""
    places, ratio = change.hypothesis.places, math.exp(change.by)
    worse_by = _worse_than_best(run, places)
    if worse_by < -HIDDEN:
        improved = GROUP_IMPROVEMENT(ratio=math.exp(worse_by))
        return Judgement(Verdict.IMPROVEMENT, (improved,))
    sure = is_near_the_best(run, places) or (change.is_judged and change.hidden < HIDDEN)
    if sure and not (change.is_slower or change.is_outdone):
        return Judgement(Verdict.PASS, (GROUP_AS_EXPECTED(ratio=ratio),))
    if not change.is_judged:
        known = max(days(run.figures[place].baseline) for place in places)
        return Judgement(Verdict.INCONCLUSIVE, (BASELINE_UNKNOWN(days=known),))
    at_most = math.expm1(change.hidden)
    unsure = GROUP_INCONCLUSIVE(ratio=ratio, at_most=at_most)
    return Judgement(Verdict.INCONCLUSIVE, (unsure,))


def facts_of(reference: Reference, unit: str, value: float) -> Facts:
    """Return what the sentences on a figure and its reference say."""
    of_more = {"more_ranks": reference.more_ranks} if reference.more_ranks else {}
    return {
        **of_more,
        "value": value,
        "unit": unit,
        "reference": reference.value,
        "ratio": value / reference.value if reference.value else None,
        "origin": reference.origin,
        "where": reference.where or "it",
    }
