"""How far the ranks of a launch have come, as ``progress.c`` tells it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from clustergate.core.files.shared import refresh_listing

# Of a process that was not asked about, or is gone.
_UNKNOWN = "?-"


@dataclass(frozen=True)
class Rank:
    """What was told of a process.

    ``rank`` is -1 before MPI_Init told which. ``calls`` counts its MPI calls, ``polls`` those that
    found nothing, ``inside`` tells whether it is in its last ``call``. ``state`` is that of
    proc_pid_stat(5), ``cpu_s`` the time of processor that it took, None where that is not known.
    """

    rank: int
    pid: int
    calls: int
    polls: int
    inside: bool
    call: str
    state: str = "?"
    cpu_s: float | None = None


@dataclass(frozen=True)
class Report:
    """What a node's ranks told last, the ``number``-th time; they do ``every_s`` seconds."""

    host: str
    number: int
    every_s: float
    ranks: tuple[Rank, ...]


def read_progress(folder: Path) -> dict[str, Report]:
    """Return the reports in the folder of a launch's proofs, by the names of their files."""
    return dict(_reports(folder))


def _reports(folder: Path) -> Iterator[tuple[str, Report]]:
    refresh_listing(folder)
    for path in sorted(folder.glob("progress-*")):
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        if report := parse_report(text):
            yield path.name, report


def parse_report(text: str) -> Report | None:
    """Return what a report says, None of one that is being written."""
    try:
        head, *ranks, tail = text.splitlines()
        number, every_s, host = head.split()
        if tail == number:
            return Report(host, int(number), float(every_s), tuple(map(_rank, ranks)))
    except ValueError:
        pass
    return None


def _rank(line: str) -> Rank:
    rank, pid, calls, polls, inside, call, state, cpu_s = line.split()
    used_s = None if state in _UNKNOWN else float(cpu_s)
    return Rank(int(rank), int(pid), int(calls), int(polls), inside == "1", call, state, used_s)
