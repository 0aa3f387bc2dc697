"""Whether a machine crept away from the state in which its first baseline was accepted. Pure.

Weekly baselines of a machine that loses 3 % a week would each accept a little more. So the first
one that was accepted stands as an anchor, until a person accepts an improvement, or a slower state
with a reason. Not the best ever seen: that alarms on machines that did not change.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clustergate.figures import name_of
from clustergate.launching.estimation import Sampled
from clustergate.model import Anchor, Better, Judgement, Reference, Verdict
from clustergate.one_thread import scipy
from clustergate.statistics import gate
from clustergate.verdicts.judging import COMPARED
from clustergate.wording.reasons import reason

# So many degrees of freedom a family of figures has that borrow from each other, and what is known
# of machines whose jobs have their nodes for themselves.
_FREEDOM, _OF_EXCLUSIVE = 10.0, 4.0
_FEWEST_OF_A_FAMILY = 3
# The variance of a median against that of a mean.
_OF_A_MEDIAN = math.pi / 2


@dataclass(frozen=True)
class Chance:
    """What a run scatters by on an unchanged machine, as a logarithm, and how well that is known.

    That is the standard deviation and its degrees of freedom; ``compared`` is how many figures a
    run compares.
    """

    spread: float
    freedom: float
    compared: int


def chances(
    anchors: Mapping[str, Anchor], between: float, compared: int, *, exclusive: bool
) -> dict[str, Chance]:
    """Return what the figures of one benchmark scatter by, as their anchors and each other tell.

    ``between`` is what days of such machines scatter by. It counts where an anchor has too few of
    them, and on ``exclusive`` nodes, which are alike, beside its own.
    """
    by_name = {}
    by_days: dict[int, dict[str, float]] = {}
    for name, anchor in anchors.items():
        by_days.setdefault(anchor.days, {})[name] = anchor.spread
    for days, spreads in by_days.items():
        own = max(days, gate.SMALLEST_BASELINE) - 1.0
        is_family = len(spreads) >= _FEWEST_OF_A_FAMILY
        for name, (spread, _) in gate.pooled(spreads, gate.SMALLEST_BASELINE, days).items():
            freedom = max(own, _FREEDOM) if is_family else own
            if days < gate.FEWEST_DAYS:
                spread, freedom = math.hypot(spread, between), max(own, _FREEDOM)
            elif exclusive:
                squares = freedom * spread**2 + _OF_EXCLUSIVE * between**2
                freedom += _OF_EXCLUSIVE
                spread = math.sqrt(squares / freedom)
            by_name[name] = Chance(spread, freedom, compared)
    return by_name


def drifted_by(anchor: Anchor, by_day: Sequence[Sequence[float]], chance: Chance) -> float:
    """Return by how much runs are worse than their anchor, 0 where that may be chance.

    ``by_day`` are the logarithms by which the runs of each day are worse than those of the anchor
    were, the newest last. The newest five runs or more count, with all of their days. They are
    beyond chance from 5 % on, and from where one of so many figures would be once in some hundred
    baselines of an unchanged machine (Student's t, as in
    :func:`clustergate.statistics.gate.margin`).
    """
    newest: list[Sequence[float]] = []
    for day in reversed(by_day):
        newest.append(day)
        if sum(map(len, newest)) >= gate.SMALLEST_BASELINE:
            break
    # One bad day is no drift.
    drift = statistics.median(map(statistics.median, newest))
    error = gate.FALSE_ALARM_RATE / max(chance.compared, 1)
    surely = -float(scipy.special.stdtrit(chance.freedom, error))
    of_means = math.sqrt(1 / anchor.days + _OF_A_MEDIAN / len(newest))
    return drift if drift > max(gate.TOLERATED, surely * chance.spread * of_means) else 0.0


def against_anchor(judgement: Judgement, one: Sampled, reference: Reference | None) -> Judgement:
    """Return a regression in the place of what crept below what the first baseline tolerated.

    So is what is worse than the first baseline was while a later one was found to have drifted.
    Where too few launches were undisturbed nothing is told.
    """
    if reference is None or reference.anchor is None or reference.doubt or one.excuse:
        return judgement
    value, anchor, known = one.estimate.value, reference.anchor, reference.baseline
    if judgement.verdict not in COMPARED or judgement.verdict is Verdict.REGRESSION or value <= 0:
        return judgement
    higher = one.sample.better is Better.HIGHER
    worse_by = gate.worse_by(value, anchor.usual, higher_is_better=higher)
    beyond = gate.worse_by(value, anchor.bound, higher_is_better=higher) > 0
    if known is not None and one.estimate.samples < known.launches:
        # The best of fewer launches is worse by chance.
        beyond &= worse_by > gate.shift_of(one.estimate.samples, apart=False)
    if not (beyond or (anchor.drift and worse_by > gate.TOLERATED)):
        return judgement
    crept = reason(
        "figure.crept",
        value=value,
        unit=one.sample.unit,
        worse_by=math.expm1(worse_by),
        usual=anchor.usual,
        since=anchor.since,
        figure=name_of(one.sample),
    )
    return Judgement(Verdict.REGRESSION, (crept,))
