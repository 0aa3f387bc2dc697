"""``clustergate merge``: the runs of other clones and systems, brought into this home."""

from __future__ import annotations

import argparse
import datetime
import sys
from collections import Counter
from pathlib import Path

from clustergate.cli.passing_on import option
from clustergate.core import store
from clustergate.core.model import BadRequest
from clustergate.judge.history.merging import NEW, THERE, merge_run, runs_in

DESCRIPTION = """\
Copy the runs of other homes into this one, each whole or not at all. STORE is a home
(CLUSTERGATE_HOME), a clone, a folder of runs, or a file of `clustergate pack`. What is here already
stays as it is, so that merging again brings only what is new. Exit status 1: a run was not merged,
as another of its name is here, or it has not ended."""


def add_options(parser: argparse.ArgumentParser) -> None:
    option(parser, "stores STORE", "where the runs are", nargs="+", type=Path)


def run(arguments: argparse.Namespace) -> int:
    """Merge, and print what became of the runs of each store; 1 where one was refused."""
    # Jinja takes longer to import than all other commands need.
    from clustergate.report.package import pages

    store.require_home()
    runs = store.runs_folder()
    now, refused = datetime.datetime.now().astimezone(), 0
    for path in arguments.stores:
        counts: Counter[str] = Counter()
        for one in runs_in(path, pages):
            try:
                if isinstance(one, BadRequest):
                    raise one
                scratch = runs.with_name("incoming")
                counts[merge_run(one, runs, scratch, store.user_name(), now)] += 1
            except BadRequest as error:
                counts["not merged"] += 1
                print(f"clustergate: {arguments.invocation.completed(error)}", file=sys.stderr)
        refused += counts["not merged"]
        words = (NEW, THERE, *(["not merged"] if counts["not merged"] else []))
        print(f"{path}: {', '.join(f'{counts[word]} {word}' for word in words)}", flush=True)
    return 1 if refused else 0
