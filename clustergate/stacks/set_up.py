"""The stacks of a site, each for itself: what fails is told when it fails, the others go on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from clustergate.core.interrupts import block_new_work
from clustergate.core.model import ClustergateError, Say
from clustergate.core.paths import state_dir
from clustergate.core.reasons import Reason, Words
from clustergate.core.store import make_folder, require_home
from clustergate.core.texts import Step
from clustergate.machine.processes import end_children
from clustergate.stacks import PROVIDERS, StackRequest, lacks, provide
from clustergate.stacks.lacking import Lack, LackError, summary
from clustergate.stacks.manifest import Manifest

_T = TypeVar("_T")


STACK_NOT_PROVIDED = Words("stack.not-provided", "{stack} could not be set up: {why}")


@dataclass(frozen=True)
class NotSetUp:
    """A stack that could not be set up, and why; the others stand without it."""

    stack: str
    error: ClustergateError

    @property
    def reason(self) -> Reason:
        """Why, as a case of this stack says it."""
        return STACK_NOT_PROVIDED(stack=self.stack, why=self.error)

    def __str__(self) -> str:
        return str(self.reason)


def provide_each(
    requests: Sequence[StackRequest],
    *,
    say: Say,
    refresh: bool = False,
    applications: Sequence[str] = (),
) -> list[Manifest | NotSetUp]:
    """Provide every stack, some at once, and return in order what became of each.

    What all of them lack is looked for and reported first, in seconds. A stack that fails is
    reported at once, and the others go on.
    """
    require_home(state := state_dir())
    make_folder(state)
    look = partial(lacks, state=state, refresh=refresh, say=say)
    bring = partial(provide, state=state, refresh=refresh, applications=applications)
    report = say if len(requests) > 1 else lambda sentence: None
    results: dict[str, Manifest | NotSetUp] = {}
    lacking: dict[str, Sequence[Lack]] = {}
    for request, absent in zip(requests, _at_once(look, requests, report), strict=True):
        if isinstance(absent, NotSetUp):
            results[request.stack] = absent
        elif absent:
            lacking[request.stack] = absent
            results[request.stack] = NotSetUp(request.stack, LackError.of(absent))
    for line in summary(lacking):
        report(line)
    ready = [request for request in requests if request.stack not in results]
    names = [request.stack for request in ready]
    results |= zip(
        names, _at_once(_naming_who_is_left(bring, names, say), ready, report), strict=True
    )
    return [results[request.stack] for request in requests]


def _naming_who_is_left(
    bring: Callable[..., Manifest], stacks: Sequence[str], say: Say
) -> Callable[[StackRequest], Manifest]:
    """Return what provides a stack, and says what goes on with the others when it is done.

    The last sentence is repeated as what goes on: it must not be of a stack that is done.
    """
    left, one_at_a_time = list(stacks), threading.Lock()
    # By stack, in the order in which they were said.
    last: dict[str, str] = {}

    def done(request: StackRequest) -> Manifest:
        def heard(sentence: str) -> None:
            with one_at_a_time:
                last.pop(request.stack, None)
                last[request.stack] = sentence
            say(sentence)

        try:
            manifest = bring(request, say=heard)
        finally:
            with one_at_a_time:
                left.remove(request.stack)
                had_work = bool(last.pop(request.stack, ""))
        with one_at_a_time:
            if had_work and left:
                say(f"{request.stack} is done")
                going_on = [*last.values()] or [Step(f"setting up {', '.join(left)}")]
                say(going_on[-1])
        return manifest

    return done


def _at_once(
    do: Callable[[StackRequest], _T], requests: Sequence[StackRequest], say: Say
) -> list[_T | NotSetUp]:
    """Do something for every stack, some at once; a failure is told at once."""
    reported: set[str] = set()
    one_at_a_time, stopping = threading.Lock(), threading.Event()

    def done(request: StackRequest) -> _T | NotSetUp:
        try:
            return do(request)
        except ClustergateError as error:
            failed = NotSetUp(request.stack, error)
            with one_at_a_time:
                again = str(error) in reported
                reported.add(str(error))
                if not stopping.is_set():
                    say(f"{request.stack} could not be set up either" if again else str(failed))
            return failed

    limits = [most for one in requests if (most := PROVIDERS[one.provider].at_once)]
    with ThreadPoolExecutor(max_workers=min([*limits, len(requests) or 1])) as pool:
        waiting: list[Future[_T | NotSetUp]] = []
        try:
            waiting += (pool.submit(done, request) for request in requests)
            return [future.result() for future in waiting]
        except BaseException as stopped:
            # An interrupt or a fault ends what runs; what has not begun must not begin.
            stopping.set()
            with block_new_work():
                if isinstance(stopped, KeyboardInterrupt):
                    say("interrupted: finished stacks are kept; run the command again for the rest")
                pool.shutdown(wait=False, cancel_futures=True)
                # Only a terminal interrupts the compilers, too.
                end_children(lambda: all(future.done() for future in waiting))
            raise


def provide_all(requests: Sequence[StackRequest], *, say: Say) -> list[Manifest]:
    """Provide every stack as :func:`provide_each` does, for what needs all of them.

    Raises the error of the one that could not be set up, or :class:`ClustergateError`.
    """
    results = provide_each(requests, say=say)
    if failed := [one for one in results if isinstance(one, NotSetUp)]:
        raise error_of(failed)
    return [one for one in results if isinstance(one, Manifest)]


SOME_FAILED = Words(
    "stack.some-failed",
    "{stacks:list} could not be set up",
    cause="the lines above say why",
    remedy="fix it, and run the command again",
)


def error_of(failed: Sequence[NotSetUp]) -> ClustergateError:
    """Return the error that tells of every failed stack; what all have in common as it is."""
    if len({str(one.error) for one in failed}) == 1:
        return failed[0].error
    stacks, failures = [one.stack for one in failed], [str(one.error) for one in failed]
    return ClustergateError(SOME_FAILED(stacks=stacks, failures=failures))
