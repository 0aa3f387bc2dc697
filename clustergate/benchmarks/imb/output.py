"""Read the text of the Intel MPI Benchmarks 3.2 to 2021.x into rows.

    #---------------------------------------------------
    # Benchmarking PingPong
    # #processes = 2
    # ( 2 additional processes waiting in MPI_Barrier)
    #---------------------------------------------------
           #bytes #repetitions      t[usec]   Mbytes/sec
                0           30         5.29         0.00
                1           30         4.39         0.23

All programs are read: IMB-MPI1, -RMA, -NBC, -P2P, -MT, -EXT, -IO, -MPI4 and the -GPU builds. Their
header says which benchmarks run and with which message lengths, and IMB takes them in that order,
over process counts that double up to the last. So every table and every line of it is known
beforehand but for its figures, and the parser holds the text to that plan: a table, a row or the
closing line that is missing is an error.

A row has the value names of :data:`clustergate.core.model.METRICS` and these conditions:
``processes`` (of one group), ``groups`` (that ran at the same time), ``group`` where each has a row
of its own (``-multi 1``), ``bytes``, ``repetitions``, ``mode`` (``AGGREGATE`` or
``NON-AGGREGATE``), ``threads`` and ``window_size`` (IMB-MT). Where IMB printed words for figures
(``out-of-mem.``, ``int-overflow.``, ``time-out.``) the row has that word as its status, no values
and no ``repetitions``; what IMB gave up after it, sizes and since 2019 also process counts and
modes, is not missing. A benchmark that IMB chose by itself and that cannot run with so many
processes gives one row of the status ``invalid``; if it was asked for, that is an error. A
"defects" column (a build with ``-DCHECK``) must be zero and is no value.

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

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from clustergate.benchmarks.imb.columns import MT_RATE, NO_SIZE, WIDTH, Columns, columns_of
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
from clustergate.benchmarks.imb.rules import broken_rule, contradiction, rules_of
from clustergate.benchmarks.text import OUTPUT_OTHER_RUN
from clustergate.core.model import ConditionValue, OutputError, Row
from clustergate.core.outputs import (
    OUTPUT_DECIMAL_COMMA,
    OUTPUT_FAILURE,
    OUTPUT_LACKS,
    OUTPUT_MISPLACED,
    OUTPUT_STRAY,
    OUTPUT_WRONG_RESULT,
)
from clustergate.core.reasons import Words

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

    The lines are read once and not kept. Raises :class:`OutputError` as soon as the text is
    incomplete, inconsistent, failed or not the run expected: rows that came before do not count
    then.
    """
    text, expect = Text(lines, source), expect or ImbExpectation()
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
            table = _Table(text, information, lengths, head, expect)
            for row in table.rows():
                if not plan.warming_up:
                    yield row
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


@dataclass
class _Head:
    """What stands above the rows of a table."""

    benchmark: str
    columns: Columns
    processes: int
    groups: int = 1
    idle: int = 0
    mode: str = ""
    threads: int | None = None
    window_size: int | None = None

    @property
    def conditions(self) -> dict[str, ConditionValue]:
        """What all of the rows have in common."""
        some = {
            "mode": self.mode or None,
            "threads": self.threads,
            "window_size": self.window_size,
        }
        known = {name: value for name, value in some.items() if value is not None}
        return {"processes": self.processes, "groups": self.groups, **known}


def _read_head(text: Text) -> _Head:
    """Read from below a table's first rule to the names of its columns."""
    rule, idle, mode, window_size = text.line, 0, "", None
    benchmark = _required(text, _BENCHMARK, "the name of a benchmark")
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
    name = benchmark.group(2)
    if threads is not None and (window_size is None) is ("band" in name.lower()):
        # Lines were lost between two heads.
        due = "that of another benchmark"
        raise text.error(OUTPUT_MISPLACED(what=f"the head of {name}", due=due))
    return _Head(name, columns, processes, groups, idle, mode, threads, window_size)


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


class _Table:
    """Reads the rows of one table.

    Raises :class:`OutputError` for other lengths or threads than those asked for.
    """

    def __init__(
        self,
        text: Text,
        information: RunInformation,
        lengths: Lengths,
        head: _Head,
        expect: ImbExpectation,
    ) -> None:
        threads = head.threads or 1
        if expect.threads not in (None, threads):
            raise text.error(OUTPUT_THREADS(actual=threads, wanted=expect.threads))
        self._text = text
        self._information = information
        self._lengths = lengths
        self._head = head
        self._columns = columns = head.columns
        self._conditions = head.conditions
        self._asked_repetitions = expect.repetitions
        # The rows of one size, one for each group.
        self._rows_per_size = head.groups if columns.is_grouped else 1
        due = lengths.expected(head.benchmark, text) if columns.is_sized else [NO_SIZE]
        self._due = due and [size for size in due for _ in range(self._rows_per_size)]
        # Of each row so far.
        self._sizes: list[int] = []
        self._repetitions = 0
        self._rules = rules_of(
            information, columns.metrics, head.benchmark, head.processes, threads
        )
        self._status = ""
        # The last empty line that came while rows were missing, 0 once a row has followed it.
        self._gap = 0

    @property
    def may_give_up(self) -> bool:
        """Whether IMB may give up the whole benchmark after this table, as it does since 2019."""
        return bool(self._status) and self._information.year >= 2019

    def rows(self) -> Iterator[Row]:
        """Yield the rows up to the line that ends the table.

        That is an empty line or, with groups, which empty lines part, the next line of IMB: it is
        left to be read again.
        """
        text, blanks = self._text, False
        while text.next():
            if not text.line and text.raw.rstrip("\r\n"):
                # Blanks alone are of someone else: IMB ends a table by an empty line. Unless
                # an editor or a log put blanks at the end of every line.
                blanks = text.raw.endswith("\n")
            elif match := self._columns.row.fullmatch(text.line):
                yield self._row_of_figures(match)
            elif self._ends_here() or (blanks and text.line.startswith(("#", "!"))):
                self._finish()
                text.back()
                return
            elif text.line and (row := self._row_of_words()):
                yield row
        if not (self._gap or blanks):
            raise text.cut_off(f"the end of the table of {self._head.benchmark}")
        self._finish()

    def _row_of_figures(self, match: re.Match[str]) -> Row:
        columns, count = self._columns, len(self._columns.integers)
        integers = dict(zip(columns.integers, map(int, match.groups()[:count]), strict=True))
        figures = [float(word) for word in match.groups()[count:]]
        defects = figures.pop() if columns.is_checked else 0.0
        size, repetitions = integers.get("bytes", NO_SIZE), integers["repetitions"]
        self._gap = 0
        self._place(integers.get("group", 0), size)
        # They do not grow with the sizes, unless these are the user's own.
        most = (self._lengths.declared and self._repetitions) or repetitions
        self._repetitions = repetitions
        if not 0 < repetitions <= most:
            said = "{0} repetitions|the {1} before"
            raise self._text.error(contradiction(said, repetitions, most))
        asked = self._asked_repetitions
        if asked not in (None, repetitions):
            other = OUTPUT_OTHER_RUN(what="repetitions", actual=repetitions, wanted=asked)
            raise self._text.error(other)
        if defects:
            wrong = OUTPUT_WRONG_RESULT(what="'defects'", value=defects, wanted="0")
            raise self._text.error(wrong)
        if problem := broken_rule(self._rules, size, figures):
            raise self._text.error(problem)
        return self._row(integers, dict(zip(columns.metrics, figures, strict=True)))

    def _row(
        self, integers: Mapping[str, int], values: Mapping[str, float], status: str = "ok"
    ) -> Row:
        suite, benchmark = self._information.suite, self._head.benchmark
        conditions = {**self._conditions, **integers}
        return Row(suite, benchmark, conditions, values, status, self._text.number)

    def _ends_here(self) -> bool:
        """Say whether the line, which is no row of figures, ends the table."""
        line = self._text.line
        if not self._columns.is_grouped:
            if not line and self._missing() and not self._gives_up:
                self._gap = self._gap or self._text.number
                return False
            return not line or (self._gap > 0 and line[0] in "#!")
        if len(self._sizes) % self._rows_per_size and (not line or line[0] in "#!"):
            raise self._text.error(OUTPUT_LACKS(missing="a row of one of the groups"))
        return line.startswith(("#", "!"))

    def _row_of_words(self) -> Row | None:
        """Return a row with words for figures, None for a foreign line that may be passed over."""
        text, columns = self._text, self._columns
        match = columns.words.fullmatch(text.line)
        if match is None:
            if self._is_foreign():
                return None
            raise self._broken_row()
        if columns.is_aligned and match.end(2) != WIDTH * (1 + columns.is_grouped):
            raise self._broken_row()
        group, size, status = match.groups()
        self._status = status
        integers = {"group": int(group)} if group else {}
        # In a table without sizes IMB prints the largest one here, not the repetitions.
        if columns.is_sized:
            integers["bytes"] = int(size)
        self._place(int(group or 0), int(size) if columns.is_sized else NO_SIZE)
        return self._row(integers, {}, status)

    def _place(self, group: int, size: int) -> None:
        """Take a row to the others, or raise if it is not the one that comes next."""
        place, each = len(self._sizes), self._rows_per_size
        if group != place % each:
            due = f"one of group {place % each}"
            raise self._text.error(OUTPUT_MISPLACED(what=f"a row of group {group}", due=due))
        if self._due is not None:
            wanted = self._due[place : place + 1]
        else:
            wanted = self._sizes[-1:] if place % each else [size]
        self._sizes.append(size)
        if wanted == [size]:
            return
        if wanted and place % each == 0 and size < wanted[0] and not self._lengths.declared:
            raise self._text.error(SIZES_CUT(bytes=size, wanted=wanted[0]))
        due = f"one of {wanted[0]} bytes" if wanted else "the end of the table"
        raise self._text.error(OUTPUT_MISPLACED(what=f"a row of {size} bytes", due=due))

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
        text, benchmark = self._text, self._head.benchmark
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
        return (self._due or [])[len(self._sizes) :]

    def _finish(self) -> None:
        """Raise if the table ended before its last row."""
        text, name = self._text, self._head.benchmark
        if self._gives_up:
            return
        if self._due is None:
            if not self._sizes:
                raise text.error(ROWS_LOST(table=name, missing="any row"))
            self._lengths.compare(name, self._sizes[:: self._rows_per_size], text)
        elif missing := self._missing():
            row = f"its row of {missing[0]} bytes" if self._columns.is_sized else "its only row"
            line = self._gap or text.number
            facts = {"table": name, "missing": row}
            raise OutputError(ROWS_LOST(**facts), line=line, source=text.source)
