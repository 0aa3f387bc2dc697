"""The options of commands that read a ReFrame suite, and what they say of it."""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from clustergate.cli.passing_on import option
from clustergate.core.reasons import Words
from clustergate.judge.history.stored_runs import point_in_time
from clustergate.suites.places import default_place, sessions_at
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


def past_named(arguments: argparse.Namespace, named: Collection[str]) -> Past:
    """Return the sessions of ``--reframe`` of one suite; tell on standard error what is left out.

    They are those up to the newest ``named``, since ``--since``. Raises :class:`BadRequest`.
    """
    # SciPy takes longer to import than all other commands need.
    from clustergate.suites.judging import past_of_suite

    now = datetime.datetime.now().astimezone()
    sessions = sessions_named(arguments, named, now, NEWEST)
    settings, notes = settings_of(arguments, sessions)
    past = past_of_suite(sessions, settings, now)
    notes += past.notes
    if getattr(arguments, "since", "") is None and len(past.runs) >= NEWEST:
        notes.append(str(SUITE_NEWEST(sessions=NEWEST)))
    if past.unknown:
        notes.append(str(SUITE_UNKNOWN(names=past.unknown[:3])))
    for line in notes:
        print(arguments.invocation.completed(line), file=sys.stderr)
    return past


def sessions_named(
    arguments: argparse.Namespace,
    named: Collection[str],
    now: datetime.datetime,
    newest: int,
    oldest: int = 0,
) -> list[Session]:
    """Return sessions of a suite, see :func:`~clustergate.suites.places.sessions_at`.

    With ``--since`` they are all since then. Raises :class:`BadRequest`.
    """
    place = arguments.reframe or default_place()
    if since := getattr(arguments, "since", None):
        return sessions_at(place, since=point_in_time(since, now), named=named)
    return sessions_at(place, newest, oldest, named=named)


def add_suite(parser: argparse.ArgumentParser, *, two: bool = False) -> None:
    """Add the options that name a suite's sessions, and tell what their files do not.

    A command that names ``two`` sessions has an option ``better`` of its own, as a list
    ``better_ways``.
    """
    option(
        parser,
        "--reframe PATH",
        "of a ReFrame suite: results.db, a report file, or a folder of these or of perflogs",
        type=Path,
    )
    if not two:
        option(
            parser,
            "--session UUID",
            "of a suite: this session instead of the newest, by how its id begins",
            default="last",
        )
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
