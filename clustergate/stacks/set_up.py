"""The stacks of a site, each for itself: what fails is told when it fails, the others go on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from clustergate.model import ClustergateError, Say
from clustergate.paths import state_dir
from clustergate.stacks import StackOrder, lacks, provide
from clustergate.stacks.lacking import Lack, LackError, sentence_of, summary
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
    orders: Sequence[StackOrder],
    *,
    say: Say,
    refresh: bool = False,
    applications: Sequence[str] = (),
) -> list[Manifest | NotSetUp]:
    """Provide every stack, some at once, and return in order what became of each.

    What all of them lack is looked for and reported first, in seconds. A stack that fails is
    reported at once, and the others go on.
    """
    state = state_dir()

    def look(order: StackOrder) -> Sequence[Lack]:
        return lacks(order, state, say=say)

    def put_on_disk(order: StackOrder) -> Manifest:
        return provide(order, state, say=say, refresh=refresh, applications=applications)

    report = say if len(orders) > 1 else lambda sentence: None
    results: dict[str, Manifest | NotSetUp] = {}
    lacking: dict[str, Sequence[Lack]] = {}
    for order, absent in zip(orders, _at_once(look, orders, report), strict=True):
        if isinstance(absent, NotSetUp):
            results[order.stack] = absent
        elif absent:
            lacking[order.stack] = absent
            results[order.stack] = NotSetUp(
                order.stack, LackError("stack.lacks", lacks=sentence_of(absent))
            )
    for line in summary(lacking):
        report(line)
    ready = [order for order in orders if order.stack not in results]
    results |= zip((o.stack for o in ready), _at_once(put_on_disk, ready, report), strict=True)
    return [results[order.stack] for order in orders]


def _at_once(
    do: Callable[[StackOrder], _T], orders: Sequence[StackOrder], say: Say
) -> list[_T | NotSetUp]:
    """Do something for every stack, some at once; a failure is told at once."""
    reported: set[str] = set()
    one_at_a_time = threading.Lock()

    def done(order: StackOrder) -> _T | NotSetUp:
        try:
            return do(order)
        except ClustergateError as error:
            failed = NotSetUp(order.stack, error)
            with one_at_a_time:
                again = str(error) in reported
                reported.add(str(error))
                say(f"{order.stack} could not be set up either" if again else str(failed))
            return failed

    with ThreadPoolExecutor(max_workers=STACKS_AT_ONCE) as pool:
        waiting = [pool.submit(done, order) for order in orders]
        try:
            return [future.result() for future in waiting]
        except BaseException as stopped:
            # An interrupt or a fault ends what runs; what has not begun must not begin.
            if isinstance(stopped, KeyboardInterrupt):
                say("interrupted: finished stacks are kept; run the command again for the rest")
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def provide_all(orders: Sequence[StackOrder], *, say: Say) -> list[Manifest]:
    """Provide every stack as :func:`provide_each` does, for what needs all of them.

    Raises the error of the one that could not be set up, or :class:`StacksNotSetUp`.
    """
    results = provide_each(orders, say=say)
    if failed := [one for one in results if isinstance(one, NotSetUp)]:
        raise error_of(failed)
    return [one for one in results if isinstance(one, Manifest)]


def error_of(failed: Sequence[NotSetUp]) -> ClustergateError:
    """Return the error that tells of every failed stack; what all have in common as it is."""
    if len({str(one.error) for one in failed}) == 1:
        return failed[0].error
    return StacksNotSetUp("stack.some-failed", failures="; ".join(map(str, failed)))
