"""A call of ReFrame: run, followed, its output kept, and nothing of it left behind."""

from __future__ import annotations

import contextlib
import datetime
import subprocess
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import IO

from clustergate.files.whole import is_full
from clustergate.machine.processes import terminated_with_parent
from clustergate.model import ClustergateError
from clustergate.session.reframe import Call, read_outcomes, step_of
from clustergate.session.resuming import completed, end_processes_of, lock_run
from clustergate.verdicts.assembly import Outcome
from clustergate.wording.notation import printable
from clustergate.wording.texts import clock

GRACE_S = 30.0
_RESULTS = {"OK": "ran", "FAIL": "FAILED", "SKIP": "not available here, or skipped"}


def execute(
    call: Call,
    say: Callable[[str], None],
    waiting_s: Mapping[tuple[str, str], Sequence[float]] = MappingProxyType({}),
) -> int:
    """Run ReFrame, keep its output, report which case runs and how many are left, until when.

    ``waiting_s`` are the seconds that each case takes by its check and stack, where they are known.
    Returns its exit status; raises ClustergateError when its output cannot be kept. Nothing that
    it started on this node outlives it, and it does not outlive this process.
    """
    try:
        return _run_reframe(call, say, waiting_s)
    finally:
        end_processes_of(call.run_id)


def measure(call: Call, say: Callable[[str], None]) -> list[Outcome]:
    """Let ReFrame run what is not a run of a mode, under the run's lock; return the outcomes."""
    with lock_run(call.run_id) as beside:
        for sentence in beside:
            say(sentence)
        status = execute(call, say)
    return read_outcomes(call.report, status)


def _run_reframe(
    call: Call, say: Callable[[str], None], waiting_s: Mapping[tuple[str, str], Sequence[float]]
) -> int:
    with (
        _open_log(call.log) as kept,
        subprocess.Popen(
            call.command,
            env=call.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="replace",
            preexec_fn=terminated_with_parent,
        ) as process,
    ):
        assert process.stdout is not None
        try:
            lines = _tee(process.stdout, kept)
            for sentence in _sentences(lines, completed(call.run_id), waiting_s):
                say(sentence)
            return process.wait()
        except BaseException as stopped:
            # ReFrame cancels its jobs when it is terminated (an interrupt may be ignored, as of all
            # that a shell started in the background). It must have the time to, and a reader for
            # what it prints meanwhile.
            process.terminate()
            try:
                process.communicate(timeout=GRACE_S)
            except subprocess.TimeoutExpired:
                process.kill()
            if isinstance(stopped, OSError):
                raise _unwritable(call.log, stopped) from None
            raise


@contextlib.contextmanager
def _open_log(log: Path) -> Iterator[IO[str]]:
    """Open a log to append to, as a resumed run does; raises :class:`ClustergateError`."""
    try:
        # Line by line, because the run may be killed.
        kept = log.open("a", buffering=1, encoding="utf-8")
    except OSError as error:
        raise _unwritable(log, error) from None
    try:
        yield kept
    finally:
        # A full disk was reported when it was noticed; closing would report it again.
        with contextlib.suppress(OSError):
            kept.close()


def _unwritable(log: Path, error: OSError) -> ClustergateError:
    code = "run.full-disk" if is_full(error) else "run.unwritable"
    return ClustergateError(code, path=log, why=error)


def _tee(lines: Iterable[str], kept: IO[str]) -> Iterator[str]:
    for line in lines:
        # The log is read in terminals.
        kept.write(printable(line))
        yield line


def _sentences(
    lines: Iterable[str],
    completed: Collection[str],
    waiting_s: Mapping[tuple[str, str], Sequence[float]],
) -> Iterator[str]:
    """Yield what is to be said of the cases that run, nothing of those ``completed`` before."""
    start = time.monotonic()
    waiting = {pair: [*seconds] for pair, seconds in waiting_s.items()}
    done = left = 0
    for step in filter(None, map(step_of, lines)):
        ended = step.word not in ("RUN", "DRY")
        left = step.left if ended else left
        if step.is_fixture or step.key in completed:
            continue
        pair = step.name.split()[0], step.stack
        if ended:
            done += 1
            if seconds := waiting.get(pair):
                seconds.pop()
            yield f"  {_RESULTS[step.word]} after {time.monotonic() - start:.0f} s"
            continue
        start = time.monotonic()
        queued = f": {done} done, {left - 1} queued" if left else ""
        by = clock(datetime.datetime.now(), sum(map(sum, waiting.values())))
        known = f", all done by about {by}" if pair in waiting else ""
        yield f"running {step.name} with {step.stack}{queued}{known}"
