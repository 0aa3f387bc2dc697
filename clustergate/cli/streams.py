"""Standard output and error without control sequences from elsewhere."""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO

from clustergate.core.notation import printable


class PrintableStream:
    """A stream that writes no control characters but newlines and tabs.

    Names of hosts, values of variables and what programs print come from elsewhere, and all of
    them may end up in a sentence. ``beneath`` is the stream for what has colours of our own.
    """

    def __init__(self, beneath: TextIO) -> None:
        self.beneath = beneath

    def write(self, text: str) -> int:
        return self.beneath.write(printable(text))

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.beneath, name)


# What the sentences and tables hold beyond ASCII, for a terminal or a log that knows no more.
_PLAIN = {"─": "-", "…": "...", "×": "x", "µ": "u", "–": "-", "≥": ">=", "≤": "<=", "↑": "^"}
_PLAIN |= {"✓": "OK", "✗": "X", "━": "="}
_PLAIN |= dict(zip("▁▂▃▄▅▆▇█", "12345678", strict=True))
_LEGIBLE = "clustergate-legible"


def _legible(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    unknown = error.object[error.start : error.end]
    return "".join(_PLAIN.get(letter, "?") for letter in unknown), error.end


codecs.register_error(_LEGIBLE, _legible)


@contextlib.contextmanager
def survive_broken_pipe() -> Iterator[None]:
    """Discard what nobody reads any more, instead of ending the program."""
    with contextlib.redirect_stdout(_Tolerant(sys.stdout, BrokenPipeError)):
        yield


class _Tolerant(PrintableStream):
    """A stream that discards its output from the first error of a kind on."""

    def __init__(self, beneath: TextIO, tolerated: type[OSError]) -> None:
        super().__init__(beneath)
        self.tolerated = tolerated

    def write(self, text: str) -> int:
        try:
            return super().write(text)
        except self.tolerated:
            discard_output(self.beneath)
            return len(text)

    def flush(self) -> None:
        try:
            self.beneath.flush()
        except self.tolerated:
            discard_output(self.beneath)


def discard_output(stream: TextIO) -> None:
    """Send further output nowhere, or Python would complain again at its exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _open_what_is_closed() -> None:
    """Send what goes to a closed stream nowhere: else the next file opened would receive it."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            try:
                os.fstat(number)
            except OSError:
                nowhere = os.open(os.devnull, os.O_WRONLY)
                if nowhere != number:
                    os.dup2(nowhere, number)
                    os.close(nowhere)
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115


@contextlib.contextmanager
def printable_streams() -> Iterator[None]:
    """Make standard output and standard error printable, and let no character fail.

    A closed stream discards, and so does standard error where it cannot be written.
    """
    _open_what_is_closed()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_LEGIBLE)
    with (
        contextlib.redirect_stdout(PrintableStream(sys.stdout)),
        # What is told there and cannot be written is no reason for another status.
        contextlib.redirect_stderr(_Tolerant(sys.stderr, OSError)),
    ):
        yield


def print_coloured(text: str) -> None:
    """Print a text with terminal sequences of our own, in which all else is printable."""
    sys.stdout.flush()
    stream: Any = sys.stdout
    while isinstance(stream, PrintableStream):
        stream = stream.beneath
    print(text, end="", file=stream)
