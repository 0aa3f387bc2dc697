"""Read the text of the Intel MPI Benchmarks 3.2 to 2021.x into rows.

All programs are read: IMB-MPI1, -RMA, -NBC, -P2P, -MT, -EXT, -IO, -MPI4 and the -GPU builds. Their
header says which benchmarks run and with which message lengths, and IMB takes them in that order,
over process counts that double up to the last. So every table and every line of it is known
beforehand but for its figures, and the parser holds the text to that plan: a table, a row or the
closing line that is missing is an error.

A row has the value names of :data:`clustergate.model.METRICS` and these conditions: ``processes``
(of one group), ``groups`` (that ran at the same time), ``group`` where each has a row of its own
(``-multi 1``), ``bytes``, ``repetitions``, ``mode`` (``AGGREGATE`` or ``NON-AGGREGATE``),
``threads`` and ``window_size`` (IMB-MT). Where IMB printed words for figures (``out-of-mem.``,
``int-overflow.``, ``time-out.``) the row has that word as its status, no values and no
``repetitions``; what IMB gave up after it, sizes and since 2019 also process counts and modes, is
not missing. A benchmark that IMB chose by itself and that cannot run with so many processes gives
one row of the status ``invalid``; if it was asked for, that is an error. A "defects" column (a
build with ``-DCHECK``) must be zero and is no value.

MB/s are of 2**20 bytes up to IMB 2017 and of 10**6 bytes from 2018 on. Sendrecv and the like count
twice the message, Exchange and the like four times, and it is ``t_max`` that they are computed
from. The ``t_min`` of IMB-MT is 0 if a process had no partner.

Foreign lines (of launchers, of MPI libraries) may stand before the title, between the lines of the
header and of the heads of tables, between tables and after the closing line. Inside a table, a
whole line that could not be a damaged row is passed over, and where the lengths are known
beforehand so are empty lines and whatever stands between them and the next row; any other is an
error.

What cannot be noticed:

- a changed digit where nothing printed depends on it: ``repetitions`` (which do not grow with the
  size, no more is known), ``t_min`` and ``t_avg`` between their neighbours, ``t_max`` and
  ``t[usec]`` of 0 bytes and of tables without MB/s, ``t_pure`` and ``t_ovrl`` where the overlap is
  0 or 100 % and in IMB-RMA, ``t[usec]`` of IMB-P2P within the bounds that its message rate sets;
  and any change within the printed rounding, which is wide where times are short (0.14 us bounds
  its MB/s to 7 %);
- with lengths from a file (``-msglen``): a size lost from every table; in the only table of its
  datatype, rows that changed places or came twice, and a changed size where there are no MB/s; and
  that IMB 2019 and later silently cut sizes to the maximum of ``-msglog``, 4 MiB by default.
  ``ImbExpectation.bytes`` tells;
- since 2019, a lost row of words below another one: some versions print one for each size that is
  left, others give up after the first;
- a benchmark lost from the list in the header with all its tables, unless
  ``ImbExpectation.benchmarks`` names it; a changed process count if there is one table only, and
  but for IMB-P2P the count stays below ``-npmin``, unless ``ImbExpectation.processes`` names it;
- in IMB-MT, which prints neither a list nor the lengths nor a closing line: lost tables, a text cut
  between two tables, and changed numbers of processes, threads or window size in tables without a
  message rate. ``ImbExpectation`` tells all but the last;
- a fault of IMB since 2019: when ``-time`` is over for a process other than the first, the row of
  the next size repeats the times of the row before, and IMB gives the benchmark up without a word.
  The rows and tables that are missing then are noticed, a last row of the last one is not;
- a crash after the closing line: the launcher's exit status tells;
- changes of what no row holds: dates, machine, needed memory, lists of ranks.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clustergate.benchmarks.imb.columns import MT_RATE, NO_SIZE, WIDTH, Head, columns_of
from clustergate.benchmarks.imb.header import (
    CLOSING_LINE,
    NOT_VALID,
    PROCESSOR_NOTE,
    RULE,
    RunInformation,
    Text,
    read_header,
)
from clustergate.benchmarks.imb.plan import ImbExpectation, Lengths, Plan
from clustergate.model import ConditionValue, OutputError, Part, Row, Table, rows_of
from clustergate.one_thread import one_thread
from clustergate.wording.outputs import (
    OUTPUT_DECIMAL_COMMA,
    OUTPUT_FAILURE,
    OUTPUT_LACKS,
    OUTPUT_MISPLACED,
    OUTPUT_STRAY,
)
from clustergate.wording.reasons import Reason, Words

if TYPE_CHECKING:
    from clustergate.benchmarks.imb.figures import Rule

Problem = tuple[int, Reason]
"""Which of several rows is the first bad one, from 0, and what is wrong with it."""

_BENCHMARK = re.compile(r"# Benchmarking (Multi-)?(\w+)(?: \((?:\d+ x )+\d+\))?")
_PROCESSES = re.compile(
    r"# #processes = (\d{1,9})(?: \(threads: (\d{1,9})\)|; rank order \(rowwise\):)?"
)
_GROUPS = re.compile(r"# \( (\d{1,9}) groups of (\d{1,9}) processes each running simultaneous \)")
_IDLE = re.compile(r"# \( (\d{1,9}) additional process(?:es)? waiting in MPI_Barrier\)")
_WINDOW = re.compile(r"# window_size = (\d{1,9})")
_RANKS = re.compile(r"#(?: Group +\d+:)?[ \d.]*")
_MODE = re.compile(r"# +MODE: (AGGREGATE|NON-AGGREGATE)")

_STATUS_WORDS = re.compile(r"out-of-mem|int-overflow|time-out")
_NUMBER = re.compile(r"[+-]?\d+(?:[.,]\d+)?", re.ASCII)
# IMB built with -DCHECK, of a message that arrived with another content.
_DATA_CHECK = re.compile(r"\s*\d+: Error \w+,\s*size = \d+")
_DECIMAL_COMMA = re.compile(r"\d,\d\d(?:\s|$)", re.ASCII)
_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)


def parse_imb(
    lines: Iterable[str], *, source: str = "output", expect: ImbExpectation | None = None
) -> Iterator[Row]:
    """Yield one row per line of figures: times in us, MB/s and messages/s as IMB counts them.

    It is :func:`read_imb`, row by row.
    """
    return rows_of(read_imb(lines, source=source, expect=expect))


def read_imb(
    lines: Iterable[str], *, source: str = "output", expect: ImbExpectation | None = None
) -> Iterator[Part]:
    """Yield the rows with figures as tables, those without as rows, in the order of the text.

    The lines are read once and not kept. Raises :class:`OutputError` as soon as the text is
    incomplete, inconsistent, failed or not the run expected: rows that came before do not count
    then.
    """
    yield from _checker()(_parts(Text(lines, source), expect or ImbExpectation()), source)


@functools.cache
def _checker() -> Callable[[Iterable[Row | Block | None], str], Iterator[Part]]:
    # NumPy is for those who have a table to read.
    with one_thread():
        from clustergate.benchmarks.imb.figures import checked
    return checked


def _parts(text: Text, expect: ImbExpectation) -> Iterator[Row | Block | None]:
    """Yield what the text consists of; None where all before it must be checked first."""
    information = read_header(text)
    plan = Plan(information, expect, text)
    lengths = Lengths(information, expect)
    # The line that ended the header or a table may be the first of what follows.
    text.back()
    while text.next():
        if not text.line:
            continue
        if RULE.fullmatch(text.line):
            head = _read_head(text)
            plan.table(head.benchmark, head.mode, head.processes, head.groups, head.idle)
            table = TableReader(text, information, lengths, head, expect)
            table.counts = not plan.warming_up
            yield from table.parts()
            if table.may_give_up:
                plan.may_give_up()
        elif text.line == CLOSING_LINE and information.program != "IMB-MT":
            plan.finish()
            while text.next():
                text.refuse_figures("after the closing line")
            return
        elif match := NOT_VALID.fullmatch(text.line):
            yield plan.not_valid(match.group(1), int(match.group(2)))
        else:
            text.refuse_figures("outside a table")
            if text.line.startswith("#") and not PROCESSOR_NOTE.fullmatch(text.line):
                raise text.error(OUTPUT_STRAY(what=f'"{text.line}"'))
    if information.program != "IMB-MT":
        raise text.cut_off(f'the line "{CLOSING_LINE}"')
    plan.finish()


def _read_head(text: Text) -> Head:
    """Read from below a table's first rule to the names of its columns."""
    rule, groups, idle = text.line, 1, 0
    threads, mode, window_size = None, "", None
    if usual := text.take(_usual_head(rule)):
        name, processes, idle = usual[1], int(usual[2]), int(usual[3] or 0)
    else:
        benchmark = _required(text, _BENCHMARK, "the name of a benchmark")
        name = benchmark.group(2)
        processes, groups, threads = _read_processes(text)
        if bool(benchmark.group(1)) != (groups > 1):
            raise _damaged_head(text, "the number of groups")
        while _following(text, "the rule below the processes") != rule:
            if match := _IDLE.fullmatch(text.line):
                idle = int(match.group(1))
            elif match := _WINDOW.fullmatch(text.line):
                window_size = int(match.group(1))
            elif not _RANKS.fullmatch(text.line):
                raise _damaged_head(text, "the rule below the processes")
        if _following(text, "the names of the columns") == "#":
            mode = _required(text, _MODE, "the mode").group(1)
            if _following(text, "the line below the mode") != "#":
                raise _damaged_head(text, "the line below the mode")
            _following(text, "the names of the columns")
    columns = columns_of(text.line)
    if columns is None:
        raise _damaged_head(text, "the names of the columns")
    if columns.metrics == MT_RATE and window_size is None:
        raise text.error(OUTPUT_LACKS(missing="the window size in the head of the table"))
    if window_size is not None and "message_rate_per_s" not in columns.metrics:
        raise text.error(OUTPUT_MISPLACED(what="a window size", due="a head without one"))
    conditions: dict[str, ConditionValue] = {"processes": processes, "groups": groups}
    for key, value in (("mode", mode or None), ("threads", threads), ("window_size", window_size)):
        if value is not None:
            conditions[key] = value
    return Head(name, processes, groups, idle, threads, mode, columns, conditions)


@functools.lru_cache(maxsize=8)
def _usual_head(rule: str) -> re.Pattern[str]:
    """Return the pattern of a head as most tables have it, below its first rule."""
    processes, names = r"# #processes = ([1-9]\d{0,8})", r" [ \w]*#(?:bytes|repetitions) .*"
    lines = (r"# Benchmarking (\w+)", processes, rf"(?:{_IDLE.pattern} *\n)?{rule}", names)
    return re.compile("".join(rf"{line} *\n" for line in lines))


def _read_processes(text: Text) -> tuple[int, int, int | None]:
    """Return the processes of a group, the groups and the threads."""
    _following(text, "the number of processes")
    if match := _PROCESSES.fullmatch(text.line):
        each, groups, threads = int(match.group(1)), 1, match.group(2)
    elif match := _GROUPS.fullmatch(text.line):
        each, groups, threads = int(match.group(2)), int(match.group(1)), None
    elif text.line == "# NO SUCCESSFUL EXECUTIONS":
        raise text.error(OUTPUT_FAILURE(program="IMB", words="no successful executions"))
    else:
        raise _damaged_head(text, "the number of processes")
    if each == 0 or groups == 0 or threads == "0":
        raise _damaged_head(text, "a number of processes")
    return each, groups, int(threads) if threads else None


def _following(text: Text, what: str) -> str:
    """Return the next line of the head: all begin with #, but for the names of the columns."""
    while text.next():
        if text.line.startswith("#") or "#bytes" in text.line or "#repetitions" in text.line:
            return text.line
        text.refuse_figures("inside the head of another one")
    raise text.cut_off(what)


def _required(text: Text, pattern: re.Pattern[str], what: str) -> re.Match[str]:
    match = pattern.fullmatch(_following(text, what))
    if match is None:
        raise _damaged_head(text, what)
    return match


def _damaged_head(text: Text, what: str) -> OutputError:
    text.refuse_figures("inside the head of another one")
    return text.error(OUTPUT_MISPLACED(what=f'"{text.line}"', due=f"{what} in the head of a table"))


@dataclass(eq=False)
class Block:
    """Lines of a table that have the form of its rows and stand together.

    ``line`` numbers the first of them, ``start`` counts the table's rows before it. ``table`` is
    what they say, once it has been checked.
    """

    reader: TableReader
    text: str
    line: int
    start: int
    count: int
    table: Table = field(init=False)

    def joins(self, before: Row | Block) -> bool:
        """Become part of a block if this one begins at its end."""
        if not isinstance(before, Block) or before.reader is not self.reader:
            return False
        if before.line + before.count != self.line:
            return False
        before.text += self.text
        before.count += self.count
        return True


ROWS_LOST = Words(
    "output.rows-lost",
    "the table of {table} ends without {missing}",
    cause="rows are lost, or the program gave up when its time was over for another process",
)
SIZES_CUT = Words(
    "output.sizes-cut",
    "a message length that was requested was cut",
    remedy="give -msglog a larger maximum",
)
OUTPUT_THREADS = Words(
    "output.threads",
    "another run: {actual} threads in each process, but {wanted} were requested",
    cause="OMP_NUM_THREADS did not reach the ranks, or the program is a wrapper that sets it",
)
DATA_CHECK = Words(
    "output.data-check",
    "{program}'s own check of the data failed: {words}",
    remedy="do not trust the figures, look for a faulty node, adapter or library",
)


class TableReader:
    """Reads the rows of one table, as many at once as stand together.

    Raises :class:`OutputError` for other lengths or threads than those asked for.
    """

    def __init__(
        self,
        text: Text,
        information: RunInformation,
        lengths: Lengths,
        head: Head,
        expect: ImbExpectation,
    ) -> None:
        threads = head.threads or 1
        if expect.threads not in (None, threads):
            raise text.error(OUTPUT_THREADS(actual=threads, wanted=expect.threads))
        self.information = information
        self.head = head
        self.columns = columns = head.columns
        self.lengths = lengths
        self.asked_repetitions = expect.repetitions
        # The rows of one size, one for each group.
        self.of_a_size = head.groups if columns.grouped else 1
        self.due: list[int] | None = [NO_SIZE]
        if columns.sized:
            self.due = lengths.expected(head.benchmark, text)
        if self.due and columns.grouped:
            self.due = [size for size in self.due for _ in range(head.groups)]
        # False for a table of the warm-up: its rows are checked and left out.
        self.counts = True
        # What must hold for the figures, once there are some to be checked.
        self.rules: list[Rule] = []
        if self.due is None:
            self.hash = hashlib.blake2b(digest_size=16)
        self.most_repetitions = 0
        self._last_size = NO_SIZE
        self._text = text
        self._count = 0
        self._status = ""
        # The last empty line that came while rows were missing, 0 once a row has followed it.
        self._gap = 0

    @property
    def may_give_up(self) -> bool:
        """Whether IMB may give up the whole benchmark after this table, as it does since 2019."""
        return bool(self._status) and self.information.year >= 2019

    def parts(self) -> Iterator[Row | Block | None]:
        """Yield the rows up to the line that ends the table.

        That is an empty line or, with groups, which empty lines part, the next line of IMB: it is
        left to be read again.
        """
        text, is_row, blanks = self._text, self.columns.is_row, False
        while True:
            line = text.number + 1
            rows, count = text.take_while(is_row, self.columns.shapes)
            if rows:
                yield self._block(rows, line, count)
            if not text.next():
                if not (self._gap or blanks):
                    raise text.cut_off(f"the end of the table of {self.head.benchmark}")
                break
            elif not text.line and text.raw.rstrip("\r\n"):
                # Blanks alone are of someone else: IMB ends a table by an empty line. Unless
                # an editor or a log put blanks at the end of every line.
                blanks = text.raw.endswith("\n")
            elif text.line and is_row(text.line):
                yield self._block(f"{text.line}\n", text.number, 1)
            elif self._ends_here() or (blanks and text.line.startswith(("#", "!"))):
                yield from self._finished()
                text.back()
                return
            elif text.line:
                yield None
                if (row := self._row_of_words()) and self.counts:
                    yield row
        yield from self._finished()

    def _block(self, rows: str, line: int, count: int) -> Block:
        """Count lines that have the form of rows."""
        block = Block(self, rows, line, self._count, count)
        self._count += count
        self._gap = 0
        return block

    def _ends_here(self) -> bool:
        """Say whether the line, which is no row of figures, ends the table."""
        line = self._text.line
        if not self.columns.grouped:
            if not line and self._missing() and not self._gives_up:
                self._gap = self._gap or self._text.number
                return False
            return not line or (self._gap > 0 and line[0] in "#!")
        if self._count % self.of_a_size and (not line or line[0] in "#!"):
            raise self._text.error(OUTPUT_LACKS(missing="a row of one of the groups"))
        return line.startswith(("#", "!"))

    def _row_of_words(self) -> Row | None:
        """Return a row with words for figures, None for a foreign line that may be passed over."""
        text, head, columns = self._text, self.head, self.columns
        match = columns.words.fullmatch(text.line)
        if match is None:
            if self._is_foreign():
                return None
            raise self._broken_row()
        if columns.aligned and match.end(2) != WIDTH * (1 + columns.grouped):
            raise self._broken_row()
        group, size, self._status = match.groups()
        conditions = dict(head.conditions)
        if columns.grouped:
            conditions["group"] = int(group)
        # In a table without sizes IMB prints the largest one here, not the repetitions.
        if columns.sized:
            conditions["bytes"] = int(size)
        groups = [int(group)] if columns.grouped else []
        sizes = [int(size)] if columns.sized else [NO_SIZE]
        for _, problem in self.misplaced(self._count, groups, sizes):
            raise text.error(problem)
        self._count += 1
        suite = self.information.suite
        return Row(suite, head.benchmark, conditions, {}, self._status, text.number)

    def misplaced(
        self, start: int, groups: Sequence[int], sizes: Sequence[int]
    ) -> Iterator[Problem]:
        """Yield what rows, of which so many came before, are not those that come next."""
        each = self.of_a_size
        for row, group in enumerate(groups):
            if group != (start + row) % each:
                due = f"one of group {(start + row) % each}"
                yield row, OUTPUT_MISPLACED(what=f"a row of group {group}", due=due)
                break
        if self.due is not None:
            wanted = self.due[start : start + len(sizes)]
        else:
            firsts = sizes[-start % each :: each]
            self.hash.update(array("q", firsts))
            begun = [self._last_size] * min(-start % each, len(sizes))
            follow = itertools.chain.from_iterable(zip(*[firsts] * each, strict=True))
            wanted = [*begun, *follow][: len(sizes)]
            self._last_size = wanted[-1]
        if sizes != wanted:
            pairs = itertools.zip_longest(sizes, wanted)
            row = next(row for row, (size, due) in enumerate(pairs) if size != due)
            yield row, self._wrong_size(sizes[row], wanted[row:], (start + row) % each > 0)

    def _wrong_size(self, size: int, wanted: Sequence[int], among: bool) -> Reason:
        if wanted and not among and size < wanted[0] and not self.lengths.declared:
            return SIZES_CUT(bytes=size, wanted=wanted[0])
        due = f"one of {wanted[0]} bytes" if wanted else "the end of the table"
        return OUTPUT_MISPLACED(what=f"a row of {size} bytes", due=due)

    def _is_foreign(self) -> bool:
        """Say whether this is a whole line of something else, and cannot be a damaged row."""
        text, line = self._text, self._text.line
        words = line.split()
        indented = line[0].isspace() and not (self._missing() and words[0][0].isalpha())
        if not self._gap and (indented or line[0].isdigit()):
            return False
        text.refuse_figures("inside another table")
        if line.startswith("Attention, msg size"):
            raise text.error(SIZES_CUT())
        if self._gap:
            return True
        numbers = sum(1 for word in words if _NUMBER.fullmatch(word))
        undefined = any(_NOT_FINITE.fullmatch(word) for word in words)
        return (
            line[0] not in "#!" and numbers < 2 and not undefined and not _STATUS_WORDS.search(line)
        )

    def _broken_row(self) -> OutputError:
        text, benchmark = self._text, self.head.benchmark
        if text.line.startswith("#"):
            due = f"the end of the table of {benchmark}"
            return text.error(OUTPUT_MISPLACED(what=f'"{text.line}"', due=due))
        if _DECIMAL_COMMA.search(text.line):
            return text.error(OUTPUT_DECIMAL_COMMA())
        if _DATA_CHECK.match(text.line):
            return text.error(DATA_CHECK(program="IMB", words=text.line.strip()))
        # Also where figures are so large that they run into each other.
        return text.damaged(f"a row of {benchmark}")

    @property
    def _gives_up(self) -> bool:
        """Whether IMB leaves out the sizes that follow: at first only after a time-out."""
        return self.may_give_up or self._status == "time-out"

    def _missing(self) -> Sequence[int]:
        """Return the sizes that must still come, as far as they are known."""
        return (self.due or [])[self._count :]

    def _finished(self) -> Iterator[None]:
        """Raise if the table ended before its last row."""
        text, name = self._text, self.head.benchmark
        if self._gives_up:
            return
        if self.due is None:
            if self._count == 0:
                raise text.error(ROWS_LOST(table=name, missing="any row"))
            yield None
            count = self._count // self.of_a_size
            self.lengths.compare(name, count, self.hash.digest(), text)
        elif missing := self._missing():
            row = f"its row of {missing[0]} bytes" if self.columns.sized else "its only row"
            line = self._gap or text.number
            facts = {"table": name, "missing": row}
            raise OutputError(ROWS_LOST(**facts), line=line, source=text.source)
