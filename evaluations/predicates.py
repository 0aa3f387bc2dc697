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

from clustergate.benchmarks.hpcc import balance
from clustergate.derived import DerivedError, comparisons, curves, scaling
from clustergate.model import Better
from evaluations.evidence import COUNTS, HPCC_CHECK, RANDOM_ACCESS, Shape, Subject
from evaluations.facts import Paper, Predicate

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


_COMPARING = ("system", "systems", "groups", "others", "with")


def _is_of_systems(settings: Settings) -> bool:
    return any(name in settings for name in _COMPARING) or (
        settings["kind"] == "all" and all(_is_of_systems(part) for part in settings["parts"])
    )


def _run(settings: Settings, here: Cast, subject: Subject) -> tuple[bool, str]:
    if "system" in settings:
        subject = here.playing(settings["system"])
    return _KINDS[settings["kind"]](settings, here, subject)


# --- tests of measurements --------------------------------------------------------------------


def _limits(settings: Settings) -> dict[str, Any]:
    return {key: settings[key] for key in ("ranks", "processes", "placement") if key in settings}


def _series(
    subject: Subject,
    settings: Settings,
    of: str = "of",
    fewest: int = 2,
    shape: Shape | None = None,
) -> dict[Any, float]:
    """Return the values of a test along its axis; raises :class:`NotCheckable` for too few."""
    along = settings["along"]
    found = {
        at: value
        for at, value in subject.series(settings[of], along, shape, **_limits(settings)).items()
        if settings.get("from", at) <= at <= settings.get("to", at)
    }
    if settings.get("over"):
        found = scaling.scaled(found, settings["over"])
    if len(found) < fewest:
        _refuse_disturbed(subject, settings[of], **_limits(settings))
        named = _told(settings[of])
        wanted = "".join(
            f" {word} {settings[word]:g}" for word in ("from", "to") if word in settings
        )
        raise NotCheckable(
            f"{named} was measured at {len(found)} values of {along}{wanted}, and it takes {fewest}"
        )
    return found


def _refuse_disturbed(subject: Subject, of: Settings, **limits: Any) -> None:
    """Raise :class:`NotCheckable` where what is asked for was measured, and decides nothing."""
    if subject.is_disturbed(of, **limits):
        raise NotCheckable(f"{_told(of)}: its launches were disturbed; run again on idle nodes")


def _refuse_mixed(subjects: Sequence[Subject]) -> None:
    """Raise :class:`NotCheckable` where the RandomAccess of some is another benchmark."""
    versions = {one.name: one.version_of.get(HPCC_CHECK, "") for one in subjects}
    if len({balance.random_access_of(version) for version in versions.values()}) > 1:
        told = ", ".join(f"{name} ({version})" for name, version in versions.items())
        raise NotCheckable(f"RandomAccess is not the same benchmark in these runs: {told}")


def _series_alike(
    sides: Sequence[tuple[Subject, str]], settings: Settings, fewest: int = 1
) -> list[dict[Any, float]]:
    """Return the values of several along one axis: of the most processes that all measured.

    The sides are subjects with what of the settings is compared of them.
    """
    if any(settings[of]["metric"] in RANDOM_ACCESS for _, of in sides):
        _refuse_mixed([who for who, _ in sides])
    shapes = [who.shapes(settings[of], settings["along"], **_limits(settings)) for who, of in sides]
    common = set.intersection(*shapes)
    if all(shapes) and not common and settings["along"] not in COUNTS:
        raise NotCheckable("they were measured with no number of processes and nodes in common")
    shape = max(common, default=None)
    return [_series(who, settings, of, fewest, shape) for who, of in sides]


def _told(of: Settings) -> str:
    conditions = [f"{k}={v}" for k, v in of.items() if k not in ("benchmark", "metric")]
    return " ".join([f"{of['benchmark']} {of['metric']}", *conditions])


def _is_lower_better(subject: Subject, of: Settings) -> bool:
    values = subject.values(of)
    return bool(values) and values[0].better is Better.LOWER


def _all(settings: Settings, here: Cast, subject: Subject) -> tuple[bool, str]:
    """All parts hold; what a part needs and is missing is said, the others decide."""
    held, told, missing = [], [], []
    about = [part.get("of", {}).get("benchmark", "") for part in settings["parts"]]
    for part, benchmark in zip(settings["parts"], about, strict=True):
        try:
            holds, sentence = _run(part, here, subject)
        except (NotCheckable, DerivedError) as reason:
            missing.append(str(reason))
            continue
        held.append(holds)
        told.append(f"{benchmark}: {sentence}" if benchmark and len({*about}) > 1 else sentence)
    if not held or (all(held) and missing):
        raise NotCheckable("; ".join(dict.fromkeys([*told, *missing])))
    return all(held), "; ".join(told)


def _each(settings: Settings, here: Cast, subject: Subject) -> tuple[bool, str]:
    """A part holds of each value of a condition, such as of each number of processes."""
    by, part = settings["by"], settings["part"]
    figures = subject.values(part["of"], **_limits(part))
    places = sorted({figure.conditions[by] for figure in figures if by in figure.conditions})
    if not places:
        _refuse_disturbed(subject, part["of"], **_limits(part))
        raise NotCheckable(f"{_told(part['of'])} was not measured so")
    found = {at: _run({**part, by: at}, here, subject) for at in places}
    told = "; ".join(f"{by} {at}: {sentence}" for at, (_, sentence) in found.items())
    return all(holds for holds, _ in found.values()), told


def _open(settings: Settings, here: Cast, subject: Subject) -> tuple[bool, str]:
    """A part that no measurement decides, so that the whole cannot be said to hold."""
    raise NotCheckable(settings["because"])


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
    if not found:
        _refuse_disturbed(subject, settings["of"], **_limits(settings))
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
    bound = settings.get("value", 1)
    other = settings.get("over") or settings.get("as_much_as")
    best = _best(subject, settings["of"], settings, other)
    if other:
        best /= _best(subject, other, settings, settings["of"])
    held = best >= bound if settings["kind"] == "at least" else best <= bound
    what = "the ratio" if other else "the best"
    return held, f"{what} is {best:.4g}; {settings['kind']} {bound:g} is asked"


def _best(
    subject: Subject, of: Settings, settings: Settings, like: Settings | None = None
) -> float:
    """Return the best value, of the largest launch that what it is to be ``like`` has, too."""
    figures = subject.values(of, **_limits(settings))
    if like is not None:
        both = {f.launch for f in figures} & {
            f.launch for f in subject.values(like, **_limits(settings))
        }
        if figures and not both:
            raise NotCheckable(f"{_told(of)} and {_told(like)} were measured in no launch alike")
        figures = [figure for figure in figures if figure.launch == max(both)]
    if not figures:
        _refuse_disturbed(subject, of, **_limits(settings))
        raise NotCheckable(f"{_told(of)} was not measured")
    values = [figure.value for figure in figures]
    return min(values) if _is_lower_better(subject, of) else max(values)


def _placement_order(settings: Settings, here: Cast, subject: Subject) -> tuple[bool, str]:
    """One placement is better than another."""
    values = []
    for placement in (settings["better"], settings["worse"]):
        found = subject.values(settings["of"], placement=placement, ranks=settings["ranks"])
        if not found:
            _refuse_disturbed(subject, settings["of"], placement=placement, ranks=settings["ranks"])
            raise NotCheckable(f"{_told(settings['of'])} was not measured {placement}")
        values.append(found[0].value)
    lower = _is_lower_better(subject, settings["of"])
    held = values[0] < values[1] if lower else values[0] > values[1]
    return held, f"{values[0]:.4g} {settings['better']}, {values[1]:.4g} {settings['worse']}"


def _pair(settings: Settings, here: Cast, subject: Subject) -> tuple[dict[Any, float], ...]:
    """Return series at their common places: of systems, or of two benchmarks of one."""
    if "systems" in settings:
        sides = [(here.playing(name), "of") for name in settings["systems"]]
    else:
        sides = [(subject, "of"), (subject, "than")]
    found = _series_alike(sides, settings)
    common = [at for at in found[0] if all(at in side for side in found)]
    if not common:
        raise NotCheckable(f"they have no {settings['along']} in common")
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


def _widest(settings: Settings, here: Cast, subject: Subject) -> tuple[bool, str]:
    """The first of two is above the second by its largest factor between two places."""
    first, second = _pair(settings, here, subject)
    factors = {at: first[at] / second[at] for at in first}
    widest = max(factors, key=lambda at: factors[at])
    low, high = settings["between"]
    return low <= widest <= high, f"largest factor is {factors[widest]:.3g}, at {widest}"


def _level(settings: Settings, here: Cast, subject: Subject) -> tuple[bool, str]:
    """Two, or all ``systems``, are alike at every common place, within a part of the largest."""
    sides = _pair(settings, here, subject)
    values = {at: [side[at] for side in sides] for at in sides[0]}
    apart = {at: (max(found) - min(found)) / max(found) for at, found in values.items()}
    widest = max(apart, key=lambda at: apart[at])
    told = f"they differ by {100 * apart[widest]:.3g} % at {widest} {settings['along']}"
    return apart[widest] <= settings["within"], told


def _order(settings: Settings, here: Cast, subject: Subject) -> tuple[bool, str]:
    """Systems rank as named, from the best: at an end of what is common to them, or everywhere.

    They rank one by one (``systems``), by ``groups`` whose members may stand as they like, or the
    ``first`` or the ``last`` is apart from the ``others``. With ``spread`` it is how little each
    one's values vary that ranks.
    """
    groups = _groups(settings)
    names = [name for group in groups for name in group]
    playing = {name: here.playing(name) for name in names}
    found = _series_alike([(who, "of") for who in playing.values()], settings)
    series = dict(zip(names, found, strict=True))
    common = sorted(set.intersection(*(set(one) for one in found)))
    if not common:
        raise NotCheckable(f"the systems have no {settings['along']} in common")
    if settings.get("spread"):
        if len(common) < 2:
            raise NotCheckable(f"one value of {settings['along']} does not vary")
        spreads = {n: scaling.spread([one[at] for at in common]) for n, one in series.items()}
        told = ", ".join(f"{name} {value:.4g}" for name, value in spreads.items())
        return _ranks(groups, spreads, settings, sign=1), f"largest over smallest: {told}"
    lower = _is_lower_better(playing[names[0]], settings["of"])
    sign = 1 if lower and "efficiency" not in settings.get("over", "") else -1
    ends = {"largest": common[-1:], "smallest": common[:1]}
    for at in ends.get(settings.get("at", ""), common):
        if not _ranks(groups, {name: series[name][at] for name in names}, settings, sign):
            told = ", ".join(f"{name} {series[name][at]:.4g}" for name in names)
            return False, f"at {at} {settings['along']}: {told}"
    shown = ends.get(settings.get("at", ""), common)[-3:]
    return True, f"so it is at {', '.join(map(str, shown))} {settings['along']}"


def _groups(settings: Settings) -> list[list[str]]:
    """Return the systems of an order in groups, each to be ahead of all that follow it."""
    if "groups" in settings:
        return [list(group) for group in settings["groups"]]
    if "first" in settings:
        return [[settings["first"]], list(settings["others"])]
    if "last" in settings:
        return [list(settings["others"]), [settings["last"]]]
    return [[name] for name in settings["systems"]]


def _ranks(
    groups: Sequence[Sequence[str]], values: Mapping[str, float], settings: Settings, sign: int
) -> bool:
    """Tell whether each of a group is ahead of each of the next, by a factor where one is set."""
    factors = settings.get("factor", [1] * (len(groups) - 1))
    return all(
        (values[worse] / values[better] if sign > 0 else values[better] / values[worse]) > factor
        for ahead, behind, factor in zip(groups, groups[1:], factors, strict=False)
        for better in ahead
        for worse in behind
    )


def _smaller_lead(settings: Settings, here: Cast, subject: Subject) -> tuple[bool, str]:
    """One system is ahead of the best of others by less in one benchmark than in another.

    It is, with the most processes that all measured, by a ``factor`` of the two ratios.
    """
    who = [here.playing(name) for name in (settings["system"], *settings["others"])]
    leads = []
    for of in ("of", "than"):
        found = _series_alike([(one, of) for one in who], settings)
        common = set.intersection(*(set(one) for one in found))
        if not common:
            raise NotCheckable(f"the systems have no {settings['along']} in common")
        mine, *others = (one[max(common)] for one in found)
        leads.append(min(others) / mine)
    told = f"ahead {leads[0]:.3g} times, and {leads[1]:.3g} times in {_told(settings['than'])}"
    return leads[0] * settings["factor"] < leads[1], told


def _rank_correlation(settings: Settings, here: Cast, subject: Subject) -> tuple[bool, str]:
    """Two benchmarks put those who play systems into the same order, or the opposite one."""
    players = {who.name: who for who in here.roles.values()}.values()
    playing = [who for who in players if all(who.values(settings[side]) for side in ("of", "with"))]
    sides: list[list[float]] = []
    for side in ("of", "with"):
        of = settings[side]
        found = [who.series(of, "processes") or who.series(of, "ranks") for who in playing]
        common = set.intersection(*(set(one) for one in found)) if found else set()
        if found and not common:
            raise NotCheckable(f"{_told(of)}: the systems have no number of processes in common")
        sign = -1 if found and _is_lower_better(playing[0], of) else 1
        sides.append([sign * one[max(common)] for one in found])
    found_correlation = comparisons.rank_correlation(*sides)
    return found_correlation >= settings["at_least"], f"rank correlation {found_correlation:.3g}"


_KINDS: Mapping[str, Callable[[Settings, Cast, Subject], tuple[bool, str]]] = {
    "all": _all,
    "each": _each,
    "open": _open,
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
    "widest": _widest,
    "level": _level,
    "order": _order,
    "smaller lead": _smaller_lead,
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
