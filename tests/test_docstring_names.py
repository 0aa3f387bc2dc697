"""The lint of docstrings: what they name as a parameter is one, or is in the module's code."""

from __future__ import annotations

import pytest

from tools.docstring_names import unknown_names

FUNCTION = '''
LIMIT = "a word"


def of(value: int, *others: int) -> int:
    """Return ``{named}``."""
    return max(value, *others)
'''


@pytest.mark.parametrize(
    ("named", "unknown"),
    [
        ("value", []), ("others", []), ("max", []), ("word", []),
        ("values", ["values"]), ("limit", ["limit"]),
        # What is no bare name is of something else.
        ("values/", []), ("-S", []), ("LIMIT", []),
    ],
)  # fmt: skip
def test_names_in_docstrings(named: str, unknown: list[str]) -> None:
    found = list(unknown_names(FUNCTION.replace("{named}", named)))
    assert found == [(5, "of", name) for name in unknown]
