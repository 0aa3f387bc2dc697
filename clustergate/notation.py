"""How figures are written for a reader. Pure."""

from __future__ import annotations

import math

# Outside these, a number of four digits is shorter with an exponent.
_PLAIN_FROM, _PLAIN_BELOW = 1e-4, 1e9


def number(value: float) -> str:
    """Return a number with four significant digits, without an exponent where it is readable."""
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    if not _PLAIN_FROM <= abs(value) < _PLAIN_BELOW:
        return f"{value:.3e}"
    rounded = float(f"{value:.3e}")
    decimals = max(0, 3 - math.floor(math.log10(abs(rounded))))
    return f"{rounded:.{decimals}f}" if decimals else f"{value:.0f}"
