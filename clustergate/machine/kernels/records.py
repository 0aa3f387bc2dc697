"""The JSON lines that the suite's own programs print: one record each, with checked values."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from clustergate.core.model import OutputError
from clustergate.core.outputs import (
    OUTPUT_BAD_VALUE,
    OUTPUT_CONTRADICTION,
    OUTPUT_DAMAGED,
    OUTPUT_LACKS,
)
from clustergate.core.reasons import Reason, Words


class Line(NamedTuple):
    """A line of a program, with its number in the text."""

    number: int
    record: Mapping[str, Any]
    source: str

    def wrong(self, problem: Reason) -> OutputError:
        """Return an error about the line."""
        return OutputError(problem, line=self.number, source=self.source)

    def _not_as(self, key: str, wanted: str) -> OutputError:
        value = repr(self.record.get(key))[:60]
        return self.wrong(OUTPUT_BAD_VALUE(name=key, wanted=wanted, value=value))

    def value(self, key: str, *, least: float = 0.0) -> float:
        """Return a number under a key."""
        value = self.record.get(key)
        if type(value) not in (int, float) or not least <= (value or 0) <= sys.float_info.max:
            raise self._not_as(key, f"a number of at least {least:g}")
        return float(value or 0)

    def best(self, key: str) -> float:
        """Return a number above 0 under a key, of several its ``best``."""
        value = self.record.get(key)
        value = value.get("best") if isinstance(value, dict) else value
        if type(value) not in (int, float) or not 0 < (value or 0) <= sys.float_info.max:
            raise self._not_as(key, "positive")
        return float(value or 0)

    def word(self, key: str, known: Iterable[str] = ()) -> str:
        """Return a word, one of those known where any are."""
        value = self.record.get(key)
        if not isinstance(value, str) or not value or (known and value not in known):
            raise self._not_as(key, f"one of {', '.join(known)}" if known else "a word")
        return value

    def integer(self, key: str, *, least: int) -> int:
        """Return a whole number."""
        value = self.record.get(key)
        if type(value) is not int or value < least:
            raise self._not_as(key, f"an integer of at least {least}")
        return value

    def integers(self, key: str) -> list[int]:
        """Return a list of whole numbers, one at least."""
        value = self.record.get(key)
        if not isinstance(value, list) or not value or not all(type(one) is int for one in value):
            raise self._not_as(key, "a list of integers")
        return value

    def times(self, key: str) -> list[float]:
        """Return a list of times, two at least."""
        times = self.record.get(key)
        if (
            not isinstance(times, list)
            or len(times) < 2
            or not all(isinstance(time, int | float) and 0 <= time < math.inf for time in times)
        ):
            raise self._not_as(key, "a list of two times or more")
        return [float(time) for time in times]

    def require_count(self, measured: int) -> None:
        """Raise unless this last line counts as many measurements as came before it."""
        if self.integer("count", least=0) != measured:
            facts = {"one": f"the last line's count of {self.record['count']}"}
            raise self.wrong(OUTPUT_CONTRADICTION(other=f"{measured} lines before it", **facts))


def read_line(number: int, line: str, source: str, program: str) -> Line:
    """Return a line with its record; raises :class:`OutputError` for any other line."""
    try:
        record = json.loads(line, parse_constant=_refuse)
    except ValueError:
        record = None
    if not isinstance(record, dict) or not isinstance(record.get("measurement"), str):
        facts = {"what": "a line", "program": program, "printed": line.strip()[:60]}
        raise OutputError(OUTPUT_DAMAGED(**facts), line=number, source=source)
    return Line(number, record, source)


NOTHING_PRINTED = Words(
    "output.nothing-printed",
    "nothing was printed",
    remedy="look at the job's standard error",
)


def cut_off(number: int, source: str) -> OutputError:
    """Return the error of a text of so many lines that has no last line of its program."""
    if number:
        return OutputError(OUTPUT_LACKS(missing="the last line"), source=source)
    return OutputError(NOTHING_PRINTED(), source=source)


def _refuse(constant: str) -> float:
    raise ValueError(constant)
