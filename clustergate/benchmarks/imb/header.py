"""What the Intel MPI Benchmarks print before their first table.

#    Intel(R) MPI Benchmarks 2021.11, MPI-1 part
# Calling sequence was:
# IMB-MPI1 -time 0.3 -iter 30,20
# Minimum message length in bytes:   0
# Maximum message length in bytes:   4194304
# MPI_Datatype for reductions    :   MPI_FLOAT
# List of Benchmarks to run:
# PingPong
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass

from clustergate.benchmarks.text import NumberedText
from clustergate.core.outputs import (
    OUTPUT_FAILURE,
    OUTPUT_LACKS,
    OUTPUT_SECOND_RUN,
    OUTPUT_STRAY,
    OUTPUT_UNKNOWN,
)

PROGRAMS: Mapping[str, str] = {
    "MPI-1": "IMB-MPI1",
    "MPI-2": "IMB-EXT",
    "MPI-IO": "IMB-IO",
    "MPI-NBC": "IMB-NBC",
    "MPI-RMA": "IMB-RMA",
    "RMA": "IMB-RMA",
    "MPI-4": "IMB-MPI4",
    "IMB-P2P": "IMB-P2P",
    "MT": "IMB-MT",
}
# IMB-IO of 2019 and later prints "MPI-IO partn" and, on the same line, the rule that follows.
TITLE = re.compile(
    r"#\s+Intel ?\(R\) MPI Benchmark(?:s| Suite) V?(?P<version>(?P<year>\d{1,4})\b[\w. ]*), "
    rf"(?P<part>{'|'.join(PROGRAMS)}) part(?P<gpu> \(GPU\))?"
)
RULE = re.compile(r"#-{20,}")
CLOSING_LINE = "# All processes entering MPI_Finalize"
NOT_VALID = re.compile(r"# !! Benchmark (\w+) (?:is )?invalid for (\d{1,9}) process(?:es)? !!")
# IMB-IO and old IMB-NBC measure the processor before or between their tables.
PROCESSOR_NOTE = re.compile(
    r"# (?:For nonblocking benchmarks:|Function CPU_Exploit obtains an undisturbed|"
    r"performance of +\S+ MFlops)"
)

_TITLE_ANYWHERE = re.compile(r"Intel ?\(R\) MPI Benchmark(?:s| Suite) V?\d[\w. ]*,")
_FAILURE = re.compile(
    r"!!! Benchmark unsuccessful|BENCHMARKS? FAILED|: FAILED !!|CHECK FAILURES|"
    r"^EXCEPTION:|^Invalid (?:benchmark name|option)"
)
_ROW = re.compile(r" *\d+ +(?:\d+ +\d|out-of-mem|int-overflow|time-out)", re.ASCII)
_SYSTEM = re.compile(
    r"# (?:Date|Machine|System|Release|Version|MPI Version|MPI Thread Environment) *:.*"
)
_COMMAND_FOLLOWS = "# Calling sequence was:"
_LIST_FOLLOWS = "# List of Benchmarks to run:"
_LENGTH = re.compile(r"# (Minimum|Maximum) (?:message length|io portion) in bytes: +(\d{1,18})")
_OWN_LENGTHS = re.compile(r"# (?:Message|IO) lengths were user defined")
_DATATYPE = re.compile(r"# MPI_Datatype( for reductions)? +: +(\S+)")
_LISTED = re.compile(r"# (?:\(Multi-\))?([A-Za-z]\w*)")
_COMMENT = re.compile(r"#(?: {3,}.*)?")
_DATATYPE_BYTES = {
    "MPI_BYTE": 1,
    "MPI_CHAR": 1,
    "MPIX_C_FLOAT16": 2,
    "MPIX_C_BF16": 2,
    "MPI_INT": 4,
    "MPI_FLOAT": 4,
    "MPI_DOUBLE": 8,
}


@dataclass(frozen=True, eq=False)
class RunInformation:
    """What the header says of a run; empty where it says nothing.

    ``year`` is the first number of the version: 3, 4, or from 2017 on the year.
    ``minimum_length`` and ``maximum_length`` are in bytes, None with lengths of the user's own and
    in IMB-MT. The datatypes are given by their bytes.
    """

    suite: str
    imb_version: str
    year: int
    command: tuple[str, ...] = ()
    benchmarks: tuple[str, ...] = ()
    minimum_length: int | None = None
    maximum_length: int | None = None
    own_lengths: bool = False
    datatype_bytes: int = 1
    reduction_datatype_bytes: int = 4

    @functools.cached_property
    def program(self) -> str:
        """The suite without ``-GPU``, which has the same benchmarks."""
        return self.suite.removesuffix("-GPU")

    def option(self, name: str) -> str:
        """Return the argument of the last ``-name`` on the command line, empty without one."""
        return self._options.get(f"-{name}", "")

    @functools.cached_property
    def _options(self) -> dict[str, str]:
        return {word.lower(): value for word, value in itertools.pairwise(self.command)}


class Text(NumberedText):
    """A text of the Intel MPI Benchmarks."""

    program = "IMB"

    def refuse_figures(self, where: str) -> None:
        """Raise if the line is of IMB's tables, another title or a complaint of IMB.

        No line that is passed over may be one of these.
        """
        line = self.line
        if _TITLE_ANYWHERE.search(line):
            raise self.error(OUTPUT_SECOND_RUN())
        if _FAILURE.search(line):
            raise self.error(OUTPUT_FAILURE(program="IMB", words=line.strip()))
        if line.startswith("# Benchmarking") or "#repetitions" in line or "MODE:" in line:
            raise self.error(OUTPUT_STRAY(what=f"the head of a table {where}"))
        if _ROW.match(line):
            raise self.error(OUTPUT_STRAY(what=f"a row of figures {where}"))


def read_header(text: Text) -> RunInformation:
    """Read to the first table, or to what else ends the header: ``text.line`` is that line.

    Raises :class:`OutputError` if the header is incomplete or damaged.
    """
    header = _Header(text)
    title, has_rule = header.read_title()
    while text.next():
        if not has_rule and RULE.fullmatch(text.line):
            has_rule = True
        elif (
            RULE.fullmatch(text.line) or NOT_VALID.fullmatch(text.line) or text.line == CLOSING_LINE
        ):
            return header.information(title)
        else:
            header.read_line()
    raise text.cut_off("the first table")


class _Header:
    """Collects what the lines of the header say."""

    def __init__(self, text: Text) -> None:
        self._text = text
        self._section = ""
        self._command: list[str] = []
        self._benchmarks: list[str] = []
        self._lengths: dict[str, int] = {}
        self._own_lengths = False
        self._datatypes = {"": 1, " for reductions": 4}

    def read_title(self) -> tuple[re.Match[str], bool]:
        """Return the title, and whether the rule below it stood on the same line."""
        text = self._text
        while text.next():
            if match := TITLE.match(text.line):
                return match, "#--" in text.line[match.end() :]
            if text.line.startswith(CLOSING_LINE):
                raise text.error(OUTPUT_STRAY(what="the end of another run"))
            text.refuse_figures("before the title")
        if text.number == 0:
            raise text.cut_off("the title")
        raise text.error(OUTPUT_UNKNOWN(titles="the Intel MPI Benchmarks"))

    def read_line(self) -> None:
        """Take a line between the title and the first table."""
        text, line = self._text, self._text.line
        if self._section == _LIST_FOLLOWS and (match := _LISTED.fullmatch(line)):
            self._benchmarks.append(match.group(1))
        elif line in (_COMMAND_FOLLOWS, _LIST_FOLLOWS):
            self._section = line
        elif _SYSTEM.fullmatch(line):
            return
        elif match := _LENGTH.fullmatch(line):
            self._lengths[match.group(1)] = int(match.group(2))
        elif _OWN_LENGTHS.fullmatch(line):
            self._own_lengths = True
        elif match := _DATATYPE.fullmatch(line):
            if match.group(2) not in _DATATYPE_BYTES:
                raise text.damaged("a datatype")
            self._datatypes[match.group(1) or ""] = _DATATYPE_BYTES[match.group(2)]
        elif self._section == _COMMAND_FOLLOWS:
            self._read_command(line)
        elif self._section == _LIST_FOLLOWS and line.startswith("#"):
            if not _COMMENT.fullmatch(line) and not PROCESSOR_NOTE.fullmatch(line):
                raise text.damaged("a name in the list of benchmarks to run")
        else:
            text.refuse_figures("before the first table")

    def _read_command(self, line: str) -> None:
        """Collect the command line, which old versions break into several lines."""
        words = line.removeprefix("#").split()
        if line.startswith("#") and words:
            self._command += words
        elif self._command:
            self._section = ""

    def information(self, title: re.Match[str]) -> RunInformation:
        """Return all of it, or raise if something is missing that every program but -MT prints."""
        program = PROGRAMS[title["part"]]
        if program != "IMB-MT":
            for known, missing in (
                (self._command, "the calling sequence"),
                (self._own_lengths or len(self._lengths) == 2, "a bound of the message lengths"),
                (self._benchmarks, "the list of benchmarks to run"),
            ):
                if not known:
                    raise self._text.error(OUTPUT_LACKS(missing=f"{missing} in the header"))
        return RunInformation(
            suite=program + ("-GPU" if title["gpu"] else ""),
            imb_version=title["version"],
            year=int(title["year"]),
            command=tuple(self._command),
            benchmarks=tuple(self._benchmarks),
            minimum_length=self._lengths.get("Minimum"),
            maximum_length=self._lengths.get("Maximum"),
            own_lengths=self._own_lengths,
            datatype_bytes=self._datatypes[""],
            reduction_datatype_bytes=self._datatypes[" for reductions"],
        )
