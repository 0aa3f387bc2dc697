"""How figures, and texts from elsewhere, are written for a reader. Pure."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Sequence

# Outside these, a number of four digits is shorter with an exponent.
_PLAIN_FROM, _PLAIN_BELOW = 1e-4, 1e9
# What XML 1.0 forbids (its production Char), what a terminal would obey, and what breaks a line or
# turns its order around to make it read otherwise. Tab and newline stay.
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
    "\ud800-\udfff\ufffe\uffff]"
)
_CONTROLS = bytes({*range(0x20), 0x7F} - {*b"\t\n"})
_CONTROL_PICTURES = 0x2400
_DELETE = "\x7f"


def number(value: float) -> str:
    """Return a number with four significant digits, without an exponent where it is readable."""
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    if not _PLAIN_FROM <= abs(value) < _PLAIN_BELOW:
        return f"{value:.3e}"
    rounded = float(f"{value:.3e}")
    decimals = max(0, 3 - math.floor(math.log10(abs(rounded))))
    return f"{rounded:.{decimals}f}" if decimals else f"{value:.0f}"


def rounded(value: float) -> str:
    """Return a number with three significant digits at most: no zeros that nobody measured."""
    mantissa, exponent, power = number(float(f"{value:.2e}")).partition("e")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    return mantissa + exponent + power


def interval(low: float | None, high: float | None, form: str = ".3f", between: str = "…") -> str:
    """Return an interval; it may be open at one end, and is empty where it has none."""
    first, last = (None if end is None else format(end, form) for end in (low, high))
    if first and last:
        return f"{first}{between}{last}"
    return f"above {first}" if first else f"below {last}" if last else ""


def listed(names: Sequence[str], at_most: int = 4) -> str:
    """Return names with a comma between, how many more there are instead of the last ones."""
    more = len(names) - at_most
    return ", ".join(names[:at_most]) + (f" and {more} more" if more > 0 else "")


def nearest(word: str, known: Iterable[str], least: float = 0.6) -> str:
    """Return the known word that was meant, empty where none is as much like it as ``least``.

    Likeness is from 0 to 1, as :mod:`difflib` counts it; what begins with the word comes first.
    """
    close = difflib.get_close_matches(word, sorted(known), 3, least)
    return next((one for one in close if one.startswith(word)), next(iter(close), ""))


def did_you_mean(meant: str) -> str:
    """Return the question behind a complaint of an unknown word, empty where none was meant."""
    return f"; did you mean {meant!r}?" if meant else ""


def counted(count: int, noun: str) -> str:
    """Return a count with its noun in the singular or the plural."""
    plural = "es" if noun.endswith(("ch", "sh", "s", "x")) else "s"
    return f"{count} {noun}{'' if count == 1 else plural}"


def printable(text: str) -> str:
    """Return a text that every reader can show and XML 1.0 allows.

    Control characters become their pictures (U+2400 on), whatever has none U+FFFD.
    """
    # Most is plain, which bytes tell six times as fast.
    if text.isascii() and text.encode().translate(None, _CONTROLS) == text.encode():
        return text
    return _UNPRINTABLE.sub(_picture, text)


def _picture(match: re.Match[str]) -> str:
    character = match[0]
    if character < " ":
        return chr(_CONTROL_PICTURES + ord(character))
    return "\N{SYMBOL FOR DELETE}" if character == _DELETE else "\N{REPLACEMENT CHARACTER}"
