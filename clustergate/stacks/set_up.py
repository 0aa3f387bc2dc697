"""The stacks of a site, each for itself: what fails is told when it fails, the others go on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from clustergate.model import ClustergateError
from clustergate.paths import state_dir
from clustergate.stacks import StackOrder, lacks, provide
from clustergate.stacks.lacking import Lack, LackError, summary, told
from clustergate.stacks.manifest import Manifest

STACKS_AT_ONCE = 2
_T = TypeVar("_T")


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
    one_at_a_time = threading.Lock()

    def done(order: StackOrder) -> _T | NotSetUp:
        try:
            return do(order)
        except ClustergateError as error:
            failed = NotSetUp(order.stack, error)
            with one_at_a_time:
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
