"""``clustergate judge``: the newest session of a ReFrame suite, judged by those before it."""

from __future__ import annotations

import argparse
import dataclasses
import datetime
from pathlib import Path

from clustergate.cli.answers import add_json, answering, telling
from clustergate.cli.passing_on import option
from clustergate.cli.running import tell
from clustergate.cli.suite_options import add_suite, sessions_named, settings_of
from clustergate.core import store
from clustergate.core.model import BadRequest
from clustergate.core.reasons import Words
from clustergate.judge.history.listing import keep_made
from clustergate.report.summary import status_of
from clustergate.suites.places import default_place

DESCRIPTION = """\
Judge the newest session of any ReFrame suite by its sessions before, read from its report files,
its performance logs or its results database, which stay as they are. Exit status 0: no fault found;
1: something is slower in three launches or sessions in a row; 2: a test failed, or something is
slower that is not confirmed. docs/reframe-suite.md begins with an ordinary suite."""

JUDGES = True


JUDGE_WHICH = Words(
    "judge.which",
    "it is not said which session is to be judged",
    remedy="`clustergate judge --last`, or `judge --reframe PATH`",
)


def add_options(parser: argparse.ArgumentParser) -> None:
    option(parser, "--last", "the newest session in the places where ReFrame puts reports")
    add_suite(parser)
    option(parser, "--since WHEN", "by sessions since 2026-11-03, or of the last 12h or 7d, alone")
    option(parser, "--strict", "exit status 1 also where a figure of unknown direction changed")
    add_json(parser)
    option(parser, "--copy-to FOLDER", "also copy the report's folder to this one", type=Path)


def run(arguments: argparse.Namespace) -> int:
    """Print the first screen of a session and return its exit status."""
    if not (arguments.last or arguments.reframe):
        raise BadRequest(JUDGE_WHICH())
    now = datetime.datetime.now().astimezone()
    run_id = store.new_run_id(now)
    with answering(run_id, in_json=arguments.json):
        return _judged(arguments, run_id, now)


def _judged(arguments: argparse.Namespace, run_id: str, now: datetime.datetime) -> int:
    # SciPy takes longer to import than all other commands need.
    from clustergate.judge.history.trends import events, trends
    from clustergate.report.publishing import publish
    from clustergate.report.trends import History, event_sentences, worth_showing
    from clustergate.suites.judging import NEWEST, OLDEST, judge_session

    place = arguments.reframe or default_place()
    sessions = sessions_named(arguments, {arguments.session}, now, NEWEST, OLDEST)
    settings, read = settings_of(arguments, sessions)
    judged = judge_session(
        sessions, settings, run_id, now, strict=arguments.strict, place=str(place)
    )
    notes = (*read, *judged.run.notes)
    store.make_folder(store.run_folder(run_id))
    keep_made(run_id, "judge", judged.run.system, arguments.invocation.call)
    shown = [one for one in trends(judged.over) if len(one.moments) > 1]
    history = History(worth_showing(shown), event_sentences(events(shown)))
    whole = dataclasses.replace(judged.run, notes=notes)
    published = publish(whole, arguments.invocation, history)
    status = status_of(published)
    with telling(run_id):
        tell(published, arguments.invocation)
    if arguments.copy_to is not None:
        store.copy_run(run_id, arguments.copy_to)
    return status
