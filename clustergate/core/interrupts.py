"""Whether what this process does is being ended: nothing more begins then."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_ending = threading.Event()


@contextmanager
def nothing_begins() -> Iterator[None]:
    """Let no thread begin anything more meanwhile."""
    _ending.set()
    try:
        yield
    finally:
        _ending.clear()


def go_on() -> None:
    """Raise KeyboardInterrupt while nothing is to begin."""
    if _ending.is_set():
        raise KeyboardInterrupt
