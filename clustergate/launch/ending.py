"""How the driver of a job ends: by itself, by a signal, and with all that it started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from clustergate.core.model import ClustergateError

ENDING_SECONDS = 1.0
"""What a launcher gets for ending its ranks; ReFrame and schedulers kill a job soon after."""

SESSION_ENDING_SECONDS = 5.0
"""What a launcher gets where nobody is about to kill its driver."""

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class _Interrupted(Exception):
    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def exit_status(work: Callable[[], int | None]) -> int:
    """Do the work of a job's driver and return the job's exit status.

    That is what the work returns (None for 0), that of a :class:`ClustergateError`, which is
    printed, or 128 and the number of the signal that ended it: the work sees an exception then, and
    ends what it runs.
    """
    for number in _SIGNALS:
        signal.signal(number, _interrupt)
    try:
        return work() or 0
    except _Interrupted as interrupted:
        return 128 + interrupted.number
    except ClustergateError as error:
        print(f"clustergate: {error}", file=sys.stderr)
        return error.exit_status


@contextmanager
def not_interrupted() -> Iterator[None]:
    """Let a signal that ends the driver wait meanwhile.

    A process that is being started is not known yet, and one that is being ended is not gone yet:
    both would be left behind. Signals come to the main thread alone, so other threads need not
    wait.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _waiting.append(None)
    try:
        yield
    finally:
        interruption = _waiting.pop()
        if interruption is not None:
            raise interruption


_waiting: list[BaseException | None] = []


def _interrupt(number: int, frame: FrameType | None) -> None:
    # One is enough: a second would leave the launch behind that the first is about to end.
    for handled in _SIGNALS:
        signal.signal(handled, signal.SIG_IGN)
    if _waiting:
        _waiting[-1] = _Interrupted(number)
    else:
        raise _Interrupted(number)


def end(process: subprocess.Popen[bytes], seconds: float = ENDING_SECONDS) -> None:
    """Ask a launcher to end with its ranks; kill it when it does not within so many seconds."""
    process.terminate()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def end_session(process: subprocess.Popen[bytes]) -> None:
    """End a program and all of its session: its launcher first, which knows the ranks."""
    with not_interrupted():
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        last = time.monotonic() + SESSION_ENDING_SECONDS
        while _session_members(process.pid) and time.monotonic() < last:
            process.poll()
            time.sleep(0.05)
        for member in _session_members(process.pid):
            with suppress(ProcessLookupError):
                os.kill(member, signal.SIGKILL)
        process.wait()
        # What was killed is gone a little later, and later still where it waits for a disk.
        last = time.monotonic() + SESSION_ENDING_SECONDS
        while _session_members(process.pid) and time.monotonic() < last:
            time.sleep(0.01)


def _session_members(session: int) -> list[int]:
    import psutil  # only here: drivers, which start for each job, end their launches otherwise

    return [pid for pid in psutil.pids() if _session_of(pid) == session and not _is_zombie(pid)]


def _session_of(pid: int) -> int | None:
    with suppress(ProcessLookupError, PermissionError):
        return os.getsid(pid)
    return None


def _is_zombie(pid: int) -> bool:
    import psutil

    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return True
