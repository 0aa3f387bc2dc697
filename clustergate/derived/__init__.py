"""Figures that follow from others, by the formulas of the published evaluations. Pure functions.

Each function names its paper and section by the numbers of ``references/published``.
"""

from __future__ import annotations

from clustergate.model import ClustergateError


class DerivedError(ClustergateError):
    """A figure does not follow from what was given."""


def require_positive(**named: float) -> None:
    """Raise :class:`DerivedError` that names the first argument that is not above 0."""
    for name, value in named.items():
        if not value > 0:
            raise DerivedError("derived.not-positive", name=name, value=value)
