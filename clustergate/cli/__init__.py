"""The command line: one module per command, each with ``register(commands)``."""

from __future__ import annotations

import argparse
import errno
import importlib
import os
import sys

from clustergate import __version__
from clustergate.cli.passing_on import PassingOnParser
from clustergate.model import ClustergateError

COMMANDS = (
    *("check", "screen", "gate", "site", "baseline", "history", "setup", "machine"),
    *("tune", "activate", "dry_run", "parse", "compare", "ab", "hpl_input", "hostfile"),
    *("changed_checks", "bootstrap", "airgap", "published"),
)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line, one subparser per command module."""
    parser = PassingOnParser(
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
        # The reader (head, less) has had enough.
        _give_standard_output_up()
        return 1
    except OSError as error:
        # Of a file of its own a command speaks itself; what has no name is standard output.
        if error.errno != errno.ENOSPC or error.filename is not None:
            raise
        _give_standard_output_up()
        told = "standard output cannot be written: the disk is full; free some space and try again"
        print(f"clustergate: {told}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("clustergate: interrupted; earlier results are intact", file=sys.stderr)
        return 130
    return status


def _give_standard_output_up() -> None:
    """Let nothing more be written, or Python would complain again at its exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
