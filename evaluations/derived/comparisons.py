"""Several configurations or machines beside each other: sensitivities, correlations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import scipy

from clustergate.core.reasons import Words
from evaluations.derived import DerivedError

SAME_COMPONENT = Words(
    "derived.same-component",
    "the component is the same in both",
    cause="nothing is sensitive to it",
)


def elasticity(gain_percent: float, component_gain_percent: float) -> float:
    """Return a benchmark's gain over that of the one component that was changed, both in percent.

    Paper 003, sections 7 and 8.2: 16.7 % for a third more network are 0.5.
    """
    if component_gain_percent == 0:
        raise DerivedError(SAME_COMPONENT())
    return gain_percent / component_gain_percent


NO_COMPONENT = Words("derived.no-component", "no component was changed")


def most_sensitive_to(elasticities: Mapping[str, float]) -> str:
    """Return the component that a benchmark depends on most (paper 003, section 8.2)."""
    if not elasticities:
        raise DerivedError(NO_COMPONENT())
    return max(elasticities, key=lambda name: abs(elasticities[name]))


def correlation(xs: Sequence[float], ys: Sequence[float]) -> float:
    """Return Pearson's correlation, -1 to 1, of values of the same configurations (paper 003, 8.2).

    Raises :class:`DerivedError` for fewer than three of them, and when one side is constant.
    """
    _require_pairs(xs, ys)
    return float(np.corrcoef(xs, ys)[0, 1])


def rank_correlation(xs: Sequence[float], ys: Sequence[float]) -> float:
    """Return Spearman's correlation of two orders of the same systems (paper 000, section 4.2).

    Raises :class:`DerivedError` as :func:`correlation` does.
    """
    _require_pairs(xs, ys)
    return float(scipy.stats.spearmanr(xs, ys).statistic)


FEW_PAIRS = Words("derived.few-pairs", "a correlation needs three pairs of values or more")
DERIVED_CONSTANT = Words("derived.constant", "a constant correlates with nothing")


def _require_pairs(one: Sequence[float], other: Sequence[float]) -> None:
    if len(one) != len(other) or len(one) < 3:
        raise DerivedError(FEW_PAIRS())
    if len(set(one)) == 1 or len(set(other)) == 1:
        raise DerivedError(DERIVED_CONSTANT())
