"""``clustergate golden``: keep a stack as it is, for later ones to be launched against."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from clustergate.cli.passing_on import option
from clustergate.cli.progress import Progress
from clustergate.cli.selection import add_site
from clustergate.core.commands import Invocation
from clustergate.core.model import BadRequest, ClustergateError
from clustergate.core.notation import counted, listed
from clustergate.core.paths import state_dir
from clustergate.core.reasons import Words, reason_as_json
from clustergate.sites import choice, configs
from clustergate.stacks.golden import builds, contents

_T = TypeVar("_T")

DESCRIPTION = """\
Freeze a stack as it was when the system was accepted: its MPI library, BLAS and programs, out of
reach of later set-ups. `clustergate ab --a golden:mpich --b mpich` and `clustergate gate` launch it
alternately with the current build, to separate slower software from slower hardware. What wheels
provided is copied, with hard links where the file system allows; what Spack or the site installed
stays in place and is identified by the SHA-256 of its files. docs/operators.md says when to pin."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parts = parser.add_subparsers(required=True)
    pin = parts.add_parser("pin", help="keep stacks as they are, each proven by a launch")
    option(pin, "stacks STACK", "default: every stack of the site config", nargs="*")
    add_site(pin)
    option(pin, "--note TEXT", "why, such as a ticket's number", default="")
    pin.set_defaults(run=_pin)
    listing = parts.add_parser("list", help="what is pinned, and whether today's build equals it")
    option(listing, "--json", "print a JSON array")
    listing.set_defaults(run=_list)
    verify = parts.add_parser("verify", help="hash and launch golden builds (default: all)")
    verify.add_argument("stacks", nargs="*", metavar="STACK")
    option(verify, "--json", "print a JSON array")
    verify.set_defaults(run=_verify)
    unpin = parts.add_parser("unpin", help="remove golden builds")
    unpin.add_argument("stacks", nargs="+", metavar="STACK")
    option(unpin, "--yes", "remove more than one")
    unpin.set_defaults(run=_unpin)


def _pin(arguments: argparse.Namespace) -> int:
    from clustergate.run.golden import proven  # only here: it loads ReFrame

    site = configs.load(choice.choose(arguments.site).path)
    stacks = [one.name for one in site.stacks_named(arguments.stacks)]
    nodes = max((partition.shape.nodes for partition in site.partitions), default=1)
    if unseen := builds.unseen_by_others(state_dir(), nodes):
        print(arguments.invocation.completed(unseen), flush=True)

    def pinned(stack: str) -> str:
        with Progress(arguments.invocation) as say:
            settings = configs.launch_settings(site, stack)
            golden = builds.pin(state_dir(), stack, arguments.note, say, proven, settings)
        return f"{stack} is pinned, and two ranks proved that they run from it: {_line_of(golden)}"

    return _each(stacks, pinned, arguments.invocation)


def _pinned(invocation: Invocation) -> list[str]:
    stacks = builds.pinned_stacks(state_dir())
    if not stacks:
        nothing = "nothing is pinned; `clustergate golden pin` keeps every stack as it is"
        print(invocation.completed(nothing))
    return stacks


def _list(arguments: argparse.Namespace) -> int:
    if arguments.json:
        answers = [*map(_plain, builds.pinned_stacks(state_dir()))]
        print(json.dumps(arguments.invocation.in_json(answers), indent=1))
        return 0
    return _each(
        _pinned(arguments.invocation),
        lambda stack: f"{stack}: {_line_of(builds.read(state_dir(), stack))}; {_today(stack)}",
        arguments.invocation,
    )


def _verify(arguments: argparse.Namespace) -> int:
    from clustergate.run.golden import proven  # only here: it loads ReFrame

    state = state_dir()

    def changes_of(stack: str) -> list[str]:
        golden = builds.require_unchanged(state, stack)
        proven(builds.launchable(state, stack), *builds.to_prove(state, stack, golden.roots))
        return builds.system_changes(golden)

    def verified(stack: str) -> str:
        line = f"{stack}: every file is what was pinned, and two ranks ran from it"
        if changed := changes_of(stack):
            line += f"; of the operating system's files changed: {listed(changed, contents.NAMED)}"
        return line

    if arguments.json:
        stacks = arguments.stacks or builds.pinned_stacks(state)
        answers, failed = [], 0 if stacks else 2
        for stack, changed, error in _outcomes(stacks, changes_of):
            failed = max(failed, error.exit_status if error else 0)
            answer = {"stack": stack, "verified": error is None, "system_changes": changed or []}
            answers.append({**answer, "why": error and reason_as_json(error.reason)})
        print(json.dumps(arguments.invocation.in_json(answers), indent=1))
        return failed
    # Who lets this be done each night must not take nothing for well.
    stacks = arguments.stacks or _pinned(arguments.invocation)
    return _each(stacks, verified, arguments.invocation) if stacks else 2


GOLDEN_SEVERAL = Words(
    "golden.several",
    "nothing was removed",
    cause="{stacks:list} are more than one",
    remedy="`clustergate golden unpin --yes {words}` removes them",
)


def _unpin(arguments: argparse.Namespace) -> int:
    stacks = [*dict.fromkeys(arguments.stacks)]

    def kept(stack: str) -> str:
        # Of one that was damaged nothing but its folder is known.
        folder, line = builds.require_folder(state_dir(), stack), ""
        with contextlib.suppress(ClustergateError):
            line = f": {_line_of(builds.read(state_dir(), stack))}"
        return f"the golden build of {stack}, {folder}{line}"

    def unpinned(stack: str) -> str:
        what = kept(stack)
        builds.unpin(state_dir(), stack)
        return f"removed {what}"

    if len(stacks) == 1 or arguments.yes:
        return _each(stacks, unpinned, arguments.invocation)
    _each(stacks, lambda stack: f"would be removed: {kept(stack)}", arguments.invocation)
    words = shlex.join(stacks)
    raise BadRequest(GOLDEN_SEVERAL(stacks=stacks, words=words))


def _each(stacks: list[str], do: Callable[[str], str], invocation: Invocation) -> int:
    """Do something for each stack and print what it says; one that fails leaves the others."""
    failed = 0
    for _, said, error in _outcomes(stacks, do):
        if error:
            print(f"clustergate: {invocation.completed(error)}", file=sys.stderr)
            failed = max(failed, error.exit_status)
        else:
            print(invocation.completed(said), flush=True)
    return failed


def _outcomes(
    stacks: Iterable[str], do: Callable[[str], _T]
) -> Iterator[tuple[str, _T | None, ClustergateError | None]]:
    """Do something for each stack; yield what came of it, or why nothing did."""
    for stack in dict.fromkeys(stacks):
        try:
            yield stack, do(stack), None
        except ClustergateError as error:
            yield stack, None, error


def _line_of(golden: builds.Golden) -> str:
    pinned = datetime.datetime.strptime(golden.pinned, "%Y-%m-%dT%H:%M:%S%z")
    days = (datetime.datetime.now(datetime.timezone.utc) - pinned).days
    ago = f"{counted(days, 'day')} ago" if days else "today"
    how = "held in place"
    if golden.roots:
        how = f"{golden.size / 1e6:.0f} MB {'of hard links' if golden.linked else 'copied'}"
    note = f" ({golden.note})" if golden.note else ""
    return f"{how}, sha256 {builds.digest(golden)}, by {golden.by} {ago}{note}"


def _plain(stack: str) -> dict[str, object]:
    golden = builds.read(state_dir(), stack)
    return {
        "stack": stack,
        "pinned": golden.pinned,
        "by": golden.by,
        "note": golden.note,
        "sha256": builds.digest(golden),
        "size_bytes": golden.size,
        "today": _today(stack),
    }


def _today(stack: str) -> str:
    try:
        differing = builds.differences(state_dir(), stack)
    except ClustergateError as error:
        return str(error)
    if not differing:
        return "today's build equals it"
    return f"today's build differs: {listed(differing, contents.NAMED)}"
