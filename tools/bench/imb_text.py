"""An output of IMB-MPI1 of any length, made of the tables of a captured one. Pure functions.

It is the text of a run that a file of message lengths (``-msglen``) told to measure the lengths of
the captured run over and over: each table has its captured rows as many times. Every row is as IMB
printed it, and the whole is a text that the parser accepts or refuses like any other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_DECLARED_LENGTHS = re.compile(
    r"# Minimum message length in bytes: .*\n# Maximum message length in bytes: .*\n"
)
_TABLES = re.compile(r"^#-{20,}\n# Benchmarking (?:.*\n)+?(?=\n)", re.MULTILINE)
_ROW = re.compile(r" *(\d+) +\d+ +[\d.]")
_BLOCK_BYTES = 1 << 18


@dataclass(frozen=True)
class _Table:
    head: str
    rows: str
    count: int
    has_lengths: bool


@dataclass(frozen=True)
class ImbText:
    """A text with every row of its tables ``times`` times, in pieces that fit into the memory."""

    header: str
    tables: tuple[_Table, ...]
    end: str
    times: int

    @property
    def rows(self) -> int:
        """The number of rows of figures."""
        return sum(t.count * (self.times if t.has_lengths else 1) for t in self.tables)

    @property
    def size_bytes(self) -> int:
        """The length of the text; it is ASCII."""
        tables = sum(
            len(t.head) + len(t.rows) * (self.times if t.has_lengths else 1) + 1
            for t in self.tables
        )
        return len(self.header) + tables + len(self.end)

    def pieces(self) -> Iterator[bytes]:
        """Yield the text from its start to its end."""
        yield self.header.encode()
        for t in self.tables:
            yield t.head.encode()
            left = self.times if t.has_lengths else 1
            at_once = min(left, max(1, _BLOCK_BYTES // len(t.rows)))
            block = t.rows.encode()
            for _ in range(left // at_once):
                yield block * at_once
            yield block * (left % at_once) + b"\n"
        yield self.end.encode()


def imb_text(captured: str, wanted_bytes: int) -> ImbText:
    """Return a text of about ``wanted_bytes``, or of the captured length if that is more.

    ``captured`` is an output of IMB-MPI1 with powers of two for lengths. Those that are no multiple
    of four, the bytes of MPI_FLOAT, are left out: IMB's reductions have no rows of their own for
    them.
    """
    found = list(_TABLES.finditer(captured))
    header = _DECLARED_LENGTHS.sub(
        "# Message lengths were user defined\n", captured[: found[0].start()]
    )
    tables = tuple(_table(match.group()) for match in found)
    once = ImbText(header, tables, captured[found[-1].end() + 1 :], 1)
    repeated = sum(len(t.rows) for t in tables if t.has_lengths)
    return ImbText(header, tables, once.end, max(1, wanted_bytes // repeated))


def _table(text: str) -> _Table:
    lines = text.splitlines(keepends=True)
    start = next(k for k, line in enumerate(lines) if "#repetitions" in line) + 1
    has_lengths = "#bytes" in lines[start - 1]
    rows = [line for line in lines[start:] if not has_lengths or _length(line) % 4 == 0]
    return _Table("".join(lines[:start]), "".join(rows), len(rows), has_lengths)


def _length(row: str) -> int:
    match = _ROW.match(row)
    if match is None:
        raise ValueError(f"no row of figures: {row!r}")
    return int(match.group(1))
