"""What two curves over message sizes say: who is ahead where, crossovers, dips. Pure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from clustergate.stats.comparison import Relation

DEPTH = 0.10
"""A curve has a dip where it moves so much less per second than on either side, as a fraction."""

# So many sizes in a row of which nothing can be told do not end a lead.
_BRIDGED = 1
_DECIDED = (Relation.A_BETTER, Relation.B_BETTER, Relation.EQUIVALENT)
_WINNERS = (Relation.A_BETTER, Relation.B_BETTER)


@dataclass(frozen=True)
class SizeVerdict:
    """What is said at a message size in bytes; ``gain`` is how many times as fast the better is."""

    size: int
    verdict: Relation
    gain: float | None = None


@dataclass(frozen=True)
class Lead:
    """Message sizes at which the same is said, or at one between nothing can be told.

    At both ends it is certain, as it is at ``sizes`` of those between. Gains are how many times as
    fast the better one is there.
    """

    verdict: Relation
    from_bytes: int
    to_bytes: int
    sizes: int
    least_gain: float
    most_gain: float


@dataclass(frozen=True)
class Crossover:
    """Between two message sizes the better one changes."""

    before: Relation
    after: Relation
    above_bytes: int
    below_bytes: int


@dataclass(frozen=True)
class Speed:
    """How much a contender moves per second at a size in bytes, in any unit, with its interval."""

    size: int
    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Dip:
    """At these sizes a contender moves less per second than on both sides.

    ``depth`` is the part of the lower side that is missing at the bottom.
    """

    from_bytes: int
    to_bytes: int
    bottom_bytes: int
    depth: float


def leads(verdicts: Sequence[SizeVerdict], bridged: int = _BRIDGED) -> list[Lead]:
    """Return who is ahead at which sizes, in their order.

    So many sizes in a row at which nothing can be told, ``bridged``, interrupt nobody's lead; more
    do, and so do equivalent ones.
    """
    ordered = sorted(verdicts, key=lambda one: one.size)
    decided = [(place, one) for place, one in enumerate(ordered) if one.verdict in _DECIDED]
    runs: list[list[SizeVerdict]] = []
    before = 0
    for place, one in decided:
        if not runs or runs[-1][-1].verdict is not one.verdict or place - before > bridged + 1:
            runs.append([])
        runs[-1].append(one)
        before = place
    return [_lead(run) for run in runs]


def widest_lead(verdicts: Sequence[SizeVerdict], winner: Relation) -> Lead | None:
    """Return the widest range of sizes at each of which one is ahead for certain, if any.

    It has two sizes at least; of equally wide ones it is that of the largest gain. All verdicts of
    a comparison share one chance of error, so that none of them is wrong for having been chosen.
    """
    led = [lead for lead in leads(verdicts, 0) if lead.verdict is winner and lead.sizes > 1]
    return max(led, key=lambda lead: (lead.sizes, lead.most_gain), default=None)


def _lead(run: Sequence[SizeVerdict]) -> Lead:
    gains = [one.gain for one in run if one.gain is not None] or [1.0]
    return Lead(run[0].verdict, run[0].size, run[-1].size, len(run), min(gains), max(gains))


def crossovers(verdicts: Sequence[SizeVerdict]) -> list[Crossover]:
    """Return where the better one changes: between the sizes at which each is certainly ahead."""
    won = [lead for lead in leads(verdicts) if lead.verdict in _WINNERS]
    return [
        Crossover(one.verdict, other.verdict, one.to_bytes, other.from_bytes)
        for one, other in itertools.pairwise(won)
        if one.verdict is not other.verdict
    ]


def dips(speeds: Sequence[Speed]) -> list[Dip]:
    """Return the sizes at which a curve falls by more than chance and rises again.

    A curve moves more per second with larger messages until something ends: a protocol, a cache.
    Where it stays lower from then on, that is no dip. Interval against interval, at each size the
    fall and the rise must be certain, and both larger than :data:`DEPTH`.
    """
    ordered = sorted((one for one in speeds if one.size > 0), key=lambda one: one.size)
    return [_dip(ordered, first, last) for first, last in _valleys(ordered)]


def _valleys(ordered: Sequence[Speed]) -> Iterator[tuple[int, int]]:
    place = 1
    while place < len(ordered):
        before = ordered[place - 1]
        if not _falls(before, ordered[place]):
            place += 1
            continue
        last = place
        # It goes on until the curve is back, nearly, where it came from.
        while last < len(ordered) and ordered[last].value < (1 - DEPTH) * before.value:
            last += 1
        if last < len(ordered) and _falls(ordered[last], min(
            ordered[place:last], key=lambda one: one.value
        )):  # fmt: skip
            yield place, last - 1
            place = last + 1
        else:
            place += 1


def _falls(high: Speed, low: Speed) -> bool:
    deep = low.value < (1 - DEPTH) * high.value
    certain = high.low is not None and low.high is not None and low.high < high.low
    return deep and certain


def _dip(ordered: Sequence[Speed], first: int, last: int) -> Dip:
    bottom = min(ordered[first : last + 1], key=lambda one: one.value)
    sides = min(ordered[first - 1].value, ordered[last + 1].value)
    depth = 1.0 - bottom.value / sides if sides > 0.0 else math.nan
    return Dip(ordered[first].size, ordered[last].size, bottom.size, depth)
