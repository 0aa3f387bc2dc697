"""The figures that a conclusion is about, as subjects measured them, each alone or beside others.

What a criterion asks for is a :class:`Figure`: a benchmark's metric along an axis. Here it becomes
values of launches at places on that axis, or a sentence why it cannot. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from clustergate.core.model import Better
from clustergate.core.notation import counted
from evaluations.derived import ratios, scaling
from evaluations.evidence import COUNTS, HPCC_CHECK, RANDOM_ACCESS, Measured, Shape, Subject

Curve = Mapping[Any, float]
"""Values of one launch by their places on the axis."""


class NotCheckable(Exception):
    """The measurements do not have what a criterion needs; the message says what is missing."""


@dataclass(frozen=True)
class Figure:
    """A metric of a benchmark ``along`` an axis, from ``start`` to ``end`` where these are given.

    ``conditions`` are those of its launch, such as ``ranks``, and its own, such as ``bytes``;
    ``over`` relates the values to the number of processes (:data:`scaling.MODELS`).
    """

    benchmark: str
    metric: str
    along: str = "processes"
    conditions: Mapping[str, Any] = field(default_factory=dict)
    start: float | None = None
    end: float | None = None
    over: str = ""

    def between(self, start: float | None = None, end: float | None = None) -> Figure:
        """Return the same from one place on the axis to another."""
        return replace(self, start=start, end=end)

    def where(self, **conditions: Any) -> Figure:
        """Return the same under further conditions."""
        return replace(self, conditions={**self.conditions, **conditions})

    def per(self, model: str) -> Figure:
        """Return the same, related to the number of processes by one of the models."""
        return replace(self, over=model)

    @property
    def asked(self) -> dict[str, Any]:
        """Return what is asked of :meth:`Subject.values`."""
        return {"benchmark": self.benchmark, "metric": self.metric, **self.conditions}

    @property
    def about(self) -> str:
        """Return the benchmark and the message size."""
        size = f" of {self.conditions['bytes']} bytes" if "bytes" in self.conditions else ""
        return f"{self.benchmark}{size}"

    def __str__(self) -> str:
        size = [f"of {self.conditions['bytes']} bytes"] if "bytes" in self.conditions else []
        told = {k: v for k, v in self.conditions.items() if k != "bytes"}
        others = [f"without {k}" if v == "" else f"{k}={v}" for k, v in told.items()]
        return " ".join([self.benchmark, self.metric, *size, *others])

    def values(self, subject: Subject) -> list[Measured]:
        """Return what a subject measured of it, whatever its place."""
        return subject.values(self.asked)

    def is_lower_better(self, subject: Subject) -> bool:
        """Tell whether less is better: not of an efficiency, be it of times."""
        found = self.values(subject)
        return bool(found) and found[0].better is Better.LOWER and "efficiency" not in self.over

    def _within(self, series: Curve) -> Curve:
        start, end = self.start, self.end
        return {
            at: value
            for at, value in series.items()
            if (start is None or start <= at) and (end is None or at <= end)
        }

    def curve(self, subject: Subject, shape: Shape | None = None) -> Curve:
        """Return its values along the axis, of those launches that are of one shape."""
        return self._within(subject.series(self.asked, self.along, shape))


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

    def absent(self, systems: Sequence[str]) -> list[str]:
        """Return the sentence that names whom of systems nothing here stands for, if any."""
        absent = [name for name in systems if name not in self.roles]
        more = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
        return [f"nothing here stands for {absent[0]}{more}"] if absent else []


def launch_curves(
    subject: Subject, figure: Figure, fewest: int = 2, shape: Shape | None = None
) -> list[Curve]:
    """Return the values of a figure along its axis, of each launch that has them all.

    Raises :class:`NotCheckable` for fewer places than it takes.
    """
    found: list[Curve] = []
    if figure.along != "bytes":
        refuse_sizes(subject, figure)
    for launch in subject.by_launch:
        curve = figure.curve(launch, shape)
        if figure.over in scaling.MODELS:
            curve = scaling.scaled(curve, figure.over)
        if not found and len(curve) < fewest:
            raise _too_few(subject, figure, fewest, shape, curve)
        if found and curve.keys() != found[0].keys():
            break
        if not found and fewest:
            _refuse_gap(curve, figure)
        found.append(curve)
    return found


def _too_few(
    subject: Subject, figure: Figure, fewest: int, shape: Shape | None, curve: Curve
) -> NotCheckable:
    # Idle nodes do not help where it was not launched at enough places.
    places = figure.curve(subject.beyond_doubt, shape)
    is_enough = len(places) >= fewest
    if is_enough:
        refuse_disturbed(subject, figure)
    ends = [("from", figure.start), ("to", figure.end)]
    told = [f"{word} {end:.10g}" for word, end in ends if end is not None]
    wanted = " ".join(["", *told, figure.along]) if told else ""
    few = curve if is_enough else places
    at_few = f"was measured at {counted(len(few), place_of(figure.along))}{wanted}"
    least = f"{at_few}, and it takes {fewest}" if few else f"was not measured{wanted}"
    elsewhere = "; elsewhere its launches were disturbed, so run again on idle nodes"
    return NotCheckable(f"{figure} {least}{elsewhere if is_enough else ''}")


def _refuse_gap(places: Collection[Any], figure: Figure) -> None:
    """Raise :class:`NotCheckable` where message sizes do not reach the ends of a figure.

    Those of a process series do not on a small machine, for which a conclusion is scaled.
    """
    if figure.along != "bytes" or not places:
        return
    for word, wanted, near in (
        ("from", figure.start, min(places)),
        ("to", figure.end, max(places)),
    ):
        end = near if wanted is None else wanted
        if max(end, near) > 2 * min(end, near):
            raise NotCheckable(f"it goes {word} {end} bytes, and what is here {word} {near}")


def refuse_disturbed(subject: Subject, figure: Figure) -> None:
    """Raise :class:`NotCheckable` where what is asked for was measured, and decides nothing."""
    if subject.is_disturbed(figure.asked):
        raise NotCheckable(f"{figure}: its launches were disturbed; run again on idle nodes")


def refuse_sizes(subject: Subject, figure: Figure) -> None:
    """Raise :class:`NotCheckable` where several message sizes would stand for one another."""
    sizes = {one.conditions.get("bytes") for one in figure.values(subject)}
    if len(sizes) > 1:
        raise NotCheckable(
            f"{figure} was measured with {len(sizes)} message sizes; name one in the test, "
            "such as bytes: 8"
        )


def _refuse_mixed(subjects: Sequence[Subject]) -> None:
    """Raise :class:`NotCheckable` where the RandomAccess of some is another benchmark."""
    versions = {one.name: one.version_of.get(HPCC_CHECK, "") for one in subjects}
    if len({ratios.random_access_of(version) for version in versions.values()}) > 1:
        told = ", ".join(f"{name} ({version})" for name, version in versions.items())
        raise NotCheckable(f"RandomAccess is not the same benchmark in these runs: {told}")


def common_curves(
    sides: Sequence[tuple[Subject, Figure]], fewest: int = 1
) -> tuple[list[list[Curve]], dict[str, bool]]:
    """Return the curves of several, at the places and of the most processes that all measured.

    The sides are subjects with what is compared of them, along one axis. With the curves is told
    how their launches lie to each other, as :class:`~evaluations.inference.Claim` has it. Of those
    that were launched in turn, only the rounds in which all has been measured count; of several
    placements those that all have, since the best one of each would compare a network with memory.
    """
    if any(figure.metric in RANDOM_ACCESS for _, figure in sides):
        _refuse_mixed([who for who, _ in sides])
    first = sides[0][1]
    is_of_counts = first.along in COUNTS
    shapes = [who.shapes(figure.asked, first.along) for who, figure in sides]
    common = set.intersection(*shapes)
    told = "they were measured with no number of processes and nodes in common"
    if all(shapes) and not common and not is_of_counts:
        raise NotCheckable(told)
    shape = None if is_of_counts else max(common, default=None)
    asked = [
        [one for one in figure.values(who) if shape in (None, one.shape)] for who, figure in sides
    ]
    launched = [{one.launch for one in of} for of in asked]
    launches = set.intersection(*launched)
    if all(launched) and not launches:
        raise NotCheckable(told)
    asked = [[one for one in of if one.launch in launches] for of in asked]
    rounds = _common_rounds(asked)
    in_turn = len({who.name for who, _ in sides}) > 1 and len(rounds) > 1
    how = {
        "apart": not in_turn and _are_apart(sides, asked),
        "in_turn": in_turn,
        "times": first.is_lower_better(sides[0][0]),
    }
    found = []
    for (who, figure), mine in zip(sides, launched, strict=True):
        alike = who.launched_as(launches) if launches < mine else who
        player = alike.in_rounds(rounds) if in_turn else alike.undisturbed
        alike_axis = replace(figure, start=first.start, end=first.end, over=first.over)
        found.append(launch_curves(player, alike_axis, 1, shape))
    # Of nothing that is moved there is no ratio.
    every = [curve for side in found for curve in side]
    places = [at for at in found[0][0] if all(curve.get(at, 0.0) > 0.0 for curve in every)]
    if len(places) < fewest:
        common_places = counted(len(places), place_of(first.along))
        raise NotCheckable(f"they have {common_places} in common, and it takes {fewest}")
    _refuse_gap(places, first)
    how["in_turn"] = in_turn and len({len(side) for side in found}) == 1
    return [[{at: curve[at] for at in places} for curve in side] for side in found], how


def _common_rounds(asked: Sequence[Sequence[Measured]]) -> frozenset[str]:
    """Return the rounds in which all of several sides were measured."""
    if not all(any(one.rounds for one in of) for of in asked):
        return frozenset()
    return frozenset.intersection(
        *(frozenset(one.rounds) for of in asked for one in of if one.rounds)
    )


def _are_apart(
    sides: Sequence[tuple[Subject, Figure]], asked: Sequence[Sequence[Measured]]
) -> bool:
    """Tell whether the figures asked for are of the launches of different runs."""
    of_figures = [frozenset(run for one in of for run in one.runs) for of in asked]
    return len({of or who.runs for of, (who, _) in zip(of_figures, sides, strict=True)}) > 1


_PLACES = {"processes": "process count", "bytes": "message size", "peer": "partner", "p": "grid"}


def place_of(along: str) -> str:
    """Return what a place on an axis is called."""
    return _PLACES.get(along, f"value of {along}")
