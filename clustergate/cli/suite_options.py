"""The options of commands that read a ReFrame suite, and what they say of it."""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from clustergate.cli.passing_on import option
from clustergate.cli.selection import RECENT
from clustergate.core.model import BadRequest
from clustergate.core.reasons import Words
from clustergate.judge.history.stored_runs import point_in_time
from clustergate.suites.places import sessions_at
from clustergate.suites.sessions import Session
from clustergate.suites.settings import Settings, better_of, settings_beside

if TYPE_CHECKING:
    from clustergate.suites.judging import Past

NEWEST = 100
"""So many sessions are read at most, if it is not said since when."""

SUITE_NEWEST = Words(
    "suite.newest",
    "the newest {sessions} sessions are read",
    remedy="--since DAY reads all since then",
)
SUITE_UNKNOWN = Words(
    "suite.unknown",
    "nobody says which way {names:list} is better: left out",
    remedy="tell it: --better NAME=lower or =higher, or in judge.yaml",
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


def place_of(name: str, ids: Sequence[str], path: Path) -> int:
    """Return which session, of all the newest first, is meant by how its id begins.

    Or by last and previous. Raises :class:`BadRequest` unless that is one.
    """
    if name in RECENT and len(ids) >= RECENT[name]:
        return RECENT[name] - 1
    begins = [place for place, one in enumerate(ids) if one.startswith(name)]
    exactly = [place for place in begins if ids[place] == name]
    if len(exactly or begins) > 1:
        some = [ids[place] for place in begins[:3]]
        raise BadRequest(SESSION_SEVERAL(path=path, name=name, sessions=len(begins), ids=some))
    if not begins:
        raise BadRequest(SESSION_NO_SUCH(path=path, name=name))
    return (exactly or begins)[0]


def past_named(arguments: argparse.Namespace) -> Past:
    """Return the sessions of ``--reframe`` since ``--since``; tell on standard error what is not.

    Raises :class:`BadRequest`.
    """
    # SciPy takes longer to import than all other commands need.
    from clustergate.suites.judging import past_of_suite

    now = datetime.datetime.now().astimezone()
    since = getattr(arguments, "since", None)
    sessions = sessions_since(since, arguments.reframe, now, NEWEST)
    settings, notes = settings_of(arguments, sessions)
    past = past_of_suite(sessions, settings, now)
    notes += past.notes
    if not since and len(sessions) == NEWEST:
        notes.append(str(SUITE_NEWEST(sessions=NEWEST)))
    if past.unknown:
        notes.append(str(SUITE_UNKNOWN(names=past.unknown[:3])))
    for line in notes:
        print(arguments.invocation.completed(line), file=sys.stderr)
    return past


def sessions_since(
    since: str | None, place: Path, now: datetime.datetime, newest: int | None, oldest: int = 0
) -> list[Session]:
    """Return all sessions since then, by default the ``newest`` and the ``oldest`` of a place.

    Raises :class:`BadRequest` where there is none.
    """
    if since is None:
        return sessions_at(place, newest, oldest)
    moment = point_in_time(since, now)
    sessions = [one for one in sessions_at(place) if one.started >= moment]
    if not sessions:
        raise BadRequest(SUITE_SINCE(path=place, since=since))
    return sessions


def add_suite(parser: argparse.ArgumentParser, *, better: bool = True) -> None:
    """Add the options that name a suite's sessions, and tell what their files do not.

    A command with an option ``better`` of its own has that as a list ``better_ways``.
    """
    option(
        parser,
        "--reframe PATH",
        "of a ReFrame suite: results.db, a report file, or a folder of these or of perflogs",
        type=Path,
    )
    if better:
        option(
            parser,
            "--better NAME=WAY",
            "which way a variable is better: Copy=higher, mytest.wait=lower (repeatable)",
            action="append",
            default=[],
            dest="better_ways",
        )
    option(parser, "--exclusive", "jobs of the suite have their nodes for themselves")


def settings_of(
    arguments: argparse.Namespace, sessions: Sequence[Session]
) -> tuple[Settings, list[str]]:
    """Return what is said of a suite by options and by ``judge.yaml``, and where that is."""
    of_file, path = settings_beside(sessions, Path.cwd())
    stated = {**better_of(arguments.better_ways), **of_file.better}
    exclusive = True if arguments.exclusive else of_file.exclusive
    settings = dataclasses.replace(of_file, better=stated, exclusive=exclusive)
    return settings, [f"settings: {path}"] if path else []
