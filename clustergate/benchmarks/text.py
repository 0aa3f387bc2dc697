"""The numbered lines of an output that is being read, and the errors that name them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator

from clustergate.model import OutputError

# Lines that are read ahead: enough for a table at once, few enough to be nothing in memory.
_AHEAD = 256


class NumberedText:
    """Numbered lines still to be read.

    ``number`` and ``line``, which is without the blanks at its end, are those read last, 0 and
    empty before the first; ``raw`` is the same line as it was given.
    """

    def __init__(self, lines: Iterable[str], source: str) -> None:
        self.source = source
        self.number = 0
        self.line = self.raw = ""
        self._lines = iter(lines)
        self._ahead: list[str] = []
        self._at = 0

    def __iter__(self) -> Iterator[str]:
        while self.next():
            yield self.line

    def next(self) -> bool:
        """Read a line and say whether there was one."""
        if self._at == len(self._ahead) and not self._read_ahead():
            return False
        self.raw = self._ahead[self._at]
        self.line = self.raw.rstrip()
        self._at += 1
        self.number += 1
        return True

    def back(self) -> None:
        """Let the line that was read last be the next one again."""
        self._at -= 1
        self.number -= 1

    def take(self, lines: re.Pattern[str]) -> str:
        """Read what a pattern of whole lines, each with its end, matches from here on.

        Of what stands beyond the lines that were read ahead nothing is matched. Lines that were
        given without their ends never match.
        """
        if self._at == len(self._ahead) and not self._read_ahead():
            return ""
        if not lines.match(self._ahead[self._at]):
            return ""
        match = lines.match("".join(self._ahead[self._at :]))
        taken = match.group() if match else ""
        end = self._at + taken.count("\n")
        if sum(map(len, self._ahead[self._at : end])) != len(taken):
            return ""
        self.number += end - self._at
        self._at = end
        return taken

    def _read_ahead(self) -> bool:
        self._ahead, self._at = list(itertools.islice(self._lines, _AHEAD)), 0
        return bool(self._ahead)

    def error(self, message: str) -> OutputError:
        """Return an error about the line read last."""
        return OutputError(message, line=self.number or None, source=self.source)

    def cut_off(self, missing: str) -> OutputError:
        """Return the error of a text that ends before ``missing``."""
        if self.number == 0:
            return OutputError("output.empty", source=self.source)
        return OutputError("output.cut-off", line=self.number, source=self.source, missing=missing)
