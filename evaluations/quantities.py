"""Quantities that papers derive from several figures: sampled launch by launch, with intervals.

The ``kind`` of a printed value's ``derived`` names a function below; it computes the value, in the
unit that was printed, from a subject whose figures are those of one launch. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from clustergate.core.model import Better
from evaluations.derived import DerivedError, curves, require_positive, scaling
from evaluations.evidence import Shape, Subject
from evaluations.facts import WHY_NOT, PrintedValue
from evaluations.growth import (
    hpccg_efficiency_percent,
    penalty_of,
    smallest_efficiency_percent,
)
from evaluations.sampling import NoneThere, Sampled, sample_quantity

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Here:
    """A subject, and who plays the paper's systems."""

    subject: Subject
    roles: Mapping[str, Subject] = field(default_factory=dict)

    def playing(self, system: str) -> Subject:
        """Return who plays a system; raises :class:`DerivedError` when nobody does."""
        if system not in self.roles:
            raise DerivedError(f"nothing here stands for {system}")
        return self.roles[system]


def sampled(derived: Settings, here: Here, *, mean: bool = False) -> Sampled:
    """Return a derived quantity; raises :class:`DerivedError` where no launch has it."""
    kind = KINDS[derived["kind"]]
    # Who does not take part has launches of his own.
    named = sorted({*derived.get("of", ()), *derived.get("over", ())})
    # What disturbs a round disturbs all who are compared in it.
    subject = here.subject if named else here.subject.undisturbed

    def of_launch(subject: Subject, *players: Subject) -> float:
        return kind(derived, Here(subject, dict(zip(named, players, strict=True))))

    return sample_quantity(of_launch, [subject, *map(here.playing, named)], mean=mean)


def _figures(settings: Settings) -> dict[str, Any]:
    named = ("benchmark", "metric", "bytes", "ranks", "problem_class", "kernel", "call")
    return {key: settings[key] for key in named if key in settings}


def _curve(settings: Settings, subject: Subject, shape: Shape | None = None) -> dict[int, float]:
    found = subject.series(_figures(settings), settings.get("along", "bytes"), shape)
    if len(found) < 3:
        raise DerivedError(f"{settings['benchmark']} was not measured at three sizes")
    return {at: value for at, value in found.items() if at > 0}


def _shape(settings: Settings, here: Here) -> Shape:
    """Return who took part in what all the players measured, of the most processes."""
    shapes = []
    for name in (*settings["of"], *settings["over"]):
        shapes.append({one.shape for one in here.playing(name).values(_figures(settings))})
        if not shapes[-1]:
            raise DerivedError(f"{settings['benchmark']} was not measured")
    if not (common := set.intersection(*shapes)):
        raise DerivedError(
            f"{settings['benchmark']} was measured with no number of processes and nodes in common"
        )
    return max(common)


def _one(settings: Settings, subject: Subject, shape: Shape) -> tuple[float, Better]:
    """Return the best value of those who took part."""
    found = [one for one in subject.values(_figures(settings)) if one.shape == shape]
    better = found[0].better
    return (min if better is Better.LOWER else max)(one.value for one in found), better


def _ratio(settings: Settings, here: Here) -> float:
    """Return the best of the systems ``over`` over the worst of the systems ``of``."""
    shape = _shape(settings, here)
    sides = [
        [_one(settings, here.playing(name), shape) for name in settings[side]]
        for side in ("of", "over")
    ]
    lower = sides[0][0][1] is Better.LOWER
    of, over = ([value for value, _ in side] for side in sides)
    require_positive(**{f"{settings['benchmark']} of each system": min(*of, *over)})
    return min(over) / max(of) if lower else min(of) / max(over)


def _gain(settings: Settings, here: Here) -> float:
    """Return by how many percent the system ``of`` is better than that it is set ``over``."""
    return 100 * (_ratio(settings, here) - 1)


def _loss(settings: Settings, here: Here) -> float:
    """Return by how many percent the system ``over`` is worse than that it is compared with."""
    return 100 * (1 - 1 / _ratio(settings, here))


def _difference(settings: Settings, here: Here) -> float:
    [of], [over] = settings["of"], settings["over"]
    sides = (_one(settings, here.playing(name), _shape(settings, here)) for name in (over, of))
    slow, fast = (value for value, _ in sides)
    return slow - fast


def _dip_size(settings: Settings, here: Here) -> float:
    """Return where a curve is lowest beside its neighbours."""
    curve = _curve(settings, here.subject)
    dips = curves.dips(curve)
    if not dips:
        raise NoneThere(f"{settings['benchmark']} has no dip")
    places = sorted(curve)

    def left(size: int) -> float:
        at = places.index(size)
        beside = min(curve[places[at - 1]], curve[places[at + 1]])
        return curve[size] / beside if beside else math.inf

    return float(min(dips, key=left))


def _switch_size(settings: Settings, here: Here) -> float:
    found = curves.switch_points(_curve(settings, here.subject))
    if not found:
        raise NoneThere(f"{settings['benchmark']} goes on smoothly")
    return float(found[0])


def _plunge_size(settings: Settings, here: Here) -> float:
    """Return the size before which a curve falls most."""
    curve = _curve(settings, here.subject)
    steps = {at: curve[at] - curve[before] for before, at in pairwise(sorted(curve))}
    deepest = min(steps, key=lambda at: steps[at])
    if steps[deepest] >= 0:
        raise NoneThere(f"{settings['benchmark']} never falls")
    return float(deepest)


def _two(settings: Settings, here: Here) -> tuple[dict[int, float], dict[int, float], bool]:
    [of], [over] = settings["of"], settings["over"]
    shape = _shape(settings, here)
    mine, other = (_curve(settings, here.playing(name), shape) for name in (of, over))
    lower = here.playing(of).values(_figures(settings))[0].better is Better.LOWER
    return mine, other, lower


def _place(found: int | None, words: str) -> float:
    if found is None:
        raise NoneThere(f"{words} at no size")
    return float(found)


def _alike_from(settings: Settings, here: Here) -> float:
    mine, other, _ = _two(settings, here)
    return _place(curves.from_where_alike(mine, other, 0.05), "they are alike")


def _ahead_from(settings: Settings, here: Here) -> float:
    """Return the size from which the first is ahead, to the largest size."""
    mine, other, lower = _two(settings, here)
    return _place(curves.from_where_ahead(mine, other, lower_is_better=lower), "it is ahead")


def _lead(settings: Settings, here: Here) -> list[int]:
    mine, other, lower = _two(settings, here)
    sizes = sorted(set(mine) & set(other))
    runs: list[list[int]] = [[]]
    for size in sizes:
        if mine[size] < other[size] if lower else mine[size] > other[size]:
            runs[-1].append(size)
        else:
            runs.append([])
    return max(runs, key=len)


def _lead_begins(settings: Settings, here: Here) -> float:
    return _place(min(_lead(settings, here), default=None), "it is ahead")


def _lead_ends(settings: Settings, here: Here) -> float:
    return _place(max(_lead(settings, here), default=None), "it is ahead")


def _hpl_efficiency_falls(settings: Settings, here: Here) -> float:
    of = {"benchmark": "HPL_Tflops", "metric": "HPL_Tflops"}
    rates = scaling.scaled(here.subject.series(of, "ranks"), "p")
    if len(rates) < 2:
        raise DerivedError("HPCC was measured on one number of processes")
    return -scaling.relative_change_percent(rates[min(rates)], rates[max(rates)])


KINDS: Mapping[str, Callable[[Settings, Here], float]] = {
    "HPCCG weak efficiency": lambda _, here: hpccg_efficiency_percent(here.subject),
    "smallest efficiency": lambda _, here: smallest_efficiency_percent(here.subject),
    "penalty of no power of two": lambda _, here: penalty_of(here.subject).us,
    "fall of HPL efficiency": _hpl_efficiency_falls,
    "dip size": _dip_size,
    "switch size": _switch_size,
    "plunge size": _plunge_size,
    "ratio": _ratio,
    "gain": _gain,
    "loss": _loss,
    "difference": _difference,
    "alike from": _alike_from,
    "ahead from": _ahead_from,
    "lead begins": _lead_begins,
    "lead ends": _lead_ends,
}


def why_not(value: PrintedValue) -> str:
    """Return why nothing stands beside a printed value that no figure is the same quantity as."""
    return value.not_here or WHY_NOT[value.category]


def subjects_asked(
    derived: Settings, subjects: Sequence[Subject], roles: Mapping[str, Subject]
) -> Sequence[Subject]:
    """Return the subjects of which a derived quantity is asked: who plays the first named one."""
    named = list(derived.get("of", ()))
    return [roles[name] for name in named[:1] if name in roles] if named else subjects
