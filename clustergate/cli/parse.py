"""``clustergate parse``: the figures in the outputs of benchmarks, as JSON lines or as a table."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import operator
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator
from typing import IO, Any

from clustergate.benchmarks.formats import formats, parse
from clustergate.cli.passing_on import option
from clustergate.cli.tables import Columns, as_csv, as_parquet, print_blocks
from clustergate.core.model import ClustergateError, OutputError, Row
from clustergate.core.outputs import OUTPUT_CUT_OFF, OUTPUT_DAMAGED, OUTPUT_UNREADABLE_HERE
from clustergate.core.reasons import Words

DESCRIPTION = """\
Print the figures of benchmark outputs: one JSON object per line, or a table as CSV or Parquet. The
program is recognised by its title. Nothing is printed of an output that is truncated, damaged,
incomplete, or whose own checks failed: that is one sentence with file and line on standard error,
and exit status 1. --keep-complete prints the results before the place where an output was cut off,
with the same sentence and status. A prefix that a launcher or a tool put before each line is
removed."""

STANDARD_INPUT = "-"
# No benchmark prints longer lines: what has them is not text, and would fill the memory.
LONGEST_LINE = 65536
IN_MEMORY = 1 << 20
# How compressed files begin.
COMPRESSED = (b"\x1f\x8b", b"\xfd7zXZ", b"BZh", b"(\xb5/\xfd")
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
FIRST_COLUMNS = ("file", "suite", "benchmark", "status", "line")
# Of Slurm, PBS and LSF, as they end a job.
_ENDED_JOB = re.compile(
    r"DUE TO (?:TIME LIMIT|PREEMPTION|NODE FAILURE|JOB REQUEUE)|CANCELLED AT |[Oo]om[-_ ][Kk]ill"
    r"|PBS: job killed|TERM_(?:RUNLIMIT|MEMLIMIT|OWNER)"
)
_FIELDS = operator.attrgetter(*FIRST_COLUMNS[1:])


def add_options(parser: argparse.ArgumentParser) -> None:
    option(parser, "files FILE", f"an output; {STANDARD_INPUT} is standard input", nargs="+")
    kinds = ("jsonl", "csv", "parquet")
    option(parser, "--format", "default: jsonl", choices=kinds, default="jsonl")
    option(parser, "--keep-complete", "of an output that was cut off, the results before that")
    option(
        parser,
        "--suite NAME",
        f"read unrecognised output as that of NAME: {', '.join(sorted(formats()))}",
        choices=sorted(formats()),
    )


ENDED_BY_SCHEDULER = Words(
    "output.ended-by-scheduler",
    "the job was ended from outside: {words}",
    remedy="give it what it lacked: time, memory or another node",
)
MAY_BE_KEPT = Words(
    "output.may-be-kept",
    "results may be complete before the place where it was cut off",
    remedy="--keep-complete prints those",
)
NOTHING_COMPLETE = Words(
    "output.nothing-complete",
    "no result was complete before the place where it was cut off",
    remedy="run it again",
)
KEPT_COMPLETE = Words(
    "output.kept-complete",
    "the results up to there are complete and were kept",
    remedy="run again what is missing",
)
NOT_KEPT = Words(
    "rows.not-kept",
    "the rows cannot be kept in a temporary file until their text is checked",
    cause="{why}",
    remedy="set TMPDIR to a folder with more space",
)


def run(arguments: argparse.Namespace) -> int:
    """Print the rows of every good file, a sentence for every bad one; 1 if there was a bad one.

    Rows wait in a temporary file until their text has been read to its end: memory stays flat.
    """
    columns: Columns = {**dict.fromkeys(FIRST_COLUMNS, str), "line": int}
    status = 0

    def say(sentence: object) -> None:
        print(f"clustergate: {arguments.invocation.completed(sentence)}", file=sys.stderr)

    kept = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115, closed below
    try:
        for name in arguments.files:
            # Bytes of a name that are not UTF-8 are spelled out.
            printable = name.encode("utf-8", "backslashreplace").decode("utf-8")
            source = "standard input" if name == STANDARD_INPUT else printable
            start, known = kept.tell(), dict(columns)
            lines = _Watched(read_lines(name, source))
            try:
                for row in parse(lines, source=source, suite=arguments.suite, say=say):
                    kept.write(_as_json(source, row))
                    if arguments.format != "jsonl":
                        _add_columns(columns, row)
            except OutputError as error:
                say(error)
                status = error.exit_status
                cut_off = lines.ends_at(error)
                if not (arguments.keep_complete and cut_off):
                    kept.seek(start)
                    kept.truncate()
                    columns = known
                elif kept.tell() > start:
                    say(KEPT_COMPLETE(at=source))
                else:
                    say(NOTHING_COMPLETE(at=source))
                if lines.ended_by:
                    say(ENDED_BY_SCHEDULER(at=source, words=lines.ended_by))
                    if cut_off and not arguments.keep_complete:
                        say(MAY_BE_KEPT(at=source))
        is_empty = kept.tell() == 0
        kept.seek(0)
        if is_empty or arguments.format == "jsonl":
            print_blocks(kept, sys.stdout.buffer.write)
        else:
            table = as_csv if arguments.format == "csv" else as_parquet
            print_blocks(table(_cells(kept, columns), columns), sys.stdout.buffer.write)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise ClustergateError(NOT_KEPT(why=error)) from None
    finally:
        # A full disk was reported when it was noticed; closing would report it again.
        with contextlib.suppress(OSError):
            kept.close()
    return status


class _Watched:
    """The lines of a file; ``ended_by`` is what a scheduler says there of the end of its job."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines
        self._number = self._last = 0
        self.ended_by = ""

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self._number += 1
            if _ENDED_JOB.search(line):
                self.ended_by = self.ended_by or line.strip()[:200]
            elif line.strip():
                self._last = self._number
            yield line

    def ends_at(self, error: OutputError) -> bool:
        """Tell whether an error is that the file ends, perhaps in the middle of its last line."""
        with contextlib.suppress(OutputError):
            for _ in self:
                pass
        at_last = error.line is not None and error.line >= self._last
        return error.reason.code == OUTPUT_CUT_OFF.code or (
            at_last and error.reason.code == OUTPUT_DAMAGED.code
        )


def read_lines(name: str, source: str) -> Iterator[str]:
    """Yield the lines of a file, or of standard input for ``-``.

    Raises :class:`OutputError` for what cannot be read or is no text.
    """
    number, block, read = 0, b"", b"\n"
    try:
        with _opened(name) as file:
            while read:
                read = file.read(LONGEST_LINE)
                block += read
                # What stands behind the last end of a line waits for the rest of its own.
                whole = block.rfind(b"\n") + 1
                if not read or (not whole and len(block) > LONGEST_LINE):
                    whole = len(block)
                lines, block = block[:whole], block[whole:]
                _refuse_no_text(lines, number, source)
                # Names and messages in another encoding do no harm; a figure with such a byte is
                # none.
                yield from io.StringIO(lines.decode("utf-8", errors="replace"), newline="\n")
                number += lines.count(b"\n")
    except OSError as error:
        raise OutputError(OUTPUT_UNREADABLE_HERE(why=error), source=source) from None


OUTPUT_CLOSED = Words("output.closed", "is closed")


def _opened(name: str) -> contextlib.AbstractContextManager[IO[bytes]]:
    if name != STANDARD_INPUT:
        return open(name, "rb")
    if sys.stdin is None:
        raise OutputError(OUTPUT_CLOSED(), source="standard input")
    return contextlib.nullcontext(sys.stdin.buffer)


OUTPUT_COMPRESSED = Words(
    "output.compressed",
    "this is not a benchmark's output",
    cause="it is compressed",
    remedy="unpack it first, or pipe it into `clustergate parse -`",
)
LONG_LINE = Words(
    "output.long-line",
    "this is not a benchmark's output",
    cause="a line of more than {most} bytes",
)
ZERO_BYTE = Words(
    "output.zero-byte",
    "this is not a benchmark's output",
    cause="a zero byte, as a crash or a full disk leaves behind",
)
OTHER_ENCODING = Words(
    "output.other-encoding",
    "this is text in UTF-16, as PowerShell writes it",
    remedy="convert it first: `iconv -f UTF-16 -t UTF-8 FILE`",
)


def _refuse_no_text(lines: bytes, number: int, source: str) -> None:
    """Raise unless lines, of which so many came before, are text: only the first may be long."""
    if number == 0 and lines.startswith(COMPRESSED):
        problem = OUTPUT_COMPRESSED()
    elif number == 0 and (lines.startswith(UTF_16) or _halves_are_zero(lines)):
        problem = OTHER_ENCODING()
    elif (lines.find(b"\n") + 1 or len(lines)) > LONGEST_LINE:
        problem = LONG_LINE(most=LONGEST_LINE)
    elif (zero := lines.find(b"\0")) >= 0:
        problem = ZERO_BYTE()
        number += lines.count(b"\n", 0, zero)
    else:
        return
    raise OutputError(problem, line=number + 1, source=source)


def _halves_are_zero(lines: bytes) -> bool:
    """Tell whether every second byte of the beginning is zero, as in UTF-16 without a mark."""
    start = lines[:64]
    return len(start) > 8 and (not any(start[::2]) or not any(start[1::2])) and any(start)


def _as_json(source: str, row: Row) -> bytes:
    record = (source, *_FIELDS(row), row.conditions, row.values)
    names = (*FIRST_COLUMNS, "conditions", "values")
    return f"{json.dumps(dict(zip(names, record, strict=True)))}\n".encode()


def _add_columns(columns: Columns, row: Row) -> None:
    kinds = {name: type(value) for name, value in row.conditions.items()}
    for name, kind in (kinds | dict.fromkeys(row.values, float)).items():
        columns[name] = kind if columns.get(name, kind) is kind else str


def _cells(lines: Iterable[bytes], columns: Columns) -> Iterator[list[Any]]:
    """Yield what stands in the columns of each row, None where it has no such cell."""
    for line in lines:
        record = json.loads(line)
        cells = {**record.pop("conditions"), **record.pop("values"), **record}
        yield [cells.get(name) for name in columns]
