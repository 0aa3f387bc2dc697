"""Figures that follow from others, by the formulas of the published evaluations. Pure functions.

Each function names its paper and section by the numbers of ``references/published``.
"""

from clustergate.core.figures import DerivedError, require_positive

__all__ = ["DerivedError", "require_positive"]
