"""Recorded launches: what a launch measured, and what else the node did meanwhile."""

from __future__ import annotations

import csv
import gzip
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from clustergate.model import ClustergateError

FIELDS = (
    "time_s",
    "stack",
    "bound",
    "provoked",
    "seconds",
    "own_s",
    "busy_s",
    "steal_s",
    "core_distance_ns",
)


class RecordingError(ClustergateError):
    """A file of recorded launches cannot be used; the message names file and line."""

    exit_status = 1


@dataclass(frozen=True)
class Launch:
    """One launch of three benchmarks under one stack.

    ``time_s`` is when it began (seconds since 1970), ``own_s`` the processor time of its own
    processes, ``busy_s`` that of the whole node and ``steal_s`` what a hypervisor took meanwhile.
    ``core_distance_ns`` is the larger of the round trips between the two cores right before and
    right after it.
    ``provoked`` names what was done to slow it down, empty where nothing was. ``microseconds`` hold
    the time of a figure by its name, such as ``PingPong/8``.
    """

    time_s: float
    stack: str
    bound: bool
    provoked: str
    seconds: float
    own_s: float
    busy_s: float
    steal_s: float
    core_distance_ns: float
    microseconds: Mapping[str, float]

    @property
    def disturbance_cores(self) -> float:
        """How many cores others took while it ran, by the clock of the kernel's ticks."""
        return (max(self.busy_s - self.own_s, 0.0) + self.steal_s) / self.seconds


def write_launches(path: Path, launches: Iterable[Launch]) -> None:
    """Write launches as CSV, compressed where the name ends in ``.gz``: all of them, or none."""
    launches = list(launches)
    names = sorted({name for launch in launches for name in launch.microseconds})
    beside = path.with_name(f".part-{path.name}")
    with _open(beside, "wt") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*FIELDS, *names])
        for launch in launches:
            writer.writerow(
                [
                    f"{launch.time_s:.2f}",
                    launch.stack,
                    int(launch.bound),
                    launch.provoked,
                    f"{launch.seconds:.3f}",
                    f"{launch.own_s:.3f}",
                    f"{launch.busy_s:.2f}",
                    f"{launch.steal_s:.2f}",
                    f"{launch.core_distance_ns:.1f}",
                    *(f"{launch.microseconds[name]:.6g}" for name in names),
                ]
            )
    beside.replace(path)


def read_launches(path: Path) -> Iterator[Launch]:
    """Yield the launches of a file in the order they were recorded.

    Raises :class:`RecordingError` that names the file and the line.
    """
    try:
        with _open(path, "rt") as file:
            reader = csv.DictReader(file)
            names = [name for name in reader.fieldnames or () if name not in FIELDS]
            if set(FIELDS) - set(reader.fieldnames or ()):
                raise RecordingError(f"{path}:1: these are no recorded launches")
            for row in reader:
                try:
                    yield _launch(row, names)
                except (ValueError, TypeError) as error:
                    raise RecordingError(f"{path}:{reader.line_num}: {error}") from None
    except OSError as error:
        raise RecordingError(f"{path} cannot be read: {error.strerror or error}") from None


def _launch(row: Mapping[str, str], names: Iterable[str]) -> Launch:
    values = {name: float(row[name]) for name in names}
    for name, value in values.items():
        if not (math.isfinite(value) and value > 0.0):
            raise ValueError(f"{name} is {value}")
    return Launch(
        time_s=float(row["time_s"]),
        stack=row["stack"],
        bound=row["bound"] == "1",
        provoked=row["provoked"],
        seconds=float(row["seconds"]),
        own_s=float(row["own_s"]),
        busy_s=float(row["busy_s"]),
        steal_s=float(row["steal_s"]),
        core_distance_ns=float(row["core_distance_ns"]),
        microseconds=values,
    )


def _open(path: Path, mode: str):  # type: ignore[no-untyped-def]
    opener = gzip.open if path.suffix == ".gz" else open
    return opener(path, mode, encoding="ascii", newline="")
