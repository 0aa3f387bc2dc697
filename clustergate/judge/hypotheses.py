"""What may have become slower: sets of figures, from a kind in all stacks to one size. Pure."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

from clustergate.judge.kinds import FigureId

# Neighbouring sizes of which a protocol may be slower.
_WINDOWS = (2, 3)


@dataclass(frozen=True)
class Hypothesis:
    """That some figures became slower: their places, behind the level and a name of the set."""

    level: str
    name: str
    places: tuple[int, ...]


_LEVELS: tuple[tuple[str, Callable[[FigureId], Hashable], Callable[[FigureId], str]], ...] = (
    ("kind", lambda f: (f.case[1], f.kind), lambda f: f.kind),
    ("stack", lambda f: (f.case[1], f.stack), lambda f: f.stack),
    ("kind of a stack", lambda f: (f.case[1], f.stack, f.kind), lambda f: f"{f.kind}, {f.stack}"),
    ("benchmark", lambda f: (f.case[0], f.case[1], f.benchmark), lambda f: f.benchmark),
    ("benchmark of a case", lambda f: (f.case, f.benchmark), lambda f: f.benchmark),
)


def hypotheses(figures: Sequence[FigureId]) -> list[Hypothesis]:
    """Return what may have become slower among some figures, each set of them once.

    It is of the first of its levels, and has the closest name.
    """
    distinct: dict[tuple[int, ...], Hypothesis] = {}
    for one in _sets(figures):
        level = distinct.get(one.places, one).level
        distinct[one.places] = Hypothesis(level, one.name, one.places)
    for one in _neighbours(figures):
        distinct.setdefault(one.places, one)
    return list(distinct.values())


def called(one: Hypothesis, figures: Sequence[FigureId]) -> str:
    """Return how a set is called beside those of other stacks, such as ``PingPong with mpich``."""
    of_set, of_all = (
        {x.stack for x in some} for some in ([figures[p] for p in one.places], figures)
    )
    if len(of_set) > 1 or len(of_all) < 2 or any(stack in one.name for stack in of_set):
        return one.name
    return f"{one.name} with {of_set.pop()}"


def _sets(figures: Sequence[FigureId]) -> Iterator[Hypothesis]:
    for level, key, name in _LEVELS:
        by_key: dict[Hashable, list[int]] = {}
        for place, figure in enumerate(figures):
            by_key.setdefault(key(figure), []).append(place)
        for places in by_key.values():
            yield Hypothesis(level, name(figures[places[0]]), tuple(places))


def _neighbours(figures: Sequence[FigureId]) -> Iterator[Hypothesis]:
    curves: dict[Hashable, list[int]] = {}
    for place, figure in enumerate(figures):
        if figure.size_bytes >= 0:
            key = (figure.case, figure.benchmark, figure.metric)
            curves.setdefault(key, []).append(place)
    for curve in curves.values():
        curve.sort(key=lambda place: figures[place].size_bytes)
        for width in _WINDOWS:
            for first in range(len(curve) - width + 1):
                places = curve[first : first + width]
                begin, end = figures[places[0]], figures[places[-1]]
                name = f"{begin.name} to {end.size_bytes} B, {begin.stack}"
                yield Hypothesis("sizes", name, tuple(sorted(places)))
    for place, figure in enumerate(figures):
        yield Hypothesis("figure", f"{figure.name}, {figure.stack}", (place,))
