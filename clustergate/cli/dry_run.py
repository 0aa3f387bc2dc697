"""``clustergate dry-run``: ReFrame's dry run of every check on every site config."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from clustergate import modes, sites
from clustergate.cli.check import read_outcomes, references_of, reframe_program
from clustergate.model import ClustergateError
from clustergate.state import checkout


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
    for path in files:
        cases = dry_run(path, mode)
        print(f"{path.name}: {cases} cases")
    return 0


def dry_run(site: Path, mode: modes.Mode) -> int:
    """Return how many cases the dry run of a site config wrote.

    Raises :class:`DryRunError` when ReFrame fails, warns of a check file that does not load, or
    writes another number of cases than the site config asks for. The system's references, which no
    dry run needs, must be right as well: :class:`references.ReferenceFileError` names the line.
    """
    configured = sites.load(site)
    references_of(configured)
    system = configured["systems"][0]["name"]
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.json"
        command = [reframe_program(), f"--checkpath={checkout() / 'reframe_checks'}"]
        command += ["--recursive", f"--setvar=mode={mode.name}", f"--system={system}"]
        command += [f"--report-file={report}", "--dry-run"]
        ended = subprocess.run(
            command,
            env={**os.environ, "RFM_CONFIG_FILES": str(site)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            check=False,
        )
        skipped = re.search(r"skipping test file .*", ended.stdout)
        if ended.returncode or skipped:
            sys.stderr.write(ended.stdout)
            reason = skipped.group(0) if skipped else f"exit status {ended.returncode}"
            raise DryRunError(f"{site}: ReFrame's dry run fails: {reason}")
        written = Counter((case.check, case.stack) for case in read_outcomes(report, 0))
    stacks = [stack for stack, _ in sites.stacks_of(configured)]
    expected = modes.expected_cases(modes.ALL_CHECKS, stacks, sites.shapes_of(configured))
    if written != expected:
        raise DryRunError(f"{site}: there should be {expected}, and there are {dict(written)}")
    return sum(written.values())
