"""``clustergate parse``: the figures in the outputs of benchmarks, as JSON lines or as a table."""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from typing import IO

from clustergate.benchmarks.formats import formats, parse
from clustergate.model import ClustergateError, OutputError, Row

DESCRIPTION = """\
Print the figures of benchmark outputs, one JSON object per line or a CSV table. The program is
recognised by its title. Nothing is printed of an output that is truncated, damaged, incomplete, or
whose own checks failed: that is one sentence with file and line on standard error, and exit
status 1."""

STANDARD_INPUT = "-"
# No benchmark prints longer lines: what has them is not text, and would fill the memory.
LONGEST_LINE = 65536
IN_MEMORY = 1 << 20
# How compressed files begin.
COMPRESSED = (b"\x1f\x8b", b"\xfd7zXZ", b"BZh", b"(\xb5/\xfd")
FIRST_COLUMNS = ("file", "suite", "benchmark", "status", "line")


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "parse",
        description=DESCRIPTION,
    )
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help=f"an output; {STANDARD_INPUT} is standard input"
    )
    parser.add_argument(
        "--format", choices=("jsonl", "csv"), default="jsonl", help="default: jsonl"
    )
    parser.add_argument(
        "--suite", choices=sorted(formats()), help="read as this program's output, unrecognised"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the rows of every good file, a sentence for every bad one; 1 if there was a bad one.

    Rows wait in a temporary file until their text has been read to its end: memory stays flat.
    """
    columns: dict[str, None] = {}
    status = 0
    rows = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115, closed below
    try:
        for name in arguments.files:
            source = "standard input" if name == STANDARD_INPUT else _printable(name)
            start = rows.tell()
            names: dict[str, None] = {}
            try:
                for row in parse(read_lines(name, source), source=source, suite=arguments.suite):
                    names.update(dict.fromkeys((*row.conditions, *row.values)))
                    rows.write(_as_json(source, row))
            except OutputError as error:
                rows.seek(start)
                rows.truncate()
                print(f"clustergate: {error}", file=sys.stderr)
                status = error.exit_status
            else:
                columns.update(names)
        rows.seek(0)
        _print(rows, arguments.format, (*FIRST_COLUMNS, *columns))
    except BrokenPipeError:
        raise
    except OSError as error:
        raise ClustergateError("rows.not-kept", why=error) from None
    finally:
        # A full disk was reported when it was noticed; closing would report it again.
        with contextlib.suppress(OSError):
            rows.close()
    return status


def read_lines(name: str, source: str) -> Iterator[str]:
    """Yield the lines of a file, or of standard input for ``-``.

    Raises :class:`OutputError` for what cannot be read or is no text.
    """
    try:
        with _opened(name) as file:
            number = 0
            while line := file.readline(LONGEST_LINE + 1):
                number += 1
                yield _decoded(line, number, source)
    except OSError as error:
        raise OutputError("output.unreadable-here", source=source, why=error) from None


def _opened(name: str) -> contextlib.AbstractContextManager[IO[bytes]]:
    if name != STANDARD_INPUT:
        return open(name, "rb")
    if sys.stdin is None:
        raise OutputError("output.closed", source="standard input")
    return contextlib.nullcontext(sys.stdin.buffer)


def _decoded(line: bytes, number: int, source: str) -> str:
    if number == 1 and line.startswith(COMPRESSED):
        problem = "it is compressed; unpack it first, or pipe it into `clustergate parse -`"
    elif len(line) > LONGEST_LINE:
        problem = f"a line of more than {LONGEST_LINE} bytes"
    elif b"\0" in line:
        problem = "a zero byte, as a crash or a full disk leaves behind"
    else:
        # Names and messages in another encoding do no harm; a figure with such a byte is none.
        return line.decode("utf-8", errors="replace")
    raise OutputError("output.no-benchmark", line=number, source=source, problem=problem)


def _printable(name: str) -> str:
    """Return a file's name with the bytes that are not UTF-8 spelled out."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def _as_json(source: str, row: Row) -> bytes:
    record = {
        "file": source,
        "suite": row.suite,
        "benchmark": row.benchmark,
        "status": row.status,
        "line": row.line,
        "conditions": dict(row.conditions),
        "values": dict(row.values),
    }
    return json.dumps(record).encode() + b"\n"


def _print(lines: Iterable[bytes], form: str, columns: tuple[str, ...]) -> None:
    try:
        if form == "jsonl":
            for line in lines:
                sys.stdout.write(line.decode())
        else:
            table = csv.DictWriter(sys.stdout, columns, lineterminator="\n")
            for index, record in enumerate(map(json.loads, lines)):
                if index == 0:
                    table.writeheader()
                conditions, values = record.pop("conditions"), record.pop("values")
                table.writerow({**record, **conditions, **values})
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        # What is still in the buffer would fail again, with a traceback, when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise ClustergateError("rows.unwritable", why=error) from None
