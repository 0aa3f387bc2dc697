"""A derived quantity, as the rows of a report have it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class DerivedRow:
    """A derived quantity with its source in a paper, and what it is for each subject."""

    quantity: str
    source: str
    values: Mapping[str, str]
