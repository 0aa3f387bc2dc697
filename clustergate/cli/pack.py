"""``clustergate pack``: a run as a file that others open, compare with theirs, and cite."""

from __future__ import annotations

import argparse
import datetime
import importlib.resources
from pathlib import Path

from clustergate import version
from clustergate.cli.passing_on import option
from clustergate.cli.selection import add_repeatable, named_folder
from clustergate.core import store
from clustergate.core.files.whole import write_whole
from clustergate.core.notation import counted
from clustergate.judge.history import packages
from clustergate.judge.history.listing import RUNNING, UNFINISHED, lacking, stored_run
from clustergate.judge.history.stored_runs import refuse_trial

DESCRIPTION = """\
Write the data of a run into one file, an RO-Crate with a checksum of each file in it: `compare`,
`open` and `merge` take it at another site. It names users, nodes and paths: look through it before
you publish it."""


def add_options(parser: argparse.ArgumentParser) -> None:
    option(parser, "name RUN", 'its id or number (r8), "last" or "previous"')
    option(parser, "--output FILE", "such as results.zip", type=Path, required=True)
    add_repeatable(parser, "--author", "who measured, for those who cite it (repeatable)")
    option(parser, "--license ID", "under which others may use it, such as CC-BY-4.0", default="")


def run(arguments: argparse.Namespace) -> int:
    """Write the package and say what is in it; raises :class:`BadRequest` for no ended run."""
    folder = named_folder(arguments.name)
    refuse_trial(folder)
    described = stored_run(folder)
    if described.verdict in (RUNNING, UNFINISHED):
        raise lacking(folder, "verdicts")
    package = packages.read_run(folder)
    schema = importlib.resources.files("clustergate.cli") / "outputs.schema.json"
    content = packages.pack(
        package,
        described,
        packages.Cited(arguments.author, arguments.license),
        version(),
        schema.read_bytes(),
        datetime.date.today().isoformat(),
    )
    try:
        write_whole(arguments.output, content)
    except OSError as error:
        raise store.unwritable(arguments.output, error) from None
    files = counted(len(package.files), "file")
    print(f"{arguments.output}: {package.run}, {files}, {len(content) / 1e6:.1f} MB")
    return 0
