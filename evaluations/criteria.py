"""The words in which conclusions are put so that measurements decide them: ahead, trend, ratio ...

Each function returns a :class:`Criterion`. The five papers call them in :mod:`evaluations.papers`;
a study of one's own names some of them in YAML (:mod:`evaluations.own_criteria`). A criterion
becomes claims on ratios, which :mod:`evaluations.inference` decides. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

from clustergate.benchmarks.hpl.sizing import process_grid
from clustergate.core.model import Better
from clustergate.core.notation import counted
from evaluations.derived import DerivedError, comparisons, curves, scaling
from evaluations.evidence import COUNTS, Subject
from evaluations.inference import NOT_AGAINST, Claim, Clause
from evaluations.series import (
    Cast,
    Curve,
    Figure,
    NotCheckable,
    common_curves,
    launch_curves,
    refuse_disturbed,
    refuse_sizes,
)

DIP = 0.05
"""A curve has a dip where it is lower than on either side by so much, as a fraction."""
# What is 1 at best, such as R squared, is judged by what is missing of it, down to this.
_NEXT_TO_NOTHING = 1e-9

Clauses = Callable[[Cast, Subject, list[str]], list[Clause]]


@dataclass(frozen=True)
class Criterion:
    """What decides a conclusion: ``clauses`` of a subject, or of all where ``systems`` are named.

    ``clauses`` tells what of it can be contradicted at most (the list), and raises where nothing
    can be said. ``figures`` are what it reads, ``places`` those that it names on their axis; it
    may be made of ``parts``.
    """

    kind: str
    clauses: Clauses
    figures: Sequence[Figure] = ()
    systems: Sequence[str] = ()
    is_of_systems: bool = False
    parts: Sequence[Criterion] = ()
    places: Sequence[float] = ()

    @property
    def leaves(self) -> list[Criterion]:
        """Return the criteria that it is made of, without those that are made of others."""
        return [leaf for part in self.parts for leaf in part.leaves] if self.parts else [self]


def clauses_of(
    criterion: Criterion, here: Cast, subject: Subject, missing: list[str]
) -> list[Clause]:
    """Return the clauses of a criterion; what one of them lacks here goes to ``missing``."""
    try:
        found = criterion.clauses(here, subject, missing)
    except (NotCheckable, DerivedError) as reason:
        missing.append(str(reason))
        return []
    about = criterion.figures[0].about if criterion.figures else ""
    return [replace(one, about=one.about or about) for one in found]


# --- what is made of others -------------------------------------------------------------------


def every(*parts: Criterion) -> Criterion:
    """All parts hold."""

    def clauses(here: Cast, subject: Subject, missing: list[str]) -> list[Clause]:
        return [one for part in parts for one in clauses_of(part, here, subject, missing)]

    of_systems = all(part.is_of_systems for part in parts)
    return Criterion("all", clauses, is_of_systems=of_systems, parts=parts)


def count_at_least(needed: int, *parts: Criterion) -> Criterion:
    """So many of the parts hold, as a sentence on most experiments has it.

    Parts of which nothing is here may all hold; too few may be left without them.
    """

    def clauses(here: Cast, subject: Subject, missing: list[str]) -> list[Clause]:
        found = [clauses_of(part, here, subject, missing) for part in parts]
        left = [part for part in found if part]
        wanted = needed - len(found) + len(left)
        return [Clause(needed=wanted, parts=left)] if wanted > 0 else []

    of_systems = all(part.is_of_systems for part in parts)
    return Criterion("count", clauses, is_of_systems=of_systems, parts=parts)


def all_but(system: str, part: Criterion, instead: Criterion) -> Criterion:
    """A part holds for all, except for who plays a system, for whom another holds."""

    def clauses(here: Cast, subject: Subject, missing: list[str]) -> list[Clause]:
        excepted = here.roles.get(system)
        # Neither the rule nor its exception is confirmed by the other alone.
        if excepted is None:
            missing.append(f"nothing here stands for {system}")
        elif all(one == excepted for one in here.subjects):
            missing.append(f"nothing here stands for a system other than {system}")
        return clauses_of(instead if subject == excepted else part, here, subject, missing)

    return Criterion("exception", clauses, systems=[system], parts=[part, instead])


def each(condition: str, figure: Figure, part: Callable[[Figure], Criterion]) -> Criterion:
    """A part holds of each value of a condition, such as of each number of processes."""

    def clauses(here: Cast, subject: Subject, missing: list[str]) -> list[Clause]:
        who = subject.undisturbed
        told = [one.conditions for one in figure.values(who)]
        if not (places := sorted({one[condition] for one in told if condition in one})):
            refuse_disturbed(who, figure)
            raise NotCheckable(f"{figure} was not measured so")
        return [
            replace(clause, about=f"{condition} {at}")
            for at in places
            for clause in part(figure.where(**{condition: at})).clauses(here, who, missing)
        ]

    return Criterion("each", clauses, [figure], places=part(figure).places)


def undecided(because: str) -> Criterion:
    """A part that no measurement decides, so that the whole cannot be said to hold."""

    def clauses(here: Cast, subject: Subject, missing: list[str]) -> list[Clause]:
        raise NotCheckable(because)

    return Criterion("open", clauses)


# --- one figure of one system -----------------------------------------------------------------


def _at(found: Sequence[Curve], place: Any) -> list[float]:
    return [curve[place] for curve in found]


def _of_one(
    kind: str,
    figures: Sequence[Figure],
    claims: Callable[[Subject], list[Claim]],
    system: str,
    places: Sequence[float] = (),
) -> Criterion:
    """Return the criterion of each subject, or of who plays a system; disturbed rounds are out."""

    def clauses(here: Cast, subject: Subject, missing: list[str]) -> list[Clause]:
        player = here.playing(system) if system else subject
        return [Clause(claims(player.undisturbed))]

    named = [system] if system else []
    return Criterion(kind, clauses, figures, named, bool(system), places=places)


def _of_places(
    figure: Figure,
    found: Sequence[Curve],
    upper: Any,
    lower: Any,
    low: float = 0.0,
    high: float = math.inf,
) -> Claim:
    """Return the claim on the value at one place over that at another."""
    words = f"{upper} over {lower} {figure.along}"
    return Claim(_at(found, upper), _at(found, lower), words, low, high)


def _require(figure: Figure, found: Sequence[Curve], *places: float) -> None:
    for place in places:
        if place not in found[0]:
            raise NotCheckable(f"{figure} was not measured at {place:.10g} {figure.along}")


def trend(figure: Figure, direction: str, system: str = "") -> Criterion:
    """The last value is above the first ("rises") or below ("falls"), no step against it."""

    def claims(subject: Subject) -> list[Claim]:
        found = launch_curves(subject, figure)
        places = [*found[0]] if direction == "rises" else [*found[0]][::-1]
        steps = [
            _of_places(figure, found, high, low, NOT_AGAINST) for low, high in pairwise(places)
        ]
        return [*steps, _of_places(figure, found, places[-1], places[0], 1)]

    return _of_one("trend", [figure], claims, system)


def steady(
    figure: Figure, within: float = math.inf, *, beyond: float = 0.0, system: str = ""
) -> Criterion:
    """The largest value over the smallest one stays within a factor, or is beyond one."""

    def claims(subject: Subject) -> list[Claim]:
        found = launch_curves(subject, figure)
        middle = {at: median(_at(found, at)) for at in found[0]}
        least, most = (end(middle, key=lambda at: middle[at]) for end in (min, max))
        return [_of_places(figure, found, most, least, beyond, within)]

    return _of_one("steady", [figure], claims, system)


def keeps(figure: Figure, part: float, system: str = "") -> Criterion:
    """No value is below a part of the first one."""

    def claims(subject: Subject) -> list[Claim]:
        found = launch_curves(subject, figure)
        first, *others = found[0]
        return [_of_places(figure, found, at, first, part) for at in others]

    return _of_one("keeps", [figure], claims, system)


def step(
    figure: Figure, first: float, second: float, factor: float = 1, system: str = ""
) -> Criterion:
    """The value at the second place is more than a factor above that at the first."""

    def claims(subject: Subject) -> list[Claim]:
        ends = figure.between(min(first, second), max(first, second))
        found = launch_curves(subject, ends, fewest=0)
        if not found[0]:
            refuse_disturbed(subject, figure)
        _require(figure, found, first, second)
        return [_of_places(figure, found, second, first, factor)]

    return _of_one("step", [figure], claims, system, [first, second])


def best_at(figure: Figure, place: float, system: str = "") -> Criterion:
    """The best value stands at one place."""
    return _of_one("best at", [figure], lambda s: _best_at(figure, s, place), system, [place])


def _best_at(figure: Figure, subject: Subject, best: float) -> list[Claim]:
    found = launch_curves(subject, figure)
    _require(figure, found, best)
    others = [at for at in found[0] if at != best]
    if figure.is_lower_better(subject):
        return [_of_places(figure, found, at, best, 1) for at in others]
    return [_of_places(figure, found, best, at, 1) for at in others]


def best_at_squarest(figure: Figure) -> Criterion:
    """Of grids of HPL the best is the squarest; of a prime number all are as square."""

    def clauses(here: Cast, subject: Subject, missing: list[str]) -> list[Clause]:
        who = subject.undisturbed
        shapes = who.shapes(figure.asked, figure.along)
        processes = max((shape.processes for shape in shapes), default=0)
        if processes and not any(processes % p == 0 for p in range(2, processes)):
            told = counted(processes, "process")
            missing.append(f"the grids of {told} are all as square as each other")
        best = process_grid(processes)[0] if processes else 0
        return [Clause(_best_at(figure, who, best))]

    return Criterion("best at", clauses, [figure])


def dip(figure: Figure, bottom: float, system: str = "") -> Criterion:
    """A curve is lower at one place than at both its neighbours, of half to double of it."""

    def claims(subject: Subject) -> list[Claim]:
        found = launch_curves(subject, figure, fewest=3)
        near = [at for at in found[0] if bottom <= 2 * at and at <= 2 * bottom]
        if bottom not in near[1:-1]:
            raise NotCheckable(f"there are no sizes from half to double of {bottom} on both sides")
        middle = near.index(bottom)
        sides = (near[middle - 1], near[middle + 1])
        return [_of_places(figure, found, at, bottom, 1 / (1 - DIP)) for at in sides]

    return _of_one("dip", [figure], claims, system, [bottom])


def gains_beyond(figure: Figure, place: int) -> Criterion:
    """Beyond a place the curve gains more per doubling than in the doubling before."""
    before, after = place / 2, 2 * place

    def claims(subject: Subject) -> list[Claim]:
        found = launch_curves(subject, figure, fewest=3)
        _require(figure, found, before, place, after)
        ends = [curve[before] + curve[after] for curve in found]
        words = f"mean of {before:.10g} and {after} over {place} {figure.along}"
        return [Claim(ends, [2 * value for value in _at(found, place)], words, 1)]

    return _of_one("beyond", [figure], claims, "", [before, place, after])


def linear(figure: Figure, r_squared: float) -> Criterion:
    """The values lie on a line."""

    def claims(subject: Subject) -> list[Claim]:
        found = [curves.line_r_squared(one) for one in launch_curves(subject, figure, fewest=3)]
        return [_of_share(found, r_squared, "what a line does not explain")]

    return _of_one("linear", [figure], claims, "")


def _of_share(found: Sequence[float], least: float, words: str) -> Claim:
    """Return the claim that values which are 1 at best are at least a number."""
    missing = [max(1 - value, _NEXT_TO_NOTHING) for value in found]
    bound = 1 - least
    beside = [bound] * len(missing)
    return Claim(missing, beside, f"{words}, over {bound:g}", high=1.0, one_number=True)


def at_least(
    figure: Figure, value: float = 1, over: Figure | None = None, system: str = ""
) -> Criterion:
    """The best value, or its ratio to the best of ``over``, is at least a number."""
    # To reach as much as another is not to be behind it.
    low = NOT_AGAINST if over and value == 1 else value
    return _bounded("at least", figure, value, over, system, low, math.inf)


def at_most(
    figure: Figure, value: float = 1, over: Figure | None = None, system: str = ""
) -> Criterion:
    """The best value, or its ratio to the best of ``over``, is at most a number."""
    return _bounded("at most", figure, value, over, system, 0.0, value)


def _bounded(
    kind: str,
    figure: Figure,
    value: float,
    over: Figure | None,
    system: str,
    low: float,
    high: float,
) -> Criterion:
    def claims(subject: Subject) -> list[Claim]:
        best = _best(subject, figure, over)
        if over:
            words = f"the best of {figure} over {over}"
            return [Claim(best, _best(subject, over, figure), words, low, high)]
        ends = (1 if low else 0.0, 1 if high < math.inf else math.inf)
        beside = [float(value)] * len(best)
        words = f"the best of {figure} over {value:g}"
        return [Claim(best, beside, words, *ends, one_number=True)]

    return _of_one(kind, [figure, *([over] if over else [])], claims, system)


def _best(subject: Subject, figure: Figure, like: Figure | None = None) -> list[float]:
    """Return the best of each launch, of the largest launch that what it is ``like`` has, too.

    What was launched more often or less often than the best of all is left out: where it ran alone
    its best would be another quantity.
    """
    figures = figure.values(subject)
    if not figures:
        refuse_disturbed(subject, figure)
        raise NotCheckable(f"{figure} was not measured")
    if like is not None:
        alike = {one.launch for one in like.values(subject)}
        if not alike:
            raise NotCheckable(f"{like} was not measured")
        both = {one.launch for one in figures} & alike
        if not both:
            raise NotCheckable(f"{figure} and {like} were measured in no launch alike")
        # Two processes on two nodes go before two on one.
        launch = max(both, key=lambda one: (one[0], one[0] == 2 and one[1] != "packed", one))
        figures = [one for one in figures if one.launch == launch]
    best = min if figures[0].better is Better.LOWER else max
    launches = [one.of_launches or [one.value] for one in figures]
    count = len(best(zip(figures, launches, strict=True), key=lambda one: one[0].value)[1])
    return [best(of) for of in zip(*(of for of in launches if len(of) == count), strict=True)]


def better_placed(figure: Figure, better: str, worse: str) -> Criterion:
    """One placement is better than another."""
    placed = {placement: figure.where(placement=placement) for placement in (better, worse)}

    def claims(subject: Subject) -> list[Claim]:
        refuse_sizes(subject, figure)
        values = {}
        for placement, asked in placed.items():
            found = asked.values(subject)
            if not found:
                refuse_disturbed(subject, asked)
                raise NotCheckable(f"{figure} was not measured {placement}")
            values[placement] = found[0].of_launches or [found[0].value]
        high, low = (worse, better) if figure.is_lower_better(subject) else (better, worse)
        return [Claim(values[high], values[low], f"{high} over {low}", 1)]

    return _of_one("placement order", [*placed.values()], claims, "")


# --- systems beside each other, or two benchmarks of one --------------------------------------


class Sides(NamedTuple):
    """What is compared: names, the curves of each, and how their launches lie to each other."""

    names: Sequence[str]
    curves: Sequence[Sequence[Curve]]
    along: str
    how: Mapping[str, bool]

    def claim(
        self, at: Any, low: float, high: float = math.inf, upper: int = 0, lower: int = 1
    ) -> Claim:
        """Return the claim on one side over another at a place."""
        words = f"{self.names[upper]} over {self.names[lower]} at {at} {self.along}"
        above, below = (_at(self.curves[side], at) for side in (upper, lower))
        return Claim(above, below, words, low, high, **self.how)


def _beside(
    kind: str,
    sides: Sequence[str | Figure],
    figure: Figure | None,
    clauses_of_sides: Callable[[Sides], list[Clause]],
    system: str = "",
) -> Criterion:
    """Return a criterion on a figure of systems, or on figures of each subject or of a system."""
    systems = [side for side in sides if isinstance(side, str)]
    figures = [side for side in sides if isinstance(side, Figure)]

    def clauses(here: Cast, subject: Subject, missing: list[str]) -> list[Clause]:
        if figure is not None:
            asked = [(here.playing(name), figure) for name in systems]
            names = [who.name for who, _ in asked]
        else:
            player = (here.playing(system) if system else subject).undisturbed
            asked = [(player, one) for one in figures]
            names = [*map(str, figures)]
        found, how = common_curves(asked)
        return clauses_of_sides(Sides(names, found, asked[0][1].along, how))

    named = [*systems, *([system] if system else [])]
    return Criterion(kind, clauses, figures if figure is None else [figure], named, bool(named))


def ahead(
    a: str | Figure,
    b: str | Figure,
    figure: Figure | None = None,
    *,
    growing: bool = False,
    system: str = "",
) -> Criterion:
    """The first is better at more than half of the common places, and behind at none.

    ``a`` and ``b`` are systems, or figures of one. Where the lead is ``growing``, the gap rises
    from the first place to the last, too.
    """

    def clauses(sides: Sides) -> list[Clause]:
        # Slower is above.
        upper, lower = (1, 0) if sides.how["times"] else (0, 1)
        places = [*sides.curves[0][0]]
        if sides.along == "bytes" and len(places) < 2:
            told = "they have one message size in common, which says nothing of others"
            raise NotCheckable(told)
        leads = [sides.claim(at, 1, upper=upper, lower=lower) for at in places]
        # What is undecided may be behind; the least lead of all is told.
        by_lead = sorted(leads, key=lambda one: -median(one.upper) / median(one.lower))
        never = Clause([replace(one, low=NOT_AGAINST) for one in by_lead])
        grows = [_growing(sides, upper, lower)] if growing else []
        return [Clause(leads, len(leads) // 2 + 1, none_against=True), never, *grows]

    return _beside("ahead", [a, b], figure, clauses, system)


def _growing(sides: Sides, upper: int, lower: int) -> Clause:
    places = [*sides.curves[0][0]]
    if len(places) < 2:
        raise NotCheckable(f"a gap at one value of {sides.along} does not grow")
    # first[b] - second[b] > first[a] - second[a], without differences that may be negative.
    few, many = places[0], places[-1]
    both = [*zip(sides.curves[upper], sides.curves[lower], strict=False)]
    wider = [one[many] + other[few] for one, other in both]
    narrow = [one[few] + other[many] for one, other in both]
    words = f"the gap at {many} over that at {few} {sides.along}"
    return Clause([Claim(wider, narrow, words, 1, **sides.how)])


def ratio(
    a: str | Figure,
    b: str | Figure,
    figure: Figure | None = None,
    *,
    low: float = 0.0,
    high: float = math.inf,
    system: str = "",
) -> Criterion:
    """The first over the second lies from ``low`` to ``high`` at every common place."""

    def clauses(sides: Sides) -> list[Clause]:
        return [Clause([sides.claim(at, low, high) for at in sides.curves[0][0]])]

    return _beside("ratio", [a, b], figure, clauses, system)


def level(*sides: str | Figure, figure: Figure | None = None, within: float) -> Criterion:
    """All are alike at every common place, within a fraction of the largest."""
    bound = 1 / (1 - within)

    def clauses(sides: Sides) -> list[Clause]:
        claims = []
        for at in sides.curves[0][0]:
            middle = [median(_at(side, at)) for side in sides.curves]
            least, most = (middle.index(end(middle)) for end in (min, max))
            least, most = (0, 1) if least == most else (least, most)
            claims.append(sides.claim(at, 1 / bound, bound, upper=most, lower=least))
        return [Clause(claims)]

    return _beside("level", sides, figure, clauses)


def widest(a: Figure, b: Figure, between: tuple[float, float]) -> Criterion:
    """The first of two is above the second by its largest factor between two places."""
    low, high = between

    def clauses(sides: Sides) -> list[Clause]:
        how = {**sides.how, "times": False}
        factors = [
            {at: one[at] / other[at] for at in one}
            for one, other in zip(*sides.curves, strict=False)
        ]
        inside = [at for at in factors[0] if low <= at <= high]
        outside = [at for at in factors[0] if not low <= at <= high]
        if not inside or not outside:
            raise NotCheckable(f"there are no {a.along} within and beyond {low} to {high}")
        # The largest of many places is above that of few by chance alone: one place has to be above
        # each of the others.
        top = max(inside, key=lambda at: median(_at(factors, at)))
        words = f"the factor at {top} over that at {{}} {a.along}"
        most = _at(factors, top)
        return [
            Clause([Claim(most, _at(factors, at), words.format(at), 1, **how) for at in outside])
        ]

    return replace(_beside("widest", [a, b], None, clauses), places=between)


def order(
    figure: Figure,
    *groups: str | Sequence[str],
    at: str = "",
    factor: Sequence[float] = (),
    spread: bool = False,
) -> Criterion:
    """Systems rank as named, from the best: at the ``largest`` or ``smallest`` place, or at all.

    Members of a group may stand as they like. Each step is by a ``factor``. With ``spread`` it is
    how little each one's values vary that ranks. Those who are here may contradict the order of
    all.
    """
    named = [[group] if isinstance(group, str) else [*group] for group in groups]
    systems = [name for group in named for name in group]

    def clauses(here: Cast, subject: Subject, missing: list[str]) -> list[Clause]:
        played, factors = _played(named, factor, here)
        absent = here.absent(systems)
        if absent and len(played) < 2:
            raise NotCheckable(absent[0])
        missing += absent
        playing = {name: here.playing(name) for group in played for name in group}
        sides = [(who, figure) for who in playing.values()]
        found, how = common_curves(sides, 2 if spread else 1)
        series = dict(zip(playing, found, strict=True))
        lower = how["times"] or spread
        how = {**how, "times": how["times"] and not spread}
        ranked = _spreads(series) if spread else _by_place(series, figure, at)
        claims = []
        for where, of in ranked.items():
            for better_ones, worse_ones, beyond in zip(played, played[1:], factors, strict=False):
                for better in better_ones:
                    for worse in worse_ones:
                        high, low = (worse, better) if lower else (better, worse)
                        words = f"{high} over {low} {where}"
                        claims.append(Claim(of[high], of[low], words, beyond, **how))
        return [Clause(claims)]

    return Criterion("order", clauses, [figure], systems, is_of_systems=True)


def _played(
    groups: Sequence[Sequence[str]], factor: Sequence[float], here: Cast
) -> tuple[list[list[str]], list[float]]:
    """Return the groups of those who are here, and the factors between them."""
    played, factors = [], [1.0]
    for group, beyond in zip(groups, [1.0, *(factor or [1.0] * len(groups))], strict=False):
        factors[-1] *= beyond
        if mine := [name for name in group if name in here.roles]:
            played.append(mine)
            factors.append(1.0)
    return played, factors[1:-1]


def _by_place(
    series: dict[str, list[Curve]], figure: Figure, at: str
) -> dict[str, dict[str, list[float]]]:
    places = sorted(next(iter(series.values()))[0])
    chosen = {"largest": places[-1:], "smallest": places[:1]}.get(at, places)
    return {
        f"at {place} {figure.along}": {name: _at(of, place) for name, of in series.items()}
        for place in chosen
    }


def _spreads(series: dict[str, list[Curve]]) -> dict[str, dict[str, list[float]]]:
    return {
        "largest over smallest": {
            name: [scaling.spread([*curve.values()]) for curve in of] for name, of in series.items()
        }
    }


def smaller_lead(
    figure: Figure, than: Figure, system: str, others: Sequence[str], factor: float
) -> Criterion:
    """One system is ahead of the best of others by less in one benchmark than in another.

    It is, with the most processes that all measured, by a ``factor`` of the two ratios.
    """

    def clauses(here: Cast, subject: Subject, missing: list[str]) -> list[Clause]:
        who = [here.playing(name) for name in (system, *others)]
        leads, lie = [], []
        for asked in (figure, than):
            found, how = common_curves([(one, asked) for one in who])
            lie.append(how)
            most = max(found[0][0])
            launches = zip(*(_at(one, most) for one in found), strict=False)
            lower = asked.is_lower_better(who[0])
            leads.append([min(of) / mine if lower else mine / max(of) for mine, *of in launches])
        is_in_turn = all(one["in_turn"] for one in lie) and len(leads[0]) == len(leads[1])
        how = {"apart": any(one["apart"] for one in lie), "in_turn": is_in_turn}
        words = f"the lead in {than} over that in {figure}"
        return [Clause([Claim(leads[1], leads[0], words, factor, **how)])]

    return Criterion("smaller lead", clauses, [figure, than], [system, *others], is_of_systems=True)


def larger_gain(figure: Figure, *systems: str) -> Criterion:
    """The second system gains more on the first than the fourth does on the third."""

    def clauses(here: Cast, subject: Subject, missing: list[str]) -> list[Clause]:
        who = [here.playing(name) for name in systems]
        found, how = common_curves([(one, figure) for one in who])
        most = max(found[0][0])
        launches = [*zip(*(_at(one, most) for one in found), strict=False)]
        gains = [[two / one for one, two, *_ in launches], [of[3] / of[2] for of in launches]]
        if figure.is_lower_better(who[0]):
            gains.reverse()
        how["times"] = False
        words = f"the gain of {who[1].name} over that of {who[3].name}"
        return [Clause([Claim(gains[0], gains[1], words, 1, **how)])]

    return Criterion("larger gain", clauses, [figure], systems, is_of_systems=True)


def ranks_alike(
    figure: Figure, other: Figure, systems: Sequence[str], least: float = 0.9
) -> Criterion:
    """Two benchmarks put those who play systems into the same order, or the opposite one.

    Of some of the named systems it is asked how well all could correlate at most: the squares of
    the differences of ranks that some have among themselves do not become fewer among all.
    """
    both = (figure, other)

    def clauses(here: Cast, subject: Subject, missing: list[str]) -> list[Clause]:
        missing += (
            here.absent(systems)
            or [
                f"{figure} and {other} were not both measured of {name}"
                for name in systems
                if not all(one.values(here.roles[name]) for one in both)
            ][:1]
        )
        players = {who.name: who for name, who in here.roles.items() if name in systems}.values()
        playing = [who for who in players if all(one.values(who) for one in both)]
        if len(playing) < 3:
            raise NotCheckable(f"{figure} and {other}: fewer than three systems have both")
        orders = [_ranked(one, playing) for one in both]
        alike = [comparisons.rank_correlation(*rows) for rows in zip(*orders, strict=False)]
        here_of, all_of = (n * (n * n - 1) for n in (len(playing), len(systems)))
        at_best = [1 - (1 - one) * here_of / all_of for one in alike]
        return [Clause([_of_share(at_best, least, "what is missing of a rank correlation of 1")])]

    return Criterion("rank correlation", clauses, both, systems, is_of_systems=True)


def _ranked(figure: Figure, playing: Sequence[Subject]) -> list[list[float]]:
    """Return for each launch what several have with the most processes, more being better."""
    refuse_sizes(playing[0], figure)
    asked = figure.asked
    along = next((n for n in COUNTS if all(who.shapes(asked, n) for who in playing)), COUNTS[0])
    found, _ = common_curves([(who, replace(figure, along=along)) for who in playing])
    sign = -1 if figure.is_lower_better(playing[0]) else 1
    most = max(found[0][0])
    return [[sign * curve[most] for curve in row] for row in zip(*found, strict=False)]
