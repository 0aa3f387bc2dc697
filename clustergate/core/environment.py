"""The environment of this process, which ReFrame and all jobs inherit: written here alone."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator


@contextlib.contextmanager
def restore_environment() -> Iterator[None]:
    """Give the environment back as it was, whatever is exported meanwhile."""
    before = dict(os.environ)
    try:
        yield
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)


def export(name: str, value: str) -> None:
    """Set a variable for this command, and for all that it starts from now on."""
    os.environ[name] = value


@contextlib.contextmanager
def set_for_libraries(name: str, value: str) -> Iterator[None]:
    """Set a variable for the libraries of this process alone: what it starts has the old value."""
    os.putenv(name, value)
    try:
        yield
    finally:
        os.unsetenv(name)
        if name in os.environ:
            os.putenv(name, os.environ[name])
