"""The options of commands that read a ReFrame suite, and what they say of it."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence
from pathlib import Path

from clustergate.cli.passing_on import option
from clustergate.suites.sessions import Session
from clustergate.suites.settings import Settings, better_of, settings_beside


def add_suite(parser: argparse.ArgumentParser) -> None:
    """Add the options that name a suite's sessions, and tell what their files do not."""
    option(
        parser,
        "--reframe PATH",
        "of a ReFrame suite: results.db, a report file, or a folder of these or of perflogs",
        type=Path,
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
