"""How commands write to a terminal, or into a pipe: sentences and tables, and nothing else."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import IO, Any

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.containers import Lines
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from clustergate.core.commands import NO_CALL, Invocation
from clustergate.core.notation import printable

WIDTH_WHEN_PIPED = 100
# What a line is of, where it begins with it: a verdict, the word of a gate, how a finding stands.
_STYLES = {
    **dict.fromkeys(("pass", "improvement", "open", "ok"), "green"),
    **dict.fromkeys(("inconclusive", "no reference", "could not judge", "warn"), "yellow"),
    **dict.fromkeys(("doubtful", "busy", "disturbed", "not judged"), "yellow"),
    **dict.fromkeys(("regression", "invalid", "impossible", "stay closed", "fail", "fault"), "red"),
}
# The answer of a run: its mark, and its word in capitals.
_ANSWER = re.compile(r" ?([✓✗~!])(?: [A-Z][A-Z ]+(?=[:.]))?")
_OF_MARKS = {"✓": "green", "✗": "red", "~": "yellow", "!": "yellow"}
_WORD = re.compile(r"\s*([A-Za-z ]+?)(?=:| {2,})")
WIDTH_STORED = 80
"""Of what is stored to be shown again, on whatever terminal."""
# What is to be copied, such as a path, stays whole.
_WRAPPER = partial(textwrap.TextWrapper, break_long_words=False, break_on_hyphens=False)


def width() -> int:
    """Return the width to write for: ``$COLUMNS``, the terminal's, or a fixed one in a pipe."""
    return shutil.get_terminal_size((WIDTH_WHEN_PIPED, 0)).columns


class _PrintableConsole(Console):
    """A console whose only control characters are those of its own styles."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            text = segment.text if segment.control else printable(segment.text)
            yield segment._replace(text=text)


def new_console(width: int, file: IO[str] | None = None, *, colour: bool = False) -> Console:
    """Return what writes tables and sentences, as they are, in colours only if it is told to."""
    return _PrintableConsole(
        file=file,
        width=width,
        highlight=False,
        markup=False,
        emoji=False,
        force_terminal=colour,
        # With colours it is NO_COLOR's turn, https://no-color.org.
        no_color=None if colour else True,
    )


def print_lines(lines: Iterable[str], invocation: Invocation = NO_CALL) -> None:
    """Print sentences, wrapped where somebody reads them and whole where a program does."""
    on_terminal = sys.stdout.isatty()
    out = new_console(width(), _beneath(sys.stdout) if on_terminal else None, colour=on_terminal)
    write_lines(out, map(invocation.completed, lines), wraps=on_terminal)


def _beneath(stream: Any) -> Any:
    """Return the stream that takes control characters: a console writes only its own."""
    stream.flush()
    while below := getattr(stream, "__dict__", {}).get("beneath"):
        stream = below
    return stream


# Where a name may be broken that is too long for its column; a number may not.
_BREAKS = re.compile(r"(?<=[_/,:])|(?<=\D\.)|(?<=\.)(?=\D)")


class _Cell(Text):
    """A cell in which a word that is too long for its column breaks between its parts."""

    def wrap(self, console: Console, width: int, **options: Any) -> Lines:
        words = re.split(r"(\s+)", self.plain)
        text = "".join(_broken(word, width) if len(word) > width else word for word in words)
        return Text(text).wrap(console, width, **options)


def _broken(word: str, width: int) -> str:
    lines = [""]
    for part in _BREAKS.split(word):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def table(
    columns: Sequence[str], rows: Iterable[Sequence[str | Text]], right: Collection[int] = ()
) -> Table:
    """Return a table as all commands print them; numbers stand in the columns ``right``, from 0."""
    made = Table(box=box.SIMPLE, show_edge=False, pad_edge=False)
    for k, column in enumerate(columns):
        made.add_column(column, justify="right" if k in right else "left", overflow="fold")
    for row in rows:
        made.add_row(*(cell if isinstance(cell, Text) else _Cell(cell) for cell in row))
    return made


_GAP = 3


def table_within(
    width: int,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Collection[int] = (),
    spare: Sequence[int] = (),
) -> tuple[Table, int]:
    """Return a table like :func:`table` that fits a width, and how many columns it leaves out.

    Those in ``spare`` are left out, the first of them first, until the others fit.
    """
    lines = [columns, *rows]
    widths = [max(len(line[k]) for line in lines) + _GAP for k in range(len(columns))]
    kept, left = [*range(len(columns))], [*spare]
    while left and sum(widths[k] for k in kept) > width:
        kept.remove(left.pop(0))
    heads, *cells = [[line[k] for k in kept] for line in lines]
    numbers = [place for place, k in enumerate(kept) if k in right]
    return table(heads, cells, numbers), len(columns) - len(kept)


def print_table(table: Table) -> None:
    new_console(width()).print(table)


def write_lines(
    out: Console,
    lines: Iterable[str],
    *,
    wraps: bool,
    indent: int | None = None,
    at_most: int | None = None,
) -> None:
    """Write sentences; one that does not wrap stays on one line, for grep.

    The rest of one that does has an ``indent``, by default that of the sentence and two more. It
    takes ``at_most`` so many lines.
    """
    for line in lines:
        spaces = len(line) - len(line.lstrip()) + 2 if indent is None else indent
        wrapper = _WRAPPER(width=out.width, subsequent_indent=" " * spaces)
        parts = wrapper.wrap(line) or [""] if wraps else [line]
        text = "\n".join(parts if at_most is None else _cut(parts, at_most, out.width))
        out.print(_with_colour(text), soft_wrap=True)


def _cut(lines: Sequence[str], at_most: int, width: int) -> Sequence[str]:
    """Return so many lines at most; a word that is longer than a line stays whole."""
    if len(lines) <= at_most:
        return lines
    last = lines[at_most - 1]
    if len(last) + 2 > width and " " in last.strip():
        last = last.rpartition(" ")[0]
    return [*lines[: at_most - 1], f"{last} …"]


def _with_colour(line: str) -> Text:
    """Return a line whose verdict has its colour, where a console shows any."""
    text, word = Text(line), _WORD.match(line)
    if word and (style := _STYLES.get(word[1].lower())):
        text.stylize(style, *word.span(1))
    if answer := _ANSWER.match(line):
        text.stylize(_OF_MARKS[answer[1]], *answer.span())
    return text
