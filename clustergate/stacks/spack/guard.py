"""Run a command that does not outlive whoever started it, however that one ended.

``python -I -m clustergate.stacks.spack.guard COMMAND …`` runs it in a session of its own and exits
as it does. Standard input is the tie: when the other end of that pipe closes, because its owner is
gone, the command and all that it started are ended. A killed ``clustergate`` would leave Spack's
compilers running otherwise, and its locks held.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress

# Spack removes what is half installed, and lets go of its locks, before it ends.
ENDING_SECONDS = 10.0


def main(command: Sequence[str]) -> int:
    """Run a command to its end, or to that of who holds standard input; return its status."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    # A session of its own hears nothing of the terminal's Ctrl-C.
    signal.signal(signal.SIGINT, lambda number, frame: _signal_group(process.pid, signal.SIGINT))
    orphaned = threading.Event()
    watch = threading.Thread(target=_end_with_owner, args=[process.pid, orphaned], daemon=True)
    watch.start()
    status = process.wait()
    if orphaned.is_set():
        # What the command started may outlive it.
        watch.join()
    return status if status >= 0 else 128 - status


def _end_with_owner(group: int, orphaned: threading.Event) -> None:
    while os.read(sys.stdin.fileno(), 1024):
        pass
    orphaned.set()
    for number in (signal.SIGINT, signal.SIGTERM):
        _signal_group(group, number)
        end = time.monotonic() + ENDING_SECONDS
        while _is_alive(group) and time.monotonic() < end:
            time.sleep(0.05)
    _signal_group(group, signal.SIGKILL)


def _signal_group(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, number)


def _is_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
