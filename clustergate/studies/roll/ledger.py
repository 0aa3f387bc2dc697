"""The ledger of a system: a file to which each event is appended, a line of JSON each."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from clustergate.core.files.shared import locked
from clustergate.core.files.whole import parse_json
from clustergate.core.paths import state_dir
from clustergate.core.reasons import Reason, Words
from clustergate.core.store import StoreError, make_folder, unwritable

LEDGER = "ledger.jsonl"
Event = Mapping[str, Any]
"""Has ``event``, what it is, and ``at``, the seconds since the epoch."""

TORN = Words(
    "roll.torn",
    "{path}:{line} was cut off and is left out",
    cause="a full disk, or a writer that was killed",
    remedy="all other events count; free some space if the disk is full",
)
DAMAGED = Words(
    "roll.damaged",
    "{path}:{line} is no event of a ledger",
    remedy="move the line out of the file: all other lines stay valid without it",
)


def roll_folder(system: str) -> Path:
    """Return where the ledger of a system is, and the folders of its jobs."""
    return state_dir() / "results" / "roll" / system


class Ledger:
    """The events of a system; ``torn`` says which line was cut off, None where none was."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / LEDGER
        self.torn: Reason | None = None
        self._read_bytes = self._read_lines = 0
        self._lines: list[int] = []

    def read_new(self) -> tuple[list[Event], bool]:
        """Return the events since the last call, and whether they are all that there are.

        A line that was cut off is left out. Raises :class:`StoreError` that names the line of
        another that is no event.
        """
        try:
            with open(self.path, "rb") as file:
                if file.seek(0, os.SEEK_END) < self._read_bytes:
                    self._read_bytes = self._read_lines = 0
                from_start = not self._read_bytes
                file.seek(self._read_bytes)
                content = file.read()
        except FileNotFoundError:
            return [], True
        except OSError as error:
            raise unwritable(self.path, error) from None
        *lines, rest = content.split(b"\n")
        events = []
        self._lines = []
        for number, line in enumerate(lines, start=self._read_lines + 1):
            try:
                event = parse_json(line.decode())
            except ValueError:
                # Whoever appended after it has ended the line.
                self.torn = TORN(path=self.path, line=number)
                continue
            if not _is_event(event):
                raise StoreError(DAMAGED(path=self.path, line=number))
            events.append(event)
            self._lines.append(number)
        self._read_bytes += len(content) - len(rest)
        self._read_lines += len(lines)
        if rest:
            self.torn = TORN(path=self.path, line=self._read_lines + 1)
        return events, from_start

    def damaged(self, place: int) -> StoreError:
        """Return what to raise of an event that was read last, by its place among them."""
        return StoreError(DAMAGED(path=self.path, line=self._lines[place]))

    def append(self, *events: Event) -> None:
        """Append events as one: all of them are on the disk, or none.

        Raises :class:`StoreError` where the disk is full or the file cannot be written.
        """
        make_folder(self.path.parent)
        content = "".join(json.dumps(one, allow_nan=False) + "\n" for one in events).encode()
        try:
            with locked(f"{self.path}.lock"), open(self.path, "ab+", buffering=0) as file:
                size = file.seek(0, os.SEEK_END)
                if size and os.pread(file.fileno(), 1, size - 1) != b"\n":
                    content = b"\n" + content
                try:
                    written = file.write(content)
                    if written != len(content):
                        file.write(content[written:])
                    os.fsync(file.fileno())
                except BaseException:
                    file.truncate(size)
                    raise
        except OSError as error:
            raise unwritable(self.path, error) from None


def _is_event(content: Any) -> bool:
    if not isinstance(content, dict) or not isinstance(content.get("event"), str):
        return False
    return isinstance(content.get("at"), int | float)
