"""Which tables the Intel MPI Benchmarks must print for a run, and which rows each must have.

What is known here of benchmarks, by their names in small letters, is from IMB's source:
IMB_benchlist.c and IMB.c up to 2018, helper_IMB_functions.h and the suites' own files since.
"""

from __future__ import annotations

import difflib
import functools
import itertools
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from clustergate.benchmarks.imb.command import BY_DEFAULT
from clustergate.benchmarks.imb.header import RunInformation, Text
from clustergate.benchmarks.text import OUTPUT_OTHER_RUN
from clustergate.core.model import OutputError, Row
from clustergate.core.outputs import (
    OUTPUT_CONTRADICTION,
    OUTPUT_LACKS,
    OUTPUT_MISPLACED,
    OUTPUT_NOT_RUN,
    OUTPUT_STRAY,
)

# Kinds of benchmarks, by their programs. Pairs are transfers of one pair, or in IMB-IO of one
# process, however many processes there are.
_KINDS: Mapping[str, Mapping[str, re.Pattern[str]]] = {
    kind: {program: re.compile(pattern) for program, pattern in patterns.items()}
    for kind, patterns in {
        "reductions": {
            "IMB-MPI1": r"(?:all)?reduce(?:_\w+)?",
            "IMB-NBC": r"i(?:all)?reduce(?:_\w+)?",
            "IMB-MPI4": r"(?:all)?reduce(?:_\w+)?",
            "IMB-RMA": r"(?:get_)?accumulate",
            "IMB-EXT": r"\w+",
        },
        "one element": {"IMB-RMA": r"fetch_and_op|compare_and_swap"},
        "pairs": {
            "IMB-MPI1": r"pingp[io]ng\w*",
            "IMB-EXT": r"(?:uni|bi)dir_\w+",
            "IMB-IO": r"s_\w+",
            "IMB-RMA": (
                r"(?:uni|bi)dir_\w+|(?:put|get)_local|(?:get_)?accumulate|truly_passive_put"
            ),
        },
        "message rates": {"IMB-MPI1": r"uniband|biband"},
        "without mode": {
            "IMB-EXT": r"window",
            "IMB-IO": r"open_close",
            "IMB-RMA": (
                r"(?:one|all)_(?:put|get)_all|(?:put|get)_all_local|exchange_(?:put|get)|"
                r"truly_passive_put"
            ),
        },
        "aggregate only": {"IMB-IO": r"[spc]_(?:read|iread|iwrite)_\w+"},
    }.items()
}
_PROGRAMS_WITH_MODES = ("IMB-EXT", "IMB-IO", "IMB-RMA")
_MT_BENCHMARKS = [name.lower() for name in BY_DEFAULT["IMB-MT"]]


@dataclass(frozen=True)
class ImbExpectation:
    """What a run was asked for; what is empty or None was not asked.

    ``benchmarks`` must all have been run, in any letter case. ``processes`` are counts of
    processes (of one group) that each of these benchmarks must have, or each that ran if none is
    named. ``bytes`` are the message lengths of every table that has lengths, as a file for
    ``-msglen`` lists them; what IMB makes of them for a datatype of several bytes is allowed for.
    ``arguments`` are the words behind the program's name in the calling sequence that IMB repeats;
    IMB-MT repeats none, there ``repetitions`` and ``threads`` must stand in every table. ``ranks``
    are all processes of the run, those that wait included. With ``warm_up`` the tables of the first
    benchmark are checked, and their rows are left out.
    """

    suite: str | None = None
    benchmarks: tuple[str, ...] = ()
    processes: tuple[int, ...] = ()
    bytes: tuple[int, ...] = ()
    arguments: tuple[str, ...] | None = None
    repetitions: int | None = None
    threads: int | None = None
    ranks: int | None = None
    warm_up: bool = False


class Lengths:
    """The message lengths that a table must have, from the header and the expectation."""

    def __init__(self, information: RunInformation, expect: ImbExpectation) -> None:
        self._information = information
        self._asked = expect.bytes
        self._own = _own_lengths(information)
        # By the bytes of the datatype.
        self._expected: dict[int, list[int] | None] = {}
        # Those of the first table of a datatype where they are not known beforehand.
        self._first: dict[int, list[int]] = {}

    @property
    def declared(self) -> bool:
        """Whether the lengths are the powers of two that the header declares."""
        return self._own is None

    def expected(self, benchmark: str, text: Text) -> list[int] | None:
        """Return the lengths of a benchmark's table, None if they are not known.

        Raises :class:`OutputError` if IMB was run with others than those asked for.
        """
        unit = self._unit(benchmark)
        if _is("one element", self._information.program, benchmark):
            return [unit]
        if unit not in self._expected:
            self._expected[unit] = self._of_unit(unit, text)
        return self._expected[unit]

    def _of_unit(self, unit: int, text: Text) -> list[int] | None:
        """Return the lengths of tables of a datatype of so many bytes."""
        known = None
        if self._own is None:
            known = _powers_of_two(self._information, unit)
        elif self._own:
            known = [_rounded_up(length, unit) for length in self._own]
        if not self._asked:
            return known
        asked = [_rounded_up(length, unit) for length in self._asked]
        if self.declared:
            asked = list(dict.fromkeys(asked))
        if known is not None and known != asked:
            facts = {"actual": ", ".join(map(str, known)), "wanted": ", ".join(map(str, asked))}
            raise text.error(OUTPUT_OTHER_RUN(what="message lengths", **facts))
        return asked

    def compare(self, benchmark: str, lengths: list[int], text: Text) -> None:
        """Raise if a table has other lengths than those before it, where none are known."""
        first = self._first.setdefault(self._unit(benchmark), lengths)
        if lengths != first or len({len(known) for known in self._first.values()}) > 1:
            one = f"the message lengths of {benchmark}"
            raise text.error(OUTPUT_CONTRADICTION(one=one, other="those of the tables before it"))

    def _unit(self, benchmark: str) -> int:
        """Return the bytes of the datatype that a benchmark's lengths are multiples of."""
        program = self._information.program
        if _is("reductions", program, benchmark) or _is("one element", program, benchmark):
            return self._information.reduction_datatype_bytes
        return self._information.datatype_bytes


class Plan:
    """The tables that must come, in their order, and which have come."""

    def __init__(self, information: RunInformation, expect: ImbExpectation, text: Text) -> None:
        """Raise :class:`OutputError` if this is not the suite or the benchmarks expected."""
        self._information = information
        self._expect = expect
        self._text = text
        self._remaining = list(reversed(information.benchmarks))
        self._benchmark = ""
        self.warming_up = False
        """Whether the table that was announced last is one of the warm-up."""
        self._steps: list[tuple[int, str]] = []
        self._given_up: set[str] = set()
        self._names: list[str] = []
        self._ran: dict[str, set[int]] = {}
        self._totals: dict[bool, int] = {}
        # Without an expectation, what the command line names was asked for. IMB's own choice,
        # which it makes if none is named, was not; behind a warm-up it is named.
        on_command_line = () if expect.warm_up else ",".join(information.command).split(",")
        named = expect.benchmarks or on_command_line
        self._asked = {name.lower() for name in named}
        if expect.suite not in (None, information.suite):
            facts = {"what": "suite", "actual": information.suite, "wanted": expect.suite}
            raise text.error(OUTPUT_OTHER_RUN(**facts))
        if self._has_list:
            self._require_arguments()
            listed = {name.lower() for name in information.benchmarks}
            self._require(expect.benchmarks, listed, "it is not in the list of benchmarks to run")

    @property
    def _has_list(self) -> bool:
        return self._information.program != "IMB-MT"

    def _require_arguments(self) -> None:
        """Raise if IMB was called with other words than those asked for."""
        asked, called = self._expect.arguments, " ".join(self._information.command)
        if asked is None:
            return
        wanted = " ".join(("", *asked))
        program = called.removesuffix(wanted)
        # The program's folder may have blanks in its name, its own name has none.
        if not called.endswith(wanted) or " " in program.rpartition("/")[2]:
            more, less = _differing(self._information.command[1:], asked)
            facts = {"actual": f"'{more}'", "wanted": f"'{less}'"}
            raise self._text.error(OUTPUT_OTHER_RUN(what="options", **facts))

    def table(self, benchmark: str, mode: str, processes: int, groups: int, idle: int) -> None:
        """Raise unless this is the table that comes next."""
        self._names.append(benchmark)
        if not self._has_list:
            if benchmark.lower() not in _MT_BENCHMARKS or benchmark.lower() in self._ran:
                raise self._text.error(OUTPUT_STRAY(what=f"a table of {benchmark}"))
            # A last odd process has no partner in some of them.
            ranks = self._expect.ranks
            if ranks is None or processes != ranks - ranks % 2:
                self._require_ranks(processes, ranks)
            self._ran[benchmark.lower()] = {processes}
            return
        total = self._checked_total(benchmark, processes, groups, idle)
        step = (processes, mode)
        if self._benchmark in self._given_up and (
            benchmark != self._benchmark or self._steps[-1:] != [step]
        ):
            self._steps = []
        if not self._steps:
            self._skip_given_up(benchmark)
            self._refuse_left_out(total)
            if self._remaining[-1:] != [benchmark]:
                raise self._out_of_order(benchmark, processes, mode)
            self._start(self._remaining.pop(), total)
        if benchmark != self._benchmark or self._steps[-1] != step:
            raise self._out_of_order(benchmark, processes, mode)
        self._steps.pop()
        self._ran.setdefault(benchmark.lower(), set()).add(processes)

    def may_give_up(self) -> None:
        """Take it that IMB may print no further table of the current benchmark."""
        self._given_up.add(self._benchmark)

    def not_valid(self, benchmark: str, processes: int) -> Row:
        """Return the row of a benchmark that IMB says cannot run.

        Raises :class:`OutputError` if it was asked for.
        """
        if benchmark.lower() in self._asked:
            why = f"it cannot run with {processes} processes"
            raise self._text.error(OUTPUT_NOT_RUN(name=benchmark, why=why))
        if self._benchmark in self._given_up:
            self._steps = []
        total = self._totals.get(False, processes)
        if self._steps or self._remaining[-1:] != [benchmark] or processes not in (1, total):
            raise self._out_of_order(benchmark, processes, "")
        # Up to 2018 a benchmark of one element may still come with two processes.
        self._start(self._remaining.pop(), total)
        self._given_up.add(benchmark)
        conditions = {"processes": processes}
        suite = self._information.suite
        return Row(suite, benchmark, conditions, {}, "invalid", self._text.number)

    def finish(self) -> None:
        """Raise if a table is missing."""
        if self._benchmark in self._given_up:
            self._steps = []
            self._skip_given_up("")
        self._refuse_left_out(self._totals.get(False, 2))
        if self._steps or self._remaining:
            raise self._text.error(OUTPUT_LACKS(missing=f"the table of {self._next()}"))
        self._require(self._expect.benchmarks, self._ran, "it has no table")
        for name in self._expect.benchmarks or self._names:
            for processes in self._expect.processes:
                if processes not in self._ran[name.lower()]:
                    why = f"it has no table of {processes} processes"
                    raise self._text.error(OUTPUT_NOT_RUN(name=name, why=why))

    def _start(self, benchmark: str, total: int) -> None:
        self._benchmark = benchmark
        first = len(self._remaining) == len(self._information.benchmarks) - 1
        self.warming_up = first and self._expect.warm_up
        self._steps = [
            (count, mode)
            for count in reversed(self._counts(benchmark, total))
            for mode in reversed(_modes(self._information, benchmark))
        ]

    def _counts(self, benchmark: str, total: int) -> list[int]:
        run = self._information
        return _process_counts(run.program, run.year, run.option("npmin"), benchmark, total)

    def _refuse_left_out(self, total: int) -> None:
        """Raise if the next benchmark is one that IMB leaves out without a word."""
        for name in self._remaining[-1:]:
            if not self._counts(name, total):
                why = "it takes 2 processes, and -npmin leaves these out"
                raise self._text.error(OUTPUT_NOT_RUN(name=name, why=why))

    def _skip_given_up(self, benchmark: str) -> None:
        while self._remaining and self._remaining[-1] in self._given_up - {benchmark}:
            self._remaining.pop()

    def _require(self, names: Iterable[str], among: Collection[str], why: str) -> None:
        for name in names:
            if name.lower() not in among:
                raise self._text.error(OUTPUT_NOT_RUN(name=name, why=why))

    def _next(self) -> str:
        if self._steps:
            return _described(self._benchmark, *self._steps[-1])
        return self._remaining[-1] if self._remaining else "no benchmark"

    def _out_of_order(self, benchmark: str, processes: int, mode: str) -> OutputError:
        what = f"a table of {_described(benchmark, processes, mode)}"
        return self._text.error(OUTPUT_MISPLACED(what=what, due=f"that of {self._next()}"))

    def _checked_total(self, benchmark: str, processes: int, groups: int, idle: int) -> int:
        """Return the processes of the run, of which all tables must agree.

        Message rates leave out a last odd process, and do not always say that it is idle.
        """
        total = processes * groups + idle
        rate = _is("message rates", self._information.program, benchmark)
        total -= total % 2 if rate else 0
        if self._totals.get(rate) == total and groups in (1, total // processes):
            return total
        totals = {**self._totals, rate: total}
        whole, even = totals.get(False, total), totals.get(True, total)
        if (
            self._totals.get(rate, total) != total
            or (len(totals) == 2 and even != whole - whole % 2)
            or (groups > 1 and groups != total // processes)
        ):
            one = f"the processes of {benchmark}"
            other = "those of the tables before it"
            raise self._text.error(OUTPUT_CONTRADICTION(one=one, other=other))
        self._totals = totals
        ranks = self._expect.ranks
        self._require_ranks(total, ranks and ranks - (ranks % 2 if rate else 0))
        return total

    def _require_ranks(self, processes: int, wanted: int | None) -> None:
        if wanted not in (None, processes):
            facts = {"actual": processes, "wanted": wanted}
            raise self._text.error(OUTPUT_OTHER_RUN(what="processes", **facts))


@functools.lru_cache(maxsize=1024)
def _is(kind: str, program: str, benchmark: str) -> bool:
    pattern = _KINDS[kind].get(program)
    return pattern is not None and pattern.fullmatch(benchmark.lower()) is not None


def _differing(words: Sequence[str], others: Sequence[str]) -> tuple[str, str]:
    """Return what each of two command lines has and the other has not there."""
    same = difflib.SequenceMatcher(None, words, others, autojunk=False).get_opcodes()
    places = [(words[a:b], others[c:d]) for tag, a, b, c, d in same if tag != "equal"]
    return (
        " ".join(word for mine, _ in places for word in mine),
        " ".join(word for _, other in places for word in other),
    )


def _described(benchmark: str, processes: int, mode: str) -> str:
    return f"{benchmark} with {processes} processes" + (f", {mode}" if mode else "")


@functools.lru_cache(maxsize=1024)
def _process_counts(program: str, year: int, npmin: str, benchmark: str, total: int) -> list[int]:
    """Return the process counts of a benchmark's tables: NPmin, doubled up to all."""
    if program == "IMB-P2P":
        return [total]
    fewest = 1 if program == "IMB-IO" else 2
    one_element = _is("one element", program, benchmark)
    if _is("pairs", program, benchmark) or (one_element and year < 2019):
        return [min(fewest, total)]
    count = _integer(npmin, otherwise=fewest)
    if _is("message rates", program, benchmark):
        count += count % 2
    counts = [max(1, min(count, total))]
    while counts[-1] < total:
        counts.append(min(2 * counts[-1], total))
    # Since 2019 those of one element start with NPmin too, though they run with two only.
    return [count for count in counts if count <= 2] if one_element else counts


def _modes(information: RunInformation, benchmark: str) -> tuple[str, ...]:
    """Return the modes of a benchmark's tables in IMB's order, an empty one if it has none."""
    if information.program not in _PROGRAMS_WITH_MODES or _is(
        "without mode", information.program, benchmark
    ):
        return ("",)
    if _is("aggregate only", information.program, benchmark):
        return ("AGGREGATE",)
    modes = {"aggregate": "AGGREGATE", "non_aggregate": "NON-AGGREGATE"}
    chosen = information.option("aggregate_mode")
    if chosen in modes:
        return (modes[chosen],)
    both = ("AGGREGATE", "NON-AGGREGATE")
    return both[::-1] if information.program == "IMB-RMA" else both


def _own_lengths(information: RunInformation) -> tuple[int, ...] | None:
    """Return the user's own lengths, empty if only a file held them; None for powers of two."""
    if information.program == "IMB-MT":
        return ()
    if information.program == "IMB-P2P":
        words = [word.lower() for word in information.command]
        named = [value for word, value in itertools.pairwise(words) if word == "-msgsz"]
        if "-msglen" in words or (named and "-msglog" in words):
            return ()
        return tuple(_spelled_bytes(word) for word in named) or None
    if not information.own_lengths:
        return None
    words = information.option("msgsize").split(",")
    return tuple(_integer(word, otherwise=0) for word in words if word)


def _powers_of_two(information: RunInformation, unit: int) -> list[int]:
    """Return the lengths as IMB goes through them with -msglog."""
    minimum, maximum = information.minimum_length or 0, information.maximum_length or 0
    first, _, last = information.option("msglog").partition(":")
    smallest = minimum or 1
    if not minimum and last:
        smallest = 1 << min(_integer(first, otherwise=0), 62)
    if information.program == "IMB-EXT":
        smallest = min(smallest, unit)
    largest = maximum // unit * unit
    lengths = [] if minimum else [0]
    length = min(_rounded_up(smallest, unit), largest)
    while length < largest:
        lengths.append(length)
        length = min(2 * length, largest)
    return [*lengths, largest] if largest else lengths


def _rounded_up(length: int, unit: int) -> int:
    return -(-length // unit) * unit


def _integer(word: str, *, otherwise: int) -> int:
    return int(word) if re.fullmatch(r"\d{1,18}", word) else otherwise


def _spelled_bytes(word: str) -> int:
    """Return a number of bytes that may be spelled with k, m or g."""
    digits = word.rstrip("kmg")
    return _integer(digits, otherwise=0) << {"k": 10, "m": 20, "g": 30}.get(word[len(digits) :], 0)
