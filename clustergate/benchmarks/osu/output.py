"""Read a table of the OSU Micro-Benchmarks, version 5 to 7, into rows.

    # OSU MPI Latency Test v7.4
    # Datatype: MPI_CHAR.
    # Size         Avg Latency(us)          Validation
    1                         0.25                Pass
    2                         0.24                Pass

    # OSU MPI Multiple Bandwidth / Message Rate Test v5.8
    # [ pairs: 2 ] [ window size: 64 ]
    # Size                  MB/s        Messages/s
    1                      16.06       16061837.15

    # OSU MPI Allreduce Latency Test v6.1
    # Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations
    4                       1.40              1.31              1.48        1000

    # OSU MPI Non-blocking Allreduce Latency Test v7.4
    # Overall = Coll. Init + Compute + MPI_Test + MPI_Wait
    # Size           Overall(us)       Compute(us)    Pure Comm.(us)        Overlap(%)
    4                       3.17              1.61              1.49              0.00

    # OSU MPI_Put Latency Test v7.4
    # Window creation: MPI_Win_allocate
    # Synchronization: MPI_Win_flush
    # Size            Latency (us)
    1                         0.17

    # OSU MPI Barrier Latency Test v5.8
    # Avg Latency(us)
                12.57

``benchmark`` is the program's name (``osu_latency``); conditions are ``bytes``, ``processes`` where
the text or the call tells them, ``mode`` where the buffers or the data type are not the usual ones,
``window`` and ``sync`` of one-sided calls, ``repetitions``. Values are ``latency_us`` between two
processes, ``t_avg_us``, ``t_min_us``, ``t_max_us`` over the ranks of a collective, those with
overlap ``t_overlapped_us``, ``t_cpu_us``, ``t_pure_us``, ``overlap_percent``; and
``bandwidth_mb_s`` (1e6 bytes), ``message_rate_per_s``.

A table has no last line. That lines are missing at its end is noticed where the call is known; in
between always, since each size is twice the one before. What cannot be noticed: a changed digit;
and ``osu_bw_fan_in``, ``osu_bw_fan_out`` and ``osu_neighbor_alltoallw`` of version 7.4, which print
the titles of ``osu_bw`` and ``osu_alltoallw``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from clustergate.benchmarks.text import OUTPUT_OTHER_RUN, NumberedText
from clustergate.core.model import Conditions, Row
from clustergate.core.outputs import (
    OUTPUT_CONTRADICTION,
    OUTPUT_FAILURE,
    OUTPUT_LACKS,
    OUTPUT_OTHER_PROGRAM,
    OUTPUT_SECOND_RUN,
    OUTPUT_STRAY,
    OUTPUT_WRONG_RESULT,
)

TITLE = re.compile(r"# OSU (?P<what>\S.*?) Test v(?P<version>\d[\w.-]*)\s*$")
_FAILURE = re.compile(r"This test requires .*process|ERROR: ")
_PAIRS = re.compile(r"# \[ pairs: (\d+) \](?: \[ window size: (\d+) \])?")
_NOTE = re.compile(r"# (?!Number of )([\w ]+): (\S+?)\.?$")
_WINDOW = ("create", "allocate", "create_dynamic")
_SYNC = (
    *("lock/unlock", "lock_all/unlock_all", "post/start/complete/wait"),
    *("fence", "flush", "flush_local"),
)
_NOTED = {
    "Datatype": ("MPI_CHAR", "MPI_INT", "MPI_FLOAT"),
    "Window creation": tuple(f"MPI_Win_{word}" for word in _WINDOW),
    "Synchronization": tuple(f"MPI_Win_{word}" for word in _SYNC),
}
_CONDITION = {"Window creation": "window", "Synchronization": "sync"}
_USUAL_TYPE = "MPI_CHAR"

_PT2PT = {
    "Latency": "osu_latency",
    "Bandwidth": "osu_bw",
    "Bi-Directional Bandwidth": "osu_bibw",
    "Multiple Bandwidth / Message Rate": "osu_mbw_mr",
    "Multi Latency": "osu_multi_lat",
    "Multi-threaded Latency": "osu_latency_mt",
    "Multi-process Latency": "osu_latency_mp",
    "Latency Persistent": "osu_latency_persistent",
    "Bandwidth Persistent": "osu_bw_persistent",
    "Bi-Directional Bandwidth Persistent": "osu_bibw_persistent",
}
# Of two processes, whatever the launcher starts.
OF_TWO_RANKS = frozenset({*_PT2PT.values()} - {"osu_mbw_mr", "osu_multi_lat"})
_ONE_SIDED = {
    "Put": "put",
    "Get": "get",
    "Accumulate": "acc",
    "Get_accumulate": "get_acc",
    "Fetch_and_op": "fop",
    "Compare_and_swap": "cas",
}
_IS_ONE_SIDED = re.compile(rf"osu_(?:{'|'.join(_ONE_SIDED.values())})_")
_KINDS = {"latency": "latency", "bandwidth": "bw", "bi-directional bandwidth": "bibw"}
_OF_ONE_SIDED = re.compile(rf"MPI_({'|'.join(_ONE_SIDED)}) ({'|'.join(_KINDS)})", re.IGNORECASE)
_OF_COLLECTIVE = re.compile(
    r"(?P<i>Non-[Bb]locking )?(?P<neighbor>Neighborhood )?(?P<name>[\w-]+)"
    r"(?: Personalized Exchange)?(?P<persistent> Persistent)? Latency"
)
_COLLECTIVES = frozenset(
    [
        "allgather",
        "allgatherv",
        "allreduce",
        "alltoall",
        "alltoallv",
        "alltoallw",
        "barrier",
        "bcast",
        "gather",
        "gatherv",
        "reduce",
        "reduce_scatter",
        "reduce_scatter_block",
        "scatter",
        "scatterv",
    ]
)
WITHOUT_SIZES = frozenset({"osu_barrier", "osu_ibarrier", "osu_barrier_persistent"})

# Of the columns without the blanks in their names; others are kept by no metric.
_COLUMNS = {
    "Latency(us)": "latency_us",
    "AvgLatency(us)": "t_avg_us",
    "MinLatency(us)": "t_min_us",
    "MaxLatency(us)": "t_max_us",
    "Bandwidth(MB/s)": "bandwidth_mb_s",
    "MB/s": "bandwidth_mb_s",
    "Messages/s": "message_rate_per_s",
    "Overall(us)": "t_overlapped_us",
    "Compute(us)": "t_cpu_us",
    "PureComm.(us)": "t_pure_us",
    "Overlap(%)": "overlap_percent",
}
_SIZE, _ITERATIONS, _VALIDATION = "Size", "Iterations", "Validation"
_OTHERS = re.compile(
    r"Coll\.Init\(us\)|MPI_(?:Test|Wait)\(us\)|M(?:in|ax)Comm\.\(us\)|P[\d.]+Tail(?:Lat\(us\)|BW\(MB/s\))"
)
# Tables of other columns, by the options that ask for them.
_OPTIONS = {
    "Transmit Size": "with derived data types (-D)",
    "window size: varied": "with windows of several sizes (-V)",
}
_OTHER_TABLE = re.compile("|".join(_OPTIONS))
_VALUE = re.compile(r"[0-9]+\.[0-9][0-9]")
_COUNT = re.compile(r"[0-9]+")
_DIGITS = tuple("0123456789")
# Half a unit of the last digit that is printed.
_HALF = 0.005


@dataclass(frozen=True)
class OsuExpectation:
    """What a run was asked for; None where nothing was asked. The sizes are in bytes."""

    program: str | None = None
    processes: int | None = None
    smallest_bytes: int | None = None
    largest_bytes: int | None = None
    window: int | None = None


def program_of(title: str) -> str:
    """Return the program of a title between ``OSU`` and ``Test``; empty for one that is not read.

    >>> program_of("MPI Non-blocking All-to-All Latency")
    'osu_ialltoall'
    """
    if match := _OF_ONE_SIDED.fullmatch(title):
        operation, kind = match.groups()
        return f"osu_{_ONE_SIDED[operation.capitalize()]}_{_KINDS[kind.lower()]}"
    words = title.removeprefix("MPI ")
    if words == title:
        return ""
    if words in _PT2PT:
        return _PT2PT[words]
    if not (match := _OF_COLLECTIVE.fullmatch(words)):
        return ""
    name = match["name"].lower().replace("all-to-all", "alltoall").replace("broadcast", "bcast")
    if name not in _COLLECTIVES:
        return ""
    prefix = ("i" if match["i"] else "") + ("neighbor_" if match["neighbor"] else "")
    return f"osu_{prefix}{name}{'_persistent' if match['persistent'] else ''}"


class _Text(NumberedText):
    """``lines_end`` says whether lines are given with what ends them.

    ``width`` is that of the line before, of names or figures: columns are justified to the right.
    """

    program = "OSU"
    lines_end = False
    width = 0

    def title(self) -> tuple[str, str]:
        """Return the program, and where its buffers are if not in the hosts' memory."""
        while self.next():
            if match := TITLE.match(self.line):
                self.lines_end = self.raw.endswith("\n")
                # MPI-CUDA, MPI-ROCM, MPI-OPENACC, MPI-CUDA MANAGED; MPI_Put-CUDA.
                words = match["what"]
                device = re.search(r"-((?:CUDA|ROCM|OPENACC)(?: ?MANAGED)?|MANAGED)\b", words)
                plain = words.replace(device[0], "") if device else words
                if not (name := program_of(plain)):
                    raise self.error(OUTPUT_OTHER_PROGRAM(program=f"OSU {words}"))
                return name, device[1].lower() if device else ""
            self.refuse_failure()
        raise self.cut_off("the title")

    def refuse_failure(self) -> None:
        if _FAILURE.match(self.line):
            raise self.error(OUTPUT_FAILURE(program="OSU", words=self.line))


def parse_osu(
    lines: Iterable[str], *, source: str = "output", expect: OsuExpectation | None = None
) -> Iterator[Row]:
    """Yield a row for each line of the table.

    Raises :class:`clustergate.core.model.OutputError` for a text that is cut off or damaged, for
    data that arrived wrong, and for another run than the one expected.
    """
    text, asked = _Text(lines, source), expect or OsuExpectation()
    name, device = text.title()
    _compare(text, "the program", asked.program, name)
    conditions, columns = _head(text, name, device, asked)
    last, seen = -1, 0
    for line in text:
        if not (words := line.split()):
            continue
        if not words[0].startswith(_DIGITS):
            # Of a launcher or an MPI library: a row that it replaced is missed by the sizes.
            text.refuse_failure()
            # Of several data types (-T all) each has a table.
            if TITLE.match(line) or line.startswith("# Datatype: "):
                raise text.error(OUTPUT_SECOND_RUN())
            if _NOTE.match(line) or _PAIRS.match(line):
                raise text.error(OUTPUT_STRAY(what="a line of the head"))
            continue
        row = _row(text, name, columns, words, conditions)
        size = int(row.conditions.get("bytes", -1))
        if seen and (name in WITHOUT_SIZES or size != (2 * last or 1)):
            facts = {"one": f"a size of {size} bytes", "other": f"{last} bytes before it"}
            raise text.error(OUTPUT_CONTRADICTION(**facts))
        if not seen and _SIZE in columns:
            _compare(text, "the smallest size", asked.smallest_bytes, size)
        last, seen = size, seen + 1
        yield row
    if not seen:
        raise text.cut_off("a line of figures")
    if _SIZE in columns and asked.largest_bytes is not None and last != asked.largest_bytes:
        missing = f"the line of {asked.largest_bytes} bytes"
        raise text.error(OUTPUT_LACKS(missing=missing))


def _compare(text: _Text, what: str, wanted: object, actual: object) -> None:
    if wanted is not None and wanted != actual:
        raise text.error(OUTPUT_OTHER_RUN(what=what, wanted=str(wanted), actual=str(actual)))


def _head(
    text: _Text, name: str, device: str, asked: OsuExpectation
) -> tuple[Conditions, Sequence[str]]:
    """Return what lines above the table say, and its columns."""
    noted: dict[str, int | str] = {}
    modes = [device] if device else []
    processes = 2 if name in OF_TWO_RANKS or _IS_ONE_SIDED.match(name) else asked.processes
    while text.next():
        line = text.line
        text.refuse_failure()
        if other := _OTHER_TABLE.search(line):
            raise text.error(OUTPUT_OTHER_PROGRAM(program=f"{name} {_OPTIONS[other[0]]}"))
        if match := _PAIRS.match(line):
            processes = 2 * int(match[1])
            _compare(text, "the number of processes", asked.processes, processes)
            _compare(text, "messages in a window", asked.window and str(asked.window), match[2])
        elif match := _NOTE.match(line):
            if match[2] not in _NOTED.get(match[1], ()):
                raise text.damaged("a line of the head")
            if match[1] == "Datatype":
                modes += [match[2].lower()] if match[2] != _USUAL_TYPE else []
            else:
                noted[_CONDITION[match[1]]] = match[2]
        elif TITLE.match(line):
            raise text.error(OUTPUT_SECOND_RUN())
        elif columns := _columns(line):
            if (_SIZE in columns) == (name in WITHOUT_SIZES):
                raise text.damaged("a line of columns")
            if _IS_ONE_SIDED.match(name) and noted.keys() != {*_CONDITION.values()}:
                raise text.error(OUTPUT_LACKS(missing="the window or the synchronization"))
            known = {"processes": processes, "mode": " ".join(modes), **noted}
            text.width = len(line)
            return {name: value for name, value in known.items() if value}, columns
        elif line.startswith(_DIGITS):
            raise text.damaged("a line of columns")
    raise text.cut_off("the table")


def _columns(line: str) -> list[str]:
    """Return the names of a table's columns, without blanks; none for another line."""
    if not line.startswith("# "):
        return []
    named = [re.sub(r"\s", "", one) for one in re.split(r" {2,}", line.removeprefix("# ").strip())]
    known = (*_COLUMNS, _SIZE, _ITERATIONS, _VALIDATION)
    is_table = all(one in known or _OTHERS.fullmatch(one) for one in named)
    return named if is_table and named != [_SIZE] else []


def _row(
    text: _Text, name: str, columns: Sequence[str], words: Sequence[str], conditions: Conditions
) -> Row:
    if len(words) != len(columns):
        raise text.damaged("a line of figures")
    # Of the last number there may be more where it ends before its column does.
    if text.lines_end and not text.raw.endswith("\n") and len(text.line) < text.width:
        raise text.cut_off("the end of this line of figures")
    text.width = len(text.line)
    cells = dict(zip(columns, words, strict=True))
    own: dict[str, int] = {}
    for column, condition in ((_SIZE, "bytes"), (_ITERATIONS, "repetitions")):
        if (word := cells.pop(column, None)) is not None:
            if not _COUNT.fullmatch(word):
                raise text.damaged("a line of figures")
            own[condition] = int(word)
    validation = cells.pop(_VALIDATION, "Pass")
    if not all(map(_VALUE.fullmatch, cells.values())):
        raise text.damaged("a line of figures")
    if validation != "Pass":
        facts = {"what": "the validation of the data", "value": validation, "wanted": "Pass"}
        raise text.error(OUTPUT_WRONG_RESULT(**facts))
    values = {_COLUMNS.get(column, column): float(word) for column, word in cells.items()}
    if "bandwidth_mb_s" not in values and name in (*OF_TWO_RANKS, "osu_multi_lat"):
        values = {"latency_us" if k == "t_avg_us" else k: v for k, v in values.items()}
    if contradiction := _contradiction(values, own.get("bytes", 0)):
        raise text.error(OUTPUT_CONTRADICTION(one=contradiction[0], other=contradiction[1]))
    return Row("OSU", name, {**own, **conditions}, values, line=text.number)


def _contradiction(values: Mapping[str, float], size: int) -> tuple[str, str] | None:
    """Return two figures of a line of which one must be wrong, in words."""
    average = values.get("t_avg_us", math.nan)
    if values.get("t_min_us", average) > average or values.get("t_max_us", average) < average:
        return f"a mean of {average:g} us", "the least and the most beside it"
    rate, moved = values.get("message_rate_per_s"), values.get("bandwidth_mb_s", 0.0)
    if rate is not None and size and abs(rate - 1e6 * moved / size) > 1e6 * _HALF / size + 0.01:
        return f"{rate:g} messages of {size} bytes", f"{moved:g} MB/s"
    overlap, pure = values.get("overlap_percent"), values.get("t_pure_us", 0.0)
    if overlap is None or pure < 1:
        return None
    beyond = values["t_overlapped_us"] - values["t_cpu_us"]
    # Each time is off by half of its last digit.
    hidden, doubt = 100 * (1 - beyond / pure), 100 * (3 + abs(beyond / pure)) * _HALF / pure
    least, most = (max(0.0, hidden + step) for step in (-doubt - _HALF, doubt + _HALF))
    if not least <= overlap <= min(100.0, most):
        return f"an overlap of {overlap:g} %", f"the {hidden:.2f} % of its times"
    return None
