"""Decide the papers' conclusions: by what was measured here, and by what the papers printed. Pure.

The ``kind`` of a test names a function below; the facts have its settings. What a test of
measurements asks for are the figures of a subject, ``of`` a benchmark and metric under conditions,
``along`` a condition from ``from`` to ``to``. Tests of one subject are made of each one that was
measured; tests of ``systems`` need one that plays each of them.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from clustergate.derived import DerivedError, comparisons, curves, scaling
from clustergate.model import Better
from clustergate.published.evidence import Subject
from clustergate.published.facts import Paper, Predicate

Settings = Mapping[str, Any]


class Outcome(enum.Enum):
    """What is said of a conclusion."""

    HOLDS = "holds here"
    DOES_NOT = "does not hold here"
    NOT_CHECKABLE = "not checkable here"


@dataclass(frozen=True)
class Decision:
    """The outcome for one subject, or for all together, with the sentence why."""

    outcome: Outcome
    subject: str
    sentence: str


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
    """Return who plays whom: whoever was ``given``, a system itself, the stack of a variant."""
    roles = dict(given)
    for system in paper.systems.values():
        for subject in subjects:
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
    try:
        holds, sentence = _run(settings, here, subject)
    except (NotCheckable, DerivedError) as reason:
        return Decision(Outcome.NOT_CHECKABLE, name, str(reason))
    return Decision(Outcome.HOLDS if holds else Outcome.DOES_NOT, name, sentence)


_COMPARING = ("systems", "others", "with")


def _is_of_systems(settings: Settings) -> bool:
    return any(name in settings for name in _COMPARING) or (
        settings["kind"] == "all" and all(_is_of_systems(part) for part in settings["parts"])
    )


def _run(settings: Settings, here: Cast, subject: Subject) -> tuple[bool, str]:
    return _KINDS[settings["kind"]](settings, here, subject)


# --- tests of measurements --------------------------------------------------------------------


def _series(
    subject: Subject, settings: Settings, of: str = "of", fewest: int = 2
) -> dict[Any, float]:
    """Return the values of a test along its axis; raises :class:`NotCheckable` for too few."""
    along = settings["along"]
    limited = {key: settings[key] for key in ("ranks", "placement") if key in settings}
    found = {
        at: value
        for at, value in subject.series(settings[of], along, **limited).items()
        if settings.get("from", at) <= at <= settings.get("to", at)
    }
    if settings.get("over"):
        found = scaling.scaled(found, settings["over"])
    if len(found) < fewest:
        named = _told(settings[of])
        wanted = "".join(
            f" {word} {settings[word]:g}" for word in ("from", "to") if word in settings
        )
        raise NotCheckable(
            f"{named} was measured at {len(found)} values of {along}{wanted}, and it takes {fewest}"
        )
    return found


def _told(of: Settings) -> str:
    conditions = [f"{k}={v}" for k, v in of.items() if k not in ("benchmark", "metric")]
    return " ".join([f"{of['benchmark']} {of['metric']}", *conditions])


def _is_lower_better(subject: Subject, of: Settings) -> bool:
    values = subject.values(of)
    return bool(values) and values[0].better is Better.LOWER


def _all(settings: Settings, here: Cast, subject: Subject) -> tuple[bool, str]:
    """All parts hold; what a part needs and is missing is said, the others decide."""
    held, told, missing = [], [], []
    for part in settings["parts"]:
        try:
            holds, sentence = _run(part, here, subject)
        except (NotCheckable, DerivedError) as reason:
            missing.append(str(reason))
            continue
        held.append(holds)
        told.append(sentence)
    if not held or (all(held) and missing):
        raise NotCheckable("; ".join(dict.fromkeys([*told, *missing])))
    return all(held), "; ".join(told)


def _trend(settings: Settings, here: Cast, subject: Subject) -> tuple[bool, str]:
    """Values rise, or fall, from each place to the next."""
    found = _series(subject, settings)
    values = list(found.values())
    sign = 1 if settings["direction"] == "rises" else -1
    against = [
        at
        for at, (one, other) in zip(list(found)[1:], pairwise(values), strict=True)
        if sign * (other - one) <= 0
    ]
    if against:
        return False, f"at {against[0]} {settings['along']} it does not"
    return True, f"it {settings['direction']} from {values[0]:.4g} to {values[-1]:.4g}"


def _steady(settings: Settings, here: Cast, subject: Subject) -> tuple[bool, str]:
    """The largest value over the smallest one stays within a factor."""
    found = scaling.spread(list(_series(subject, settings).values()))
    return found <= settings["within"], f"largest over smallest is {found:.3g}"


def _step(settings: Settings, here: Cast, subject: Subject) -> tuple[bool, str]:
    """The value at the second place is more than a factor above that at the first."""
    found = _series(
        subject, {**settings, "from": min(settings["at"]), "to": max(settings["at"])}, fewest=0
    )
    first, second = (_at(found, place, settings) for place in settings["at"])
    told = f"{first:.4g} at {settings['at'][0]}, {second:.4g} at {settings['at'][1]}"
    return second > settings["factor"] * first, told


def _at(found: Mapping[Any, float], place: Any, settings: Settings) -> float:
    if place not in found:
        raise NotCheckable(
            f"{_told(settings['of'])} was not measured at {place} {settings['along']}"
        )
    return found[place]


def _best_at(settings: Settings, here: Cast, subject: Subject) -> tuple[bool, str]:
    """The best value stands at one place."""
    found = _series(subject, settings)
    _at(found, settings["at"], settings)
    best = (min if _is_lower_better(subject, settings["of"]) else max)(
        found, key=lambda k: found[k]
    )
    return best == settings["at"], f"best at {best} {settings['along']}"


def _dip(settings: Settings, here: Cast, subject: Subject) -> tuple[bool, str]:
    """A curve is lower at one place than at both its neighbours."""
    if "system" in settings:
        subject = here.playing(settings["system"])
    found = _series(subject, settings, fewest=3)
    _at(found, settings["at"], settings)
    dips = curves.dips(found)
    return settings["at"] in dips, f"dips at {', '.join(map(str, dips)) or 'no size'}"


def _linear(settings: Settings, here: Cast, subject: Subject) -> tuple[bool, str]:
    """The values lie on a line."""
    found = curves.line_r_squared(_series(subject, settings, fewest=3))
    return found >= settings["r_squared"], f"R squared is {found:.4f}"


def _beyond(settings: Settings, here: Cast, subject: Subject) -> tuple[bool, str]:
    """Beyond a place the curve gains more per doubling than in the doubling before."""
    found = _series(subject, settings, fewest=3)
    places = list(found)
    if settings["at"] not in places[1:-1]:
        raise NotCheckable(f"there are no sizes on both sides of {settings['at']}")
    middle = places.index(settings["at"])
    before, after = (found[places[k + 1]] - found[places[k]] for k in (middle - 1, middle))
    return after > before, f"{before:+.4g} before it, {after:+.4g} beyond it"


def _bounded(settings: Settings, here: Cast, subject: Subject) -> tuple[bool, str]:
    """The best value, or the ratio of two, is at least or at most a number."""
    best = _best(subject, settings["of"], settings)
    bound = settings.get("value", 1)
    if other := settings.get("over") or settings.get("as_much_as"):
        best /= _best(subject, other, settings)
    held = best >= bound if settings["kind"] == "at least" else best <= bound
    what = "the ratio" if other else "the best"
    return held, f"{what} is {best:.4g}; {settings['kind']} {bound:g} is asked"


def _best(subject: Subject, of: Settings, settings: Settings) -> float:
    values = [figure.value for figure in subject.values(of)]
    if not values:
        raise NotCheckable(f"{_told(of)} was not measured")
    return min(values) if _is_lower_better(subject, of) else max(values)


def _placement_order(settings: Settings, here: Cast, subject: Subject) -> tuple[bool, str]:
    """One placement is better than another."""
    values = []
    for placement in (settings["better"], settings["worse"]):
        found = subject.values(settings["of"], placement=placement, ranks=settings["ranks"])
        if not found:
            raise NotCheckable(f"{_told(settings['of'])} was not measured {placement}")
        values.append(found[0].value)
    lower = _is_lower_better(subject, settings["of"])
    held = values[0] < values[1] if lower else values[0] > values[1]
    return held, f"{values[0]:.4g} {settings['better']}, {values[1]:.4g} {settings['worse']}"


def _pair(settings: Settings, here: Cast, subject: Subject) -> tuple[dict[Any, float], ...]:
    """Return two series at their common places: of two systems, or of two benchmarks of one."""
    if "systems" in settings:
        first, second = (here.playing(name) for name in settings["systems"])
        found = _series(first, settings, fewest=1), _series(second, settings, fewest=1)
    else:
        found = (
            _series(subject, settings, fewest=1),
            _series(subject, settings, of="than", fewest=1),
        )
    common = [at for at in found[0] if at in found[1]]
    if not common:
        raise NotCheckable(f"the two have no {settings['along']} in common")
    return tuple({at: side[at] for at in common} for side in found)


def _ahead(settings: Settings, here: Cast, subject: Subject) -> tuple[bool, str]:
    """One of two is better at every common place, by more and more where it is ``growing``."""
    first, second = _pair(settings, here, subject)
    playing = here.playing(settings["systems"][0]) if "systems" in settings else subject
    sign = -1 if _is_lower_better(playing, settings["of"]) else 1
    leads = {at: sign * (first[at] - second[at]) for at in first}
    behind = [at for at, lead in leads.items() if lead <= 0]
    if behind:
        return False, f"at {behind[0]} {settings['along']} it is behind"
    gaps = list(leads.values())
    if settings.get("growing") and gaps != sorted(gaps):
        return False, "it is ahead, and not by more and more"
    return True, f"it is ahead at all {len(leads)} common values of {settings['along']}"


def _level(settings: Settings, here: Cast, subject: Subject) -> tuple[bool, str]:
    """Two are alike at every common place, within a part of the larger."""
    first, second = _pair(settings, here, subject)
    apart = {at: abs(first[at] - second[at]) / max(first[at], second[at]) for at in first}
    widest = max(apart, key=lambda at: apart[at])
    told = f"they differ by {100 * apart[widest]:.3g} % at {widest} {settings['along']}"
    return apart[widest] <= settings["within"], told


def _order(settings: Settings, here: Cast, subject: Subject) -> tuple[bool, str]:
    """Systems rank as named, from the best, at the largest common place or at every one."""
    names = settings.get("systems") or [
        *([settings["first"]] if "first" in settings else []),
        *settings["others"],
        *([settings["last"]] if "last" in settings else []),
    ]
    playing = {name: here.playing(name) for name in names}
    series = {name: _series(who, settings, fewest=1) for name, who in playing.items()}
    common = sorted(set.intersection(*(set(found) for found in series.values())))
    if not common:
        raise NotCheckable(f"the systems have no {settings['along']} in common")
    lower = _is_lower_better(playing[names[0]], settings["of"])
    sign = 1 if lower and "efficiency" not in settings.get("over", "") else -1
    for at in common[-1:] if settings.get("at") == "largest" else common:
        values = [series[name][at] for name in names]
        if not _ranks(values, sign, settings):
            told = ", ".join(f"{n} {v:.4g}" for n, v in zip(names, values, strict=True))
            return False, f"at {at} {settings['along']}: {told}"
    return True, f"so it is at {', '.join(map(str, common[-3:]))} {settings['along']}"


def _ranks(values: Sequence[float], sign: int, settings: Settings) -> bool:
    """Tell whether the values rank: as a chain, or the first or the last alone against all."""
    if "first" in settings:
        return all(sign * values[0] < sign * other for other in values[1:])
    if "last" in settings:
        return all(sign * values[-1] > sign * other for other in values[:-1])
    factors = settings.get("factor", [1] * (len(values) - 1))
    return all(
        (worse / better if sign > 0 else better / worse) > factor
        for better, worse, factor in zip(values, values[1:], factors, strict=False)
    )


def _rank_correlation(settings: Settings, here: Cast, subject: Subject) -> tuple[bool, str]:
    """Two benchmarks put those who play systems into the same order, or the opposite one."""
    sides: list[list[float]] = [[], []]
    for who in {who.name: who for who in here.roles.values()}.values():
        found = [who.values(settings[side]) for side in ("of", "with")]
        if all(found):
            for side, figures in zip(sides, found, strict=True):
                sign = 1 if figures[0].better is Better.HIGHER else -1
                side.append(max(sign * figure.value for figure in figures))
    found_correlation = comparisons.rank_correlation(*sides)
    return found_correlation >= settings["at_least"], f"rank correlation {found_correlation:.3g}"


_KINDS: Mapping[str, Callable[[Settings, Cast, Subject], tuple[bool, str]]] = {
    "all": _all,
    "trend": _trend,
    "steady": _steady,
    "step": _step,
    "best at": _best_at,
    "dip": _dip,
    "linear": _linear,
    "beyond": _beyond,
    "at least": _bounded,
    "at most": _bounded,
    "placement order": _placement_order,
    "ahead": _ahead,
    "level": _level,
    "order": _order,
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
