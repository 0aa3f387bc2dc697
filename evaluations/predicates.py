"""Ask the papers' conclusions of what was measured here, and of what the papers printed. Pure.

The ``kind`` of a test names a function below; the facts have its settings. What a test of
measurements asks for are the figures of a subject, ``of`` a benchmark and metric under conditions,
``along`` a condition from ``from`` to ``to``. Tests of one subject are made of each one that was
measured; tests of ``systems`` need one that plays each of them. Each becomes claims on ratios,
which :mod:`evaluations.inference` decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median
from typing import Any

from clustergate.benchmarks.hpl.sizing import process_grid
from clustergate.core.model import Better
from clustergate.core.notation import counted
from evaluations.derived import DerivedError, comparisons, curves, ratios, scaling
from evaluations.evidence import COUNTS, HPCC_CHECK, RANDOM_ACCESS, Measured, Shape, Subject
from evaluations.facts import Paper, Predicate
from evaluations.inference import NOT_AGAINST, Claim, Clause, Outcome, findings

Settings = Mapping[str, Any]
Curve = Mapping[Any, float]
DIP = 0.05
"""A curve has a dip where it is lower than on either side by so much, as a fraction."""
# What is 1 at best, such as R squared, is judged by what is missing of it, down to this.
_NEXT_TO_NOTHING = 1e-9


@dataclass(frozen=True)
class Decision:
    """The outcome for one subject, or for all together, with the sentence why.

    ``lacking`` is what is missing here, so that it can be contradicted at most. So many ``further``
    launches would probably decide it, or contradict it.
    """

    outcome: Outcome
    subject: str
    sentence: str
    further: int | None = None
    lacking: str = ""


class NotCheckable(Exception):
    """The measurements do not have what a test needs; the message says what is missing."""


@dataclass(frozen=True)
class Cast:
    """Who was measured, and who of them plays which of the paper's systems."""

    subjects: Sequence[Subject]
    roles: Mapping[str, Subject]

    def playing(self, system: str) -> Subject:
        """Return who plays a system; raises :class:`NotCheckable` when nobody does."""
        try:
            return self.roles[system]
        except KeyError:
            raise NotCheckable(f"nothing here stands for {system}") from None


def cast(paper: Paper, subjects: Sequence[Subject], given: Mapping[str, Subject]) -> Cast:
    """Return who plays whom: whoever was ``given``, a system itself, the stack of a variant.

    Whoever was given a role plays no other one, so that nobody is compared with himself.
    """
    roles = dict(given)
    for system in paper.systems.values():
        for subject in subjects:
            if subject in given.values():
                continue
            if subject.system == system.id or subject.stack in system.played_by:
                roles.setdefault(system.id, subject)
    return Cast(subjects, roles)


def decide(predicate: Predicate, here: Cast) -> list[Decision]:
    """Return what the measurements say of a conclusion, for each subject or for all together."""
    settings = predicate.here
    if settings is None:
        return [Decision(Outcome.NOT_CHECKABLE, "", predicate.not_here)]
    if not here.subjects:
        return [Decision(Outcome.NOT_CHECKABLE, "", "nothing was measured")]
    if _is_of_systems(settings):
        return [_decided("", settings, here, here.subjects[0])]
    return [_decided(subject.name, settings, here, subject) for subject in here.subjects]


def _decided(name: str, settings: Settings, here: Cast, subject: Subject) -> Decision:
    """Return the outcome of all clauses: one that fails decides, one that is missing forbids."""
    missing: list[str] = []
    clauses = clauses_of(settings, here, subject, missing)
    found = findings(clauses)
    several = len({clause.about for clause in clauses}) > 1
    told = [
        f"{clause.about}: {one.sentence}" if several and clause.about else one.sentence
        for clause, one in zip(clauses, found, strict=True)
    ]
    outcomes, further = [one.outcome for one in found], None
    if Outcome.DOES_NOT in outcomes:
        outcome = Outcome.DOES_NOT
        told = [t for t, one in zip(told, found, strict=True) if one.outcome is outcome]
    elif missing or not found:
        outcome, told = Outcome.NOT_CHECKABLE, [*missing, *told]
        # What cannot hold here may still be contradicted.
        further = min((one.against for one in found if one.against), default=None)
        if further:
            launches = counted(further, "more launch")
            told.append(f"about {launches} of each would probably contradict it")
    elif Outcome.INCONCLUSIVE in outcomes:
        outcome = Outcome.INCONCLUSIVE
        told = [t for t, one in zip(told, found, strict=True) if one.outcome is outcome]
        undecided = [one for one in found if one.outcome is outcome]
        further = max((one.further or 0 for one in undecided), default=0) or None
        told.append(max(undecided, key=lambda one: one.further or math.inf).remedy)
    else:
        outcome = Outcome.HOLDS
    lacking = missing[0] if missing and found else ""
    return Decision(outcome, name, "; ".join(dict.fromkeys(told)), further, lacking)


# What a test may compare, each a benchmark and metric.
_SIDES = ("of", "than", "with", "over", "as_much_as")
_COMPARING = ("system", "systems", "groups", "others", "with")


def _is_of_systems(settings: Settings) -> bool:
    parts = settings.get("parts", ())
    return any(name in settings for name in _COMPARING) or (
        bool(parts) and all(_is_of_systems(part) for part in parts)
    )


def clauses_of(
    settings: Settings, here: Cast, subject: Subject, missing: list[str]
) -> list[Clause]:
    """Return the clauses of a test; what one of them needs and is not here goes to ``missing``."""
    if settings["kind"] == "all":
        parts = [(part, subject) for part in settings["parts"]]
    elif settings["kind"] == "count":
        return _count(settings, here, subject, missing)
    elif settings["kind"] == "exception":
        excepted = [here.roles[name] for name in settings["playing"] if name in here.roles]
        # Neither the rule nor its exception is confirmed by the other alone.
        if not excepted:
            missing.append(f"nothing here stands for {settings['playing'][0]}")
        elif all(one in excepted for one in here.subjects):
            missing.append(f"nothing here stands for a system other than {settings['playing'][0]}")
        parts = [(settings["instead" if subject in excepted else "part"], subject)]
    else:
        try:
            player = here.playing(settings["system"]) if "system" in settings else subject
            if settings["kind"] == "order":
                settings = _of_those_here(settings, here, missing)
            elif settings["kind"] == "rank correlation":
                missing += _unranked(settings, here)
            elif settings.get("at") == "squarest":
                missing += _as_square(settings, player.undisturbed)
            of = settings.get("of", {})
            size = f" of {of['bytes']} bytes" if "bytes" in of else ""
            about = f"{of.get('benchmark', '')}{size}"
            clauses = KINDS[settings["kind"]](settings, here, player.undisturbed)
            return [replace(one, about=one.about or about) for one in clauses]
        except (NotCheckable, DerivedError) as reason:
            missing.append(str(reason))
            return []
    return [clause for part, who in parts for clause in clauses_of(part, here, who, missing)]


# --- tests of measurements --------------------------------------------------------------------


def _limits(settings: Settings) -> dict[str, Any]:
    return {key: settings[key] for key in ("ranks", "processes", "placement") if key in settings}


def _curves(
    subject: Subject,
    settings: Settings,
    of: str = "of",
    fewest: int = 2,
    shape: Shape | None = None,
) -> list[Curve]:
    """Return the values of a test along its axis, of each launch that has them all.

    Raises :class:`NotCheckable` for fewer places than it takes.
    """
    along = settings["along"]
    found: list[Curve] = []
    if along != "bytes":
        _refuse_sizes(subject, settings[of])

    def within(one: Subject) -> Curve:
        return {
            at: value
            for at, value in one.series(settings[of], along, shape, **_limits(settings)).items()
            if settings.get("from", at) <= at <= settings.get("to", at)
        }

    for launch in subject.by_launch:
        curve = within(launch)
        if settings.get("over") in scaling.MODELS:
            curve = scaling.scaled(curve, settings["over"])
        if not found and len(curve) < fewest:
            # Idle nodes do not help where it was not launched at enough places.
            places = within(subject.beyond_doubt)
            if len(places) >= fewest:
                _refuse_disturbed(subject, settings[of], **_limits(settings))
            ends = [f"{word} {settings[word]:.10g}" for word in ("from", "to") if word in settings]
            wanted = " ".join(["", *ends, along]) if ends else ""
            few = curve if len(places) >= fewest else places
            at_few = f"was measured at {counted(len(few), place_of(along))}{wanted}"
            least = f"{at_few}, and it takes {fewest}" if few else f"was not measured{wanted}"
            elsewhere = "; elsewhere its launches were disturbed, so run again on idle nodes"
            others = elsewhere if len(places) >= fewest else ""
            raise NotCheckable(f"{_named(settings[of])} {least}{others}")
        if found and curve.keys() != found[0].keys():
            break
        if not found and fewest:
            _refuse_gap(curve, settings)
        found.append(curve)
    return found


def _refuse_gap(places: Collection[Any], settings: Settings) -> None:
    """Raise :class:`NotCheckable` where message sizes do not reach the ends that a test names.

    Those of a process series do not on a small machine, for which a conclusion is scaled.
    """
    ends = {"from": min(places, default=0), "to": max(places, default=0)}
    for word, near in ends.items() if settings["along"] == "bytes" and places else ():
        end = settings.get(word, near)
        if max(end, near) > 2 * min(end, near):
            raise NotCheckable(f"it goes {word} {end} bytes, and what is here {word} {near}")


def _refuse_disturbed(subject: Subject, of: Settings, **limits: Any) -> None:
    """Raise :class:`NotCheckable` where what is asked for was measured, and decides nothing."""
    if subject.is_disturbed(of, **limits):
        raise NotCheckable(f"{_named(of)}: its launches were disturbed; run again on idle nodes")


def _refuse_sizes(subject: Subject, of: Settings) -> None:
    """Raise :class:`NotCheckable` where several message sizes would stand for one another."""
    sizes = {figure.conditions.get("bytes") for figure in subject.values(of)}
    if len(sizes) > 1:
        raise NotCheckable(
            f"{_named(of)} was measured with {len(sizes)} message sizes; name one in the test, "
            "such as bytes: 8"
        )


def _refuse_mixed(subjects: Sequence[Subject]) -> None:
    """Raise :class:`NotCheckable` where the RandomAccess of some is another benchmark."""
    versions = {one.name: one.version_of.get(HPCC_CHECK, "") for one in subjects}
    if len({ratios.random_access_of(version) for version in versions.values()}) > 1:
        told = ", ".join(f"{name} ({version})" for name, version in versions.items())
        raise NotCheckable(f"RandomAccess is not the same benchmark in these runs: {told}")


def _sides(
    sides: Sequence[tuple[Subject, str]], settings: Settings, fewest: int = 1
) -> tuple[list[list[Curve]], dict[str, bool]]:
    """Return the curves of several, at the places and of the most processes that all measured.

    The sides are subjects with what of the settings is compared of them. With the curves is told
    how their launches lie to each other, as :class:`~evaluations.inference.Claim` has it. Of those
    that were launched in turn, only the rounds in which all has been measured count; of several
    placements those that all have, since the best one of each would compare a network with memory.
    """
    if any(settings[of]["metric"] in RANDOM_ACCESS for _, of in sides):
        _refuse_mixed([who for who, _ in sides])
    along, limits = settings["along"], _limits(settings)
    shapes = [who.shapes(settings[of], along, **limits) for who, of in sides]
    common = set.intersection(*shapes)
    told = "they were measured with no number of processes and nodes in common"
    if all(shapes) and not common and along not in COUNTS:
        raise NotCheckable(told)
    shape = None if along in COUNTS else max(common, default=None)
    asked = [
        [one for one in who.values(settings[of], **limits) if shape in (None, one.shape)]
        for who, of in sides
    ]
    launched = [{one.launch for one in of} for of in asked]
    launches = set.intersection(*launched)
    if all(launched) and not launches:
        raise NotCheckable(told)
    asked = [[one for one in of if one.launch in launches] for of in asked]
    rounds = frozenset[str]()
    if all(any(one.rounds for one in of) for of in asked):
        in_rounds = [frozenset(one.rounds) for of in asked for one in of if one.rounds]
        rounds = frozenset.intersection(*in_rounds)
    several = len({who.name for who, _ in sides}) > 1
    in_turn = several and len(rounds) > 1
    (first, of_first), over = sides[0], settings.get("over", "")
    how = {
        "apart": not in_turn and _are_apart(sides, asked),
        "in_turn": in_turn,
        "times": _is_lower_better(first, settings[of_first], over),
    }
    sides = [
        (who.in_rounds(rounds) if in_turn else who.undisturbed, of)
        for (one, of), mine in zip(sides, launched, strict=True)
        for who in [one.launched_as(launches) if launches < mine else one]
    ]
    found = [_curves(who, settings, of, 1, shape) for who, of in sides]
    # Of nothing that is moved there is no ratio.
    every = [curve for side in found for curve in side]
    places = [at for at in found[0][0] if all(curve.get(at, 0.0) > 0.0 for curve in every)]
    if len(places) < fewest:
        common_places = counted(len(places), place_of(settings["along"]))
        raise NotCheckable(f"they have {common_places} in common, and it takes {fewest}")
    _refuse_gap(places, settings)
    curves_of: list[list[Curve]] = [
        [{at: curve[at] for at in places} for curve in side] for side in found
    ]
    how["in_turn"] = how["in_turn"] and len({len(side) for side in curves_of}) == 1
    return curves_of, how


_PLACES = {"processes": "process count", "bytes": "message size", "peer": "partner", "p": "grid"}


def place_of(along: str) -> str:
    """Return what a place on an axis is called."""
    return _PLACES.get(along, f"value of {along}")


def _named(of: Settings) -> str:
    size = [f"of {of['bytes']} bytes"] if "bytes" in of else []
    told = {k: v for k, v in of.items() if k not in ("benchmark", "metric", "bytes")}
    others = [f"without {k}" if v == "" else f"{k}={v}" for k, v in told.items()]
    return " ".join([of["benchmark"], of["metric"], *size, *others])


def _is_lower_better(subject: Subject, of: Settings, over: str = "") -> bool:
    """Tell whether less is better: not of an efficiency, be it of times."""
    values = subject.values(of)
    return bool(values) and values[0].better is Better.LOWER and "efficiency" not in over


def _at(found: Sequence[Curve], place: Any) -> list[float]:
    return [curve[place] for curve in found]


def _require(found: Sequence[Curve], places: Sequence[Any], settings: Settings) -> None:
    for place in places:
        if place not in found[0]:
            raise NotCheckable(
                f"{_named(settings['of'])} was not measured at {place:.10g} {settings['along']}"
            )


def _ends(found: Sequence[Curve]) -> tuple[Any, Any]:
    """Return where the middle launch is smallest, and where it is largest."""
    middle = {at: median(_at(found, at)) for at in found[0]}
    return min(middle, key=lambda at: middle[at]), max(middle, key=lambda at: middle[at])


def _are_apart(sides: Sequence[tuple[Subject, str]], asked: Sequence[Sequence[Measured]]) -> bool:
    """Tell whether the figures asked for are of the launches of different runs."""
    of_figures = [frozenset(run for one in of for run in one.runs) for of in asked]
    return len({of or who.runs for of, (who, _) in zip(of_figures, sides, strict=True)}) > 1


def _each(settings: Settings, here: Cast, subject: Subject) -> list[Clause]:
    """A part holds of each value of a condition, such as of each number of processes."""
    by, part = settings["by"], settings["part"]
    who = here.playing(part["system"]).undisturbed if "system" in part else subject
    figures = who.values(part["of"], **_limits(part))
    places = sorted({figure.conditions[by] for figure in figures if by in figure.conditions})
    if not places:
        _refuse_disturbed(who, part["of"], **_limits(part))
        raise NotCheckable(f"{_named(part['of'])} was not measured so")
    sides = [side for side in _SIDES if isinstance(part.get(side), Mapping)]
    return [
        replace(clause, about=f"{by} {at}")
        for at in places
        for asked in [{**part, **{side: {**part[side], by: at} for side in sides}}]
        for clause in KINDS[part["kind"]](asked, here, who)
    ]


def _open(settings: Settings, here: Cast, subject: Subject) -> list[Clause]:
    """A part that no measurement decides, so that the whole cannot be said to hold."""
    raise NotCheckable(settings["because"])


def _count(settings: Settings, here: Cast, subject: Subject, missing: list[str]) -> list[Clause]:
    """So many of the parts hold, as a sentence on most experiments has it.

    Parts of which nothing is here may all hold; too few may be left without them.
    """
    every = [clauses_of(part, here, subject, missing) for part in settings["parts"]]
    parts = [part for part in every if part]
    needed = settings["at_least"] - len(every) + len(parts)
    return [Clause(needed=needed, parts=parts)] if needed > 0 else []


def _trend(settings: Settings, here: Cast, subject: Subject) -> list[Clause]:
    """The last value is above the first, or below it, and no step goes against it."""
    found = _curves(subject, settings)
    places = list(found[0])
    if settings["direction"] == "falls":
        places.reverse()

    def claim(low: Any, high: Any, at_least: float) -> Claim:
        words = f"{high} over {low} {settings['along']}"
        return Claim(_at(found, high), _at(found, low), words, at_least)

    steps = [claim(one, other, NOT_AGAINST) for one, other in pairwise(places)]
    return [Clause([*steps, claim(places[0], places[-1], 1)])]


def _steady(settings: Settings, here: Cast, subject: Subject) -> list[Clause]:
    """The largest value over the smallest one stays within a factor, or is ``beyond`` one."""
    found = _curves(subject, settings)
    least, most = _ends(found)
    words = f"{most} over {least} {settings['along']}"
    if "beyond" in settings:
        claim = Claim(_at(found, most), _at(found, least), words, settings["beyond"])
    else:
        claim = Claim(_at(found, most), _at(found, least), words, high=settings["within"])
    return [Clause([claim])]


def _keeps(settings: Settings, here: Cast, subject: Subject) -> list[Clause]:
    """No value is below a part of the first one."""
    found = _curves(subject, settings)
    first, *others = found[0]

    def words(at: Any) -> str:
        return f"{at} over {first} {settings['along']}"

    low = settings["at_least"]
    return [Clause([Claim(_at(found, at), _at(found, first), words(at), low) for at in others])]


def _step(settings: Settings, here: Cast, subject: Subject) -> list[Clause]:
    """The value at the second place is more than a factor above that at the first."""
    first, second = settings["at"]
    ends = {"from": min(first, second), "to": max(first, second)}
    found = _curves(subject, {**settings, **ends}, fewest=0)
    if not found[0]:
        _refuse_disturbed(subject, settings["of"], **_limits(settings))
    _require(found, (first, second), settings)
    words = f"{second} over {first} {settings['along']}"
    return [Clause([Claim(_at(found, second), _at(found, first), words, settings["factor"])])]


def _best_at(settings: Settings, here: Cast, subject: Subject) -> list[Clause]:
    """The best value stands at one place; of grids of HPL, at the P of the squarest."""
    found = _curves(subject, settings)
    best = settings["at"]
    if best == "squarest":
        best, _ = process_grid(max(subject.shapes(settings["of"], settings["along"])).processes)
    _require(found, [best], settings)
    lower = _is_lower_better(subject, settings["of"], settings.get("over", ""))
    claims = []
    for at in (at for at in found[0] if at != best):
        up, low = (at, best) if lower else (best, at)
        words = f"{up} over {low} {settings['along']}"
        claims.append(Claim(_at(found, up), _at(found, low), words, 1))
    return [Clause(claims)]


def _dip(settings: Settings, here: Cast, subject: Subject) -> list[Clause]:
    """A curve is lower at one place than at both its neighbours, of half to double of it."""
    found = _curves(subject, settings, fewest=3)
    bottom = settings["at"]
    near = [at for at in found[0] if bottom <= 2 * at and at <= 2 * bottom]
    if bottom not in near[1:-1]:
        raise NotCheckable(f"there are no sizes from half to double of {bottom} on both sides")
    middle = near.index(bottom)
    sides = (near[middle - 1], near[middle + 1])
    low, deep = _at(found, bottom), 1 / (1 - DIP)
    return [Clause([Claim(_at(found, at), low, f"{at} over {bottom} bytes", deep) for at in sides])]


def _linear(settings: Settings, here: Cast, subject: Subject) -> list[Clause]:
    """The values lie on a line."""
    found = [curves.line_r_squared(one) for one in _curves(subject, settings, fewest=3)]
    return [Clause([_of_one(found, settings["r_squared"], "what a line does not explain")])]


def _of_one(found: Sequence[float], at_least: float, words: str) -> Claim:
    """Return the claim that values which are 1 at best are at least a number."""
    missing = [max(1 - value, _NEXT_TO_NOTHING) for value in found]
    bound = 1 - at_least
    beside = [bound] * len(missing)
    return Claim(missing, beside, f"{words}, over {bound:g}", high=1.0, one_number=True)


def _beyond(settings: Settings, here: Cast, subject: Subject) -> list[Clause]:
    """Beyond a place the curve gains more per doubling than in the doubling before."""
    found = _curves(subject, settings, fewest=3)
    at = settings["at"]
    before, after = at / 2, 2 * at
    _require(found, (before, at, after), settings)
    ends = [curve[before] + curve[after] for curve in found]
    words = f"mean of {before:.10g} and {after} over {at} {settings['along']}"
    return [Clause([Claim(ends, [2 * value for value in _at(found, at)], words, 1)])]


def _bounded(settings: Settings, here: Cast, subject: Subject) -> list[Clause]:
    """The best value, or the ratio of two, is at least or at most a number."""
    bound = settings.get("value", 1)
    other = settings.get("over") or settings.get("as_much_as")
    best = _best(subject, settings["of"], settings, other)
    is_most = settings["kind"] == "at most"
    words = f"the best of {_named(settings['of'])} over"
    if other:
        beside, words = _best(subject, other, settings, settings["of"]), f"{words} {_named(other)}"
    else:
        beside, words, bound = [float(bound)] * len(best), f"{words} {bound:g}", 1
    # To reach as much as another is not to be behind it.
    least = NOT_AGAINST if other and bound == 1 else bound
    low, high = (0.0, bound) if is_most else (least, math.inf)
    return [Clause([Claim(best, beside, words, low, high, one_number=not other)])]


def _best(
    subject: Subject, of: Settings, settings: Settings, like: Settings | None = None
) -> list[float]:
    """Return the best of each launch, of the largest launch that what it is ``like`` has, too.

    What was launched more often or less often than the best of all is left out: where it ran alone
    its best would be another quantity.
    """
    figures = subject.values(of, **_limits(settings))
    if not figures:
        _refuse_disturbed(subject, of, **_limits(settings))
        raise NotCheckable(f"{_named(of)} was not measured")
    if like is not None:
        alike = {f.launch for f in subject.values(like, **_limits(settings))}
        if not alike:
            raise NotCheckable(f"{_named(like)} was not measured")
        both = {f.launch for f in figures} & alike
        if not both:
            raise NotCheckable(f"{_named(of)} and {_named(like)} were measured in no launch alike")
        # Two processes on two nodes go before two on one.
        launch = max(both, key=lambda one: (one[0], one[0] == 2 and one[1] != "packed", one))
        figures = [figure for figure in figures if figure.launch == launch]
    best = min if figures[0].better is Better.LOWER else max
    launches = [figure.of_launches or [figure.value] for figure in figures]
    count = len(best(zip(figures, launches, strict=True), key=lambda one: one[0].value)[1])
    return [best(of) for of in zip(*(of for of in launches if len(of) == count), strict=True)]


def _placement_order(settings: Settings, here: Cast, subject: Subject) -> list[Clause]:
    """One placement is better than another."""
    values = {}
    _refuse_sizes(subject, settings["of"])
    for placement in (settings["better"], settings["worse"]):
        placed = {"placement": placement, "ranks": settings["ranks"]}
        found = subject.values(settings["of"], **placed)
        if not found:
            _refuse_disturbed(subject, settings["of"], **placed)
            raise NotCheckable(f"{_named(settings['of'])} was not measured {placement}")
        values[placement] = found[0].of_launches or [found[0].value]
    high, low = values
    if _is_lower_better(subject, settings["of"]):
        high, low = low, high
    return [Clause([Claim(values[high], values[low], f"{high} over {low}", 1)])]


def _pair(
    settings: Settings, here: Cast, subject: Subject
) -> tuple[list[str], list[list[Curve]], dict[str, bool]]:
    """Return the names and the curves of systems, or of two benchmarks of one, and how they lie."""
    if "systems" in settings:
        sides = [(here.playing(name), "of") for name in settings["systems"]]
        names = [who.name for who, _ in sides]
    else:
        sides = [(subject, "of"), (subject, "than")]
        names = [_named(settings[of]) for _, of in sides]
    return names, *_sides(sides, settings)


def _ahead(settings: Settings, here: Cast, subject: Subject) -> list[Clause]:
    """One of two is better at more than half of the common places, and behind at none.

    Where the lead is ``growing``, the gap rises from the first place to the last, too.
    """
    names, (first, second), how = _pair(settings, here, subject)
    if how["times"]:
        # Slower is above.
        names, (first, second) = names[::-1], (second, first)
    places = list(first[0])
    if settings["along"] == "bytes" and len(places) < 2:
        raise NotCheckable("they have one message size in common, which says nothing of others")

    def lead_at(at: Any) -> str:
        return f"{names[0]} over {names[1]} at {at} {settings['along']}"

    leads = [Claim(_at(first, at), _at(second, at), lead_at(at), 1, **how) for at in places]
    # What is undecided may be behind; the least lead of all is told.
    never = [
        replace(one, low=NOT_AGAINST)
        for one in sorted(leads, key=lambda one: -median(one.upper) / median(one.lower))
    ]
    clauses = [Clause(leads, len(leads) // 2 + 1, none_against=True), Clause(never)]
    if settings.get("growing"):
        if len(places) < 2:
            raise NotCheckable(f"a gap at one value of {settings['along']} does not grow")
        # first[b] - second[b] > first[a] - second[a], without differences that may be negative.
        few, many = places[0], places[-1]
        both = list(zip(first, second, strict=False))
        wider = [one[many] + other[few] for one, other in both]
        narrow = [one[few] + other[many] for one, other in both]
        words = f"the gap at {many} over that at {few} {settings['along']}"
        clauses.append(Clause([Claim(wider, narrow, words, 1, **how)]))
    return clauses


def _widest(settings: Settings, here: Cast, subject: Subject) -> list[Clause]:
    """The first of two is above the second by its largest factor between two places."""
    _, (first, second), how = _pair(settings, here, subject)
    how["times"] = False
    low, high = settings["between"]
    factors = [
        {at: one[at] / other[at] for at in one} for one, other in zip(first, second, strict=False)
    ]
    inside = [at for at in first[0] if low <= at <= high]
    outside = [at for at in first[0] if not low <= at <= high]
    if not inside or not outside:
        raise NotCheckable(f"there are no {settings['along']} within and beyond {low} to {high}")
    # The largest of many places is above that of few by chance alone: one place has to be above
    # each of the others.
    widest = max(inside, key=lambda at: median(_at(factors, at)))
    words = f"the factor at {widest} over that at {{}} {settings['along']}"
    return [
        Clause(
            [
                Claim(_at(factors, widest), _at(factors, at), words.format(at), 1, **how)
                for at in outside
            ]
        )
    ]


def _level(settings: Settings, here: Cast, subject: Subject) -> list[Clause]:
    """Two, or all ``systems``, are alike at every common place, within a part of the largest."""
    names, found, how = _pair(settings, here, subject)
    sides, claims = dict(zip(names, found, strict=True)), []
    for at in found[0][0]:
        middle = {name: median(_at(side, at)) for name, side in sides.items()}
        least, most = (end(middle, key=lambda name: middle[name]) for end in (min, max))
        least, most = (names[0], names[1]) if least == most else (least, most)
        bound = 1 / (1 - settings["within"])
        claims.append(
            Claim(
                _at(sides[most], at),
                _at(sides[least], at),
                f"{most} over {least} at {at} {settings['along']}",
                1 / bound,
                bound,
                **how,
            )
        )
    return [Clause(claims)]


def _order(settings: Settings, here: Cast, subject: Subject) -> list[Clause]:
    """Systems rank as named, from the best: at an end of what is common to them, or everywhere.

    They rank one by one (``systems``), by ``groups`` whose members may stand as they like, or the
    ``first`` or the ``last`` is apart from the ``others``. With ``spread`` it is how little each
    one's values vary that ranks.
    """
    groups = _groups(settings)
    playing = {name: here.playing(name) for group in groups for name in group}
    fewest = 2 if settings.get("spread") else 1
    found, how = _sides([(who, "of") for who in playing.values()], settings, fewest)
    series = dict(zip(playing, found, strict=True))
    places = sorted(found[0][0])
    ends = {"largest": places[-1:], "smallest": places[:1]}
    lower = how["times"]
    if settings.get("spread"):
        lower, how = True, {**how, "times": False}
        named = {
            "largest over smallest": {
                name: [scaling.spread(list(curve.values())) for curve in of]
                for name, of in series.items()
            }
        }
    else:
        named = {
            f"at {at} {settings['along']}": {name: _at(of, at) for name, of in series.items()}
            for at in ends.get(settings.get("at", ""), places)
        }
    factors = settings.get("factor", [1] * (len(groups) - 1))
    return [
        Clause(
            [
                Claim(
                    of[worse if lower else better],
                    of[better if lower else worse],
                    f"{worse if lower else better} over {better if lower else worse} {where}",
                    factor,
                    **how,
                )
                for where, of in named.items()
                for ahead, behind, factor in zip(groups, groups[1:], factors, strict=False)
                for better in ahead
                for worse in behind
            ]
        )
    ]


def _of_those_here(settings: Settings, here: Cast, missing: list[str]) -> Settings:
    """Return the order of the systems that are played, which may contradict that of all.

    Who is not goes to ``missing``. Raises :class:`NotCheckable` where nothing is left to order.
    """
    groups, factor = [], [1.0]
    steps = [1.0, *settings.get("factor", [1.0] * len(_groups(settings)))]
    for group, beyond in zip(_groups(settings), steps, strict=False):
        factor[-1] *= beyond
        if played := [name for name in group if name in here.roles]:
            groups.append(played)
            factor.append(1.0)
    absent = _absent([name for group in _groups(settings) for name in group], here)
    if absent and len(groups) < 2:
        raise NotCheckable(absent[0])
    missing += absent
    return {**settings, "groups": groups, "factor": factor[1:-1]}


def _absent(systems: Sequence[str], here: Cast) -> list[str]:
    """Return the sentence that names whom of systems nothing here stands for, if any."""
    absent = [name for name in systems if name not in here.roles]
    more = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
    return [f"nothing here stands for {absent[0]}{more}"] if absent else []


def _unranked(settings: Settings, here: Cast) -> list[str]:
    """Return the sentence that names which of the named systems has no place in both orders."""
    named, both = settings.get("systems", ()), (settings["of"], settings["with"])
    if absent := _absent(named, here):
        return absent
    lacking = [name for name in named if not all(map(here.roles[name].values, both))]
    told = " and ".join(map(_named, both))
    return [f"{told} were not both measured of {name}" for name in lacking[:1]]


def _as_square(settings: Settings, subject: Subject) -> list[str]:
    """Return the sentence that no grid is squarer than another, if so: their order alone is asked.

    So it is of a prime number of processes.
    """
    shapes = subject.shapes(settings["of"], settings["along"])
    processes = max((shape.processes for shape in shapes), default=0)
    is_square = any(processes % p == 0 for p in range(2, processes))
    told = f"the grids of {counted(processes, 'process')} are all as square as each other"
    return [] if is_square or not processes else [told]


def _groups(settings: Settings) -> list[list[str]]:
    """Return the systems of an order in groups, each to be ahead of all that follow it."""
    if "groups" in settings:
        return [list(group) for group in settings["groups"]]
    if "first" in settings:
        return [[settings["first"]], list(settings["others"])]
    if "last" in settings:
        return [list(settings["others"]), [settings["last"]]]
    return [[name] for name in settings["systems"]]


def _smaller_lead(settings: Settings, here: Cast, subject: Subject) -> list[Clause]:
    """One system is ahead of the best of others by less in one benchmark than in another.

    It is, with the most processes that all measured, by a ``factor`` of the two ratios.
    """
    who = [here.playing(name) for name in (settings["system"], *settings["others"])]
    leads, lie = [], []
    for of in ("of", "than"):
        found, how = _sides([(one, of) for one in who], settings)
        lie.append(how)
        most = max(found[0][0])
        launches = zip(*(_at(one, most) for one in found), strict=False)
        lower = _is_lower_better(who[0], settings[of])
        leads.append([min(one) / mine if lower else mine / max(one) for mine, *one in launches])
    words = f"the lead in {_named(settings['than'])} over that in {_named(settings['of'])}"
    how = {
        "apart": any(one["apart"] for one in lie),
        "in_turn": all(one["in_turn"] for one in lie) and len(leads[0]) == len(leads[1]),
    }
    return [Clause([Claim(leads[1], leads[0], words, settings["factor"], **how)])]


def _larger_gain(settings: Settings, here: Cast, subject: Subject) -> list[Clause]:
    """The second system gains more on the first than the fourth does on the third."""
    who = [here.playing(name) for name in settings["systems"]]
    found, how = _sides([(one, "of") for one in who], settings)
    most = max(found[0][0])
    gains: list[list[float]] = [[], []]
    for first, second, third, fourth in zip(*(_at(one, most) for one in found), strict=False):
        gains[0].append(second / first)
        gains[1].append(fourth / third)
    if _is_lower_better(who[0], settings["of"]):
        gains.reverse()
    how["times"] = False
    words = f"the gain of {who[1].name} over that of {who[3].name}"
    return [Clause([Claim(gains[0], gains[1], words, 1, **how)])]


def _rank_correlation(settings: Settings, here: Cast, subject: Subject) -> list[Clause]:
    """Two benchmarks put those who play systems into the same order, or the opposite one.

    Of some of the named systems it is asked how well all could correlate at most: the squares of
    the differences of ranks that some have among themselves do not become fewer among all.
    """
    named, both = settings.get("systems", here.roles), ("of", "with")
    players = {who.name: who for name, who in here.roles.items() if name in named}.values()
    playing = [who for who in players if all(who.values(settings[side]) for side in both)]
    if len(playing) < 3:
        told = f"{_named(settings['of'])} and {_named(settings['with'])}"
        raise NotCheckable(f"{told}: fewer than three systems have both")
    orders = []
    for side in both:
        of = settings[side]
        _refuse_sizes(playing[0], of)
        along = next((n for n in COUNTS if all(who.shapes(of, n) for who in playing)), COUNTS[0])
        found, _ = _sides([(who, side) for who in playing], {**settings, "along": along})
        sign = -1 if _is_lower_better(playing[0], of) else 1
        most = max(found[0][0])
        orders.append([[sign * curve[most] for curve in row] for row in zip(*found, strict=False)])
    alike = [comparisons.rank_correlation(*rows) for rows in zip(*orders, strict=False)]
    here_of, all_of = (
        n * (n * n - 1) for n in (len(playing), len(settings.get("systems", playing)))
    )
    at_most = [1 - (1 - one) * here_of / all_of for one in alike]
    words = "what is missing of a rank correlation of 1"
    return [Clause([_of_one(at_most, settings["at_least"], words)])]


KINDS: Mapping[str, Callable[[Settings, Cast, Subject], list[Clause]]] = {
    "each": _each,
    "open": _open,
    "trend": _trend,
    "steady": _steady,
    "keeps": _keeps,
    "step": _step,
    "best at": _best_at,
    "dip": _dip,
    "linear": _linear,
    "beyond": _beyond,
    "at least": _bounded,
    "at most": _bounded,
    "placement order": _placement_order,
    "ahead": _ahead,
    "widest": _widest,
    "level": _level,
    "order": _order,
    "smaller lead": _smaller_lead,
    "larger gain": _larger_gain,
    "rank correlation": _rank_correlation,
}


# --- tests of what was printed ----------------------------------------------------------------


def holds_in_print(predicate: Predicate, paper: Paper) -> bool | None:
    """Return whether the paper's own values bear a conclusion out, None when none decides it."""
    if predicate.printed is None:
        return None
    return _printed_test(predicate.printed, paper)


def _printed_test(settings: Settings, paper: Paper) -> bool:
    return _PRINTED[settings["kind"]](settings, paper)


def _printed(paper: Paper, name: str | float) -> float:
    if not isinstance(name, str):
        return float(name)
    value = paper.values[name].value
    assert value is not None
    return value


def _numbers(settings: Settings, paper: Paper) -> list[float]:
    return [_printed(paper, name) for name in settings["values"]]


def _ascending(settings: Settings, paper: Paper) -> bool:
    """Every value of a group is below every one of the next; numbers stand for themselves."""
    groups = [[_printed(paper, name) for name in group] for group in settings["groups"]]
    return all(max(low) < min(high) for low, high in pairwise(groups))


def _near(settings: Settings, paper: Paper) -> bool:
    numbers = _numbers(settings, paper)
    return bool(max(numbers) - min(numbers) <= settings["within"] * max(numbers))


def _ratio(settings: Settings, paper: Paper) -> bool:
    top, bottom = (_printed(paper, name) for name in settings["of"])
    low, high = settings.get("low", float("-inf")), settings.get("high", float("inf"))
    return bool(low <= top / bottom <= high)


def _most(settings: Settings, paper: Paper) -> bool:
    """More than half of the values of a metric are at least a number."""
    numbers = [v.value for v in paper.values.values() if v.metric == settings["metric"]]
    reaching = [number for number in numbers if number is not None and number >= settings["bound"]]
    return len(reaching) > len(numbers) / 2


def _printed_all(settings: Settings, paper: Paper) -> bool:
    return all(_printed_test(part, paper) for part in settings["parts"])


def _at_least(settings: Settings, paper: Paper) -> bool:
    return min(_numbers(settings, paper)) >= float(settings["bound"])


def _at_most(settings: Settings, paper: Paper) -> bool:
    return max(_numbers(settings, paper)) <= float(settings["bound"])


_PRINTED: Mapping[str, Callable[[Settings, Paper], bool]] = {
    "all": _printed_all,
    "ascending": _ascending,
    "near": _near,
    "ratio": _ratio,
    "at least": _at_least,
    "at most": _at_most,
    "most": _most,
}
