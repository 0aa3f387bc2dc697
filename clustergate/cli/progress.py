"""What a command is doing, told while it does it.

On a terminal one line lives in its place; what somebody acts on stands above it. In a log a line
tells what began or ended, and at most one a minute what goes on.
"""

from __future__ import annotations

import contextlib
import datetime
import re
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from clustergate.core.commands import NO_CALL, Invocation
from clustergate.core.notation import printable
from clustergate.core.texts import ProgressLine, ResultLine, Step, duration, shortened

if TYPE_CHECKING:
    from rich.live import Live

_SILENT_AT_MOST_S = 60.0
# What is redrawn more often takes time from what is measured.
_REDRAWN_HZ = 1.0
_REPEATED_LETTERS, _FEWEST_LETTERS = 100, 20
# Other sentences tell what is, or will be.
_ACTIVITY = re.compile(r"(?!nothing|during|according|missing)\w+ing\b")


class Progress:
    """Prints sentences to standard error, each with the time since this was made.

    Within its context it also tells what goes on since the last sentence.
    """

    def __init__(self, invocation: Invocation = NO_CALL) -> None:
        self.invocation = invocation
        self._begun = self._said = self._said_at = time.monotonic()
        self._sentence = ""
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._live: Live | None = None

    def __call__(self, sentence: str) -> None:
        """Say a sentence; a step, and what a case came to, where it does not live or last."""
        is_step, is_result = isinstance(sentence, Step), isinstance(sentence, ResultLine)
        if not is_step and not is_result:
            sentence = self.invocation.completed(sentence)
        if not is_result:
            self._said, self._sentence = time.monotonic(), sentence
        if self._live and (is_step or is_result or _ACTIVITY.match(sentence)):
            self._live.refresh()
        elif not (is_step and self._thread):
            self._print(sentence)

    def __enter__(self) -> Progress:
        if sys.stderr.isatty():
            self._live = _live(self)
        if self._live is None:
            self._thread = threading.Thread(target=self._repeat, daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        if self._live:
            self._live.stop()
            self._live = None

    def in_place(self, now: float, room: int) -> str:
        """Return what goes on, in a line of a terminal with room for so many letters."""
        said = self._sentence
        if isinstance(said, ProgressLine):
            return said.in_place(datetime.datetime.now(), room)
        return self.going_on(now, room)

    def going_on(self, now: float, room: int = _REPEATED_LETTERS) -> str:
        """Return what goes on, and since when, in so many letters."""
        since = f" ({duration(now - self._said)})"
        said, at_most = self._sentence, max(room - len(since), _FEWEST_LETTERS)
        if isinstance(said, ProgressLine):
            said = said.at(datetime.datetime.now())
        elif not isinstance(said, Step):
            said = said if _ACTIVITY.match(said) else "at work"
            said = said if len(said) <= at_most else said.partition(": ")[0]
        return shortened(" ".join(said.split()), at_most) + since

    def elapsed(self, now: float) -> str:
        return f"[{now - self._begun:5.0f} s] "

    def _repeat(self) -> None:
        while not self._ended.wait(max(0.0, self._said_at + _SILENT_AT_MOST_S - time.monotonic())):
            now = time.monotonic()
            if now >= self._said_at + _SILENT_AT_MOST_S:
                self._print(f"  still {self.going_on(now)}")

    def _print(self, sentence: str) -> None:
        self._said_at = time.monotonic()
        line = self.elapsed(self._said_at) + sentence
        if self._live:
            # It takes longer to import than most commands need.
            from clustergate.report.console import write_lines

            indent = len(self.elapsed(self._said_at))
            write_lines(self._live.console, [printable(line)], wraps=True, indent=indent)
        else:
            # In one write, as several stacks print at once.
            print(f"{line}\n", end="", file=sys.stderr, flush=True)


@contextlib.contextmanager
def saying_if_interrupted(
    begun: Path, sentence: str, invocation: Invocation = NO_CALL
) -> Iterator[None]:
    """Say a sentence, with the command that comes next, where something is interrupted.

    Not before it has ``begun``: then there is a file.
    """
    try:
        yield
    except KeyboardInterrupt:
        if begun.is_file():
            print(invocation.completed(sentence), file=sys.stderr)
        raise


def _live(of: Progress) -> Live | None:
    # It takes longer to import than most commands need.
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    class Line:
        def __rich__(self) -> Text:
            now = time.monotonic()
            elapsed = of.elapsed(now)
            line = printable(elapsed + of.in_place(now, console.width - len(elapsed)))
            return Text(line, no_wrap=True, overflow="ellipsis")

    beneath: Any = getattr(sys.stderr, "beneath", sys.stderr)
    console = Console(file=beneath, highlight=False, markup=False, no_color=True)
    if console.is_dumb_terminal:
        return None
    line = Live(
        Line(),
        console=console,
        transient=True,
        refresh_per_second=_REDRAWN_HZ,
        # What is printed to standard output is not to come out of standard error.
        redirect_stdout=False,
        redirect_stderr=False,
    )
    # Drawn at once: two threads that both drew the first would draw it twice.
    line.start(refresh=True)
    return line
