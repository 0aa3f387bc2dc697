"""The command line: one module per command, as a package beside this one may add it.

It has a ``DESCRIPTION`` for its help, ``add_options(parser)`` and ``run(arguments)``, which returns
the exit status; options may set another ``run`` among the parser's defaults. Of one with ``JUDGES``
1 is said by the judge alone: whatever goes wrong beside it is a 2.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import errno
import importlib
import importlib.util
import json
import os
import pwd
import shlex
import shutil
import signal
import sys
import threading
import traceback
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from clustergate import version
from clustergate.cli.overview import ABOUT, examples_of, overview
from clustergate.cli.passing_on import PassingOnParser
from clustergate.cli.streams import discard_output, printable_streams, survive_broken_pipe
from clustergate.core import environment
from clustergate.core.commands import NO_CALL, Invocation
from clustergate.core.environment import restore_environment
from clustergate.core.files.whole import share_with_group
from clustergate.core.model import ClustergateError
from clustergate.core.paths import entry_points, state_dir
from clustergate.core.reasons import Words, reason_as_json
from clustergate.core.words import COMMAND_EXTRA
from clustergate.stats.one_thread import one_thread

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

# Packages beside this one add commands by entry points of this group: each names a module.
_ADDED = "clustergate.commands"
COMMANDS: Collection[str] = ABOUT
# What somebody may still type, and the page that says what to type instead.
_GONE = {"airgap": "docs/air-gap.md", "tune": "docs/hpl-tuning.md"}
# That of the suite's own extra, which says where it comes from when it is missing.
_OF_EXTRA = "evaluation"


COMMAND_GONE = Words(
    "command.gone",
    "the command {name} was removed",
    remedy="{page} says what to type instead",
)


def build_parser(argv: Sequence[str] | None = None) -> argparse.ArgumentParser:
    """Return the parser of a command line, of every command without one.

    Where the first argument names a command, its module alone is loaded, and where it names none,
    no module: all take seconds.
    """
    if argv and argv[0] in _GONE:
        raise ClustergateError(COMMAND_GONE(name=argv[0], page=_GONE[argv[0]]))
    points = {}
    if not argv or argv[0] not in COMMANDS:
        points = {one.name: one for one in entry_points(_ADDED)}
    if argv and argv[0] == _OF_EXTRA and _OF_EXTRA not in points:
        raise ClustergateError(COMMAND_EXTRA(kind="command", name=_OF_EXTRA))
    parser = PassingOnParser(
        prog="clustergate",
        usage="clustergate [-h] [--version] COMMAND ...",
        description="Is this cluster as fast as it was, and as fast as it should be?",
    )
    parser.appendix = overview({name: _purpose(point) for name, point in points.items()})
    installed = f"clustergate {version()}" if argv and "--version" in argv else ""
    parser.add_argument("--version", action="version", version=installed)
    commands = parser.add_subparsers(metavar="COMMAND", help=argparse.SUPPRESS, prog="clustergate")

    def say_what_there_is(_: argparse.Namespace) -> int:
        parser.print_help(sys.stderr)
        return _FAULT

    parser.set_defaults(run=say_what_there_is, judges=False, invocation=NO_CALL)
    for name in (*COMMANDS, *points):
        if argv is not None and argv[:1] != [name]:
            if not argv or argv[0] not in COMMANDS:
                commands.add_parser(name)
        else:
            command = _command(name, points)
            of_one = commands.add_parser(name, description=command.DESCRIPTION)
            judges = getattr(command, "JUDGES", False)
            of_one.set_defaults(run=getattr(command, "run", None), judges=judges)
            command.add_options(of_one)
            of_one.appendix = examples_of(name)
    return parser


def _purpose(point: EntryPoint) -> str:
    """Return what an added command is for: its module's first line, read and not loaded."""
    # The help of all commands does not fail with one of them.
    with contextlib.suppress(Exception):
        spec = importlib.util.find_spec(point.module)
        text = Path(str(spec and spec.origin)).read_text(encoding="utf-8")
        first = str(ast.get_docstring(ast.parse(text))).splitlines()[0]
        return first.partition(": ")[2].removesuffix(".")
    return ""


def _command(name: str, points: Mapping[str, EntryPoint]) -> Any:
    if name not in points:
        with one_thread():
            return importlib.import_module(f"clustergate.cli.{name.replace('-', '_')}")
    # It costs what a command of the suite's own is spared.
    from clustergate.benchmarks.registry import load_point

    return load_point(points[name])


# The exit status of a program whose reader (head, less) has closed the pipe: 128 + SIGPIPE.
_READER_LEFT = 141
_FAULT = 2


def main(argv: list[str] | None = None) -> int:
    """Run one command; errors of the user's or the machine's are one sentence on stderr."""
    with printable_streams(), restore_environment():
        try:
            program = "clustergate" if argv is not None else _own_name()
            argv = sys.argv[1:] if argv is None else argv
            invocation = Invocation((tuple(argv[:1]),), program)
            _require_home()
            share_with_group(state_dir())
            arguments = build_parser(argv).parse_args(argv)
            called = invocation.of((argv[:1], *arguments.options_given))
            arguments.invocation = replace(called, artifacts=_artifacts(arguments))
            status = _run(arguments)
        except ClustergateError as error:
            print(f"clustergate: {invocation.completed(error)}", file=sys.stderr)
            return _FAULT
        except Exception as error:
            traceback.print_exc()
            print(
                f"clustergate: internal error ({type(error).__name__}): a bug in the suite, not a "
                "verdict; earlier results are intact; please report the traceback above",
                file=sys.stderr,
            )
            return _FAULT
    return status


def _require_home() -> None:
    """Name the account's home folder where the environment does not, as some schedulers' do.

    Else what is kept there is looked for below the root, and Open MPI does not start.
    """
    if not os.environ.get("HOME"):
        home = "/"
        with contextlib.suppress(KeyError):
            home = pwd.getpwuid(os.getuid()).pw_dir
        # A command of that name is a module of this package.
        environment.export("HOME", home)


def _own_name() -> str:
    """Return how to call this program here: `make check` runs it without it on PATH."""
    own = Path(sys.executable).parent / "clustergate"
    on_path = shutil.which("clustergate")
    if (on_path and Path(on_path).resolve() == own.resolve()) or not own.exists():
        return "clustergate"
    near = os.path.relpath(own)
    return shlex.quote(str(own) if near.startswith("..") else near)


def _artifacts(arguments: argparse.Namespace) -> str:
    """Return where a pipeline's job keeps the run, in its project, empty where this is no such job.

    By the variables that GitLab sets.
    """
    project, kept = os.environ.get("CI_PROJECT_DIR"), getattr(arguments, "copy_to", None)
    if kept is None or not project or "GITLAB_CI" not in os.environ:
        return ""
    folder = os.path.relpath(kept, project)
    return "" if folder.startswith("..") else folder


def _run(arguments: argparse.Namespace) -> int:
    with contextlib.ExitStack() as stack:
        stack.enter_context(_forward_signals())
        if arguments.judges:
            # Whoever reads the first lines only is to have the exit status all the same.
            stack.enter_context(survive_broken_pipe())
        return _call(arguments)


def _call(arguments: argparse.Namespace) -> int:
    try:
        status: int = arguments.run(arguments)
        sys.stdout.flush()
    except ClustergateError as error:
        # What comes next may be another call than this, such as that of what is to be resumed.
        invocation: Invocation = arguments.invocation
        invocation = invocation.of(error.call) if error.call else invocation
        print(f"clustergate: {invocation.completed(error)}", file=sys.stderr)
        if getattr(arguments, "json", False):
            print(json.dumps({"error": invocation.in_json(reason_as_json(error.reason))}))
        return max(error.exit_status, _FAULT) if arguments.judges else error.exit_status
    except BrokenPipeError:
        discard_output(sys.stdout)
        return _READER_LEFT
    except OSError as error:
        print(f"clustergate: {_said_of_file(error)}", file=sys.stderr)
        return _FAULT
    except KeyboardInterrupt as interrupted:
        number = interrupted.number if isinstance(interrupted, _Signalled) else signal.SIGINT
        by = "" if number == signal.SIGINT else f" by {number.name}"
        print(f"clustergate: interrupted{by}; earlier results are intact", file=sys.stderr)
        return 128 + number
    return status


def _said_of_file(error: OSError) -> str:
    """Return what keeps a file from being used, and what to do; raise what is no such error."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    if error.filename is None and full:
        # Files have names; what has none is standard output.
        discard_output(sys.stdout)
        return "cannot write to standard output: the disk is full; free some space and try again"
    if error.filename is None or error.errno == errno.ENOENT:
        raise error
    what = f"{error.filename} cannot be used: {error.strerror}; move it away"
    if full:
        what = f"the disk is full ({error.filename}); free some space"
    elif error.errno in (errno.EACCES, errno.EROFS):
        from clustergate.core.store import user_name

        what = f"{error.filename} is not open to {user_name()}: {error.strerror}; have its owner "
        what += "share it with your group (docs/housekeeping.md)"
    in_home = Path(str(error.filename)).is_relative_to(state_dir())
    return what + ", or name another folder in CLUSTERGATE_HOME" * in_home


# What Ctrl-C, `timeout`, a cancelled CI job and a closed terminal send.
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_DEFAULT = (signal.default_int_handler, signal.SIG_DFL)


class _Signalled(KeyboardInterrupt):
    """A signal asks to end all that was started, and exit."""

    def __init__(self, number: signal.Signals) -> None:
        super().__init__(number)
        self.number = number


@contextlib.contextmanager
def _forward_signals() -> Iterator[None]:
    """Let signals that would end only this process also end what it started."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # What is ignored stays so: `nohup` asks for that.
    before = {n: handler for n in _SIGNALS if (handler := signal.getsignal(n)) in _DEFAULT}
    for number in before:
        signal.signal(number, _end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    # One is enough: a second would leave behind what the first is about to end. They are heard, as
    # whatever is started while they are ignored ignores them, too.
    for other in _SIGNALS:
        if signal.getsignal(other) is _end:
            signal.signal(other, lambda number, frame: None)
    raise _Signalled(signal.Signals(number))
