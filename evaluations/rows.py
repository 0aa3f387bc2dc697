"""A derived quantity, as the rows of a report have it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from evaluations.derived import DerivedError
from evaluations.evidence import Subject


@dataclass(frozen=True)
class DerivedRow:
    """A derived quantity with its source in a paper, and what it is for each subject."""

    quantity: str
    source: str
    values: Mapping[str, str]


def rows_of(
    quantity: str, source: str, subjects: Sequence[Subject], told: Callable[[Subject], str]
) -> list[DerivedRow]:
    """Return a row of what can be told of the subjects, none where it can be told of none."""
    values = {}
    for subject in subjects:
        try:
            values[subject.name] = told(subject)
        except DerivedError:
            continue
    return [DerivedRow(quantity, source, values)] if values else []
