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

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from clustergate.benchmarks.imb.figures import (
    LATENCY,
    MT_RATE,
    OVERLAP,
    P2P,
    PASSIVE,
    RANGE,
    RANGE_BANDWIDTH,
    RATE,
    Measured,
    check_of,
)
from clustergate.benchmarks.imb.header import (
    CLOSING_LINE,
    NOT_VALID,
    PROCESSOR_NOTE,
    RULE,
    TITLE,
    RunInformation,
    Text,
    read_header,
)
from clustergate.benchmarks.imb.plan import ImbExpectation, Lengths, Plan
from clustergate.model import ConditionValue, OutputError, Row

__all__ = ["ImbExpectation", "RunInformation", "is_imb", "parse_imb", "run_information"]

_BENCHMARK = re.compile(r"# Benchmarking (Multi-)?(\w+)(?: \((?:\d+ x )+\d+\))?")
_PROCESSES = re.compile(
    r"# #processes = (\d{1,9})(?: \(threads: (\d{1,9})\)|; rank order \(rowwise\):)?"
)
_GROUPS = re.compile(r"# \( (\d{1,9}) groups of (\d{1,9}) processes each running simultaneous \)")
_IDLE = re.compile(r"# \( (\d{1,9}) additional process(?:es)? waiting in MPI_Barrier\)")
_WINDOW = re.compile(r"# window_size = (\d{1,9})")
_RANKS = re.compile(r"#(?: Group +\d+:)?[ \d.]*")
_MODE = re.compile(r"# +MODE: (AGGREGATE|NON-AGGREGATE)")

_METRIC_OF_COLUMN = {
    "t[usec]": "latency_us",
    "t_min[usec]": "t_min_us",
    "t_max[usec]": "t_max_us",
    "t_avg[usec]": "t_avg_us",
    "t_ovrl[usec]": "t_overlapped_us",
    "t_pure[usec]": "t_pure_us",
    "t_CPU[usec]": "t_cpu_us",
    "overlap[%]": "overlap_percent",
    "Mbytes/sec": "bandwidth_mb_s",
    "Msg/sec": "message_rate_per_s",
}
_WITH_SIZES = {LATENCY, RATE, RANGE, RANGE_BANDWIDTH, OVERLAP, PASSIVE, P2P, MT_RATE}
_WITHOUT_SIZES = {RANGE, OVERLAP}
# All columns are right-justified in so many characters.
_WIDTH = 13
_INTEGER = r"(\d{1,12})"
_FIGURE = r"(\d{1,12}\.\d\d)"
_STATUS = r"(out-of-mem|int-overflow|time-out)[.;].*"
_STATUS_WORDS = re.compile(r"out-of-mem|int-overflow|time-out")
_NUMBER = re.compile(r"[+-]?\d+(?:[.,]\d+)?", re.ASCII)
_DECIMAL_COMMA = re.compile(r"\d,\d\d(?:\s|$)", re.ASCII)
_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
_NO_SIZE = -1


def is_imb(first_lines: Sequence[str]) -> bool:
    """Say whether these are the first lines of an output of the Intel MPI Benchmarks."""
    return any(TITLE.match(line) for line in first_lines)


def run_information(lines: Iterable[str], *, source: str = "output") -> RunInformation:
    """Return what the header says, reading no further than to the first table.

    Raises :class:`OutputError` if the header is missing, cut off or damaged.
    """
    return read_header(Text(enumerate(lines, start=1), source))


def parse_imb(
    lines: Iterable[str], *, source: str = "output", expect: ImbExpectation | None = None
) -> Iterator[Row]:
    """Yield one row per line of figures: times in us, MB/s and messages/s as IMB counts them.

    The lines are read once and not kept. Raises :class:`OutputError` as soon as the text is
    incomplete, inconsistent, failed or not the run expected: rows that came before do not count
    then.
    """
    text = Text(enumerate(lines, start=1), source)
    information = read_header(text)
    expect = expect or ImbExpectation()
    plan = Plan(information, expect, text)
    lengths = Lengths(information, expect)
    # The line that ended the header or a table may be the first of what follows.
    unread = True
    while unread or text.next():
        unread = False
        if RULE.fullmatch(text.line):
            head = _read_head(text)
            plan.table(head.benchmark, head.mode, head.processes, head.groups, head.idle)
            table = _Table(text, information, lengths, head, expect)
            yield from table.rows()
            if table.may_give_up:
                plan.may_give_up()
            unread = bool(text.line)
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
                raise text.error("a line of IMB that is damaged or stands where it does not belong")
    if information.program != "IMB-MT":
        raise text.cut_off(f'the line "{CLOSING_LINE}"')
    plan.finish()


@dataclass(frozen=True)
class _Head:
    """What stands above the rows of a table.

    ``grouped`` and ``checked`` tell of the columns "Group" and "defects", ``metrics`` of those of
    figures. ``aligned`` is false if someone changed the blanks of the text.
    """

    benchmark: str
    processes: int
    groups: int
    idle: int
    threads: int | None
    window_size: int | None
    mode: str
    grouped: bool
    sized: bool
    metrics: tuple[str, ...]
    checked: bool
    aligned: bool

    @property
    def integers(self) -> int:
        """The number of columns of integers, the repetitions being the last of them."""
        return self.grouped + self.sized + 1

    def conditions(self) -> dict[str, ConditionValue]:
        """Return what all rows of the table have in common."""
        conditions: dict[str, ConditionValue] = {"processes": self.processes, "groups": self.groups}
        if self.mode:
            conditions["mode"] = self.mode
        if self.threads is not None:
            conditions["threads"] = self.threads
        if self.window_size is not None:
            conditions["window_size"] = self.window_size
        return conditions

    def row(self) -> re.Pattern[str]:
        """Return the pattern of a row of figures, with a group for each column."""
        columns = [_INTEGER] * self.integers
        columns += [_INTEGER if name == "message_rate_per_s" else _FIGURE for name in self.metrics]
        columns += [_FIGURE] * self.checked
        return re.compile(" *" + " +".join(columns), re.ASCII)

    def row_of_words(self) -> re.Pattern[str]:
        """Return the pattern of a row of words: IMB's group, the size and the status."""
        group = f"{_INTEGER} +" if self.grouped else "()"
        return re.compile(f" *{group}{_INTEGER} {_STATUS}", re.ASCII)


def _read_head(text: Text) -> _Head:
    """Read from below a table's first rule to the names of its columns."""
    rule = text.line
    benchmark = _required(text, _BENCHMARK, "the name of a benchmark")
    processes, groups, threads = _read_processes(text)
    if bool(benchmark.group(1)) != (groups > 1):
        raise text.error("the number of groups does not fit the name of the benchmark")
    idle, window_size = 0, None
    while _following(text, "the rule below the processes") != rule:
        if match := _IDLE.fullmatch(text.line):
            idle = int(match.group(1))
        elif match := _WINDOW.fullmatch(text.line):
            window_size = int(match.group(1))
        elif not _RANKS.fullmatch(text.line):
            raise _damaged_head(text, "the rule below the processes")
    mode = ""
    if _following(text, "the names of the columns") == "#":
        mode = _required(text, _MODE, "the mode").group(1)
        if _following(text, "the line below the mode") != "#":
            raise _damaged_head(text, "the line below the mode")
        _following(text, "the names of the columns")
    words = text.line.split()
    grouped, checked = words[:1] == ["Group"], words[-1:] == ["defects"]
    names = words[grouped : len(words) - checked]
    sized = names[:1] == ["#bytes"]
    metrics = tuple(_METRIC_OF_COLUMN.get(name, "") for name in names[sized + 1 :])
    if names[sized : sized + 1] != ["#repetitions"] or metrics not in (
        _WITH_SIZES if sized else _WITHOUT_SIZES
    ):
        raise _damaged_head(text, "the names of the columns")
    if metrics == MT_RATE and window_size is None:
        raise text.error("the head of the table lacks the window size")
    if window_size is not None and "message_rate_per_s" not in metrics:
        raise text.error("a window size in the head of a table without rates: lines are mixed")
    ends = [match.end() for match in re.finditer(r"\S+", text.line)]
    return _Head(
        benchmark=benchmark.group(2),
        processes=processes,
        groups=groups,
        idle=idle,
        threads=threads,
        window_size=window_size,
        mode=mode,
        grouped=grouped,
        sized=sized,
        metrics=metrics,
        checked=checked,
        aligned=ends == [_WIDTH * column for column in range(1, len(words) + 1)],
    )


def _read_processes(text: Text) -> tuple[int, int, int | None]:
    """Return the processes of a group, the groups and the threads."""
    _following(text, "the number of processes")
    if match := _PROCESSES.fullmatch(text.line):
        each, groups, threads = int(match.group(1)), 1, match.group(2)
    elif match := _GROUPS.fullmatch(text.line):
        each, groups, threads = int(match.group(2)), int(match.group(1)), None
    elif text.line == "# NO SUCCESSFUL EXECUTIONS":
        raise text.error("IMB reports a failure: no successful executions")
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
    return text.error(f"{what} must stand here: the head of the table is damaged")


class _Table:
    """Reads the rows of one table."""

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
            raise text.error(
                f"IMB ran with {threads} threads in each process, but {expect.threads} were "
                "requested: OMP_NUM_THREADS did not reach the ranks, or the program is a "
                "wrapper that sets it"
            )
        self._repetitions = expect.repetitions
        self._text = text
        self._information = information
        self._lengths = lengths
        self._head = head
        self._expected: Sequence[int] | None = [_NO_SIZE]
        if head.sized:
            self._expected = lengths.expected(head.benchmark, text)
        self._size = _NO_SIZE
        self._sizes = self._hash = 0
        self._group = 0
        self._status = ""
        # The last empty line that came while rows were missing, 0 once a row has followed it.
        self._gap = 0

    @property
    def may_give_up(self) -> bool:
        """Whether IMB may give up the whole benchmark after this table, as it does since 2019."""
        return bool(self._status) and self._information.year >= 2019

    def rows(self) -> Iterator[Row]:
        """Yield the rows up to the line that ends the table, which ``text.line`` is then.

        That is an empty line or, with groups, which empty lines part, the next line of IMB.
        """
        text, head = self._text, self._head
        suite, benchmark, metrics = self._information.suite, head.benchmark, head.metrics
        grouped, sized, integers = head.grouped, head.sized, head.integers
        row_of = head.row().fullmatch
        length = _WIDTH * (integers + len(metrics) + head.checked) if head.aligned else None
        check = check_of(
            Measured(self._information, benchmark, head.processes, head.threads or 1, metrics)
        )
        common = head.conditions()
        most_repetitions, blanks = None, False
        for number, raw in text.numbered:
            text.number, text.line = number, (line := raw.rstrip())
            match = row_of(line)
            if match is None:
                if not line and raw.rstrip("\r\n"):
                    # Blanks alone are of someone else: IMB ends a table by an empty line. Unless
                    # an editor or a log put blanks at the end of every line.
                    blanks = raw.endswith("\n")
                    continue
                if self._ends_here() or (blanks and line.startswith(("#", "!"))):
                    break
                if line and (row := self._row_of_words(common)):
                    yield row
                continue
            if length is not None and len(line) != length:
                raise self._broken_row()
            self._gap = 0
            fields = match.groups()
            conditions = common.copy()
            if grouped:
                conditions["group"] = self._next_group(fields[0])
            if sized:
                conditions["bytes"] = size = int(fields[grouped])
            else:
                size = _NO_SIZE
            self._take_size(size)
            conditions["repetitions"] = repetitions = int(fields[integers - 1])
            if not 0 < repetitions <= (most_repetitions or repetitions):
                raise text.error(f"{repetitions} repetitions are impossible; the row is damaged")
            if self._repetitions not in (None, repetitions):
                raise text.error(
                    f"IMB ran {repetitions} repetitions, but {self._repetitions} were requested: "
                    "something between the launcher and IMB changes its options; look whether the "
                    "program is a wrapper"
                )
            if self._lengths.declared:
                most_repetitions = repetitions
            figures = [float(figure) for figure in fields[integers:]]
            if head.checked and figures.pop() != 0.0:
                raise text.error("IMB's own check found defects in the data of this row")
            if problem := check(size, figures):
                raise text.error(f"{problem}; the row is damaged")
            values = dict(zip(metrics, figures, strict=True))
            yield Row(suite, benchmark, conditions, values, "ok", number)
        else:
            if not (self._gap or blanks):
                raise text.cut_off(f"the end of the table of {benchmark}")
        self._finish()

    def _ends_here(self) -> bool:
        """Say whether the line, which is no row of figures, ends the table."""
        line = self._text.line
        if not self._head.grouped:
            if not line and self._missing() and not self._gives_up:
                self._gap = self._gap or self._text.number
                return False
            return not line or (self._gap > 0 and line[0] in "#!")
        if self._group and (not line or line[0] in "#!"):
            raise self._text.error("a row of one of the groups is missing")
        return line.startswith(("#", "!"))

    def _row_of_words(self, common: dict[str, ConditionValue]) -> Row | None:
        """Return a row with words for figures, None for a foreign line that may be passed over."""
        text, head = self._text, self._head
        match = head.row_of_words().fullmatch(text.line)
        if match is None:
            if self._is_foreign():
                return None
            raise self._broken_row()
        if head.aligned and match.end(2) != _WIDTH * (1 + head.grouped):
            raise self._broken_row()
        group, size, self._status = match.groups()
        conditions = common.copy()
        if head.grouped:
            conditions["group"] = self._next_group(group)
        # In a table without sizes IMB prints the largest one here, not the repetitions.
        if head.sized:
            conditions["bytes"] = int(size)
        self._take_size(int(size) if head.sized else _NO_SIZE)
        suite = self._information.suite
        return Row(suite, head.benchmark, conditions, {}, self._status, text.number)

    def _is_foreign(self) -> bool:
        """Say whether this is a whole line of something else, and cannot be a damaged row."""
        text, line = self._text, self._text.line
        words = line.split()
        indented = line[0].isspace() and not (self._missing() and words[0][0].isalpha())
        if not self._gap and (indented or line[0].isdigit()):
            return False
        text.refuse_figures("inside another table")
        if line.startswith("Attention, msg size"):
            raise text.error(
                "IMB cut a message length that was asked for; give -msglog a larger maximum"
            )
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
            return text.error(f"the table of {benchmark} has no end; lines are lost")
        if _DECIMAL_COMMA.search(text.line):
            return text.error("a number with a decimal comma; run IMB with LC_ALL=C")
        for word in text.line.split():
            if _NOT_FINITE.fullmatch(word):
                return text.error(f"{word} is not a number")
        return text.error(
            f"this is not a row of IMB's table of {benchmark} (damaged, mixed with another line, "
            "or figures so large that they run into each other)"
        )

    def _next_group(self, field: str) -> int:
        """Return a row's group, which must be the one that comes next."""
        group = int(field)
        if group != self._group:
            raise self._text.error(f"a row of group {group}, where one of {self._group} must come")
        self._group = (group + 1) % self._head.groups
        return group

    def _take_size(self, size: int) -> None:
        """Raise unless this is the size that comes next, or that of the groups before it."""
        first_of_size = not self._head.grouped or self._group == 1 % self._head.groups
        if not first_of_size:
            if size != self._size:
                raise self._text.error(f"a row of {size} bytes among those of {self._size}")
            return
        if self._expected is None:
            self._hash = hash((self._hash, size))
        elif self._expected[self._sizes : self._sizes + 1] != [size]:
            raise self._text.error(self._wrong_size(size))
        self._size = size
        self._sizes += 1

    def _wrong_size(self, size: int) -> str:
        expected = self._missing()
        if not expected:
            return f"one row too many in the table of {self._head.benchmark}"
        message = (
            f"a row of {size} bytes in the table of {self._head.benchmark}, where one of "
            f"{expected[0]} must come"
        )
        if size < expected[0] and not self._lengths.declared:
            message += " (IMB cuts lengths to the maximum of -msglog, 4 MiB by default)"
        return message

    @property
    def _gives_up(self) -> bool:
        """Whether IMB leaves out the sizes that follow: at first only after a time-out."""
        return self.may_give_up or self._status == "time-out"

    def _missing(self) -> Sequence[int]:
        """Return the sizes that must still come, as far as they are known."""
        return (self._expected or [])[self._sizes :]

    def _finish(self) -> None:
        """Raise if the table ended before its last row."""
        text, head = self._text, self._head
        if self._gives_up:
            return
        if self._expected is None:
            if self._sizes == 0:
                raise text.error(f"the table of {head.benchmark} has no rows")
            self._lengths.compare(head.benchmark, self._sizes, self._hash, text)
        elif missing := self._missing():
            row = f"row of {missing[0]} bytes" if head.sized else "only row"
            message = f"the table of {head.benchmark} ends without its {row}"
            if self._information.year >= 2019:
                message += " (lost, or IMB gave up when -time was over for another process)"
            raise OutputError(message, line=self._gap or text.number, source=text.source)
