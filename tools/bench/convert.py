"""``python -m tools.bench.convert FILE…``: turn recordings of the launcher before into today's.

Those are tables (CSV) of the bench's own launcher, which no check used. It measured what other
processes took from outside, over the whole launch, and kept one time of each figure. The new file
lies beside the old one, which stays.
"""

from __future__ import annotations

import csv
import datetime
import gzip
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from clustergate import model
from clustergate.model import ClustergateError
from clustergate.wording.reasons import reason
from tools.bench.launches import TIME, Launch, RecordingError, Window, write_launches

LAUNCHER = "before the engine"
# Others might take this much of a core before a launch did not count: ticks of 10 ms are the
# kernel's resolution, and a launch lasts 300 ms or more.
DISTURBED_CORES = 0.08
_FIELDS = (
    *("time_s", "stack", "bound", "provoked", "seconds", "own_s", "busy_s", "steal_s"),
    "core_distance_ns",
)


def convert(path: Path) -> Path:
    """Convert a recording and return the new file.

    Raises :class:`~tools.bench.launches.RecordingError` that names the file and the line.
    """
    name = path.name.removesuffix(".gz").removesuffix(".csv")
    into = path.with_name(f"{name}.jsonl.gz")
    launches = list(_launches(path))
    if not launches:
        raise RecordingError(f"{path} holds no launches")
    if into.exists():
        raise RecordingError(f"{into} is there already")
    write_launches(into, launches)
    return into


def _launches(path: Path) -> Iterator[Launch]:
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="ascii", newline="") as file:
            reader = csv.DictReader(file)
            if set(_FIELDS) - set(reader.fieldnames or ()):
                raise RecordingError(f"{path}:1: these are no recorded launches")
            window = None
            for order, row in enumerate(reader):
                try:
                    window = window or _window(float(row["time_s"]))
                    yield _launch(row, order, window)
                except (ValueError, TypeError) as error:
                    raise RecordingError(f"{path}:{reader.line_num}: {error}") from None
    except (OSError, EOFError) as error:
        told = getattr(error, "strerror", None) or error
        raise RecordingError(f"{path} cannot be read: {told}") from None


def _window(time_s: float) -> Window:
    began = datetime.datetime.fromtimestamp(time_s, datetime.timezone.utc)
    return Window(LAUNCHER, began.isoformat(timespec="seconds"))


def _launch(row: Mapping[str, str], order: int, window: Window) -> Launch:
    times = {name: float(value) for name, value in row.items() if name not in _FIELDS}
    for name, value in times.items():
        if not (math.isfinite(value) and value > 0.0):
            raise ValueError(f"{name} is {value}")
    counted = {name: float(row[name]) for name in ("own_s", "busy_s", "steal_s")}
    seconds = float(row["seconds"])
    others_s = max(counted["busy_s"] - counted["own_s"], 0.0)
    lost_cores = (others_s + counted["steal_s"]) / seconds
    noted = model.Launch(
        order=order,
        started=float(row["time_s"]),
        seconds=seconds,
        lost_cores=lost_cores,
        stolen_cores=counted["steal_s"] / seconds,
        core_distance_ns=float(row["core_distance_ns"]),
        disturbed=reason("node.busy", lost_cores=lost_cores)
        if lost_cores > DISTURBED_CORES
        else None,
        node=counted,
    )
    return Launch(
        window=window,
        stack=row["stack"],
        noted=noted,
        microseconds=times,
        printed={name: {TIME: value} for name, value in times.items()},
        bound=row["bound"] == "1",
        provoked=row["provoked"],
    )


def main(arguments: Sequence[str]) -> int:
    """Convert the named recordings and return the exit status."""
    try:
        for name in arguments:
            print(convert(Path(name)))
    except ClustergateError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
