"""Recorded launches: what each of them measured, and what is known of the node meanwhile.

A recording is a file of JSON lines, compressed where its name ends in ``.gz``. A line with a
``window`` says by what, where and when the launches behind it were taken, up to the next window; a
line with a ``launch`` is what the engine noted of one launch, as in the log of a job, with all that
the benchmark printed. ``null`` stands for what is not known.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clustergate.benchmarks.imb.command import COUNTED
from clustergate.core import model
from clustergate.core.files.stored import decode, encode
from clustergate.core.model import METRICS, ClustergateError, Sample
from clustergate.studies.ab.gathering import comparable_samples

RECORDED = Path(__file__).with_name("recorded")
FORMAT = 2
# A file whose name says so waits until a design is final: only who names it reads it.
ASIDE = "-aside"
TIME = "time_us"
"""In recordings of the launcher before: the time alone, as that launcher had found it."""


class RecordingError(ClustergateError):
    """A file of recorded launches cannot be used; the message names file and line."""

    exit_status = 1


@dataclass(frozen=True)
class Window:
    """By what, where and when launches were taken.

    ``launcher`` is the module that launched, ``engine`` the version of clustergate and of its
    checkout, ``date`` when the window began (ISO 8601, UTC). ``fingerprint`` are digests of what
    should stay the same on the node, by group (:mod:`clustergate.machine.fingerprint`). ``stacks``
    says of each its MPI library and its build, ``command`` which words each of the ``ranks`` ran.
    None is not known.
    """

    launcher: str
    date: str
    engine: str | None = None
    boot_id: str | None = None
    processor: str | None = None
    cores: int | None = None
    governor: str | None = None
    fingerprint: Mapping[str, str] | None = None
    stacks: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    ranks: int = 2
    command: Sequence[str] = ()


@dataclass(frozen=True)
class Launch:
    """One launch of three benchmarks under one stack.

    ``noted`` is what the engine noted of it: when, how long, what disturbed it. ``distances_ns``
    are the round trips between two cores before and after it, ``turn`` its round in the window, -1
    where that is not known. ``provoked`` names what was done to slow it down, empty where nothing
    was. ``printed`` holds what the benchmark printed, by names such as ``PingPong/8`` and by
    metric, ``microseconds`` the one time of each that is compared.
    """

    window: Window
    stack: str
    noted: model.Launch
    microseconds: Mapping[str, float]
    printed: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    turn: int = -1
    distances_ns: Sequence[float] = ()
    bound: bool = True
    provoked: str = ""

    @property
    def time_s(self) -> float:
        """When it began, in seconds since 1970."""
        return self.noted.started

    @property
    def core_distance_ns(self) -> float:
        """The larger of the round trips between two cores; 1 where there are no two."""
        return self.noted.core_distance_ns or 1.0

    @property
    def disturbance_cores(self) -> float:
        """How many cores others took while it ran."""
        return self.noted.lost_cores or 0.0


def recordings() -> list[Path]:
    """Return the recordings that belong to the project, without those that were put aside."""
    return [p for p in every_recording() if ASIDE not in p.name]


def every_recording() -> list[Path]:
    """Return all recordings of the project, of which those put aside are not to be read."""
    return sorted(RECORDED.glob("*.jsonl.gz"), key=lambda path: header(path).date)


def header(path: Path) -> Window:
    """Return the first window of a recording, and read nothing behind its line."""
    for number, line in _lines(path):
        with contextlib.suppress(ValueError, KeyError, TypeError):
            entry = json.loads(line)["window"]
            if entry.pop("format") == FORMAT:
                return _window(entry)
        raise RecordingError(f"{path}:{number}: no recording of this version begins here")
    raise RecordingError(f"{path} holds no launches")


def times_of(printed: Sequence[Mapping[str, Mapping[str, float]]]) -> list[dict[str, float]]:
    """Return the time of each figure in us, for launches of one stack in one window.

    They are those that ``clustergate ab`` compares: where MB/s stand beside a time with finer
    digits, in every launch, the time follows from them.
    """
    found: list[dict[str, float]] = [{} for _ in printed]
    samples = []
    for order, of_launch in enumerate(printed):
        for name, values in of_launch.items():
            if TIME in values:
                found[order][name] = values[TIME]
                continue
            benchmark, _, size = name.partition("/")
            conditions = {"bytes": int(size)} if size else {}
            for metric, value in values.items():
                kind = METRICS[metric]
                samples.append(
                    Sample(benchmark, metric, kind.unit, kind.better, conditions, value, order)
                )
    for sample in comparable_samples(samples, COUNTED):
        name = "/".join([sample.benchmark, *map(str, sample.conditions.values())])
        found[sample.order][name] = sample.value
    return found


def write_launches(path: Path, launches: Iterable[Launch]) -> None:
    """Write launches as a recording: all of them, or none."""
    entries: list[Mapping[str, Any]] = []
    for window, of_window in itertools.groupby(launches, key=lambda launch: launch.window):
        entries.append({"window": {"format": FORMAT, **dataclasses.asdict(window)}})
        entries += [{"launch": _line_of(launch)} for launch in of_window]
    lines = (json.dumps(entry, separators=(",", ":"), allow_nan=False) for entry in entries)
    text = "".join(f"{line}\n" for line in lines).encode()
    beside = path.with_name(f".part-{path.name}")
    # As `gzip -n` does: the same launches are the same bytes.
    beside.write_bytes(gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)
    beside.replace(path)


def _line_of(launch: Launch) -> dict[str, Any]:
    entry = {f.name: getattr(launch, f.name) for f in dataclasses.fields(launch)}
    del entry["window"], entry["microseconds"]
    return {**entry, "noted": encode(launch.noted)}


def read_launches(path: Path) -> Iterator[Launch]:
    """Yield the launches of a file in the order they were recorded.

    Raises :class:`RecordingError` that names the file and the line.
    """
    for number, of_window in _windows(path):
        by_stack: dict[str, list[int]] = {}
        for k, launch in enumerate(of_window):
            by_stack.setdefault(launch.stack, []).append(k)
        times: dict[int, dict[str, float]] = {}
        for places in by_stack.values():
            times |= zip(places, times_of([of_window[k].printed for k in places]), strict=True)
        for k, launch in enumerate(of_window):
            for name, value in times[k].items():
                if not (math.isfinite(value) and value > 0.0):
                    raise RecordingError(f"{path}:{number + 1 + k}: {name} is {value}")
            yield dataclasses.replace(launch, microseconds=times[k])


def _windows(path: Path) -> Iterator[tuple[int, list[Launch]]]:
    """Yield the launches of each window, without their times, and the number of its line."""
    window, first = None, 0
    held: list[Launch] = []
    for number, line in _lines(path):
        try:
            ((kind, entry),) = json.loads(line).items()
            if kind == "window":
                if entry.pop("format") != FORMAT:
                    raise RecordingError(f"{path}:{number}: this is a recording of another version")
                if window is not None:
                    yield first, held
                window, first, held = _window(entry), number, []
            elif kind == "launch" and window is not None:
                held.append(_launch(window, entry))
            else:
                raise ValueError(kind)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise RecordingError(f"{path}:{number}: no launch is recorded here ({error})") from None
    if window is not None:
        yield first, held


def _window(entry: Mapping[str, Any]) -> Window:
    return Window(**{**entry, "command": tuple(entry["command"])})


def _launch(window: Window, entry: Mapping[str, Any]) -> Launch:
    """Return a launch without its times, which follow from all launches of the window."""
    parts = {
        **entry,
        "noted": decode(entry["noted"], model.Launch),
        "distances_ns": tuple(entry["distances_ns"]),
    }
    return Launch(window=window, microseconds={}, **parts)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rt", encoding="utf-8", newline="") as file:
            yield from enumerate(file, start=1)
    except (OSError, EOFError, UnicodeDecodeError) as error:
        told = getattr(error, "strerror", None) or error
        raise RecordingError(f"{path} cannot be read: {told}") from None
