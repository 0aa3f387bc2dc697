"""Rows as CSV or Parquet, written as they come: memory stays flat."""

from __future__ import annotations

import csv
import functools
import io
import itertools
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from clustergate.core.model import ClustergateError
from clustergate.core.reasons import Words

Columns = dict[str, type]
"""The columns of a table by name: each holds strings, integers, floats or truths."""
# Rows of a table that are in memory at once, and bytes.
_AT_ONCE, _BLOCK = 10_000, 1 << 20


def as_csv(rows: Iterable[Sequence[Any]], columns: Columns) -> Iterator[bytes]:
    """Yield a table, with a line of names above it."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    for cells in itertools.chain([list(columns)], rows):
        writer.writerow(cells)
        yield text.getvalue().encode()
        text.seek(0)
        text.truncate()


def as_parquet(rows: Iterable[Sequence[Any]], columns: Columns) -> Iterator[bytes]:
    """Yield a table in blocks of a Parquet file."""
    # Polars is for those who want this.
    import polars as pl
    from polars.io.plugins import register_io_source

    kinds = {str: pl.String, int: pl.Int64, float: pl.Float64, bool: pl.Boolean}
    schema = {name: kinds[kind] for name, kind in columns.items()}
    left = iter(rows)

    def frames(*_: object) -> Iterator[pl.DataFrame]:
        while some := list(itertools.islice(left, _AT_ONCE)):
            yield pl.DataFrame(some, schema=schema, orient="row", strict=False)

    with tempfile.NamedTemporaryFile() as result:
        register_io_source(frames, schema=schema).sink_parquet(result.name)
        yield from iter(functools.partial(result.read, _BLOCK), b"")


ROWS_UNWRITABLE = Words("rows.unwritable", "the rows cannot be written", cause="{why}")


def print_blocks(blocks: Iterable[bytes], write: Callable[[bytes], object]) -> None:
    """Write blocks to standard output; raises :class:`ClustergateError` where that is full."""
    try:
        for block in blocks:
            write(block)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        # What is still in the buffer would fail again, with a traceback, when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise ClustergateError(ROWS_UNWRITABLE(why=error)) from None
