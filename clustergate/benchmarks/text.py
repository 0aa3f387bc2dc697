"""The numbered lines of an output that is being read, and the errors that name them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from clustergate.core.model import OutputError
from clustergate.core.outputs import (
    OUTPUT_BAD_VALUE,
    OUTPUT_CUT_OFF,
    OUTPUT_DAMAGED,
    OUTPUT_EMPTY,
    OUTPUT_LACKS,
)
from clustergate.core.reasons import Fact, Reason, Words


class NumberedText:
    """Numbered lines still to be read.

    ``number`` and ``line``, which is without the blanks at its end, are those read last, 0 and
    empty before the first; ``raw`` is the line as it was given. Whoever goes through the lines is
    given those before ``end``, but none that is ``idle``.
    """

    program = ""
    idle: frozenset[str] = frozenset()
    # No line is this one.
    end = "\n"

    def __init__(self, lines: Iterable[str], source: str) -> None:
        self.source = source
        self.number = 0
        self.line = self.raw = ""
        self._lines = iter(lines)
        self._is_back = False

    def __iter__(self) -> Iterator[str]:
        while self.next() and self.line != self.end:
            if self.line not in self.idle:
                yield self.line

    def next(self) -> bool:
        """Read a line and say whether there was one."""
        if self._is_back:
            self._is_back = False
        else:
            raw = next(self._lines, None)
            if raw is None:
                return False
            self.raw, self.line = raw, raw.rstrip()
        self.number += 1
        return True

    def back(self) -> None:
        """Let the line that was read last be next again."""
        self._is_back = True
        self.number -= 1

    def error(self, problem: str | Reason) -> OutputError:
        """Return an error about the line read last."""
        return OutputError(problem, line=self.number or None, source=self.source)

    def damaged(self, what: str, program: str = "") -> OutputError:
        """Return the error of a line that is not what a program prints there."""
        program, printed = program or self.program, self.line.strip()
        return self.error(OUTPUT_DAMAGED(what=what, program=program, printed=printed))

    def cut_off(self, missing: str) -> OutputError:
        """Return the error of a text that ends before ``missing``."""
        if self.number == 0:
            return OutputError(OUTPUT_EMPTY(), source=self.source)
        return OutputError(OUTPUT_CUT_OFF(missing=missing), line=self.number, source=self.source)


OUTPUT_OTHER_RUN = Words(
    "output.other-run",
    "another run: {what} {actual}, but {wanted} was requested",
    remedy="see whether the program is a wrapper that changes its options, input or folder",
)


class Fields:
    """Named values of a text, each with its line, and the errors that name them."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.values: dict[str, tuple[str, int]] = {}

    def error(self, problem: Reason, about: str = "") -> OutputError:
        """Return an error about the line of a value, if there is one."""
        line = self.values.get(about, ("", None))[1]
        return OutputError(problem, line=line, source=self.source)

    def text(self, name: str) -> str:
        if name not in self.values:
            raise self.error(OUTPUT_LACKS(missing=repr(name)))
        return self.values[name][0]

    def number(self, name: str) -> float:
        """Return a value that is a number, and not negative."""
        text = self.text(name)
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not 0 <= value < math.inf:
            raise self._not_as(name, "a number")
        return value

    def positive(self, name: str) -> float:
        """Return a value that must not be 0 either."""
        if not (value := self.number(name)):
            raise self._not_as(name, "positive")
        return value

    def count(self, name: str, least: int = 1) -> int:
        value = self.number(name)
        if value < least or value != int(value):
            raise self._not_as(name, f"an integer of at least {least}")
        return int(value)

    def _not_as(self, name: str, wanted: str) -> OutputError:
        facts = {"name": name, "wanted": wanted, "value": repr(self.text(name))}
        return self.error(OUTPUT_BAD_VALUE(**facts), name)

    def compare(self, name: str, *asked: tuple[str, Fact, Fact]) -> None:
        """Raise unless what was asked for, where anything was, is what ran; both are named."""
        for what, wanted, actual in asked:
            if wanted is not None and wanted != actual:
                facts = {"what": what, "wanted": wanted, "actual": actual}
                raise self.error(OUTPUT_OTHER_RUN(**facts), name)
