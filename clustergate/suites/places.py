"""Where the sessions of a suite are: the files of a path, or ReFrame's own places."""

from __future__ import annotations

import contextlib
import datetime
import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from clustergate.core.reasons import Words
from clustergate.judge.history.stored_runs import RECENT
from clustergate.suites import perflogs, reports, results_db
from clustergate.suites.sessions import Kept, NoReport, Session, SuiteError

# ReFrame's environment variables for where it puts them, and what it does without.
_REPORT, _DATABASE = "RFM_REPORT_FILE", "RFM_SQLITE_DB_FILE"
_DEFAULT = Path(".reframe") / "reports"
_OTHERS = 8
"""So many suites that leave as many sessions each in one place are told apart."""

SUITE_EMPTY = Words(
    "suite.empty",
    "{path} holds no session of ReFrame",
    cause="looked for are results.db, report files (*.json) and performance logs (*.log)",
    remedy=(
        "run the suite (`reframe -r`), which leaves a report file; results.db is written only with "
        "RFM_ENABLE_RESULTS_STORAGE=1"
    ),
)
SUITE_SINCE = Words(
    "suite.since",
    "no session in {path} began since {since}",
    remedy="name an earlier day",
)
SESSION_NO_SUCH = Words(
    "suite.no-session",
    "no session in {path} is called {name}",
    remedy="name it by how its UUID begins, or take last and previous",
)
SESSION_SEVERAL = Words(
    "suite.several-sessions",
    "{sessions} sessions in {path} begin with {name}: {ids:list}",
    remedy="name it by more of its UUID",
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


def sessions_at(
    path: Path,
    newest: int | None = None,
    oldest: int = 0,
    *,
    since: datetime.datetime | None = None,
    named: Collection[str] = ("last",),
) -> list[Session]:
    """Return the newest sessions of a file or a folder, and the oldest; all by default.

    They are the newest first, and begin with the newest that is ``named``, see :func:`place_of`; no
    other named one is left out. None is from before ``since``. Of a folder, its database and its
    report files are read; its performance logs where it has neither. Where several suites leave
    their sessions, reading goes on until so many of the first one's have been read. Raises
    :class:`SuiteError`.
    """
    if not path.exists():
        raise SuiteError(SUITE_ABSENT(path=path))
    once: dict[str, Kept] = {}
    for kept in _kept_in(path):
        once.setdefault(kept.session_id, kept)
    every = sorted(once.values(), key=lambda one: (one.started, one.session_id), reverse=True)
    if not every:
        raise SuiteError(SUITE_EMPTY(path=path))
    if since:
        every = [one for one in every if one.started >= since.timestamp()]
        if not every:
            raise SuiteError(SUITE_SINCE(path=path, since=f"{since:%Y-%m-%d %H:%M}"))
    ids = [one.session_id for one in every]
    begin, *others = sorted(place_of(name, ids, path) for name in named)
    tests: set[str] = set()
    sessions = _some(every[begin:], newest, tests)
    left = begin + len(sessions)
    sessions += [every[place].read() for place in others if place >= left]
    return sessions + _some(every[left:][::-1], oldest, tests)[::-1]


def place_of(name: str, ids: Sequence[str], path: Path) -> int:
    """Return which session, of all the newest first, is meant by how its id begins.

    Or by last and previous. Raises :class:`SuiteError` unless that is one.
    """
    if name in RECENT and len(ids) >= RECENT[name]:
        return RECENT[name] - 1
    begins = [place for place, one in enumerate(ids) if one.startswith(name)]
    exactly = [place for place in begins if ids[place] == name]
    if len(exactly or begins) > 1:
        some = [ids[place] for place in begins[:3]]
        raise SuiteError(SESSION_SEVERAL(path=path, name=name, sessions=len(begins), ids=some))
    if not begins:
        raise SuiteError(SESSION_NO_SUCH(path=path, name=name))
    return (exactly or begins)[0]


def _some(every: Sequence[Kept], most: int | None, tests: set[str]) -> list[Session]:
    """Read sessions in their order until ``most`` are of one suite; None for all.

    It is the suite of these ``tests``, which become more, or of the first session where there are
    none. Sessions of others in between are returned as well.
    """
    sessions: list[Session] = []
    own = 0
    for kept in every if most is None else every[: _OTHERS * most]:
        if own == most:
            break
        sessions.append(session := kept.read())
        here = {x.test for x in session.results}
        if not tests or tests & here:
            tests |= here
            own += 1
    return sessions


def _kept_in(path: Path) -> Iterator[Kept]:
    if path.is_file():
        yield from _of_file(path)
        return
    # A pipe would be waited for.
    databases = sorted(one for one in path.glob("*.db") if one.is_file())
    # ReFrame links the newest as latest.json.
    files = [one for one in path.glob("*.json") if one.is_file() and not one.is_symlink()]
    for one in (*databases, *files):
        # Where people put reports, other programs may leave JSON.
        with contextlib.suppress(NoReport):
            yield from _of_file(one)
    if not databases and not files:
        # ReFrame moves a log away whose columns changed.
        logs = [*path.rglob("*.log"), *path.rglob("*.log.h*")]
        logs = sorted(one for one in logs if one.is_file())
        yield from map(Kept.of, perflogs.sessions_in(logs))


def _of_file(path: Path) -> Iterator[Kept]:
    with path.open("rb") as file:
        is_database = file.read(len(results_db.MAGIC)) == results_db.MAGIC
    if is_database or path.suffix == ".db":
        yield from results_db.kept_in(path)
    elif path.suffix == ".log" or ".log.h" in path.name:
        yield from map(Kept.of, perflogs.sessions_in([path]))
    else:
        yield reports.kept_in(path)
