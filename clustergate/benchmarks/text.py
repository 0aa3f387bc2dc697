"""The numbered lines of an output that is being read, and the errors that name them."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator

from clustergate.model import OutputError
from clustergate.wording.outputs import (
    OUTPUT_BAD_VALUE,
    OUTPUT_CUT_OFF,
    OUTPUT_DAMAGED,
    OUTPUT_EMPTY,
    OUTPUT_LACKS,
)
from clustergate.wording.reasons import Fact, Reason, Words

# Lines that are read ahead: enough for a table at once, few enough to be nothing in memory.
_AHEAD = 512
# More than all tables of a run have.
_SHAPES = 4096
_SHAPE = bytes.maketrans(b"123456789", b"000000000")


class NumberedText:
    """Numbered lines still to be read.

    ``number`` and ``line``, which is without the blanks at its end, are those read last, 0 and
    empty before the first. Whoever goes through the lines is given those before ``end``, but none
    that is ``idle``.
    """

    program = ""
    idle: frozenset[str] = frozenset()
    # No line is this one.
    end = "\n"

    def __init__(self, lines: Iterable[str], source: str) -> None:
        self.source = source
        self.number = 0
        self.line = ""
        self._lines = iter(lines)
        self._ahead: list[str] = []
        self._at = 0
        # Where each of the lines ahead begins when they are joined.
        self._begins: list[int] = []
        self._joined = ""

    def __iter__(self) -> Iterator[str]:
        idle, end = self.idle, self.end
        while self._at < len(self._ahead) or self._read_ahead():
            self.line = line = self._ahead[self._at].rstrip()
            self._at += 1
            self.number += 1
            if line == end:
                return
            if line not in idle:
                yield line

    @property
    def raw(self) -> str:
        """The line that was read last as it was given."""
        return self._ahead[self._at - 1]

    def next(self) -> bool:
        """Read a line and say whether there was one."""
        if self._at == len(self._ahead) and not self._read_ahead():
            return False
        self.line = self._ahead[self._at].rstrip()
        self._at += 1
        self.number += 1
        return True

    def back(self, lines: int = 1) -> None:
        """Let the line that was read last, or so many that were taken, be next again."""
        self._at -= lines
        self.number -= lines

    def take(self, lines: re.Pattern[str]) -> re.Match[str] | None:
        """Read what a pattern of whole lines, each with its end, matches from here on.

        Of what stands beyond the lines that were read ahead nothing is matched. Lines that were
        given without their ends never match.
        """
        match = lines.match(*self._joined_from_here())
        taken = match is not None and self._skip(match.group().count("\n"), match.end())
        return match if taken else None

    def take_while(self, fits: Callable[[str], object], known: set[str]) -> tuple[str, int]:
        """Read and count the lines from here on, each with its end, whose shapes fit.

        The rows of a table have few shapes: those that fit are ``known`` from then on. Nothing is
        read beyond an empty line, nor where :meth:`take` would not match.
        """
        joined, begin = self._joined_from_here()
        try:
            empty = self._ahead.index("\n", self._at)
        except ValueError:
            empty = len(self._ahead)
        piece = joined[begin : self._begins[empty]]
        # By its bytes it takes half as long.
        zeros = piece.encode("utf-8", "surrogatepass").translate(_SHAPE)
        shapes = zeros.decode("utf-8", "surrogatepass").split("\n")[:-1]
        count, size = len(shapes), len(piece)
        if not known.issuperset(shapes):
            fitting = list(itertools.takewhile(lambda one: one in known or fits(one), shapes))
            known.update(fitting[: _SHAPES - len(known)])
            if len(fitting) < count:
                count = len(fitting)
                size = sum(map(len, fitting)) + count
        if not count or not self._skip(count, begin + size):
            return "", 0
        return piece[:size], count

    def _joined_from_here(self) -> tuple[str, int]:
        """Return the lines that were read ahead as one text, and where the next one begins."""
        if self._at == len(self._ahead):
            self._read_ahead()
        if not self._begins:
            self._begins = [0, *itertools.accumulate(map(len, self._ahead))]
            self._joined = "".join(self._ahead)
        return self._joined, self._begins[self._at]

    def _skip(self, lines: int, end: int) -> bool:
        """Have read so many lines if they end there in the joined text, and say whether they do."""
        at = self._at + lines
        if end not in self._begins[at : at + 1]:
            return False
        self.number += lines
        self._at = at
        self.line = self._ahead[at - 1].rstrip()
        return True

    def _read_ahead(self) -> bool:
        self._ahead, self._at = list(itertools.islice(self._lines, _AHEAD)), 0
        self._begins = []
        return bool(self._ahead)

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
