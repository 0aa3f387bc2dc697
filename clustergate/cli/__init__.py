"""The command line: one module per command, each with ``register(commands)``."""

from __future__ import annotations

import argparse
import importlib
import os
import sys

from clustergate import __version__
from clustergate.model import ClustergateError

COMMANDS = (
    *("check", "baseline", "history", "setup", "machine", "tune", "activate", "dry_run"),
    *("parse", "compare", "hpl_input", "bootstrap", "airgap"),
)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line, one subparser per command module."""
    parser = argparse.ArgumentParser(
        prog="clustergate",
        description="Is this cluster as fast as it was, and as fast as it should be?",
    )
    parser.add_argument("--version", action="version", version=f"clustergate {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name in COMMANDS:
        importlib.import_module(f"clustergate.cli.{name}").register(commands)
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run one command; errors of the user's or the machine's are one sentence on stderr."""
    arguments = build_parser().parse_args(argv)
    try:
        status: int = arguments.run(arguments)
        sys.stdout.flush()
    except ClustergateError as error:
        print(f"clustergate: {error}", file=sys.stderr)
        return error.exit_status
    except BrokenPipeError:
        # The reader (head, less) has had enough; Python must not complain again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print("clustergate: interrupted; earlier results are intact", file=sys.stderr)
        return 130
    return status
