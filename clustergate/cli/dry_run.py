"""``clustergate dry-run``: ReFrame's dry run of every check on every site config."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path

from clustergate.cli.check import read_outcomes, reframe_program
from clustergate.model import ClustergateError
from clustergate.paths import checkout
from clustergate.references.lookup import references_of
from clustergate.sites import configs as sites
from clustergate.sites import modes


class DryRunError(ClustergateError):
    """A site config or a check does not survive a dry run."""

    exit_status = 1


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "dry-run",
        help="let ReFrame write every job of every site config, and run none",
        description="Let ReFrame write every job of every site config and run none of them.",
    )
    parser.add_argument("--site", metavar="NAME", help="only this site config")
    parser.add_argument("--mode", default="smoke", help="smoke, maintenance or acceptance")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Dry-run one site config, or all with the template; say how many cases each has."""
    mode = modes.mode_named(arguments.mode)
    template = checkout() / "site_configs" / "template.py"
    files = [sites.find(arguments.site)] if arguments.site else [*sites.site_files(), template]
    # ReFrame runs one system in a process of its own, on one core.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, cases in zip(files, pool.map(dry_run, files, repeat(mode)), strict=True):
            print(f"{path.name}: {cases} cases", flush=True)
    return 0


def dry_run(site: Path, mode: modes.Mode) -> int:
    """Return how many cases the dry run of a site config wrote.

    On a system of a published evaluation they are those of its paper, with its parameters.
    Raises :class:`DryRunError` when ReFrame fails, or writes another number of cases than the site
    config asks for. The system's references, which no
    dry run needs, must be right as well: :class:`references.ReferenceFileError` names the line.
    """
    configured = sites.load(site)
    references_of(configured["systems"][0]["name"])
    paper = configured["systems"][0]["partitions"][0].get("extras", {}).get("paper")
    if paper:
        mode = modes.mode_named(f"published-{paper}")
    checks = mode.checks if paper else (*modes.ALL_CHECKS, modes.SCREEN_CHECK)
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.json"
        command = [reframe_program(), f"--checkpath={checkout() / 'reframe_checks'}"]
        command += ["--recursive", *modes.reframe_options(mode, checks)]
        command += [f"--report-file={report}", "--dry-run"]
        ended = subprocess.run(
            command,
            env={**os.environ, **sites.reframe_variables(site, configured)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            check=False,
        )
        if ended.returncode:
            sys.stderr.write(ended.stdout)
            raise DryRunError(f"{site}: ReFrame's dry run fails: exit status {ended.returncode}")
        written = Counter(one.identity for one in read_outcomes(report, 0))
    expected = Counter(modes.expected_cases(checks, sites.partitions_of(configured)))
    if written != expected:
        wrong = {
            "lacks": expected - written,
            "has besides": written - expected,
        }
        told = [f"{word} {', '.join(map(str, found))}" for word, found in wrong.items() if found]
        raise DryRunError(f"{site}: the dry run {' and '.join(told)}")
    return sum(written.values())
