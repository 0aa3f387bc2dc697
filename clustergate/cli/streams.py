"""What a terminal may be told: nothing that it would obey."""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from clustergate.wording.notation import printable


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


# What the sentences and tables hold beyond ASCII, for a terminal or a log that knows no more.
_PLAIN = {"─": "-", "…": "...", "×": "x", "µ": "u", "–": "-", "≥": ">=", "≤": "<="}
_LEGIBLE = "clustergate-legible"


def _legible(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    unknown = error.object[error.start : error.end]
    return "".join(_PLAIN.get(letter, "?") for letter in unknown), error.end


codecs.register_error(_LEGIBLE, _legible)


@contextlib.contextmanager
def outliving_its_reader() -> Iterator[None]:
    """Let what nobody reads any more be written to nobody, instead of ending the program."""
    with contextlib.redirect_stdout(_Patient(sys.stdout)):
        yield


class _Patient(PrintableStream):
    def write(self, text: str) -> int:
        try:
            return self.beneath.write(text)
        except BrokenPipeError:
            give_up(self.beneath)
            return len(text)

    def flush(self) -> None:
        try:
            self.beneath.flush()
        except BrokenPipeError:
            give_up(self.beneath)


def give_up(stream: TextIO) -> None:
    """Let nothing more be written, or Python would complain again at its exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextlib.contextmanager
def printable_streams() -> Iterator[None]:
    """Let standard output and standard error be of this kind, and fail at no letter."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_LEGIBLE)
    with (
        contextlib.redirect_stdout(PrintableStream(sys.stdout)),
        contextlib.redirect_stderr(PrintableStream(sys.stderr)),
    ):
        yield


def coloured(text: str) -> None:
    """Print a text with terminal sequences of our own, in which all else is printable."""
    sys.stdout.flush()
    print(text, end="", file=getattr(sys.stdout, "beneath", sys.stdout))


def progress() -> Callable[[str], None]:
    """Return a function that tells of a step and of the time since the first one, on stderr."""
    begun = time.monotonic()

    def say(sentence: str) -> None:
        # Whole, as several stacks tell at once.
        print(
            f"[{time.monotonic() - begun:5.0f} s] {sentence}\n", end="", file=sys.stderr, flush=True
        )

    return say
