"""Decide claims on ratios of what was launched several times, by the intervals of A/B. Pure.

A conclusion is made of clauses, a clause of claims, and a claim is that the ratio of two quantities
lies within bounds. All claims of a conclusion are one family, so that chance breaks none of them
more often than :data:`~clustergate.stats.comparison.FAMILY_ERROR`.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from clustergate.core.model import Better
from clustergate.core.notation import counted, interval
from clustergate.judge.scatter import widest_between
from clustergate.stats.comparison import FAMILY_ERROR, MARGIN, Comparison, Relation
from clustergate.stats.rounds import Hypotheses, Rounds, answers
from evaluations.launches import Pair, compare, of_two_sessions
from evaluations.sampling import sampled_values

NOT_AGAINST = 1 / (1 + MARGIN)
"""The least ratio at which a step does not go against a trend: by no more than A/B's margin."""
_MOST_FURTHER = 1000
_SIDES = {Relation.B_BETTER: 1, Relation.INCONCLUSIVE: 0}
# Of a bound only the side is asked.
_NO_MARGIN = 1e-9


class Outcome(enum.Enum):
    """What is said of a conclusion."""

    HOLDS = "holds here"
    DOES_NOT = "does not hold here"
    INCONCLUSIVE = "inconclusive here"
    NOT_CHECKABLE = "not checkable here"


@dataclass(frozen=True)
class Claim:
    """That ``upper`` over ``lower``, values of launches, is a ratio from ``low`` to ``high``.

    A ``low`` of 1 claims that it is *better* in the sense of A/B: above 1, and not equivalent.
    ``words`` say what is above what; ``apart`` are quantities of different runs, ``in_turn`` those
    of the same rounds, of which a lot drew who was first. Of ``times`` less is better: the rounds
    that were slow are those with larger ones. Where ``lower`` is ``one_number``, and no launches,
    the median of the others is held to it.
    """

    upper: Sequence[float]
    lower: Sequence[float]
    words: str
    low: float = 0.0
    high: float = math.inf
    apart: bool = False
    in_turn: bool = False
    times: bool = False
    one_number: bool = False

    @property
    def is_better(self) -> bool:
        """Tell whether it claims that one of two is better, and not equivalent."""
        return self.low == 1.0 and not self.one_number

    @property
    def is_by_lots(self) -> bool:
        """Tell whether its rounds decide it; values that are none have no ratio."""
        return self.in_turn and min(*self.upper, *self.lower) > 0.0


@dataclass(frozen=True)
class Clause:
    """Claims of which all must hold, or so many as are ``needed``.

    With ``none_against`` a single ratio that is certainly below 1 denies it. ``about`` names what
    is compared, where a conclusion has clauses about several things. Instead of claims it may have
    ``parts``, of which so many hold: a part does if all its clauses do.
    """

    claims: Sequence[Claim] = ()
    needed: int | None = None
    none_against: bool = False
    about: str = ""
    parts: Sequence[Sequence[Clause]] = ()

    @property
    def every(self) -> list[Claim]:
        """Return its claims with those of its parts."""
        return [*self.claims, *(c for part in self.parts for one in part for c in one.every)]


@dataclass(frozen=True)
class Finding:
    """What a clause came to, with its sentence; ``further`` launches would probably decide it.

    So many as ``against`` would probably deny it, where it looks like that. ``remedy`` says what
    would decide it.
    """

    outcome: Outcome
    sentence: str
    further: int | None = None
    against: int | None = None
    remedy: str = ""


@dataclass(frozen=True)
class _Judged:
    claim: Claim
    ratio: Comparison
    outcome: Outcome
    further: int | None = field(default=None)

    @property
    def looks_denied(self) -> bool:
        """Tell whether the ratio is not where it is claimed to be, certain or not."""
        ratio = self.ratio.ratio
        return ratio is not None and not self.claim.low <= ratio <= self.claim.high

    @property
    def words(self) -> str:
        one = self.ratio
        if one.ratio is None:
            return f"{self.claim.words}: {one.remark}"
        ends = interval(one.low, one.high, ".3g", " to ") or one.remark or "no interval"
        return f"{self.claim.words}: {one.ratio:.3g} ({ends})"


def findings(clauses: Sequence[Clause]) -> list[Finding]:
    """Return what each clause of a conclusion comes to.

    What was launched in turn is decided by the lots of its rounds, as A/B decides, other claims as
    those of independent launches, or of one set of them and a number. Where a conclusion has
    several of these, each has its share of the error.
    """
    claims = [claim for clause in clauses for claim in clause.every]
    in_turn: dict[int, list[Claim]] = {}
    for claim in claims:
        if claim.is_by_lots:
            in_turn.setdefault(len(claim.upper), []).append(claim)
    numbers = [claim for claim in claims if claim.one_number]
    others = [claim for claim in claims if not (claim.is_by_lots or claim.one_number)]
    error = FAMILY_ERROR / max(len(in_turn) + bool(numbers) + bool(others), 1)
    pairs = [Pair(claim.lower, claim.upper, Better.HIGHER) for claim in others]
    told = iter(
        [_judged(*one) for one in zip(others, compare(pairs, family_error=error), strict=True)]
    )
    lots = {count: iter(_by_lots(found, error)) for count, found in in_turn.items()}
    of_numbers = (_beside_number(one, error / len(numbers)) for one in numbers)
    judged = (
        next(of_numbers if one.one_number else lots[len(one.upper)] if one.is_by_lots else told)
        for one in claims
    )
    return [_finding(clause, judged) for clause in clauses]


def _by_lots(claims: Sequence[Claim], error: float) -> list[_Judged]:
    """Return what rounds say of claims: of each bound, whether the ratio is above it or below.

    The bound of what is better is 1, where what is equivalent is not better.
    """
    bounds = [[bound for bound in (one.low, one.high) if 0.0 < bound < math.inf] for one in claims]
    columns = [(one, bound) for one, of in zip(claims, bounds, strict=True) for bound in of]
    margins = [MARGIN if bound == 1.0 else _NO_MARGIN for _, bound in columns]
    # B is what is better, if it is as claimed.
    pairs = [
        (one.upper, np.multiply(one.lower, bound))
        if one.times
        else (np.multiply(one.lower, bound), one.upper)
        for one, bound in columns
    ]
    a, b = (np.array(side).T for side in zip(*pairs, strict=True))
    better = [Better.LOWER if one.times else Better.HIGHER for one, _ in columns]
    told = iter(answers(Rounds(a, b, better), Hypotheses(margins, error)))
    found = []
    for one, of in zip(claims, bounds, strict=True):
        beside = [next(told) for _ in of]
        # What is equivalent is not above.
        sides = [_SIDES.get(each.verdict, -1) for each in beside]
        claimed = [1 if bound == one.low else -1 for bound in of]
        outcome = Outcome.INCONCLUSIVE
        if sides == claimed:
            outcome = Outcome.HOLDS
        elif any(side == -wanted for side, wanted in zip(sides, claimed, strict=True)):
            outcome = Outcome.DOES_NOT
        further = [
            each.further_launches for each in beside if each.verdict is Relation.INCONCLUSIVE
        ]
        most = None if None in further or not further else max(filter(None, further))
        undecided = outcome is Outcome.INCONCLUSIVE
        found.append(
            _Judged(
                one,
                _narrowest(
                    [_scaled(*side, times=one.times) for side in zip(beside, of, strict=True)]
                ),
                outcome,
                most if undecided else None,
            )
        )
    return found


def _scaled(one: Comparison, bound: float, *, times: bool) -> Comparison:
    """Return the comparison of what was compared with ``bound`` times as much, turned for times."""
    ends = (one.ratio, one.high, one.low) if times else (one.ratio, one.low, one.high)
    ratio, low, high = (
        None if end is None else bound / end if times else end * bound for end in ends
    )
    return replace(one, ratio=ratio, low=low, high=high)


def _narrowest(alike: Sequence[Comparison]) -> Comparison:
    """Return the comparison of one ratio with several bounds, with the interval of all of them.

    What is certainly beyond a bound has its interval end there. Each bound may have been decided
    after other rounds: intervals that do not meet leave that of the first.
    """
    low = max((one.low for one in alike if one.low is not None), default=None)
    high = min((one.high for one in alike if one.high is not None), default=None)
    if low is not None and high is not None and low > high:
        return alike[0]
    return replace(alike[0], low=low, high=high)


def _beside_number(claim: Claim, error: float) -> _Judged:
    """Return what launches say of a number: the interval of their median is on one side of it."""
    ratios = [upper / lower for upper, lower in zip(claim.upper, claim.lower, strict=True)]
    of_median = sampled_values(ratios, confidence=1.0 - error)
    # Of the median of fewer launches even the least and the most are no interval.
    fewest = math.ceil(1 - math.log2(error))
    one = Comparison(
        Relation.INCONCLUSIVE,
        *(of_median.value, of_median.low, of_median.high),
        *(1.0 - error, len(ratios), len(ratios)),
        further_launches=max(fewest - len(ratios), 1) if of_median.low is None else None,
    )
    outcome = _outcome(claim, one)
    further = _further(claim, one) if outcome is Outcome.INCONCLUSIVE else None
    return _Judged(claim, one, outcome, further)


def _judged(claim: Claim, one: Comparison) -> _Judged:
    if claim.apart:
        one = of_two_sessions(one, widest_between(FAMILY_ERROR / 2))
    outcome = _outcome(claim, one)
    further = _further(claim, one) if outcome is Outcome.INCONCLUSIVE else None
    return _Judged(claim, one, outcome, further)


def _outcome(claim: Claim, one: Comparison) -> Outcome:
    if one.low is None or one.high is None:
        return Outcome.INCONCLUSIVE
    if claim.is_better:
        if one.verdict is Relation.INCONCLUSIVE:
            return Outcome.INCONCLUSIVE
        return Outcome.HOLDS if one.verdict is Relation.B_BETTER else Outcome.DOES_NOT
    if claim.low <= one.low and one.high <= claim.high:
        return Outcome.HOLDS
    if one.high < claim.low or one.low > claim.high:
        return Outcome.DOES_NOT
    return Outcome.INCONCLUSIVE


def _further(claim: Claim, one: Comparison) -> int | None:
    """Return how many more launches would probably decide, as widths shrink by the square root."""
    if claim.apart or not one.ratio:
        return None
    # Of zero there is no logarithm.
    if claim.is_better or not one.low or one.high is None:
        return one.further_launches
    bounds = [bound for bound in (claim.low, claim.high) if 0.0 < bound < math.inf]
    room = min(abs(math.log(one.ratio / bound)) for bound in bounds)
    launches = min(one.samples_a, one.samples_b)
    half = math.log(one.high / one.low) / 2
    if room == 0.0 or half > room * math.sqrt(1 + _MOST_FURTHER / launches):
        return None
    return max(1, math.ceil(launches * ((half / room) ** 2 - 1)))


def _finding(clause: Clause, judged: Iterator[_Judged]) -> Finding:
    if clause.parts:
        parts = []
        for part in clause.parts:
            whole = _together([_finding(one, judged) for one in part])
            about = f"{part[0].about}: " if part[0].about else ""
            parts.append(replace(whole, sentence=f"{about}{whole.sentence}"))
        return _together(parts, clause.needed)
    mine = [next(judged) for _ in clause.claims]
    against = [one for one in mine if one.ratio.verdict is Relation.A_BETTER]
    if clause.none_against and against:
        return Finding(Outcome.DOES_NOT, against[0].words)
    return _together([_of_claim(one) for one in mine], clause.needed)


def _of_claim(one: _Judged) -> Finding:
    if one.outcome is not Outcome.INCONCLUSIVE:
        return Finding(one.outcome, one.words)
    against = one.further if one.looks_denied else None
    return Finding(one.outcome, one.words, one.further, against, _remedy(one))


def _together(found: Sequence[Finding], needed: int | None = None) -> Finding:
    """Return what findings come to together: all must hold, or so many as are needed."""
    held, denied, undecided = (
        [one for one in found if one.outcome is outcome]
        for outcome in (Outcome.HOLDS, Outcome.DOES_NOT, Outcome.INCONCLUSIVE)
    )
    wanted = len(found) if needed is None else needed
    if wanted <= len(held) or wanted > len(held) + len(undecided):
        told = held[-1] if wanted <= len(held) else denied[0]
        if needed is None:
            return told
        counted = f"{len(held)} of {len(found)} hold, {len(undecided)} undecided"
        return replace(told, sentence=f"{counted}; {told.sentence}")
    worst = max(undecided, key=lambda one: math.inf if one.further is None else one.further)
    # Where some may fail, one alone denies nothing.
    to_deny = [one.against for one in undecided if one.against and needed is None]
    return replace(worst, against=min(to_deny, default=None))


def _remedy(one: _Judged) -> str:
    if one.claim.apart:
        return "measure both in one run"
    if one.further is None:
        # Where there is no interval the words have the remark in its place.
        told = one.ratio.remark if interval(one.ratio.low, one.ratio.high) else ""
        return told or "run again on idle nodes, where launches scatter less"
    return f"about {counted(one.further, 'more launch')} of each would probably decide"
