"""Figures relative to those of a baseline, as tables of ratios have them. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evaluations.derived import DerivedError, require_positive
from evaluations.evidence import Measured, Subject, Suite
from evaluations.facts import OF_BASELINE
from evaluations.sampling import Sampled, sampled_values


class Launch(NamedTuple):
    """What must be alike of two figures that are related to each other.

    ``settings`` are those that were not their check's own, such as ``flush_bytes=0``.
    """

    processes: int
    layout: str
    settings: str


@dataclass(frozen=True)
class Ratios:
    """What each subject has of a figure relative to the baseline, 1 for that itself.

    Those in ``doubtful`` are ratios of disturbed launches.
    """

    baseline: str
    launch: Launch
    values: Mapping[str, Sampled]
    doubtful: frozenset[str]


def ratios(suite: Suite, subjects: Sequence[Subject], baseline: Subject) -> Ratios:
    """Return how a figure of each subject that measured it stands to that of the baseline.

    All are of one launch: of those that all had, one with the check's own settings, and of these
    the one of the most processes (paper 004, tables 1 to 9, has 128). Where several figures fit,
    such as those of several peers, each is related to its like, launch by launch, and their median
    is told. Raises :class:`DerivedError` where there is nothing to be related.
    """
    found = {one.name: launches for one in subjects if (launches := _by_launch(one, suite))}
    if not found:
        raise DerivedError("not measured in this run")
    if len(subjects) == 1:
        raise DerivedError(
            "one stack alone has nothing to be relative to; run two or more, or name another run"
        )
    if baseline.name not in found:
        raise DerivedError(f"{baseline.name}, which the others are relative to, did not measure it")
    if len(found) == 1:
        raise DerivedError(f"{baseline.name} alone measured it, and is relative to nothing")
    common = set.intersection(*(set(launches) for launches in found.values()))
    if not common:
        raise DerivedError(f"{' and '.join(found)} measured it, but in no launch that is alike")
    launch = max(common, key=lambda one: (not one.settings, one.processes, one.layout))
    figures = {name: launches[launch] for name, launches in found.items()}
    alike = set.intersection(*(set(named) for named in figures.values()))
    if not alike:
        raise DerivedError(f"{' and '.join(found)} measured no figure that is alike")
    is_over = suite.relative == OF_BASELINE
    values = {
        who: _sampled([_sides(of[n], figures[baseline.name][n], swapped=is_over) for n in alike])
        for who, of in figures.items()
    }
    disturbed = {who for who, of in figures.items() if any(of[name].doubt for name in alike)}
    doubtful = figures.keys() if baseline.name in disturbed else disturbed
    return Ratios(baseline.name, launch, values, frozenset(doubtful))


def _sides(one: Measured, other: Measured, *, swapped: bool = False) -> list[tuple[float, float]]:
    """Return the values of launches of two figures, those of the same rounds side by side."""
    common = sorted(one.rounds.keys() & other.rounds.keys())
    pairs = [(one.rounds[run], other.rounds[run]) for run in common] or list(
        zip(one.of_launches or [one.value], other.of_launches or [other.value], strict=False)
    )
    return [(below, above) for above, below in pairs] if swapped else pairs


def _sampled(figures: Sequence[Sequence[tuple[float, float]]]) -> Sampled:
    """Return the ratio of the sides of each launch, of several figures their median."""
    for _, below in (pair for pairs in figures for pair in pairs):
        require_positive(**{"what others are relative to": below})
    launches = zip(*figures, strict=False)
    return sampled_values(
        [statistics.median(above / below for above, below in launch) for launch in launches]
    )


def flushed_ratios(suite: Suite, subjects: Sequence[Subject]) -> dict[str, tuple[Sampled, Launch]]:
    """Return for each subject its figure with flushed caches over that without, and the launch.

    Of several it is the launch of the most processes. Disturbed launches do not count.
    """
    found = {}
    for subject in subjects:
        times: dict[tuple[int, str, str], dict[bool, Measured]] = {}
        for figure in subject.fitting(suite):
            flushed = figure.conditions.get("flush_bytes")
            if flushed is not None and not figure.doubt:
                place = (int(figure.conditions["processes"]), figure.layout, figure.name)
                times.setdefault(place, {})[bool(flushed)] = figure
        if both := {place: of for place, of in times.items() if len(of) == 2}:
            place = max(both)
            sides = _sides(both[place][True], both[place][False])
            found[subject.name] = (_sampled([sides]), Launch(*place[:2], ""))
    return found


def _by_launch(subject: Subject, suite: Suite) -> dict[Launch, dict[str, Measured]]:
    """Return the figures that fit by launch and name; of several, one beyond doubt, the best."""
    found: dict[Launch, dict[str, Measured]] = {}
    for figure in subject.fitting(suite):
        ranks = figure.conditions.get("ranks", 0)
        launch = Launch(
            int(figure.conditions.get("processes", ranks)),
            figure.layout,
            str(figure.conditions.get("settings", "")),
        )
        named = found.setdefault(launch, {})
        known = named.get(figure.name)
        if known is None or figure.goes_before(known):
            named[figure.name] = figure
    return found
