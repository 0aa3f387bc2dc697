"""``clustergate setup``: put the stacks of a site on disk."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from clustergate.cli.site import taken
from clustergate.model import ClustergateError
from clustergate.paths import state_dir
from clustergate.sites import configs as sites
from clustergate.stacks import StackOrder, lacks, provide
from clustergate.stacks.applications import APPLICATIONS
from clustergate.stacks.lacking import Lack, LackError, summary, told
from clustergate.stacks.manifest import Manifest

STACKS_AT_ONCE = 2
_T = TypeVar("_T")


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "setup",
        help="put the MPI stacks of a site and their benchmarks on disk",
        description="Put the MPI stacks of a site and their benchmarks on disk. What is there "
        "already costs nothing; an interrupted set-up resumes.",
    )
    parser.add_argument("--site", metavar="NAME", help="site config (default: the one that fits)")
    parser.add_argument("--stack", metavar="NAME", help="only this stack")
    parser.add_argument("--provider", metavar="NAME", help="with --stack: who provides it")
    parser.add_argument(
        "--settings",
        metavar="JSON",
        type=_settings,
        default={},
        help="with --provider: what to tell it, as the site config would",
    )
    parser.add_argument(
        "--refresh",
        action="store_true",
        help="ask the network again for sources that could not be had the last time",
    )
    parser.add_argument(
        "--required", action="store_true", help="exit 2 when a stack cannot be had here"
    )
    parser.add_argument(
        "--applications",
        nargs="*",
        choices=list(APPLICATIONS),
        default=(),
        metavar="NAME",
        help=f"with what only its own check needs: {', '.join(APPLICATIONS)}, or all of them (with "
        "Spack it is a setting of the stack)",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Provide the stacks; one that cannot be had here is said, and an error if it is required."""
    if arguments.stack and arguments.provider:
        orders = [StackOrder(arguments.stack, arguments.provider, arguments.settings)]
    else:
        named = [arguments.stack] if arguments.stack else []
        orders = sites.orders_named(sites.load(taken(arguments.site, sys.stderr).path), named)
    # The option without a name is an empty list, and no option an empty tuple.
    applications = tuple(APPLICATIONS) if arguments.applications == [] else arguments.applications
    found = provide_each(
        orders, say=progress(), refresh=arguments.refresh, applications=applications
    )
    failed = [one for one in found if isinstance(one, NotSetUp)]
    manifests = [one for one in found if isinstance(one, Manifest)]
    for manifest in manifests:
        if manifest.unavailable:
            print(f"{manifest.mpi_name}: not available here: {manifest.unavailable}")
            continue
        print(f"{manifest.mpi_name} {manifest.mpi_version} in {manifest.mpi_prefix}")
        if manifest.lock:
            print(f"  from the lock {manifest.lock}")
        for reason, names in absences(manifest).items():
            print(f"  {', '.join(names)}: not available here: {reason}")
    if failed and len(failed) == len(orders):
        raise error_of(failed)
    for one in failed:
        print(f"clustergate: {one}", file=sys.stderr)
    absent = any(manifest.unavailable for manifest in manifests)
    return 2 if failed or (arguments.required and absent) else 0


def absences(manifest: Manifest) -> dict[str, list[str]]:
    """Return why programs are not there, with the names of those that it is true of.

    Of an application with many programs its own name stands for all of them.
    """
    whole = {program: one.name for one in APPLICATIONS.values() for program in one.programs}
    found: dict[str, list[str]] = {}
    for name, program in manifest.programs.items():
        if program.unavailable:
            names = found.setdefault(program.unavailable, [])
            if (told := whole.get(name, name)) not in names:
                names.append(told)
    return found


def progress() -> Callable[[str], None]:
    """Return a function that tells of a step and of the time since the first one, on stderr."""
    begun = time.monotonic()

    def say(sentence: str) -> None:
        print(f"[{time.monotonic() - begun:5.0f} s] {sentence}", file=sys.stderr, flush=True)

    return say


def _settings(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"no JSON: {error}") from None
    if not isinstance(found, dict):
        raise argparse.ArgumentTypeError("it must be a JSON object")
    return found


@dataclass(frozen=True)
class NotSetUp:
    """A stack that could not be set up, and why; the others stand without it."""

    stack: str
    error: ClustergateError

    def __str__(self) -> str:
        return f"{self.stack} could not be set up: {self.error}"


class StacksNotSetUp(ClustergateError):
    """Several stacks could not be set up."""


def provide_each(
    orders: Sequence[StackOrder | tuple[str, str]],
    *,
    say: Callable[[str], None],
    refresh: bool = False,
    applications: Sequence[str] = (),
) -> list[Manifest | NotSetUp]:
    """Provide every stack, some at once, and return in order what became of each.

    A (stack, provider) pair is a stack without settings. What all of them lack is looked for and
    told first, in seconds. A stack that fails is told at once, and the others go on.
    """
    state = state_dir()
    wanted = [StackOrder(*order) for order in orders]

    def looked(order: StackOrder) -> Sequence[Lack]:
        return lacks(order.provider, order.stack, state, say=say, settings=order.settings)

    def provided(order: StackOrder) -> Manifest:
        return provide(
            order.provider,
            order.stack,
            state,
            say=say,
            refresh=refresh,
            settings=order.settings,
            applications=applications,
        )

    tell = say if len(wanted) > 1 else lambda sentence: None
    found: dict[str, Manifest | NotSetUp] = {}
    lacking: dict[str, Sequence[Lack]] = {}
    for order, looked_for in zip(wanted, _at_once(looked, wanted, tell), strict=True):
        if isinstance(looked_for, NotSetUp):
            found[order.stack] = looked_for
        elif looked_for:
            lacking[order.stack] = looked_for
            found[order.stack] = NotSetUp(order.stack, LackError(told(looked_for)))
    for line in summary(lacking) if len(wanted) > 1 else []:
        say(line)
    ready = [order for order in wanted if order.stack not in found]
    made = _at_once(provided, ready, tell)
    found |= {order.stack: one for order, one in zip(ready, made, strict=True)}
    return [found[order.stack] for order in wanted]


def _at_once(
    do: Callable[[StackOrder], _T], orders: Sequence[StackOrder], say: Callable[[str], None]
) -> list[_T | NotSetUp]:
    """Do something for every stack, some at once; a failure is told at once."""
    told_of: set[str] = set()

    def done(order: StackOrder) -> _T | NotSetUp:
        try:
            return do(order)
        except ClustergateError as error:
            failed = NotSetUp(order.stack, error)
            again = str(error) in told_of
            told_of.add(str(error))
            say(f"{order.stack} could not be set up either" if again else str(failed))
            return failed

    with ThreadPoolExecutor(max_workers=STACKS_AT_ONCE) as pool:
        waiting = [pool.submit(done, order) for order in orders]
        try:
            return [future.result() for future in waiting]
        except BaseException as stopped:
            # An interrupt or a fault ends what runs; what has not begun must not begin.
            if isinstance(stopped, KeyboardInterrupt):
                say("interrupted: what is set up stays, the same command goes on with the rest")
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def provide_all(
    orders: Sequence[StackOrder | tuple[str, str]], *, say: Callable[[str], None]
) -> list[Manifest]:
    """Provide every stack as :func:`provide_each` does, for what needs all of them.

    Raises the error of the one that could not be set up, or :class:`StacksNotSetUp`.
    """
    found = provide_each(orders, say=say)
    if failed := [one for one in found if isinstance(one, NotSetUp)]:
        raise error_of(failed)
    return [one for one in found if isinstance(one, Manifest)]


def error_of(failed: Sequence[NotSetUp]) -> ClustergateError:
    """Return the error that tells of every failed stack; what all have in common as it is."""
    if len({str(one.error) for one in failed}) == 1:
        return failed[0].error
    return StacksNotSetUp("; ".join(map(str, failed)))
