"""The numbered lines of an output that is being read, and the errors that name them."""

from __future__ import annotations

from collections.abc import Iterator

from clustergate.model import OutputError


class NumberedText:
    """Numbered lines still to be read, without the blanks at their ends.

    ``number`` and ``line`` are those read last, 0 and empty before the first.
    """

    def __init__(self, numbered: Iterator[tuple[int, str]], source: str) -> None:
        self.numbered = numbered
        self.source = source
        self.number = 0
        self.line = ""

    def __iter__(self) -> Iterator[str]:
        for number, line in self.numbered:
            self.number, self.line = number, line.rstrip()
            yield self.line

    def error(self, message: str) -> OutputError:
        """Return an error about the line read last."""
        return OutputError(message, line=self.number or None, source=self.source)

    def cut_off(self, missing: str) -> OutputError:
        """Return the error of a text that ends before ``missing``."""
        if self.number == 0:
            return OutputError("output.empty", source=self.source)
        return OutputError("output.cut-off", line=self.number, source=self.source, missing=missing)
