"""The results database of ReFrame 4.7 to 4.10: opened to be read, and never written."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from clustergate.core.reasons import Words
from clustergate.suites.reports import session_of
from clustergate.suites.sessions import SUITE_UNREADABLE, SUITE_VERSION, Session, SuiteError

FORM = "a results database"
MAGIC = b"SQLite format 3\x00"
_KNOWN = "1.0"
_WAIT_S = 5.0
_SESSIONS = "SELECT uuid, json_blob FROM sessions ORDER BY session_start_unix {} LIMIT {}"
_ALL = -1

SUITE_LOCKED = Words(
    "suite.locked",
    "{path} is being written by another process",
    remedy="try again when ReFrame has ended",
)
SUITE_JOURNAL = Words(
    "suite.journal",
    "{path} was left half-written, and {journal} says how to undo that",
    remedy="let ReFrame mend it (`reframe --list-stored-sessions`), which opens it to write",
)


def sessions_in(path: Path, newest: int | None = None, oldest: int = 0) -> Iterator[Session]:
    """Yield the newest sessions of a database, all by default, then the oldest.

    Raises :class:`SuiteError`.
    """
    journal = path.with_name(f"{path.name}-journal")
    where = f"file:{urllib.parse.quote(str(path.absolute()))}?mode=ro"
    try:
        with contextlib.closing(sqlite3.connect(where, uri=True, timeout=_WAIT_S)) as database:
            versions = [
                str(row[0]) for row in database.execute("SELECT schema_version FROM metadata")
            ]
            if versions != [_KNOWN]:
                version = ", ".join(versions) or "nothing"
                facts = {"path": str(path), "form": FORM, "found": version}
                raise SuiteError(SUITE_VERSION(known=_KNOWN, **facts))
            for way, count in (("DESC", _ALL if newest is None else newest), ("ASC", oldest)):
                for uuid, blob in database.execute(_SESSIONS.format(way, count)):
                    yield session_of(_decoded(path, str(uuid), blob), f"{path}, session {uuid}")
    except sqlite3.Error as error:
        if "locked" in str(error):
            raise SuiteError(SUITE_LOCKED(path=path)) from None
        # What a killed writer left can be rolled back by who may write alone.
        if journal.exists():
            raise SuiteError(SUITE_JOURNAL(path=path, journal=journal.name)) from None
        raise SuiteError(SUITE_UNREADABLE(path=path, form=FORM, why=error)) from None


def _decoded(path: Path, uuid: str, blob: Any) -> Any:
    try:
        return msgspec.json.decode(blob)
    except msgspec.DecodeError:
        # Python writes NaN and Infinity, which are no JSON.
        with contextlib.suppress(ValueError, TypeError):
            return json.loads(blob)
    where, why = f"{path}, session {uuid}", "its report is no JSON"
    raise SuiteError(SUITE_UNREADABLE(path=where, form=FORM, why=why))
