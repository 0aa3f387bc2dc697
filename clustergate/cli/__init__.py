"""The command line: one module per command, each with ``register(commands)``."""

from __future__ import annotations

import argparse
import errno
import importlib
import os
import sys

from clustergate import __version__
from clustergate.cli.passing_on import PassingOnParser
from clustergate.cli.streams import printable_streams
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
    with printable_streams():
        return _run(arguments)


def _run(arguments: argparse.Namespace) -> int:
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
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        if error.filename is None:
            # Files have names; what has none is standard output.
            _give_standard_output_up()
            told = "standard output cannot be written: the disk is full; free some space"
        else:
            told = f"the disk is full ({error.filename}); free some space, or name a folder on a "
            told += "larger disk in CLUSTERGATE_HOME"
        print(f"clustergate: {told} and try again", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("clustergate: interrupted; earlier results are intact", file=sys.stderr)
        return 130
    return status


def _give_standard_output_up() -> None:
    """Let nothing more be written, or Python would complain again at its exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
