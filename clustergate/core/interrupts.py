"""Whether what this process does is being ended: nothing more begins then."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_ending = threading.Event()


@contextmanager
def block_new_work() -> Iterator[None]:
    """Let no thread begin anything more meanwhile."""
    _ending.set()
    try:
        yield
    finally:
        _ending.clear()


def raise_if_ending() -> None:
    """Raise KeyboardInterrupt while nothing is to begin."""
    if _ending.is_set():
        raise KeyboardInterrupt
