"""A derived quantity, as the rows of a report have it. Pure."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from evaluations.derived import DerivedError
from evaluations.evidence import Subject
from evaluations.sampling import paired_launches, plain, sampled_values


@dataclass(frozen=True)
class DerivedRow:
    """A derived quantity with its source in a paper, and what it is for each subject."""

    quantity: str
    source: str
    values: Mapping[str, str]


@dataclass(frozen=True)
class LaunchValue:
    """A quantity of one launch: ``words`` say it, with ``{}`` where its ``value`` stands.

    Only launches of the same ``state`` have values of the same thing.
    """

    words: str
    value: float | None = None
    state: str = ""


def rows_of(
    quantity: str,
    source: str,
    groups: Mapping[str, Sequence[Subject]],
    told: Callable[..., LaunchValue],
) -> list[DerivedRow]:
    """Return a row of what launches tell of groups of subjects, none where it can be told of none.

    ``groups`` are the subjects of which ``told`` tells together, by the name of the column.
    """
    values = {}
    for name, group in groups.items():
        launches = []
        for launch in paired_launches(group):
            try:
                launches.append(told(*launch))
            except DerivedError:
                continue
        if launches:
            values[name] = _in_words(launches)
    return [DerivedRow(quantity, source, values)] if values else []


def separately(subjects: Sequence[Subject]) -> dict[str, Sequence[Subject]]:
    """Return each subject as a group of its own."""
    return {one.name: (one,) for one in subjects}


def _in_words(launches: Sequence[LaunchValue]) -> str:
    """Return the median of launches with its interval; of mere words, in how many they hold."""
    states = [one.state or (one.words if one.value is None else "") for one in launches]
    state, count = Counter(states).most_common(1)[0]
    alike = [one for one, its in zip(launches, states, strict=True) if its == state]
    so = f"so in {count} of {len(launches)} launches" if len(launches) > 1 else "one launch"
    values = [one.value for one in alike if one.value is not None]
    if not values:
        return f"{alike[0].words}; {so}"
    found = sampled_values(values)
    middle = statistics.median_low(values)
    nearest = next(one for one in alike if one.value == middle)
    told = f"{nearest.words.format(plain(found.value))}; {found.remark}"
    return told if count == len(launches) else f"{told}, {so}"
