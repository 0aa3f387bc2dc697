"""Two sets of launches against each other: the judge with a baseline of one run. Pure.

One run tells nothing of how a machine's runs differ. On nodes that a job has for itself their kind
tells that, as seen on other clusters, and more where these two runs differ by more from figure to
figure. On shared nodes nobody knows, and nothing is judged. Two stacks of one run share its day:
what their launches scatter by is all that they differ by. Two files tell neither day nor node, so
that they are judged by the widest that is known.
"""

from __future__ import annotations

import dataclasses
import enum
import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustergate.benchmarks.registry import descriptor_of
from clustergate.core.model import LATENCY, BaselineRuns, Better
from clustergate.core.reasons import Reason, Words
from clustergate.judge.changes import FALSE_ALARM, NOMINAL, Change, Judge, by_place, slower
from clustergate.judge.hypotheses import called
from clustergate.judge.kinds import FigureId
from clustergate.judge.rules import is_of_figures, slower_by
from clustergate.judge.runs import past_of, worse_by
from clustergate.judge.scatter import EXCLUSIVE, EXCLUSIVE_NODES, WIDEST, Prior
from clustergate.stats import MAD
from clustergate.stats.comparison import Comparison, Relation, without_ratio
from clustergate.stats.slow_share import FEWEST_LAUNCHES, mostly_slow

_COVERED = 0.98
"""What an interval covers both ends of which are sure to 99 %."""

EVERYTHING = "all figures"
"""The stack of figures that are all of one."""
# Degrees of freedom: of what is certain, and the most that launches of one run tell.
_CERTAIN, _MOST_FREEDOM = 1e6, 10.0
# Fewer figures do not tell by how much those of their kind differ.
_FEWEST_OF_A_KIND = 5

Floats = NDArray[np.float64]


COMPARE_DISTANCE = Words(
    "compare.distance",
    "not judged",
    cause=(
        "the nodes of both runs are not known to be as far from each other, which decides small "
        "messages"
    ),
    remedy="tell it by Slurm's topology.conf, or by switch= and rack= in the hostfile",
)
FEW_LAUNCHES = Words(
    "compare.few-launches",
    "fewer than {fewest} undisturbed launches in one of both",
    remedy="measure again when nothing else runs",
)
MOSTLY_SLOW = Words(
    "compare.mostly-slow",
    "most launches of {side} take more than twice as long as its best",
    remedy="see what else ran then, and measure again",
)


@dataclass(frozen=True)
class Both:
    """The undisturbed launches of a figure in two runs; a side that does not have it has none.

    ``placed_alike`` tells whether the nodes of both are known to be as far from each other.
    """

    figure: FigureId
    a: Sequence[float]
    b: Sequence[float]
    better: Better
    placed_alike: bool = True

    @property
    def bests(self) -> tuple[float, float]:
        best = max if self.better is Better.HIGHER else min
        return best(self.a), best(self.b)

    @property
    def has_ratio(self) -> bool:
        return bool(self.a and self.b) and min(*self.a, *self.b) > 0

    @property
    def remark(self) -> str:
        """Why it is not judged, empty where it is."""
        if self.better is Better.NEITHER:
            return "neither direction is better for this metric"
        if self.figure.kind == LATENCY and not self.placed_alike:
            return str(COMPARE_DISTANCE())
        few = min(len(self.a), len(self.b)) < FEWEST_LAUNCHES
        if few and descriptor_of(self.figure.case[0]).repeated:
            return str(FEW_LAUNCHES(fewest=FEWEST_LAUNCHES))
        slow = [
            bool(mostly_slow(worse_by(side, best, self.better)))
            for side, best in zip((self.a, self.b), self.bests, strict=True)
        ]
        # The best of them tells nothing of that.
        if slow[0] != slow[1]:
            return str(MOSTLY_SLOW(side="A" if slow[0] else "B"))
        return ""


COMPARE_SLOWER = Words(
    "compare.slower",
    "{name}: {side} is {by:percent} slower, usually within {usual:percent}",
)
NOT_CONFIRMED = Words(
    "compare.not-confirmed",
    "{name}: {side} may be {by:percent} slower, usually within {usual:percent}; not confirmed",
    remedy="launch both in turn (`clustergate ab`), or run once more and see `clustergate history`",
)


@dataclass(frozen=True)
class Moved:
    """A set of figures that is slower in one of two runs, by a share; ``usual`` are others.

    What is not sure would be launched again in a run.
    """

    name: str
    change: Change
    better: Relation
    by: float
    usual: float
    is_sure: bool

    @property
    def sentence(self) -> str:
        return str(self.reason_in("B" if self.better is Relation.A_BETTER else "A"))

    def reason_in(self, side: str) -> Reason:
        """Return it said of a side by a name of that."""
        code = COMPARE_SLOWER if self.is_sure else NOT_CONFIRMED
        return code(name=self.name, side=side, by=self.by, usual=self.usual)


@dataclass(frozen=True)
class TwoRuns:
    """What two runs say of each other: of each figure, and which sets of them are slower."""

    comparisons: Sequence[Comparison]
    moved: Sequence[Moved] = ()


SHARED_NODES = Words(
    "compare.shared-nodes",
    "not judged",
    cause="two runs on shared nodes do not show variation between days",
    remedy="launch both in turn (`clustergate ab`), or take a baseline of five runs",
)


class Known(enum.Enum):
    """What is known of where and when both were launched."""

    EXCLUSIVE = "two runs on nodes that a job has for itself"
    SHARED = "two runs on nodes that others use, too"
    ONE_RUN = "two stacks of one run"
    NOTHING = "two files"


def of_two_runs(both: Sequence[Both], margin: float, known: Known) -> TwoRuns:
    """Return what the later of two runs, B, says of each figure beside the earlier one, A.

    The ratio B/A is that of the best launches, with an interval of 98 %. A set of figures that is
    slower is so in all of them. ``margin`` is the fraction within which two are equivalent. All
    figures are of one partition.
    """
    judged = [one for one in both if one.has_ratio and not one.remark]
    is_known = judged and known is not Known.SHARED
    judgements, moved = _judged(judged, margin, known) if is_known else (None, [])
    unknown = str(SHARED_NODES())
    comparisons = [
        without_ratio(len(one.a), len(one.b))
        if not one.has_ratio
        else _undecided(one, statistics.median(one.b) / statistics.median(one.a), one.remark)
        if one.remark
        else _undecided(one, one.bests[1] / one.bests[0], unknown)
        if judgements is None
        else next(judgements)
        for one in both
    ]
    return TwoRuns(comparisons, moved)


def _judged(
    both: Sequence[Both], margin: float, known: Known
) -> tuple[Iterator[Comparison], list[Moved]]:
    baseline = [
        (one.figure, BaselineRuns(("A",), ("",), (one.bests[0],), len(one.a)), one.better)
        for one in both
    ]
    past = past_of(baseline, exclusive=True)
    run = np.array([one.better.worse_by(one.bests[1], 1.0) for one in both])
    variances = _variances(past.figures, run - past.values[0])
    if known is Known.ONE_RUN:
        variances = _of_launches(both)
    past = dataclasses.replace(past, variances=variances, prior=_prior(both, known))
    judge = Judge(past)
    suspicious = judge.changes(run)
    # Nothing of them is launched again.
    surely = dataclasses.replace(judge.among(np.ones(1, dtype=bool)), chance=FALSE_ALARM)
    changes = surely.changes(run)
    moved: list[Moved] = []
    of_figure: dict[int, Moved] = {}
    for some, is_sure in ((changes, True), (suspicious, False)):
        each = [(Relation.A_BETTER, one) for one in slower(some)]
        each += [(Relation.B_BETTER, one) for one in slower([_turned(one) for one in some])]
        for relation, change in sorted(each, key=lambda one: -one[1].sureness):
            places = change.hypothesis.places
            if not is_sure and not of_figure.keys().isdisjoint(places):
                continue
            name = called(change.hypothesis, past.figures).removesuffix(f", {EVERYTHING}")
            by, usual = slower_by(change, [both[x].better for x in places])
            moved.append(Moved(name, change, relation, by, usual, is_sure))
            of_figure.update((place, moved[-1]) for place in places if place not in of_figure)
    holding = by_place(changes, len(both))
    judgements = (
        _comparison(one, place, of, of_figure.get(place), margin)
        for place, (one, of) in enumerate(zip(both, holding, strict=True))
    )
    return judgements, moved


def _prior(both: Sequence[Both], known: Known) -> Prior:
    """Return what is known of such figures from elsewhere.

    The widest is no estimate, so that it is surely enough; a day's part is none of one run's.
    """
    if known is Known.NOTHING:
        return Prior(WIDEST, _CERTAIN, together=True)
    if known is Known.EXCLUSIVE:
        return EXCLUSIVE_NODES
    freedom = sum(len(side) - 1 for one in both for side in (one.a, one.b))
    of_a_launch = {kind: math.sqrt(NOMINAL) * sd for kind, sd in EXCLUSIVE.items()}
    return Prior(of_a_launch, min(EXCLUSIVE_NODES.freedom + freedom, _MOST_FREEDOM))


def _of_launches(both: Sequence[Both]) -> Floats:
    """Return what the best launch of each figure varies by, from how its launches scatter.

    Of n normal ones the best has a variance of about 1 / (1 + log n); it is doubled, as launches
    resemble those before them. What was launched once is taken for what the others are, in units of
    what is usual of their kinds.
    """
    usual = np.array([EXCLUSIVE[one.figure.kind] ** 2 for one in both])
    variances = np.full(len(both), np.nan)
    for place, one in enumerate(both):
        sides = [np.log(side) for side in (one.a, one.b) if len(side) > 1]
        if sides:
            of_best = [2.0 * side.var(ddof=1) / (1.0 + math.log(len(side))) for side in sides]
            variances[place] = NOMINAL * statistics.fmean(of_best)
    known = ~np.isnan(variances)
    every = float(np.median(variances[known] / usual[known])) if known.any() else NOMINAL
    return np.where(known, variances, every * usual)


def _variances(figures: Sequence[FigureId], by: Floats) -> Floats:
    """Return what figures vary by within a day, from how much each is worse ``by`` in one of both.

    That is by how much those of a kind are apart from their median in each stack: what some of them
    did, or all together, leaves it as it is.
    """
    sets: dict[tuple[str, str], list[int]] = {}
    for place, one in enumerate(figures):
        sets.setdefault((one.kind, one.stack), []).append(place)
    apart = np.zeros(len(figures))
    for places in sets.values():
        apart[places] = abs(by[places] - np.median(by[places]))
    kinds = np.array([one.kind for one in figures])
    usual = np.array([EXCLUSIVE[kind] for kind in kinds])
    every = np.median(apart / usual)
    variances = np.zeros(len(figures))
    for kind, deviation in EXCLUSIVE.items():
        of_kind = kinds == kind
        enough = of_kind.sum() >= _FEWEST_OF_A_KIND
        seen = np.median(apart[of_kind]) if enough else every * deviation
        # A difference of two has the variance of both.
        variances[of_kind] = NOMINAL * (MAD * seen) ** 2 / 2
    return variances


def _turned(one: Change) -> Change:
    """Return a change as it is of A beside B."""
    at_most = one.at_most - 2 * one.by
    return dataclasses.replace(one, by=-one.by, own=-one.own, at_most=at_most)


def _comparison(
    one: Both, place: int, holding: Sequence[Change], moved: Moved | None, margin: float
) -> Comparison:
    alone = next(change for change in holding if change.hypothesis.places == (place,))
    doubt = alone.at_most - alone.by
    ratio = math.log(one.bests[1] / one.bests[0])
    low, high = ratio - doubt, ratio + doubt
    verdict, remark = Relation.INCONCLUSIVE, ""
    if moved is not None and moved.is_sure:
        verdict = moved.better
        remark = "" if is_of_figures(moved.change) else moved.sentence
    elif moved is not None:
        remark = moved.sentence
    elif all(abs(x.by) + x.at_most - x.by <= math.log1p(margin) for x in holding):
        verdict = Relation.EQUIVALENT
    samples = len(one.a), len(one.b)
    ends = math.exp(low), math.exp(high)
    return Comparison(verdict, math.exp(ratio), *ends, _COVERED, *samples, None, remark)


def _undecided(one: Both, ratio: float, remark: str) -> Comparison:
    samples = len(one.a), len(one.b)
    return Comparison(Relation.INCONCLUSIVE, ratio, None, None, 0.0, *samples, None, remark)
