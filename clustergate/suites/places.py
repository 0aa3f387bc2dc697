"""Where the sessions of a suite are: the files of a path, or ReFrame's own places."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from clustergate.core.reasons import Words
from clustergate.suites import perflogs, reports, results_db
from clustergate.suites.sessions import NoReport, Session, SuiteError, newest_first

# ReFrame's environment variables for where it puts them, and what it does without.
_REPORT, _DATABASE = "RFM_REPORT_FILE", "RFM_SQLITE_DB_FILE"
_DEFAULT = Path(".reframe") / "reports"

SUITE_EMPTY = Words(
    "suite.empty",
    "{path} holds no session of ReFrame",
    cause="looked for are results.db, report files (*.json) and performance logs (*.log)",
    remedy=(
        "run the suite (`reframe -r`), which leaves a report file; results.db is written only with "
        "RFM_ENABLE_RESULTS_STORAGE=1"
    ),
)
SUITE_ABSENT = Words(
    "suite.absent",
    "{path} is not there",
    remedy="name a results.db, a report file, or a folder of report files or performance logs",
)


def default_place() -> Path:
    """Return where ReFrame leaves its reports and its database unless it is told otherwise."""
    for variable in (_DATABASE, _REPORT):
        if named := os.environ.get(variable):
            return Path(os.path.expandvars(named)).expanduser().parent
    return Path.home() / _DEFAULT


def sessions_at(path: Path, newest: int | None = None, oldest: int = 0) -> list[Session]:
    """Return the newest sessions of a file or a folder, and the oldest; all by default.

    They are the newest first. Of a folder, its database and its report files are read; its
    performance logs where it has neither. Raises :class:`SuiteError`.
    """
    if not path.exists():
        raise SuiteError(SUITE_ABSENT(path=path))
    sessions = newest_first(_sessions_at(path, newest, oldest))
    if not sessions:
        raise SuiteError(SUITE_EMPTY(path=path))
    if newest is None or len(sessions) <= newest + oldest:
        return sessions
    return sessions[:newest] + sessions[len(sessions) - oldest :]


def _sessions_at(path: Path, newest: int | None, oldest: int) -> Iterator[Session]:
    if path.is_file():
        yield from _of_file(path, newest, oldest)
        return
    databases = sorted(path.glob("*.db"))
    # ReFrame links the newest as latest.json.
    files = [one for one in path.glob("*.json") if not one.is_symlink()]
    files.sort(key=lambda one: one.stat().st_mtime, reverse=True)
    if newest is not None and len(files) > newest + oldest:
        files = files[:newest] + files[len(files) - oldest :]
    for one in (*databases, *files):
        # Where people put reports, other programs may leave JSON.
        with contextlib.suppress(NoReport):
            yield from _of_file(one, newest, oldest)
    if not databases and not files:
        # ReFrame moves a log away whose columns changed.
        logs = [*path.rglob("*.log"), *path.rglob("*.log.h*")]
        yield from perflogs.sessions_in(sorted(logs))


def _of_file(path: Path, newest: int | None, oldest: int) -> Iterator[Session]:
    with path.open("rb") as file:
        is_database = file.read(len(results_db.MAGIC)) == results_db.MAGIC
    if is_database or path.suffix == ".db":
        yield from results_db.sessions_in(path, newest, oldest)
    elif path.suffix == ".log" or ".log.h" in path.name:
        yield from perflogs.sessions_in([path])
    else:
        yield reports.read_report(path)
