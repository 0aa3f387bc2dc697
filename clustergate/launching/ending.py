"""How the driver of a job ends: by itself, by a signal, and with all that it started."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

from clustergate.model import ClustergateError

ENDING_SECONDS = 1.0
"""What a launcher gets for ending its ranks; ReFrame and schedulers kill a job soon after."""

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class _Interrupted(Exception):
    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def exit_status(work: Callable[[], int]) -> int:
    """Do the work of a job's driver and return the job's exit status.

    That is what the work returns, that of a :class:`ClustergateError`, which is told, or 128 and
    the number of the signal that ended it: the work sees an exception then, and ends what it runs.
    """
    for number in _SIGNALS:
        signal.signal(number, _interrupt)
    try:
        return work()
    except _Interrupted as interrupted:
        return 128 + interrupted.number
    except ClustergateError as error:
        print(f"clustergate: {error}", file=sys.stderr)
        return error.exit_status


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    # One is enough: a second would leave the launch behind that the first is about to end.
    for handled in _SIGNALS:
        signal.signal(handled, signal.SIG_IGN)
    raise _Interrupted(number)


def end(process: subprocess.Popen[bytes]) -> None:
    """Ask a launcher to end with its ranks; kill it when it does not."""
    process.terminate()
    try:
        process.wait(ENDING_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
