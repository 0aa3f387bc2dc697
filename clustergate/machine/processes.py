"""Ask a program; end what a run left behind on this node: ranks without a launcher, jobs."""

from __future__ import annotations

import contextlib
import ctypes
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import psutil

from clustergate.core.interrupts import raise_if_ending

GRACE_S = 3.0
_LOOK_S = 0.2
_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1


def capture(
    command: Sequence[str], text: str = "", **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a command, which reads ``text``, to its end and keep what it prints, readable or not."""
    options |= {"capture_output": True, "errors": "replace", "check": False}
    raise_if_ending()
    ended = subprocess.run(command, input=text, **options)
    # Of one that was ended, nothing it printed counts.
    raise_if_ending()
    return ended


def terminated_with_parent() -> None:
    """Ask the kernel to terminate this process when its parent dies, however that happens.

    It is for a child that is about to execute its program (``preexec_fn=``); see prctl(2).
    """
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def end_children(are_gone: Callable[[], bool]) -> None:
    """End all processes below this one again and again, until what waits for them says so.

    They are asked first, and killed from :data:`GRACE_S` seconds on.
    """
    last = time.monotonic() + GRACE_S
    while not are_gone():
        for child in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if time.monotonic() < last:
                    child.terminate()
                else:
                    child.kill()
        time.sleep(_LOOK_S)


def end_processes_with(variable: str, value: str, beside: Mapping[str, str] = {}) -> list[str]:
    """End every process of this user whose environment says ``variable=value``.

    Those that say something else of a variable in ``beside`` are left alone. The others are asked
    first and killed after :data:`GRACE_S` seconds. Returns their names. A job of a scheduler is not
    among them when it runs on another node: cancelling that is the scheduler's.
    """
    processes = [
        process
        for process in psutil.process_iter()
        if _says(process, {**beside, variable: value}, variable)
    ]
    names = []
    for process in processes:
        try:
            names.append(process.name())
            process.terminate()
        except psutil.Error:
            continue
    _, alive = psutil.wait_procs(processes, timeout=GRACE_S)
    for process in alive:
        try:
            process.kill()
        except psutil.Error:
            continue
    psutil.wait_procs(alive, timeout=GRACE_S)
    return names


def _says(process: psutil.Process, values: Mapping[str, str], needed: str) -> bool:
    try:
        said = process.environ()
    except (psutil.Error, OSError):
        # Somebody else's, or gone meanwhile.
        return False
    return needed in said and all(said.get(name, values[name]) == values[name] for name in values)
