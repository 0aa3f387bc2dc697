"""What a terminal may be told: nothing that it would obey."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any, TextIO

from clustergate.notation import printable


class PrintableStream:
    """A stream that writes no control characters but newlines and tabs.

    Names of hosts, values of variables and what programs print come from elsewhere, and all of
    them may end up in a sentence. ``beneath`` is the stream for what has colours of our own.
    """

    def __init__(self, beneath: TextIO) -> None:
        self.beneath = beneath

    def write(self, text: str) -> int:
        """Write what can be shown of a text."""
        return self.beneath.write(printable(text))

    def writelines(self, lines: Any) -> None:
        """Write what can be shown of some lines."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.beneath, name)


@contextlib.contextmanager
def printable_streams() -> Iterator[None]:
    """Let standard output and standard error be of this kind."""
    with (
        contextlib.redirect_stdout(PrintableStream(sys.stdout)),
        contextlib.redirect_stderr(PrintableStream(sys.stderr)),
    ):
        yield


def coloured(text: str) -> None:
    """Print a text with terminal sequences of our own, in which all else is printable."""
    sys.stdout.flush()
    print(text, end="", file=getattr(sys.stdout, "beneath", sys.stdout))
