"""The results database of ReFrame 4.7 to 4.10: opened to be read, and never written."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import urllib.parse
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from clustergate.core.reasons import Words
from clustergate.suites.reports import session_of
from clustergate.suites.sessions import SUITE_UNREADABLE, SUITE_VERSION, Kept, Session, SuiteError

FORM = "a results database"
MAGIC = b"SQLite format 3\x00"
_KNOWN = "1.0"
_WAIT_S = 5.0
_ALL = "SELECT uuid, CAST(session_start_unix AS REAL) FROM sessions"

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


def kept_in(path: Path) -> list[Kept]:
    """Return the sessions of a database, to be read; raises :class:`SuiteError`."""
    with _opened(path) as database:
        versions = [str(row[0]) for row in database.execute("SELECT schema_version FROM metadata")]
        if versions != [_KNOWN]:
            version = ", ".join(versions) or "nothing"
            facts = {"path": str(path), "form": FORM, "found": version}
            raise SuiteError(SUITE_VERSION(known=_KNOWN, **facts))
        return [
            Kept(str(uuid), float(started or 0), partial(_session, path, str(uuid)))
            for uuid, started in database.execute(_ALL)
        ]


def _session(path: Path, uuid: str) -> Session:
    with _opened(path) as database:
        of = database.execute("SELECT json_blob FROM sessions WHERE uuid = ?", (uuid,)).fetchone()
    where = f"{path}, session {uuid}"
    if of is None:
        raise SuiteError(SUITE_UNREADABLE(path=where, form=FORM, why="it was deleted meanwhile"))
    return session_of(_decoded(where, of[0]), where)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    journal = path.with_name(f"{path.name}-journal")
    where = f"file:{urllib.parse.quote(str(path.absolute()))}?mode=ro"
    try:
        with contextlib.closing(sqlite3.connect(where, uri=True, timeout=_WAIT_S)) as database:
            yield database
    except sqlite3.Error as error:
        if "locked" in str(error):
            raise SuiteError(SUITE_LOCKED(path=path)) from None
        # What a killed writer left can be rolled back by who may write alone.
        if journal.exists():
            raise SuiteError(SUITE_JOURNAL(path=path, journal=journal.name)) from None
        raise SuiteError(SUITE_UNREADABLE(path=path, form=FORM, why=error)) from None


def _decoded(where: str, blob: Any) -> Any:
    try:
        return msgspec.json.decode(blob)
    except (msgspec.DecodeError, TypeError, RecursionError):
        # Python writes NaN and Infinity, which are no JSON.
        with contextlib.suppress(ValueError, TypeError, RecursionError):
            return json.loads(blob)
    raise SuiteError(SUITE_UNREADABLE(path=where, form=FORM, why="its report is no JSON"))
